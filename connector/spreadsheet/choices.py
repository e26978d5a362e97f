"""Reading choices: the word of the API, however it is spelt, and never another one for it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from difflib import get_close_matches
from typing import Any

from connector.spreadsheet.headings import plain
from connector.spreadsheet.unreadable import ReadText, ReadTyped, Unreadable, joined

_BETWEEN = re.compile(r"[\s_\-\u2010-\u2015]+")
_SEPARATORS = re.compile(r"[;\n]")


def same_word(text: str) -> str:
    """The text under which a choice equals its other spellings: letter case aside, and blanks,
    hyphens and underscores as one: "Contract to Perm" is `contract_to_perm`.
    """
    return _BETWEEN.sub("_", text.strip().casefold())


def choice_reader(known: Sequence[str], accepted: Sequence[str]) -> ReadText:
    """How texts are read where one of the values belongs.

    `known` are all that the field may ever have, `accepted` those to name to a person.
    """
    words: dict[str, str | None] = {}
    for value in known:
        word = same_word(value)
        # A word that is two values is neither; each of them is still read as it is written.
        words[word] = None if word in words else value
    exact: Mapping[str, str] = {
        **{word: value for word, value in words.items() if value is not None},
        **{value: value for value in known},
    }

    def read(text: str) -> str:
        value = exact.get(text)
        if value is None:
            value = exact.get(same_word(text))
            if value is None:
                raise _unknown(text, accepted)
        return value

    return read


def _unknown(text: str, accepted: Sequence[str]) -> Unreadable:
    near = nearest(text, accepted)
    return Unreadable(
        "unknown_value",
        "It is not one of the field's values.",
        allowed=joined(tuple(accepted)),
        fix=f"Did you mean {near}? Write it so, or map the value in a mapping file."
        if near
        else "Write one of the allowed values, or map this one in a mapping file.",
    )


def nearest(text: str, accepted: Sequence[str]) -> str | None:
    """The one allowed value that the text begins, or is most like; None where none is near."""
    wanted = plain(text)
    begun = [value for value in accepted if wanted and plain(value).startswith(wanted)]
    if len(begun) == 1:
        return begun[0]
    close = get_close_matches(same_word(text), accepted, n=1, cutoff=0.7)
    return close[0] if close else None


def typed_choice(known: Sequence[str], accepted: Sequence[str]) -> ReadTyped:
    """How typed cells are read where a choice belongs: not at all, but for a whole number that is
    a value.
    """
    read_text = choice_reader(known, accepted)

    def read(cell: Any) -> str:
        if isinstance(cell, date | datetime):
            raise Unreadable(
                "not_text",
                "A spreadsheet program has made a date of it.",
                allowed=joined(tuple(accepted)),
                fix="Format the column as text and type the value again.",
            )
        return str(read_text(str(cell)))

    return read


def several(read_one: ReadText) -> ReadText:
    """How a text that holds several values is read: one a line, or with semicolons between."""

    def read(text: str) -> list[str]:
        parts = [part.strip() for part in _SEPARATORS.split(text)]
        return list(dict.fromkeys(read_one(part) for part in parts if part))

    return read
