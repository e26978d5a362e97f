"""Sentences that several commands print."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import timedelta
from typing import NamedTuple

from connector.catalog.page import PER_PAGE_MAX
from connector.errors import count_noun
from connector.ledger.quota import requests_left


def describe_cost(requests: int, seconds: float) -> str:
    """Return the cost of a run, as in "5 requests in 1.2 s"."""
    return f"{count_noun(requests, 'request')} in {seconds:,.1f} s"


def describe_age(time: timedelta) -> str:
    """Return a length of time in its largest unit, as in "3 h"."""
    seconds = max(0.0, time.total_seconds())
    for unit_seconds, unit in ((86_400, "d"), (3600, "h"), (60, "min")):
        if seconds >= unit_seconds:
            return f"{seconds / unit_seconds:.0f} {unit}"
    return f"{seconds:.0f} s"


class Unread(NamedTuple):
    """Records of a resource that wait to be read, and all its records."""

    pending: int
    live: int
    is_loaded: bool


@dataclass(frozen=True, slots=True)
class Backlog:
    """Records that are still to be read, and what reading them needs.

    Args:
        records: Number of records.
        requests: Estimated number of requests.
        per_minute: Requests per minute; None if unknown.
        month_share: Share of the month's quota; None if no quota is set.
        is_known: False while a list is being read, so that there may be more records.
    """

    records: int
    requests: int
    per_minute: float | None
    month_share: float | None
    is_known: bool

    @classmethod
    def of(
        cls,
        waiting: Collection[Unread],
        *,
        month_limit: int | None,
        is_known: bool,
        per_minute: float | None = None,
    ) -> Backlog | None:
        """Return the backlog of several resources; None if no resource waits."""
        if not waiting:
            return None
        requests = sum(requests_left(**each._asdict(), per_page=PER_PAGE_MAX) for each in waiting)
        share = requests / month_limit if month_limit else None
        records = sum(each.pending for each in waiting)
        return cls(records, requests, per_minute, share, is_known)

    @property
    def minutes(self) -> float | None:
        """Minutes that the requests take."""
        return self.requests / self.per_minute if self.per_minute else None

    def __str__(self) -> str:
        about = "about" if self.is_known else "at least"
        records = count_noun(self.records, "record")
        text = f"Left to read: {records}, with {about} {count_noun(self.requests, 'request')}"
        if self.month_share is not None:
            text += f" ({self.month_share:.1%} of the month's quota)"
        if self.minutes is not None:
            minutes = self.minutes
            time = f"about {minutes:,.0f} min" if minutes < 90 else f"about {minutes / 60:,.1f} h"
            time = time if minutes >= 1 else "less than a minute"
            text += f", {time} at {self.per_minute:,.0f} requests a minute"
        return f"{text}."
