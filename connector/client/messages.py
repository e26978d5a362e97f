"""Requests and answers as values: building requests, and reading answers strictly.

A request is built from the declaration of its resource. A value that would lead to another address,
or to more records than requested, is refused here. The API validates the values of a body.

An answer of another structure than the API's raises an error. This module decides if a failed write
may have been applied; the client decides about repeating a request.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from email.utils import parsedate_to_datetime
from functools import lru_cache
from typing import Any, TypedDict, Unpack, get_args
from urllib.parse import urlsplit

from connector.catalog import declaration
from connector.catalog.resource import PER_PAGE_MAX, Declaration, Operation, Order, Page
from connector.client.fit import create_mismatch, misfit_of_id
from connector.client.limiter import RateHeaders
from connector.errors import (
    Answered,
    ConnectorError,
    Forbidden,
    InDoubt,
    Misused,
    NotFound,
    NotTheApi,
    RateLimited,
    Refused,
    ServerFailed,
    Unauthorized,
    UnexpectedStatus,
    UnknownName,
    UnreadableAnswer,
    UnusableId,
    ValidationFailed,
)
from connector.log import escape_control_characters, shorten_name
from connector.settings.values import API_PATH

# -- Request --------------------------------------------------------------------------------------

_METHODS: Mapping[Operation, str] = {
    "list": "GET",
    "get": "GET",
    "create": "POST",
    "update": "PUT",
    "delete": "DELETE",
    "convert": "POST",
}
_SEGMENT_CHARACTERS_MAX = 200
_SEGMENT = re.compile(rf"[A-Za-z0-9_-][A-Za-z0-9._-]{{0,{_SEGMENT_CHARACTERS_MAX - 1}}}")


@dataclass(frozen=True, slots=True)
class Request:
    """One request, ready to be sent.

    The repr contains neither the query nor the body, because both can contain personal data.

    Attributes:
        scope: Scope that the API key needs.
        record_id: Id of the requested record; None for a list and a create.
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


class ListOptions(TypedDict, total=False):
    """Options of a list (API 4.1): `page` from 1, `per_page` from 1 to 100, and the order, "desc"
    by default.
    """

    page: int
    per_page: int
    sort: str | None
    order: Order | None
    search: str | None


def build_list_request(
    resource: Declaration, parent: str | None = None, **options: Unpack[ListOptions]
) -> Request:
    """Return the request for a page of a list, the first one by default.

    Raises:
        UnknownName: The list does not have the sort, the order or a search.
        Misused: A value is not valid.
    """
    page, per_page = options.get("page", 1), options.get("per_page", PER_PAGE_MAX)
    sort, order, search = options.get("sort"), options.get("order"), options.get("search")
    if page < 1:
        raise Misused(f"page is {page}", action="Use a page from 1.")
    if not 1 <= per_page <= PER_PAGE_MAX:
        raise Misused(f"per_page is {per_page}", action=f"Use 1 to {PER_PAGE_MAX}.")
    query = {"page": str(page), "per_page": str(per_page)}
    if sort is not None:
        query["sort"] = _require_allowed(resource, "sort", sort, resource.sortable)
        query["order"] = "desc"
    if order is not None:
        orders = get_args(Order) if resource.sortable else ()
        query["order"] = _require_allowed(resource, "order", order, orders)
    if search is not None:
        if not resource.searchable:
            raise UnknownName(f"parameter of {resource.name}", "search", query)
        query["search"] = search
    return _build_request(resource, "list", parent, query=query)


def build_get_request(resource: Declaration, id: str, parent: str | None = None) -> Request:
    """Return the request for a record's detail."""
    return _build_request(resource, "get", parent, id=id)


def build_create_request(
    resource: Declaration, fields: Mapping[str, Any], parent: str | None = None
) -> Request:
    """Return a create request. Raises `UnknownName` for a field that a create does not accept."""
    return _build_request(resource, "create", parent, fields=fields)


def build_update_request(
    resource: Declaration, id: str, fields: Mapping[str, Any], parent: str | None = None
) -> Request:
    """Return a request that updates only these fields. Raises as `build_create_request`."""
    return _build_request(resource, "update", parent, id=id, fields=fields)


