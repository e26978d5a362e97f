"""Identifiers and names of one person during an erasure. Nothing of it is kept afterwards."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, Protocol, Self

from connector.catalog import subjects_of
from connector.catalog.field import MARK, DataSubject
from connector.catalog.resource import Declaration
from connector.ledger.identifiers import Kind, is_in_text, normalize


@dataclass(frozen=True, slots=True, order=True)
class Mention:
    """Place of a text in another person's record or row that mentions a person.

    `where` is a table or a file, `row` an id or the place of a row. The text itself is not kept.
    """

    where: str
    row: str
    field: str

    @property
    def is_past(self) -> bool:
        """Whether the text is an earlier version or a journal's copy, which no one can edit."""
        return self.where.startswith(("history.", "push."))


@dataclass(frozen=True)
class Person:
    """Exact identifiers of a person, in the form in which they are compared, and full names.

    Names only find texts that mention the person. They identify no one.
    """

    ids: frozenset[str] = frozenset()
    emails: frozenset[str] = frozenset()
    phones: frozenset[str] = frozenset()
    profiles: frozenset[str] = frozenset()
    names: frozenset[str] = frozenset()

    def knows(self, kind: Kind, value: str) -> bool:
        """Return True if the identifier is the person's."""
        known = self._known[kind]
        return bool(known) and normalize(kind, value) in known

    def is_named_in(self, text: str) -> bool:
        """Return True if the text contains an identifier or a full name of the person."""
        return is_in_text(text, self.knows) or (
            self._pattern is not None and self._pattern.search(text) is not None
        )

    def is_in_row(self, cells: Iterable[str]) -> bool:
        """Return True if a cell of a table's row is exactly an identifier of the person."""
        return any(self.knows(kind, cell) for cell in cells for kind in self._known)

    def identifiers(self) -> Iterable[tuple[Kind, str]]:
        """Identifiers to put on the list of erased people, as hashes."""
        return ((kind, each) for kind, known in self._known.items() for each in sorted(known))

    def without(self, other: Person) -> Self:
        """Return the person without the other's email addresses, numbers and profiles."""
        return replace(
            self,
            emails=self.emails - other.emails,
            phones=self.phones - other.phones,
            profiles=self.profiles - other.profiles,
        )

    def as_json(self) -> dict[str, Any]:
        """Return the person for the entry of the erasure, which is wiped at its end."""
        return {each.name: sorted(getattr(self, each.name)) for each in fields(self)}

    @classmethod
    def from_json(cls, noted: Mapping[str, Any]) -> Self:
        """Return the person of `as_json`."""
        return cls(**{name: frozenset(values) for name, values in noted.items()})

    @cached_property
    def _known(self) -> dict[Kind, frozenset[str]]:
        return {
            "id": self.ids,
            "email": self.emails,
            "phone": self.phones,
            "profile": self.profiles,
        }

    @cached_property
    def _pattern(self) -> re.Pattern[str] | None:
        patterns = [*map(_whole_name, sorted(self.names)), *map(_whole_url, sorted(self.profiles))]
        return re.compile("|".join(patterns), re.IGNORECASE) if patterns else None


def _whole_name(name: str) -> str:
    """Pattern of the name as whole words, also with the last name first."""
    words = [re.escape(each) for each in name.split()]
    forms = [r"\s+".join(words)]
    if len(words) > 1:
        forms.append(rf"{words[-1]},\s*" + r"\s+".join(words[:-1]))
    # "Joann Lee" and "Ann Lee-Jones" are other people; "Ann Lee's" is of this one.
    return rf"(?<!\w)(?<!\w['\u2019-])(?:{'|'.join(forms)})(?!\w)(?!-\w)(?!['\u2019](?!s\b)\w)"


def _whole_url(profile: str) -> str:
    """Pattern of the whole address of a profile."""
    return rf"(?<![\w@-])(?<!(?<!www)\.)(?<!\w/){re.escape(profile)}/?(?![-./~%?#=&@+]*\w)"


# -- Reduction -------------------------------------------------------------------------------------
# What remains of a record when a person is taken out of it. Pure.
#
# The same reduction is made of held records, when a person is erased, and of every record that is
# read afterwards, so that an unchanged answer is an unchanged row.


