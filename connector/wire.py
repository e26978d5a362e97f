"""The API on the wire: requests out, answers in. Pure: it knows no HTTP library, socket or clock.

Requests are built from declarations, so an address, a scope or a sort is never written twice.
Answers are read strictly: what is not the API's own shape is refused by name, and what the API
adds is kept.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Literal
from urllib.parse import quote, urlsplit

from connector.address import API_PATH
from connector.body import as_body, parse
from connector.engine.pace import RateHeaders
from connector.errors import (
    Answered,
    ConnectorError,
    Denied,
    Forbidden,
    InDoubt,
    InvalidRequest,
    Misused,
    NotFound,
    NotTheApi,
    RateLimited,
    Redirected,
    Refused,
    ServerFailed,
    Unauthorized,
    UnexpectedStatus,
    UnknownName,
    UnreadableAnswer,
    ValidationFailed,
)
from connector.resource import Declaration, Operation

PER_PAGE_MAX = 100
"""The most list items that one request may ask for (API 8.1)."""

Order = Literal["asc", "desc"]

_METHODS: Mapping[Operation, str] = {
    "list": "GET",
    "get": "GET",
    "create": "POST",
    "update": "PUT",
    "delete": "DELETE",
    "convert": "POST",
}
_SEGMENT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._~-]{0,199}")
_MESSAGE_CHARACTERS_MAX = 500


@dataclass(frozen=True, slots=True)
class Request:
    """One request, ready to be sent; `resource` and `operation` say what it is for."""

    resource: str
    operation: Operation
    method: str
    path: str
    scope: str
    query: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None

    @property
    def where(self) -> str:
        """The request as errors name it: without its query, which can hold personal data."""
        return f"{self.method} {self.path}"

    @property
    def is_read(self) -> bool:
        """Whether it changes nothing, so that it may be repeated."""
        return self.method == "GET"


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back: the status, the headers under names in lower case, and the whole body."""

    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class ListAnswer:
    """A list's items as received, and its pagination (API 4.1)."""

    items: tuple[dict[str, Any], ...]
    page: int
    per_page: int
    total: int
    total_pages: int


# -- requests --------------------------------------------------------------------------------


