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
from connector.ledger.person import (
    Person,
    groups_describing,
    identifiers_in_record,
    normalize_identifier,
)
from connector.settings.model import Settings
from connector.warehouse.duckdb_file import open_file
from connector.warehouse.persons import Record, find_person_versions, find_versions_by_name
from connector.warehouse.warehouse import Warehouse

RECORDS_MAX = 10
"""Maximum number of candidates and leads of one address. More share a placeholder such as
`none@none.example`.
"""

ID_CHARACTERS_MIN = 8


@dataclass(frozen=True, slots=True)
class IdentifiedPerson:
    """Person with all identifiers that only they have.

    `shared` is the number of identifiers left out because another person's record has them as well.
    """

    person: Person
    shared: int = 0


def parse_address_or_id(address_or_id: str) -> Person:
    """Return a person with only this address or id. Raises `Misused` for other texts."""
    text = address_or_id.strip()
    if "@" in text:
        return Person(emails=frozenset((normalize_identifier("email", text),)))
    if not may_be_id(text):
        raise Misused(
            "the value is neither an email address nor the id of a record",
            action="Give the complete address or the id. 'connector whereis NAME' lists the ids "
            "of people by name.",
        )
    return Person(ids=frozenset((normalize_identifier("id", text),)))


def may_be_id(text: str) -> bool:
    """Return True if the text has at least 8 characters and no white space."""
    return len(text) >= ID_CHARACTERS_MIN and not any(map(str.isspace, text))


def find_person(settings: Settings, given: Person, *, was_erased: bool = False) -> IdentifiedPerson:
    """Return the person with an address or id, with every identifier that belongs to them alone.

    `given` has only the address or id. Raises a `WarehouseError`, and `Misused` if the address
    belongs to several people. If the person `was_erased` before, all records with the address
    belong to them.
    """
    warehouse = Warehouse(settings.folder)
    if not warehouse.exists:
        return IdentifiedPerson(given)
    warehouse.prepare()
    with open_file(warehouse.work) as connection:
        whole = [
            each for each in find_person_versions(connection, given) if _is_own_record(*each, given)
        ]
        if not given.ids and not was_erased:
            _refuse_several_people(whole)
        person = replace(given, ids=given.ids | {_record_id(record) for _, record in whole})
        # A record may have had another address before. A person without an own record is a contact.
        for resource, record in find_person_versions(connection, person):
            for group in groups_describing(resource, record, person):
                if not whole or group.ids == ("id",):
                    person = _merge_persons(person, _group_identifiers(resource, record, group))
        others = list(find_person_versions(connection, person))
    others += _read_journal_records(settings)
    shared = Person()
    for resource, record in others:
        if not _belongs_to(resource, record, person):
            shared = _merge_persons(shared, identifiers_in_record(CATALOG[resource], record))
    if not whole:
        # The given address identifies no other person.
        shared = shared.without(given)
    alone = person.without(shared)
    return IdentifiedPerson(alone, len([*person.identifiers()]) - len([*alone.identifiers()]))


def find_people_named(settings: Settings, name: str) -> IdentifiedPerson:
    """Return all people with the name, merged into one person. Raises a `WarehouseError`."""
    named = Person(names=frozenset((_normalize_name(name),)))
    warehouse = Warehouse(settings.folder)
    if not warehouse.exists:
        return IdentifiedPerson(named)
    warehouse.prepare()
    with open_file(warehouse.work) as connection:
        ids = frozenset(_record_id(record) for _, record in find_versions_by_name(connection, name))
    if not ids:
        return IdentifiedPerson(named)
    found = find_person(settings, Person(ids=ids))
    return replace(found, person=_merge_persons(found.person, named))


def _refuse_several_people(records: Iterable[Record]) -> None:
    """Raise `Misused` if these candidates and leads have different names or are too many."""
    names: dict[str, set[str]] = {}
    for resource, record in records:
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


def _is_own_record(resource: str, record: Mapping[str, Any], person: Person) -> bool:
    """Return True for a record about the person as a whole, such as their candidate or lead."""
    return any(group.is_record for group in groups_describing(resource, record, person))


def _belongs_to(resource: str, record: Mapping[str, Any], person: Person) -> bool:
    """Return True if the record has the person's id, or no id and the person's address."""
    if _record_id(record):
        return _record_id(record) in person.ids
    return _is_own_record(resource, record, person)


def _group_identifiers(resource: str, record: Mapping[str, Any], group: DataSubject) -> Person:
    """Return the identifiers and full names in one group of fields, for example a job's contact."""
    names = frozenset(each for each in _full_names(record, group) if " " in each)
    if group.is_record:
        return replace(identifiers_in_record(CATALOG[resource], record), names=names)
    numbers = (
        normalize_identifier("phone", _text_or_empty(record.get(name))) for name in group.phones
    )
    return Person(phones=frozenset(numbers) - {""}, names=names)


def _full_names(record: Mapping[str, Any], group: DataSubject) -> Iterable[str]:
    """Yield the normalized names that the fields of the group form."""
    for parts in group.names:
        if name := _normalize_name(" ".join(_text_or_empty(record.get(each)) for each in parts)):
            yield name


def _merge_persons(one: Person, other: Person) -> Person:
    """Return one person with the identifiers of both."""
    return Person(
        ids=one.ids | other.ids,
        emails=one.emails | other.emails,
        phones=one.phones | other.phones,
        profiles=one.profiles | other.profiles,
        names=one.names | other.names,
    )


def _record_id(record: Mapping[str, Any]) -> str:
    """Return the normalized id of a record; empty for a request body without one."""
    return normalize_identifier("id", _text_or_empty(record.get("id")))


def _normalize_name(name: str) -> str:
    """Return the name in lower case with single spaces."""
    return " ".join(name.lower().split())


def _text_or_empty(value: object) -> str:
    """Return the value if it is text, else an empty text."""
    return value if isinstance(value, str) else ""


def _read_journal_records(settings: Settings) -> list[Record]:
    """Return the request bodies and records that the journal of pushes contains."""
    with Ledger(settings.folder) as ledger:
        if not ledger.exists:
            return []
        with ledger.reading() as connection:
            return list(journal_contents(connection))
