"""Known persons: everything by which the person with an address or id is known.

A mark is a person's only if no other record has it. A record *has* a mark where a field that is not
prose shows it: an address, a number or a profile as a contact's, a name as somebody's or as part of
a company's, a title or a place. Prose only names people, and has nothing. The records are all that
landed, in every version, deleted ones too, and what the journal of pushes keeps. The person's own
records have every mark, and so have the fields of other records that tell of the person: a booking
of theirs, a contact with their address.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

from connector.catalog import CATALOG, subjects_of
from connector.catalog.field import DataSubject
from connector.catalog.value import MARK, Kind
from connector.errors import Misused
from connector.ledger.journal_persons import journal_contents
from connector.ledger.ledger import Ledger
from connector.settings.model import Settings
from connector.suppression.identifiers import normal
from connector.suppression.person import TEXT_CHARACTERS_MIN, Person, owned
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

    def add(self, resource: str, record: Mapping[str, Any], group: DataSubject) -> None:
        """Take in what a group of a record's fields shows of its person."""
        for each in subjects_of(resource) if group.ids == ("id",) else (group,):
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
    """The person of an address or an id, known by that alone. Raises `Misused`."""
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
class KnownPerson:
    """A person with their records by resource; `shared` marks are not theirs alone."""

    person: Person
    records: Mapping[str, frozenset[str]] = field(default_factory=dict)
    shared: int = 0


def find(settings: Settings, seed: Person, *, is_listed: bool = False) -> KnownPerson:
    """Everything by which the person is known, and nobody else, from what has landed.

    Raises a `WarehouseError`, and `Misused` where an address is that of several people; whoever
    `is_listed` was erased before, and whatever has the address is theirs.
    """
    warehouse = Warehouse(settings.folder)
    if not warehouse.exists:
        return KnownPerson(seed)
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
    return KnownPerson(known, found, _count(full) - _count(known))


def again(settings: Settings, person: Person) -> Person:
    """The person of an erasure that was cut off, without marks that others have now.

    Raises a `WarehouseError`.
    """
    warehouse = Warehouse(settings.folder)
    if not warehouse.exists:
        return person
    warehouse.prepare()
    with opened(warehouse.work) as connection:
        return only_theirs(settings, person, alike(connection, person), person.texts)


def _check_one(whole: Iterable[Met]) -> None:
    """Raise `Misused` where these candidates and leads may be several people."""
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


def _shows(group: DataSubject) -> bool:
    """Whether the group shows by what its person is known."""
    return bool(group.emails or group.phones or group.ids == ("id",))


def _count(person: Person) -> int:
    """How many addresses, numbers and names the person has; a name has two forms."""
    return person.marks - sum(turned(each) != each for each in person.texts if "," not in each)


def _profiles(resource: str, record: Mapping[str, Any]) -> Iterable[str]:
    """The person's profile addresses in lower case, without scheme and `www`."""
    for each in CATALOG[resource].fields.values():
        text = text_of(record.get(each.name)).lower()
        is_address = each.format == "url" and each.personal is not None
        if is_address and "." in text and not any(map(str.isspace, text)):
            yield _PREFIX.sub("", text).rstrip("/")


# -- Marks of one person alone ---------------------------------------------------------------------

Record = tuple[str, Mapping[str, Any]]


def only_theirs(
    settings: Settings, person: Person, landed: Iterable[Record], names: Collection[str]
) -> Person:
    """The person by those marks alone that no other record has.

    `landed` are records to look into, besides the journal's, and `names` the person's own. Raises a
    `WarehouseError`.
    """
    others = [
        (resource, record)
        for resource, record in chain(landed, _journal(settings))
        if normal("id", text_of(record.get("id"))) not in person.ids
    ]
    # A longer mark hides a shorter one in the same text: what is left is looked for once more.
    while True:
        shared = Person()
        for resource, record in others:
            shared = _joined(shared, _had(resource, record, person, names))
        if not shared.marks:
            return person
        forms = {other for each in shared.texts for other in (each, turned(each))}
        texts = {each for each in person.texts if each in forms or turned(each) in forms}
        person = person.less(_joined(shared, Person(texts=frozenset(texts))))


def is_theirs(
    group: DataSubject, record: Mapping[str, Any], person: Person, names: Collection[str]
) -> bool:
    """Whether fields that have an id or an address of the person tell of them.

    A contact with their address and another name is somebody else, and so is whoever has a record
    of their own; an office that has the address is nobody. Where the address alone was given, and
    no candidate or lead has it, whoever has it is meant.
    """
    known = [text_of(record.get(name)) for name in group.ids]
    if any(person.knows("id", each) for each in known) or not person.ids:
        return True
    if not group.names or (group.is_whole and text_of(record.get("id"))):
        return False
    shown = {name for parts in group.names if (name := name_of(record, parts))}
    return not shown or bool(shown & set(names))


def name_of(record: Mapping[str, Any], parts: Iterable[str]) -> str:
    """The name that these fields make, in the form in which names are compared."""
    return " ".join(" ".join(text_of(record.get(each)) for each in parts).lower().split())


def turned(name: str) -> str:
    """The name with the last word first, as lists have it."""
    first, _, last = name.rpartition(" ")
    return f"{last}, {first}" if first else name


def text_of(value: object) -> str:
    """The value where it is a text, without blanks around it; else nothing."""
    return value.strip() if isinstance(value, str) else ""


def _journal(settings: Settings) -> Iterator[Record]:
    with Ledger(settings.folder) as ledger:
        if ledger.exists:
            with ledger.reading() as connection:
                yield from journal_contents(connection)


def _had(
    resource: str, record: Mapping[str, Any], person: Person, names: Collection[str]
) -> Person:
    """The marks that somebody else's record has."""
    theirs = [
        group
        for group in owned(resource, record, person)
        if is_theirs(group, record, person, names)
    ]
    if any(group.is_whole for group in theirs):
        return Person()
    fields = {name for group in theirs for name in group.fields}
    others = [group for group in subjects_of(resource) if group not in theirs]
    shown = [
        text_of(record.get(name)) for each in others for name in each.phones if name not in fields
    ]
    phones = {normal("phone", each) for each in shown} & person.phones
    found = Person(phones=frozenset(phones))
    for group in others:
        for parts in group.names:
            if not fields.issuperset(parts):
                found = _joined(found, person.marks_in(name_of(record, parts)))
    for name, value in record.items():
        if name not in fields:
            for text in _informative(resource, name, value, person):
                marks = person.marks_in(text)
                # An address within a longer text is mentioned there; a name is a part of another.
                is_all = person.without(text.strip()) == MARK
                named = frozenset(each for each in marks.texts if " " in each)
                found = _joined(found, marks if is_all else Person(texts=named))
    return found


def _informative(resource: str, name: str, value: Any, person: Person) -> Iterator[str]:
    """Texts of a field that say what the record is, rather than name people.

    Of an undeclared field those texts count that are a mark and nothing else.
    """
    field = CATALOG[resource].fields.get(name)
    if field is None or field.kind is Kind.VALUES:
        yield from (each for each in _texts(value) if person.without(each.strip()) == MARK)
    elif field.kind is Kind.STRING and not field.values and not field.is_prose:
        yield from _texts(value)


def _texts(value: Any) -> Iterator[str]:
    """Every text in a value, however deep."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from _texts(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _texts(each)


def _joined(one: Person, other: Person) -> Person:
    return Person(
        emails=one.emails | other.emails,
        phones=one.phones | other.phones,
        texts=one.texts | other.texts,
    )
