"""Declaration of a field: `field()`, `read_only()`, the values that requests accept, and rules."""

from __future__ import annotations

import json
import math
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Literal, NewType, Union, get_args, get_origin

if TYPE_CHECKING:
    from connector.catalog.resource import Record

# -- Value ----------------------------------------------------------------------------------------
# Types of API fields, and the functions that read a JSON value as each type.
#
# A value that cannot be read as its type raises `ValueError` or `TypeError`; the caller keeps the
# raw response.


Uuid = NewType("Uuid", str)
"""Id of a record, as an opaque string."""

FieldValue = str | int | float | bool | None | list[str]
"""Value of one `field_key` of a content item: a single value or a list of strings (API 2.7)."""


class Kind(StrEnum):
    """Type of a field, with the names that the API documentation uses (conventions, section 2)."""

    STRING = "string"
    UUID = "uuid"
    NUMBER = "number"
    INTEGER = "integer"
    BOOL = "bool"
    DATE = "date"
    DATETIME = "datetime"
    ARRAY = "array"
    OBJECT = "object"


KINDS: Mapping[Any, Kind] = {
    str: Kind.STRING,
    Uuid: Kind.UUID,
    float: Kind.NUMBER,
    int: Kind.INTEGER,
    bool: Kind.BOOL,
    date: Kind.DATE,
    datetime: Kind.DATETIME,
}
"""Kind of field by type annotation."""


