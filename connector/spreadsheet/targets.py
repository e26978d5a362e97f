"""Targets of columns: the positions in a request body that a column of a file can fill.

These are a resource's own fields, and other ways to name a reference (`company_name` for
`company_id`). Mapping, reading, checking and templates use them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol, get_args

from connector.catalog import CATALOG, REFERENCES, declaration
from connector.catalog.content import ContentTypeField
from connector.catalog.field import Field, Kind
from connector.catalog.field_comparison import normalize_text
from connector.catalog.resource import Declaration
from connector.errors import Misused, UnknownName
from connector.state.row import KnownId, LandedRecord, Mode


class Lookups(Protocol):
    """Bulk queries of the records in the local copy."""

    def find_ids(
        self,
        resource: str,
        fields: Sequence[str],
        values: Sequence[tuple[Any, ...]],
        parent: str | None = None,
    ) -> Sequence[tuple[str, ...]]:
        """Return, for each tuple of values, the ids of live records whose `fields` equal them.

        Texts are compared by `comparison_text`. `parent` is the slug or id of a content type.
        """

    def list_texts(self, resource: str, fields: Sequence[str]) -> Sequence[tuple[str, ...]]:
        """Return id and texts of these fields of all live records, without those that are empty."""

    def known_ids(self, field: str) -> Sequence[KnownId]:
        """Return the ids of users or lead statuses that a field can have."""

    def landed_records(self, resource: str, ids: Collection[str]) -> Mapping[str, LandedRecord]:
        """Return the loaded state of the records with these ids, including deleted ones."""

    def has_records(self, resource: str) -> bool:
        """Return True if any record of the resource was ever loaded."""

    def content_fields(self, content_type: str) -> Sequence[ContentTypeField] | None:
        """Return the fields of the content type with that slug or id; None if it is not loaded."""


# -- Identity --------------------------------------------------------------------------------------
# Two records with the same natural key are considered one, and the user decides.


def natural_key(resource: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the first natural key that has all its values, by field; empty if none has."""
    for fields in CATALOG[resource].natural_keys:
        key = {name: values.get(name) for name in fields}
        if None not in key.values() and "" not in key.values():
            return key
    return {}


def comparison_text(value: Any) -> str:
    """Return the value as text, without letter case, outer blanks and composition of accents."""
    return normalize_text(value if isinstance(value, str) else str(value)).lower()


# -- Target columns --------------------------------------------------------------------------------


UNLISTED: Mapping[str, str] = {
    "assigned_to": "user",
    "account_manager_id": "user",
    "lead_status_id": "lead status",
}
"""Fields with ids that the API does not list, each with what the id belongs to."""


@dataclass(frozen=True, slots=True)
class Reference:
    """Reference to a record, or to a user or lead status; the column names its field `by`."""

    resource: str
    by: str | None = None


