"""Landing: list items and records as rows, tombstones and the queue.

Functions over an open connection and one stream; whoever calls them holds the transaction.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import astuple, dataclass, replace
from datetime import datetime
from operator import add
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from connector.catalog.resource import Resource
from connector.catalog.value import Kind
from connector.engine import commands
from connector.engine.bookmark import Stream
from connector.engine.commands import Commit, Event, Found, Gone
from connector.suppression.listed import Suppressed
from connector.warehouse.duckdb_file import quoted
from connector.warehouse.history import History
from connector.warehouse.queries import Held, held_rows, staged
from connector.warehouse.rows import RowBatch, as_json, ids_table, moments
from connector.warehouse.schema import PARTS_TABLE, columns, part_columns


@dataclass(frozen=True, slots=True)
class Landed:
    """Rows of one commit by fate: `listed` by lists alone, the others by details."""

    listed: int = 0
    new: int = 0
    changed: int = 0
    unchanged: int = 0
    deleted: int = 0

    def __add__(self, other: Landed) -> Landed:
        return Landed(*map(add, astuple(self), astuple(other)))


class LandingTable:
    """One stream's rows in its landing table, over an open connection."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, stream: Stream) -> None:
        self._connection = connection
        self._stream = stream
        self._name = f"landing.{quoted(stream.resource.name)}"
        self._columns = columns(stream.resource)
        self._parent = stream.parent or ""
        self._history = History(connection, stream)

    # -- done -------------------------------------------------------------------------------------

    def land(self, what: Commit, run_id: str, at: datetime) -> tuple[Landed, tuple[Event, ...]]:
        """Carry out the commit but for its bookmark; returns the rows' fates and events."""
        listed, events = self._land_items(what.items, run_id, at)
        records, more = self._land_records(what.records, run_id)
        deleted, tombstones = self._bury(what.gone, run_id)
        self._enqueue(what.enqueue)
        fates = Landed(listed=listed, deleted=deleted) + records
        return fates, (*events, *more, *tombstones, *what.events)

    def _land_items(
        self, items: tuple[Resource, ...], run_id: str, at: datetime
    ) -> tuple[int, tuple[Event, ...]]:
        """Insert and queue rows for ids that are not there.

        A row that was read is only seen, whatever a list shows; the history keeps what differs.
        """
        if not items:
            return 0, ()
        # A page can show an id twice when records slid while it was made; the last showing counts.
        distinct: dict[str, Resource] = {item.id: item for item in items}
        held = held_rows(self._connection, self._stream.resource, distinct)
        edits = self._history.listed(distinct, held, at)
        rows = RowBatch(self._columns)
        # A newer list item takes the place of an older one; a detail stays what was last read.
        unread = [id for id in edits.begun if id not in held or not held[id].is_hydrated]
        for id in unread:
            own = self._own(run_id, seen_at=distinct[id].served_at or at)
            rows.add(distinct[id], own)
        self._see((distinct[id] for id in held if id not in edits.stale), at)
        self._delete(self._name, "id", [id for id in unread if id in held])
        table = rows.table()
        self._insert(table)
        self._history.write(edits, table, run_id)
        # A row held for deleted that is listed again must be looked at before it is believed.
        reappeared = {id: "reappeared" for id, row in held.items() if row.is_deleted}
        self._enqueue({id: "listed" for id in distinct if id not in held} | reappeared)
        return len(distinct) - len(held), _events(rows)

    def _see(self, items: Iterable[Resource], at: datetime) -> None:
        """Record that a list showed these."""
        seen = [(item.id, item.served_at or at) for item in items]
        if not seen:
            return
        stage = ids_table((id for id, _ in seen), at=moments(at for _, at in seen))
        with staged(self._connection, stage):
            self._execute(
                f"UPDATE {self._name} AS held SET _seen_at = stage.at "
                "FROM stage WHERE held.id = stage.id"
            )

    def _land_records(
        self, records: tuple[Found, ...], run_id: str
    ) -> tuple[Landed, tuple[Event, ...]]:
        """Replace rows of records that were read; one that is as before is stamped."""
        if not records:
            return Landed(), ()
        distinct: dict[str, Found] = {each.record.id: each for each in records}
        held = held_rows(self._connection, self._stream.resource, distinct)
        rows = RowBatch(self._columns)
        new, same = 0, []
        for id, each in distinct.items():
            before, text = held.get(id), as_json(each.record.raw)
            if before is not None and before.shows(text):
                same.append(each)
                continue
            new += before is None or not before.is_hydrated
            own = self._own(run_id, seen_at=each.served_at, hydrated_at=each.served_at)
            rows.add(each.record, own | {"_record": text})
        self._stamp(same)
        replaced = [id for id in rows.values["id"] if id in held]
        self._delete(self._name, "id", replaced)
        table = rows.table()
        self._insert(table)
        edits = self._history.read(distinct, held, {each.record.id for each in same})
        self._history.write(edits, table, run_id)
        self._land_parts([distinct[id] for id in rows.values["id"]], run_id)
        self._dequeue(tuple(distinct))
        fates = Landed(new=new, changed=len(distinct) - len(same) - new, unchanged=len(same))
        return fates, _events(rows)

    def _land_parts(self, records: list[Found], run_id: str) -> None:
        """Replace the parts that details hold: the fields of content types (API 2.6)."""
        parts = [f for f in self._stream.resource.detail_fields if f.kind is Kind.PARTS]
        for declared in parts:
            rows = RowBatch(part_columns())
            for each in records:
                own = self._own(run_id, seen_at=each.served_at, hydrated_at=each.served_at)
                own["_content_type_id"] = each.record.id
                for part in declared.read(each.record.raw.get(declared.name))[0] or ():
                    rows.add(part, own)
            name = f"landing.{quoted(PARTS_TABLE)}"
            self._delete(name, "_content_type_id", [each.record.id for each in records])
            self._insert(rows.table(), name)

    def _bury(self, gone: Mapping[str, Gone], run_id: str) -> tuple[int, tuple[Event, ...]]:
        """Mark rows as deleted, with the evidence as an event, but for marked ones."""
        if not gone:
            return 0, ()
        held = held_rows(self._connection, self._stream.resource, gone)
        live = [id for id, row in held.items() if not row.is_deleted]
        edits = self._history.gone({id: gone[id] for id in live})
        self._history.write(edits, None, run_id)
        stage = ids_table(live, at=moments(gone[id].served_at for id in live))
        with staged(self._connection, stage):
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
        at = moments(each.served_at for each in found)
        stage = ids_table((each.record.id for each in found), at=at)
        with staged(self._connection, stage):
            self._execute(
                f"UPDATE {self._name} AS held SET _hydrated_at = stage.at, _seen_at = stage.at "
                "FROM stage WHERE held.id = stage.id"
            )
            self._history.confirm()

    def _enqueue(self, reasons: Mapping[str, str]) -> None:
        """Queue ids that are not queued yet, dated as their rows are."""
        if not reasons:
            return
        stage = ids_table(reasons, reason=pa.array(reasons.values(), pa.string()))
        with staged(self._connection, stage):
            self._execute(
                "INSERT INTO sync.queue "
                "SELECT $resource, $parent, stage.id, stage.reason, held.created_at "
                f"FROM stage LEFT JOIN {self._name} AS held USING (id) WHERE stage.id NOT IN "
                "(SELECT id FROM sync.queue WHERE resource = $resource AND parent = $parent "
                "AND id IN (SELECT id FROM stage))",
                self._mine(),
            )

    def _dequeue(self, ids: tuple[str, ...]) -> None:
        if not ids:
            return
        with staged(self._connection, ids_table(ids)):
            self._execute(
                "DELETE FROM sync.queue WHERE resource = $resource AND parent = $parent "
                "AND id IN (SELECT id FROM stage)",
                self._mine(),
            )

    # -- plumbing ---------------------------------------------------------------------------------

    def _insert(self, table: pa.Table, name: str | None = None) -> None:
        if not len(table):
            return
        name = name or self._name
        with staged(self._connection, table):
            self._execute(f"INSERT INTO {name} BY NAME SELECT * FROM stage")

    def _delete(self, name: str, column: str, ids: list[str]) -> None:
        if not ids:
            return
        with staged(self._connection, ids_table(ids)):
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


