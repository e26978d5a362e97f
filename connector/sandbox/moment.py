"""Timestamps as the store keeps them and as answers show them.

Kept, every timestamp is one fixed-width text in UTC, so that texts sort as times do; shown, it
has the precision and the suffix that the behaviours ask for. This module reads no clock.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime

from connector.sandbox.behaviour import Behaviours

Clock = Callable[[], datetime]
"""What tells the server's time: an aware datetime. A simulation passes its own."""

_MICROSECONDS_KEPT = {"microseconds": 1, "milliseconds": 1_000, "seconds": 1_000_000}
# The lengths of a kept text without its suffix, by the precision that is shown.
_LENGTHS = {"microseconds": 26, "milliseconds": 23, "seconds": 19}
_LENGTH_KEPT = 27
_SUFFIXES = {"Z": "Z", "offset": "+00:00", "none": ""}


def wall_clock() -> datetime:
    """The machine's time, in UTC."""
    return datetime.now(UTC)


def keep(moment: datetime) -> str:
    """The text under which an aware moment is kept: UTC, microseconds, `Z`."""
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


def truncate(moment: datetime, behaviours: Behaviours) -> datetime:
    """The moment in the precision that the server keeps (`timestamp_precision`)."""
    unit = _MICROSECONDS_KEPT[behaviours.timestamp_precision]
    return moment.replace(microsecond=moment.microsecond // unit * unit)


def read_date(text: str) -> date:
    """The day of a `YYYY-MM-DD` text, and of no other form. Raises `ValueError`."""
    if len(text) != len("2024-01-31"):
        raise ValueError(text)
    return date.fromisoformat(text)


def show(kept: str, behaviours: Behaviours) -> str:
    """A kept text as answers show it (API conventions: any ISO 8601 form in UTC).

    A text of another form, which only a test can have put there, is shown as it is.
    """
    if len(kept) != _LENGTH_KEPT:
        return kept
    digits = kept[: _LENGTHS[behaviours.timestamp_precision]]
    return digits + _SUFFIXES[behaviours.timestamp_suffix]
