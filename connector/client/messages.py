"""Requests and responses as values. Requests are made from declarations.

A value that would lead to another address, or to more records than requested, is refused here. The
API validates the values of a body.
"""

from __future__ import annotations

import json
import math
import re
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from email.utils import parsedate_to_datetime
from functools import lru_cache
from typing import Any, Literal, get_args

from connector.catalog.field import MARK, Filter, is_redacted
from connector.catalog.resource import PER_PAGE_MAX, Declaration, Operation, Order
from connector.client.rate_limiter import RateHeaders
from connector.errors import Misused, UnknownName, UnusableId
from connector.log import shorten_name
from connector.settings.values import API_PATH

# -- Response -------------------------------------------------------------------------------------
# Answer as a value, and its headers: the rate limit and the server's clock.


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
    seconds, moment = (
        _parse_number(answer.headers.get("retry-after")),
        _parse_header_time(answer, "retry-after"),
    )
    return moment.timestamp() if moment is not None else seconds


def served_at(answer: Response) -> datetime | None:
    """Return the server's time from `Date`; None if it is missing or unreadable."""
    return _parse_header_time(answer, "date")


def _parse_header_time(answer: Response, header: str) -> datetime | None:
    """Return the time in a header; None if it is missing or invalid."""
    return _parse_http_date(answer.headers.get(header, ""))


@lru_cache(maxsize=8)
def _parse_http_date(text: str) -> datetime | None:
    """Parse a date in HTTP format; None if invalid. Cached: answers of one second share it."""
    try:
        moment = parsedate_to_datetime(text)
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, TypeError, OverflowError):
        return None


COUNT_MAX = 10**15
"""The largest number that counts anything; a larger one is garbage."""


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


# -- Body ------------------------------------------------------------------------------------------
# Bodies of requests are written as JSON; those of answers are unpacked and read, within bounds.


DEPTH_MAX = 64
"""The deepest nesting that an answer may have; the API's own answers have five levels."""

_GZIP = 16 + zlib.MAX_WBITS


def encode_body(fields: Mapping[str, Any]) -> bytes:
    """Return the fields as JSON, with dates and datetimes in the API's format (API, conventions).

    Raises `Misused` for a value that JSON does not have, for a datetime without a time zone, and
    for a value that an erasure has redacted. The error contains the type or the field, but no
    value.
    """
    try:
        text = json.dumps(dict(fields), default=_date_as_json, ensure_ascii=False, allow_nan=False)
        body = text.encode()
    except TypeError as error:
        reason = str(error)
    except UnicodeEncodeError:
        reason = "a text that is not Unicode"
    except (ValueError, RecursionError):
        reason = "a number that is not finite, or values nested in a circle"
    else:
        _refuse_redacted(fields, text)
        return body
    raise Misused(
        f"{reason} cannot be sent as JSON",
        action="Send text, finite numbers, booleans, dates, datetimes with a time zone and null.",
    )


