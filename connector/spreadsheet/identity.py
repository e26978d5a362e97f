"""What tells one record from another: the natural keys of each resource, and when two values of
one are the same.

The API says nothing of uniqueness (API 2, end), so these keys are the connector's own choice: two
records that share one are taken for one thing, and a person is asked.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from typing import Any

NATURAL_KEYS: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "jobs": (("reference_code",), ("title", "company_id")),
    "candidates": (("email",),),
    "companies": (("email",), ("name",)),
    "bookings": (("booking_type", "start_datetime", "candidate_id"),),
    "leads": (("email",),),
    "content_items": (("slug",), ("title",)),
}
"""By resource, sets of fields of which the first that has all its values identifies a record."""

FOUND_BY: Mapping[str, tuple[str, ...]] = {
    "jobs": ("reference_code", "title"),
    "candidates": ("email",),
    "companies": ("name", "email"),
    "leads": ("email",),
}
"""By resource, the fields by which other resources may refer to its records in place of an id;
the one that people know best comes first.
"""


def natural_key(resource: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """The values that identify the record, by field; empty where no key has all of its values."""
    for fields in NATURAL_KEYS.get(resource, ()):
        key: dict[str, Any] = {}
        for name in fields:
            value = values.get(name)
            if value is None or value == "":
                break
            key[name] = value
        else:
            return key
    return {}


def folded(value: Any) -> str:
    """The value as text under which it equals others that mean the same: letter case, outer
    blanks and the composition of accents aside.
    """
    text = value if isinstance(value, str) else str(value)
    if not text.isascii():
        text = unicodedata.normalize("NFC", text)
    return text.strip().lower()
