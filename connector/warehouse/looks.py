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

from connector.engine import ask
from connector.engine.ask import Known, Stream
from connector.resource import Resource
from connector.warehouse.moment import from_microseconds, to_microseconds
from connector.warehouse.rows import as_json, ids_table
from connector.warehouse.schema import quoted


@dataclass(frozen=True, slots=True)
class Held:
    """A row that is there, as far as a new answer is concerned."""

    record: str
    is_hydrated: bool
    is_deleted: bool

    def shows(self, record: str) -> bool:
        """Whether the row is this very answer, alive and whole."""
        return self.is_hydrated and not self.is_deleted and self.record == record


@contextmanager
def staged(connection: duckdb.DuckDBPyConnection, table: pa.Table) -> Iterator[None]:
    """The table, readable as `stage`."""
    connection.register("stage", table)
    try:
        yield
    finally:
        connection.unregister("stage")


def held_rows(
    connection: duckdb.DuckDBPyConnection, name: str, ids: Iterable[str]
) -> dict[str, Held]:
    """The rows of the landing table `name` that are there under these ids."""
    with staged(connection, ids_table(ids)):
        rows = connection.execute(
            "SELECT id, _record::VARCHAR, _hydrated_at IS NOT NULL, _deleted_at IS NOT NULL "
            f"FROM {name} WHERE id IN (SELECT id FROM stage)"
        ).fetchall()
    held = {id: Held(*rest) for id, *rest in rows}
    assert len(held) == len(rows), f"{name} holds an id twice"
    return held


class Looks:
    """One stream's rows, to be asked about, over an open connection."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, stream: Stream) -> None:
        self._connection = connection
        self._stream = stream
        self._name = f"landing.{quoted(stream.resource.name)}"
        self._parent = stream.parent or ""

    def answer(self, wanted: ask.Look) -> Any:
        """What `wanted` asks for, as its own description says."""
        match wanted:
            case ask.Recall(ids):
                found: Any = self._recall(ids)
            case ask.Differing(answers):
                found = self._differing(answers)
            case ask.Between(after, before):
                found = self._between("created_at", after, before)
            case ask.BetweenUpdated(after, before):
                queued = self._queued_ids()
                found = self._between("updated_at", after, before) - queued
            case ask.CountBefore(moments):
                found = self._count_before(moments)
            case ask.LeastRecent(count):
                found = self._least_recent(count)
            case ask.NextQueued(count, skip):
                found = self._next_queued(count, skip)
            case ask.CountLive():
                found = self.count_live()
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

    def _recall(self, ids: tuple[str, ...]) -> dict[str, Known]:
        with staged(self._connection, ids_table(ids)):
            rows = self._connection.execute(
                "SELECT id, epoch_us(updated_at), epoch_us(_hydrated_at), id IN "
                "(SELECT id FROM sync.queue WHERE resource = $resource AND parent = $parent), "
                f"_deleted_at IS NOT NULL FROM {self._name} WHERE id IN (SELECT id FROM stage)",
                self._mine(),
            ).fetchall()
        return {
            id: Known(from_microseconds(updated), from_microseconds(read), queued, deleted)
            for id, updated, read, queued, deleted in rows
        }

    def _differing(self, answers: tuple[Resource, ...]) -> frozenset[str]:
        held = held_rows(self._connection, self._name, (each.id for each in answers))
        landed = {id: row.record for id, row in held.items() if row.is_hydrated}
        return frozenset(
            each.id for each in answers if each.id in landed and _differs(each, landed[each.id])
        )

    def _between(
        self, column: str, after: datetime | None, before: datetime | None
    ) -> frozenset[str]:
        ids = self._ids(
            f"SELECT id FROM {self._live()} "
            f"AND ($after::BIGINT IS NULL OR epoch_us({column}) > $after) "
            f"AND ($before::BIGINT IS NULL OR epoch_us({column}) < $before)",
            {
                "parent": self._parent,
                "after": to_microseconds(after),
                "before": to_microseconds(before),
            },
        )
        return frozenset(ids)

    def _count_before(self, moments: tuple[datetime | None, ...]) -> tuple[int, ...]:
        return tuple(
            self._count(
                f"SELECT count(*) FROM {self._live()} "
                "AND ($before::BIGINT IS NULL OR epoch_us(created_at) < $before)",
                {"parent": self._parent, "before": to_microseconds(each)},
            )
            for each in moments
        )

    def _least_recent(self, count: int) -> tuple[str, ...]:
        return self._ids(
            f"SELECT id FROM {self._live()} AND _hydrated_at IS NOT NULL AND id NOT IN "
            "(SELECT id FROM sync.queue WHERE resource = $resource AND parent = $parent) "
            "ORDER BY _hydrated_at, id LIMIT $count",
            {**self._mine(), "count": count},
        )

    def _next_queued(self, count: int, skip: frozenset[str]) -> tuple[str, ...]:
        with staged(self._connection, ids_table(skip)):
            return self._ids(
                "SELECT id FROM sync.queue WHERE resource = $resource AND parent = $parent "
                "AND id NOT IN (SELECT id FROM stage) "
                "ORDER BY created_at DESC NULLS LAST, id LIMIT $count",
                {**self._mine(), "count": count},
            )

    def _queued_ids(self) -> frozenset[str]:
        return frozenset(
            self._ids(
                "SELECT id FROM sync.queue WHERE resource = $resource AND parent = $parent",
                self._mine(),
            )
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
    """Whether an answer shows another value than the landed record; a list item, where both show
    one.
    """
    if not answer.is_item:
        return landed != as_json(answer.raw)
    record = json.loads(landed)
    for field in answer.declaration.item_fields:
        if field.name not in answer.raw or field.name not in record:
            continue
        detail, _ = field.read(record[field.name])
        # Lists document fewer values than details: what they cannot show is no difference.
        if field.item_values and detail not in field.item_values:
            continue
        if field.read(answer.raw[field.name])[0] != detail:
            return True
    return False
