"""Target columns: the places of a request body that a column can fill.

A resource's own fields, another way to say each reference (`company_name` for `company_id`), and
the fields of a content type. Mapping, reading, checking and templates all start from these.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, get_args

from connector.catalog import CATALOG, REFERENCES, declaration
from connector.catalog.content import ContentTypeField
from connector.catalog.field import OPTIONAL, REFUSED, Field, FieldInput, Format
from connector.catalog.resource import Declaration
from connector.catalog.value import Kind
from connector.errors import Misused, UnknownName
from connector.ledger.push_states import LandedRecord, Mode


class Lookups(Protocol):
    """Answers from the landing, in bulk: each question costs a look into the file.

    Every method raises a `WarehouseError` where the file cannot be read.
    """

    def ids(
        self,
        resource: str,
        fields: Sequence[str],
        values: Sequence[tuple[Any, ...]],
        parent: str | None = None,
    ) -> Sequence[tuple[str, ...]]:
        """For each tuple of values, ids of the live records whose `fields` have them.

        Where they are very many, only some are returned.

        Values are as a body has them, and texts are compared as `folded` gives them. `parent` is
        the slug or id of a content type.
        """

    def landed(self, resource: str, ids: Collection[str]) -> Mapping[str, LandedRecord]:
        """The landed state of these ids' records, deleted ones among them."""

    def has_records(self, resource: str) -> bool:
        """Whether any record of the resource was ever landed."""

    def content_fields(self, content_type: str) -> Sequence[ContentTypeField] | None:
        """The fields of the content type of that slug or id; None where none is landed."""


# -- Identity --------------------------------------------------------------------------------------
# Two records that share a natural key are taken for one thing, and a person is asked.


