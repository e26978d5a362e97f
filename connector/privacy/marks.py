"""Which marks are a person's alone: whatever any other record has as well is no mark of theirs.

A record *has* a mark where a field that is not prose shows it: an address, a number or a profile as
a contact's, a name as somebody's or as part of a company's, a title or a place. Prose only names
people, and has nothing. The records are all that landed, in every version, deleted ones too, and
what the journal of pushes keeps. The person's own records have every mark, and so have the fields
of other records that tell of the person: a booking of theirs, a contact with their address.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import chain
from typing import Any

from connector.catalog import CATALOG, owners_of
from connector.catalog.field import Owner
from connector.catalog.value import MARK, Kind
from connector.ledger.journal_persons import everything_kept
from connector.ledger.ledger import Ledger
from connector.settings.model import Settings
from connector.suppression.identifiers import normal
from connector.suppression.person import Person, owned

Record = tuple[str, Mapping[str, Any]]


def only_theirs(
    settings: Settings, person: Person, landed: Iterable[Record], names: Collection[str]
) -> Person:
    """The person by those marks alone that no other record has: none of those that `landed`, and
    none of the journal's; `names` are the person's own. Raises a `WarehouseError`.
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
    group: Owner, record: Mapping[str, Any], person: Person, names: Collection[str]
) -> bool:
    """Whether a group of fields that has an id or an address of the person tells of them. A
    contact with their address and another name is somebody else, and so is whoever has a record
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
                yield from everything_kept(connection)


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
    others = [group for group in owners_of(resource) if group not in theirs]
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
            for text in _telling(resource, name, value, person):
                marks = person.marks_in(text)
                # An address within a longer text is mentioned there; a name is a part of another.
                is_all = person.without(text.strip()) == MARK
                named = frozenset(each for each in marks.texts if " " in each)
                found = _joined(found, marks if is_all else Person(texts=named))
    return found


def _telling(resource: str, name: str, value: Any, person: Person) -> Iterator[str]:
    """The texts of a field that say what it is of, rather than tell of people in sentences: of
    what nobody has declared those that are a mark and nothing else.
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
