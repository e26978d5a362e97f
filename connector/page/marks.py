"""Markers of texts that are translated when they are shown."""

from __future__ import annotations


def N_(text: str) -> str:  # noqa: N802 # the mark of gettext
    """Mark a text for translation."""
    return text


def N_PLURAL(one: str, many: str) -> tuple[str, str]:  # noqa: N802 # the mark of gettext
    """Mark a singular and a plural text for translation."""
    return one, many