class PersonKey(Protocol):
    """One person, or everybody who was erased."""

    def knows(self, kind: Kind, value: str) -> bool:
        """Return True if the identifier is theirs."""


def describes(group: DataSubject, values: Mapping[str, Any], who: PersonKey) -> bool:
    """Return True if an id or an email address in these fields is theirs.

    A telephone number is not enough: many people have one switchboard, and numbers are reassigned.
    """
    kinds: tuple[tuple[Kind, tuple[str, ...]], ...] = (("id", group.ids), ("email", group.emails))
    return any(_is_known(kind, values.get(name), who) for kind, names in kinds for name in names)


def owned_groups(
    resource: str, values: Mapping[str, Any], who: PersonKey
) -> tuple[DataSubject, ...]:
    """Return the groups of a record's fields that describe the person."""
    return tuple(group for group in subjects_of(resource) if describes(group, values, who))


def removed_fields(
    declaration: Declaration,
    values: Mapping[str, Any],
    who: PersonKey,
    groups: tuple[DataSubject, ...] | None = None,
) -> set[str]:
    """Return the names of the fields of a record that an erasure removes.

    They are all fields of the `groups` that describe the person, by default those with the person's
    id or email address; in another person's contact fields, the exact telephone number and profile
    address; and every undeclared field of the person's own record.
    """
    groups = owned_groups(declaration.name, values, who) if groups is None else groups
    gone = {name for group in groups for name in group.fields if name in values}
    for group in subjects_of(declaration.name):
        if group.is_elsewhere:
            urls = _urls(declaration, group)
            gone |= {name for name in group.phones if _is_known("phone", values.get(name), who)}
            gone |= {name for name in urls if _is_known("profile", values.get(name), who)}
    if any(group.is_whole for group in groups):
        gone |= values.keys() - declaration.fields.keys()
    return gone


def without_person(
    declaration: Declaration, values: Mapping[str, Any], who: PersonKey
) -> dict[str, Any]:
    """Return a record or a body without the fields that an erasure removes."""
    gone = removed_fields(declaration, values, who)
    return {name: value for name, value in values.items() if name not in gone}


def with_marks(
    declaration: Declaration,
    values: Mapping[str, Any],
    who: PersonKey,
    groups: tuple[DataSubject, ...],
) -> dict[str, Any]:
    """Return a record with `MARK` for each declared value that an erasure removes.

    So a removed value differs from an empty one.
    """
    gone = removed_fields(declaration, values, who, groups)
    return {
        name: value if name not in gone or value is None else MARK
        for name, value in values.items()
        if name not in gone or name in declaration.fields
    }


def find_mentions(
    where: str, row: str, values: Mapping[str, Any], person: Person
) -> Iterator[Mention]:
    """Return the fields of a record whose text names the person."""
    for name, value in values.items():
        if any(map(person.is_named_in, texts_in(value))):
            yield Mention(where, row, name)


def identifiers_of(declaration: Declaration, values: Mapping[str, Any]) -> Person:
    """Return the identifiers that a record has as its own, not as those of a contact."""
    groups = [group for group in subjects_of(declaration.name) if not group.is_elsewhere]
    elsewhere = {
        name
        for group in subjects_of(declaration.name)
        if group.is_elsewhere
        for name in group.fields
    }
    urls = [
        each.name
        for each in declaration.fields.values()
        if each.format == "url" and each.name not in elsewhere
    ]
    return Person(
        emails=_normals("email", values, (name for group in groups for name in group.emails)),
        phones=_normals("phone", values, (name for group in groups for name in group.phones)),
        profiles=_normals("profile", values, urls),
    )


def texts_in(value: Any) -> Iterator[str]:
    """Yield every text in a value, at any depth."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from texts_in(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from texts_in(each)


def _urls(declaration: Declaration, group: DataSubject) -> list[str]:
    return [name for name in group.fields if declaration.fields[name].format == "url"]


def _is_known(kind: Kind, value: object, who: PersonKey) -> bool:
    return isinstance(value, str) and who.knows(kind, value)


def _normals(kind: Kind, values: Mapping[str, Any], names: Iterable[str]) -> frozenset[str]:
    shown = (values.get(name) for name in names)
    return frozenset(normalize(kind, each) for each in shown if isinstance(each, str)) - {""}
