"""Queries of a pull, answered from one stream's rows and queue. They only read."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from connector.catalog import CATALOG
from connector.catalog.resource import Declaration, Resource
from connector.warehouse.file import Connection, literal, quoted, run_staged
from connector.warehouse.landing import stored_rows
from connector.warehouse.schema import differs_from_item
from connector.warehouse.stream import LandedRow, Stream


class StreamQueries:
    """Answers the queries of `pulls.pull.Copy`, which describes them."""

    def __init__(self, connection: Connection, stream: Stream) -> None:
        self._connection, self._resource = connection, stream.resource
        self._name = f"landing.{quoted(stream.resource.name)}"
        parent = literal(stream.parent or "")
        own = f"_content_type_id = {parent}" if stream.resource.parent else "TRUE"
        self._live = f"FROM {self._name} WHERE _deleted_at IS NULL AND {own}"
        self._queue = (
            f"sync.queue WHERE resource = {literal(self._resource.name)} AND parent = {parent}"
        )
        self._is_queued = f"id IN (SELECT id FROM {self._queue})"

    def rows_of(self, ids: Collection[str]) -> dict[str, LandedRow]:
        """Return the rows with these ids, by id."""
        rows = run_staged(
            self._connection,
            {"id": ids},
            "SELECT id, CASE WHEN _hydrated_at IS NOT NULL THEN updated_at END, _hydrated_at, "
            f"{self._is_queued}, _deleted_at IS NOT NULL FROM {self._name} "
            "WHERE id IN (SELECT id FROM stage)",
        )
        return {id: LandedRow(*values) for id, *values in rows}

    def differing(self, items: Collection[Resource]) -> set[str]:
        """Return the ids of list items that differ from the loaded details."""
        stored = stored_rows(self._connection, self._resource.name, [each.id for each in items])
        return {
            each.id
            for each in items
            if (row := stored.get(each.id)) is not None
            and row.read_at is not None
            and differs_from_item(self._resource, each.raw, json.loads(row.text))
        }

    def live(self, after: datetime | None, before: datetime | None) -> frozenset[str]:
        """Return live ids created strictly between two times (None: no bound)."""
        return frozenset(
            self._first(f"SELECT id {self._live}{_between('created_at', after, before)}")
        )

    def updated(self, after: datetime, before: datetime) -> frozenset[str]:
        """Return live ids, not queued, whose `updated_at` is strictly between two times."""
        bounds = _between("updated_at", after, before)
        return frozenset(self._first(f"SELECT id {self._live}{bounds} AND NOT {self._is_queued}"))

    def undated(self, after: datetime) -> tuple[str, ...]:
        """Return live ids whose detail has no `updated_at`, or one after this time."""
        return self._first(
            f"SELECT id {self._live} AND _hydrated_at IS NOT NULL AND (updated_at IS NULL "
            f"OR updated_at > {_time(after)}) ORDER BY id"
        )

    def oldest(self, count: int) -> tuple[str, ...]:
        """Return live ids, not queued, whose details were read longest ago."""
        return self._first(
            f"SELECT id {self._live} AND _hydrated_at IS NOT NULL AND NOT {self._is_queued} "
            f"ORDER BY _hydrated_at, id LIMIT {count}"
        )

    def count(self, before: datetime | None = None) -> int:
        """Return the number of live rows, optionally of those created before a time."""
        count: int = self._first(
            f"SELECT count(*) {self._live}{_between('created_at', None, before)}"
        )[0]
        return count

    def queued(self, count: int, skip: Collection[str]) -> tuple[str, ...]:
        """Return at most `count` queued ids, newest first, except `skip`."""
        return self._first(
            f"SELECT id FROM {self._queue} AND NOT list_contains(?, id) "
            f"ORDER BY created_at DESC NULLS LAST, id LIMIT {count}",
            [list(skip)],
        )

    def _first(self, sql: str, values: Sequence[Any] | None = None) -> tuple[Any, ...]:
        return first_column(self._connection, sql, values)


def _between(column: str, after: datetime | None, before: datetime | None) -> str:
    """Return SQL conditions for times between the bounds (None: no bound).

    Literals let DuckDB skip row groups outside of them.
    """
    bounds = ((">", after), ("<", before))
    return "".join(
        f" AND {column} {sign} {_time(bound)}" for sign, bound in bounds if bound is not None
    )


def _time(at: datetime) -> str:
    """Return a time as SQL."""
    return f"TIMESTAMPTZ '{at.isoformat()}'"


# -- Resources -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ResourceState:
    """State of a resource over all its streams, with numbers of rows. None is unknown.

    Attributes:
        listed_only: Live rows without a detail.
        pending: Queued records.
        broken: Queued records that could not be read in several runs.
        proven_at: Time up to which the resource is verified; None if it is not.
        is_listing: True while the list of a first load is being read.
        lateness_seconds: Greatest assumed delay of a stream.
        oldest_read_at: Time of the least recently read detail of a live row.
    """

    resource: str
    live: int
    listed_only: int | None
    deleted: int | None
    pending: int
    broken: int = 0
    proven_at: datetime | None = None
    is_listing: bool = False
    lateness_seconds: float | None = None
    oldest_read_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class UnreadRecord:
    """Queued record that could not be read, with its last error and the number of failed runs."""

    id: str
    error: str
    failed_runs: int

    @property
    def is_broken(self) -> bool:
        """Return True if reading it failed in several runs, so that a retry will not help."""
        return self.failed_runs >= BROKEN_RUNS_MIN


BROKEN_RUNS_MIN = 2

PROVEN_AT = "CASE WHEN bool_and(proven_at IS NOT NULL) THEN min(proven_at) END"
"""SQL for the time up to which a resource is verified: the earliest of its streams."""


def resource_state(connection: Connection, resource: str) -> ResourceState:
    """Return the state of a resource over all its streams."""
    ((live, listed, deleted, oldest),) = connection.execute(
        "SELECT count(*) FILTER (_deleted_at IS NULL), "
        "count(*) FILTER (_deleted_at IS NULL AND _hydrated_at IS NULL), "
        "count(*) FILTER (_deleted_at IS NOT NULL), "
        "min(_hydrated_at) FILTER (_deleted_at IS NULL) "
        f"FROM landing.{quoted(resource)}"
    ).fetchall()
    ((pending, broken),) = connection.execute(
        "SELECT count(*), count(*) FILTER (failed_runs >= ?) FROM sync.queue WHERE resource = ?",
        [BROKEN_RUNS_MIN, resource],
    ).fetchall()
    ((proven, is_listing, lateness),) = connection.execute(
        f"SELECT {PROVEN_AT}, coalesce(bool_or(load_page IS NOT NULL), FALSE), "
        "max(lateness_seconds) FROM sync.bookmarks WHERE resource = ?",
        [resource],
    ).fetchall()
    return ResourceState(
        *(resource, live, listed, deleted, pending, broken, proven, is_listing, lateness, oldest)
    )


def unread_records(connection: Connection, resource: str) -> tuple[UnreadRecord, ...]:
    """Return the queued records of the resource that could not be read, most failed runs first."""
    rows = connection.execute(
        "SELECT id, error, failed_runs FROM sync.queue WHERE resource = ? AND failed_runs > 0"
        " ORDER BY failed_runs DESC, id",
        [resource],
    ).fetchall()
    return tuple(UnreadRecord(*row) for row in rows)


def verified_at(connection: Connection) -> dict[str, datetime | None]:
    """Return the time up to which each resource is verified; None if it is not."""
    return dict(connection.execute(
        f"SELECT resource, {PROVEN_AT} FROM sync.bookmarks GROUP BY resource ORDER BY resource"
    ).fetchall())  # fmt: skip


def first_column(
    connection: Connection, sql: str, values: Sequence[Any] | None = None
) -> tuple[Any, ...]:
    """Return the first column of the result of a query."""
    return tuple(first for first, *_ in connection.execute(sql, values).fetchall())


def bookmark_runs(connection: Connection, resource: str) -> set[str]:
    """Return the runs that wrote the resource's bookmarks."""
    sql = "SELECT run_id FROM sync.bookmarks WHERE resource = ?"
    return {*first_column(connection, sql, [resource])}


