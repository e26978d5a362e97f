"""Who is meant: from an address or an id to everything by which the person is known.

What a person shares with others, an office's number or a name that two people have, tells of
nobody in particular: it is no mark of theirs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from connector.catalog import CATALOG
from connector.errors import Misused
from connector.settings import Settings
from connector.suppression import Group, Person, groups_of
from connector.suppression.identifiers import normal
from connector.suppression.person import TEXT_CHARACTERS_MIN
from connector.warehouse import Warehouse
from connector.warehouse.file import opened
from connector.warehouse.persons import Met, met, namesakes

RECORDS_MAX = 10
"""More candidates and leads than these with one address are several people, and one must be said
by id: an address such as `none@none.example` is nobody's.
"""

ID_CHARACTERS_MIN = 8


@dataclass(slots=True)
class _Marks:
    """Everything by which a person is known, as it was met."""

    emails: set[str] = field(default_factory=set)
    phones: dict[str, set[str]] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)
    others: set[str] = field(default_factory=set)

    def add(self, resource: str, record: Mapping[str, Any], groups: Iterable[Group]) -> None:
        """Take in what a version of a record shows of its person."""
        for group in groups:
            told = groups_of(resource) if group.ids == ("id",) else (group,)
            for each in told:
                self._add(record, each)
            if group.is_whole:
                self.others |= set(_addresses(resource, record))

    def _add(self, record: Mapping[str, Any], group: Group) -> None:
        for name in group.emails:
            if email := normal("email", _text(record.get(name))):
                self.emails.add(email)
        for name in group.phones:
            text = _text(record.get(name))
            if phone := normal("phone", text):
                self.phones.setdefault(phone, set()).add(text.lower())
        for parts in group.names:
            words = [_text(record.get(name)) for name in parts]
            if all(words) and " " in " ".join(words):
                self.names.add(" ".join(words).lower())


def seed_of(asked: str) -> Person:
    """The person that an address or an id means, known by that alone. Raises `Misused`."""
    text = asked.strip()
    if "@" in text:
        return Person(emails=frozenset((normal("email", text),)))
    if len(text) < ID_CHARACTERS_MIN or any(each.isspace() for each in text):
        raise Misused(
            "neither an email address nor a record's id was given",
            action="Give the whole address, or the id as the platform shows it.",
        )
    return Person(ids=frozenset((normal("id", text),)))


@dataclass(frozen=True, slots=True)
class Known:
    """A person with all that identifies them, the records that show it, by resource, and how many
    marks somebody else has as well.
    """

    person: Person
    records: Mapping[str, frozenset[str]]
    shared: int


def find(settings: Settings, seed: Person) -> Known:
    """Everything by which the person is known, from what has landed. Raises a `WarehouseError`,
    and `Misused` where an address is that of too many records to be one person.
    """
    warehouse = Warehouse(settings.folder)
    if not warehouse.exists:
        return Known(seed, {}, 0)
    warehouse.prepare()
    with opened(warehouse.work) as connection:
        first = tuple(met(connection, seed))
        resources = _whole(first)
        ids = seed.ids | resources.keys()
        if not seed.ids and len(ids) > RECORDS_MAX:
            raise Misused(
                f"{len(ids)} candidates and leads have this address, and may be as many people",
                action="Give the id of each record that is meant.",
            )
        person = replace(seed, ids=frozenset(ids), resources=resources)
        versions = tuple(met(connection, person))
        marks = _Marks()
        for each in versions:
            marks.add(each.resource, each.record, _telling(each.groups))
        others = Person(
            emails=frozenset(marks.emails - seed.emails), phones=frozenset(marks.phones)
        )
        shared = _shared(tuple(met(connection, others)), person, marks.emails)
        emails = seed.emails | (frozenset(marks.emails) - shared.emails)
        person = replace(person, emails=emails)
        shared_names = namesakes(connection, marks.names, person)
    records: dict[str, set[str]] = {}
    for each in versions:
        records.setdefault(each.resource, set()).add(str(each.record.get("id")))
    phones = {each: texts for each, texts in marks.phones.items() if each not in shared.phones}
    names = marks.names - shared_names
    texts = {*names, *(_turned(each) for each in names), *marks.others}
    texts |= {each for written in phones.values() for each in written}
    known = replace(
        person,
        phones=frozenset(phones),
        texts=frozenset(each for each in texts if len(each) >= TEXT_CHARACTERS_MIN),
    )
    count = len(shared.emails) + len(shared.phones) + len(shared_names)
    return Known(known, {name: frozenset(ids) for name, ids in records.items()}, count)


def _whole(versions: Iterable[Met]) -> dict[str, str]:
    """The ids of records that are the person themselves, each with its resource."""
    return {
        normal("id", _text(each.record.get("id"))): each.resource
        for each in versions
        if any(group.is_whole for group in each.groups)
    }


def _telling(groups: Iterable[Group]) -> tuple[Group, ...]:
    """Of the groups those that show by what their person is known."""
    return tuple(each for each in groups if each.emails or each.phones or each.ids == ("id",))


def _shared(versions: Iterable[Met], person: Person, emails: set[str]) -> Person:
    """The marks that are somebody else's as well. An address is so where another candidate or lead
    has it; a number also where a contact with another address, or with none, has it.
    """
    marks = _Marks()
    for each in versions:
        if normal("id", _text(each.record.get("id"))) in person.ids:
            continue
        for group in _telling(each.groups):
            one = _Marks()
            one.add(each.resource, each.record, (group,))
            if group.is_whole:
                marks.emails |= one.emails
            if group.is_whole or not one.emails & (emails | person.emails):
                marks.phones |= one.phones
    return Person(emails=frozenset(marks.emails), phones=frozenset(marks.phones))


def _addresses(resource: str, record: Mapping[str, Any]) -> Iterable[str]:
    """Profile addresses and paths of the person's own, in lower case."""
    for each in CATALOG[resource].fields.values():
        text = _text(record.get(each.name))
        is_address = each.format == "url" or "/" in text[1:]
        if is_address and each.personal in ("identity", "contact"):
            yield text.lower()


def _turned(name: str) -> str:
    """The name with the last word first, as lists have it."""
    first, _, last = name.rpartition(" ")
    return f"{last}, {first}"


def _text(value: object) -> str:
    return value.strip() if isinstance(value, str) else ""
