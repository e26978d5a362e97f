"""Records that are still to be read, for a stopped pull and for `status`."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import NamedTuple

from connector.catalog.resource import PER_PAGE_MAX
from connector.errors import count_noun


class UnreadCounts(NamedTuple):
    """Number of a resource's pending and live records, and True if its first load is complete."""

    pending: int
    live: int
    is_loaded: bool


@dataclass(frozen=True, slots=True)
class Backlog:
    """Records that are still to be read, and the estimated requests and minutes.

    Args:
        month_share: Share of the month's quota; None if no quota is set.
        per_minute: Requests per minute; None if unknown.
        is_known: False while a list is being read, so that there may be more records.
    """

    records: int
    requests: int
    minutes: float | None
    month_share: float | None
    per_minute: float | None
    is_known: bool

    def __str__(self) -> str:
        about = "about" if self.is_known else "at least"
        text = f"Left to read: {count_noun(self.records, 'record')}, with {about}"
        text += f" {count_noun(self.requests, 'request')}"
        if self.month_share is not None:
            text += f" ({self.month_share:.1%} of the month's quota)"
        if self.minutes is not None:
            hours = f"about {self.minutes / 60:,.1f} h"
            time = f"about {self.minutes:,.0f} min" if self.minutes < 90 else hours
            time = time if self.minutes >= 1 else "less than a minute"
            text += f", {time} at {self.per_minute:,.0f} requests a minute"
        return f"{text}."


def estimate_backlog(
    waiting: Collection[UnreadCounts], *, month_limit: int | None, is_known: bool,
    per_minute: float | None = None,
) -> Backlog | None:  # fmt: skip
    """Estimate the requests for these resources; None if the collection is empty."""
    # One for each record and two for the scan. Without a finished first load, each page of the
    # second read needs one more.
    requests = sum(
        each.pending + (0 if each.is_loaded else -(-each.live // PER_PAGE_MAX)) + 2
        for each in waiting
    )
    minutes = requests / per_minute if per_minute else None
    share = requests / month_limit if month_limit else None
    records = sum(each.pending for each in waiting)
    return Backlog(records, requests, minutes, share, per_minute, is_known) if waiting else None
