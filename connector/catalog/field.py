"""Declaration of a field: `field()`, `shown()`, what bodies accept, and rules.

`resource.py` has the words for a whole resource, and an example.
"""

from __future__ import annotations

import types
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Union, get_args, get_origin

from connector.catalog import value as values
from connector.catalog.value import Kind

if TYPE_CHECKING:
    from connector.catalog.resource import Record

Format = Literal["email", "url", "currency", "timezone", "json"]
"""Form that a string has beyond its type. The API does not say whether it checks it (API 2)."""

Lines = Literal["one", "many"]
"""Lines of a text field where they do not follow from its being prose."""

Personal = Literal["identity", "contact", "pay", "text"]
"""Kind of personal data in a field.

`identity` says who somebody is, with post and employer; `contact` how to reach them or what they
own; `pay` what they earn or ask for; `text` is free text. Ids are not personal data here, since
they mean nothing outside the platform, nor are the agency's own labels, as a source or a state.
"""


@dataclass(frozen=True, slots=True)
class DataSubject:
    """Data subject: fields that describe one person, and how that person is known.

    `about` ends a sentence for people: whom the fields describe. `fields` are by default all
    personal fields of the resource. An id in one of `ids`, or an address in one of `emails`,
    identifies the person. `phones` have the person's numbers, and each of `names` is a set of
    fields that make a name: both may belong to other people too. `is_whole` says that the record is
    the person, so that fields which are not declared describe the person as well. `is_office` says
    that the address is the record's own.
    """

    about: str
    fields: tuple[str, ...] = ()
    ids: tuple[str, ...] = ()
    emails: tuple[str, ...] = ()
    phones: tuple[str, ...] = ()
    names: tuple[tuple[str, ...], ...] = ()
    is_whole: bool = False
    is_office: bool = False

    @property
    def is_elsewhere(self) -> bool:
        """Whether the person is not the record itself, but its contact or whom it refers to."""
        return not self.is_office and self.ids != ("id",)


def the_person(about: str) -> DataSubject:
    """The one data subject of a resource whose records are people."""
    return DataSubject(
        about,
        ids=("id",),
        emails=("email",),
        phones=("phone", "mobile"),
        names=(("first_name", "last_name"),),
        is_whole=True,
    )


@dataclass(frozen=True, slots=True)
class FieldInput:
    """Use of a field in a request body: accepted, required, with which values."""

    accepted: bool = True
    required: bool = False
    values: tuple[str, ...] | None = None


OPTIONAL = FieldInput()
REQUIRED = FieldInput(required=True)
REFUSED = FieldInput(accepted=False)


def only(*values: str, required: bool = False) -> FieldInput:
    """Input of a field that a request body takes with these values only."""
    return FieldInput(required=required, values=values)


@dataclass(frozen=True, slots=True)
class RequiredWhen:
    """On create, `fields` are required when the field `on` has one of `values`."""

    fields: tuple[str, ...]
    on: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AtLeastOneOf:
    """On create, at least one of `fields` must have a value."""

    fields: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AcceptedWhen:
    """On update, `field` is sent when the field `on` is sent with one of `values`."""

    field: str
    on: str
    values: tuple[str, ...]


Rule = RequiredWhen | AtLeastOneOf | AcceptedWhen


@dataclass(frozen=True, slots=True)
class Filter:
    """Query parameter that narrows a list; without `values`, any of its kind."""

    name: str
    kind: Kind
    values: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Field:
    """One field as declared.

    `values` are those that are documented for a detail, `item_values` those for a list item; both
    are empty unless the field is a choice. Other values in answers are kept as they come.
    `personal` is None if the field says nothing about a person.
    """

    name: str
    kind: Kind
    about: str
    nullable: bool
    values: tuple[str, ...]
    item_values: tuple[str, ...]
    create: FieldInput
    update: FieldInput
    listed: bool
    write_only: bool
    sortable: bool
    filterable: bool
    format: Format | None
    personal: Personal | None
    prose: bool
    lines: Lines | None
    part: type[Record] | None

    @property
    def is_prose(self) -> bool:
        """Whether people write sentences here, which may name other people."""
        return self.prose or self.personal == "text"

    @property
    def is_one_line(self) -> bool:
        """Whether the value is written in one line, as a name, a city or a date."""
        return not self.is_prose if self.lines is None else self.lines == "one"

    @property
    def is_long_text(self) -> bool:
        """Whether the value is a text of several lines that answers show, as notes.

        Such a text is easily lost when it is overwritten, and more text can be appended to it.
        """
        is_text = self.kind is Kind.STRING and not self.values and self.format is None
        return is_text and not self.is_one_line and not self.write_only

    @property
    def is_computed(self) -> bool:
        """Whether the API computes the value for each answer, as a count of other records."""
        return self.kind is Kind.INTEGER and not self.create.accepted

    def read(self, value: Any) -> tuple[Any, str | None]:
        """Read one value of an answer: the value, and a problem or None. Never raises.

        A value that cannot be read as the field's kind gives `(None, problem)`; the answer as
        received still has it. A choice that is not documented is kept, and is a problem as well.
        """
        if value is None:
            return None, None
        try:
            read = values.read(self.kind, value)
        except (ValueError, TypeError, OverflowError):
            return None, f"is not of the type {self.kind}"
        if self.part is not None:
            return tuple(self.part(each) for each in read), None
        if self.values and read not in self.values:
            return read, "is not a documented value"
        return read, None


