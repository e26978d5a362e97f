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
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from email.utils import parsedate_to_datetime
from functools import lru_cache
from typing import Any, TypeGuard, get_args
from urllib.parse import urlsplit

from connector import errors
from connector.catalog import declaration
from connector.catalog.resource import PER_PAGE_MAX, Declaration, Operation, Order, Page, Resource
from connector.client.fit import create_mismatch, misfit_of_id
from connector.client.limiter import RateHeaders
from connector.log import escape_control_characters, shorten_name
from connector.settings.values import API_PATH

# -- Request --------------------------------------------------------------------------------------

_WRITES = {"create": "POST", "update": "PUT", "delete": "DELETE", "convert": "POST"}
_SEGMENT = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,199}")


@dataclass(frozen=True, slots=True)
class Request:
    """One request, ready to be sent, with the scope that the API key needs.

    The repr contains neither the query nor the body, because both can contain personal data.
    `record_id` is None for a list and a create.
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
    """Return the request of an operation; `parent` is the content type of a content item.

    Raises `Misused`, with `UnusableId` for characters that would change the path.
    """
    if operation not in resource.operations:
        what = f"possible operation of {resource.name}"
        raise errors.UnknownName(what, operation, sorted(resource.operations))
    if fields is not None:
        body_fields = resource.body_fields("create" if operation == "create" else "update")
        known = {each.name for each, _ in body_fields}
        for name in fields:
            if known and name not in known:
                raise errors.UnknownName(
                    f"field that {operation} of {resource.name} takes", name, known
                )
    path = API_PATH + resource.path
    if resource.parent is not None:
        path = path.replace("{type}", _path_segment(parent, f"slug or id of {resource.parent}"))
    if operation not in ("list", "create"):
        path += "/" + _path_segment(id, f"id of a {resource.singular}")
    if operation == "convert":
        path += "/convert"
    method = _WRITES.get(operation, "GET")
    scope = resource.read_scope() if method == "GET" else resource.write_scope()
    body = None if fields is None else encode_body(fields)
    return Request(resource.name, operation, method, path, scope, query or {}, body, id)


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

    Raises `UnknownName` and `Misused` for a parameter that the list does not have.
    """
    if page < 1 or not 1 <= per_page <= PER_PAGE_MAX:
        action = f"Use a page from 1, and 1 to {PER_PAGE_MAX} records."
        raise errors.Misused(f"page {page} of {per_page} records is not possible", action=action)
    query = {"page": str(page), "per_page": str(per_page)}
    for name, value, allowed in (
        ("sort", sort, resource.sortable),
        ("order", order or (sort and "desc"), resource.sortable and get_args(Order)),
        ("search", search, resource.searchable and (search,)),
    ):
        if value is None:
            continue
        if not allowed:
            raise errors.UnknownName(f"parameter of {resource.name}", name, query)
        if value not in allowed:
            raise errors.UnknownName(f"{name} of {resource.name}", value, allowed)
        query[name] = value
    return build_request(resource, "list", parent=parent, query=query)


def check_ids(resource: Declaration, ids: Iterable[str]) -> None:
    """Raise `UnusableId` if an id contains characters that are not allowed in a path."""
    for each in ids:
        _path_segment(each, f"id of a {resource.singular}")


def _path_segment(value: object, what: str) -> str:
    """Return the value if it is safe in a path. Raises `UnusableId`, which does not quote it."""
    if isinstance(value, str) and _SEGMENT.fullmatch(value) and ".." not in value:
        return value
    raise errors.UnusableId(
        f"the {what} {'cannot be used in an address' if value else 'is missing'}"
    )


def encode_body(fields: Mapping[str, Any]) -> bytes:
    """Return the fields as JSON. Raises `Misused` without quoting a value."""
    try:
        text = json.dumps(dict(fields), default=_date_as_json, ensure_ascii=False, allow_nan=False)
        return text.encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise errors.Misused(
            f"a value cannot be sent as JSON: {error}",
            action="Send text, numbers, dates, datetimes with a time zone, booleans or null.",
        ) from None


def _date_as_json(value: object) -> str:
    if isinstance(value, datetime):
        if value.utcoffset() is None:
            raise TypeError("a datetime without a time zone")
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    if isinstance(value, date):
        return value.isoformat()
    raise TypeError(f"a {type(value).__name__}")


# -- Answer ---------------------------------------------------------------------------------------

DEPTH_MAX = 64  # Of nested values. The API's own answers have five levels.
_NUMBER = re.compile(r"\s*[0-9]{1,15}(\.[0-9]*)?\s*", re.ASCII)  # A larger one counts nothing.


@dataclass(frozen=True, slots=True)
class Response:
    """Answer, with header names in lower case, and the duration of the attempt.

    The repr contains only the status, because a body can contain personal data.
    """

    status: int
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False)
    seconds: float = field(default=0.0, repr=False)