def list_request(
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
    """Ask for one page of a list (API 4.1). `page` counts from 1; `per_page` is at most 100.

    Raises `UnknownName` for a sort or a filter that the list does not take, and `Misused` for a
    number out of bounds.
    """
    if page < 1:
        raise Misused(f"page is {page}", action="Use a page from 1.")
    if not 1 <= per_page <= PER_PAGE_MAX:
        raise Misused(f"per_page is {per_page}", action=f"Use 1 to {PER_PAGE_MAX}.")
    query = {"page": str(page), "per_page": str(per_page)}
    if sort is not None:
        if sort not in resource.sortable:
            raise UnknownName(f"sort of {resource.name}", sort, resource.sortable)
        query["sort"] = sort
        query["order"] = order or "desc"
    if search is not None:
        if not resource.searchable:
            raise UnknownName(f"parameter of {resource.name}", "search", ("page", "per_page"))
        query["search"] = search
    allowed = tuple(each.name for each in resource.filters)
    for name, value in (filters or {}).items():
        if name not in allowed:
            raise UnknownName(f"filter of {resource.name}", name, allowed)
        query[name] = value.isoformat() if isinstance(value, date) else str(value)
    return _request(resource, "list", parent, query=query)


def get_request(resource: Declaration, id: str, parent: str | None = None) -> Request:
    """A record's detail."""
    return _request(resource, "get", parent, id=id)


def create_request(
    resource: Declaration, fields: Mapping[str, Any], parent: str | None = None
) -> Request:
    """A create; `fields` are sent as they are, dates and datetimes as ISO 8601."""
    return _request(resource, "create", parent, body=as_body(fields))


def update_request(
    resource: Declaration, id: str, fields: Mapping[str, Any], parent: str | None = None
) -> Request:
    """An update of the fields that are given, and no others."""
    return _request(resource, "update", parent, id=id, body=as_body(fields))


def delete_request(resource: Declaration, id: str, parent: str | None = None) -> Request:
    """A delete."""
    return _request(resource, "delete", parent, id=id)


def convert_request(resource: Declaration, id: str) -> Request:
    """The conversion of a lead (API 4.6); it has no body."""
    return _request(resource, "convert", None, id=id)


def _request(
    resource: Declaration,
    operation: Operation,
    parent: str | None,
    *,
    id: str | None = None,
    query: Mapping[str, str] | None = None,
    body: bytes | None = None,
) -> Request:
    if operation not in resource.operations:
        raise UnknownName(f"operation of {resource.name}", operation, sorted(resource.operations))
    path = resource.path
    if resource.parent is not None:
        path = path.replace("{type}", _segment(parent, f"slug or id of {resource.parent}"))
    if id is not None:
        path += "/" + _segment(id, f"id of {resource.name}")
    if operation == "convert":
        path += "/convert"
    method = _METHODS[operation]
    scope = resource.read_scope() if method == "GET" else resource.write_scope()
    return Request(resource.name, operation, method, API_PATH + path, scope, query or {}, body)


def _segment(value: str | None, what: str) -> str:
    """One segment of a path. Refused is what could lead to another address than the one meant."""
    if value is None or not _SEGMENT.fullmatch(value) or ".." in value:
        shown = repr(value[:40]) if value else "nothing"
        raise Misused(
            f"{shown} cannot be the {what}",
            action="Use letters, digits, hyphens, dots and underscores.",
        )
    return quote(value, safe="")


# -- answers ---------------------------------------------------------------------------------


def rate_headers(answer: Answer) -> RateHeaders:
    """What the answer says of the limit (API 8.3); a part that is missing or garbage is None."""
    return RateHeaders(
        limit=_whole(answer.headers.get("x-ratelimit-limit")),
        remaining=_whole(answer.headers.get("x-ratelimit-remaining")),
        reset=_number(answer.headers.get("x-ratelimit-reset")),
    )


def served_at(answer: Answer) -> datetime | None:
    """The server's own clock, from `Date`; None where it is missing or unreadable."""
    try:
        moment = parsedate_to_datetime(answer.headers.get("date", ""))
    except (ValueError, TypeError):
        return None
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def read_list(request: Request, answer: Answer) -> ListAnswer:
    """The items and the pagination of a list's answer. Raises the error that the answer stands
    for.
    """
    document = _document(request, answer, expected=(200,))
    items, pagination = document.get("data"), document.get("pagination")
    if not isinstance(items, list) or not all(_has_id(item) for item in items):
        raise UnreadableAnswer(f"{request.where} was answered without a list of records in 'data'")
    if not isinstance(pagination, dict):
        raise UnreadableAnswer(f"{request.where} was answered without 'pagination'")
    numbers = {}
    for name in ("page", "per_page", "total", "total_pages"):
        value = _whole(pagination.get(name))
        if value is None:
            raise UnreadableAnswer(f"{request.where}: pagination has no readable {name!r}")
        numbers[name] = value
    asked = int(request.query["page"])
    if numbers["page"] != asked or numbers["per_page"] < 1:
        raise UnreadableAnswer(
            f"{request.where}: asked for page {asked}, answered page {numbers['page']} "
            f"with {numbers['per_page']} per page"
        )
    return ListAnswer(tuple(items), **numbers)


def read_record(request: Request, answer: Answer) -> dict[str, Any]:
    """The record in `data` of a detail's answer. Raises the error that the answer stands for."""
    record = _document(request, answer, expected=(200,)).get("data")
    if not isinstance(record, dict) or not _has_id(record):
        raise UnreadableAnswer(f"{request.where} was answered without a record in 'data'")
    return record


def read_written(request: Request, answer: Answer) -> tuple[dict[str, Any], str | None]:
    """The record and the message of a create's, update's or convert's answer.

    A success that cannot be read did happen all the same: it raises `InDoubt`.
    """
    try:
        document = _document(request, answer, expected=(200, 201))
        record = document.get("data")
        if not isinstance(record, dict) or not _has_id(record):
            raise UnreadableAnswer("the answer has no record in 'data'")
    except NotTheApi as error:
        raise InDoubt(request.where, str(error)) from error
    return record, _message(document)


def read_deleted(request: Request, answer: Answer) -> str | None:
    """The message of a delete's answer, if it has one: 204 or a body with a message (API 4.8)."""
    if answer.status == 204:
        return None
    try:
        return _message(_document(request, answer, expected=(200,)))
    except NotTheApi as error:
        raise InDoubt(request.where, str(error)) from error


def error_of(request: Request, answer: Answer) -> ConnectorError:
    """The error that an answer other than a success stands for (API 7).

    For a write, whatever is not the API's own refusal leaves its fate unknown: `InDoubt`.
    """
    error = _error_of(request, answer)
    is_refusal = isinstance(error, RateLimited | Refused | Denied) and not isinstance(
        error, UnexpectedStatus
    )
    return error if request.is_read or is_refusal else InDoubt(request.where, str(error))


def _error_of(request: Request, answer: Answer) -> ConnectorError:
    where, status = request.where, answer.status
    if 300 <= status < 400:
        location = urlsplit(answer.headers.get("location", ""))
        target = f"{location.scheme}://{location.netloc.rpartition('@')[2]}{location.path}"
        return Redirected(where, status=status, target=target)
    if status == 429:
        return RateLimited(where, reset_in_seconds=None)
    body = _error_body(answer)
    said = {"api_code": _text(body.get("error")), "api_message": _text(body.get("message"))}
    errors: Mapping[int, Callable[[], Answered]] = {
        400: lambda: InvalidRequest(where, status=status, **said),
        401: lambda: Unauthorized(where, status=status, **said),
        403: lambda: Forbidden(where, status=status, scope=request.scope, **said),
        404: lambda: NotFound(where, status=status, is_api_error=bool(body), **said),
        422: lambda: ValidationFailed(where, status=status, errors=_by_field(body), **said),
    }
    if status in errors:
        return errors[status]()
    kind = ServerFailed if status >= 500 else UnexpectedStatus
    return kind(where, status=status, **said)


def _document(request: Request, answer: Answer, expected: tuple[int, ...]) -> dict[str, Any]:
    if answer.status not in expected:
        if 200 <= answer.status < 300:
            raise UnreadableAnswer(
                f"{request.where} was answered {answer.status}, a success "
                "that the API does not document"
            )
        raise error_of(request, answer)
    try:
        document = parse(answer.body)
    except ValueError as error:
        raise UnreadableAnswer(f"{request.where} was answered with {error}") from None
    if not isinstance(document, dict):
        raise UnreadableAnswer(f"{request.where} was answered with JSON that is not an object")
    return document


def _error_body(answer: Answer) -> dict[str, Any]:
    """The API's own error body (API 7), or an empty one where the answer has none."""
    try:
        body = parse(answer.body)
    except ValueError:
        return {}
    if not isinstance(body, dict):
        return {}
    is_error = isinstance(body.get("error"), str) or isinstance(body.get("message"), str)
    return body if is_error else {}


def _by_field(body: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """Messages by field: arrays, single strings and anything else the API may send, as text."""
    errors = body.get("errors")
    if not isinstance(errors, dict):
        return {}
    return {
        str(name): tuple(_words(each) for each in (said if isinstance(said, list) else [said]))
        for name, said in errors.items()
    }


def _words(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text[:_MESSAGE_CHARACTERS_MAX]


def _text(value: Any) -> str | None:
    return value[:_MESSAGE_CHARACTERS_MAX] if isinstance(value, str) else None


def _message(document: Mapping[str, Any]) -> str | None:
    return _text(document.get("message"))


def _has_id(record: Any) -> bool:
    return isinstance(record, dict) and isinstance(record.get("id"), str) and bool(record["id"])


def _number(value: Any) -> float | None:
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) else None


def _whole(value: Any) -> int | None:
    number = None if isinstance(value, bool) else _number(value)
    return int(number) if number is not None and number >= 0 and number == int(number) else None
