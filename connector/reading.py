"""How raw values of settings are read: whole numbers, one of a few words, and by other readers.

Each makes a reader for `Sources.pick`, which raises `ValueError` with what is allowed.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, get_args

from connector.sources import Found


def whole(least: int, most: int) -> Callable[[Found], int]:
    """A whole number, in digits alone."""

    def read(found: Found) -> int:
        text = str(found.raw).strip()
        if isinstance(found.raw, bool | float) or not re.fullmatch(r"[0-9]{1,12}", text):
            raise ValueError(f"a whole number from {least} to {most}")
        if not least <= int(text) <= most:
            raise ValueError(f"a whole number from {least} to {most}")
        return int(text)

    return read


def one_of(choices: Any) -> Callable[[Found], Any]:
    """One of the words of a `Literal`."""
    allowed = get_args(choices)

    def read(found: Found) -> Any:
        if not isinstance(found.raw, str) or found.raw.strip() not in allowed:
            raise ValueError(f"one of: {', '.join(allowed)}")
        return found.raw.strip()

    return read


def raw(read: Callable[[object], Any]) -> Callable[[Found], Any]:
    """What another reader makes of the value itself."""
    return lambda found: read(found.raw)
