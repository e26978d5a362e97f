"""Landing and history: loads list items and records as rows and versions, with the queue.

All functions use an open connection, for one stream; the caller begins and ends the transaction.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import astuple, dataclass
from datetime import datetime
from functools import partial
from operator import add
from typing import Any

import duckdb
import pyarrow as pa

from connector.catalog.field import Kind
from connector.catalog.resource import Resource
from connector.warehouse.duckdb_file import from_microseconds, literal, quoted, staged_table, to_iso
from connector.warehouse.queries import ExistingRow, created_condition, queue_condition, stored_rows
from connector.warehouse.schema import (
    HISTORY_COLUMNS,
    PARTS_TABLE,
    RowBatch,
    as_json,
    content_type_field_columns,
    differing_listed_names,
    ids_table,
    landing_columns,
    replace_surrogates,
    rowids_table,
    timestamp_array,
)
from connector.warehouse.stream import (
    Commit,
    DeletionProof,
    Event,
    FoundDetail,
    Stream,
    UnreadableDetail,
)
from connector.warehouse.versions import HistoryEdits, RecordState, Version, VersionEnd

# -- History --------------------------------------------------------------------------------------
# History: one row for every observed version of every record.
#
# `history` has a table for each landing table of records, with the same name. Its rows are written
# in the transaction that writes the landing rows. `versions.py` defines how a response changes the
# versions of a record and when they begin and end, `schema.py` defines what counts as a change, and
# the comments of the columns in `schema.py` describe each timestamp.
#
# The landing row shows the open version, unless only lists showed that version after a detail.


class HistoryTable:
    """History table of one stream. The caller holds the connection's transaction.

    The `edits_from_...` methods compute changes from a response, and `write_edits` writes them.
    `stored` always contains the landing rows before the response, by id.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection, stream: Stream) -> None:
        self._connection, self._stream = connection, stream
        self._name = f"history.{quoted(stream.resource.name)}"
        self._columns = landing_columns(stream.resource)
        own = {column.name for column in HISTORY_COLUMNS} - {"_record", "_run_id"}
        shared = [c.name for c in self._columns if c.name not in own]
        self._shared = [n for n in shared if n not in ("_hydrated_at", "_seen_at", "_deleted_at")]

    # -- Responses ---------------------------------------------------------------------------------

    def edits_from_items(
        self, items: Mapping[str, Resource], stored: Mapping[str, ExistingRow], at: datetime
    ) -> HistoryEdits:
        """Return the edits for changed list items; `at` replaces a missing server time."""
        edits = HistoryEdits(self._stream.resource)
        differs = partial(differing_listed_names, self._stream.resource)
        last = self._last_versions(
            {
                id: row
                for id, row in stored.items()
                if not row.is_deleted
                and (row.is_listed_since or differs(items[id].raw, json.loads(row.record)))
            }
        )
        for id, item in items.items():
            if id in last or id not in stored:
                edits.add_list_item(
                    item, item.served_at or at, _record_state(last.get(id), stored.get(id))
                )
        return edits

    def edits_from_details(
        self,
        found: Mapping[str, FoundDetail],
        stored: Mapping[str, ExistingRow],
        unchanged: Set[str],
    ) -> HistoryEdits:
        """Return the edits for details that were read.

        Details in `unchanged` only need an edit if a list has shown other values since.
        """
        edits = HistoryEdits(self._stream.resource)
        last = self._last_versions(
            {id: row for id, row in stored.items() if id not in unchanged or row.is_listed_since}
        )
        for id, each in found.items():
            if id in last or id not in stored:
                before = _record_state(last.get(id), stored.get(id))
                edits.add_detail(each.record, each.served_at, before)
        return edits

    def edits_from_deletions(
        self, gone: Mapping[str, DeletionProof], stored: Mapping[str, ExistingRow]
    ) -> HistoryEdits:
        """Return the edits that end the versions of these live records."""
        edits = HistoryEdits(self._stream.resource)
        for id, last in self._last_versions({id: stored[id] for id in gone}).items():
            edits.add_deletion(id, gone[id].served_at, last)
        return edits

    # -- rows -------------------------------------------------------------------------------------

    def _last_versions(self, stored: Mapping[str, ExistingRow]) -> dict[str, Version]:
        """Return the last version of each of these records, open or ended by a deletion."""
        found: list[tuple[Any, ...]] = []
        places = [
            row.open_version_rowid for row in stored.values() if row.open_version_rowid is not None
        ]
        if places:
            found += self._select_versions(rowids_table(places), "SELECT place FROM stage")
        ended = [id for id, row in stored.items() if row.open_version_rowid is None]
        if ended:
            # The ids are filtered first, so that other rows' records are not read.
            rowids = f"SELECT rowid FROM {self._name} WHERE id IN (SELECT id FROM stage)"
            found += self._select_versions(ids_table(ended), f"{rowids} AND _ended_by = 'deletion'")
        # If a record was deleted more than once, the last version counts.
        return {row[0]: _to_version(row) for row in sorted(found, key=lambda row: int(row[1]))}

    def _select_versions(self, stage: pa.Table, rowids: str) -> list[tuple[Any, ...]]:
        """Return the versions whose row ids the query `rowids` selects from `stage`."""
        with staged_table(self._connection, stage):
            return self._connection.execute(
                "SELECT id, _version, epoch_us(_valid_from), epoch_us(_began_after), "
                "epoch_us(_observed_from), epoch_us(_observed_to), epoch_us(_hydrated_at), "
                "epoch_us(_valid_to), _changed, "
                "CASE WHEN _hydrated_at IS NULL THEN _record::VARCHAR END "
                f"FROM {self._name} WHERE rowid IN ({rowids})"
            ).fetchall()

    def extend_unchanged(
        self, read: Mapping[str, datetime], stored: Mapping[str, ExistingRow]
    ) -> None:
        """Extend the open version of each record to the time at which it was read unchanged.

        Records that a list has shown differently since their detail are skipped.
        """
        self._extend_observations(
            {id: at for id, at in read.items() if not stored[id].is_listed_since}, stored
        )

    def write_edits(
        self,
        edits: HistoryEdits,
        stored: Mapping[str, ExistingRow],
        landed: pa.Table | None,
        run_id: str,
    ) -> None:
        """Write the edits.

        `landed` contains the new landing rows of the same commit, from which values are copied.
        Values of other records come from the edits.
        """
        self._end_versions(edits.endings, stored)
        self._move_previous_ends(edits.moved)
        self._extend_observations(edits.confirmed, stored)
        if edits.completed:
            with staged_table(
                self._connection, rowids_table(_open_version_rowids(edits.completed, stored))
            ):
                self._connection.execute(
                    f"DELETE FROM {self._name} WHERE rowid IN (SELECT place FROM stage)"
                )
        opened = edits.begun | edits.completed
        landed_ids = set() if landed is None else set(landed["id"].to_pylist())
        rows = RowBatch(self._columns)
        for id, (_, record) in opened.items():
            if id not in landed_ids:
                rows.add(record, {"_content_type_id": self._stream.parent, "_run_id": run_id})
        for table in (landed, rows.table() if rows else None):
            if table is not None:
                self._insert_versions(table, opened)

    def _insert_versions(
        self, table: pa.Table, opened: Mapping[str, tuple[Version, Resource]]
    ) -> None:
        """Insert the versions of `opened` whose ids are in the table, with its values."""
        ids = table["id"].to_pylist()
        is_opened = [id in opened for id in ids]
        if not any(is_opened):
            return
        values = table.select(self._shared).filter(pa.array(is_opened, pa.bool_()))
        versions = [opened[id][0] for id in ids if id in opened]
        stage = values
        for name in ("valid_from", "began_after", "began_before", "observed_from", "observed_to"):
            dates = timestamp_array(getattr(each, name) for each in versions)
            stage = stage.append_column(f"_{name}", dates)
        hydrated = timestamp_array(each.hydrated_at for each in versions)
        stage = stage.append_column("_hydrated_at", hydrated)
        changed = pa.array([each.changed for each in versions], pa.list_(pa.string()))
        stage = stage.append_column("_changed", changed)
        numbers = pa.array([each.number for each in versions], pa.int64())
        stage = stage.append_column("_version", numbers)
        with staged_table(self._connection, stage):
            self._connection.execute(f"INSERT INTO {self._name} BY NAME SELECT * FROM stage")

    def _end_versions(
        self, endings: Mapping[str, VersionEnd], stored: Mapping[str, ExistingRow]
    ) -> None:
        """Set the ends of the open versions of these records."""
        if not endings:
            return
        ends = endings.values()
        stage = rowids_table(
            _open_version_rowids(endings, stored),
            valid_to=timestamp_array(each.valid_to for each in ends),
            before=timestamp_array(each.before for each in ends),
            how=pa.array([each.by for each in ends], pa.string()),
        )
        # The rows are written again because they are spread over the table: an update needs half a
        # megabyte of memory for each row and column until the transaction ends.
        with staged_table(self._connection, stage):
            self._assert_ends_after_start("stored.rowid = stage.place", "stage.valid_to")
            self._connection.execute(
                f"INSERT INTO {self._name} SELECT stored.* REPLACE (stage.valid_to AS _valid_to, "
                "stored._observed_to AS _ended_after, stage.before AS _ended_before, "
                f"stage.how AS _ended_by) FROM {self._name} AS stored "
                "JOIN stage ON stored.rowid = stage.place"
            )
            self._connection.execute(
                f"DELETE FROM {self._name} WHERE rowid IN (SELECT place FROM stage)"
            )

    def _move_previous_ends(self, moved: Mapping[str, Version]) -> None:
        """End each record's previous version at the new start of its completed version."""
        moved = {id: each for id, each in moved.items() if each.number > 1}
        if not moved:
            return
        before = pa.array([each.number - 1 for each in moved.values()], pa.int64())
        at = timestamp_array(each.valid_from for each in moved.values())
        stage = ids_table(moved, number=before, at=at)
        is_before = "stored.id = stage.id AND stored._version = stage.number"
        with staged_table(self._connection, stage):
            self._assert_ends_after_start(is_before, "stage.at")
            self._connection.execute(
                f"UPDATE {self._name} AS stored SET _valid_to = stage.at FROM stage "
                f"WHERE {is_before}"
            )

    def _assert_ends_after_start(self, join_condition: str, new_end: str) -> None:
        """Assert that no version would end before it began.

        Both parameters are SQL: the join of `stored` with `stage`, and the new end.
        """
        ((backward,),) = self._connection.execute(
            f"SELECT count(*) FROM {self._name} AS stored JOIN stage ON {join_condition} "
            f"WHERE {new_end} < stored._valid_from"
        ).fetchall()
        assert not backward, f"{self._name}: {backward} versions would end before they began"

    def _extend_observations(
        self, times: Mapping[str, datetime], stored: Mapping[str, ExistingRow]
    ) -> None:
        """Extend the last observation of each record's open version to the time."""
        if not times:
            return
        stage = rowids_table(
            _open_version_rowids(times, stored), at=timestamp_array(times.values())
        )
        with staged_table(self._connection, stage):
            self._connection.execute(
                f"UPDATE {self._name} AS stored "
                "SET _observed_to = greatest(_observed_to, stage.at) "
                "FROM stage WHERE stored.rowid = stage.place"
            )