def build_delete_request(resource: Declaration, id: str, parent: str | None = None) -> Request:
    """Return the request to delete a record."""
    return _build_request(resource, "delete", parent, id=id)


def build_convert_request(resource: Declaration, id: str) -> Request:
    """Return the request to convert a lead (API 4.6); it has no body."""
    return _build_request(resource, "convert", None, id=id)


def check_ids(resource: Declaration, ids: Iterable[str]) -> None:
    """Raise `UnusableId` if an id contains characters that are not allowed in a path."""
    for each in ids:
        _path_segment(each, f"id of a {resource.singular}")


def _build_request(
    resource: Declaration,
    operation: Operation,
    parent: str | None,
    *,
    id: str | None = None,
    query: Mapping[str, str] | None = None,
    fields: Mapping[str, Any] | None = None,
) -> Request:
    """Return a request of the declared operation. Raises `UnknownName` and `UnusableId`."""
    if operation not in resource.operations:
        what = f"possible operation of {resource.name}"
        raise UnknownName(what, operation, sorted(resource.operations))
    if fields is not None:
        body_fields = resource.body_fields("create" if operation == "create" else "update")
        known = {each.name for each, _ in body_fields}
        for name in fields:
            if known and name not in known:
                raise UnknownName(f"field that {operation} of {resource.name} takes", name, known)
    body = None if fields is None else encode_body(fields)
    path = resource.path
    if resource.parent is not None:
        path = path.replace("{type}", _path_segment(parent, f"slug or id of {resource.parent}"))
    if operation not in ("list", "create"):
        path += "/" + _path_segment(id, f"id of a {resource.singular}")
    if operation == "convert":
        path += "/convert"
    method = _METHODS[operation]
    scope = resource.read_scope() if method == "GET" else resource.write_scope()
    return Request(resource.name, operation, method, API_PATH + path, scope, query or {}, body, id)


def _path_segment(value: object, what: str) -> str:
    """Return the value if it is safe in a path. Raises `UnusableId`; `what` names the value.

    The error does not contain the value, because the user may have entered an email address.
    """
    if isinstance(value, str) and _SEGMENT.fullmatch(value) and ".." not in value:
        return value
    fault = "begins with a dot or has two dots in a row"
    if not value:
        fault = "is missing"
    elif not isinstance(value, str):
        fault = f"is of the type {type(value).__name__} and must be text"
    elif len(value) > _SEGMENT_CHARACTERS_MAX:
        fault = f"is longer than {_SEGMENT_CHARACTERS_MAX} characters"
    elif odd := re.search(r"[^A-Za-z0-9._-]", value):
        fault = f"contains {odd[0]!r}"
    raise UnusableId(f"the {what} {fault}")


def _require_allowed(
    resource: Declaration, parameter: str, value: str, allowed: tuple[str, ...]
) -> str:
    """Return the value if it is allowed. Raises `UnknownName`, also for an unknown parameter."""
    if not allowed:
        raise UnknownName(f"parameter of {resource.name}", parameter, ("page", "per_page"))
    if value not in allowed:
        raise UnknownName(f"{parameter} of {resource.name}", value, allowed)
    return value


def encode_body(fields: Mapping[str, Any]) -> bytes:
    """Return the fields as JSON, with dates and datetimes in the API's format (API, conventions).

    Raises:
        Misused: A value does not exist in JSON, or a datetime has no time zone. The error contains
            the type, but no value.
    """
    try:
        text = json.dumps(dict(fields), default=_date_as_json, ensure_ascii=False, allow_nan=False)
        return text.encode()
    except TypeError as error:
        reason = str(error)
    except UnicodeEncodeError:
        reason = "a text that is not Unicode"
    except (ValueError, RecursionError):
        reason = "a number that is not finite, or values nested in a circle"
    raise Misused(
        f"{reason} cannot be sent as JSON",
        action="Send text, finite numbers, booleans, dates, datetimes with a time zone and null.",
    )


def _date_as_json(value: object) -> str:
    """Return a date or a datetime in the API's format. Raises `TypeError` for other values."""
    if isinstance(value, datetime):
        if value.utcoffset() is None:
            raise TypeError("a datetime without a time zone")
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    if isinstance(value, date):
        return value.isoformat()
    raise TypeError(f"a value of the type {type(value).__name__}")


# -- Answer ---------------------------------------------------------------------------------------