@dataclass(frozen=True, slots=True)
class TargetColumn:
    """Field of a request body that a column of the file can fill, and how its cells name it.

    Attributes:
        key: Name of the field in the body.
        keeps_digits: True if leading zeros and a plus belong to the value, as in telephone numbers.
    """

    name: str
    key: str
    field: Field
    reference: Reference | None = None
    aliases: tuple[str, ...] = ()
    keeps_digits: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """Its name, and the label of a resource's own field."""
        return (self.name, self.field.label) if self.name == self.key else (self.name,)

    @property
    def referred_resource(self) -> str | None:
        """Resource whose record the field refers to; None without a reference to a record."""
        return self.reference.resource if self.reference and self.key not in UNLISTED else None

    @property
    def is_phone(self) -> bool:
        """True for telephone numbers."""
        return self.keeps_digits and self.name.split("_")[-1] in _PHONE_WORDS

    @property
    def is_birth(self) -> bool:
        """True for a date of birth."""
        return self.key == "date_of_birth"

    @property
    def is_percentage(self) -> bool:
        """True for a percentage."""
        return self.field.kind is Kind.NUMBER and "percent" in self.name.lower()

    @property
    def is_whole(self) -> bool:
        """True for a number without a fraction."""
        return self.field.kind is Kind.INTEGER

    @property
    def period(self) -> str | None:
        """Time unit that its number is for (salary per year) or counts (days); None for others."""
        words = self.name.split("_")
        if "salary" in words or "years" in words:
            return "year"
        return "day" if {*words} & {"day", "days"} else None

    @property
    def can_be_cleared(self) -> bool:
        """Return True if the value may be null: an update cannot clear what a create requires."""
        return self.field.nullable and not self.field.create.required

    def accepted_values(self, mode: Mode) -> tuple[str, ...]:
        """Return the values of a choice that a push in this mode can set; empty if any is allowed.

        A value that only updates accept is set by a create and an update after it, unless a create
        requires a value of its own.
        """
        known, create, update = self.field.values, self.field.create, self.field.update
        by_create = (create.values or known) if create.accepted else ()
        by_update = (update.values or known) if update.accepted else ()
        if mode == "create":
            accepted = {*by_create, *(() if create.required else by_update)}
        else:
            accepted = {*by_update, *(by_create if mode == "upsert" else ())}
        return tuple(value for value in known if value in accepted)


# The last word of a name distinguishes telephone numbers and codes from other texts.
_PHONE_WORDS = frozenset(("phone", "mobile"))
_KEEPING_WORDS = _PHONE_WORDS | {"code", "postcode", "number"}


def target_columns(declared: Declaration, mode: Mode) -> tuple[TargetColumn, ...]:
    """Return every target column of this mode, in the order of the declaration."""
    columns: list[TargetColumn] = []
    if mode in ("update", "convert"):
        aliases, field = declared.aliases["id"], declared.fields["id"]
        columns.append(TargetColumn("id", "id", field, aliases=aliases))
    for each in declared.fields.values():
        is_taken = each.update.accepted or (mode != "update" and each.create.accepted)
        if mode == "convert":
            is_taken = each.name == "email"
        if is_taken and each.kind not in (Kind.OBJECT, Kind.ARRAY):
            column = _target_column(declared, each)
            columns += [column, *_reference_columns(declared, column)]
    return tuple(columns)


def _target_column(declared: Declaration, field: Field) -> TargetColumn:
    resource = REFERENCES.get(field.name) or UNLISTED.get(field.name)
    return TargetColumn(
        name=field.name,
        key=field.name,
        field=field,
        reference=None if resource is None else Reference(resource),
        aliases=declared.aliases[field.name],
        keeps_digits=field.kind is Kind.STRING and field.name.split("_")[-1] in _KEEPING_WORDS,
    )


def _reference_columns(declared: Declaration, column: TargetColumn) -> Iterator[TargetColumn]:
    """Yield columns that fill a reference by a field of its record, such as `company_name`."""
    resource = column.referred_resource
    for by, aliases in CATALOG[resource].found_by.items() if resource is not None else ():
        name = f"{CATALOG[str(resource)].singular}_{by}"
        # A field with that name is the resource's own: a lead's `company_name` is no reference.
        if name not in declared.fields:
            reference = Reference(str(resource), by)
            yield replace(column, name=name, reference=reference, aliases=aliases)


# -- Options of columns ---------------------------------------------------------------------------

Decimal = Literal[".", ","]
ColumnPolicy = Literal["overwrite", "fill"]
"""Policy of a column for existing records: overwrite the value, or fill it only if it is empty."""


