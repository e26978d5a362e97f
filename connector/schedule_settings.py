"""How the settings on schedules are read: when something happens by itself, and by which clock.

Values alone: nothing is scheduled or looked up here but the names of time zones.
"""

from __future__ import annotations

import re
from typing import Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

OFF: Literal["off"] = "off"
"""In the place of a time: never by itself."""

_CRON_ALLOWED = (
    "five numbers or rules in cron's manner, for minute, hour, day of the month, month and day of"
    " the week, such as '15 2 * * *' for 02:15 every day; or 'off'"
)
_RANGES = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 7))
"""The least and the greatest number of each field, in their order; Sunday is 0 as well as 7."""

_RULE = re.compile(r"(?:\*|([0-9]{1,2})(?:-([0-9]{1,2}))?)(?:/([0-9]{1,2}))?")
_ZONE = re.compile(r"[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+)*")
_ZONE_ALLOWED = "the name of a time zone such as UTC or Europe/Berlin"
# The longest that each month can be: a day that none of the chosen months has never comes.
_LENGTHS = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def read_cron(raw: object) -> str:
    """When something happens, as cron writes it, with single spaces; or `off`.

    Raises `ValueError`, which says what is allowed. Names of months and days are not taken, nor
    is a day that never comes.
    """
    text = " ".join(raw.split()) if isinstance(raw, str) else ""
    if text == OFF:
        return OFF
    fields = text.split(" ")
    if len(fields) != len(_RANGES):
        raise ValueError(_CRON_ALLOWED)
    _, _, days, months, _ = map(_numbers, fields, _RANGES)
    if all(min(days) > _LENGTHS[month - 1] for month in months):
        raise ValueError(f"{_CRON_ALLOWED}; no chosen month has such a day")
    return text


def _numbers(field: str, allowed: tuple[int, int]) -> frozenset[int]:
    """The numbers that a field of cron chooses. Raises `ValueError`."""
    least, most = allowed
    chosen: set[int] = set()
    for rule in field.split(","):
        match = _RULE.fullmatch(rule)
        if match is None:
            raise ValueError(_CRON_ALLOWED)
        first, last, step = (int(each) if each is not None else None for each in match.groups())
        if first is None:
            first, last = least, most
        elif last is None:
            # 5/10 is from 5 on, every tenth; 5 alone is 5.
            last = first if step is None else most
        if not least <= first <= last <= most or step == 0:
            raise ValueError(_CRON_ALLOWED)
        chosen |= set(range(first, last + 1, step or 1))
    return frozenset(chosen)


def read_zone(raw: object) -> str:
    """The name of a time zone. Raises `ValueError`, which says what is allowed."""
    text = raw.strip() if isinstance(raw, str) else ""
    try:
        if not _ZONE.fullmatch(text):
            raise ValueError(_ZONE_ALLOWED)
        ZoneInfo(text)
    except (ZoneInfoNotFoundError, OSError):
        raise ValueError(_ZONE_ALLOWED) from None
    return text