def live_ids(connection: Connection, resource: str) -> tuple[str, ...]:
    """Return ids of the live loaded records, in order of creation."""
    return first_column(
        connection,
        f"SELECT id FROM landing.{quoted(resource)} WHERE _deleted_at IS NULL "
        "ORDER BY created_at, id",
    )


def find_by_slug_or_id(connection: Connection, resource: str, name: str) -> tuple[str, ...]:
    """Return ids of the live loaded records whose slug or id is `name`."""
    live = f"SELECT id FROM landing.{quoted(resource)} WHERE _deleted_at IS NULL"
    return first_column(connection, f"{live} AND (slug = $1 OR id = $1)", [name])


def deleted_parents(connection: Connection, resource: Declaration) -> tuple[str, ...]:
    """Return ids of deleted parents that have live items or a bookmark."""
    parents, rows = quoted(resource.parent or ""), quoted(resource.name)
    return first_column(
        connection,
        f"SELECT parent FROM (SELECT _content_type_id AS parent FROM landing.{rows} "
        "WHERE _deleted_at IS NULL UNION SELECT parent FROM sync.bookmarks WHERE resource = ?) "
        f"WHERE parent NOT IN (SELECT id FROM landing.{parents} WHERE _deleted_at IS NULL) "
        "ORDER BY parent",
        [resource.name],
    )


