"""Fingerprint of everything that a publication shows, except how recently it was verified.

If two fingerprints are equal, a new publication would show analysts the same figures. Every pull
changes the time of verification, the list of runs and the number of requests, so these are not
included. The current day in the account's time zone is included, and so is whether a timestamp has
passed, because models compare both with "now".

A counter that every writer must increase would be easy to forget, and analysts would keep old
figures. Reading the columns again costs a fraction of building the models.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import duckdb

from connector.warehouse.duckdb_file import literal, quoted
from connector.warehouse.runs import last_resource_runs
from connector.warehouse.schema import TableSchema, declared_tables
from connector.warehouse.state import last_copied

_MOVES = frozenset(("_seen_at", "_hydrated_at", "_observed_to"))
"""Columns that a pull changes although the record is unchanged."""


def fingerprint(
    connection: duckdb.DuckDBPyConnection, at: datetime | None, time_zone: str, made_with: str
) -> str:
    """Return the fingerprint of a publication.

    Args:
        connection: Open work file.
        at: Time of the data.
        time_zone: Time zone of the account's days.
        made_with: Fingerprint of everything else that the published file depends on.
    """
    moment = "NULL::TIMESTAMPTZ" if at is None else f"{literal(at.isoformat())}::TIMESTAMPTZ"
    digest = hashlib.sha256(made_with.encode())
    for sql in (*_row_queries(moment, time_zone), *_state_queries(moment, time_zone)):
        found = connection.execute(sql).fetchall()
        digest.update(json.dumps(found, default=str).encode())
    digest.update(json.dumps([*_outcomes(connection), last_copied(connection)]).encode())
    return digest.hexdigest()


def _row_queries(moment: str, time_zone: str) -> Iterator[str]:
    """Yield a query for each table of records: the number of its rows, and a hash of all rows."""
    for table in declared_tables():
        if table.schema in ("landing", "history"):
            hashed = ", ".join(_value_expressions(table, moment, time_zone))
            yield f"SELECT count(*), sum(hash({hashed})::HUGEINT) FROM {table.quoted}"


def _value_expressions(table: TableSchema, moment: str, time_zone: str) -> Iterator[str]:
    """Yield expressions for the parts of a row that models can depend on."""
    for column in table.columns:
        name = quoted(column.name)
        if column.name not in _MOVES:
            yield name
            if column.field is not None and column.type == "TIMESTAMPTZ":
                yield f"{name} <= {moment}"
    if table.schema == "landing":
        yield _day("_hydrated_at", time_zone)
    else:
        # A version that only lists have shown counts as observed once a second list shows it.
        yield "_hydrated_at IS NULL AND _observed_to > _observed_from"


def _state_queries(moment: str, time_zone: str) -> Iterator[str]:
    """Yield queries for the state outside of rows that models and analysts see."""
    yield f"SELECT {_day(moment, time_zone)}"
    proven = _day("proven_at", time_zone)
    yield f"SELECT resource, parent, {proven} FROM sync.bookmarks ORDER BY ALL"
    yield "SELECT resource, count(*) FROM sync.queue GROUP BY ALL ORDER BY ALL"
    yield "SELECT folder, address FROM sync.folder ORDER BY ALL"
    yield "SELECT resource, id, erasure FROM sync.erased ORDER BY ALL"


def _day(moment: str, time_zone: str) -> str:
    return f"timezone({literal(time_zone)}, {moment})::DATE"


def _outcomes(connection: duckdb.DuckDBPyConnection) -> Iterator[tuple[Any, ...]]:
    """Return the last outcome of each resource."""
    for resource, (_, done) in sorted(last_resource_runs(connection).items()):
        state = (done.outcome, done.proven, done.live, done.total, done.pending, done.error_code)
        yield resource, *state
