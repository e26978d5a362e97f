"""Requests as values, made from declarations: path, query, body and scope.

A value that would lead to another address, or to more records than requested, is refused here. The
API validates the values of a body.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any, Literal, get_args

from connector.catalog.field import Filter
from connector.catalog.resource import PER_PAGE_MAX, Declaration, Operation, Order
from connector.client.response import encode_body
from connector.errors import Misused, UnknownName, UnusableId
from connector.settings.values import API_PATH

_METHODS: Mapping[Operation, str] = {
    "list": "GET",
    "get": "GET",
    "create": "POST",
    "update": "PUT",
    "delete": "DELETE",
    "convert": "POST",
}
_SEGMENT_CHARACTERS_MAX = 200
_SEGMENT = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]*")


@dataclass(frozen=True, slots=True)
class Request:
    """One request, ready to be sent; `scope` is the scope that the API key needs.

    `record_id` is the id of the requested record, None for a list and a create. The repr contains
    neither the query nor the body, because both can contain personal data.
    """

    resource: str
    operation: Operation
    method: str
    path: str
    scope: str
    query: Mapping[str, str] = field(default_factory=dict, repr=False)
    body: bytes | None = field(default=None, repr=False)
    record_id: str | None = None

    @property
    def method_and_path(self) -> str:
        """Method and path for error messages, without the query, which can be personal."""
        return f"{self.method} {self.path}"

    @property
    def is_read(self) -> bool:
        """True if the request changes nothing, so that it can be repeated."""
        return self.method == "GET"


def build_list_request(
    resource: Declaration,
    parent: str | None = None,
    *,
    page: int = 1,
    per_page: int = PER_PAGE_MAX,
    sort: str | None = None,
    order: Order | None = None,
    search: str | None = None,
    filters: Mapping[str, Any] | None = None,
) -> Request:
    """Return the request for a page of a list (API 4.1); `per_page` is 1 to 100.

    Raises `UnknownName` for a sort, an order or a filter that the list does not have, and `Misused`
    for an invalid value.
    """
    if page < 1:
        raise Misused(f"page is {page}", action="Use a page from 1.")
    if not 1 <= per_page <= PER_PAGE_MAX:
        raise Misused(f"per_page is {per_page}", action=f"Use 1 to {PER_PAGE_MAX}.")
    query = {"page": str(page), "per_page": str(per_page)}
    if sort is not None:
        query |= {
            "sort": _require_allowed(resource, "sort", sort, resource.sortable),
            "order": "desc",
        }
    if order is not None:
        orders = get_args(Order) if resource.sortable else ()
        query["order"] = _require_allowed(resource, "order", order, orders)
    if search is not None:
        if not resource.searchable:
            raise UnknownName(f"parameter of {resource.name}", "search", query)
        query["search"] = search
    known = {each.name: each for each in resource.filters}
    for name, value in (filters or {}).items():
        if name not in known:
            raise UnknownName(f"filter of {resource.name}", name, known or query)
        query[name] = _filter_value(resource, known[name], value)
    return _build_request(resource, "list", parent, query=query)


def build_get_request(resource: Declaration, id: str, parent: str | None = None) -> Request:
    """Return the request for a record's detail."""
    return _build_request(resource, "get", parent, id=id)


def build_create_request(
    resource: Declaration, fields: Mapping[str, Any], parent: str | None = None
) -> Request:
    """Return a create request. Raises `UnknownName` for a field that a create does not accept."""
    _check_field_names(resource, "create", fields)
    return _build_request(resource, "create", parent, body=encode_body(fields))


def build_update_request(
    resource: Declaration, id: str, fields: Mapping[str, Any], parent: str | None = None
) -> Request:
    """Return a request that updates only these fields. Raises as `build_create_request`."""
    _check_field_names(resource, "update", fields)
    return _build_request(resource, "update", parent, id=id, body=encode_body(fields))


def build_delete_request(resource: Declaration, id: str, parent: str | None = None) -> Request:
    """Return the request to delete a record."""
    return _build_request(resource, "delete", parent, id=id)


def build_convert_request(resource: Declaration, id: str) -> Request:
    """Return the request to convert a lead (API 4.6); it has no body."""
    return _build_request(resource, "convert", None, id=id)