TWIN_SECONDS = 60
"""Time between a pushed record and another one with its identity, which a repeated request made."""


def twins(connection: Connection, resource: Declaration, pushed: Collection[str]) -> list[str]:
    """Return live ids that pushes did not create, made together with one of the `pushed` records.

    They have the same natural key. A proxy that sends a request twice makes such records.
    """
    table, found = f"landing.{quoted(resource.name)}", set[str]()
    for key in resource.natural_keys:
        same = (f"lower(twin.{quoted(n)}::VARCHAR) = lower(made.{quoted(n)}::VARCHAR)" for n in key)
        rows = run_staged(
            connection,
            {"id": pushed},
            f"SELECT twin.id FROM {table} AS made JOIN {table} AS twin ON {' AND '.join(same)} "
            "WHERE made.id IN (SELECT id FROM stage) AND twin.id NOT IN (SELECT id FROM stage) "
            "AND twin._deleted_at IS NULL "
            f"AND abs(epoch(twin.created_at) - epoch(made.created_at)) <= {TWIN_SECONDS}",
        )
        found |= {id for (id,) in rows}
    return sorted(found)


def returned_people(connection: Connection, purges: Mapping[str, datetime]) -> list[str]:
    """Return purged ids whose rows have personal values that were read before the purge.

    Either the purge was interrupted, or an older work file was put back. `purges` has the time of
    each id's last purge.
    """
    found = list[str]()
    stage = {"id": purges, "purged_at": purges.values()}
    for resource in CATALOG.values():
        if any(each.is_record for each in resource.subjects):
            personal = (f"{quoted(e.name)}::VARCHAR" for e in resource.detail_fields if e.personal)
            rows = run_staged(
                connection,
                stage,
                f"SELECT id FROM landing.{quoted(resource.name)} JOIN stage USING (id) WHERE "
                f"coalesce({', '.join(personal)}) IS NOT NULL AND _hydrated_at < purged_at",
            )
            found += [id for (id,) in rows]
    return found


def has_bookmarks(connection: Connection) -> bool:
    """Return True if a pull has loaded something."""
    return bool(connection.execute("SELECT 1 FROM sync.bookmarks LIMIT 1").fetchall())


def read_identity(connection: Connection) -> tuple[str, str, str] | None:
    """Return folder, address and version of the folder's identity; None if it has none yet."""
    rows = connection.execute("SELECT folder, address, written_by FROM sync.folder").fetchall()
    return rows[0] if rows else None


def write_identity(connection: Connection, identity: Sequence[str]) -> None:
    """Replace folder, address and version of the folder's identity."""
    connection.execute("DELETE FROM sync.folder")
    connection.execute("INSERT INTO sync.folder VALUES (?, ?, ?)", list(identity))