def natural_key(resource: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """The values that identify the record, by field; empty where none do."""
    for fields in CATALOG[resource].natural_keys:
        key = {name: values.get(name) for name in fields}
        if None not in key.values() and "" not in key.values():
            return key
    return {}


def comparison_text(value: Any) -> str:
    """The value as text under which it equals others that mean the same.

    Letter case, outer blanks and the composition of accents are aside.
    """
    text = value if isinstance(value, str) else str(value)
    if not text.isascii():
        text = unicodedata.normalize("NFC", text)
    return text.strip().lower()


# -- Target columns --------------------------------------------------------------------------------


CONTENT_PREFIX = "fields."
"""Stands before a content type's own keys: an item holds their values below `fields` (API 2.7)."""

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
"""Kind and form of each `field_type`; those left out hold text (API 2.6)."""

_MANY_LINES = frozenset((None, "textarea", "rich_text"))
"""Each `field_type` whose text may have several lines."""


@dataclass(frozen=True, slots=True)
class Reference:
    """Way to name a record of another resource: by its field `by`, None for its id."""

    resource: str
    by: str | None = None


@dataclass(frozen=True, slots=True)
class TargetColumn:
    """A place that a column can fill.

    `name` is its name as a heading. `key` says where the value goes: the field's name in the
    body, with `fields.` before it where it is a content type's. `labels` are other names under
    which people know it in this workspace, `aliases` those that they use everywhere. `many` says
    that a cell holds several values. `keeps_digits` says that leading zeros and a plus belong to
    the value: telephone numbers and codes.
    """

    name: str
    key: str
    field: Field
    create: FieldInput
    update: FieldInput
    reference: Reference | None = None
    labels: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    many: bool = False
    keeps_digits: bool = False

    @property
    def is_content(self) -> bool:
        """Whether it belongs to a content type, and not to every item."""
        return self.key.startswith(CONTENT_PREFIX)

    @property
    def is_phone(self) -> bool:
        """Whether it holds telephone numbers."""
        return self.keeps_digits and self.name.split("_")[-1] in _PHONE_WORDS

    @property
    def is_percentage(self) -> bool:
        """Whether its number is a percentage."""
        return "percent" in self.name.lower()

    @property
    def period(self) -> str | None:
        """The length of time that its number is for, or counts; None where there is none."""
        words = self.name.split("_")
        if "salary" in words or "years" in words:
            return "year"
        return "day" if {*words} & {"day", "days"} else None

    @property
    def can_be_cleared(self) -> bool:
        """Whether the value may be null: what create requires, update cannot clear."""
        return self.field.nullable and not self.create.required

    def accepts(self, mode: Mode) -> tuple[str, ...]:
        """The values of a choice that the mode can bring about, empty for any value.

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


# The last word of a name distinguishes telephone numbers and codes from other texts.
_PHONE_WORDS = frozenset(("phone", "mobile"))
_KEEPING_WORDS = _PHONE_WORDS | {"code", "postcode", "number"}


def target_columns(
    declared: Declaration, mode: Mode, content_fields: Sequence[ContentTypeField] = ()
) -> tuple[TargetColumn, ...]:
    """Every place that a column can fill in this mode, in the declaration's order.

    An update and a conversion begin with the record's `id`. `content_fields` are those of the
    content type, where the resource is of one.
    """
    made: list[TargetColumn] = []
    if mode in ("update", "convert"):
        field, aliases = declared.fields["id"], declared.aliases["id"]
        made.append(TargetColumn("id", "id", field, REFUSED, REFUSED, aliases=aliases))
    for each in declared.fields.values():
        if mode == "convert":
            if each.name == "email":
                made.append(_column_of(declared, each))
            continue
        is_taken = each.update.accepted or (mode != "update" and each.create.accepted)
        if is_taken and each.kind not in (Kind.VALUES, Kind.PARTS):
            made.append(_column_of(declared, each))
            made += _by_other_names(declared, each)
    taken = {each.name for each in made}
    made += [_content_column(each, taken) for each in content_fields if each.field_key]
    return tuple(made)


def _column_of(declared: Declaration, field: Field) -> TargetColumn:
    resource = REFERENCES.get(field.name)
    return TargetColumn(
        name=field.name,
        key=field.name,
        field=field,
        create=field.create,
        update=field.update,
        reference=None if resource is None else Reference(resource),
        aliases=declared.aliases[field.name],
        keeps_digits=field.kind is Kind.STRING and field.name.split("_")[-1] in _KEEPING_WORDS,
    )


def _by_other_names(declared: Declaration, field: Field) -> Iterator[TargetColumn]:
    """Other columns for a reference: the singular, and a field that people know it by."""
    resource = REFERENCES.get(field.name)
    if resource is None:
        return
    for by, aliases in CATALOG[resource].found_by.items():
        name = f"{CATALOG[resource].singular}_{by}"
        # A field of that very name is the resource's own: a lead's `company_name` is no reference.
        if name not in declared.fields:
            yield replace(
                _column_of(declared, field),
                name=name,
                reference=Reference(resource, by),
                aliases=aliases,
                keeps_digits=False,
            )


def _content_column(declared: ContentTypeField, taken: set[str]) -> TargetColumn:
    key = str(declared.field_key)
    kind, format = _CONTENT_KINDS.get(declared.field_type or "", (Kind.STRING, None))
    values = _options(declared)
    create = FieldInput(required=bool(declared.is_required), values=values or None)
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
        lines="many" if declared.field_type in _MANY_LINES else "one",
        part=None,
    )
    path = f"{CONTENT_PREFIX}{key}"
    return TargetColumn(
        name=path if key in taken else key,
        key=path,
        field=field,
        create=create,
        update=OPTIONAL,
        labels=(declared.name,) if declared.name else (),
        many=declared.field_type == "multi_select",
        keeps_digits=declared.field_type == "phone",
    )


def _options(declared: ContentTypeField) -> tuple[str, ...]:
    """The choices of a select; what its `config` may hold is not shown (API 2.6)."""
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


# -- Push target -----------------------------------------------------------------------------------


_MATCHABLE = (Kind.STRING, Kind.UUID, Kind.INTEGER, Kind.DATE, Kind.DATETIME)


@dataclass(frozen=True, slots=True)
class PushTarget:
    """Target of a push: resource, mode, and how rows find their records.

    `match` are the fields by which a row finds its record, empty where a column `id` does.
    `clear` is the text that empties a field. `parent` is the content type's slug or id, as given,
    and `columns` are the places that columns can fill.
    """

    resource: Declaration
    mode: Mode
    match: tuple[str, ...] = ()
    clear: str | None = None
    parent: str | None = None
    columns: tuple[TargetColumn, ...] = field(default=(), repr=False)


def push_target(
    resource: str,
    mode: Mode,
    lookups: Lookups,
    *,
    match: Sequence[str] = (),
    clear: str | None = None,
    parent: str | None = None,
) -> PushTarget:
    """The push target, once it is known to make sense.

    Raises `UnknownName` for a resource, mode, field or content type that is not there, and
    `Misused` where the resource does not take the mode or the mode needs another option.
    """
    declared = declaration(resource)
    if mode not in get_args(Mode):
        raise UnknownName("mode", mode, get_args(Mode))
    for operation in ("create", "update") if mode == "upsert" else (mode,):
        if operation not in declared.operations:
            raise Misused(
                f"{resource} cannot be written with --mode {mode}: the API has no {operation} for"
                f" {'it' if operation == 'convert' else 'them'}",
                action="Choose another resource or mode; 'convert' is for leads.",
            )
    made = target_columns(declared, mode, _content_fields(declared, parent, lookups))
    if mode == "upsert" and not match:
        raise Misused(
            "--mode upsert needs a field that identifies records",
            action="Add --match FIELD, for example --match email.",
        )
    if mode == "create" and match:
        raise Misused(
            "--match cannot be used with --mode create",
            action="Leave out --match, or use --mode update or upsert.",
        )
    for name in match:
        _check_match(declared, name)
    if clear is not None and not clear.strip():
        raise Misused(
            "--clear is blank, but blank cells do not change fields",
            action="Use a text that no other cell contains, for example --clear NULL.",
        )
    cleared = None if clear is None else clear.strip()
    return PushTarget(declared, mode, tuple(dict.fromkeys(match)), cleared, parent, made)


def _content_fields(
    declared: Declaration, parent: str | None, lookups: Lookups
) -> Sequence[ContentTypeField]:
    if declared.parent is None:
        if parent is not None:
            raise Misused(f"--type cannot be used with {declared.name}", action="Leave it out.")
        return ()
    if parent is None:
        raise Misused(f"{declared.name} need a content type", action="Add --type SLUG.")
    fields = lookups.content_fields(parent)
    if fields is None:
        raise Misused(
            f"no content type {parent!r} has been pulled",
            action="Check the slug, or run 'connector pull content_types' and try again.",
        )
    return fields


def _check_match(declared: Declaration, name: str) -> None:
    allowed = [
        each.name
        for each in declared.detail_fields
        if each.kind in _MATCHABLE and (each.create.accepted or each.update.accepted)
    ]
    if name not in allowed:
        raise UnknownName(f"field that {declared.name} can be matched by", name, allowed)
