"""The record of publications: which file analysts were given, and why not where they were not.

Functions over an open connection; whoever calls them holds the transaction. A published file has
its own row as well: what it is true of goes with it wherever it is copied.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import duckdb

from connector.errors import WarehouseError
from connector.warehouse.moment import from_microseconds, iso
from connector.warehouse.query import query


@dataclass(frozen=True, slots=True)
class Publication:
    """One attempt to publish. `outcome` is published, refused or failed, interrupted where the
    process was ended, and None while it is under way.

    `true_of` is the moment that the data is true of. `failed_checks` are those that block and, of
    a published file, those that only warn. `bytes` are the file's, and not known within the file
    itself.
    """

    publication: str
    started_at: datetime
    run_id: str | None = None
    ended_at: datetime | None = None
    true_of: datetime | None = None
    outcome: str | None = None
    models: int = 0
    checks: int = 0
    failed_checks: tuple[str, ...] = ()
    personal: str = "keep"
    error_code: str | None = None
    message: str | None = None
    bytes: int | None = None
    seconds: float | None = None


_NAMES = tuple(Publication.__dataclass_fields__)
_MOMENTS = frozenset(("started_at", "ended_at", "true_of"))
_SHOWN = ", ".join(f"epoch_us({name}) AS {name}" if name in _MOMENTS else name for name in _NAMES)


def write_publication(connection: duckdb.DuckDBPyConnection, row: Publication) -> None:
    """Insert the publication, or replace it by how it ended."""
    connection.execute("DELETE FROM sync.publications WHERE publication = ?", [row.publication])
    marks = ("?::TIMESTAMPTZ" if name in _MOMENTS else "?" for name in _NAMES)
    connection.execute(
        f"INSERT INTO sync.publications ({', '.join(_NAMES)}) VALUES ({', '.join(marks)})",
        [_plain(getattr(row, name)) for name in _NAMES],
    )


_OPEN = "(outcome IS NULL OR (outcome = 'published' AND bytes IS NULL))"


def name_cut_off(connection: duckdb.DuckDBPyConnection, published: Path) -> None:
    """Name how publications ended that nobody lived to record: what the published file itself
    shows was published, and any other was interrupted.

    One that nothing can refuse is called published before it is; its bytes are known after.
    """
    found = connection.execute(f"SELECT publication FROM sync.publications WHERE {_OPEN}")
    open_ones = {name for (name,) in found.fetchall()}
    if not open_ones:
        return
    shown = published_in(published)
    if shown is not None and shown.publication in open_ones:
        write_publication(connection, shown)
    connection.execute(f"UPDATE sync.publications SET outcome = 'interrupted' WHERE {_OPEN}")


def last_publications(connection: duckdb.DuckDBPyConnection, count: int) -> tuple[Publication, ...]:
    """The latest publications, newest first."""
    cursor = connection.execute(
        f"SELECT {_SHOWN} FROM sync.publications ORDER BY started_at DESC, publication DESC "
        "LIMIT ?",
        [count],
    )
    return tuple(_read(dict(zip(_NAMES, row, strict=True))) for row in cursor.fetchall())


def published_in(path: Path) -> Publication | None:
    """What a published file says of itself; None where there is none that says it."""
    if not path.exists():
        return None
    sql = f"SELECT {_SHOWN} FROM sync.publications ORDER BY started_at DESC LIMIT 1"
    try:
        rows = query(path, sql).rows
    except (WarehouseError, duckdb.Error):
        # It was published before there was such a record, or without the schema.
        return None
    if not rows:
        return None
    found = _read(dict(zip(_NAMES, rows[0], strict=True)))
    return replace(found, bytes=path.stat().st_size)


def true_of(connection: duckdb.DuckDBPyConnection) -> datetime | None:
    """The moment that the data is true of, which the models take for "now": the newest that a
    resource is proven up to; before the first proof, when the last run was.
    """
    ((moment,),) = connection.execute(
        "SELECT epoch_us(coalesce((SELECT max(proven_at) FROM sync.bookmarks), "
        "(SELECT max(coalesce(ended_at, started_at)) FROM sync.runs)))"
    ).fetchall()
    return from_microseconds(moment)


def _plain(value: object) -> object:
    if isinstance(value, datetime):
        return iso(value)
    return list(value) if isinstance(value, tuple) else value


def _read(values: Mapping[str, Any]) -> Publication:
    moments = {name: from_microseconds(values[name]) for name in _MOMENTS}
    failed = tuple(values["failed_checks"] or ())
    return Publication(**{**values, **moments, "failed_checks": failed})
