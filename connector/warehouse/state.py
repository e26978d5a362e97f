"""What the connector remembers beside the rows: bookmarks, events, and where each resource stands.

Functions over an open connection; whoever calls them holds the transaction.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import duckdb

from connector.engine.ask import Event
from connector.engine.bookmark import Bookmark, Stream
from connector.warehouse.moment import from_microseconds, iso
from connector.warehouse.quoting import quoted
from connector.warehouse.runs import ResourceRun, last_resource_run

_ONCE = frozenset({"unknown_field", "unknown_value", "unreadable_value", "unsorted"})
"""Kinds of event that are told once for a resource, however often they are seen."""


@dataclass(frozen=True, slots=True)
class StreamState:
    """Where a resource stands: rows, queue, the oldest bookmark among its streams, its last run.

    `is_listing` says that the list of a first load is still being read. `lateness_seconds` is the
    greatest of its streams' (None: never pulled); `oldest_read_at` is when the live row was read
    whose reading is longest ago.
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


_BOOKMARK = tuple(Bookmark.__dataclass_fields__)
_BOOKMARK_MOMENTS = frozenset({"proven_at", "opened_at", "scrubbed_to", "closed_floor"})


def read_bookmark(connection: duckdb.DuckDBPyConnection, stream: Stream) -> Bookmark:
    """The stream's bookmark; a fresh one where there is none."""
    shown = (f"epoch_us({name})" if name in _BOOKMARK_MOMENTS else name for name in _BOOKMARK)
    rows = connection.execute(
        f"SELECT {', '.join(shown)} FROM sync.bookmarks WHERE resource = ? AND parent = ?",
        [stream.resource.name, stream.parent or ""],
    ).fetchall()
    if not rows:
        return Bookmark()
    values: dict[str, Any] = dict(zip(_BOOKMARK, rows[0], strict=True))
    for name in _BOOKMARK_MOMENTS:
        values[name] = from_microseconds(values[name])
    return Bookmark(**values)


def write_bookmark(
    connection: duckdb.DuckDBPyConnection, stream: Stream, bookmark: Bookmark, run_id: str
) -> None:
    """Replace the stream's bookmark. A bookmark never moves back: that is asserted here."""
    key = [stream.resource.name, stream.parent or ""]
    replaced = connection.execute(
        "DELETE FROM sync.bookmarks WHERE resource = ? AND parent = ? "
        "RETURNING epoch_us(proven_at)",
        key,
    ).fetchall()
    for (before,) in replaced:
        proven_at = from_microseconds(before)
        if proven_at is not None:
            assert bookmark.proven_at is not None, f"{stream.name}: a bookmark was lost"
            assert bookmark.proven_at >= proven_at, f"{stream.name}: a bookmark moved back"
    marks = ("?::TIMESTAMPTZ" if name in _BOOKMARK_MOMENTS else "?" for name in _BOOKMARK)
    values = (getattr(bookmark, name) for name in _BOOKMARK)
    connection.execute(
        f"INSERT INTO sync.bookmarks (resource, parent, run_id, {', '.join(_BOOKMARK)}) "
        f"VALUES (?, ?, ?, {', '.join(marks)})",
        [*key, run_id, *(iso(v) if isinstance(v, datetime) else v for v in values)],
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
            [*values, stream.parent or "", each.id, run_id, iso(at)],
        )


def write_notice(connection: duckdb.DuckDBPyConnection, event: Event, at: datetime) -> None:
    """Append an event that is about no resource, once, and that the next pull is to report."""
    moment = iso(at)
    connection.execute(
        "INSERT INTO sync.events (kind, detail, seen_at) SELECT $1, $2, $3::TIMESTAMPTZ "
        "WHERE NOT EXISTS (FROM sync.events WHERE kind = $1 AND seen_at = $3::TIMESTAMPTZ)",
        [event.kind, event.detail, moment],
    )


def take_notices(connection: duckdb.DuckDBPyConnection, run_id: str) -> tuple[str, ...]:
    """The details of the notices that no pull has reported, which are the run's from here on."""
    rows = connection.execute(
        "SELECT detail FROM sync.events WHERE resource IS NULL AND run_id IS NULL ORDER BY seen_at"
    ).fetchall()
    if rows:
        connection.execute(
            "UPDATE sync.events SET run_id = ? WHERE resource IS NULL AND run_id IS NULL", [run_id]
        )
    return tuple(detail for (detail,) in rows)


def standing(
    connection: duckdb.DuckDBPyConnection, resource: str, *, tells_last: bool = True
) -> StreamState:
    """Where a resource stands, over all its streams; with its last run, if that is wanted."""
    live, listed_only, deleted, oldest_read_at = connection.execute(
        "SELECT count(*) FILTER (_deleted_at IS NULL), "
        "count(*) FILTER (_deleted_at IS NULL AND _hydrated_at IS NULL), "
        "count(*) FILTER (_deleted_at IS NOT NULL), "
        "epoch_us(min(_hydrated_at) FILTER (_deleted_at IS NULL)) "
        f"FROM landing.{quoted(resource)}"
    ).fetchall()[0]
    pending = connection.execute(
        "SELECT count(*) FROM sync.queue WHERE resource = ?", [resource]
    ).fetchall()[0][0]
    # A resource is proven up to the least of its streams, and not while one was never loaded.
    proven_at, is_listing, lateness_seconds = connection.execute(
        "SELECT CASE WHEN bool_and(proven_at IS NOT NULL) THEN epoch_us(min(proven_at)) END, "
        "coalesce(bool_or(load_page IS NOT NULL), FALSE), max(lateness_seconds) "
        "FROM sync.bookmarks WHERE resource = ?",
        [resource],
    ).fetchall()[0]
    return StreamState(
        resource=resource,
        live=live,
        listed_only=listed_only,
        deleted=deleted,
        pending=pending,
        proven_at=from_microseconds(proven_at),
        last=last_resource_run(connection, resource) if tells_last else None,
        is_listing=is_listing,
        lateness_seconds=lateness_seconds,
        oldest_read_at=from_microseconds(oldest_read_at),
    )
