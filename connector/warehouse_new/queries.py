"""Queries of a pull, answered from one stream's rows and queue. They only read."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any

from connector.catalog.resource import Resource
from connector.warehouse_new.file import (
    Connection,
    from_microseconds,
    literal,
    quoted,
    staged,
    to_microseconds,
)
from connector.warehouse_new.landing import stored_rows
from connector.warehouse_new.schema import differs_from_item, ids_table
from connector.warehouse_new.stream import LandedRow, Stream


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
        with staged(self._connection, ids_table(ids)):
            rows = self._connection.execute(
                "SELECT id, CASE WHEN _hydrated_at IS NOT NULL THEN epoch_us(updated_at) END, "
                f"epoch_us(_hydrated_at), {self._is_queued}, "
                f"_deleted_at IS NOT NULL FROM {self._name} WHERE id IN (SELECT id FROM stage)"
            ).fetchall()
        return {
            id: LandedRow(from_microseconds(updated), from_microseconds(read), *flags)
            for id, updated, read, *flags in rows
        }

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
            f"OR epoch_us(updated_at) > {to_microseconds(after)}) ORDER BY id"
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
        """Return the first column of the result."""
        return tuple(first for first, *_ in self._connection.execute(sql, values).fetchall())


def _between(column: str, after: datetime | None, before: datetime | None) -> str:
    """Return SQL conditions for times between the bounds (None: no bound).

    Literals let DuckDB skip row groups outside of them.
    """
    bounds = ((">", after), ("<", before))
    return "".join(
        f" AND {column} {sign} make_timestamptz({to_microseconds(bound)})"
        for sign, bound in bounds
        if bound is not None
    )