def served_at(answer: Response) -> datetime | None:
    """Return the server's time from `Date`; None if it is missing or unreadable."""
    return _parse_http_date(answer.headers.get("date", ""))


def rate_headers(answer: Response) -> RateHeaders:
    """Return the rate limit headers (API 8.3) and the `Date`."""
    headers = answer.headers
    after = headers.get("retry-after", "")
    moments = [_parse_http_date(after), served_at(answer)]
    retry_at, date = (None if each is None else each.timestamp() for each in moments)
    return RateHeaders(
        limit=_parse_count(headers.get("x-ratelimit-limit")),
        remaining=_parse_count(headers.get("x-ratelimit-remaining")),
        reset=_parse_number(headers.get("x-ratelimit-reset")),
        retry_after=_parse_number(after) if retry_at is None else retry_at,
        date=date,
    )


@lru_cache(maxsize=8)
def _parse_http_date(text: str) -> datetime | None:
    """Parse a date in HTTP format; None if invalid. Cached: answers of one second share it."""
    try:
        moment = parsedate_to_datetime(text)
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, TypeError, OverflowError):
        return None


def _parse_count(value: Any) -> int | None:
    """Parse a whole number from 0, a JSON number or text; None for anything else."""
    number = _parse_number(value)
    return int(number) if number is not None and number.is_integer() else None


def _parse_number(value: Any) -> float | None:
    is_number = isinstance(value, int | float | str) and not isinstance(value, bool)
    return float(value) if is_number and _NUMBER.fullmatch(str(value)) else None


def parse_json(body: bytes) -> Any:
    """Parse the body of an answer. Raises `ValueError` with its kind if it cannot be used."""
    if body.lstrip()[:1] == b"<":
        raise ValueError("a page of HTML or XML instead of JSON")
    try:
        document = json.loads(body, parse_constant=_parse_float, parse_float=_parse_float)
        if _depth(document) > DEPTH_MAX:
            raise RecursionError
        return document
    except RecursionError:
        raise ValueError(f"JSON nested deeper than {DEPTH_MAX} levels") from None
    except OverflowError as error:
        raise ValueError(str(error)) from None
    except ValueError:
        raise ValueError("text that is not JSON" if body else "an empty body") from None


def _parse_float(text: str) -> float:
    if not math.isfinite(number := float(text)):
        raise OverflowError(f"the number {shorten_name(text)}, which no column can hold")
    return number


def _depth(document: Any) -> int:
    if not isinstance(document, dict | list):
        return 0
    inner = document.values() if isinstance(document, dict) else document
    return 1 + max(map(_depth, inner), default=0)


# -- Errors ---------------------------------------------------------------------------------------

WORDS_CHARACTERS_MAX = 500  # Of one message of the API.
# Errors are logged, and the API may well quote an address that it refuses.
_EMAIL = re.compile(r"[^\s@<>()\"',;:]+@[^\s@<>()\"',;:]+")

_REFUSALS: Mapping[int, type[errors.Answered]] = {
    400: errors.Refused,
    401: errors.Unauthorized,
    403: errors.Forbidden,
    404: errors.NotFound,
    422: errors.ValidationFailed,
}
"""Errors of the documented refusals, after which nothing was applied (API 7), as after a 429."""


def response_error(request: Request, answer: Response) -> errors.ConnectorError:
    """Return the error for an answer that is not a success (API 7).

    For a write, only a 429, or a documented refusal with the API's own JSON body, proves that
    nothing was applied. For any other answer, the error is `InDoubt`.
    """
    where, status = request.method_and_path, answer.status
    if status == 429:
        return errors.RateLimited(f"{where} was answered 429: the rate limit is exceeded")
    try:
        body = parse_json(answer.body)
    except ValueError:
        body = None
    is_api_error = isinstance(body, dict)
    error = _status_error(request, answer, body if is_api_error else {})
    return error if status in _REFUSALS and is_api_error else doubtful(request, error)


def doubtful(request: Request, error: errors.Answered | errors.NotTheApi) -> errors.ConnectorError:
    """Return the error of a read, and `InDoubt` for a write, which may have been applied."""
    if request.is_read:
        return error
    return errors.InDoubt(request.method_and_path, error.reason, error.answer)


def _status_error(
    request: Request, answer: Response, body: Mapping[str, Any]
) -> errors.Answered | errors.NotTheApi:
    where, status = request.method_and_path, answer.status
    if 300 <= status < 400:
        more = f" with a redirect to {_redirect_target(answer)}, which is not followed"
        return errors.NotTheApi(where, f"answered {status}", more, code="redirected")
    api_code, message = (
        _EMAIL.sub("(an email)", _message_text(text)) if isinstance(text, str) else None
        for text in (body.get("error"), body.get("message"))
    )
    kind = _REFUSALS.get(status, errors.ServerFailed if status >= 500 else errors.UnexpectedStatus)
    error = kind(
        where,
        status=status,
        api_code=api_code,
        api_message=message or api_code,
        scope=request.scope,
        served_at=served_at(answer),
        errors=_messages_by_field(body.get("errors")) if status == 422 else {},
    )
    if isinstance(error, errors.ServerFailed):
        rate = rate_headers(answer)
        error.retry_after_seconds = rate.seconds_until(rate.retry_after, answer.seconds) or 0.0
    return error