COUNT_MAX = 10**15  # A larger number counts nothing.
DEPTH_MAX = 64  # Of nested values. The API's own answers have five levels.
_NUMBER = re.compile(r"\s*[0-9]{1,18}(\.[0-9]*)?\s*", re.ASCII)


@dataclass(frozen=True, slots=True)
class Response:
    """Answer: status, headers by names in lower case, and the complete body.

    `seconds` is the duration of the attempt. The repr contains only the status, because a body can
    contain personal data.
    """

    status: int
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False)
    seconds: float = field(default=0.0, repr=False)


def rate_headers(answer: Response) -> RateHeaders:
    """Return the rate limit headers (API 8.3); a missing or invalid header is None."""
    return RateHeaders(
        limit=parse_count(answer.headers.get("x-ratelimit-limit")),
        remaining=parse_count(answer.headers.get("x-ratelimit-remaining")),
        reset=_parse_number(answer.headers.get("x-ratelimit-reset")),
        retry_after=retry_after(answer),
    )


def retry_after(answer: Response) -> float | None:
    """Return `Retry-After` in seconds or as a Unix time; None if missing or invalid."""
    text = answer.headers.get("retry-after", "")
    moment = _parse_http_date(text)
    return _parse_number(text) if moment is None else moment.timestamp()


def served_at(answer: Response) -> datetime | None:
    """Return the server's time from `Date`; None if it is missing or unreadable."""
    return _parse_http_date(answer.headers.get("date", ""))


@lru_cache(maxsize=8)
def _parse_http_date(text: str) -> datetime | None:
    """Parse a date in HTTP format; None if invalid. Cached: answers of one second share it."""
    try:
        moment = parsedate_to_datetime(text)
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, TypeError, OverflowError):
        return None


def parse_count(value: Any) -> int | None:
    """Parse a whole number from 0 to `COUNT_MAX`, a JSON number or text; None for anything else."""
    number = _parse_number(value)
    if number is None or not 0 <= number <= COUNT_MAX:
        return None
    return int(number) if number == int(number) else None


