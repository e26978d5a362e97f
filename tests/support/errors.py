"""Checks of errors, for `pytest.raises(..., check=...)`."""

from __future__ import annotations

from collections.abc import Callable

from connector.errors import ConnectorError


def has_code(code: str) -> Callable[[ConnectorError], bool]:
    """Return a check that an error has this code."""
    return lambda error: error.code == code