@dataclass(frozen=True, slots=True)
class Attribute:
    """Descriptor of a field: the value on a record, the field on its class."""

    field: Field

    def __get__(self, record: Record | None, owner: type) -> Any:
        """The value, as its kind; None where the answer has none or it cannot be read.

        Raises `AttributeError` for a field that a record of this shape does not show.
        """
        if record is None:
            return self.field
        name = self.field.name
        if self.field.write_only:
            raise AttributeError(f"{name!r} is taken by requests and never shown by the API")
        if record.is_item and not self.field.listed:
            raise AttributeError(f"{name!r} is not in a list item; get the record by id to see it")
        return self.field.read(record.raw.get(name))[0]


@dataclass(frozen=True, slots=True)
class FieldArguments:
    """Arguments of `field()`, until the class and its annotations are known."""

    about: str
    create: FieldInput
    update: FieldInput
    listed: bool
    write_only: bool
    sortable: bool
    filterable: bool
    item: tuple[str, ...] | None
    format: Format | None
    personal: Personal | None
    prose: bool
    lines: Lines | None


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
) -> Any:
    """Declare a field that people may write; `about` is the column's comment.

    `create` and `update` say what request bodies accept (default: optional, any value of the type;
    API 2). `listed`: list items show it, and not only details. `write_only`: only requests have it.
    `sortable` and `filterable`: lists take it as `sort`, or as a query parameter. `item`: the
    values documented for list items, if they are fewer. `format`: a form beyond the type.
    `personal`: what kind of personal data it is. `prose`: sentences that may name people, in a
    field that is not personal itself. `lines`: a text has one line or may have many (default: prose
    may have many, any other text has one).
    """
    return FieldArguments(
        about,
        create,
        update,
        listed,
        write_only,
        sortable,
        filterable,
        item,
        format,
        personal,
        prose,
        lines,
    )


def shown(
    about: str,
    *,
    listed: bool = False,
    sortable: bool = False,
    personal: Personal | None = None,
    prose: bool = False,
) -> Any:
    """Declare a field that only answers have (API 2, marked "detail")."""
    return field(
        about,
        create=REFUSED,
        update=REFUSED,
        listed=listed,
        sortable=sortable,
        personal=personal,
        prose=prose,
    )


def make_field(name: str, draft: FieldArguments, annotation: Any) -> Field:
    """Make the field from the arguments of `field()` and from its annotation."""
    nullable = False
    if get_origin(annotation) in (Union, types.UnionType):
        arms = [a for a in get_args(annotation) if a is not types.NoneType]
        nullable, annotation = len(arms) < len(get_args(annotation)), arms[0]
    choices: tuple[str, ...] = ()
    part = None
    origin = get_origin(annotation)
    if origin is Literal:
        kind, choices = Kind.STRING, get_args(annotation)
    elif origin is tuple:
        kind, part = Kind.PARTS, get_args(annotation)[0]
    elif origin is not None and issubclass(origin, Mapping):
        kind = Kind.VALUES
    else:
        kind = values.KINDS[annotation]
    return Field(
        name=name,
        kind=kind,
        about=draft.about,
        nullable=nullable,
        values=choices,
        item_values=draft.item if draft.item is not None else choices,
        create=draft.create,
        update=draft.update,
        listed=draft.listed,
        write_only=draft.write_only,
        sortable=draft.sortable,
        filterable=draft.filterable,
        format=draft.format,
        personal=draft.personal,
        prose=draft.prose,
        lines=draft.lines,
        part=part,
    )
