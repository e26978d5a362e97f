"""One person as they are known while they are looked for and erased, and never afterwards."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

from connector.suppression.identifiers import Kind, is_same_number, normal, replaced
from connector.value import MARK

TEXT_CHARACTERS_MIN = 5
"""A name or an address that is shorter than this is looked for in no text: it would be found
everywhere.
"""


@dataclass(frozen=True, slots=True, order=True)
class Mention:
    """A text that names somebody and is not of their own record: the resource or the table that it
    is in, the record's id or the row's key, and the field. Nothing in it is personal.
    """

    where: str
    row: str
    field: str


_LISTS = ("ids", "emails", "phones", "texts", "numbers")


@dataclass(frozen=True)
class Person:
    """Everything by which a person is known, in normal forms; `texts` are names and profile
    addresses, which are looked for in texts as whole words, and `numbers` the telephone numbers as
    they are written.

    `resources` has the resource of each id.
    """

    ids: frozenset[str] = frozenset()
    emails: frozenset[str] = frozenset()
    phones: frozenset[str] = frozenset()
    texts: frozenset[str] = frozenset()
    resources: Mapping[str, str] = field(default_factory=dict)
    numbers: frozenset[str] = frozenset()

    def knows(self, kind: Kind, value: str) -> bool:
        """Whether the identifier is theirs."""
        known = {"id": self.ids, "email": self.emails, "phone": self.phones}[kind]
        if not known or normal(kind, value) not in known:
            return False
        alike = [each for each in self.numbers if normal("phone", each) == normal("phone", value)]
        return kind != "phone" or not alike or any(is_same_number(each, value) for each in alike)

    def without(self, text: str) -> str:
        """The text with `MARK` wherever they are named in it. An id names nobody."""
        text = replaced(text, self.knows, MARK)
        return text if self._pattern is None else self._pattern.sub(MARK, text)

    def is_named_in(self, text: str) -> bool:
        """Whether the text names them, by an id too."""
        return self.without(text) != text or bool(self.ids and self._id_pattern.search(text))

    def is_in_row(self, cells: Iterable[str]) -> bool:
        """Whether a table's row is about them: one of its cells is an id or an address of theirs.
        A row that only names them is about somebody else.
        """
        return any(self.knows("id", cell) or self.knows("email", cell) for cell in cells)

    def marks_in(self, text: str) -> Self:
        """Those of their marks that are in the text, as a person who is known by them alone."""
        found: dict[Kind, set[str]] = {"id": set(), "email": set(), "phone": set()}

        def knows(kind: Kind, value: str) -> bool:
            if self.knows(kind, value):
                found[kind].add(normal(kind, value))
            return False

        replaced(text, knows, "")
        pattern = self._pattern
        said = [] if pattern is None else [_plain(each[0]) for each in pattern.finditer(text)]
        texts = {each for each in self.texts for one in said if _plain(each) in one}
        emails, phones = frozenset(found["email"]), frozenset(found["phone"])
        return type(self)(emails=emails, phones=phones, texts=frozenset(texts))

    def less(self, other: Person) -> Self:
        """The person without the other's marks."""
        phones = self.phones - other.phones
        return replace(
            self,
            emails=self.emails - other.emails,
            phones=phones,
            numbers=frozenset(each for each in self.numbers if normal("phone", each) in phones),
            texts=self.texts - other.texts,
        )

    @property
    def marks(self) -> int:
        """By how many addresses, numbers and texts they are known."""
        return len(self.emails) + len(self.phones) + len(self.texts)

    @cached_property
    def needles(self) -> tuple[str, ...]:
        """Lower-case texts of which one is in any text that names them: to look with, and not to
        conclude from. JSON and HTML may have any of them escaped.
        """
        plain = {each.lower() for each in (*self.emails, *self.texts, *self.numbers)}
        escaped = {json.dumps(each, ensure_ascii=True)[1:-1].lower() for each in plain}
        quoted = {json.dumps(each, ensure_ascii=False)[1:-1].lower() for each in plain}
        marked = {html.escape(each) for each in plain}
        # What holds another one is found with it.
        found: list[str] = []
        for each in sorted(plain | escaped | quoted | marked, key=lambda each: (len(each), each)):
            if not any(shorter in each for shorter in found):
                found.append(each)
        return tuple(found)

    @cached_property
    def _pattern(self) -> re.Pattern[str] | None:
        texts = sorted(self.texts, key=lambda each: (-len(each), each))
        return re.compile("|".join(map(_whole, texts)), re.IGNORECASE) if texts else None

    @cached_property
    def _id_pattern(self) -> re.Pattern[str]:
        ids = "|".join(map(re.escape, sorted(self.ids)))
        return re.compile(rf"(?<![\w-])(?:{ids})(?![\w-])", re.IGNORECASE)

    def as_json(self) -> dict[str, Any]:
        """The person for the ledger's note of what was begun, which is wiped at the end."""
        lists = {name: sorted(getattr(self, name)) for name in _LISTS}
        return {**lists, "resources": dict(self.resources)}

    @classmethod
    def from_json(cls, noted: Mapping[str, Any]) -> Self:
        """The person that was noted, by an earlier version too: it knew no `numbers`."""
        sets = {name: frozenset(noted.get(name, ())) for name in _LISTS}
        return cls(**sets, resources=dict(noted["resources"]))

    def identifiers(self) -> Iterable[tuple[Kind, str]]:
        """What goes on the list, as hashes."""
        for each in sorted(self.ids):
            yield "id", each
        for each in sorted(self.emails):
            yield "email", each
        for each in sorted(self.phones):
            yield "phone", each


def _whole(text: str) -> str:
    """A pattern that finds the name as whole words, or the address where no longer one goes on."""
    if " " in text:
        words = r"\s+".join(map(re.escape, text.split()))
        # "Joann Lee" and "Ann Lee-Jones" are other people; "Ann Lee's" is of this one.
        return rf"(?<!\w)(?<!\w['\u2019-]){words}(?!\w)(?!-\w)(?!['\u2019](?!s\b)\w)"
    return rf"(?<![\w@.-])(?<!\w/)(?:https?://)?(?:www\.)?{re.escape(text)}/?(?![-./~%?#=&@+]*\w)"


def _plain(text: str) -> str:
    return " ".join(text.lower().split())
