"""The places of a request body that a column can fill, derived from the declarations.

A resource's own fields, another way to say each reference (`company_name` for `company_id`), and
the fields of a content type. Mapping, reading, checking and templates all start from these.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from connector.catalog import CATALOG, ContentTypeField
from connector.engine.task import Mode
from connector.field import OPTIONAL, REFUSED, Field, Format, Input
from connector.resource import Declaration
from connector.spreadsheet.identity import FOUND_BY
from connector.value import Kind

CONTENT = "fields"
"""The field of a content item that holds its values by `field_key` (API 2.7)."""

_CONTENT_KINDS: dict[str, tuple[Kind, Format | None]] = {
    "number": (Kind.NUMBER, None),
    "date": (Kind.DATE, None),
    "datetime": (Kind.DATETIME, None),
    "boolean": (Kind.BOOL, None),
    "image": (Kind.STRING, "url"),
    "file": (Kind.STRING, "url"),
    "url": (Kind.STRING, "url"),
    "email": (Kind.STRING, "email"),
}
"""What each `field_type` holds; those left out hold text (API 2.6)."""


@dataclass(frozen=True, slots=True)
class Reference:
    """How a record of another resource is named: by its field `by`, None for its id."""

    resource: str
    by: str | None = None


@dataclass(frozen=True, slots=True)
class Slot:
    """A place that a column can fill.

    `column` is its name as a heading. `key` says where the value goes: the field's name in the
    body, with `fields.` before it where it is a content type's. `labels` are other names under
    which people know it. `many` says that a cell holds several values. `keeps_digits` says that
    leading zeros and a plus belong to the value: telephone numbers and codes.
    """

    column: str
    key: str
    field: Field
    create: Input
    update: Input
    reference: Reference | None = None
    labels: tuple[str, ...] = ()
    many: bool = False
    keeps_digits: bool = False

    @property
    def is_content(self) -> bool:
        """Whether it belongs to a content type, and not to every item."""
        return self.key.startswith(f"{CONTENT}.")

    @property
    def can_be_cleared(self) -> bool:
        """Whether the value may be null: what create requires, update cannot clear."""
        return self.field.nullable and not self.create.required

    def accepts(self, mode: Mode) -> tuple[str, ...]:
        """The values of a choice that the mode can bring about, empty where any value will do.

        What create refuses and update accepts is brought about by a create and an update after
        it, unless create cannot do without a value of its own.
        """
        known = self.field.values
        by_create = (self.create.values or known) if self.create.accepted else ()
        by_update = (self.update.values or known) if self.update.accepted else ()
        if mode == "create":
            wanted = {*by_create, *(() if self.create.required else by_update)}
        else:
            wanted = {*by_update, *(by_create if mode == "upsert" else ())}
        return tuple(value for value in known if value in wanted)


TARGETS = {f"{each.singular}_id": name for name, each in CATALOG.items()}
"""The fields that hold the id of a record, each with that record's resource.

A field is one when its name is a resource's singular and `_id`; users and lead statuses have no
endpoint, so `assigned_to` and `lead_status_id` are none.
"""


def slots(
    declaration: Declaration, mode: Mode, content_fields: Sequence[ContentTypeField] = ()
) -> tuple[Slot, ...]:
    """Every place that a column can fill in this mode, in the declaration's order.

    An update and a conversion begin with the record's `id`. `content_fields` are those of the
    content type, where the resource is of one.
    """
    made: list[Slot] = []
    if mode in ("update", "convert"):
        made.append(Slot("id", "id", declaration.fields["id"], REFUSED, REFUSED))
    if mode == "convert":
        made += [_plain(f) for f in declaration.fields.values() if f.name == "email"]
        return tuple(made)
    for field in declaration.fields.values():
        is_taken = field.update.accepted or (mode != "update" and field.create.accepted)
        if is_taken and field.kind not in (Kind.VALUES, Kind.PARTS):
            made.append(_plain(field))
            made += _by_other_names(declaration, field)
    taken = {each.column for each in made}
    made += [_of_content(each, taken) for each in content_fields if each.field_key]
    return tuple(made)


# The last word of a name tells telephone numbers and codes from other texts.
_KEEPING_WORDS = frozenset(("phone", "mobile", "code", "postcode", "number"))


def _plain(field: Field) -> Slot:
    target = TARGETS.get(field.name)
    return Slot(
        column=field.name,
        key=field.name,
        field=field,
        create=field.create,
        update=field.update,
        reference=None if target is None else Reference(target),
        keeps_digits=field.kind is Kind.STRING and field.name.split("_")[-1] in _KEEPING_WORDS,
    )


def _by_other_names(declaration: Declaration, field: Field) -> Iterator[Slot]:
    """Other columns for a reference: the singular, and a field that people know it by."""
    target = TARGETS.get(field.name)
    if target is None:
        return
    for by in FOUND_BY[target]:
        column = f"{CATALOG[target].singular}_{by}"
        # A field of that very name is the resource's own: a lead's `company_name` is no reference.
        if column not in declaration.fields:
            yield Slot(column, field.name, field, field.create, field.update, Reference(target, by))


def _of_content(declared: ContentTypeField, taken: set[str]) -> Slot:
    key = str(declared.field_key)
    kind, format = _CONTENT_KINDS.get(declared.field_type or "", (Kind.STRING, None))
    values = _options(declared)
    create = Input(required=bool(declared.is_required), values=values or None)
    field = Field(
        name=key,
        kind=kind,
        about=str(declared.help_text or declared.name or key),
        nullable=not declared.is_required,
        values=values,
        item_values=(),
        create=create,
        update=OPTIONAL,
        listed=False,
        write_only=False,
        sortable=False,
        filterable=False,
        format=format,
        personal="text",
        prose=False,
        part=None,
    )
    path = f"{CONTENT}.{key}"
    return Slot(
        column=path if key in taken else key,
        key=path,
        field=field,
        create=create,
        update=OPTIONAL,
        labels=(declared.name,) if declared.name else (),
        many=declared.field_type == "multi_select",
        keeps_digits=declared.field_type == "phone",
    )


def _options(declared: ContentTypeField) -> tuple[str, ...]:
    """The choices of a select, from its `config`; what `config` may hold is not shown (API 2.6)."""
    if declared.field_type not in ("select", "multi_select"):
        return ()
    try:
        config: Any = json.loads(declared.config or "{}")
    except ValueError:
        return ()
    options = config.get("options") if isinstance(config, dict) else None
    if not isinstance(options, list):
        return ()
    return tuple(dict.fromkeys(each for each in options if isinstance(each, str)))
