"""Declaration of a resource: its address, operations, fields, rules and lists.

A declaration is the only place that defines a field, a type, an allowed value, a rule, a sort order
or the shape of a list. The client's types, the landing tables, the checks of a spreadsheet and the
sandbox derive from it.

    class Company(
        Resource,
        name="companies",
        section="2.3",
        singular="company",
        path="/companies",
        scope="companies",
    ):
        \"\"\"A client company.\"\"\"

        name: str = field("The company's name.", create=REQUIRED, listed=True, sortable=True)
        company_size: CompanySize | None = field("Number of employees, as a band.")

The annotation defines the type and, for a `Literal`, the values in responses. `create=`, `update=`
and `item=` restrict these values. The class is also the type of the records that the client
returns: an attribute is read from the response when it is used, and `raw` is the complete response.
"""

from __future__ import annotations

import types
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, ClassVar, Generic, Literal, TypeVar, get_type_hints

from connector.catalog.aliases import SHARED_ALIASES
from connector.catalog.field import (
    DataSubject,
    Field,
    FieldDescriptor,
    FieldInput,
    Filter,
    Rule,
    Uuid,
    complete_field,
    read_only,
)
from connector.errors import UnknownName

# -- Page -----------------------------------------------------------------------------------------
# Page of a list: its items and its position in the list (API 4.1).
#
# All rows of a page belong to one point in time; `total` may belong to another. On a page that is
# not full, the rows show where the list ends, so `total` is not needed.


PER_PAGE_MAX = 100
"""Maximum number of list items that one request can return (API 8.1)."""

LATENESS_SECONDS = 120.0
"""Delay with which a list may show a change, until a stream shows a longer one."""

LATENESS_SECONDS_MAX = 3600.0
"""Longest lateness that is learned; a verification pass finds later changes."""

LATENESS_UNTIMED_SECONDS = 3600.0
"""Lateness used while the server clock is unknown, because responses have no `Date`."""

Order = Literal["asc", "desc"]