def _message_text(value: Any) -> str:
    """Return a message of the API as a text that is safe to print, log and show in Dagster."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return escape_control_characters(text[:WORDS_CHARACTERS_MAX])


def _messages_by_field(found: Any) -> dict[str, tuple[str, ...]]:
    """Return the messages by field (API 7.1); messages of no field have an empty key."""
    by_field = found if isinstance(found, dict) else {"": found}
    return {
        _message_text(name): tuple(
            _message_text(each) for each in (messages if isinstance(messages, list) else [messages])
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
    target = location._replace(netloc=host, query="", fragment="").geturl()
    return _message_text(target) or "nowhere"


# -- Successes ------------------------------------------------------------------------------------


@contextmanager
def _reading(request: Request) -> Iterator[None]:
    """Raise a `ValueError` about the answer as `UnreadableAnswer`, or `InDoubt` for a write."""
    try:
        yield
    except ValueError as error:
        unreadable = errors.UnreadableAnswer(request.method_and_path, f"answered with {error}")
        raise doubtful(request, unreadable) from None


def read_list(request: Request, answer: Response) -> Page[Resource]:
    """Return a page of a list (API 4.1). Raises `UnreadableAnswer`, or the error of the status.

    The API does not document pages after the last. If a server repeats its last page there, the
    result has no items, because they belong to another page.
    """
    requested = int(request.query["page"])
    with _reading(request):
        document = _parse_success(request, answer, 200)
        items, pagination = document.get("data"), document.get("pagination")
        if not isinstance(items, list) or not all(map(_has_id, items)):
            raise ValueError("no list of records in 'data'")
        if not isinstance(pagination, dict):
            raise ValueError("no 'pagination'")
        numbers = list[int]()
        for name in ("page", "per_page", "total", "total_pages"):
            if (number := _parse_count(pagination.get(name))) is None:
                raise ValueError(f"no readable {name!r}")
            numbers.append(number)
        page, per_page, total, pages = numbers
        if not len(items) <= per_page <= PER_PAGE_MAX or per_page < 1:
            raise ValueError(f"{len(items)} records, {per_page} per page")
        if max(1, pages) == page < requested:
            items = []
        elif page != requested:
            raise ValueError(f"page {page} of {pages}, and page {requested} was requested")
    resource, at = declaration(request.resource), served_at(answer)
    records = tuple(resource.record(each, is_item=True, served_at=at) for each in items)
    return Page(records, requested, per_page, total, pages, at, answer.seconds)


def read_record(request: Request, answer: Response) -> Resource:
    """Return the record of a detail, create, update or convert. Raises the error of the status.

    An answer that cannot be read, or whose record does not fit the request (`client/fit.py`),
    raises `UnreadableAnswer` for a read, and `InDoubt` for a write, which may have happened.
    """
    with _reading(request):
        statuses = (200,) if request.is_read else (200, 201)
        raw = _fitting_record(request, answer, _parse_success(request, answer, *statuses))
    return declaration(request.resource).record(raw, served_at=served_at(answer))


def check_deleted(request: Request, answer: Response) -> None:
    """Raise as `read_record`, unless the answer to a delete confirms it (API 4.8)."""
    if answer.status == 204:
        return
    with _reading(request):
        document = _parse_success(request, answer, 200)
        if document.get("data") is not None:
            _fitting_record(request, answer, document)


def _parse_success(request: Request, answer: Response, *statuses: int) -> dict[str, Any]:
    """Return the JSON object of an answer with an expected status. Raises the error of others."""
    if not 200 <= answer.status < 300:
        raise response_error(request, answer)
    if answer.status not in statuses:
        raise ValueError(f"{answer.status}, a success that the API does not document")
    document = parse_json(answer.body)
    if not isinstance(document, dict):
        raise ValueError("JSON that is not an object")
    return document


def _fitting_record(request: Request, answer: Response, document: dict[str, Any]) -> dict[str, Any]:
    """Return the record in `data`. Raises `ValueError` if it cannot answer the request."""
    record = document.get("data")
    if not _has_id(record):
        raise ValueError("no record in 'data'")
    if request.record_id is not None:
        reason = misfit_of_id(request.record_id, record)
    else:
        moment = served_at(answer)
        sent_at = None if moment is None else moment - timedelta(seconds=answer.seconds)
        sent = json.loads(request.body or b"{}")
        reason = create_mismatch(declaration(request.resource), sent, record, sent_at)
    if reason is not None:
        raise ValueError(reason)
    return record


def _has_id(record: Any) -> TypeGuard[dict[str, Any]]:
    return isinstance(record, dict) and isinstance(record.get("id"), str) and bool(record["id"])
