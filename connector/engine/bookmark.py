"""What is known of one stream as a whole, from one pull to the next."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from connector.catalog.resource import Declaration

LATENESS_SECONDS = 120.0
"""How late a write may become visible (L), unless a stream has shown worse."""


@dataclass(frozen=True, slots=True)
class Stream:
    """What one bookmark covers: a resource, or the items of one content type (`parent`, its id)."""

    resource: Declaration
    parent: str | None = None

    @property
    def name(self) -> str:
        """The resource's name, with the parent's id where there is one."""
        return f"{self.resource.name}/{self.parent}" if self.parent else self.resource.name


@dataclass(frozen=True, slots=True)
class Bookmark:
    """What is known of one stream as a whole; committed only together with the rows that it covers.

    `proven_at` is R: everything with `updated_at <= R - L` is landed or queued. `opened_at` is T0
    of a pass that has begun and not ended; it becomes R once the pass is proven. `load_page`
    counts the pages that the opening sweep of a first load has landed, and `verify_page` those
    that its second look has; both are None outside of that phase. `is_sorted` turns false for
    good once the server was seen not to sort. `scrubbed_to` is the `created_at` up to which the
    list scrub has come in its round, None at a round's beginning. `total_offset` is by how many
    the list's rows exceed its own total, None while that was not measured: then that as many rows
    are live as the total says proves nothing.

    `closed_by` is the record whose clean reading closed the last proven walk, `closed_floor` the
    floor of that walk, or of an earlier one that ended less than L before. Without the former the
    latter says that the walk is not trusted any more, and that the next one must reach down to that
    floor again. `clock_ahead_seconds` is how far the server's clock was ahead of ours when R was
    set, or when it was last found to be set back. `alarms` counts the walks in a row that found the
    list out of order, and `late_seconds_seen` is the latest that a write was ever seen to be.
    `listed` is the list's total when it was last believed.
    """

    proven_at: datetime | None = None
    lateness_seconds: float = LATENESS_SECONDS
    opened_at: datetime | None = None
    load_page: int | None = None
    verify_page: int | None = None
    is_sorted: bool = True
    scrubbed_to: datetime | None = None
    total_offset: int | None = None
    closed_by: str | None = None
    closed_floor: datetime | None = None
    clock_ahead_seconds: float | None = None
    alarms: int = 0
    late_seconds_seen: float = 0.0
    listed: int | None = None


def floor_of(bookmark: Bookmark) -> datetime:
    """W: everything at or below it is landed, or queued."""
    assert bookmark.proven_at is not None
    floor = bookmark.proven_at - timedelta(seconds=bookmark.lateness_seconds)
    if bookmark.closed_by is None and bookmark.closed_floor is not None:
        return min(floor, bookmark.closed_floor)
    return floor
