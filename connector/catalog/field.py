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
"""A form that a string has beyond its type; whether the API enforces it is not shown (API 2)."""

Personal = Literal["identity", "contact", "pay", "text"]
"""What a field tells of a person: who it is, their post and employer included; where to reach them,
or their things; what they earn or ask for; whatever somebody wrote. Ids are none of it: they mean
nothing outside the platform. Nor are the agency's own labels, such as a source or a state.
"""


@dataclass(frozen=True, slots=True)
class DataSubject:
    """Data subject: fields that tell of one person, and what they are known by.

    `about` is a sentence's end for people: whom they tell of. Without `fields`, these are all
    personal fields of the resource. The person is known by an id in one of `ids` or by an address
    in one of `emails`. `phones` have numbers of theirs, and each of `names` is a set of fields that
    make a name: other people may have both as well. `is_whole` says that the record is that person,
    so that what nobody has declared in it is the person's as well.
    """

    about: str
    fields: tuple[str, ...] = ()
    ids: tuple[str, ...] = ()
    emails: tuple[str, ...] = ()
    phones: tuple[str, ...] = ()
    names: tuple[tuple[str, ...], ...] = ()
    is_whole: bool = False


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
class Input:
    """Request body's use of a field: taken, required, and with which values."""

    accepted: bool = True
    required: bool = False
    values: tuple[str, ...] | None = None


OPTIONAL = Input()
REQUIRED = Input(required=True)
REFUSED = Input(accepted=False)


def only(*values: str, required: bool = False) -> Input:
    """A request body takes the field with these values alone."""
    return Input(required=required, values=values)


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

    `values` are those that a detail answer documents, `item_values` those of a list item; both
    are empty for a field that is not a choice. Other values in responses are kept as they come.
    `personal` is None where the field tells nothing of a person.
    """

    name: str
    kind: Kind
    about: str
    nullable: bool
    values: tuple[str, ...]
    item_values: tuple[str, ...]
    create: Input
    update: Input
    listed: bool
    write_only: bool
    sortable: bool
    filterable: bool
    format: Format | None
    personal: Personal | None
    prose: bool
    part: type[Record] | None

    @property
    def is_prose(self) -> bool:
        """Whether somebody writes sentences here, in which other people may be named."""
        return self.prose or self.personal == "text"

    @property
    def is_computed(self) -> bool:
        """Whether the API counts the value for each answer, and keeps none."""
        return self.kind is Kind.INTEGER and not self.create.accepted

    def read(self, value: Any) -> tuple[Any, str | None]:
        """Read one value of a response: the value, and a problem or None. Never raises.

        What cannot be read as the field's kind gives `(None, problem)`; the answer as received
        keeps it. A choice outside the documented values is kept as it came and is a problem by
        name, since what the API may add is "not shown".
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
        """The value as its kind, None where the answer had none or it could not be read.

        Raises `AttributeError` for what the record's shape does not show.
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
class Draft:
    """Arguments of `field()`, until the class and its annotations are known."""

    about: str
    create: Input
    update: Input
    listed: bool
    write_only: bool
    sortable: bool
    filterable: bool
    item: tuple[str, ...] | None
    format: Format | None
    personal: Personal | None
    prose: bool


def field(
    about: str,
    *,
    create: Input = OPTIONAL,
    update: Input = OPTIONAL,
    listed: bool = False,
    write_only: bool = False,
    sortable: bool = False,
    filterable: bool = False,
    item: tuple[str, ...] | None = None,
    format: Format | None = None,
    personal: Personal | None = None,
    prose: bool = False,
) -> Any:
    """Declare a field. `about` is one sentence, which becomes the column's comment.

    `create` and `update` say what request bodies take (default: optional, any value of the type;
    API 2); `listed`, that list items show it; `write_only`, that only requests carry it;
    `sortable` and `filterable`, that lists take it as `sort` or as a query parameter; `item`, the
    values that list items document where those are fewer; `format`, a form that a string has
    beyond its type; `personal`, what it tells of a person; `prose`, that it holds sentences, in
    which people may be named, though it tells of none itself.
    """
    return Draft(
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
    )


def shown(
    about: str,
    *,
    listed: bool = False,
    sortable: bool = False,
    personal: Personal | None = None,
    prose: bool = False,
) -> Any:
    """Declare a field that only responses carry (API 2, marked "detail")."""
    return field(
        about,
        create=REFUSED,
        update=REFUSED,
        listed=listed,
        sortable=sortable,
        personal=personal,
        prose=prose,
    )


def settle(name: str, draft: Draft, annotation: Any) -> Field:
    """Join what `field()` was told with what the annotation says."""
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
        part=part,
    )