def _parse_number(value: Any) -> float | None:
    """Parse a finite number, a JSON number or text; None for anything else."""
    if isinstance(value, str) and _NUMBER.fullmatch(value):
        return float(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def parse_json(body: bytes) -> Any:
    """Parse the body of an answer. If an object repeats a key, the last value is used.

    Raises:
        ValueError: The body is not JSON, is nested too deeply, or has a number that no column can
            hold.
    """
    if body.lstrip()[:1] == b"<":
        raise ValueError("a page of HTML or XML instead of JSON")
    try:
        document = json.loads(body, parse_constant=_parse_float, parse_float=_parse_float)
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None
    except OverflowError as error:
        raise ValueError(str(error)) from None
    except ValueError:
        raise ValueError("text that is not JSON" if body else "an empty body") from None
    # Most bodies have too few brackets to be deep, and are not searched.
    if body.count(b"{") + body.count(b"[") > DEPTH_MAX and _is_too_deep(document):
        raise ValueError(_TOO_DEEP)
    return document


def _parse_float(text: str) -> float:
    """Parse a number. Raises `OverflowError` if it is not finite."""
    if not math.isfinite(number := float(text)):
        raise OverflowError(f"the number {shorten_name(text)}, which no column can hold")
    return number


_TOO_DEEP = f"JSON nested deeper than {DEPTH_MAX} levels"


def _is_too_deep(document: Any) -> bool:
    """Return True if more than `DEPTH_MAX` levels are nested; counts level by level."""
    level = [document]
    for _ in range(DEPTH_MAX + 1):
        parents = [each for each in level if isinstance(each, dict | list)]
        level = [c for p in parents for c in (p.values() if isinstance(p, dict) else p)]
    return bool(parents)


# -- Errors ---------------------------------------------------------------------------------------

WORDS_CHARACTERS_MAX = 500  # Of one message of the API.
TARGET_CHARACTERS_MAX = 200  # Of a redirect's target.
REFUSALS = (400, 401, 403, 404, 422)  # The API did nothing (API 7), as with 429.
OF_NO_FIELD = ""  # Key of messages of a 422 that name no field.
# Errors are logged, and the API may well quote an address that it refuses.
_EMAIL = re.compile(r"[^\s@<>()\"',;:]+@[^\s@<>()\"',;:]+")


def response_error(
    request: Request, answer: Response, *, reset_in_seconds: float | None = None
) -> ConnectorError:
    """Return the error for an answer that is not a success (API 7).

    For a write, only a 429, or a documented refusal with the API's own JSON body, proves that
    nothing was applied. For any other answer, the error is `InDoubt`.

    Args:
        request: The request.
        answer: Its answer.
        reset_in_seconds: Time until the rate limit resets; None if unknown.
    """
    if answer.status == 429:
        return RateLimited(request.method_and_path, reset_in_seconds=reset_in_seconds)
    body = _api_error_body(answer)
    error = _status_error(request, answer, body or {})
    if request.is_read or (answer.status in REFUSALS and body is not None):
        return error
    return doubt_error(request, error)


def doubt_error(request: Request, error: Answered | NotTheApi) -> InDoubt:
    """Return the error for a write that may or may not have been applied; `error` is the reason."""
    return InDoubt(request.method_and_path, error.reason, error.answer)


def message_text(value: Any) -> str:
    """Return a message of the API, a text or other JSON, as text of at most 500 characters.

    Control characters are made visible, because the text is printed, logged and shown in Dagster.
    """
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return escape_control_characters(text[:WORDS_CHARACTERS_MAX])


def _status_error(
    request: Request, answer: Response, body: Mapping[str, Any]
) -> Answered | NotTheApi:
    """Return the error for the answer's status and the texts of the API's error body."""
    where, status = request.method_and_path, answer.status
    if 300 <= status < 400:
        more = f" with a redirect to {_redirect_target(answer)}, which is not followed"
        return NotTheApi(where, f"answered {status}", more, code="redirected")
    api_code, message = (_mask_emails(body.get(name)) for name in ("error", "message"))
    texts = {"api_code": api_code, "api_message": message or api_code}
    if status == 400:
        return Refused(where, status=status, code="invalid_request", **texts)
    if status == 403:
        return Forbidden(where, status=status, scope=request.scope, **texts)
    if status == 404:
        is_api, moment = bool(message or api_code), served_at(answer)
        return NotFound(where, status=status, is_api_error=is_api, served_at=moment, **texts)
    if status == 422:
        errors = _messages_by_field(body.get("errors"))
        return ValidationFailed(where, status=status, errors=errors, **texts)
    kind = ServerFailed if status >= 500 else Unauthorized if status == 401 else UnexpectedStatus
    return kind(where, status=status, **texts)


def _api_error_body(answer: Response) -> dict[str, Any] | None:
    """Return the JSON object of an error answer (API 7); None if the body is no JSON object."""
    try:
        body = parse_json(answer.body)
    except ValueError:
        return None
    return body if isinstance(body, dict) else None


def _mask_emails(value: Any) -> str | None:
    """Return a text of the API without email addresses; None if the value is no text."""
    return _EMAIL.sub("(an email)", message_text(value)) if isinstance(value, str) else None


def _messages_by_field(errors: Any) -> dict[str, tuple[str, ...]]:
    """Return the messages by field (API 7.1); messages of no field have the key `OF_NO_FIELD`."""
    by_field = errors if isinstance(errors, dict) else {OF_NO_FIELD: errors}
    return {
        message_text(name): tuple(
            message_text(each) for each in (messages if isinstance(messages, list) else [messages])
        )
        for name, messages in by_field.items()
        if messages not in (None, [])
    }


def _redirect_target(answer: Response) -> str:
    """Return the target of a redirect, without user name, password, query and fragment."""
    try:
        location = urlsplit(answer.headers.get("location", ""))
    except ValueError:
        return "an address that cannot be read"
    host = location.netloc.rpartition("@")[2]
    shown = location._replace(netloc=host, query="", fragment="").geturl()
    printable = "".join(each if each.isprintable() else "?" for each in shown)
    return printable[:TARGET_CHARACTERS_MAX] or "nowhere"


# -- Successes ------------------------------------------------------------------------------------


def read_list(request: Request, answer: Response) -> Page[dict[str, Any]]:
    """Return a page of a list as received (API 4.1). Raises the error of a failed answer.

    The API does not document pages after the last. If a server repeats its last page there, the
    result has no items, because they belong to another page.
    """
    document = _parse_success(request, answer, (200,))
    items, pagination = document.get("data"), document.get("pagination")
    if not isinstance(items, list) or not all(_has_id(item) for item in items):
        raise _unreadable(request, "answered without a list of records in 'data'")
    if not isinstance(pagination, dict):
        raise _unreadable(request, "answered without 'pagination'")
    numbers = {}
    for name in ("page", "per_page", "total", "total_pages"):
        if (value := parse_count(pagination.get(name))) is None:
            raise _unreadable(request, f"answered without a readable {name!r}")
        numbers[name] = value
    page, per_page, pages = numbers["page"], numbers["per_page"], numbers["total_pages"]
    if len(items) > per_page or per_page > PER_PAGE_MAX:
        limit = f"'per_page' {per_page}; the API serves at most {PER_PAGE_MAX}"
        raise _unreadable(request, f"answered with {len(items)} records and {limit}")
    requested = int(request.query["page"])
    if per_page >= 1 and max(1, pages) == page < requested:
        items = []
    elif page != requested or per_page < 1:
        shown = f"page {page} of {pages}, {per_page} per page, and page {requested} was requested"
        raise _unreadable(request, f"answered with {shown}")
    moment, seconds = served_at(answer), answer.seconds
    return Page(tuple(items), requested, per_page, numbers["total"], pages, moment, seconds)


def read_record(request: Request, answer: Response) -> dict[str, Any]:
    """Return the record in `data` of a detail, create, update or convert.

    Raises:
        UnreadableAnswer: The answer to a read cannot be read, or has another record.
        InDoubt: The answer to a write cannot be read, or its record does not fit the request
            (`client/fit.py`). The write may have happened.
    """
    try:
        document = _parse_success(request, answer, (200,) if request.is_read else (200, 201))
        return _extract_record(request, answer, document)
    except NotTheApi as error:
        raise error if request.is_read else doubt_error(request, error) from error


def check_deleted(request: Request, answer: Response) -> None:
    """Raise `InDoubt` if the answer to a delete cannot be read, or has another record (API 4.8)."""
    if answer.status == 204:
        return
    try:
        document = _parse_success(request, answer, (200,))
        if document.get("data") is not None:
            _extract_record(request, answer, document)
    except NotTheApi as error:
        raise doubt_error(request, error) from error


def _parse_success(request: Request, answer: Response, expected: tuple[int, ...]) -> dict[str, Any]:
    """Return the JSON object of an answer with an expected status. Raises the error of others."""
    if answer.status not in expected:
        if not 200 <= answer.status < 300:
            raise response_error(request, answer)
        more = ", a success that the API does not document"
        raise UnreadableAnswer(request.method_and_path, f"answered {answer.status}", more)
    try:
        document = parse_json(answer.body)
    except ValueError as error:
        raise _unreadable(request, f"answered with {error}") from None
    if not isinstance(document, dict):
        raise _unreadable(request, "answered with JSON that is not an object")
    return document


def _extract_record(request: Request, answer: Response, document: dict[str, Any]) -> dict[str, Any]:
    """Return the record in `data`. Raises `UnreadableAnswer` if it cannot answer the request."""
    record = document.get("data")
    if not isinstance(record, dict) or not _has_id(record):
        raise _unreadable(request, "answered without a record in 'data'")
    if request.record_id is not None:
        if (reason := misfit_of_id(request.record_id, record)) is None:
            return record
        raise _unreadable(request, f"answered with {reason}")
    moment = served_at(answer)
    sent_at = None if moment is None else moment - timedelta(seconds=answer.seconds)
    sent = json.loads(request.body or b"{}")
    if reason := create_mismatch(declaration(request.resource), sent, record, sent_at):
        raise _unreadable(request, f"answered with {reason}")
    return record


def _has_id(record: Any) -> bool:
    """Return True if the value is an object with a non-empty text in `id`."""
    return isinstance(record, dict) and isinstance(record.get("id"), str) and bool(record["id"])


def _unreadable(request: Request, reason: str) -> UnreadableAnswer:
    """Return the error for an answer that is not of the API's structure."""
    return UnreadableAnswer(request.method_and_path, reason)


# -- Observer --------------------------------------------------------------------------------------


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
