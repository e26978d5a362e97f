"""What the connector remembers beside the rows: bookmarks, runs, events.

Functions over an open connection; whoever calls them holds the transaction.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import duckdb

from connector.engine.ask import Bookmark, Event, Stream
from connector.warehouse.moment import from_microseconds
from connector.warehouse.schema import quoted

_ONCE = frozenset({"unknown_field", "unknown_value", "unreadable_value", "unsorted"})
"""Kinds of event that are told once for a resource, however often they are seen."""


@dataclass(frozen=True, slots=True)
class Run:
    """One execution: its end has a name, and its cost is counted."""

    run_id: str
    command: str
    started_at: datetime
    ended_at: datetime | None = None
    outcome: str | None = None
    seconds: float | None = None
    waited_seconds: float | None = None
    requests: int | None = None
    rate_limited: int | None = None
    error_code: str | None = None
    message: str | None = None


@dataclass(frozen=True, slots=True)
class ResourceRun:
    """What one run did with one resource: requests by kind, rows by fate, bookmarks before and
    after.

    `proven` is whether the landing equals the API up to the new bookmark; `message` says why not.
    """

    resource: str
    outcome: str
    proven: bool
    requests: int
    lists: int
    details: int
    new: int
    changed: int
    unchanged: int
    deleted: int
    live: int
    total: int | None
    pending: int
    bookmark_before: datetime | None
    bookmark_after: datetime | None
    error_code: str | None = None
    message: str | None = None


@dataclass(frozen=True, slots=True)
class StreamState:
    """Where a resource stands: rows, queue, the oldest bookmark among its streams, its last run."""

    resource: str
    live: int
    listed_only: int
    deleted: int
    pending: int
    proven_at: datetime | None
    last: ResourceRun | None


def read_bookmark(connection: duckdb.DuckDBPyConnection, stream: Stream) -> Bookmark:
    """The stream's bookmark; a fresh one where there is none."""
    rows = connection.execute(
        "SELECT epoch_us(proven_at), lateness_seconds, epoch_us(opened_at), load_page, verify_page,"
        " is_sorted, epoch_us(scrubbed_to) FROM sync.bookmarks WHERE resource = ? AND parent = ?",
        [stream.resource.name, stream.parent or ""],
    ).fetchall()
    if not rows:
        return Bookmark()
    proven_at, lateness, opened_at, load_page, verify_page, is_sorted, scrubbed_to = rows[0]
    return Bookmark(
        proven_at=from_microseconds(proven_at),
        lateness_seconds=lateness,
        opened_at=from_microseconds(opened_at),
        load_page=load_page,
        verify_page=verify_page,
        is_sorted=is_sorted,
        scrubbed_to=from_microseconds(scrubbed_to),
    )


def write_bookmark(
    connection: duckdb.DuckDBPyConnection, stream: Stream, bookmark: Bookmark, run_id: str
) -> None:
    """Replace the stream's bookmark. A bookmark never moves back: that is asserted here."""
    before = read_bookmark(connection, stream)
    if before.proven_at is not None:
        assert bookmark.proven_at is not None, f"{stream.name}: a bookmark was lost"
        assert bookmark.proven_at >= before.proven_at, f"{stream.name}: a bookmark moved back"
    key = [stream.resource.name, stream.parent or ""]
    connection.execute("DELETE FROM sync.bookmarks WHERE resource = ? AND parent = ?", key)
    connection.execute(
        "INSERT INTO sync.bookmarks (resource, parent, proven_at, lateness_seconds, opened_at, "
        "load_page, verify_page, is_sorted, scrubbed_to, run_id) "
        "VALUES (?, ?, ?::TIMESTAMPTZ, ?, ?::TIMESTAMPTZ, ?, ?, ?, ?::TIMESTAMPTZ, ?)",
        [
            *key,
            _iso(bookmark.proven_at),
            bookmark.lateness_seconds,
            _iso(bookmark.opened_at),
            bookmark.load_page,
            bookmark.verify_page,
            bookmark.is_sorted,
            _iso(bookmark.scrubbed_to),
            run_id,
        ],
    )


def write_events(
    connection: duckdb.DuckDBPyConnection,
    stream: Stream,
    events: Iterable[Event],
    run_id: str,
    at: datetime,
) -> None:
    """Append events; what is told once for a resource is not repeated."""
    for each in events:
        values = [each.kind, each.detail, stream.resource.name]
        told = connection.execute(
            "SELECT count(*) FROM sync.events WHERE kind = ? AND detail = ? AND resource = ?",
            values,
        ).fetchall()[0][0]
        if each.kind in _ONCE and told:
            continue
        connection.execute(
            "INSERT INTO sync.events (kind, detail, resource, parent, id, run_id, seen_at) "
            "VALUES (?, ?, ?, ?, ?, ?, ?::TIMESTAMPTZ)",
            [*values, stream.parent or "", each.id, run_id, _iso(at)],
        )


