"""Types of API fields, and the functions that read a JSON value as each type.

A value that cannot be read as its type raises `ValueError` or `TypeError`; the caller keeps the
raw response.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from enum import StrEnum
from typing import Any, NewType

Uuid = NewType("Uuid", str)
"""Id of a record, as an opaque string."""

FieldValue = str | int | float | bool | None | list[str]
"""Value of one `field_key` of a content item: a single value or a list of strings (API 2.7)."""

MARK = "[erased]"
"""Text that replaces an erased value or an erased part of a text."""

VALUE_ERASED = "value_erased"
"""Code of the problem of a value that `is_redacted`."""


class Kind(StrEnum):
    """Type of a field, with the names that the API documentation uses (conventions, section 2)."""

    STRING = "string"
    UUID = "uuid"
    NUMBER = "number"
    INTEGER = "integer"
    BOOL = "bool"
    DATE = "date"
    DATETIME = "datetime"
    PARTS = "array"
    VALUES = "object"


KINDS: Mapping[Any, Kind] = {
    str: Kind.STRING,
    Uuid: Kind.UUID,
    float: Kind.NUMBER,
    int: Kind.INTEGER,
    bool: Kind.BOOL,
    date: Kind.DATE,
    datetime: Kind.DATETIME,
}
"""Kind of field by type annotation."""


def read(kind: Kind, value: Any) -> Any:
    """Return a JSON value as its kind: `datetime` in UTC, `number` as float, `array` as list.

    Raises `ValueError`, `TypeError` or `OverflowError` if the value is not of the kind.
    """
    return _READERS[kind](value)


def is_redacted(value: Any) -> bool:
    """Return True if the value, or a part of it, was erased.

    Such a value is never sent and does not count as proof. Texts and names are searched for `MARK`.
    """
    if isinstance(value, str):
        return MARK in value
    if isinstance(value, Mapping):
        return any(is_redacted(name) or is_redacted(each) for name, each in value.items())
    return isinstance(value, list | tuple) and any(map(is_redacted, value))


def read_datetime(value: Any) -> datetime:
    """Return an ISO 8601 timestamp as an aware datetime; UTC if it has no offset (API).

    Raises `ValueError` or `TypeError`.
    """
    if not isinstance(value, str):
        raise TypeError
    moment = datetime.fromisoformat(value)
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def _read_string(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _read_number(value: Any) -> float:
    if isinstance(value, bool):
        raise TypeError
    number = float(value)
    if not math.isfinite(number):
        raise ValueError
    return number


def _read_integer(value: Any) -> int:
    if isinstance(value, bool):
        raise TypeError
    # Only fractions are converted through float: a large integer would lose its last digits.
    whole = int(value)
    if isinstance(value, float) and whole != value:
        raise ValueError
    if not -(2**63) <= whole < 2**63:
        raise OverflowError
    return whole


def _read_bool(value: Any) -> bool:
    if value in (True, False):
        return bool(value)
    raise ValueError


def _read_date(value: Any) -> date:
    if not isinstance(value, str):
        raise TypeError
    # A datetime is cut to its date because some serialisers add midnight.
    return date.fromisoformat(value[:10])


def _read_parts(value: Any) -> list[dict[str, Any]]:
    if isinstance(value, list) and all(isinstance(v, dict) for v in value):
        return value
    raise TypeError


def _read_values(value: Any) -> dict[str, Any]:
    if isinstance(value, dict):
        return value
    # Some serialisers write an empty map as an empty array.
    if value == []:
        return {}
    raise TypeError


_READERS: Mapping[Kind, Callable[[Any], Any]] = {
    Kind.STRING: _read_string,
    Kind.UUID: _read_string,
    Kind.NUMBER: _read_number,
    Kind.INTEGER: _read_integer,
    Kind.BOOL: _read_bool,
    Kind.DATE: _read_date,
    Kind.DATETIME: read_datetime,
    Kind.PARTS: _read_parts,
    Kind.VALUES: _read_values,
}
