"""The columns that a file may have, for templates: rule, allowed values and an example of each.

One column for each field: where a field can be said in several ways, the one that people know
best, with the others named. A file made of these headings maps by name alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from connector.field import AcceptedWhen, AtLeastOneOf, RequiredWhen
from connector.spreadsheet.aim import Aim
from connector.spreadsheet.slots import Slot
from connector.spreadsheet.unreadable import joined
from connector.value import Kind


@dataclass(frozen=True, slots=True)
class Accepted:
    """A column of a template.

    `about` is one sentence on the field, `rule` says what is expected of a cell. `allowed` are
    the only values, none where any will do. `instead` are other headings for the same field, of
    which a file may have one. `example` is a cell of the example row, empty where that row has
    none.
    """

    heading: str
    about: str
    is_required: bool
    rule: str
    allowed: tuple[str, ...]
    instead: tuple[str, ...]
    example: str
    kind: Kind


def accepted_columns(aim: Aim) -> tuple[Accepted, ...]:
    """Every column that the aim's mode takes, in the declaration's order."""
    by_key: dict[str, list[Slot]] = {}
    for slot in aim.slots:
        by_key.setdefault(slot.key, []).append(slot)
    return tuple(_accepted(aim, group) for group in by_key.values())


def _accepted(aim: Aim, group: list[Slot]) -> Accepted:
    # The second way to name a record is the one that people know best; the first is its id.
    slot = group[1] if len(group) > 1 else group[0]
    others = tuple(each.column for each in group if each is not slot)
    required = _is_required(aim, slot)
    return Accepted(
        heading=slot.column,
        about=slot.field.about,
        is_required=required,
        rule=" ".join(_sentences(aim, slot, required, others)),
        allowed=slot.accepts(aim.mode),
        instead=others,
        example=_example(slot, aim),
        kind=Kind.STRING if slot is not group[0] else slot.field.kind,
    )


def _is_required(aim: Aim, slot: Slot) -> bool:
    match aim.mode:
        case "create" | "upsert":
            return slot.create.required or slot.key in aim.match
        case "update":
            return slot.key in (aim.match or ("id",))
        case "convert":
            return slot.key == "id"


def _sentences(aim: Aim, slot: Slot, required: bool, others: tuple[str, ...]) -> list[str]:
    said = [_WHAT[slot.field.kind]]
    if slot.reference is not None and slot.reference.by is not None:
        said = [f"The {slot.reference.by.replace('_', ' ')} of one that exists."]
    elif slot.field.format is not None:
        said = [_FORMS[slot.field.format]]
    elif slot.field.values:
        said = ["Several of the values, with semicolons between." if slot.many else "A value."]
    if aim.mode == "convert":
        said.insert(0, "Give one of id and email.")
    elif required:
        said.insert(0, "Required.")
    if aim.mode in ("create", "upsert"):
        said += _conditions(aim, slot.key)
    for rule in aim.resource.rules:
        if isinstance(rule, AcceptedWhen) and rule.field == slot.key:
            said.append(f"Only when {rule.on} is {joined(rule.values)}.")
    if others:
        said.append(f"Or, instead, the column {' or '.join(others)}.")
    return said


def _conditions(aim: Aim, key: str) -> list[str]:
    said = []
    for rule in aim.resource.rules:
        match rule:
            case RequiredWhen(fields, on, values) if key in fields:
                said.append(f"Required when {on} is {' or '.join(values)}.")
            case AtLeastOneOf(fields) if key in fields:
                said.append(f"At least one of {joined(fields)} is required.")
    return said


_WHAT: Mapping[Kind, str] = {
    Kind.STRING: "Text.",
    Kind.UUID: "An id.",
    Kind.NUMBER: "A number, with a dot before a fraction.",
    Kind.INTEGER: "A whole number.",
    Kind.BOOL: "yes or no.",
    Kind.DATE: "A date as 2025-04-03.",
    Kind.DATETIME: "A date and time as 2025-04-03T09:30:00Z.",
}
_FORMS: Mapping[str, str] = {
    "email": "One email address.",
    "url": "A web address with https:// or http://.",
    "currency": "A currency code of three letters.",
    "timezone": "The name of a time zone, as Europe/London.",
    "json": "JSON.",
}

_ID = "00000000-0000-4000-8000-000000000000"
_BY_FORM: Mapping[str, str] = {
    "email": "anna.berg@example.com",
    "url": "https://www.example.com/anna",
    "currency": "GBP",
    "timezone": "Europe/London",
    "json": "{}",
}
_BY_KIND: Mapping[Kind, str] = {
    Kind.NUMBER: "45000",
    Kind.INTEGER: "3",
    Kind.BOOL: "yes",
    Kind.DATE: "2025-04-03",
    Kind.DATETIME: "2025-04-03T09:30:00Z",
}
_BY_NAME: Mapping[str, str] = {
    "first_name": "Anna",
    "last_name": "Berg",
    "phone": "+44 20 7946 0123",
    "mobile": "+44 7700 900123",
    "country": "United Kingdom",
    "city": "Leeds",
    "title": "Data Engineer",
    "name": "Wren & Co",
    "reference_code": "00123",
    "rating": "4",
    "fee_percentage": "17.5",
    "founded_year": "1998",
    "end_datetime": "2025-04-03T10:30:00Z",
}
"""Cells of the example row, where the field's kind alone says little."""


def _example(slot: Slot, aim: Aim) -> str:
    if slot.reference is not None and slot.reference.by is not None:
        return _BY_FORM.get(slot.reference.by) or _BY_NAME[slot.reference.by]
    if slot.field.kind is Kind.UUID:
        # Ids differ from one workspace to the next: one is shown where no row can do without.
        return _ID if _is_required(aim, slot) else ""
    allowed = slot.accepts(aim.mode)
    if allowed:
        return allowed[0]
    if any(isinstance(r, AcceptedWhen) and r.field == slot.key for r in aim.resource.rules):
        return ""
    name = slot.field.name
    known = _BY_NAME.get(name) or _BY_KIND.get(slot.field.kind)
    return known or _BY_FORM.get(slot.field.format or "") or _by_last_word(name)


def _by_last_word(name: str) -> str:
    """The example of a text: that of its name's last word, `contact_phone` as `phone`."""
    return _BY_NAME.get(name.rsplit("_", 1)[-1], "Text")