@dataclass(frozen=True, slots=True)
class CellOptions:
    """Format of a column's cells, as the user declared it.

    Attributes:
        date_format: Order of numeric dates, of `ORDERS`.
        timezone: Time zone of times without one.
        region: Country that decides ambiguous cells, for example GB.
        day_hours: Times of days without a time: "all-day", or for example "09:00-17:30".
        whole_numbers: True if numbers typed in a text column are correct.
        values: Replacements of cell texts. An empty replacement skips the field.
        is_decimal_assumed: True if the country determined the decimal separator. Then three digits
            after it are not read as a fraction: 45.000 is not 45.
    """

    date_format: str | None = None
    decimal: Decimal | None = None
    timezone: str | None = None
    region: str | None = None
    day_hours: str | None = None
    whole_numbers: bool = False
    values: Mapping[str, str] = field(default_factory=dict)
    policy: ColumnPolicy = "overwrite"
    is_decimal_assumed: bool = False


AS_WRITTEN = CellOptions()


# -- Push target -----------------------------------------------------------------------------------


_MATCHABLE = (Kind.STRING, Kind.UUID, Kind.INTEGER, Kind.DATE, Kind.DATETIME)


@dataclass(frozen=True, slots=True)
class PushTarget:
    """Target of a push: the resource, the mode, and how rows find their records.

    Attributes:
        match: Fields by which a row finds its record; empty if a column `id` does.
        clear: Text that empties a field.
        parent: Slug or id of the content type, as given.
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
    """Return the push target after checking the options.

    Raises `UnknownName` for a resource, mode, field or content type that does not exist, and
    `Misused` if the resource does not support the mode or the mode needs another option.
    """
    declared = declaration(resource)
    if mode not in get_args(Mode):
        raise UnknownName("mode", mode, get_args(Mode))
    for operation in ("create", "update") if mode == "upsert" else (mode,):
        if operation not in declared.operations:
            them = "it" if operation == "convert" else "them"
            message = f"{resource} cannot be written with --mode {mode}"
            raise Misused(
                f"{message}: the API has no {operation} for {them}",
                action="Choose another resource or mode; 'convert' is for leads.",
            )
    _check_content_type(declared, parent, mode, lookups)
    if mode == "upsert" and not match:
        message = "--mode upsert needs a field that identifies records"
        raise Misused(message, action="Add --match FIELD, for example --match email.")
    if mode == "create" and match:
        action = "Leave out --match, or use --mode update or upsert."
        raise Misused("--match cannot be used with --mode create", action=action)
    for name in match:
        _check_match_field(declared, name)
    if clear is not None and not clear.strip():
        action = "Use a text that no other cell contains, for example --clear NULL."
        raise Misused("--clear is blank, but blank cells do not change fields", action=action)
    cleared = None if clear is None else clear.strip()
    return PushTarget(
        declared, mode, tuple(dict.fromkeys(match)), cleared, parent, target_columns(declared, mode)
    )


def _check_content_type(
    declared: Declaration, parent: str | None, mode: Mode, lookups: Lookups
) -> None:
    """Raise `Misused` for a missing, superfluous or unknown content type.

    Fields of the type are not imported, so the items of a type that requires one are not created.
    """
    if declared.parent is None:
        if parent is not None:
            raise Misused(f"--type cannot be used with {declared.name}", action="Leave it out.")
        return
    if parent is None:
        raise Misused(f"{declared.name} need a content type", action="Add --type SLUG.")
    fields = lookups.content_fields(parent)
    if fields is None:
        action = "Check the slug, or run 'connector pull content_types' and try again."
        raise Misused(f"no content type {parent!r} has been pulled", action=action)
    required = [str(each.name) for each in fields if each.is_required and not each.is_title_field]
    if required and mode != "update":
        message = f"new items of {parent!r} need values that cannot be imported"
        action = "Create the items on the platform."
        raise Misused(f"{message}: {', '.join(required)}", action=action)


def _check_match_field(declared: Declaration, name: str) -> None:
    allowed = [
        each.name
        for each in declared.detail_fields
        if each.kind in _MATCHABLE and (each.create.accepted or each.update.accepted)
    ]
    if name not in allowed:
        raise UnknownName(f"field that {declared.name} can be matched by", name, allowed)
