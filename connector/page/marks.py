"""Marks of texts that are translated where they are shown."""

from __future__ import annotations


def N_(text: str) -> str:  # noqa: N802 # the mark of gettext
    """Mark a text."""
    return text


def N_PLURAL(one: str, many: str) -> tuple[str, str]:  # noqa: N802 # the mark of gettext
    """Mark a text for one and a text for many."""
    return one, many
