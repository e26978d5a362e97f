"""What the engines ask of the landing, answered from one stream's rows and queue.

Functions over an open connection; nothing here writes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import duckdb
import pyarrow as pa

from connector.catalog.resource import Declaration, Resource
from connector.engine import commands
from connector.engine.bookmark import Stream
from connector.engine.commands import LandedRow
from connector.warehouse.duckdb_file import from_microseconds, quoted, to_microseconds
from connector.warehouse.rows import as_json, differing, ids_table, listed_differing

_QUEUED = "SELECT id FROM sync.queue WHERE resource = $resource AND parent = $parent"
"""The stream's queue, as a statement; takes the parameters `resource` and `parent`."""


@dataclass(frozen=True, slots=True)
class Held:
    """A landed row, as a new answer needs it; lists may have shown it since."""

    record: str
    is_hydrated: bool
    is_deleted: bool
    is_listed_since: bool
    seen_at: datetime | None

    def shows(self, record: str) -> bool:
        """Whether the row is this very answer, alive and whole, in whatever order of keys."""
        if not self.is_hydrated or self.is_deleted:
            return False
        if self.record == record:
            return True
        # Another order of keys makes a text of the same length; most changes need no closer look.
        is_as_long = len(self.record) == len(record)
        return is_as_long and not differing(json.loads(self.record), json.loads(record))


@contextmanager
def staged(connection: duckdb.DuckDBPyConnection, table: pa.Table) -> Iterator[None]:
    """The table, readable as `stage`."""
    connection.register("stage", table)
    try:
        yield
    finally:
        connection.unregister("stage")


def held_rows(
    connection: duckdb.DuckDBPyConnection, resource: Declaration, ids: Iterable[str]
) -> dict[str, Held]:
    """The landed rows that are there under these ids."""
    name = quoted(resource.name)
    with staged(connection, ids_table(ids)):
        rows = connection.execute(
            "SELECT id, _record::VARCHAR, _hydrated_at IS NOT NULL, _deleted_at IS NOT NULL, "
            f"id IN (SELECT id FROM history.{name} "
            "WHERE _valid_to IS NULL AND _hydrated_at IS NULL AND id IN (SELECT id FROM stage)), "
            "epoch_us(_seen_at) "
            f"FROM landing.{name} WHERE rowid IN "
            # Found by their ids first: the records of all other rows are not read then.
            f"(SELECT rowid FROM landing.{name} WHERE id IN (SELECT id FROM stage))"
        ).fetchall()
    held = {
        id: Held(record, is_hydrated, is_deleted, is_listed_since, from_microseconds(seen_at))
        for id, record, is_hydrated, is_deleted, is_listed_since, seen_at in rows
    }
    assert len(held) == len(rows), f"landing.{name} holds an id twice"
    return held


