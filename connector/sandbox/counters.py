"""A company's counters, computed from jobs and bookings whenever they are shown (API 2.3).

What counts as active, or as a placement, is not shown; the two conditions below are ours.
Counting writes nothing, so that a counter changes while the company's `updated_at` stands.
"""

from __future__ import annotations

from collections.abc import Iterable

from connector.sandbox.shelf import Shelf, Where

_ACTIVE = "t.status = 'published'"
_PLACEMENT = (
    "t.booking_type IN ('contract', 'permanent') "
    "AND t.status IN ('confirmed', 'in_progress', 'completed')"
)

Counters = dict[str, int]


def count_for(companies: Iterable[str], jobs: Shelf, bookings: Shelf) -> dict[str, Counters]:
    """The three counters of each company by its id."""
    ids = tuple(companies)
    counted = {id: {"jobs_count": 0, "active_jobs_count": 0, "placements_count": 0} for id in ids}
    among = Where(f"t.company_id IN ({', '.join('?' * len(ids))})", ids)
    for name, shelf, where in (
        ("jobs_count", jobs, among),
        ("active_jobs_count", jobs, among.narrowed(_ACTIVE)),
        ("placements_count", bookings, among.narrowed(_PLACEMENT)),
    ):
        for id, number in shelf.tally(where, "company_id"):
            counted[id][name] = number
    return counted


def count_all(jobs: Shelf, bookings: Shelf) -> dict[str, Counters]:
    """The counters of every company that has any, by its id."""
    present = Where("t.company_id IS NOT NULL")
    ids = {id for shelf in (jobs, bookings) for id, _ in shelf.tally(present, "company_id")}
    counted: dict[str, Counters] = {}
    listed = sorted(ids)
    # In slices, since SQLite bounds the parameters of one statement.
    for start in range(0, len(listed), 500):
        counted |= count_for(listed[start : start + 500], jobs, bookings)
    return counted
