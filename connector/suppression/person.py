"""One person as they are known while they are erased, and never afterwards."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol, Self

from connector.catalog import subjects_of
from connector.catalog.field import DataSubject, Field
from connector.catalog.resource import Declaration
from connector.catalog.value import MARK
from connector.catalog.value import Kind as Kinds
from connector.suppression.identifiers import Kind, is_same_number, normal, replaced

TEXT_CHARACTERS_MIN = 5
"""A name or an address that is shorter than this is looked for in no text: it would be found
everywhere.
"""


@dataclass(frozen=True, slots=True, order=True)
class Mention:
    """A text of somebody else's record or row that names a person.

    `where` is a resource or a table, `row` an id or a key. Nothing in it is personal.
    """

    where: str
    row: str
    field: str


_LISTS = ("ids", "emails", "phones", "texts", "numbers")


@dataclass(frozen=True)
class Person:
    """Everything by which a person is known, in normal forms.

    `texts` are names and profile addresses, which are looked for in texts as whole words, and
    `numbers` the telephone numbers as they are written. `resources` has the resource of each id.
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
        """Whether a cell of a table's row is an id or an address of theirs.

        A row that only names them is about somebody else.
        """
        return any(self.knows("id", cell) or self.knows("email", cell) for cell in cells)

    def marks_in(self, text: str) -> Self:
        """The marks of theirs that are in the text, as a person."""
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
        """Lower-case texts of which one is in any text that names them.

        They are to look with, and not to conclude from. JSON and HTML may have them escaped.
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
        """Return the person that `as_json` noted."""
        sets = {name: frozenset(noted[name]) for name in _LISTS}
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
    """A pattern that finds the name as whole words, or the whole address."""
    if " " in text:
        words = r"\s+".join(map(re.escape, text.split()))
        # "Joann Lee" and "Ann Lee-Jones" are other people; "Ann Lee's" is of this one.
        return rf"(?<!\w)(?<!\w['\u2019-]){words}(?!\w)(?!-\w)(?!['\u2019](?!s\b)\w)"
    return rf"(?<![\w@.-])(?<!\w/)(?:https?://)?(?:www\.)?{re.escape(text)}/?(?![-./~%?#=&@+]*\w)"


def _plain(text: str) -> str:
    return " ".join(text.lower().split())


# -- Reduction -------------------------------------------------------------------------------------
# What remains of a record when a person is taken out of it. Pure.
#
# The same reduction is made of what is held, when somebody is erased, and of whatever is read of
# them afterwards, so that an unchanged answer is an unchanged row.


class Who(Protocol):
    """Somebody who may be met in a record: one person, or all who were ever erased."""

    def knows(self, kind: Kind, value: str) -> bool:
        """Whether the identifier is theirs."""

    def without(self, text: str) -> str:
        """The text with `MARK` wherever they are named in it."""


def is_of(group: DataSubject, values: Mapping[str, Any], who: Who) -> bool:
    """Whether fields of these values tell of them, by an id or an address.

    A number alone says nothing: many people have one switchboard, and numbers change hands.
    """
    kinds: tuple[tuple[Kind, tuple[str, ...]], ...] = (("id", group.ids), ("email", group.emails))
    return any(
        isinstance(value := values.get(name), str) and who.knows(kind, value)
        for kind, names in kinds
        for name in names
    )


def owned(resource: str, values: Mapping[str, Any], who: Who) -> tuple[DataSubject, ...]:
    """The groups of a record that tell of them; none where no field does."""
    return tuple(group for group in subjects_of(resource) if is_of(group, values, who))


def reduced(declaration: Declaration, values: Mapping[str, Any], who: Who) -> dict[str, Any]:
    """What remains of a record or a body when a person is taken out of it.

    Fields that tell of them are gone, and texts that name them have `MARK` there.
    """
    groups = owned(declaration.name, values, who)
    return without_groups(declaration, values, groups, who)


def without_groups(
    declaration: Declaration, values: Mapping[str, Any], groups: tuple[DataSubject, ...], who: Who
) -> dict[str, Any]:
    """What remains of a record without the fields of these groups.

    Of a record that is somebody else's only prose is scrubbed: no other field is about them.
    """
    gone = {name for group in groups for name in group.fields}
    is_whole = any(group.is_whole for group in groups)
    is_theirs = is_own(groups)
    known = declaration.fields
    return {
        name: scrubbed(value, who) if _may_name(known.get(name), is_theirs) else value
        for name, value in values.items()
        if name not in gone and not (is_whole and name not in known)
    }


def marked_groups(
    declaration: Declaration, values: Mapping[str, Any], groups: tuple[DataSubject, ...], who: Who
) -> dict[str, Any]:
    """A record with `MARK` for each value of these groups' fields.

    So a removed value differs from an empty one.
    """
    left = without_groups(declaration, values, groups, who)
    return {
        name: left.get(name, None if value is None else MARK)
        for name, value in values.items()
        if name in left or name in declaration.fields
    }


def changed_elsewhere(
    before: Mapping[str, Any], left: Mapping[str, Any], groups: tuple[DataSubject, ...]
) -> tuple[str, ...]:
    """The fields that a reduction changed in a record that is not the person's own."""
    if is_own(groups):
        return ()
    return tuple(name for name in before if name not in left or left[name] != before[name])


def is_own(groups: tuple[DataSubject, ...]) -> bool:
    """Whether a record with these groups is the person, not one that refers to them."""
    return any(group.ids == ("id",) for group in groups)


def _may_name(field: Field | None, is_theirs: bool) -> bool:
    """Whether a text in the field may name them: prose, or an undeclared field.

    In a record of their own every text but ids, moments and choices may.
    """
    if field is None or field.is_prose:
        return True
    return is_theirs and field.kind is Kinds.STRING and not field.values


def scrubbed(value: Any, who: Who) -> Any:
    """The value with every text in it scrubbed, however deep."""
    if isinstance(value, str):
        return who.without(value)
    if isinstance(value, Mapping):
        return {who.without(name): scrubbed(each, who) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [scrubbed(each, who) for each in value]
    return value
