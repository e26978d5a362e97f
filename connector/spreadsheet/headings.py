"""Headings as people write them, brought into one form, and how alike two of them are."""

from __future__ import annotations

import re
import unicodedata
from difflib import SequenceMatcher

_NOT_WORD = re.compile(r"[^a-z0-9]+")

ALIKE_MIN = 0.8
"""From which likeness on, of 1, a heading is taken for a misspelling worth suggesting."""


def words(heading: str) -> tuple[str, ...]:
    """The heading's words: letter case, accents and punctuation aside.

    A heading in letters that have no Latin base keeps them, so that two of them stay two.
    """
    plain = unicodedata.normalize("NFKD", heading).casefold()
    plain = "".join(c for c in plain if not unicodedata.combining(c))
    if not plain.isascii():
        return tuple(re.findall(r"\w+", plain.replace("_", " ")))
    return tuple(each for each in _NOT_WORD.split(plain) if each)


def plain(heading: str) -> str:
    """The heading without case, blanks, underscores, punctuation and accents: "Mobile No." is
    "mobileno".
    """
    return "".join(words(heading))


def likeness(one: str, other: str) -> float:
    """How alike two plain headings are, from 0 to 1."""
    return SequenceMatcher(None, one, other, autojunk=False).ratio()