def parse_datetime(value: Any) -> datetime:
    """Return an ISO 8601 timestamp as an aware datetime; UTC if it has no offset (API).

    Raises `ValueError` or `TypeError`.
    """
    if not isinstance(value, str):
        raise TypeError
    moment = datetime.fromisoformat(value)
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def _parse_string(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _parse_number(value: Any) -> float:
    """Return a finite number. Raises for booleans, NaN, infinity and texts without a number."""
    if isinstance(value, bool):
        raise TypeError
    number = float(value)
    if not math.isfinite(number):
        raise ValueError
    return number


def _parse_integer(value: Any) -> int:
    """Return a whole number of at most 64 bits. Raises for booleans and fractions."""
    if isinstance(value, bool):
        raise TypeError
    # Only fractions are converted through float: a large integer would lose its last digits.
    whole = int(value)
    if isinstance(value, float) and whole != value:
        raise ValueError
    if not -(2**63) <= whole < 2**63:
        raise OverflowError
    return whole


def _parse_bool(value: Any) -> bool:
    """Return True for true and 1, False for false and 0. Raises `ValueError` for other values."""
    if value in (True, False):
        return bool(value)
    raise ValueError


def _parse_date(value: Any) -> date:
    if not isinstance(value, str):
        raise TypeError
    # A datetime is cut to its date because some serialisers add midnight.
    return date.fromisoformat(value[:10])


def _parse_array(value: Any) -> list[dict[str, Any]]:
    if isinstance(value, list) and all(isinstance(v, dict) for v in value):
        return value
    raise TypeError


def _parse_object(value: Any) -> dict[str, Any]:
    """Return an object; {} for an empty array. Raises `TypeError` for other values."""
    if isinstance(value, dict):
        return value
    # Some serialisers write an empty map as an empty array.
    if value == []:
        return {}
    raise TypeError


_PARSERS: Mapping[Kind, Callable[[Any], Any]] = {
    Kind.STRING: _parse_string,
    Kind.UUID: _parse_string,
    Kind.NUMBER: _parse_number,
    Kind.INTEGER: _parse_integer,
    Kind.BOOL: _parse_bool,
    Kind.DATE: _parse_date,
    Kind.DATETIME: parse_datetime,
    Kind.ARRAY: _parse_array,
    Kind.OBJECT: _parse_object,
}


# -- Field ----------------------------------------------------------------------------------------


Format = Literal["email", "url", "currency", "timezone", "json"]
"""Format of a string field. The API does not document whether it validates formats (API 2)."""

Lines = Literal["one", "many"]
"""Number of lines in a text field, if it differs from the default."""

Personal = Literal["identity", "contact", "pay", "text"]
"""Kind of personal data in a field.

`identity` identifies a person, including post and employer. `contact` is contact data or property.
`pay` is current or expected pay. `text` is free text. Ids are not personal data here because they
mean nothing outside the platform. Labels of the agency, such as a source or a status, are not
personal data either.
"""


@dataclass(frozen=True, slots=True)
class DataSubject:
    """Fields that describe one person, and the fields that identify this person.

    Attributes:
        about: Description of the person, used at the end of a sentence for users.
        fields: Personal fields of this person. Default: all personal fields of the resource.
        ids: Fields whose id identifies the person.
        emails: Fields whose email address identifies the person.
        phones: Fields with telephone numbers. Other people may share a number.
        names: Sets of fields that form a name. Other people may have the same name.
        profiles: Fields with the address of the person's own page.
        is_record: True if the record is the person, so that undeclared fields belong to the person.
    """

    about: str
    fields: tuple[str, ...] = ()
    ids: tuple[str, ...] = ()
    emails: tuple[str, ...] = ()
    phones: tuple[str, ...] = ()
    names: tuple[tuple[str, ...], ...] = ()
    profiles: tuple[str, ...] = ()
    is_record: bool = False


def person_subject(about: str) -> DataSubject:
    """Return the data subject of a resource whose records are people, with the usual fields."""
    return DataSubject(
        about,
        ids=("id",),
        emails=("email",),
        phones=("phone", "mobile"),
        names=(("first_name", "last_name"),),
        profiles=("network_url",),
        is_record=True,
    )


@dataclass(frozen=True, slots=True)
class FieldInput:
    """Whether a request body accepts or requires a field, and which `values` (None: any value)."""

    accepted: bool = True
    required: bool = False
    values: tuple[str, ...] | None = None


OPTIONAL = FieldInput()
REQUIRED = FieldInput(required=True)
REFUSED = FieldInput(accepted=False)


def one_of(*values: str, required: bool = False) -> FieldInput:
    """Return the input of a field for which a request body accepts only these values."""
    return FieldInput(required=required, values=values)


@dataclass(frozen=True, slots=True)
class RequiredWhen:
    """Rule: on create, `fields` are required if the field `on` has one of `values`."""

    fields: tuple[str, ...]
    on: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AtLeastOneOf:
    """Rule: on create, at least one of `fields` must have a value."""

    fields: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AcceptedWhen:
    """Rule: the API accepts `field` only if the field `on` of the record has one of `values`."""

    field: str
    on: str
    values: tuple[str, ...]


Rule = RequiredWhen | AtLeastOneOf | AcceptedWhen


@dataclass(frozen=True, slots=True)
class Filter:
    """Query parameter that filters a list; without `values`, any value of the kind is allowed."""

    name: str
    kind: Kind
    values: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Field:
    """Declaration of one field.

    Attributes:
        values: Documented values in a detail; empty unless the field is a choice. Other values in
            responses are kept unchanged.
        item_values: Documented values in a list item; empty unless the field is a choice.
        personal: Kind of personal data; None if the field says nothing about a person.
        label: Name of the field for British readers.
    """

    name: str
    kind: Kind
    about: str
    create: FieldInput
    update: FieldInput
    nullable: bool = False
    values: tuple[str, ...] = ()
    item_values: tuple[str, ...] = ()
    listed: bool = False
    write_only: bool = False
    sortable: bool = False
    filterable: bool = False
    format: Format | None = None
    personal: Personal | None = None
    prose: bool = False
    lines: Lines | None = None
    element_type: type[Record] | None = None
    label: str = ""

    @property
    def is_prose(self) -> bool:
        """Return True if the field contains sentences of users, which may name any people."""
        return self.prose or self.personal == "text"

    @property
    def is_one_line(self) -> bool:
        """Return True if the value is written in one line, such as a name, a city or a date."""
        return not self.is_prose if self.lines is None else self.lines == "one"

    @property
    def is_computed(self) -> bool:
        """Return True if the API computes the value for each response, such as a count."""
        return self.kind is Kind.INTEGER and not self.create.accepted

    def parse(self, value: Any) -> tuple[Any, str | None]:
        """Return the parsed value of a response and a description of its problem, or None. Never
        raises.

        A value that cannot be read as the kind of the field results in `(None, problem)`; the raw
        response still contains it. An undocumented choice is kept and reported as a problem.
        """
        if value is None:
            return None, None
        try:
            read = _PARSERS[self.kind](value)
        except (ValueError, TypeError, OverflowError):
            return None, f"is not of the type {self.kind}"
        if self.element_type is not None:
            return tuple(self.element_type(each) for each in read), None
        if self.values and read not in self.values:
            return read, "is not a documented value"
        return read, None


@dataclass(frozen=True, slots=True)
class FieldDescriptor:
    """Descriptor of a declared field: on a record its value, on the class its declaration."""

    field: Field

    def __get__(self, record: Record | None, owner: type) -> Any:
        """Return the value as its kind; None if it is missing or cannot be read.

        Raises `AttributeError` for a field that a record of this shape does not show.
        """
        if record is None:
            return self.field
        name = self.field.name
        if self.field.write_only:
            raise AttributeError(f"{name!r} is taken by requests and never shown by the API")
        if record.is_item and not self.field.listed:
            raise AttributeError(f"{name!r} is not in a list item; get the record by id to see it")
        return self.field.parse(record.raw.get(name))[0]


def field(
    about: str,
    *,
    create: FieldInput = OPTIONAL,
    update: FieldInput = OPTIONAL,
    listed: bool = False,
    write_only: bool = False,
    sortable: bool = False,
    filterable: bool = False,
    item: tuple[str, ...] | None = None,
    format: Format | None = None,
    personal: Personal | None = None,
    prose: bool = False,
    lines: Lines | None = None,
    label: str = "",
) -> Any:
    """Declare a field that requests may contain.

    Args:
        about: Comment of the column.
        create: Values that create requests accept. Default: any value of the type (API 2).
        update: Values that update requests accept. Same default.
        listed: True if list items contain the field, not only details.
        write_only: True if only requests contain the field.
        sortable: True if lists accept the field as `sort`.
        filterable: True if lists accept the field as a query parameter.
        item: Values documented for list items, if they are fewer.
        format: Format of a string.
        personal: Kind of personal data.
        prose: True for sentences that may name people, in a field that is not personal itself.
        lines: Number of lines of a text. Default: prose may have many lines, other texts have one.
        label: Name for British readers. Default: the words of the name.
    """
    return Field(
        name="",
        kind=Kind.STRING,
        about=about,
        create=create,
        update=update,
        item_values=item or (),
        listed=listed,
        write_only=write_only,
        sortable=sortable,
        filterable=filterable,
        format=format,
        personal=personal,
        prose=prose,
        lines=lines,
        label=label,
    )


def read_only(
    about: str,
    *,
    listed: bool = False,
    sortable: bool = False,
    personal: Personal | None = None,
    prose: bool = False,
) -> Any:
    """Declare a field that only responses contain (API 2, marked "detail")."""
    return field(
        about,
        create=REFUSED,
        update=REFUSED,
        listed=listed,
        sortable=sortable,
        personal=personal,
        prose=prose,
    )


def complete_field(draft: Field, name: str, annotation: Any) -> Field:
    """Return the field of a declaration with its name, and its kind and values by annotation."""
    nullable = False
    if get_origin(annotation) in (Union, types.UnionType):
        arms = [a for a in get_args(annotation) if a is not types.NoneType]
        nullable, annotation = len(arms) < len(get_args(annotation)), arms[0]
    choices: tuple[str, ...] = ()
    element_type = None
    origin = get_origin(annotation)
    if origin is Literal:
        kind, choices = Kind.STRING, get_args(annotation)
    elif origin is tuple:
        kind, element_type = Kind.ARRAY, get_args(annotation)[0]
    elif origin is not None and issubclass(origin, Mapping):
        kind = Kind.OBJECT
    else:
        kind = KINDS[annotation]
    return replace(
        draft,
        name=name,
        kind=kind,
        nullable=nullable,
        values=choices,
        item_values=draft.item_values or choices,
        element_type=element_type,
        label=draft.label or _LABELS.get(name) or _as_label(name),
    )


_LABELS: Mapping[str, str] = {
    "id": "ID",
    "address_line1": "Address line 1",
    "address_line2": "Address line 2",
    "state_province": "County",
    "postal_code": "Postcode",
    "network_url": "Profile URL",
    "code_host_url": "Code profile URL",
    "portfolio_url": "Portfolio URL",
    "social_url": "Social media URL",
    "application_url": "Application URL",
    "meeting_join_url": "Link to join the meeting",
    "notice_period_days": "Notice (days)",
    "probation_period_months": "Probation (months)",
    "years_of_experience": "Experience (years)",
    "ir35_status": "IR35 status",
    "assigned_to": "Consultant",
    "account_manager_id": "Account manager",
    "lead_status_id": "Lead status",
    "candidate_id": "Candidate",
    "job_id": "Job",
    "company_id": "Company",
    "lead_id": "Lead",
    "start_datetime": "Start",
    "end_datetime": "End",
    "timezone": "Time zone",
    "fee_percentage": "Fee (%)",
    "email": "Email",
    "cv_file_path": "CV",
    "enable_ai_matching": "AI matching",
}
"""Names for British readers that are not the words of the field's name."""


def _as_label(name: str) -> str:
    words = name.replace("_", " ")
    return f"{words[:1].upper()}{words[1:]}"