def _open_version_rowids(ids: Iterable[str], stored: Mapping[str, ExistingRow]) -> list[int]:
    """Return the row ids of the open versions of these records."""
    places = [stored[id].open_version_rowid for id in ids]
    assert None not in places, "an open version is not one"
    return [each for each in places if each is not None]


def _to_version(row: tuple[Any, ...]) -> Version:
    """Return the version for a row that `_select_versions` returns."""
    _, number, valid_from, began, seen_from, seen_to, hydrated, ended, changed, record = row
    return Version(
        number=number,
        valid_from=_to_timestamp(valid_from),
        began_after=from_microseconds(began),
        observed_from=_to_timestamp(seen_from),
        observed_to=_to_timestamp(seen_to),
        changed=None if changed is None else tuple(changed),
        hydrated_at=from_microseconds(hydrated),
        ended_at=from_microseconds(ended),
        list_item=None if record is None else json.loads(record),
    )


def _record_state(last: Version | None, row: ExistingRow | None) -> RecordState | None:
    """Return the state of a record before a response; None if it has no version or no row."""
    if last is None or row is None:
        return None
    return RecordState(last, json.loads(row.record), row.is_hydrated, row.seen_at)


def _to_timestamp(microseconds: int) -> datetime:
    """Return the UTC time for microseconds since 1970, of a column that is never null."""
    timestamp = from_microseconds(microseconds)
    assert timestamp is not None
    return timestamp


