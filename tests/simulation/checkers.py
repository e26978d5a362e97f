"""Checks of a simulated pull, each named for its promise.

Checks of the final state return the ids of the wrong records. Checks of a commit raise
`BrokenPromise`; `check_commit` calls all of them.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from connector.pulls.pull import floor_of
from connector.warehouse.stream import Bookmark, Commit
from tests.simulation.harness import BrokenPromise
from tests.simulation.mirror import Mirror, parse_timestamp

OPENING_SECONDS = 3.0
"""Maximum time from the bookmark to the request of its list, since `Date` has whole seconds."""


# -- exact ----------------------------------------------------------------------------------------


def find_missing(mirror: Mirror) -> set[str]:
    """Return ids that the server has, and that the mirror lacks or holds only as a list item."""
    return {
        id
        for id in mirror.world.server.created_at
        if id not in mirror.rows or (not mirror.rows[id].is_deleted and not mirror.rows[id].read_at)
    }


def find_not_deleted(mirror: Mirror) -> set[str]:
    """Return ids that the server has deleted and the mirror has not."""
    held = mirror.world.server.created_at
    return {id for id, row in mirror.rows.items() if not row.is_deleted and id not in held}


def find_stale(mirror: Mirror) -> set[str]:
    """Return ids whose fields in the mirror differ from the server's."""
    return {
        id
        for id, raw in mirror.world.server.all_details().items()
        if (row := mirror.rows.get(id)) is not None and row.read_at is not None and row.raw != raw
    }


def find_falsely_deleted(mirror: Mirror) -> set[str]:
    """Return ids that are deleted in the mirror and exist on the server."""
    held = mirror.world.server.created_at
    return {id for id, row in mirror.rows.items() if row.is_deleted and id in held}


def find_differences(mirror: Mirror) -> dict[str, set[str]]:
    """Return the ids that differ between mirror and server, by kind of difference."""
    found = {
        "missing": find_missing(mirror),
        "ghosts": find_not_deleted(mirror),
        "stale": find_stale(mirror),
        "falsely deleted": find_falsely_deleted(mirror),
    }
    return {promise: ids for promise, ids in found.items() if ids}


# -- at every commit ------------------------------------------------------------------------------


def find_unread_changes(mirror: Mirror, bookmark: Bookmark) -> set[str]:
    """Return ids changed at or below the bookmark's floor that the mirror neither has nor queued
    (I1, I2).

    The result must be empty at any time, also while records change.
    """
    if bookmark.proven_at is None:
        return set()
    floor = floor_of(bookmark)
    rows, queue = mirror.rows, mirror.queue
    return {
        id
        for id, raw in mirror.world.server.all_details().items()
        if not ((row := rows.get(id)) is not None and row.raw is raw and not row.is_deleted)
        and id not in queue
        and (row is None or row.is_deleted or row.raw != raw)
        and (updated_at := parse_timestamp(raw["updated_at"])) is not None
        and updated_at <= floor
    }


def check_bookmark_covers_only_read_changes(mirror: Mirror, after: Bookmark) -> None:
    """I1 and I2: fail if a change that the new bookmark covers was not read."""
    if found := find_unread_changes(mirror, after):
        raise BrokenPromise("I1/I2", f"{sorted(found)} changed at or below {after.proven_at} - L")


def check_bookmark_never_goes_back(before: Bookmark, after: Bookmark) -> None:
    """First half of I3: fail if the bookmark or its allowance for late writes decreases."""
    if before.proven_at is not None and (
        after.proven_at is None or after.proven_at < before.proven_at
    ):
        raise BrokenPromise("I3", f"R went back from {before.proven_at} to {after.proven_at}")
    if after.lateness_seconds < before.lateness_seconds:
        raise BrokenPromise(
            "I3", f"L fell from {before.lateness_seconds} to {after.lateness_seconds}"
        )


def check_bookmark_is_the_start_of_a_list(
    mirror: Mirror, before: Bookmark, after: Bookmark
) -> None:
    """Second half of I3: fail if the bookmark is not the server's time just before some list."""
    if after.proven_at == before.proven_at:
        return
    assert after.proven_at is not None
    ranges = _list_start_ranges(mirror)
    if not any(earliest <= after.proven_at <= latest for earliest, latest in ranges):
        raise BrokenPromise("I3", f"R = {after.proven_at} is the opening of no list")


def _list_start_ranges(mirror: Mirror) -> list[tuple[datetime, datetime]]:
    """Return, for each list page, the earliest and latest server time at which it was requested."""
    return [
        (
            page.timestamp - timedelta(seconds=page.round_trip_seconds + OPENING_SECONDS),
            page.timestamp - timedelta(seconds=page.round_trip_seconds),
        )
        for page in mirror.seen.pages
    ]


def check_tombstones_have_proof(mirror: Mirror, commit: Commit) -> None:
    """I4: fail if a record is marked as deleted without a response that proves it."""
    for id, gone in commit.gone.items():
        if not any(gone is each for each in mirror.seen.gone.get(id, ())):
            raise BrokenPromise("I4", f"{id} was never said to be gone")


def check_commit(mirror: Mirror, commit: Commit) -> None:
    """Run all checks of a commit, after its rows and before its bookmark are in the mirror."""
    before = mirror.bookmark
    after = commit.bookmark or before
    check_tombstones_have_proof(mirror, commit)
    check_bookmark_never_goes_back(before, after)
    check_bookmark_is_the_start_of_a_list(mirror, before, after)
    if mirror.world.scenario.keeps_assumptions:
        check_bookmark_covers_only_read_changes(mirror, after)


# -- what it costs --------------------------------------------------------------------------------


def count_requests_of_quiet_pull(mirror: Mirror) -> int:
    """Let time pass and pull, twice, and return the requests of the second pull."""
    world = mirror.world
    for _ in range(2):
        world.pass_time(mirror.bookmark.lateness_seconds * 2 + 60)
        before = world.requests
        mirror.pull()
    return world.requests - before


def expected_requests_of_quiet_pull(mirror: Mirror) -> int:
    """Return the requests that a pull without changes needs: a list, and one detail if lists show
    no dates.

    Records with a null or future date are read each time, and future ones are listed first.
    """
    server = mirror.world.server
    if server.declaration.lists_updated_at or not server.created_at:
        return 1
    odd = sum(not dated or dated.startswith("2099") for dated in server.updated_at.values())
    has_far = mirror.world.scenario.odd_dates == "future"
    lists = odd // mirror.world.scenario.per_page_max + 1 if has_far else 1
    return lists + 1 + odd