class StreamQueries:
    """One stream's rows, to be asked about, over an open connection."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, stream: Stream) -> None:
        self._connection = connection
        self._stream = stream
        self._name = f"landing.{quoted(stream.resource.name)}"
        self._parent = stream.parent or ""

    def answer(self, wanted: commands.Query[Any]) -> Any:
        """What `wanted` asks for, as its own description says."""
        match wanted:
            case commands.Recall(ids):
                found: Any = self._recall(ids)
            case commands.Differing(answers):
                found = self._differing(answers)
            case commands.Differences(records):
                found = self._differences(records)
            case commands.Between(after, before):
                found = self._between("created_at", after, before)
            case commands.BetweenUpdated(after, before):
                found = self._between("updated_at", after, before, queued=False)
            case commands.CountBefore(moment):
                found = self._count_before(moment)
            case commands.LeastRecent(count):
                found = self._least_recent(count)
            case commands.Undated(after):
                found = self._ids(
                    f"SELECT id FROM {self._live()} AND _hydrated_at IS NOT NULL "
                    "AND (updated_at IS NULL OR epoch_us(updated_at) > $after) ORDER BY id",
                    {"parent": self._parent, "after": to_microseconds(after)},
                )
            case commands.NextQueued(count, skip):
                found = self._next_queued(count, skip)
            case commands.CountLive():
                found = self.count_live()
            case commands.CountQueued():
                found = self.count_pending()
        return found

    def live_ids(self) -> tuple[str, ...]:
        """Ids of the live rows, in order of creation."""
        return self._ids(
            f"SELECT id FROM {self._live()} ORDER BY created_at, id", {"parent": self._parent}
        )

    def count_live(self) -> int:
        """Rows not known to be deleted."""
        return self._count(f"SELECT count(*) FROM {self._live()}", {"parent": self._parent})

    def count_pending(self) -> int:
        """Ids that wait to be read."""
        return self._count(
            "SELECT count(*) FROM sync.queue WHERE resource = $resource AND parent = $parent",
            self._mine(),
        )

    def _recall(self, ids: tuple[str, ...]) -> dict[str, LandedRow]:
        with staged(self._connection, ids_table(ids)):
            rows = self._connection.execute(
                "SELECT id, epoch_us(updated_at), epoch_us(_hydrated_at), "
                f"id IN ({_QUEUED} AND id IN (SELECT id FROM stage)), "
                f"_deleted_at IS NOT NULL FROM {self._name} WHERE id IN (SELECT id FROM stage)",
                self._mine(),
            ).fetchall()
        return {
            id: LandedRow(from_microseconds(updated), from_microseconds(read), queued, deleted)
            for id, updated, read, queued, deleted in rows
        }

    def _differing(self, answers: tuple[Resource, ...]) -> frozenset[str]:
        held = held_rows(self._connection, self._stream.resource, (each.id for each in answers))
        landed = {id: row.record for id, row in held.items() if row.is_hydrated}
        return frozenset(
            each.id for each in answers if each.id in landed and _differs(each, landed[each.id])
        )

    def _differences(self, records: tuple[Resource, ...]) -> dict[str, tuple[str, ...]]:
        held = held_rows(self._connection, self._stream.resource, (each.id for each in records))
        names = {
            each.id: differing(json.loads(held[each.id].record), each.raw)
            for each in records
            if each.id in held and held[each.id].is_hydrated
        }
        return {id: each for id, each in names.items() if each}

    def _between(
        self, column: str, after: datetime | None, before: datetime | None, *, queued: bool = True
    ) -> frozenset[str]:
        statement = f"SELECT id FROM {self._live()}"
        parameters: dict[str, Any] = {"parent": self._parent}
        # Bounds are written out, so that DuckDB passes over row groups that lie outside of them.
        if after is not None:
            statement += f" AND {column} > make_timestamptz({to_microseconds(after)})"
        if before is not None:
            statement += f" AND {column} < make_timestamptz({to_microseconds(before)})"
        if not queued:
            statement += f" AND id NOT IN ({_QUEUED})"
            parameters["resource"] = self._stream.resource.name
        return frozenset(self._ids(statement, parameters))

    def _count_before(self, moment: datetime | None) -> int:
        bound = ""
        if moment is not None:
            bound = f" AND created_at < make_timestamptz({to_microseconds(moment)})"
        return self._count(f"SELECT count(*) FROM {self._live()}{bound}", {"parent": self._parent})

    def _least_recent(self, count: int) -> tuple[str, ...]:
        return self._ids(
            f"SELECT id FROM {self._live()} AND _hydrated_at IS NOT NULL "
            f"AND id NOT IN ({_QUEUED}) "
            "ORDER BY _hydrated_at, id LIMIT $count",
            {**self._mine(), "count": count},
        )

    def _next_queued(self, count: int, skip: frozenset[str]) -> tuple[str, ...]:
        parameters: dict[str, Any] = {**self._mine(), "count": count}
        others = ""
        if skip:
            others, parameters["skip"] = "AND id NOT IN (SELECT unnest($skip)) ", list(skip)
        return self._ids(
            f"{_QUEUED} {others}ORDER BY created_at DESC NULLS LAST, id LIMIT $count", parameters
        )

    def _live(self) -> str:
        """The stream's live rows, as what follows FROM; takes the parameter `parent`."""
        mine = "_content_type_id = $parent" if self._stream.resource.parent else "$parent = ''"
        return f"{self._name} WHERE _deleted_at IS NULL AND {mine}"

    def _mine(self) -> dict[str, str]:
        return {"resource": self._stream.resource.name, "parent": self._parent}

    def _ids(self, statement: str, parameters: Mapping[str, Any]) -> tuple[str, ...]:
        rows = self._connection.execute(statement, dict(parameters)).fetchall()
        return tuple(id for (id,) in rows)

    def _count(self, statement: str, parameters: Mapping[str, Any]) -> int:
        row = self._connection.execute(statement, dict(parameters)).fetchall()
        return int(row[0][0])


def _differs(answer: Resource, landed: str) -> bool:
    """Whether an answer shows another value than the landed record."""
    record = json.loads(landed)
    if not answer.is_item:
        return bool(differing(record, json.loads(as_json(answer.raw))))
    return bool(listed_differing(answer.declaration, answer.raw, record))
