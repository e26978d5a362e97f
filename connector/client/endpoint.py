"""Resource as the client offers it: list, get, create, update, delete, convert.

The declaration says what a record of the resource looks like and which operations it has. This
module knows no HTTP library; it uses a `Sender`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from connector.catalog.page import PER_PAGE_MAX, I_co, Order, Page
from connector.catalog.resource import Resource
from connector.client.answer import Answer, served_at
from connector.client.envelope import read_deleted, read_list, read_record, read_written
from connector.client.request import (
    Request,
    convert_request,
    create_request,
    delete_request,
    get_request,
    list_request,
    update_request,
)

# Of a resource: its Record, list Item, Sorts, Filters, and the bodies of Create and Update.
R = TypeVar("R", bound=Resource)
R_co = TypeVar("R_co", bound=Resource, covariant=True)
S_contra = TypeVar("S_contra", contravariant=True)
F_contra = TypeVar("F_contra", contravariant=True)
C_contra = TypeVar("C_contra", contravariant=True)
U_contra = TypeVar("U_contra", contravariant=True)


class Sender(Protocol):
    """Sender of requests, which returns the answers of those that succeeded."""

    async def send(self, request: Request) -> Answer:
        """Send one request; every failure is raised."""


@dataclass(frozen=True, slots=True)
class Written(Generic[R_co]):
    """Answer to a create, update or convert: the record echoed, and the message.

    An echo can show fewer fields than a detail (API 4.7); convert adds fields of its own (API 4.6).
    """

    record: R_co
    message: str | None


class Readable(Protocol[R_co, I_co, S_contra, F_contra]):
    """Resource that can be listed and read, for type checkers; see `Endpoint`."""

    async def list(
        self,
        *,
        page: int = 1,
        per_page: int = PER_PAGE_MAX,
        sort: S_contra | None = None,
        order: Order | None = None,
        search: str | None = None,
        filters: F_contra | None = None,
    ) -> Page[I_co]:
        """One page, 1 being the first, of at most 100 items."""

    def pages(
        self,
        *,
        sort: S_contra | None = None,
        order: Order | None = None,
        search: str | None = None,
        filters: F_contra | None = None,
    ) -> AsyncIterator[Page[I_co]]:
        """Every page, from the first to the last."""

    def iterate(
        self,
        *,
        sort: S_contra | None = None,
        order: Order | None = None,
        search: str | None = None,
        filters: F_contra | None = None,
    ) -> AsyncIterator[I_co]:
        """Every list item, page after page."""

    async def get(self, id: str) -> R_co:
        """The record with all its fields."""


class Creatable(
    Readable[R_co, I_co, S_contra, F_contra], Protocol[R_co, I_co, S_contra, F_contra, C_contra]
):
    """A resource that can be created as well."""

    async def create(self, fields: C_contra) -> Written[R_co]:
        """Create a record."""


class Changeable(
    Creatable[R_co, I_co, S_contra, F_contra, C_contra],
    Protocol[R_co, I_co, S_contra, F_contra, C_contra, U_contra],
):
    """A resource that can be updated and deleted as well."""

    async def update(self, id: str, fields: U_contra) -> Written[R_co]:
        """Change the fields that are given, and no others."""

    async def delete(self, id: str) -> str | None:
        """Delete the record; the API's message, if it gave one."""


class Convertible(
    Changeable[R_co, I_co, S_contra, F_contra, C_contra, U_contra],
    Protocol[R_co, I_co, S_contra, F_contra, C_contra, U_contra],
):
    """A resource whose records can be converted as well: a lead."""

    async def convert(self, id: str) -> Written[R_co]:
        """Convert a lead into an active customer (API 4.6). It cannot be undone."""


class Endpoint(Generic[R]):
    """The operations of one resource; those that it does not have raise `UnknownName`.

    By declaration: sorts, filters and bodies are checked when they are used. The client offers
    the same under types that know the resource: `Readable`, `Changeable`, `Convertible`.
    All of them raise the errors of `connector.errors`: what the API refused, what could not be
    reached, and `InDoubt` for a write whose fate is unknown.
    """

    def __init__(self, sender: Sender, record: type[R], parent: str | None = None) -> None:
        self._sender, self._record, self._parent = sender, record, parent
        self._resource = record.declaration

    async def list(
        self,
        *,
        page: int = 1,
        per_page: int = PER_PAGE_MAX,
        sort: str | None = None,
        order: Order | None = None,
        search: str | None = None,
        filters: Mapping[str, Any] | None = None,
    ) -> Page[R]:
        """One page from 1, of at most 100 items; by default newest created first."""
        request = list_request(
            self._resource,
            self._parent,
            page=page,
            per_page=per_page,
            sort=sort,
            order=order,
            search=search,
            filters=filters,
        )
        answer = await self._sender.send(request)
        listed = read_list(request, answer)
        moment = served_at(answer)
        return Page(
            items=tuple(
                self._record(item, is_item=True, served_at=moment) for item in listed.items
            ),
            page=listed.page,
            per_page=listed.per_page,
            total=listed.total,
            total_pages=listed.total_pages,
            served_at=moment,
            round_trip_seconds=answer.seconds,
        )

    async def pages(
        self,
        *,
        sort: str | None = None,
        order: Order | None = None,
        search: str | None = None,
        filters: Mapping[str, Any] | None = None,
    ) -> AsyncIterator[Page[R]]:
        """Every page, from the first to the last.

        Pages shift when records come, go or change while they are read, so an item can be shown
        twice or not at all. `connector pull` is for those who need to be sure.
        """
        number, is_last = 1, False
        while not is_last:
            page = await self.list(
                page=number, sort=sort, order=order, search=search, filters=filters
            )
            yield page
            # A short page need not be the last: the list says how many there are.
            is_last = not page.items or (page.is_last and number >= page.total_pages)
            number += 1

    async def iterate(
        self,
        *,
        sort: str | None = None,
        order: Order | None = None,
        search: str | None = None,
        filters: Mapping[str, Any] | None = None,
    ) -> AsyncIterator[R]:
        """Every list item, page after page, with what `pages` says of them."""
        async for page in self.pages(sort=sort, order=order, search=search, filters=filters):
            for item in page.items:
                yield item

    async def get(self, id: str) -> R:
        """The record with all its fields. Raises `NotFound`."""
        request = get_request(self._resource, id, self._parent)
        answer = await self._sender.send(request)
        return self._record(read_record(request, answer), served_at=served_at(answer))

    async def create(self, fields: Mapping[str, Any]) -> Written[R]:
        """Create a record. Raises `ValidationFailed` with messages by field."""
        return await self._write(create_request(self._resource, fields, self._parent))

    async def update(self, id: str, fields: Mapping[str, Any]) -> Written[R]:
        """Change the fields that are given, and no others. Raises `ValidationFailed`."""
        return await self._write(update_request(self._resource, id, fields, self._parent))

    async def delete(self, id: str) -> str | None:
        """Delete the record; the API's message, if it gave one (API 4.8)."""
        request = delete_request(self._resource, id, self._parent)
        return read_deleted(request, await self._sender.send(request))

    async def convert(self, id: str) -> Written[R]:
        """Convert a lead into an active customer (API 4.6). It cannot be undone."""
        return await self._write(convert_request(self._resource, id))

    async def _write(self, request: Request) -> Written[R]:
        answer = await self._sender.send(request)
        raw, message = read_written(request, answer)
        return Written(self._record(raw, served_at=served_at(answer)), message)
