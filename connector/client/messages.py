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
from typing import Any, get_args
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
_SEGMENT = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,199}")


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


def build_request(
    resource: Declaration,
    operation: Operation,
    id: str | None = None,
    fields: Mapping[str, Any] | None = None,
    *,
    parent: str | None = None,
    query: Mapping[str, str] | None = None,
) -> Request:
    """Return the request of an operation.

    Args:
        resource: Declaration of the resource.
        operation: Operation, for example "get".
        id: Id of the record, except for a list and a create.
        fields: Fields of a create or an update.
        parent: Id or slug of the content type, for content items.
        query: Parameters of a list.

    Raises:
        UnknownName: The resource does not have the operation, or the operation not the field.
        UnusableId: An id has characters that would change the path.
        Misused: A value cannot be sent as JSON.
    """
    if operation not in resource.operations:
        what = f"possible operation of {resource.name}"
        raise UnknownName(what, operation, sorted(resource.operations))
    if fields is not None:
        body_fields = resource.body_fields("create" if operation == "create" else "update")
        known = {each.name for each, _ in body_fields}
        for name in fields:
            if known and name not in known:
                raise UnknownName(f"field that {operation} of {resource.name} takes", name, known)
    path = resource.path
    if resource.parent is not None:
        path = path.replace("{type}", _path_segment(parent, f"slug or id of {resource.parent}"))
    if operation not in ("list", "create"):
        path += "/" + _path_segment(id, f"id of a {resource.singular}")
    if operation == "convert":
        path += "/convert"
    method = _METHODS[operation]
    scope = resource.read_scope() if method == "GET" else resource.write_scope()
    body = None if fields is None else encode_body(fields)
    return Request(resource.name, operation, method, API_PATH + path, scope, query or {}, body, id)


def build_list_request(
    resource: Declaration,
    parent: str | None = None,
    *,
    page: int = 1,
    per_page: int = PER_PAGE_MAX,
    sort: str | None = None,
    order: Order | None = None,
    search: str | None = None,
) -> Request:
    """Return the request for a page of a list (API 4.1), in descending order by default.

    Raises:
        UnknownName: The list does not have the sort, the order or a search.
        Misused: The page or its size is not possible.
    """
    if page < 1 or not 1 <= per_page <= PER_PAGE_MAX:
        action = f"Use a page from 1, and 1 to {PER_PAGE_MAX} records."
        raise Misused(f"page {page} of {per_page} records is not possible", action=action)
    query = {"page": str(page), "per_page": str(per_page)}
    allowed = {"sort": resource.sortable, "order": get_args(Order)} if resource.sortable else {}
    given = {"sort": sort, "order": order or (sort and "desc"), "search": search}
    for name, value in given.items():
        if value is None:
            continue
        if name not in allowed and not (name == "search" and resource.searchable):
            raise UnknownName(f"parameter of {resource.name}", name, query)
        if name in allowed and value not in allowed[name]:
            raise UnknownName(f"{name} of {resource.name}", value, allowed[name])
        query[name] = value
    return build_request(resource, "list", parent=parent, query=query)


def check_ids(resource: Declaration, ids: Iterable[str]) -> None:
    """Raise `UnusableId` if an id contains characters that are not allowed in a path."""
    for each in ids:
        _path_segment(each, f"id of a {resource.singular}")


def _path_segment(value: object, what: str) -> str:
    """Return the value if it is safe in a path. Raises `UnusableId`; `what` names the value.

    The error does not contain the value, because the user may have entered an email address.
    """
    if isinstance(value, str) and _SEGMENT.fullmatch(value) and ".." not in value:
        return value
    raise UnusableId(f"the {what} {'cannot be used in an address' if value else 'is missing'}")


def encode_body(fields: Mapping[str, Any]) -> bytes:
    """Return the fields as JSON, with dates and datetimes in the API's format (API, conventions).

    Raises:
        Misused: A value does not exist in JSON, or a datetime has no time zone. The error contains
            no text of a value.
    """
    try:
        text = json.dumps(dict(fields), default=_date_as_json, ensure_ascii=False, allow_nan=False)
        return text.encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise Misused(
            f"a value cannot be sent as JSON: {error}",
            action="Send text, numbers, dates, datetimes with a time zone, booleans or null.",
        ) from None


