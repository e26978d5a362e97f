"""Queries of a pull, answered from one stream's rows and queue.

All functions use an open connection and only read.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import duckdb

from connector.catalog.resource import Declaration, Resource
from connector.warehouse import pull_commands
from connector.warehouse.duckdb_file import from_microseconds, quoted, staged_table, to_microseconds
from connector.warehouse.pull_commands import LandedRow, Stream
from connector.warehouse.schema import as_json, differing_listed_names, differing_names, ids_table

_QUEUED = "SELECT id FROM sync.queue WHERE resource = $resource AND parent = $parent"
"""Statement for the stream's queue, with the parameters `resource` and `parent`."""


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


def live_ids(connection: duckdb.DuckDBPyConnection, resource: str) -> tuple[str, ...]:
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

    def __init__(self, connection: duckdb.DuckDBPyConnection, stream: Stream) -> None:
        self._connection = connection
        self._stream = stream
        self._name = f"landing.{quoted(stream.resource.name)}"
        self._parent = stream.parent or ""

    def run(self, query: pull_commands.Query[Any]) -> Any:
        """Return the result of the query, as the docstring of its class describes it."""
        match query:
            case pull_commands.LandedRows(ids, created):
                found: Any = self._landed_rows(ids, created)
            case pull_commands.DifferingFields(answers):
                found = self._differing_fields(answers)
            case pull_commands.CreatedBetween(after, before):
                found = self._ids_between("created_at", after, before)
            case pull_commands.UpdatedBetween(after, before):
                found = self._ids_between("updated_at", after, before, includes_queued=False)
            case pull_commands.CountLive(before):
                found = self.count_live(before)
            case pull_commands.TiedPages(per_page):
                found = self._tied_pages(per_page)
            case pull_commands.LeastRecentlyRead(count):
                found = self._least_recently_read(count)
            case pull_commands.UndatedIds(after):
                found = self._fetch_ids(
                    f"SELECT id FROM {self._from_live_rows()} AND _hydrated_at IS NOT NULL "
                    "AND (updated_at IS NULL OR epoch_us(updated_at) > $after) ORDER BY id",
                    {"parent": self._parent, "after": to_microseconds(after)},
                )
            case pull_commands.NextQueued(count, skip):
                found = self._next_queued(count, skip)
            case pull_commands.CountQueued():
                found = self.count_queued()
        return found

    def count_live(self, before: datetime | None) -> int:
        """Return the number of live rows, optionally created before a time."""
        condition = ""
        if before is not None:
            condition = f" AND created_at < make_timestamptz({to_microseconds(before)})"
        return self._fetch_count(
            f"SELECT count(*) FROM {self._from_live_rows()}{condition}", {"parent": self._parent}
        )

    def count_queued(self) -> int:
        """Return the number of queued ids."""
        return self._fetch_count(
            "SELECT count(*) FROM sync.queue WHERE resource = $resource AND parent = $parent",
            self._stream_parameters(),
        )

    def _landed_rows(
        self, ids: tuple[str, ...], created: tuple[datetime | None, ...]
    ) -> dict[str, LandedRow]:
        found: dict[str, LandedRow] = {}
        for where in dict.fromkeys((created_condition(created), "")):
            remaining = [id for id in ids if id not in found]
            if not remaining:
                break
            with staged_table(self._connection, ids_table(remaining)):
                rows = self._connection.execute(
                    "SELECT id, epoch_us(updated_at), epoch_us(_hydrated_at), "
                    f"id IN ({_QUEUED} AND id IN (SELECT id FROM stage)), _deleted_at IS NOT NULL "
                    f"FROM {self._name} WHERE id IN (SELECT id FROM stage){where}",
                    self._stream_parameters(),
                ).fetchall()
            for id, updated, read, queued, deleted in rows:
                timestamps = from_microseconds(updated), from_microseconds(read)
                found[id] = LandedRow(*timestamps, queued, deleted)
        return found

    def _differing_fields(self, answers: tuple[Resource, ...]) -> dict[str, tuple[str, ...]]:
        """Return, by id, the fields in which responses differ from loaded details."""
        ids, created = [each.id for each in answers], [each.created_at for each in answers]
        stored = stored_rows(self._connection, self._stream.resource, ids, created)
        names = {
            each.id: _differing_names(each, stored[each.id].record)
            for each in answers
            if each.id in stored and stored[each.id].is_hydrated
        }
        return {id: each for id, each in names.items() if each}

    def _ids_between(
        self,
        column: str,
        after: datetime | None,
        before: datetime | None,
        *,
        includes_queued: bool = True,
    ) -> frozenset[str]:
        """Return ids of live rows whose column is between two times, exclusively."""
        statement = f"SELECT id FROM {self._from_live_rows()}"
        parameters: dict[str, Any] = {"parent": self._parent}
        # Bounds are literals, so that DuckDB skips row groups outside of them.
        if after is not None:
            statement += f" AND {column} > make_timestamptz({to_microseconds(after)})"
        if before is not None:
            statement += f" AND {column} < make_timestamptz({to_microseconds(before)})"
        if not includes_queued:
            statement += f" AND id NOT IN ({_QUEUED})"
            parameters["resource"] = self._stream.resource.name
        return frozenset(self._fetch_ids(statement, parameters))

    def _tied_pages(self, per_page: int) -> frozenset[int]:
        rows = self._connection.execute(
            "SELECT 1 + place // $per_page FROM (SELECT created_at, "
            f"row_number() OVER (ORDER BY created_at) - 1 AS place FROM {self._from_live_rows()}) "
            "GROUP BY 1 HAVING min(created_at) = max(created_at)",
            {"parent": self._parent, "per_page": per_page},
        ).fetchall()
        return frozenset(page for (page,) in rows)

    def _least_recently_read(self, count: int) -> tuple[str, ...]:
        return self._fetch_ids(
            f"SELECT id FROM {self._from_live_rows()} AND _hydrated_at IS NOT NULL "
            f"AND id NOT IN ({_QUEUED}) "
            "ORDER BY _hydrated_at, id LIMIT $count",
            {**self._stream_parameters(), "count": count},
        )

    def _next_queued(self, count: int, skip: frozenset[str]) -> tuple[str, ...]:
        parameters: dict[str, Any] = {**self._stream_parameters(), "count": count}
        others = ""
        if skip:
            others, parameters["skip"] = "AND id NOT IN (SELECT unnest($skip)) ", list(skip)
        return self._fetch_ids(
            f"{_QUEUED} {others}ORDER BY created_at DESC NULLS LAST, id LIMIT $count", parameters
        )

    def _from_live_rows(self) -> str:
        """Return the FROM and WHERE clauses for live rows, with the parameter `parent`."""
        condition = "_content_type_id = $parent" if self._stream.resource.parent else "$parent = ''"
        return f"{self._name} WHERE _deleted_at IS NULL AND {condition}"

    def _stream_parameters(self) -> dict[str, str]:
        """Return the parameters `resource` and `parent` of a statement."""
        return {"resource": self._stream.resource.name, "parent": self._parent}

    def _fetch_ids(self, statement: str, parameters: Mapping[str, Any]) -> tuple[str, ...]:
        rows = self._connection.execute(statement, dict(parameters)).fetchall()
        return tuple(id for (id,) in rows)

    def _fetch_count(self, statement: str, parameters: Mapping[str, Any]) -> int:
        row = self._connection.execute(statement, dict(parameters)).fetchall()
        return int(row[0][0])


def _differing_names(answer: Resource, landed: str) -> tuple[str, ...]:
    """Return the fields in which a response differs from the loaded record (JSON).

    A list item is compared in the listed fields only.
    """
    record = json.loads(landed)
    if not answer.is_item:
        return differing_names(record, json.loads(as_json(answer.raw)))
    return differing_listed_names(answer.declaration, answer.raw, record)
