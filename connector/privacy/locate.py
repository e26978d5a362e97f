"""Locating a person: the owner of an email address or an id, and their other identifiers.

The person's own records, candidates and leads, contain the identifiers: email addresses, telephone
numbers and profile addresses, in every version. An identifier that another person's record also
contains is not used, for example an office number. It is removed with the person's own records, and
stays in the other record.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from connector.catalog import CATALOG, subjects_of
from connector.catalog.field import DataSubject
from connector.errors import Misused
from connector.ledger.journal_persons import journal_contents
from connector.ledger.ledger import Ledger
from connector.ledger.person import Person, identifiers_of, normalize, owned_groups
from connector.settings.model import Settings
from connector.warehouse.duckdb_file import open_file
from connector.warehouse.persons import Record, find_by_name, find_versions
from connector.warehouse.warehouse import Warehouse

RECORDS_MAX = 10
"""Maximum number of candidates and leads of one address. More share a placeholder such as
`none@none.example`.
"""

ID_CHARACTERS_MIN = 8


@dataclass(frozen=True, slots=True)
class LocatedPerson:
    """Person, and the number of identifiers that are `shared` with another person's record."""

    person: Person
    shared: int = 0


def seed_of(address_or_id: str) -> Person:
    """Return the person with an email address or an id, with no other data. Raises `Misused`."""
    text = address_or_id.strip()
    if "@" in text:
        return Person(emails=frozenset((normalize("email", text),)))
    if not may_be_id(text):
        raise Misused(
            "the value is neither an email address nor the id of a record",
            action="Give the complete address or the id. 'connector whereis NAME' lists the ids "
            "of people by name.",
        )
    return Person(ids=frozenset((normalize("id", text),)))


def may_be_id(text: str) -> bool:
    """Return True if the text is long enough for an id and has no blanks."""
    return len(text) >= ID_CHARACTERS_MIN and not any(map(str.isspace, text))


def find_person(settings: Settings, seed: Person, *, is_listed: bool = False) -> LocatedPerson:
    """Return the person with every identifier that belongs to them alone.

    Raises a `WarehouseError`, and `Misused` if the address belongs to several people. A person who
    `is_listed` was erased before, and all records with their address belong to them.
    """
    warehouse = Warehouse(settings.folder)
    if not warehouse.exists:
        return LocatedPerson(seed)
    warehouse.prepare()
    with open_file(warehouse.work) as connection:
        whole = [each for each in find_versions(connection, seed) if _is_about_person(*each, seed)]
        if not seed.ids and not is_listed:
            _check_one(whole)
        person = replace(seed, ids=seed.ids | {_record_id(record) for _, record in whole})
        # A record may have had another address before. A person without an own record is a contact.
        for resource, record in find_versions(connection, person):
            for group in owned_groups(resource, record, person):
                if not whole or group.ids == ("id",):
                    person = _join_persons(person, _identifiers_of(resource, record, group))
        others = list(find_versions(connection, person))
    others += _journal_records(settings)
    shared = Person()
    for resource, record in others:
        if not _is_theirs(resource, record, person):
            shared = _join_persons(shared, identifiers_of(CATALOG[resource], record))
    if not whole:
        # The given address identifies no other person.
        shared = shared.without(seed)
    alone = person.without(shared)
    return LocatedPerson(alone, len([*person.identifiers()]) - len([*alone.identifiers()]))


def find_named(settings: Settings, name: str) -> LocatedPerson:
    """Return all people with the name, as one person. Raises a `WarehouseError`."""
    named = Person(names=frozenset((_normalize_name(name),)))
    warehouse = Warehouse(settings.folder)
    if not warehouse.exists:
        return LocatedPerson(named)
    warehouse.prepare()
    with open_file(warehouse.work) as connection:
        ids = frozenset(_record_id(record) for _, record in find_by_name(connection, name))
    if not ids:
        return LocatedPerson(named)
    found = find_person(settings, Person(ids=ids))
    return replace(found, person=_join_persons(found.person, named))


def _check_one(whole: Iterable[Record]) -> None:
    """Raise `Misused` if these candidates and leads may be several people."""
    names: dict[str, set[str]] = {}
    for resource, record in whole:
        shown = {name for group in subjects_of(resource) for name in _full_names(record, group)}
        names.setdefault(_record_id(record), set()).update(shown)
    groups: list[set[str]] = []
    for identifiers in filter(None, names.values()):
        overlapping = [each for each in groups if each & identifiers]
        groups = [each for each in groups if each not in overlapping] + [
            identifiers.union(*overlapping)
        ]
    if len(names) > RECORDS_MAX or len(groups) > 1:
        raise Misused(
            (f"{len(names)} candidates and leads have this address and may be different people"),
            action="Erase each record by its id.",
        )


def _is_about_person(resource: str, record: Mapping[str, Any], person: Person) -> bool:
    return any(group.is_record for group in owned_groups(resource, record, person))


def _is_theirs(resource: str, record: Mapping[str, Any], person: Person) -> bool:
    """Return True if the record is the person, by its id or by a body without an id."""
    if _record_id(record):
        return _record_id(record) in person.ids
    return _is_about_person(resource, record, person)


def _identifiers_of(resource: str, record: Mapping[str, Any], group: DataSubject) -> Person:
    """Return identifiers and full names of the person in a group of a record's fields."""
    names = frozenset(each for each in _full_names(record, group) if " " in each)
    if group.is_record:
        return replace(identifiers_of(CATALOG[resource], record), names=names)
    numbers = (normalize("phone", _as_text(record.get(name))) for name in group.phones)
    return Person(phones=frozenset(numbers) - {""}, names=names)


def _full_names(record: Mapping[str, Any], group: DataSubject) -> Iterable[str]:
    for parts in group.names:
        if name := _normalize_name(" ".join(_as_text(record.get(each)) for each in parts)):
            yield name


def _join_persons(one: Person, other: Person) -> Person:
    return Person(
        ids=one.ids | other.ids,
        emails=one.emails | other.emails,
        phones=one.phones | other.phones,
        profiles=one.profiles | other.profiles,
        names=one.names | other.names,
    )


def _record_id(record: Mapping[str, Any]) -> str:
    return normalize("id", _as_text(record.get("id")))


def _normalize_name(name: str) -> str:
    return " ".join(name.lower().split())


def _as_text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _journal_records(settings: Settings) -> list[Record]:
    with Ledger(settings.folder) as ledger:
        if not ledger.exists:
            return []
        with ledger.reading() as connection:
            return list(journal_contents(connection))