I_co = TypeVar("I_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Page(Generic[I_co]):
    """One page of a list (API 4.1).

    Attributes:
        items: List items. A field that lists do not show raises `AttributeError`.
        per_page: Page size that the server applied.
        served_at: Server clock; None if the response has no `Date`.
        received_at: Local clock when the response arrived; None if it was not recorded.
    """

    items: tuple[I_co, ...] = field(repr=False)
    page: int
    per_page: int
    total: int
    total_pages: int
    served_at: datetime | None
    round_trip_seconds: float
    received_at: datetime | None = None

    @property
    def timestamp(self) -> datetime:
        """Server clock of the response, or the local clock if the response has no `Date`."""
        moment = self.served_at or self.received_at
        assert moment is not None, "the page has no time"
        return moment

    @property
    def server_ahead_seconds(self) -> float | None:
        """Seconds by which the server clock is ahead of the local clock; None if one is unknown."""
        if self.received_at is None or self.served_at is None:
            return None
        return (self.served_at - self.received_at).total_seconds()

    @property
    def is_full(self) -> bool:
        """Return True if the page has `per_page` items."""
        return len(self.items) >= self.per_page

    @property
    def is_end(self) -> bool:
        """Return True if the items show that the list ends here, whatever its total is."""
        ends_by_total = self.page * self.per_page >= self.total
        return not self.items or (not self.is_full and ends_by_total)

    @property
    def is_short(self) -> bool:
        """Return True if items are missing on the page, because more follow by the total."""
        return not self.is_full and not self.is_end

    @property
    def is_last(self) -> bool:
        """Return True if no page follows, by the number of items and the total of this response."""
        return self.is_end or (self.is_full and self.page * self.per_page >= self.total)

    def record_count(self) -> int:
        """Return the number of records in the list: the rows up to its end, or else its total."""
        return (self.page - 1) * self.per_page + len(self.items) if self.is_end else self.total

    @property
    def total_error(self) -> int | None:
        """Number of records in the list minus the reported `total`; None if the page does not show
        it.

        Only the end of a list shows it. An empty page does not show how many rows precede it.
        """
        if not self.is_end or (not self.items and self.page > 1):
            return None
        return self.record_count() - self.total


# -- Resource -------------------------------------------------------------------------------------


Operation = Literal["list", "get", "create", "update", "delete", "convert"]


class Record:
    """Record of a response.

    Attributes:
        raw: Complete response, including undeclared fields.
        is_item: True for a list item. Fields that lists do not show raise `AttributeError`.
        served_at: Server clock of the response; None if it has no `Date`. List items of a pull have
            the local clock instead.
    """

    fields_declared: ClassVar[Mapping[str, Field]] = {}

    __slots__ = ("is_item", "raw", "served_at")

    def __init__(
        self, raw: Mapping[str, Any], *, is_item: bool = False, served_at: datetime | None = None
    ) -> None:
        self.raw = raw
        self.is_item = is_item
        self.served_at = served_at

    def __init_subclass__(cls) -> None:
        hints = get_type_hints(cls)
        fields = dict(cls.fields_declared)
        drafts = {n: d for n, d in vars(cls).items() if isinstance(d, Field)}
        for name, draft in drafts.items():
            fields[name] = complete_field(draft, name, hints[name])
            setattr(cls, name, FieldDescriptor(fields[name]))
        cls.fields_declared = types.MappingProxyType(fields)

    def __repr__(self) -> str:
        # Only the id: a repr ends up in logs, and every other field may be personal.
        shape = " list item" if self.is_item else ""
        return f"<{type(self).__name__}{shape} {self.raw.get('id')}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Record) and type(self) is type(other) and self.raw == other.raw

    def __hash__(self) -> int:
        return hash((type(self), self.raw.get("id")))

    @property
    def undeclared_fields(self) -> dict[str, Any]:
        """Return the fields of the response that are not declared."""
        return {k: v for k, v in self.raw.items() if k not in self.fields_declared}


@dataclass(frozen=True, slots=True)
class Declaration:
    """Declaration of a resource: addresses, scope, operations, fields, rules and lists.

    Attributes:
        name: Name of the resource everywhere (command, table, asset).
        section: Section of `docs/API_NOTES.md`.
        path: Path after `/api/v1`. May contain `{type}`, the slug or id of a record of `parent`.
        echoes: Fields in the response to an operation, if fewer than in a detail (API 4.7).
        converted_status: Status that only a converted record has (API 3.5).
        natural_keys: Sets of fields. The first set whose fields all have a value identifies a
            record. This is the connector's choice: the API guarantees no uniqueness (API 2, end).
        found_by: Fields by which a spreadsheet may refer to a record instead of its id, the best
            known first, each with the headings of such a column.
        aliases: Further headings for the resource's fields.
        subjects: People whom the personal fields describe.
        view: Model of `dbt_like_sql` over the landing table.
        sandbox_count: Default number of records in the sandbox.
    """

    name: str
    section: str
    singular: str
    about: str
    path: str
    scope: str
    operations: frozenset[Operation]
    fields: Mapping[str, Field]
    rules: tuple[Rule, ...]
    filters: tuple[Filter, ...]
    searchable: bool
    parent: str | None
    echoes: Mapping[Operation, tuple[str, ...]]
    converted_status: str | None
    record: type[Resource]
    sortable: tuple[str, ...]
    natural_keys: tuple[tuple[str, ...], ...]
    found_by: Mapping[str, tuple[str, ...]]
    aliases: Mapping[str, tuple[str, ...]]
    subjects: tuple[DataSubject, ...]
    view: str
    sandbox_count: int

    @property
    def item_fields(self) -> tuple[Field, ...]:
        """Fields of a list item."""
        return tuple(f for f in self.fields.values() if f.listed)

    @property
    def detail_fields(self) -> tuple[Field, ...]:
        """Fields of a detail."""
        return tuple(f for f in self.fields.values() if not f.write_only)

    @property
    def lists_updated_at(self) -> bool:
        """Return True if list items show `updated_at`, so that a comparison needs no detail."""
        return self.fields["updated_at"].listed

    def read_scope(self) -> str:
        """Return the scope that read requests need (API 5.4)."""
        return f"{self.scope}.read"

    def write_scope(self) -> str:
        """Return the scope that create, update and delete requests need (API 5.4)."""
        return f"{self.scope}.write"

    def field(self, name: str) -> Field:
        """Return the field of that name. Raises `UnknownName` with the allowed names."""
        if name not in self.fields:
            raise UnknownName(f"field of {self.name}", name, self.fields)
        return self.fields[name]

    def body_fields(
        self, operation: Literal["create", "update"]
    ) -> Iterator[tuple[Field, FieldInput]]:
        """Return the fields that a request body of the operation accepts, each with its input."""
        for each in self.fields.values() if operation in self.operations else ():
            field_input = each.create if operation == "create" else each.update
            if field_input.accepted:
                yield each, field_input


class Resource(Record):
    """Base class of all resources, with the three fields that every record has (API 2)."""

    __slots__ = ()
    declaration: ClassVar[Declaration]

    id: Uuid = read_only("Id of the record.", listed=True)
    created_at: datetime = read_only("When the record was created.", listed=True, sortable=True)
    updated_at: datetime = read_only("When the record was last changed.", sortable=True)

    def __init_subclass__(
        cls,
        *,
        name: str,
        section: str,
        singular: str,
        path: str,
        scope: str,
        operations: tuple[Operation, ...] = ("list", "get", "create", "update", "delete"),
        rules: tuple[Rule, ...] = (),
        filters: tuple[Filter, ...] = (),
        sorted_lists: bool = True,
        searchable: bool = True,
        parent: str | None = None,
        echoes: Mapping[Operation, tuple[str, ...]] = types.MappingProxyType({}),
        converted_status: str | None = None,
        natural_keys: tuple[tuple[str, ...], ...] = (),
        found_by: Mapping[str, tuple[str, ...]] = types.MappingProxyType({}),
        aliases: Mapping[str, tuple[str, ...]] = types.MappingProxyType({}),
        subjects: tuple[DataSubject, ...] = (),
        view: str = "",
        sandbox_count: int = 0,
    ) -> None:
        super().__init_subclass__()
        fields = cls.fields_declared
        _check_field_names(
            name, fields, *natural_keys, found_by, aliases, *(o.fields for o in subjects)
        )
        cls.declaration = Declaration(
            name=name,
            section=section,
            singular=singular,
            about=(cls.__doc__ or "").strip().split("\n")[0],
            path=path,
            scope=scope,
            operations=frozenset(operations),
            fields=fields,
            rules=rules,
            filters=(
                *(Filter(f.name, f.kind, f.values) for f in fields.values() if f.filterable),
                *filters,
            ),
            searchable=searchable,
            parent=parent,
            echoes=echoes,
            converted_status=converted_status,
            record=cls,
            sortable=tuple(f.name for f in fields.values() if f.sortable and sorted_lists),
            natural_keys=natural_keys,
            found_by=found_by,
            aliases={n: SHARED_ALIASES.get(n, ()) + aliases.get(n, ()) for n in fields},
            subjects=tuple(_with_default_fields(each, fields) for each in subjects),
            view=view or f"stg_{name}",
            sandbox_count=sandbox_count,
        )


def _check_field_names(resource: str, fields: Mapping[str, Field], *groups: Iterable[str]) -> None:
    """Raise `UnknownName` if one of the groups contains a name that is no field of the resource."""
    for name in {name for group in groups for name in group} - fields.keys():
        raise UnknownName(f"field of {resource}", name, fields)


def _with_default_fields(subject: DataSubject, fields: Mapping[str, Field]) -> DataSubject:
    """Return the subject with its fields. The default is all personal fields."""
    personal = tuple(f.name for f in fields.values() if f.personal is not None)
    return replace(subject, fields=subject.fields or personal)