# -- Landing --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LandedCounts:
    """Number of rows of one commit: `listed` by lists, the others by details."""

    listed: int = 0
    new: int = 0
    changed: int = 0
    unchanged: int = 0
    deleted: int = 0

    def __add__(self, other: LandedCounts) -> LandedCounts:
        return LandedCounts(*map(add, astuple(self), astuple(other)))


class LandingTable:
    """Landing table of one stream, with its queue and history. The caller holds the transaction."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, stream: Stream) -> None:
        self._connection = connection
        self._stream = stream
        self._name = f"landing.{quoted(stream.resource.name)}"
        self._columns = landing_columns(stream.resource)
        self._is_queued = queue_condition(stream)
        self._history = HistoryTable(connection, stream)

    # -- Commits ----------------------------------------------------------------------------------

    def apply_commit(
        self, commit: Commit, run_id: str, at: datetime
    ) -> tuple[LandedCounts, tuple[Event, ...]]:
        """Write a commit except its bookmark; return the row counts and the events."""
        listed, events = self._land_items(commit.items, run_id, at)
        records, more = self._land_records(commit.records, run_id)
        deleted, tombstones = self._mark_deleted(commit.gone, run_id)
        self._enqueue(commit.enqueue)
        self._record_unreadable(commit.unread, run_id, at)
        counts = LandedCounts(listed=listed, deleted=deleted) + records
        return counts, (*events, *more, *tombstones, *commit.events)

    def _land_items(
        self, items: tuple[Resource, ...], run_id: str, at: datetime
    ) -> tuple[int, tuple[Event, ...]]:
        """Insert and queue rows for new ids; return the number of new rows and the events.

        A list item never changes a row with a detail; the history stores the difference.
        """
        if not items:
            return 0, ()
        # A page can show an id twice if records moved during the request; the last item counts.
        distinct: dict[str, Resource] = {item.id: item for item in items}
        created = [item.created_at for item in distinct.values()]
        stored = stored_rows(self._connection, self._stream.resource, distinct, created)
        edits = self._history.edits_from_items(distinct, stored, at)
        rows = RowBatch(self._columns)
        # A newer list item replaces an older one, but never a detail.
        unread = [id for id in edits.begun if id not in stored or not stored[id].is_hydrated]
        for id in unread:
            own = self._own_values(run_id, seen_at=distinct[id].served_at or at)
            rows.add(distinct[id], own)
        self._set_timestamps(
            "_seen_at = stage.at",
            {
                row.rowid: distinct[id].served_at or at
                for id, row in stored.items()
                if id not in edits.stale
            },
        )
        self._delete_rows([stored[id].rowid for id in unread if id in stored])
        table = rows.table()
        self._insert_rows(table)
        self._history.write_edits(edits, stored, table, run_id)
        # A deleted record that a list shows again is only restored after a detail.
        reappeared = {id: "reappeared" for id, row in stored.items() if row.is_deleted}
        listed = {id: "listed" for id in distinct if id not in stored}
        self._enqueue(listed | reappeared, created)
        return len(distinct) - len(stored), _anomaly_events(rows)

    def _set_timestamps(self, assignments: str, times: Mapping[int, datetime]) -> None:
        """Update rows by row id. In the SQL `assignments`, `stage.at` is the row's time."""
        if not times:
            return
        stage = rowids_table(times, at=timestamp_array(times.values()))
        with staged_table(self._connection, stage):
            self._connection.execute(
                f"UPDATE {self._name} AS stored SET {assignments} FROM stage "
                "WHERE stored.rowid = stage.place"
            )

    def _land_records(
        self, records: tuple[FoundDetail, ...], run_id: str
    ) -> tuple[LandedCounts, tuple[Event, ...]]:
        """Replace rows; unchanged ones only get new times. Return counts and events."""
        if not records:
            return LandedCounts(), ()
        distinct: dict[str, FoundDetail] = {each.record.id: each for each in records}
        created = [each.record.created_at for each in records]
        stored = stored_rows(self._connection, self._stream.resource, distinct, created)
        rows = RowBatch(self._columns)
        new, unchanged_at = 0, dict[str, datetime]()
        for id, each in distinct.items():
            before, text = stored.get(id), as_json(each.record.raw)
            if before is not None and before.equals(text):
                unchanged_at[id] = each.served_at
                continue
            new += before is None or not before.is_hydrated
            own = self._own_values(run_id, seen_at=each.served_at, hydrated_at=each.served_at)
            rows.add(each.record, own | {"_record": text})
        stamps = {stored[id].rowid: at for id, at in unchanged_at.items()}
        self._set_timestamps("_hydrated_at = stage.at, _seen_at = stage.at", stamps)
        self._history.extend_unchanged(unchanged_at, stored)
        self._delete_rows([stored[id].rowid for id in rows.values["id"] if id in stored])
        table = rows.table()
        self._insert_rows(table)
        edits = self._history.edits_from_details(distinct, stored, unchanged_at.keys())
        self._history.write_edits(edits, stored, table, run_id)
        self._replace_content_type_fields([distinct[id] for id in rows.values["id"]], run_id)
        self._dequeue(distinct, created)
        counts = LandedCounts(
            new=new, changed=len(distinct) - len(unchanged_at) - new, unchanged=len(unchanged_at)
        )
        return counts, _anomaly_events(rows)

    def _replace_content_type_fields(self, records: list[FoundDetail], run_id: str) -> None:
        """Replace the fields of these content types (API 2.6); nothing for other resources."""
        parts = [f for f in self._stream.resource.detail_fields if f.kind is Kind.ARRAY]
        for declared in parts:
            rows = RowBatch(content_type_field_columns())
            for each in records:
                own = self._own_values(run_id, seen_at=each.served_at, hydrated_at=each.served_at)
                own["_content_type_id"] = each.record.id
                for part in declared.parse(each.record.raw.get(declared.name))[0] or ():
                    rows.add(part, own)
            name = f"landing.{quoted(PARTS_TABLE)}"
            with staged_table(self._connection, ids_table(each.record.id for each in records)):
                condition = "_content_type_id IN (SELECT id FROM stage)"
                self._connection.execute(f"DELETE FROM {name} WHERE {condition}")
            self._insert_rows(rows.table(), name)

    def _mark_deleted(
        self, gone: Mapping[str, DeletionProof], run_id: str
    ) -> tuple[int, tuple[Event, ...]]:
        """Mark the live rows as deleted; return their number and an event for each."""
        if not gone:
            return 0, ()
        stored = stored_rows(self._connection, self._stream.resource, gone)
        live = [id for id, row in stored.items() if not row.is_deleted]
        edits = self._history.edits_from_deletions({id: gone[id] for id in live}, stored)
        self._history.write_edits(edits, stored, None, run_id)
        self._set_timestamps(
            f"_deleted_at = stage.at, _run_id = {literal(run_id)}",
            {stored[id].rowid: gone[id].served_at for id in live},
        )
        self._dequeue(gone)
        return len(live), tuple(Event("deleted", "the API answered 404", id) for id in live)

    def _enqueue(self, reasons: Mapping[str, str], created: Sequence[datetime | None] = ()) -> None:
        """Queue ids that are not queued yet, with the `created_at` of their rows."""
        if not reasons:
            return
        stage = ids_table(reasons, reason=pa.array(reasons.values(), pa.string()))
        with staged_table(self._connection, stage):
            self._connection.execute(
                "INSERT INTO sync.queue BY NAME SELECT "
                f"{literal(self._stream.resource.name)} AS resource, "
                f"{literal(self._stream.parent or '')} AS parent, "
                "stage.id, stage.reason, stored.created_at "
                f"FROM stage LEFT JOIN (SELECT id, created_at FROM {self._name} "
                f"WHERE id IN (SELECT id FROM stage){created_condition(created)}) AS stored "
                "USING (id) "
                f"WHERE stage.id NOT IN (SELECT id FROM sync.queue WHERE {self._is_queued} "
                "AND id IN (SELECT id FROM stage))"
            )

    def _record_unreadable(
        self, unread: Mapping[str, UnreadableDetail], run_id: str, at: datetime
    ) -> None:
        """Set the error of queued ids, and count the runs in which they could not be read."""
        if not unread:
            return
        stage = ids_table(
            unread,
            code=pa.array([each.reason for each in unread.values()], pa.string()),
            error=pa.array(
                [replace_surrogates(each.message) for each in unread.values()], pa.string()
            ),
        )
        with staged_table(self._connection, stage):
            self._connection.execute(
                "UPDATE sync.queue AS queued SET error_code = stage.code, error = stage.error, "
                "failed_runs = failed_runs + (run_id IS DISTINCT FROM $run_id)::BIGINT, "
                "failed_since = coalesce(failed_since, $at::TIMESTAMPTZ), run_id = $run_id "
                f"FROM stage WHERE {self._is_queued} AND queued.id = stage.id",
                {"run_id": run_id, "at": to_iso(at)},
            )

    def _dequeue(self, ids: Iterable[str], created: Sequence[datetime | None] = ()) -> None:
        """Remove ids from the queue; `created` has the `created_at` of their rows, if known."""
        stage = ids_table(ids)
        remaining = len(stage)
        with staged_table(self._connection, stage):
            for where in (created_condition(created), ""):
                if remaining:
                    removed = self._connection.execute(
                        f"DELETE FROM sync.queue WHERE {self._is_queued} "
                        f"AND id IN (SELECT id FROM stage){where}"
                    ).fetchall()
                    remaining -= removed[0][0]

    # -- Statements -------------------------------------------------------------------------------

    def _insert_rows(self, table: pa.Table, name: str | None = None) -> None:
        """Insert the rows into the table `name`, by default the landing table."""
        if not len(table):
            return
        name = name or self._name
        with staged_table(self._connection, table):
            self._connection.execute(f"INSERT INTO {name} BY NAME SELECT * FROM stage")

    def _delete_rows(self, rowids: Sequence[int]) -> None:
        """Delete the rows with these row ids."""
        if rowids:
            with staged_table(self._connection, rowids_table(rowids)):
                rows = "rowid IN (SELECT place FROM stage)"
                self._connection.execute(f"DELETE FROM {self._name} WHERE {rows}")

    def _own_values(
        self, run_id: str, *, seen_at: datetime, hydrated_at: datetime | None = None
    ) -> dict[str, Any]:
        """Return the values of the columns that the connector adds to a row."""
        return {
            "_content_type_id": self._stream.parent,
            "_hydrated_at": hydrated_at,
            "_seen_at": seen_at,
            "_deleted_at": None,
            "_run_id": run_id,
        }


def _anomaly_events(rows: RowBatch) -> tuple[Event, ...]:
    """Return an event for each undeclared field or value in the rows."""
    return tuple(Event(oddity.kind, oddity.detail) for oddity in rows.anomalies)