def _refuse_redacted(fields: Mapping[str, Any], text: str) -> None:
    """Raise `Misused` if the JSON text contains the mark of an erasure."""
    if not is_redacted(text):
        return
    names = [name for name, value in fields.items() if is_redacted({name: value})]
    raise Misused(
        f"{', '.join(names)} contains {MARK}, the mark of an erased value, which is never sent",
        action="Enter the complete value, or leave the field out.",
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


def parse_json(body: bytes) -> Any:
    """Parse the body of an answer. If an object repeats a key, the last value is used.

    Raises `ValueError` if the body is not JSON, is nested too deeply, or has a number that no
    column can store. The text of the error names the field and the record.
    """
    if body.lstrip()[:1] == b"<":
        raise ValueError("a page of HTML or XML instead of JSON")
    unusable: list[_UnusableNumber] = []
    try:
        document = json.loads(
            body,
            parse_constant=lambda text: _mark_unusable(text, unusable),
            parse_float=lambda text: _parse_float(text, unusable),
        )
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None
    except ValueError:
        raise ValueError("text that is not JSON" if body else "an empty body") from None
    # Most bodies have too few brackets to be deep, and are not searched.
    if body.count(b"{") + body.count(b"[") > DEPTH_MAX and not _is_shallow(document):
        raise ValueError(_TOO_DEEP)
    if unusable:
        raise ValueError(_describe_unusable(unusable[0], document))
    return document


_TOO_DEEP = f"JSON nested deeper than {DEPTH_MAX} levels"


def _is_shallow(document: Any) -> bool:
    """Return True if at most `DEPTH_MAX` levels are nested; counts level by level."""
    level = [document]
    for _ in range(DEPTH_MAX + 1):
        level = [each for each in level if isinstance(each, dict | list)]
        if not level:
            return True
        level = [
            child for each in level for child in (each.values() if isinstance(each, dict) else each)
        ]
    return False


@dataclass(frozen=True, slots=True, eq=False)
class _UnusableNumber:
    """Number of an answer that no column can hold: NaN, Infinity, or one that is too large."""

    text: str


def _mark_unusable(text: str, unusable: list[_UnusableNumber]) -> Any:
    """Add the number to the list, and return an object that replaces it in the document."""
    unusable.append(_UnusableNumber(shorten_name(text)))
    return unusable[-1]


def _parse_float(text: str, unusable: list[_UnusableNumber]) -> Any:
    """Parse a number; if it is not finite, add it to the list as `_mark_unusable` does."""
    number = float(text)
    return number if math.isfinite(number) else _mark_unusable(text, unusable)


def _describe_unusable(number: _UnusableNumber, document: Any) -> str:
    """Return the number, its field and its record's id, searched in the document."""
    level: list[tuple[Any, str | None, Any]] = [(document, None, None)]
    while level:
        below: list[tuple[Any, str | None, Any]] = []
        for value, name, id in level:
            if value is number:
                in_field = "" if name is None else f" in {name!r}"
                of_record = f" of the record {shorten_name(id)}" if isinstance(id, str) else ""
                return f"the number {number.text}{in_field}{of_record}, which no column can hold"
            if isinstance(value, dict):
                inner = value.get("id", id)
                below += ((each, shorten_name(key), inner) for key, each in value.items())
            elif isinstance(value, list):
                below += ((each, name, id) for each in value)
        level = below
    # A key that is repeated has only its last value in the document.
    return f"the number {number.text}, which no column can hold"


class BodyDecoder:
    """Decompresses a body part by part; at most `bytes_max` are in memory.

    `encoding` is the answer's `Content-Encoding`. Raises `ValueError` for any compression but gzip,
    the only one that requests accept.
    """

    def __init__(self, encoding: str, bytes_max: int) -> None:
        if encoding not in ("", "identity", "gzip"):
            raise ValueError("a body with an unknown compression")
        self._packed = zlib.decompressobj(_GZIP) if encoding == "gzip" else None
        self._bytes_max = bytes_max
        self._parts: list[bytes] = []
        self._size = 0

    def add(self, part: bytes) -> None:
        """Add a part. Raises `OverflowError` beyond `bytes_max`, and `ValueError` for damaged gzip
        data.
        """
        if self._packed is not None:
            try:
                # One byte more than may be held is enough to know: a bomb is never unpacked.
                part = self._packed.decompress(part, self._bytes_max - self._size + 1)
            except zlib.error:
                raise ValueError("damaged gzip data") from None
        self._size += len(part)
        if self._size > self._bytes_max:
            raise OverflowError
        self._parts.append(part)

    def finish(self) -> bytes:
        """Return the complete body. Raises `ValueError` if the gzip data is incomplete."""
        if self._packed is not None and self._parts and not self._packed.eof:
            raise ValueError("incomplete gzip data")
        return b"".join(self._parts)


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
