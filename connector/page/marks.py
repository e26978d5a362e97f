"""Markers of texts that are translated when they are shown."""

from __future__ import annotations


def N_(text: str) -> str:  # noqa: N802 # the mark of gettext
    """Return the text unchanged. The name marks it for the extraction of translatable texts."""
    return text


def N_PLURAL(one: str, many: str) -> tuple[str, str]:  # noqa: N802 # the mark of gettext
    """Return both texts unchanged. The name marks them as singular and plural for extraction."""
    return one, many
