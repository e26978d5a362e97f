"""State other than rows: bookmarks, events, and the state of each resource.

All functions use an open connection; the caller begins and ends the transaction.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import duckdb
import pyarrow as pa

from connector.catalog import CATALOG, declaration
from connector.catalog.field import parse_datetime
from connector.state.runs import Identity
from connector.warehouse.duckdb_file import from_microseconds, quoted, staged_table, to_iso
from connector.warehouse.internal_tables import RowMapper, column_types
from connector.warehouse.runs import (
    PROVEN_AT,
    PUBLICATIONS_READ,
    RUNS_READ,
    ResourceRun,
    RunHealth,
    last_publications,
    last_resource_runs,
    last_runs,
)
from connector.warehouse.schema import ARROW_TYPES, as_json, replace_surrogates
from connector.warehouse.stream import Bookmark, Event, Stream

_ONCE = frozenset({"unknown_field", "unknown_value", "unreadable_value", "unsorted"})
"""Kinds of event that are only reported once for a resource."""


@dataclass(frozen=True, slots=True)
class ResourceState:
    """State of a resource over all its streams.

    Attributes:
        live: Number of rows that are not deleted.
        listed_only: Number of live rows without a detail.
        pending: Number of queued records.
        proven_at: Time up to which the resource is verified; None if it is not.
        last: Result of its latest run.
        is_listing: True while the list of a first load is being read.
        lateness_seconds: Greatest assumed delay of a stream; None if it was never pulled.
        oldest_read_at: Time of the least recently read detail of a live row.
        broken: Number of `pending` records that could not be read in several runs.
    """

    resource: str
    live: int
    listed_only: int
    deleted: int
    pending: int
    proven_at: datetime | None
    last: ResourceRun | None
    is_listing: bool = False
    lateness_seconds: float | None = None
    oldest_read_at: datetime | None = None
    broken: int = 0


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
"""Number of runs after which an unreadable record is not expected to become readable."""

_UNREAD = RowMapper(UnreadRecord, "sync.queue")


def read_unread(connection: duckdb.DuckDBPyConnection, resource: str) -> tuple[UnreadRecord, ...]:
    """Return the queued records of the resource that could not be read, most failed runs first."""
    rows = connection.execute(
        f"SELECT {_UNREAD.select_list} FROM sync.queue WHERE resource = ? AND failed_runs > 0"
        " ORDER BY failed_runs DESC, id",
        [resource],
    ).fetchall()
    return tuple(map(_UNREAD.read, rows))


RecordKey = tuple[str, str]
"""Resource and id of a record."""

_BOOKMARKS = RowMapper(Bookmark, "sync.bookmarks")
_FOLDER = RowMapper(Identity, "sync.folder")


def read_identity(connection: duckdb.DuckDBPyConnection) -> Identity | None:
    """Return the identity of the folder; None if no run has used the file yet."""
    rows = connection.execute(f"SELECT {_FOLDER.select_list} FROM sync.folder").fetchall()
    return _FOLDER.read(rows[0]) if rows else None


def write_identity(connection: duckdb.DuckDBPyConnection, identity: Identity) -> None:
    """Replace the identity of the folder."""
    connection.execute("DELETE FROM sync.folder")
    _FOLDER.insert(connection, identity)


def read_bookmark(connection: duckdb.DuckDBPyConnection, stream: Stream) -> Bookmark:
    """Return the stream's bookmark; a new one if the stream was never pulled."""
    rows = connection.execute(
        f"SELECT {_BOOKMARKS.select_list} FROM sync.bookmarks WHERE resource = ? AND parent = ?",
        [stream.resource.name, stream.parent or ""],
    ).fetchall()
    return _BOOKMARKS.read(rows[0]) if rows else Bookmark()


def write_bookmark(
    connection: duckdb.DuckDBPyConnection, stream: Stream, bookmark: Bookmark, run_id: str
) -> None:
    """Replace the stream's bookmark. Asserts that its `proven_at` does not move back."""
    resource, parent = stream.resource.name, stream.parent or ""
    replaced = connection.execute(
        "DELETE FROM sync.bookmarks WHERE resource = ? AND parent = ? "
        "RETURNING epoch_us(proven_at)",
        [resource, parent],
    ).fetchall()
    for (before,) in replaced:
        proven_at = from_microseconds(before)
        if proven_at is not None:
            assert bookmark.proven_at is not None, f"{stream.name}: a bookmark was lost"
            assert bookmark.proven_at >= proven_at, f"{stream.name}: a bookmark moved back"
    _BOOKMARKS.insert(connection, bookmark, resource=resource, parent=parent, run_id=run_id)


def remove_bookmark(connection: duckdb.DuckDBPyConnection, stream: Stream) -> None:
    """Remove the bookmark of a stream that does not exist any more."""
    connection.execute(
        "DELETE FROM sync.bookmarks WHERE resource = ? AND parent = ?",
        [stream.resource.name, stream.parent or ""],
    )