def _events(rows: RowBatch) -> tuple[Event, ...]:
    return tuple(Event(oddity.kind, oddity.detail) for oddity in rows.oddities)


# -- Stripping -------------------------------------------------------------------------------------
# Keeping those who were erased out of the landing: what is read of them lands without them.
#
# Called where the warehouse is written to and where answers are compared with it, so that nobody
# comes back by another door and an unchanged answer stays an unchanged row.


SUPPRESSED = "suppressed"
"""The kind of the event that says so."""


def without_erased(
    connection: duckdb.DuckDBPyConnection, stream: Stream, what: Commit, folder: Path
) -> Commit:
    """The commit as it may land, without what tells of people who were erased.

    An event says so of each record that is new or changed. Raises a `WarehouseError`.
    """
    if not what.items and not what.records:
        return what
    list_ = Suppressed.of(folder)
    if list_ is None:
        return what
    stripped: dict[str, Resource] = {}

    def left(record: Resource) -> Resource:
        made = list_.strip(record)
        if made is not record:
            stripped[made.id] = made
        return made

    items = tuple(left(each) for each in what.items)
    records = tuple(replace(each, record=left(each.record)) for each in what.records)
    if not stripped:
        return what
    held = held_rows(connection, stream.resource, stripped)
    events = (*what.events, *_told(stripped, held))
    return replace(what, items=items, records=records, events=events)


def _told(stripped: Mapping[str, Resource], held: Mapping[str, Held]) -> Iterator[Event]:
    for id, record in stripped.items():
        row = held.get(id)
        is_seen_before = row is not None and (record.is_item or row.shows(as_json(record.raw)))
        if not is_seen_before:
            yield Event(SUPPRESSED, "of a person who was erased: landed without what tells so", id)


def query_without_erased(wanted: commands.Query[Any], folder: Path) -> commands.Query[Any]:
    """The query with its answers as they would land. Raises a `WarehouseError`."""
    if not isinstance(wanted, commands.Differing | commands.Differences):
        return wanted
    list_ = Suppressed.of(folder)
    if list_ is None:
        return wanted
    if isinstance(wanted, commands.Differing):
        return replace(wanted, items=tuple(map(list_.strip, wanted.items)))
    return replace(wanted, records=tuple(map(list_.strip, wanted.records)))
