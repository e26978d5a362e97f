"""What a simulated run is judged by; each checker is named for the promise that it checks.

Those of the end state return the ids that break the promise. Those of a commit raise `Broken`;
`judge` calls them all, at every commit.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from connector.warehouse.pull_commands import Bookmark, Commit, floor_of
from tests.simulation.harness import Broken
from tests.simulation.mirror import Mirror, moment

OPENING_SECONDS = 3.0
"""T0 may lie so much before the request of its list: it is cut to the second, and never later."""


# -- exact ----------------------------------------------------------------------------------------


def missing(mirror: Mirror) -> set[str]:
    """Records that the API has and the landing has not, or only as a list item."""
    return {
        id
        for id in mirror.world.server.born
        if id not in mirror.rows or (not mirror.rows[id].is_deleted and not mirror.rows[id].read_at)
    }


def ghosts(mirror: Mirror) -> set[str]:
    """Rows that pass for live and that the API has no more."""
    held = mirror.world.server.born
    return {id for id, row in mirror.rows.items() if not row.is_deleted and id not in held}


def stale(mirror: Mirror) -> set[str]:
    """Records whose landed fields are not those of the API."""
    return {
        id
        for id, raw in mirror.world.server.details().items()
        if (row := mirror.rows.get(id)) is not None and row.read_at is not None and row.raw != raw
    }


def falsely_deleted(mirror: Mirror) -> set[str]:
    """Tombstones of records that live."""
    held = mirror.world.server.born
    return {id for id, row in mirror.rows.items() if row.is_deleted and id in held}


def differences(mirror: Mirror) -> dict[str, set[str]]:
    """Everything in which the landing is not the API, by the checker that found it."""
    found = {
        "missing": missing(mirror),
        "ghosts": ghosts(mirror),
        "stale": stale(mirror),
        "falsely deleted": falsely_deleted(mirror),
    }
    return {promise: ids for promise, ids in found.items() if ids}


# -- at every commit ------------------------------------------------------------------------------


def unproven(mirror: Mirror, bookmark: Bookmark) -> set[str]:
    """Records at or below the floor that are neither landed as they are nor queued (I1, I2).

    Holds at every moment, busy or not: it is what the bookmark says.
    """
    if bookmark.proven_at is None:
        return set()
    floor = floor_of(bookmark)
    rows, queue = mirror.rows, mirror.queue
    return {
        id
        for id, raw in mirror.world.server.details().items()
        if not ((row := rows.get(id)) is not None and row.raw is raw and not row.is_deleted)
        and id not in queue
        and (row is None or row.is_deleted or row.raw != raw)
        and (updated_at := moment(raw["updated_at"])) is not None
        and updated_at <= floor
    }


def the_bookmark_says_no_more_than_is_true(mirror: Mirror, after: Bookmark) -> None:
    """I1 and I2."""
    if found := unproven(mirror, after):
        raise Broken("I1/I2", f"{sorted(found)} changed at or below {after.proven_at} - L")


def the_bookmark_never_goes_back(before: Bookmark, after: Bookmark) -> None:
    """I3, its first half; neither is what was once allowed for lateness taken back."""
    if before.proven_at is not None and (
        after.proven_at is None or after.proven_at < before.proven_at
    ):
        raise Broken("I3", f"R went back from {before.proven_at} to {after.proven_at}")
    if after.lateness_seconds < before.lateness_seconds:
        raise Broken("I3", f"L fell from {before.lateness_seconds} to {after.lateness_seconds}")


def the_bookmark_moves_only_with_evidence(
    mirror: Mirror, before: Bookmark, after: Bookmark
) -> None:
    """I3, its second half: R is the server's time just before some list that was answered."""
    if after.proven_at == before.proven_at:
        return
    assert after.proven_at is not None
    if not any(_opens(after.proven_at, page) for page in _openings(mirror)):
        raise Broken("I3", f"R = {after.proven_at} is the opening of no list")


def _openings(mirror: Mirror) -> list[tuple[datetime, datetime]]:
    return [
        (
            page.timestamp - timedelta(seconds=page.round_trip_seconds + OPENING_SECONDS),
            page.timestamp - timedelta(seconds=page.round_trip_seconds),
        )
        for page in mirror.seen.pages
    ]


def _opens(at: datetime, bounds: tuple[datetime, datetime]) -> bool:
    return bounds[0] <= at <= bounds[1]


def every_tombstone_has_evidence(mirror: Mirror, what: Commit) -> None:
    """I4: only the API's own words that a record is gone make a tombstone."""
    for id, gone in what.gone.items():
        if not any(gone is each for each in mirror.seen.gone.get(id, ())):
            raise Broken("I4", f"{id} was never said to be gone")


def judge(mirror: Mirror, what: Commit) -> None:
    """All that must hold of a commit; its rows are in the mirror, its bookmark not yet."""
    before = mirror.bookmark
    after = what.bookmark or before
    every_tombstone_has_evidence(mirror, what)
    the_bookmark_never_goes_back(before, after)
    the_bookmark_moves_only_with_evidence(mirror, before, after)
    if mirror.world.scenario.keeps_assumptions:
        the_bookmark_says_no_more_than_is_true(mirror, after)


# -- what it costs --------------------------------------------------------------------------------


def quiet_requests(mirror: Mirror) -> int:
    """The requests of a pull in which nothing is new, long after one in which nothing was."""
    world = mirror.world
    for _ in range(2):
        world.pass_time(mirror.bookmark.lateness_seconds * 2 + 60)
        before = world.requests
        mirror.pull()
    return world.requests - before


def quiet_requests_due(mirror: Mirror) -> int:
    """Return the requests that this pull needs: a list, and one detail if lists show no dates.

    Records whose dates can never be proven are read each time, and listed before all others.
    """
    server = mirror.world.server
    if server.declaration.lists_updated_at or not server.born:
        return 1
    odd = sum(not dated or dated.startswith("2099") for dated in server.dated.values())
    has_far = mirror.world.scenario.odd_dates == "future"
    lists = odd // mirror.world.scenario.per_page_max + 1 if has_far else 1
    return lists + 1 + odd