def _check_field_names(
    resource: Declaration, operation: Literal["create", "update"], fields: Mapping[str, Any]
) -> None:
    """Raise `UnknownName` for a field that the operation does not accept."""
    taken = {field.name for field, _ in resource.body_fields(operation)}
    for name in fields:
        if taken and name not in taken:
            raise UnknownName(f"field that {operation} of {resource.name} takes", name, taken)


def _build_request(
    resource: Declaration,
    operation: Operation,
    parent: str | None,
    *,
    id: str | None = None,
    query: Mapping[str, str] | None = None,
    body: bytes | None = None,
) -> Request:
    """Return a request of the declared operation. Raises `UnknownName` and `UnusableId`."""
    if operation not in resource.operations:
        raise UnknownName(
            f"possible operation of {resource.name}", operation, sorted(resource.operations)
        )
    path = resource.path
    if resource.parent is not None:
        path = path.replace("{type}", _path_segment(parent, f"slug or id of {resource.parent}"))
    if operation not in ("list", "create"):
        path += "/" + _path_segment(id, f"id of a {resource.singular}")
    if operation == "convert":
        path += "/convert"
    method = _METHODS[operation]
    scope = resource.read_scope() if method == "GET" else resource.write_scope()
    path = API_PATH + path
    return Request(resource.name, operation, method, path, scope, query or {}, body, id)


def check_ids(resource: Declaration, ids: Iterable[str]) -> None:
    """Raise `UnusableId` if an id contains characters that are not allowed in a path."""
    for each in ids:
        _path_segment(each, f"id of a {resource.singular}")


def _path_segment(value: object, what: str) -> str:
    """Return the value if it is safe in a path. Raises `UnusableId`; `what` names the value.

    The error does not contain the value, because the user may have entered an email address.
    """
    if not value:
        fault = "is missing"
    elif not isinstance(value, str):
        fault = f"is of the type {type(value).__name__} and must be text"
    elif len(value) > _SEGMENT_CHARACTERS_MAX:
        fault = f"is longer than {_SEGMENT_CHARACTERS_MAX} characters"
    elif not _SEGMENT.fullmatch(value) or ".." in value:
        odd = next((each for each in value if not re.match(r"[A-Za-z0-9._-]", each)), None)
        fault = "begins with a dot or has two dots in a row" if odd is None else f"contains {odd!r}"
    else:
        return value
    raise UnusableId(f"the {what} {fault}")


def _require_allowed(
    resource: Declaration, parameter: str, value: str, allowed: tuple[str, ...]
) -> str:
    """Return the value if it is allowed. Raises `UnknownName`, also if the list has no such
    parameter.
    """
    if not allowed:
        raise UnknownName(f"parameter of {resource.name}", parameter, ("page", "per_page"))
    if value not in allowed:
        raise UnknownName(f"{parameter} of {resource.name}", value, allowed)
    return value


def _filter_value(resource: Declaration, filter: Filter, value: object) -> str:
    """Return a filter's value as text. Raises `Misused` for an empty value, which would filter
    nothing.
    """
    if isinstance(value, date) and not isinstance(value, datetime):
        value = value.isoformat()
    if not isinstance(value, str) or not value:
        raise Misused(
            f"the filter {filter.name!r} of {resource.name} was given "
            f"{'an empty text' if value == '' else f'a value of the type {type(value).__name__}'}",
            action="Give it a text or a date, or leave the filter out.",
        )
    return _require_allowed(resource, filter.name, value, filter.values) if filter.values else value


class Observer:
    """Observer of requests and waits; this one does nothing.

    It is called from the event loop, so it must not block.
    """

    def before_send(self, request: Request) -> None:
        """Called before each attempt; an error raised here stops it."""

    def on_response(self, request: Request, status: int | None, seconds: float) -> None:
        """Called after each attempt with the status, None if no answer came, and its duration."""

    def on_wait_start(self, seconds: float, why: str) -> None:
        """Called before a request waits; `why` is "retry" or the reason of the rate limiter."""

    def on_wait_end(self, seconds: float, why: str) -> None:
        """Called with the duration when no request waits any more."""