def write_run(connection: duckdb.DuckDBPyConnection, run: Run) -> None:
    """Insert the run, or replace it by how it ended."""
    connection.execute("DELETE FROM sync.runs WHERE run_id = ?", [run.run_id])
    connection.execute(
        "INSERT INTO sync.runs (run_id, command, started_at, ended_at, outcome, seconds, "
        "waited_seconds, requests, rate_limited, error_code, message) "
        "VALUES (?, ?, ?::TIMESTAMPTZ, ?::TIMESTAMPTZ, ?, ?, ?, ?, ?, ?, ?)",
        [
            run.run_id,
            run.command,
            _iso(run.started_at),
            _iso(run.ended_at),
            run.outcome,
            run.seconds,
            run.waited_seconds,
            run.requests,
            run.rate_limited,
            run.error_code,
            run.message,
        ],
    )


def name_interrupted(connection: duckdb.DuckDBPyConnection) -> None:
    """Give runs that never came to an end a name for how they ended."""
    connection.execute("UPDATE sync.runs SET outcome = 'interrupted' WHERE outcome IS NULL")


_RESOURCE_RUN = tuple(ResourceRun.__dataclass_fields__)
_MOMENTS = frozenset({"bookmark_before", "bookmark_after"})


def write_resource_run(
    connection: duckdb.DuckDBPyConnection, run_id: str, done: ResourceRun
) -> None:
    """Append what the run did with one resource."""
    names = ", ".join(f'"{name}"' for name in _RESOURCE_RUN)
    marks = ", ".join("?::TIMESTAMPTZ" if name in _MOMENTS else "?" for name in _RESOURCE_RUN)
    values = [getattr(done, name) for name in _RESOURCE_RUN]
    connection.execute(
        f"INSERT INTO sync.run_resources (run_id, {names}) VALUES (?, {marks})",
        [run_id, *(_iso(v) if isinstance(v, datetime) else v for v in values)],
    )


def last_runs(connection: duckdb.DuckDBPyConnection, count: int) -> tuple[Run, ...]:
    """The latest runs, newest first."""
    rows = connection.execute(
        "SELECT run_id, command, epoch_us(started_at), epoch_us(ended_at), outcome, seconds, "
        "waited_seconds, requests, rate_limited, error_code, message FROM sync.runs "
        "ORDER BY started_at DESC, run_id DESC LIMIT ?",
        [count],
    ).fetchall()
    return tuple(
        Run(run_id, command, _started(started), from_microseconds(ended), *rest)
        for run_id, command, started, ended, *rest in rows
    )


def last_resource_run(connection: duckdb.DuckDBPyConnection, resource: str) -> ResourceRun | None:
    """What the latest run that touched the resource did with it."""
    names = ", ".join(
        f'epoch_us(r."{name}")' if name in _MOMENTS else f'r."{name}"' for name in _RESOURCE_RUN
    )
    rows = connection.execute(
        f"SELECT {names} FROM sync.run_resources AS r JOIN sync.runs USING (run_id) "
        "WHERE r.resource = ? AND r.outcome <> 'not_started' "
        "ORDER BY started_at DESC, run_id DESC LIMIT 1",
        [resource],
    ).fetchall()
    if not rows:
        return None
    values: dict[str, Any] = dict(zip(_RESOURCE_RUN, rows[0], strict=True))
    for name in _MOMENTS:
        values[name] = from_microseconds(values[name])
    return ResourceRun(**values)


def standing(connection: duckdb.DuckDBPyConnection, resource: str) -> StreamState:
    """Where a resource stands, over all its streams."""
    live, listed_only, deleted = connection.execute(
        "SELECT count(*) FILTER (_deleted_at IS NULL), "
        "count(*) FILTER (_deleted_at IS NULL AND _hydrated_at IS NULL), "
        f"count(*) FILTER (_deleted_at IS NOT NULL) FROM landing.{quoted(resource)}"
    ).fetchall()[0]
    pending = connection.execute(
        "SELECT count(*) FROM sync.queue WHERE resource = ?", [resource]
    ).fetchall()[0][0]
    # A resource is proven up to the least of its streams, and not while one was never loaded.
    proven_at = connection.execute(
        "SELECT CASE WHEN bool_and(proven_at IS NOT NULL) THEN epoch_us(min(proven_at)) END "
        "FROM sync.bookmarks WHERE resource = ?",
        [resource],
    ).fetchall()[0][0]
    return StreamState(
        resource=resource,
        live=live,
        listed_only=listed_only,
        deleted=deleted,
        pending=pending,
        proven_at=from_microseconds(proven_at),
        last=last_resource_run(connection, resource),
    )


def _started(microseconds: int) -> datetime:
    moment = from_microseconds(microseconds)
    assert moment is not None
    return moment


def _iso(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()
