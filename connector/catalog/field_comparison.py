"""Comparison of sent field values with the values that the API shows.

The API may format a value differently (API, conventions): `1.0` for `1`, an offset for `Z`, a
timestamp without microseconds, a text without outer blanks, null for an empty text. These are not
differences. Fields that a response does not contain are not compared.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from unicodedata import normalize

from connector.catalog.field import Field, Kind
from connector.catalog.resource import Declaration

_UNITS = (1_000, 1_000_000)
"""Units in microseconds to which a server may truncate timestamps."""


def is_same_value(field: Field, sent: Any, returned: Any) -> bool:
    """Return True if both values are equal, apart from the API's own formatting."""
    if field.kind is Kind.OBJECT:
        return not differing_content_keys(sent, returned)
    if _is_null_or_blank(sent) or _is_null_or_blank(returned):
        return _is_null_or_blank(sent) and _is_null_or_blank(returned)
    one, other = field.parse(sent)[0], field.parse(returned)[0]
    if one is None or other is None:
        return bool(sent == returned)
    if isinstance(one, str):
        one, other = normalize_text(one), normalize_text(str(other))
        return one.casefold() == other.casefold() if field.format == "email" else one == other
    if isinstance(one, datetime):
        return other in (one, *(_truncate_microseconds(one, unit) for unit in _UNITS))
    return bool(one == other)


def normalize_text(text: str) -> str:
    """Return the text without outer blanks, with each accented letter as one character.

    The two encodings of a letter (NFC and NFD) become equal, as in the matching of rows.
    """
    return (text if text.isascii() else normalize("NFC", text)).strip()


def differing_fields(
    resource: Declaration, sent: Mapping[str, Any], returned: Mapping[str, Any]
) -> tuple[str, ...]:
    """Return the names of sent fields that the response contains with another value.

    Fields that the response does not contain are not included: an echo may have fewer (API 4.7).
    """
    return tuple(
        name
        for name, value in sent.items()
        if name in returned and not is_same_value(resource.field(name), value, returned[name])
    )


def unapplied_fields(
    resource: Declaration, wanted: Mapping[str, Any], detail: Mapping[str, Any]
) -> tuple[str, ...]:
    """Return the names of fields whose value in a detail is not the wanted value.

    A field that the detail does not contain counts as empty. Write-only fields are not included.
    """
    return tuple(
        name
        for name, value in wanted.items()
        if not resource.field(name).write_only
        and not is_same_value(resource.field(name), value, detail.get(name))
    )


def _is_null_or_blank(value: Any) -> bool:
    return value is None or (isinstance(value, str) and not value.strip())


def _truncate_microseconds(timestamp: datetime, microseconds: int) -> datetime:
    return timestamp.replace(microsecond=timestamp.microsecond // microseconds * microseconds)


def values_by_key(value: Any) -> Mapping[str, Any]:
    """Return the `fields` object of a content item; {} if it is null or an empty array."""
    return value if isinstance(value, dict) else {}


def differing_content_keys(sent: Any, returned: Any) -> list[str]:
    """Return the keys of a sent `fields` object whose values differ in the returned object."""
    return [
        key
        for key, value in values_by_key(sent).items()
        if not _is_same_content_value(value, returned, key)
    ]


def _is_same_content_value(value: Any, returned: Any, key: str) -> bool:
    """Return True if the returned `fields` object has the sent value for this key."""
    other = values_by_key(returned).get(key)
    blanks = (_is_null_or_blank(value) or value == [], _is_null_or_blank(other) or other == [])
    if any(blanks):
        return all(blanks)
    if isinstance(value, list) or isinstance(other, list):
        return bool(value == other)
    # A content value has no declared type (API 2.7), so the values are compared as text.
    return value == other or normalize_text(str(value)) == normalize_text(str(other))
