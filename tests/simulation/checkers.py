"""What a simulated run is judged by; each checker is named for the promise that it checks."""

from __future__ import annotations

from datetime import timedelta

from connector.value import read_datetime
from tests.simulation.world import Mirror, World


def missing(world: World, mirror: Mirror) -> set[str]:
    """Records that the API has and the landing has not, or only as a list item."""
    return {
        id
        for id in world.store.records("candidates")
        if id not in mirror.rows or mirror.rows[id].is_deleted or mirror.rows[id].read_at is None
    }


def ghosts(world: World, mirror: Mirror) -> set[str]:
    """Rows that pass for live and that the API has no more."""
    held = world.store.records("candidates")
    return {id for id, row in mirror.rows.items() if not row.is_deleted and id not in held}


def stale(world: World, mirror: Mirror) -> set[str]:
    """Records whose landed fields are not those of the API."""
    held = world.store.records("candidates")
    return {id for id, row in mirror.rows.items() if id in held and row.raw != held[id]}


def falsely_deleted(world: World, mirror: Mirror) -> set[str]:
    """Tombstones of records that live."""
    held = world.store.records("candidates")
    return {id for id, row in mirror.rows.items() if row.is_deleted and id in held}


def unproven(world: World, mirror: Mirror) -> set[str]:
    """Records at or below the floor that are neither landed as they are nor queued (I1, I2).

    Holds at every moment, busy or not: it is what the bookmark says.
    """
    proven_at = mirror.bookmark.proven_at
    if proven_at is None:
        return set()
    floor = proven_at - timedelta(seconds=mirror.bookmark.lateness_seconds)
    return {
        id
        for id, record in world.store.records("candidates").items()
        if read_datetime(record["updated_at"]) <= floor
        and id not in mirror.queue
        and (id not in mirror.rows or mirror.rows[id].raw != record)
    }
