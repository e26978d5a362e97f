"""Answer as a value, and its headers: the rate limit and the server's clock."""

from __future__ import annotations

import json
import math
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from email.utils import parsedate_to_datetime
from functools import lru_cache
from typing import Any

from connector.catalog.field import MARK, is_redacted
from connector.client.rate_limiter import RateHeaders
from connector.errors import Misused
from connector.log import shorten_name

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