def write_events(
    connection: duckdb.DuckDBPyConnection,
    stream: Stream,
    events: Iterable[Event],
    run_id: str,
    at: datetime,
) -> None:
    """Insert the events, except kinds that are reported only once and are known already."""
    for each in events:
        values = [each.kind, each.detail, stream.resource.name]
        reported = connection.execute(
            "SELECT count(*) FROM sync.events WHERE kind = ? AND detail = ? AND resource = ?",
            values,
        ).fetchall()[0][0]
        if each.kind in _ONCE and reported:
            continue
        connection.execute(
            "INSERT INTO sync.events (kind, detail, resource, parent, id, run_id, seen_at) "
            "VALUES (?, ?, ?, ?, ?, ?, ?::TIMESTAMPTZ)",
            [*values, stream.parent or "", each.id, run_id, to_iso(at)],
        )


def current_events(
    connection: duckdb.DuckDBPyConnection, resource: str, run_id: str
) -> tuple[Event, ...]:
    """Return the events of a run on a resource, and earlier events that still apply.

    An event may name an example record. Deletions are not included.
    """
    rows = connection.execute(
        "SELECT DISTINCT ON (kind, detail) kind, detail, id, run_id FROM sync.events"
        " WHERE resource = ? AND kind <> 'deleted'"
        " ORDER BY kind, detail, run_id = ? DESC, seen_at DESC",
        [resource, run_id],
    ).fetchall()
    found = []
    for kind, detail, id, seen_by in rows:
        shown = (
            _find_record_with_anomaly(connection, resource, kind, detail) if kind in _ONCE else None
        )
        if seen_by == run_id or shown is not None:
            found.append(Event(kind=kind, detail=detail, id=id or shown or None))
    return tuple(found)


def _find_record_with_anomaly(
    connection: duckdb.DuckDBPyConnection, resource: str, kind: str, detail: str
) -> str | None:
    """Return the id of a live record with the anomaly; empty for a list; None if not found."""
    if kind == "unsorted":
        sql = "SELECT '' FROM sync.bookmarks WHERE resource = ? AND unsorted_at IS NOT NULL LIMIT 1"
        rows = connection.execute(sql, [resource]).fetchall()
        return "" if rows else None
    names = declaration(resource).fields.keys()
    column, _, value = detail.partition(" ")
    if kind == "unknown_field":
        condition, parameters = (
            "list_contains([left(n, 60) FOR n IN json_keys(_record)], ?)",
            [detail],
        )
        # A later version of the connector may have a column for it.
        is_known_choice = detail not in names
    elif kind == "unreadable_value":
        condition = f"{quoted(column)} IS NULL AND length(_record->>?) > 0"
        parameters, is_known_choice = [column], column in names
    else:
        written = f"concat(chr(39), left({quoted(column)}::VARCHAR, 60), chr(39))"
        condition, parameters = f"starts_with(?, {written})", [value]
        is_known_choice = column in names
    sql = f"SELECT id FROM landing.{resource} WHERE _deleted_at IS NULL AND {condition} LIMIT 1"
    rows = connection.execute(sql, parameters).fetchall() if is_known_choice else []
    return str(rows[0][0]) if rows else None


def write_notice(
    connection: duckdb.DuckDBPyConnection, event: Event, at: datetime, run_id: str | None = None
) -> None:
    """Insert an event without a resource once; without `run_id` the next pull reports it."""
    connection.execute(
        "INSERT INTO sync.events (kind, detail, seen_at, run_id) "
        "SELECT $1, $2, $3::TIMESTAMPTZ, $4 "
        "WHERE NOT EXISTS (FROM sync.events WHERE kind = $1 AND seen_at = $3::TIMESTAMPTZ)",
        [event.kind, event.detail, to_iso(at), run_id],
    )


def report_notices(connection: duckdb.DuckDBPyConnection, run_id: str) -> tuple[str, ...]:
    """Return the texts of unreported notices, and mark them as reported."""
    rows = connection.execute(
        "SELECT detail FROM sync.events WHERE resource IS NULL AND run_id IS NULL ORDER BY seen_at"
    ).fetchall()
    if rows:
        connection.execute(
            "UPDATE sync.events SET run_id = ? WHERE resource IS NULL AND run_id IS NULL", [run_id]
        )
    return tuple(detail for (detail,) in rows)


def read_health(connection: duckdb.DuckDBPyConnection) -> RunHealth:
    """Read the latest runs, publications and events in one snapshot."""
    ((first,),) = connection.execute("SELECT epoch_us(min(started_at)) FROM sync.runs").fetchall()
    scrubs = connection.execute(
        "SELECT run_id, sum(scrubs)::BIGINT FROM sync.run_resources GROUP BY run_id "
        "HAVING sum(scrubs) > 0"
    ).fetchall()
    proven = connection.execute(
        f"SELECT resource, {PROVEN_AT} FROM sync.bookmarks GROUP BY resource ORDER BY resource"
    ).fetchall()
    resources = last_resource_runs(connection)
    return RunHealth(
        runs=last_runs(connection, RUNS_READ),
        scrubs=dict(scrubs),
        first_run_at=from_microseconds(first),
        resources=resources,
        proven_at={resource: from_microseconds(timestamp) for resource, timestamp in proven},
        publications=last_publications(connection, PUBLICATIONS_READ),
        events={
            name: current_events(connection, name, run_id)
            for name, (run_id, _) in resources.items()
        },
    )


