"""Check that an answer contains the record that was requested. Pure.

A cache or a proxy may mix up answers, and a server may merge a create into an existing record. If a
request names a record, the answer has its id, in the same case. The answer to a create has a new
record with the values sent. Another form of a value is accepted.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from connector.catalog.field import Field, Kind
from connector.catalog.field_comparison import differing_fields
from connector.catalog.resource import Declaration

EARLIER_SECONDS = 5.0  # A create does not make older records: the server's clock is known to 2 s.
COMPARED_CHARACTERS_MAX = 100  # A server may clean up the markup of a longer text.
CUT_CHARACTERS_MIN = 20  # Letters and digits of the shortest text that counts as cut off.
PHONE_DIGITS_MIN = 6  # Digits that two forms of one telephone number share.

_PHONE = re.compile(r"[\d\s()+./-]+")


def misfit_of_id(id: str, record: Mapping[str, Any]) -> str | None:
    """Return why the record cannot answer a request for this id; None if its id is the same."""
    return None if record["id"] == id else "a record with another id"


def create_mismatch(
    resource: Declaration,
    sent: Mapping[str, Any],
    record: Mapping[str, Any],
    sent_at: datetime | None,
) -> str | None:
    """Return why the record cannot be the result of a create, without any value; None if it can.

    `sent_at` is the server's time when the request was sent, None if unknown.
    """
    created_at, _ = resource.field("created_at").parse(record.get("created_at"))
    if not isinstance(created_at, datetime):
        return "a record without a readable created_at, so it may be an older record"
    if sent_at is not None and created_at < sent_at - timedelta(seconds=EARLIER_SECONDS):
        return "a record that was created before the request"
    others = contradicting_fields(resource, sent, record)
    return f"a record with another {', '.join(others)}" if others else None


def contradicting_fields(
    resource: Declaration, sent: Mapping[str, Any], shown: Mapping[str, Any]
) -> tuple[str, ...]:
    """Return the names of fields whose value proves that `shown` is not the record that was sent.

    The same value in another form proves nothing: an empty value, a status, a long or shortened
    text, a rounded number, a telephone number with or without its country. A natural key may only
    differ in letter case and punctuation.
    """
    keys = resource.natural_keys
    key = next((each for each in keys if all(sent.get(name) for name in each)), ())
    return tuple(
        name
        for name in differing_fields(resource, sent, shown)
        if _contradicts(resource.field(name), sent[name], shown[name], is_key=name in key)
    )


def _contradicts(field: Field, sent: Any, shown: Any, *, is_key: bool) -> bool:
    is_judged = field.kind not in (Kind.BOOL, Kind.ARRAY, Kind.OBJECT) and not field.values
    if not is_judged or sent in (None, "") or shown in (None, ""):
        return False
    if field.kind in (Kind.NUMBER, Kind.INTEGER):
        try:
            return abs(float(sent) - float(shown)) >= 1
        except (TypeError, ValueError, OverflowError):
            return True
    if not isinstance(sent, str) or not isinstance(shown, str):
        return True
    one, other = _letters_and_digits(sent), _letters_and_digits(shown)
    if is_key or one == other:
        return one != other
    shorter, longer = sorted((one, other), key=len)
    is_truncated = len(shorter) >= CUT_CHARACTERS_MIN and longer.startswith(shorter)
    is_form = is_truncated or _is_same_phone(sent, shown)
    return not is_form and len(sent) <= COMPARED_CHARACTERS_MAX


def _letters_and_digits(text: str) -> str:
    plain = unicodedata.normalize("NFKC", text).casefold()
    return "".join(each for each in plain if each.isalnum())


def _is_same_phone(sent: str, shown: str) -> bool:
    """Return True if both are the same telephone number, with or without its country."""
    if not (_PHONE.fullmatch(sent) and _PHONE.fullmatch(shown)):
        return False
    digits = sorted((_letters_and_digits(each).lstrip("0") for each in (sent, shown)), key=len)
    return len(digits[0]) >= PHONE_DIGITS_MIN and digits[1].endswith(digits[0])
