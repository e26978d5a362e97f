"""Queries of a pull, answered from one stream's rows and queue.

All functions use an open connection and only read.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import duckdb

from connector.catalog.resource import Declaration, Resource
from connector.warehouse.duckdb_file import (
    from_microseconds,
    literal,
    quoted,
    staged_table,
    to_microseconds,
)
from connector.warehouse.schema import as_json, differing_listed_names, differing_names, ids_table
from connector.warehouse.stream import LandedRow, Stream


@dataclass(frozen=True, slots=True)
class ExistingRow:
    """Landing row before a new response.

    Attributes:
        seen_at: Server time of the last response with the record.
        rowid: DuckDB's row id in the landing table.
        open_version_rowid: Row id of its open version in the history; None if it has none.
        record: The record as JSON.
        is_hydrated: True if a detail was read, not only list items.
        is_listed_since: True if a list has shown other values since the detail.
    """

    seen_at: datetime | None
    rowid: int
    open_version_rowid: int | None
    record: str
    is_hydrated: bool
    is_deleted: bool
    is_listed_since: bool

    def equals(self, record: str) -> bool:
        """Return True if the row is live and its detail is this JSON in any order of keys."""
        if not self.is_hydrated or self.is_deleted:
            return False
        if self.record == record:
            return True
        # Another key order results in a text of the same length, so other lengths need no parsing.
        is_as_long = len(self.record) == len(record)
        return is_as_long and not differing_names(json.loads(self.record), json.loads(record))


def created_condition(created: Iterable[datetime | None]) -> str:
    """Return the SQL ` AND created_at BETWEEN ...` for these times; empty without times.

    DuckDB then skips the parts of a table that were created at other times.
    """
    timestamps = [each for each in created if each is not None]
    if not timestamps:
        return ""
    first, last = to_microseconds(min(timestamps)), to_microseconds(max(timestamps))
    return f" AND created_at BETWEEN make_timestamptz({first}) AND make_timestamptz({last})"


def stored_rows(
    connection: duckdb.DuckDBPyConnection,
    resource: Declaration,
    ids: Iterable[str],
    created: Iterable[datetime | None] = (),
) -> dict[str, ExistingRow]:
    """Return the loaded rows with these ids.

    With `created`, the table is first searched near these times, which is fast, and then
    everywhere.
    """
    name, remaining = quoted(resource.name), dict.fromkeys(ids)
    stored: dict[str, ExistingRow] = {}
    for where in dict.fromkeys((created_condition(created), "")):
        if not remaining:
            break
        with staged_table(connection, ids_table(remaining)):
            rows = connection.execute(
                # The ids are filtered first, so that other rows' records are not read.
                f"WITH found AS MATERIALIZED (SELECT id, rowid AS place FROM landing.{name} "
                f"WHERE id IN (SELECT id FROM stage){where}) "
                "SELECT id, stored.rowid, open.place, _record::VARCHAR, "
                "stored._hydrated_at IS NOT NULL, _deleted_at IS NOT NULL, "
                "coalesce(open.is_listed, FALSE), epoch_us(_seen_at) "
                f"FROM landing.{name} AS stored LEFT JOIN (SELECT id, rowid AS place, "
                f"_hydrated_at IS NULL AS is_listed FROM history.{name} "
                f"WHERE _valid_to IS NULL AND id IN (SELECT id FROM found){where}) AS open "
                "USING (id) WHERE stored.rowid IN (SELECT place FROM found)"
            ).fetchall()
        assert len({id for id, *_ in rows}) == len(rows), f"landing.{name} holds an id twice"
        for id, *values, seen_at in rows:
            row = ExistingRow(from_microseconds(seen_at), *values)
            if row.is_deleted or row.open_version_rowid is not None or not where:
                stored[id] = row
                del remaining[id]
    return stored


def read_live_ids(connection: duckdb.DuckDBPyConnection, resource: str) -> tuple[str, ...]:
    """Return ids of the live loaded records, in order of creation."""
    rows = connection.execute(
        f"SELECT id FROM landing.{quoted(resource)} WHERE _deleted_at IS NULL "
        "ORDER BY created_at, id"
    ).fetchall()
    return tuple(id for (id,) in rows)


def find_deleted_parents(
    connection: duckdb.DuckDBPyConnection, resource: Declaration
) -> tuple[str, ...]:
    """Return ids of deleted content types that have live items or a bookmark."""
    parents, rows = quoted(resource.parent or ""), quoted(resource.name)
    found = connection.execute(
        f"SELECT parent FROM (SELECT _content_type_id AS parent FROM landing.{rows} "
        "WHERE _deleted_at IS NULL UNION SELECT parent FROM sync.bookmarks WHERE resource = ?) "
        f"WHERE parent NOT IN (SELECT id FROM landing.{parents} WHERE _deleted_at IS NULL) "
        "ORDER BY parent",
        [resource.name],
    ).fetchall()
    return tuple(parent for (parent,) in found)


class StreamQueries:
    """Answers the queries of a pull from one stream's rows and queue."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, stream: Stream, folder: Path) -> None:
        self._connection, self._stream, self._folder = connection, stream, folder
        self._name = f"landing.{quoted(stream.resource.name)}"
        is_item = stream.resource.parent is not None
        parent = f"_content_type_id = {literal(stream.parent or '')}" if is_item else "TRUE"
        self._live = f"{self._name} WHERE _deleted_at IS NULL AND {parent}"
        self._queued = f"SELECT id FROM sync.queue WHERE {queue_condition(stream)}"

    def created_between(self, after: datetime | None, before: datetime | None) -> frozenset[str]:
        """Return live ids whose `created_at` is strictly between two times (None: no bound)."""
        return frozenset(self._live_ids(_is_between("created_at", after, before)))

    def updated_between(self, after: datetime, before: datetime) -> frozenset[str]:
        """Return live ids, not queued, whose `updated_at` is strictly between two times."""
        bounds = _is_between("updated_at", after, before)
        return frozenset(self._live_ids(f"{bounds} AND id NOT IN ({self._queued})"))

    def count_live(self, before: datetime | None = None) -> int:
        """Return the number of live rows, optionally of those created before a time."""
        condition = _is_between("created_at", None, before)
        count: int = self._fetch_first(f"SELECT count(*) FROM {self._live}{condition}")[0]
        return count

    def least_recently_read(self, count: int) -> tuple[str, ...]:
        """Return at most `count` live ids, not queued, whose details were read longest ago."""
        return self._live_ids(
            f" AND _hydrated_at IS NOT NULL AND id NOT IN ({self._queued}) "
            f"ORDER BY _hydrated_at, id LIMIT {count}"
        )

    def undated(self, after: datetime) -> tuple[str, ...]:
        """Return live ids whose detail has no `updated_at`, or one after this time."""
        return self._live_ids(
            " AND _hydrated_at IS NOT NULL AND (updated_at IS NULL "
            f"OR epoch_us(updated_at) > {to_microseconds(after)}) ORDER BY id"
        )

    def queued(self, count: int, skip: frozenset[str]) -> tuple[str, ...]:
        """Return at most `count` queued ids, newest first, except `skip`."""
        # A parameter, since thousands of ids as literals take seconds.
        others = " AND id NOT IN (SELECT unnest(?))" if skip else ""
        newest = f" ORDER BY created_at DESC NULLS LAST, id LIMIT {count}"
        return self._fetch_first(f"{self._queued}{others}{newest}", [list(skip)] if skip else None)

    def landed(
        self, ids: Sequence[str], created: Sequence[datetime | None] = ()
    ) -> dict[str, LandedRow]:
        """Return the state of the loaded rows with these ids, by id.

        With `created`, their `created_at`, the query is faster.
        """
        found: dict[str, LandedRow] = {}
        for where in dict.fromkeys((created_condition(created), "")):
            remaining = [id for id in ids if id not in found]
            if not remaining:
                break
            with staged_table(self._connection, ids_table(remaining)):
                rows = self._connection.execute(
                    "SELECT id, epoch_us(updated_at), epoch_us(_hydrated_at), "
                    f"id IN ({self._queued} AND id IN (SELECT id FROM stage)), "
                    "_deleted_at IS NOT NULL "
                    f"FROM {self._name} WHERE id IN (SELECT id FROM stage){where}"
                ).fetchall()
            for id, updated, read, queued, deleted in rows:
                timestamps = from_microseconds(updated), from_microseconds(read)
                found[id] = LandedRow(*timestamps, queued, deleted)
        return found

    def differing(self, answers: Collection[Resource]) -> dict[str, tuple[str, ...]]:
        """Return, by id, the fields in which responses differ from loaded details."""
        ids, created = [each.id for each in answers], [each.created_at for each in answers]
        stored = stored_rows(self._connection, self._stream.resource, ids, created)
        names = {
            each.id: _differing_names(each, stored[each.id].record)
            for each in answers
            if each.id in stored and stored[each.id].is_hydrated
        }
        return {id: each for id, each in names.items() if each}

    def _live_ids(self, condition: str) -> tuple[str, ...]:
        """Return the ids of live rows; `condition` begins with AND, or is empty."""
        return self._fetch_first(f"SELECT id FROM {self._live}{condition}")

    def _fetch_first(
        self, statement: str, parameters: Sequence[Any] | None = None
    ) -> tuple[Any, ...]:
        """Return the first column of the result."""
        rows = self._connection.execute(statement, parameters).fetchall()
        return tuple(first for first, *_ in rows)


def queue_condition(stream: Stream) -> str:
    """Return the SQL condition for the stream's rows of `sync.queue`."""
    return f"resource = {literal(stream.resource.name)} AND parent = {literal(stream.parent or '')}"


def _is_between(column: str, after: datetime | None, before: datetime | None) -> str:
    """Return SQL conditions that begin with AND, for times between the bounds (None: no bound).

    Literals let DuckDB skip row groups outside of them.
    """
    bounds = ((">", after), ("<", before))
    return "".join(
        f" AND {column} {sign} make_timestamptz({to_microseconds(bound)})"
        for sign, bound in bounds
        if bound is not None
    )


def _differing_names(answer: Resource, landed: str) -> tuple[str, ...]:
    """Return the (listed) fields in which a response differs from the record's JSON."""
    record = json.loads(landed)
    if not answer.is_item:
        return differing_names(record, json.loads(as_json(answer.raw)))
    return differing_listed_names(answer.declaration, answer.raw, record)