def read_oldest_keys(connection: duckdb.DuckDBPyConnection, count: int) -> tuple[RecordKey, ...]:
    """Return resource and id of the oldest live records, by which a workspace can be recognized.

    Content items are not included because their address needs more than an id.
    """
    selects = (
        f"SELECT '{each.name}' AS resource, id, created_at FROM landing.{quoted(each.name)}"
        " WHERE _deleted_at IS NULL AND _hydrated_at IS NOT NULL"
        for each in CATALOG.values()
        if each.parent is None
    )
    rows = connection.execute(
        f"SELECT resource, id FROM ({' UNION ALL '.join(selects)})"
        f" ORDER BY created_at, id LIMIT {count}"
    ).fetchall()
    return tuple((resource, id) for resource, id in rows)


def find_by_slug_or_id(
    connection: duckdb.DuckDBPyConnection, resource: str, name: str
) -> tuple[str, ...]:
    """Return ids of the live loaded records whose slug or id is `name`."""
    found = connection.execute(
        f"SELECT id FROM landing.{quoted(resource)} "
        "WHERE (slug = $1 OR id = $1) AND _deleted_at IS NULL",
        [name],
    ).fetchall()
    return tuple(id for (id,) in found)


def read_resource_state(
    connection: duckdb.DuckDBPyConnection, resource: str, *, with_last_run: bool = True
) -> ResourceState:
    """Return the state of a resource over all its streams, optionally without its last run."""
    live, listed_only, deleted, oldest_read_at = connection.execute(
        "SELECT count(*) FILTER (_deleted_at IS NULL), "
        "count(*) FILTER (_deleted_at IS NULL AND _hydrated_at IS NULL), "
        "count(*) FILTER (_deleted_at IS NOT NULL), "
        "epoch_us(min(_hydrated_at) FILTER (_deleted_at IS NULL)) "
        f"FROM landing.{quoted(resource)}"
    ).fetchall()[0]
    pending, broken = connection.execute(
        "SELECT count(*), count(*) FILTER (failed_runs >= ?) FROM sync.queue WHERE resource = ?",
        [BROKEN_RUNS_MIN, resource],
    ).fetchall()[0]
    proven_at, is_listing, lateness_seconds = connection.execute(
        f"SELECT {PROVEN_AT}, coalesce(bool_or(load_page IS NOT NULL), FALSE), "
        "max(lateness_seconds) FROM sync.bookmarks WHERE resource = ?",
        [resource],
    ).fetchall()[0]
    last = last_resource_runs(connection, resource) if with_last_run else {}
    return ResourceState(
        resource=resource,
        live=live,
        listed_only=listed_only,
        deleted=deleted,
        pending=pending,
        proven_at=from_microseconds(proven_at),
        last=last[resource][1] if resource in last else None,
        is_listing=is_listing,
        lateness_seconds=lateness_seconds,
        oldest_read_at=from_microseconds(oldest_read_at),
        broken=broken,
    )


# -- Pushes ----------------------------------------------------------------------------------------
# Pushes for analysts: a copy of the whole journal, made before each publication.


Rows = Sequence[Mapping[str, Any]]
"""Rows of one table, by column name. Values without a column are ignored."""


def replace_pushes(connection: duckdb.DuckDBPyConnection, tables: Mapping[str, Rows]) -> None:
    """Replace all rows of the given tables of the schema `push`."""
    for table, rows in tables.items():
        connection.execute(f"DELETE FROM push.{table}")
        if rows:
            with staged_table(connection, _to_arrow(table, rows)):
                connection.execute(f"INSERT INTO push.{table} BY NAME SELECT * FROM stage")


def _to_arrow(name: str, rows: Rows) -> pa.Table:
    """Return the rows as an Arrow table with the columns of the table `push.NAME`."""
    return pa.table(
        {
            column: pa.array(
                [_column_value(each[column], type) for each in rows], ARROW_TYPES[type]
            )
            for column, type in column_types(f"push.{name}").items()
        }
    )


def _column_value(value: Any, type: str) -> Any:
    """Return a value of the journal for a column of this type."""
    if isinstance(value, str):
        return _parse_timestamp(value) if type == "TIMESTAMPTZ" else replace_surrogates(value)
    return as_json(value) if type == "JSON" and value is not None else value


def _parse_timestamp(text: str) -> datetime | None:
    """Return a timestamp of the API; None if the text is no timestamp."""
    try:
        return parse_datetime(text)
    except (ValueError, OverflowError):
        return None
