"""Operations of a resource: list, get, create, update, delete, convert.

`Endpoint` returns plain dictionaries, for scripts and notebooks. `RecordEndpoint` returns declared
records with their page and server time, as a pull and a push need them. The declaration says which
operations a resource has. This module knows no HTTP library; it uses a `Sender`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from connector.catalog.page import PER_PAGE_MAX, Order, Page
from connector.catalog.resource import Resource
from connector.client.request import (
    Request,
    build_convert_request,
    build_create_request,
    build_delete_request,
    build_get_request,
    build_list_request,
    build_update_request,
)
from connector.client.response import Response, served_at
from connector.client.response_parsing import read_deleted, read_list, read_record, read_written

T = TypeVar("T")
R = TypeVar("R", bound=Resource)
R_co = TypeVar("R_co", bound=Resource, covariant=True)


class Sender(Protocol):
    """Sends requests and returns successful answers."""

    async def send(self, request: Request) -> Response:
        """Send one request; every failure is raised."""

    async def read(self, request: Request, reader: Callable[[Request, Response], T]) -> T:
        """Send a read and return what `reader` makes of its answer; repeat an unreadable one."""


@dataclass(frozen=True, slots=True)
class WriteResult(Generic[R_co]):
    """Answer to a create, update or convert: the record echoed, and the message.

    An echo can show fewer fields than a detail (API 4.7); convert adds other fields (API 4.6).
    """

    record: R_co
    message: str | None


class RecordEndpoint(Generic[R]):
    """Operations of one resource on declared records.

    Sorts, filters and bodies are checked against the declaration before a request is sent. A
    failed request raises an error of `connector.errors_api`; a write whose answer was lost raises
    `InDoubt`.

    Args:
        sender: Sends the requests, for example a `Client`.
        record: Class of the resource's records.
        parent: Id or slug of the content type, for content items only.

    Raises:
        UnknownName: The resource does not have the operation, field, sort or filter.
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
        """Return one page, counted from 1, of at most 100 items; newest first by default."""
        request = build_list_request(
            self._resource,
            self._parent,
            page=page,
            per_page=per_page,
            sort=sort,
            order=order,
            search=search,
            filters=filters,
        )
        return await self._sender.read(request, self._page)

    def _page(self, request: Request, answer: Response) -> Page[R]:
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
        """Yield every page, from the first to the last.

        Pages shift while records are created, changed or deleted, so an item can appear twice or
        not at all. Use `connector pull` for a complete copy.
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

    async def get(self, id: str) -> R:
        """Return the record with all its fields. Raises `NotFound`."""
        request = build_get_request(self._resource, id, self._parent)
        return await self._sender.read(request, self._detail)

    def _detail(self, request: Request, answer: Response) -> R:
        return self._record(read_record(request, answer), served_at=served_at(answer))

    async def create(self, fields: Mapping[str, Any]) -> WriteResult[R]:
        """Create a record. Raises `ValidationFailed` with messages by field."""
        return await self._write(build_create_request(self._resource, fields, self._parent))

    async def update(self, id: str, fields: Mapping[str, Any]) -> WriteResult[R]:
        """Change the fields that are given, and no others. Raises `ValidationFailed`."""
        return await self._write(build_update_request(self._resource, id, fields, self._parent))

    async def delete(self, id: str) -> str | None:
        """Delete the record; the API's message, if it gave one (API 4.8)."""
        request = build_delete_request(self._resource, id, self._parent)
        return read_deleted(request, await self._sender.send(request))

    async def convert(self, id: str) -> WriteResult[R]:
        """Convert a lead into an active customer (API 4.6). It cannot be undone."""
        return await self._write(build_convert_request(self._resource, id))

    async def _write(self, request: Request) -> WriteResult[R]:
        answer = await self._sender.send(request)
        raw, message = read_written(request, answer)
        return WriteResult(self._record(raw, served_at=served_at(answer)), message)


class Endpoint:
    """Operations of one resource on plain dictionaries; an attribute of `Client`.

    Every method raises `UnknownName` if the resource does not have the operation, and the errors
    of `connector.errors_api` if the request fails.
    """

    def __init__(self, records: RecordEndpoint[Resource]) -> None:
        self._records = records

    async def list(
        self,
        *,
        sort: str | None = None,
        order: Order | None = None,
        search: str | None = None,
        filters: Mapping[str, Any] | None = None,
    ) -> AsyncIterator[dict[str, Any]]:
        """Yield every list item, page after page; a list item has few of a record's fields.

        Args:
            sort: Field to sort by. The API sorts by `created_at` if it is missing.
            order: "asc" or "desc"; the API's default is "desc".
            search: Text to search for.
            filters: Values of the list's filters by name, for example `{"status": "draft"}`.
        """
        async for page in self._records.pages(
            sort=sort, order=order, search=search, filters=filters
        ):
            for item in page.items:
                yield dict(item.raw)

    async def get(self, id: str) -> dict[str, Any]:
        """Return the record with all its fields."""
        return dict((await self._records.get(id)).raw)

    async def create(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Create a record and return it as the API answered, with its `id`."""
        return dict((await self._records.create(fields)).record.raw)

    async def update(self, id: str, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Change the given fields only, and return the record as the API answered."""
        return dict((await self._records.update(id, fields)).record.raw)

    async def delete(self, id: str) -> None:
        """Delete the record."""
        await self._records.delete(id)

    async def convert(self, id: str) -> dict[str, Any]:
        """Convert a lead into an active customer. A conversion cannot be undone."""
        return dict((await self._records.convert(id)).record.raw)
