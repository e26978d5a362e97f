"""An answer as a value, and what its headers say: of the rate limit, and of the server's clock."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from connector.engine.pace import RateHeaders

_NUMBER = re.compile(r"\s*[0-9]{1,18}(\.[0-9]*)?\s*", re.ASCII)


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back: the status, the headers under names in lower case, and the whole body.

    Its repr shows the status alone: a body can hold personal data.
    """

    status: int
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False)


def rate_headers(answer: Answer) -> RateHeaders:
    """What the answer says of the limit (API 8.3); a part that is missing or garbage is None."""
    return RateHeaders(
        limit=whole(answer.headers.get("x-ratelimit-limit")),
        remaining=whole(answer.headers.get("x-ratelimit-remaining")),
        reset=_number(answer.headers.get("x-ratelimit-reset")),
    )


def served_at(answer: Answer) -> datetime | None:
    """The server's own clock, from `Date`; None where it is missing or unreadable."""
    try:
        moment = parsedate_to_datetime(answer.headers.get("date", ""))
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, TypeError, OverflowError):
        return None


def whole(value: Any) -> int | None:
    """A count: a whole number from 0, in JSON or as text; None for anything else."""
    number = _number(value)
    return int(number) if number is not None and number >= 0 and number == int(number) else None


def _number(value: Any) -> float | None:
    if isinstance(value, str) and _NUMBER.fullmatch(value):
        return float(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None
