"""Landing: list items and records as rows, tombstones, the queue, and what is asked of them.

Functions over an open connection and one stream; whoever calls them holds the transaction.
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

from connector.engine.ask import Commit, Event, Found, Gone, Known, Stream
from connector.resource import Resource
from connector.value import Kind
from connector.warehouse.moment import from_microseconds, to_microseconds
from connector.warehouse.rows import Rows, as_json, ids_table, moments
from connector.warehouse.schema import PARTS_TABLE, columns, part_columns, quoted


@dataclass(frozen=True, slots=True)
class Landed:
    """What one commit did, by fate: `listed` rows came from a list alone; the others from
    details.
    """

    listed: int = 0
    new: int = 0
    changed: int = 0
    unchanged: int = 0
    deleted: int = 0

    def __add__(self, other: Landed) -> Landed:
        return Landed(
            self.listed + other.listed,
            self.new + other.new,
            self.changed + other.changed,
            self.unchanged + other.unchanged,
            self.deleted + other.deleted,
        )


@dataclass(frozen=True, slots=True)
class _Held:
    """A row that is there, as far as a new answer is concerned."""

    record: str
    is_hydrated: bool
    is_deleted: bool

    def shows(self, record: str) -> bool:
        """Whether the row is this very answer, alive and whole."""
        return self.is_hydrated and not self.is_deleted and self.record == record


class Table:
    """One stream's rows in its landing table, over an open connection."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, stream: Stream) -> None:
        self._connection = connection
        self._stream = stream
        self._name = f"landing.{quoted(stream.resource.name)}"
        self._columns = columns(stream.resource)
        self._parent = stream.parent or ""

    # -- asked ------------------------------------------------------------------------------------

    def recall(self, ids: tuple[str, ...]) -> dict[str, Known]:
        """What is landed under the ids; unknown ids are left out."""
        with self._staged(ids_table(ids)):
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

    def differing(self, items: tuple[Resource, ...]) -> frozenset[str]:
        """Ids of list items that show other values than the rows whose details are landed."""
        held = self._held(item.id for item in items)
        landed = {id: json.loads(row.record) for id, row in held.items() if row.is_hydrated}
        return frozenset(
            item.id for item in items if item.id in landed and _differs(item, landed[item.id])
        )

    def between(self, after: datetime | None, before: datetime | None) -> frozenset[str]:
        """Live ids created strictly between the two moments; None is no bound."""
        rows = self._connection.execute(
            f"SELECT id FROM {self._live()} "
            "AND ($after::BIGINT IS NULL OR epoch_us(created_at) > $after) "
            "AND ($before::BIGINT IS NULL OR epoch_us(created_at) < $before)",
            {
                "parent": self._parent,
                "after": to_microseconds(after),
                "before": to_microseconds(before),
            },
        ).fetchall()
        return frozenset(id for (id,) in rows)

    def next_queued(self, count: int, skip: frozenset[str]) -> tuple[str, ...]:
        """At most `count` queued ids, newest `created_at` first, without those to skip."""
        with self._staged(ids_table(skip)):
            rows = self._connection.execute(
                "SELECT id FROM sync.queue WHERE resource = $resource AND parent = $parent "
                "AND id NOT IN (SELECT id FROM stage) "
                "ORDER BY created_at DESC NULLS LAST, id LIMIT $count",
                {**self._mine(), "count": count},
            ).fetchall()
        return tuple(id for (id,) in rows)

    def live_ids(self) -> tuple[str, ...]:
        """Ids of the live rows, in order of creation."""
        rows = self._connection.execute(
            f"SELECT id FROM {self._live()} ORDER BY created_at, id", {"parent": self._parent}
        ).fetchall()
        return tuple(id for (id,) in rows)

    def count_live(self) -> int:
        """Rows not known to be deleted."""
        return self._count(f"SELECT count(*) FROM {self._live()}", {"parent": self._parent})

    def count_pending(self) -> int:
        """Ids that wait to be read."""
        return self._count(
            "SELECT count(*) FROM sync.queue WHERE resource = $resource AND parent = $parent",
            self._mine(),
        )

    def _live(self) -> str:
        """The stream's live rows, as what follows FROM; takes the parameter `parent`."""
        mine = "_content_type_id = $parent" if self._stream.resource.parent else "$parent = ''"
        return f"{self._name} WHERE _deleted_at IS NULL AND {mine}"

    # -- done -------------------------------------------------------------------------------------

    def land(self, what: Commit, run_id: str, at: datetime) -> tuple[Landed, tuple[Event, ...]]:
        """Carry out everything in the commit but its bookmark; tells the rows' fates and events."""
        listed, events = self._land_items(what.items, run_id, at)
        records, more = self._land_records(what.records, run_id)
        deleted, tombstones = self._bury(what.gone, run_id)
        self._enqueue(what.enqueue)
        fates = Landed(listed=listed, deleted=deleted) + records
        return fates, (*events, *more, *tombstones, *what.events)

    def _land_items(
        self, items: tuple[Resource, ...], run_id: str, at: datetime
    ) -> tuple[int, tuple[Event, ...]]:
        """Insert rows for ids that are not there, and queue them; what is there is only seen."""
        if not items:
            return 0, ()
        # A page can show an id twice when records slid while it was made; the last showing counts.
        distinct = {item.id: item for item in items}
        held = self._held(distinct)
        seen_at = next((item.served_at for item in items if item.served_at), at)
        rows = Rows(self._columns)
        for id, item in distinct.items():
            if id not in held:
                rows.add(item, self._own(run_id, seen_at=item.served_at or at))
        with self._staged(ids_table(held)):
            self._execute(
                f"UPDATE {self._name} SET _seen_at = $at::TIMESTAMPTZ "
                "WHERE id IN (SELECT id FROM stage)",
                {"at": seen_at.isoformat()},
            )
        self._insert(rows)
        # A row held for deleted that is listed again must be looked at before it is believed.
        reappeared = {id: "reappeared" for id, row in held.items() if row.is_deleted}
        self._enqueue({id: "listed" for id in distinct if id not in held} | reappeared)
        return len(distinct) - len(held), _events(rows)

    def _land_records(
        self, records: tuple[Found, ...], run_id: str
    ) -> tuple[Landed, tuple[Event, ...]]:
        """Replace the rows of records that were read; one that reads as before is only stamped."""
        if not records:
            return Landed(), ()
        distinct = {each.record.id: each for each in records}
        held = self._held(distinct)
        rows = Rows(self._columns)
        new, same = 0, []
        for id, each in distinct.items():
            before = held.get(id)
            if before is not None and before.shows(as_json(each.record.raw)):
                same.append(each)
                continue
            new += before is None or not before.is_hydrated
            own = self._own(run_id, seen_at=each.served_at, hydrated_at=each.served_at)
            rows.add(each.record, own)
        self._stamp(same)
        replaced = [id for id in rows.values["id"] if id in held]
        self._delete(self._name, "id", replaced)
        self._insert(rows)
        self._land_parts([distinct[id] for id in rows.values["id"]], run_id)
        self._dequeue(tuple(distinct))
        fates = Landed(new=new, changed=len(distinct) - len(same) - new, unchanged=len(same))
        return fates, _events(rows)

    def _land_parts(self, records: list[Found], run_id: str) -> None:
        """Replace the parts that details hold: the fields of content types (API 2.6)."""
        parts = [f for f in self._stream.resource.detail_fields if f.kind is Kind.PARTS]
        for declared in parts:
            rows = Rows(part_columns())
            for each in records:
                own = self._own(run_id, seen_at=each.served_at, hydrated_at=each.served_at)
                own["_content_type_id"] = each.record.id
                for part in declared.read(each.record.raw.get(declared.name))[0] or ():
                    rows.add(part, own)
            name = f"landing.{quoted(PARTS_TABLE)}"
            self._delete(name, "_content_type_id", [each.record.id for each in records])
            self._insert(rows, name)

    def _bury(self, gone: Mapping[str, Gone], run_id: str) -> tuple[int, tuple[Event, ...]]:
        """Mark rows as deleted, with the evidence as an event; a row already so marked stays as
        it is.
        """
        if not gone:
            return 0, ()
        live = [id for id, row in self._held(gone).items() if not row.is_deleted]
        stage = ids_table(live).append_column("at", moments(gone[id].served_at for id in live))
        with self._staged(stage):
            self._execute(
                f"UPDATE {self._name} AS held SET _deleted_at = stage.at, _run_id = $run "
                "FROM stage WHERE held.id = stage.id",
                {"run": run_id},
            )
        self._dequeue(tuple(gone))
        return len(live), tuple(Event("deleted", "the API answered 404", id) for id in live)

    def _stamp(self, found: list[Found]) -> None:
        """Record that these were read and are as landed."""
        if not found:
            return
        stage = ids_table(each.record.id for each in found).append_column(
            "at", moments(each.served_at for each in found)
        )
        with self._staged(stage):
            self._execute(
                f"UPDATE {self._name} AS held SET _hydrated_at = stage.at, _seen_at = stage.at "
                "FROM stage WHERE held.id = stage.id"
            )

    def _held(self, ids: Iterable[str]) -> dict[str, _Held]:
        """The rows that are there under these ids."""
        with self._staged(ids_table(ids)):
            rows = self._connection.execute(
                "SELECT id, _record::VARCHAR, _hydrated_at IS NOT NULL, _deleted_at IS NOT NULL "
                f"FROM {self._name} WHERE id IN (SELECT id FROM stage)"
            ).fetchall()
        held = {id: _Held(*rest) for id, *rest in rows}
        assert len(held) == len(rows), f"{self._name} holds an id twice"
        return held

    def _enqueue(self, reasons: Mapping[str, str]) -> None:
        """Queue ids that are not queued yet, dated as their rows are."""
        if not reasons:
            return
        stage = ids_table(reasons).append_column("reason", pa.array(reasons.values(), pa.string()))
        with self._staged(stage):
            self._execute(
                "INSERT INTO sync.queue "
                "SELECT $resource, $parent, stage.id, stage.reason, held.created_at "
                f"FROM stage LEFT JOIN {self._name} AS held USING (id) WHERE stage.id NOT IN "
                "(SELECT id FROM sync.queue WHERE resource = $resource AND parent = $parent)",
                self._mine(),
            )

    def _dequeue(self, ids: tuple[str, ...]) -> None:
        if not ids:
            return
        with self._staged(ids_table(ids)):
            self._execute(
                "DELETE FROM sync.queue WHERE resource = $resource AND parent = $parent "
                "AND id IN (SELECT id FROM stage)",
                self._mine(),
            )

    # -- plumbing ---------------------------------------------------------------------------------

    def _insert(self, rows: Rows, name: str | None = None) -> None:
        if not rows:
            return
        with self._staged(rows.table()):
            self._execute(f"INSERT INTO {name or self._name} BY NAME SELECT * FROM stage")

    def _delete(self, name: str, column: str, ids: list[str]) -> None:
        if not ids:
            return
        with self._staged(ids_table(ids)):
            self._execute(f"DELETE FROM {name} WHERE {column} IN (SELECT id FROM stage)")

    def _own(
        self, run_id: str, *, seen_at: datetime, hydrated_at: datetime | None = None
    ) -> dict[str, Any]:
        """The connector's own columns of a row."""
        return {
            "_content_type_id": self._stream.parent,
            "_hydrated_at": hydrated_at,
            "_seen_at": seen_at,
            "_deleted_at": None,
            "_run_id": run_id,
        }

    def _mine(self) -> dict[str, str]:
        return {"resource": self._stream.resource.name, "parent": self._parent}

    def _execute(self, statement: str, parameters: Mapping[str, Any] | None = None) -> None:
        self._connection.execute(statement, dict(parameters or {}))

    def _count(self, statement: str, parameters: Mapping[str, Any] | None = None) -> int:
        row = self._connection.execute(statement, dict(parameters or {})).fetchall()
        return int(row[0][0])

    @contextmanager
    def _staged(self, table: pa.Table) -> Iterator[None]:
        """The table, readable as `stage`."""
        self._connection.register("stage", table)
        try:
            yield
        finally:
            self._connection.unregister("stage")


def _differs(item: Resource, landed: Mapping[str, Any]) -> bool:
    """Whether a list item shows another value than the landed record, where both show one."""
    for field in item.declaration.item_fields:
        if field.name not in item.raw or field.name not in landed:
            continue
        detail, _ = field.read(landed[field.name])
        # Lists document fewer values than details: what they cannot show is no difference.
        if field.item_values and detail not in field.item_values:
            continue
        if field.read(item.raw[field.name])[0] != detail:
            return True
    return False


def _events(rows: Rows) -> tuple[Event, ...]:
    return tuple(Event(oddity.kind, oddity.detail) for oddity in rows.oddities)
