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
    """Records that are still to be read, and the estimated requests.

    Args:
        month_share: Share of the month's quota; None if no quota is set.
        is_known: False while a list is being read, so that there may be more records.
    """

    records: int
    requests: int
    month_share: float | None
    is_known: bool

    def __str__(self) -> str:
        about = "about" if self.is_known else "at least"
        text = f"Left to read: {count_noun(self.records, 'record')}, with {about}"
        text += f" {count_noun(self.requests, 'request')}"
        if self.month_share is not None:
            text += f" ({self.month_share:.1%} of the month's quota)"
        return f"{text}."


def estimate_backlog(
    waiting: Collection[UnreadCounts], *, month_limit: int | None, is_known: bool
) -> Backlog | None:
    """Estimate the requests for these resources; None if the collection is empty."""
    if not waiting:
        return None
    # One for each record and two for the scan. Without a finished first load, each page of the
    # second read needs one more.
    requests = sum(
        each.pending + (0 if each.is_loaded else -(-each.live // PER_PAGE_MAX)) + 2
        for each in waiting
    )
    share = requests / month_limit if month_limit else None
    return Backlog(sum(each.pending for each in waiting), requests, share, is_known)
