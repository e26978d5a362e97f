"""Who is meant: from an address or an id to everything by which the person is known.

What any other record has as well, an office's number, a name that two people have or that is also
a company's, tells of nobody in particular: it is no mark of the person (`marks.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from connector.catalog import CATALOG, owners_of
from connector.catalog.field import Owner
from connector.errors import Misused
from connector.privacy.marks import is_theirs, name_of, only_theirs, text_of, turned
from connector.settings.model import Settings
from connector.suppression.identifiers import normal
from connector.suppression.person import TEXT_CHARACTERS_MIN, Person
from connector.warehouse.duckdb_file import opened
from connector.warehouse.persons import Met, alike, met
from connector.warehouse.warehouse import Warehouse

RECORDS_MAX = 10
"""More candidates and leads than these with one address are several people, and one must be said
by id: an address such as `none@none.example` is nobody's.
"""

ID_CHARACTERS_MIN = 8

_PREFIX = re.compile(r"^(?:https?://)?(?:www\.)?")


@dataclass(slots=True)
class _Marks:
    """Everything by which a person is known, as it was met."""

    emails: set[str] = field(default_factory=set)
    numbers: set[str] = field(default_factory=set)
    names: set[str] = field(default_factory=set)
    addresses: set[str] = field(default_factory=set)

    def add(self, resource: str, record: Mapping[str, Any], group: Owner) -> None:
        """Take in what a group of a record's fields shows of its person."""
        for each in owners_of(resource) if group.ids == ("id",) else (group,):
            self.emails |= {normal("email", text_of(record.get(name))) for name in each.emails}
            self.numbers |= {text_of(record.get(name)).lower() for name in each.phones}
            self.names |= {name_of(record, parts) for parts in each.names} - {""}
        if group.is_whole:
            self.addresses |= set(_profiles(resource, record))

    def of(self, person: Person) -> Person:
        """The person with these marks."""
        names = [each for each in self.names if " " in each]
        texts = (*names, *map(turned, names), *self.addresses)
        numbers = frozenset(each for each in self.numbers if normal("phone", each))
        return replace(
            person,
            emails=person.emails | (self.emails - {""}),
            phones=person.phones | {normal("phone", each) for each in numbers},
            numbers=numbers,
            texts=frozenset(each for each in texts if len(each) >= TEXT_CHARACTERS_MIN),
        )


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


def find(settings: Settings, seed: Person, *, is_listed: bool = False) -> Known:
    """Everything by which the person is known, and nobody else, from what has landed.

    Raises a `WarehouseError`, and `Misused` where an address is that of several people; whoever
    `is_listed` was erased before, and whatever has the address is theirs.
    """
    warehouse = Warehouse(settings.folder)
    if not warehouse.exists:
        return Known(seed, {}, 0)
    warehouse.prepare()
    with opened(warehouse.work) as connection:
        whole = [each for each in met(connection, seed) if _is_whole(each)]
        if not seed.ids and not is_listed:
            _check_one(whole)
        resources = {_id(each): each.resource for each in whole}
        person = replace(seed, ids=seed.ids | resources.keys(), resources=resources)
        versions = tuple(met(connection, person))
        marks, own = _Marks(), _Marks()
        for each in versions:
            for group in each.groups:
                if group.ids == ("id",) and person.knows("id", _id(each)):
                    own.add(each.resource, each.record, group)
        for each in versions:
            for group in each.groups:
                if _shows(group) and is_theirs(group, each.record, person, own.names):
                    marks.add(each.resource, each.record, group)
        full = marks.of(person)
        known = only_theirs(settings, full, alike(connection, full), own.names or marks.names)
        records: dict[str, set[str]] = {}
        for each in met(connection, known):
            records.setdefault(each.resource, set()).add(str(each.record.get("id")))
    found = {name: frozenset(ids) for name, ids in records.items()}
    return Known(known, found, _count(full) - _count(known))


def again(settings: Settings, person: Person) -> Person:
    """The person of an erasure that was cut off, without what somebody else has had since. Raises
    a `WarehouseError`.
    """
    warehouse = Warehouse(settings.folder)
    if not warehouse.exists:
        return person
    warehouse.prepare()
    with opened(warehouse.work) as connection:
        return only_theirs(settings, person, alike(connection, person), person.texts)


def _check_one(whole: Iterable[Met]) -> None:
    """Raise `Misused` where these candidates and leads are not one person: too many, or of names
    that have nothing to do with one another.
    """
    names: dict[str, set[str]] = {}
    for each in whole:
        shown = (name_of(each.record, parts) for group in each.groups for parts in group.names)
        names.setdefault(_id(each), set()).update(filter(None, shown))
    people: list[set[str]] = []
    for theirs in filter(None, names.values()):
        same = [each for each in people if each & theirs]
        people = [each for each in people if each not in same] + [theirs.union(*same)]
    if len(names) > RECORDS_MAX or len(people) > 1:
        raise Misused(
            f"{len(names)} candidates and leads have this address, and may be as many people",
            action="Give the id of each record that is meant.",
        )


def _is_whole(each: Met) -> bool:
    return any(group.is_whole for group in each.groups)


def _id(each: Met) -> str:
    return normal("id", text_of(each.record.get("id")))


def _shows(group: Owner) -> bool:
    """Whether the group shows by what its person is known."""
    return bool(group.emails or group.phones or group.ids == ("id",))


def _count(person: Person) -> int:
    """By how many addresses, numbers and names somebody is known; a name has two forms."""
    return person.marks - sum(turned(each) != each for each in person.texts if "," not in each)


def _profiles(resource: str, record: Mapping[str, Any]) -> Iterable[str]:
    """The person's profile addresses, in lower case and without what all of them begin with."""
    for each in CATALOG[resource].fields.values():
        text = text_of(record.get(each.name)).lower()
        is_address = each.format == "url" and each.personal is not None
        if is_address and "." in text and not any(map(str.isspace, text)):
            yield _PREFIX.sub("", text).rstrip("/")
