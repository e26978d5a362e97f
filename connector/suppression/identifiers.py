"""By what a person is known: ids, email addresses, telephone numbers; and finding them in texts.

Each is compared in one form, so that letter case, blanks and the ways of writing a number make no
difference.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Literal

Kind = Literal["id", "email", "phone"]

PHONE_DIGITS = 9
"""As many digits count, the last ones: with or without a country's code it is the same number."""

PHONE_DIGITS_MIN = 7
"""Fewer digits than these are no number by which anybody is known."""

EMAIL = re.compile(r"[^\s<>,;:\"'()\[\]|\\]+@[^\s<>,;:\"'()\[\]|\\@]+[^\s<>,;:\"'()\[\]|\\@.!?]")
PHONE = re.compile(r"\+?\(?\d[\d ().\-/\u00a0]{5,}\d")


def normal(kind: Kind, value: str) -> str:
    """The value in the form in which it is compared; empty where it identifies nobody."""
    if kind == "phone":
        digits = re.sub(r"\D", "", value)
        return digits[-PHONE_DIGITS:] if len(digits) >= PHONE_DIGITS_MIN else ""
    return value.strip().casefold()


def replaced(text: str, knows: Callable[[Kind, str], bool], mark: str) -> str:
    """The text with `mark` in the place of each address and number that `knows` says is known."""

    def of(kind: Kind) -> Callable[[re.Match[str]], str]:
        return lambda found: mark if knows(kind, found[0]) else found[0]

    if "@" in text:
        text = EMAIL.sub(of("email"), text)
    return PHONE.sub(of("phone"), text)