def _date_as_json(value: object) -> str:
    """Return a date or a datetime in the API's format. Raises `TypeError` for other values."""
    if isinstance(value, datetime) and value.utcoffset() is not None:
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    if isinstance(value, date) and not isinstance(value, datetime):
        return value.isoformat()
    is_time = isinstance(value, datetime)
    raise TypeError("a datetime without a time zone" if is_time else f"a {type(value).__name__}")


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
    is_count = number is not None and number <= COUNT_MAX and number.is_integer()
    return int(number or 0) if is_count else None


def _parse_number(value: Any) -> float | None:
    """Parse a positive number, a JSON number or text; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    return float(value) if _NUMBER.fullmatch(str(value)) else None


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
        # Most bodies have too few brackets to be deep, and are not searched.
        if body.count(b"{") + body.count(b"[") > DEPTH_MAX and _depth(document) > DEPTH_MAX:
            raise RecursionError
    except RecursionError:
        raise ValueError(f"JSON nested deeper than {DEPTH_MAX} levels") from None
    except OverflowError as error:
        raise ValueError(str(error)) from None
    except ValueError:
        raise ValueError("text that is not JSON" if body else "an empty body") from None
    return document


def _parse_float(text: str) -> float:
    """Parse a number. Raises `OverflowError` if it is not finite."""
    if not math.isfinite(number := float(text)):
        raise OverflowError(f"the number {shorten_name(text)}, which no column can hold")
    return number


def _depth(document: Any) -> int:
    """Return the number of nested levels. Raises `RecursionError` if they are very many."""
    if not isinstance(document, dict | list):
        return 0
    inner = document.values() if isinstance(document, dict) else document
    return 1 + max(map(_depth, inner), default=0)


# -- Errors ---------------------------------------------------------------------------------------

WORDS_CHARACTERS_MAX = 500  # Of one message of the API.
REFUSALS = (400, 401, 403, 404, 422)  # The API did nothing (API 7), as with 429.
OF_NO_FIELD = ""  # Key of messages of a 422 that name no field.
# Errors are logged, and the API may well quote an address that it refuses.
_EMAIL = re.compile(r"[^\s@<>()\"',;:]+@[^\s@<>()\"',;:]+")


def response_error(request: Request, answer: Response) -> ConnectorError:
    """Return the error for an answer that is not a success (API 7).

    For a write, only a 429, or a documented refusal with the API's own JSON body, proves that
    nothing was applied. For any other answer, the error is `InDoubt`.
    """
    if answer.status == 429:
        return RateLimited(request.method_and_path)
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
    return message_text(location._replace(netloc=host, query="", fragment="").geturl()) or "nowhere"


# -- Successes ------------------------------------------------------------------------------------


def read_list(request: Request, answer: Response) -> Page[dict[str, Any]]:
    """Return a page of a list as received (API 4.1). Raises `UnreadableAnswer`.

    The API does not document pages after the last. If a server repeats its last page there, the
    result has no items, because they belong to another page.
    """
    document = _parse_success(request, answer, (200,))
    items, pagination = document.get("data"), document.get("pagination")
    if not isinstance(items, list) or not all(_has_id(item) for item in items):
        raise _unreadable(request, "answered without a list of records in 'data'")
    if not isinstance(pagination, dict):
        raise _unreadable(request, "answered without 'pagination'")
    names = ("page", "per_page", "total", "total_pages")
    numbers = {name: parse_count(pagination.get(name)) for name in names}
    for name, number in numbers.items():
        if number is None:
            raise _unreadable(request, f"answered without a readable {name!r}")
    page, per_page, total, pages = (number or 0 for number in numbers.values())
    if not len(items) <= per_page <= PER_PAGE_MAX or per_page < 1:
        raise _unreadable(request, f"answered with {len(items)} records, {per_page} per page")
    requested = int(request.query["page"])
    if max(1, pages) == page < requested:
        items = []
    elif page != requested:
        shown = f"page {page} of {pages}, and page {requested} was requested"
        raise _unreadable(request, f"answered with {shown}")
    moment, seconds = served_at(answer), answer.seconds
    return Page(tuple(items), requested, per_page, total, pages, moment, seconds)


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
    """Return the JSON object of an answer with an expected status. Raises `UnreadableAnswer`."""
    if answer.status not in expected:
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
