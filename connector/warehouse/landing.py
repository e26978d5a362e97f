"""Landing: one commit of a stream, with the history, the queue and the bookmark.

History has one row for every version of a record that a detail has shown. The API does not show
when a record changed: a response shows it unchanged or changed. So a version began after
`_began_after`, when the record was last read with other values, and before it was read first.
`_valid_from` is the record's own `updated_at` if it is between the two, else the nearest of them.
A first version began no earlier than the record's creation, and one after a deletion no earlier
than the deletion. Versions follow each other in the order of the commits and never overlap, also
where a response is older than the one before it.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, astuple, dataclass, replace
from datetime import datetime, timedelta
from operator import add
from typing import Any

from connector.catalog.field import Kind
from connector.catalog.resource import Resource
from connector.state.runs import Event
from connector.warehouse.file import Connection, literal, quoted, run_staged
from connector.warehouse.schema import (
    PARTS_COLUMNS,
    PARTS_TABLE,
    RowBatch,
    as_json,
    differing_names,
    history_columns,
    landing_columns,
    replace_surrogates,
)
from connector.warehouse.stream import (
    Bookmark,
    Commit,
    DeletionProof,
    FoundDetail,
    Stream,
    UnreadableDetail,
)

SECOND = timedelta(seconds=1)
"""Precision of the times of responses (`Date`)."""


@dataclass(frozen=True, slots=True)
class Counts:
    """Number of rows of one commit: `listed` by lists, the others by details."""

    listed: int = 0
    new: int = 0
    changed: int = 0
    unchanged: int = 0
    deleted: int = 0

    def __add__(self, other: Counts) -> Counts:
        return Counts(*map(add, astuple(self), astuple(other)))


@dataclass(frozen=True, slots=True)
class StoredRow:
    """Landing row before a response. `read_at` is None if the record was only listed."""

    rowid: int
    text: str
    updated_at: datetime | None
    read_at: datetime | None
    deleted_at: datetime | None

    @property
    def record(self) -> dict[str, Any]:
        """The record as received."""
        record: dict[str, Any] = json.loads(self.text)
        return record

    def equals(self, text: str) -> bool:
        """Return True if the row is live and its detail is this JSON in any order of keys."""
        if self.read_at is None or self.deleted_at is not None:
            return False
        # Another key order results in a text of the same length, so other lengths need no parsing.
        return self.text == text or (
            len(self.text) == len(text) and not differing_names(self.record, json.loads(text))
        )


@dataclass(frozen=True, slots=True)
class Version:
    """Times and changed fields of a version that follows another one (None: the first)."""

    number: int
    valid_from: datetime
    began_after: datetime | None
    changed: tuple[str, ...] | None


def stored_rows(
    connection: Connection, resource: str, ids: Collection[str]
) -> dict[str, StoredRow]:
    """Return the landing rows with these ids."""
    table = f"landing.{quoted(resource)}"
    # The ids are filtered first, so that other rows' records are not read.
    rows = run_staged(
        connection,
        {"id": ids},
        "SELECT id, rowid, _record::VARCHAR, updated_at, _hydrated_at, _deleted_at "
        f"FROM {table} WHERE rowid IN "
        f"(SELECT rowid FROM {table} WHERE id IN (SELECT id FROM stage))",
    )
    assert len({id for id, *_ in rows}) == len(rows), f"{table} has an id twice"
    return {id: StoredRow(*values) for id, *values in rows}


def next_version(
    found: FoundDetail, row: StoredRow | None, last: Version | None, end: datetime | None
) -> Version:
    """Return the version that a detail begins.

    `last` is the version before it, and `end` its end, if the record was deleted.
    """
    at, created_at = found.served_at, found.record.created_at
    if row is None or last is None:
        began = created_at if created_at is not None and created_at < at + SECOND else None
        return Version(1, _start(found.record.updated_at, began, at), began, None)
    changed = differing_names(row.record, json.loads(as_json(found.record.raw)))
    if end is not None:
        # The record was missing then, so an earlier date is not the date of its return.
        start = max(_start(found.record.updated_at, None, at), end)
        start = max(at, end) if start == end else start
        return Version(last.number + 1, start, end, ("_deleted_at", *changed))
    assert row.read_at is not None
    began = max(last.valid_from, row.read_at)
    start = _start(found.record.updated_at, began, max(at, began))
    return Version(last.number + 1, start, began, changed)


def _start(updated_at: datetime | None, after: datetime | None, seen: datetime) -> datetime:
    """Return `updated_at` if it is between the two other times, else the nearest of them."""
    is_before = updated_at is not None and updated_at < seen + SECOND
    start = updated_at if updated_at is not None and is_before else seen
    return start if after is None else max(start, after)


class Landing:
    """Tables of one stream. The caller holds the transaction."""

    def __init__(self, connection: Connection, stream: Stream, run_id: str, at: datetime) -> None:
        self._connection, self._stream, self._run_id, self._at = connection, stream, run_id, at
        self._resource, self._parent = stream.resource.name, stream.parent or ""
        self._landing = f"landing.{quoted(self._resource)}"
        self._history = f"history.{quoted(self._resource)}"
        self._is_own = f"resource = {literal(self._resource)} AND parent = {literal(self._parent)}"

    def apply(self, commit: Commit) -> tuple[Counts, tuple[Event, ...]]:
        """Write a commit; return the row counts and the events."""
        listed, events = self._land_items({each.id: each for each in commit.items})
        records, more = self._land_records({each.record.id: each for each in commit.records})
        deleted = self._mark_deleted(commit.gone)
        self._enqueue(commit.enqueue)
        self._note_unread(commit.unread)
        self._dequeue(commit.forget)
        self._run(
            {"id": commit.forget},
            f"DELETE FROM {self._landing} WHERE id IN (SELECT id FROM stage) "
            "AND _hydrated_at IS NULL",
        )
        if commit.bookmark is not None:
            self._write_bookmark(commit.bookmark)
        if commit.ends_stream:
            self._connection.execute(f"DELETE FROM sync.bookmarks WHERE {self._is_own}")
        counts = Counts(listed=listed, deleted=len(deleted)) + records
        gone = tuple(Event("deleted", "the API answered 404", id) for id in deleted)
        return counts, (*events, *more, *gone, *commit.events)

    # -- Rows --------------------------------------------------------------------------------------

    def _land_items(self, items: Mapping[str, Resource]) -> tuple[int, tuple[Event, ...]]:
        """Insert rows for new ids and queue them. A list item never changes a row."""
        stored = stored_rows(self._connection, self._resource, items)
        rows = RowBatch(landing_columns(self._resource))
        for id in items.keys() - stored.keys():
            rows.add(items[id], self._own(None))
        self._insert(self._landing, rows.values)
        # A deleted record that a list shows again is only restored after a detail.
        again = {id: "reappeared" for id, row in stored.items() if row.deleted_at is not None}
        self._enqueue(dict.fromkeys(items.keys() - stored.keys(), "listed") | again)
        return len(rows), _anomalies(rows)

    def _land_records(self, found: Mapping[str, FoundDetail]) -> tuple[Counts, tuple[Event, ...]]:
        """Replace changed rows and add their versions; unchanged ones get a new time only."""
        stored = stored_rows(self._connection, self._resource, found)
        texts = {id: as_json(each.record.raw) for id, each in found.items()}
        same = {id for id, row in stored.items() if row.equals(texts[id])}
        self._touch({stored[id].rowid: found[id].served_at for id in same}, "_hydrated_at")
        changed = {id: each for id, each in found.items() if id not in same}
        rows = RowBatch(landing_columns(self._resource))
        for id, each in changed.items():
            rows.add(each.record, self._own(each.served_at) | {"_record": texts[id]})
        self._run(
            {"place": [stored[id].rowid for id in changed if id in stored]},
            f"DELETE FROM {self._landing} WHERE rowid IN (SELECT place FROM stage)",
        )
        self._insert(self._landing, rows.values)
        self._add_versions(changed, stored, rows.values)
        self._replace_parts(changed)
        self._dequeue(found)
        new = sum(id not in stored or stored[id].read_at is None for id in found)
        silent = [
            Event("silent", "changed, but updated_at stayed the same", id)
            for id, each in changed.items()
            if (row := stored.get(id)) is not None and row.read_at is not None
            and row.deleted_at is None and row.updated_at == each.record.updated_at
        ]  # fmt: skip
        counts = Counts(new=new, changed=len(changed) - new, unchanged=len(same))
        return counts, (*_anomalies(rows), *silent)

    def _mark_deleted(self, gone: Mapping[str, DeletionProof]) -> list[str]:
        """Mark the live rows as deleted and end their versions; return their ids."""
        stored = stored_rows(self._connection, self._resource, gone)
        live = [id for id, row in stored.items() if row.deleted_at is None]
        self._touch({stored[id].rowid: gone[id].served_at for id in live}, "_deleted_at")
        self._end_versions({id: gone[id].served_at for id in live})
        self._dequeue(gone)
        return live

    def _replace_parts(self, changed: Mapping[str, FoundDetail]) -> None:
        """Replace the fields of these content types (API 2.6); nothing for other resources."""
        for declared in self._stream.resource.detail_fields if changed else ():
            if declared.kind is not Kind.ARRAY:
                continue
            rows, name = RowBatch(PARTS_COLUMNS), f"landing.{quoted(PARTS_TABLE)}"
            for id, each in changed.items():
                for part in declared.parse(each.record.raw.get(declared.name))[0] or ():
                    rows.add(part, self._own(each.served_at) | {"_content_type_id": id})
            self._run(
                {"id": changed},
                f"DELETE FROM {name} WHERE _content_type_id IN (SELECT id FROM stage)",
            )
            self._insert(name, rows.values)

    # -- History -----------------------------------------------------------------------------------

    def _add_versions(
        self,
        changed: Mapping[str, FoundDetail],
        stored: Mapping[str, StoredRow],
        values: Mapping[str, list[Any]],
    ) -> None:
        """End the open versions of changed records, and insert new ones with these values."""
        rows_before = self._run(
            {"id": changed.keys() & stored.keys()},
            "SELECT id, max(_version), max(_valid_from), CASE WHEN count(*) = count(_valid_to) "
            f"THEN max(_valid_to) END FROM {self._history} WHERE id IN (SELECT id FROM stage) "
            "GROUP BY id",
        )
        last = {
            id: (Version(number, begun, None, None), ended)
            for id, number, begun, ended in rows_before
        }
        versions = {
            id: next_version(each, stored.get(id), *last.get(id, (None, None)))
            for id, each in changed.items()
        }
        self._end_versions({id: each.valid_from for id, each in versions.items() if id in last})
        own = {column.name for column in history_columns(self._resource)}
        new = [versions[id] for id in values["id"]]
        columns = {name: each for name, each in values.items() if name in own}
        columns["_valid_from"] = [each.valid_from for each in new]
        columns["_began_after"] = [each.began_after for each in new]
        columns["_version"] = [each.number for each in new]
        columns["_changed"] = [each.changed for each in new]
        self._insert(self._history, columns)

    def _end_versions(self, ends: Mapping[str, datetime]) -> None:
        """End the open versions of these records, at the earliest when they began."""
        if not ends:
            return
        # The rows are written again because they are spread over the table: an update needs half a
        # megabyte of memory for each row and column until the transaction ends.
        self._run(
            {"id": ends, "at": ends.values()},
            "CREATE TEMP TABLE ended AS SELECT open.rowid AS place, stage.at "
            f"FROM {self._history} AS open JOIN stage USING (id) WHERE _valid_to IS NULL",
        )
        self._connection.execute(
            f"INSERT INTO {self._history} SELECT open.* REPLACE "
            "(greatest(ended.at, _valid_from) AS _valid_to) "
            f"FROM {self._history} AS open JOIN ended ON open.rowid = ended.place"
        )
        self._connection.execute(
            f"DELETE FROM {self._history} WHERE rowid IN (SELECT place FROM ended)"
        )
        self._connection.execute("DROP TABLE ended")

    # -- Queue and bookmark ------------------------------------------------------------------------

    def _enqueue(self, reasons: Mapping[str, str]) -> None:
        """Queue ids that are not queued yet, with the `created_at` of their rows."""
        self._run(
            {"id": reasons, "reason": reasons.values()},
            "INSERT INTO sync.queue BY NAME "
            f"SELECT {literal(self._resource)} AS resource, {literal(self._parent)} AS parent, "
            f"id, reason, stored.created_at FROM stage LEFT JOIN {self._landing} AS stored "
            f"USING (id) ANTI JOIN (FROM sync.queue WHERE {self._is_own}) USING (id)",
        )

    def _note_unread(self, unread: Mapping[str, UnreadableDetail]) -> None:
        """Set the error of queued ids, and count the runs in which they could not be read."""
        self._run(
            {
                "id": unread,
                "code": [each.reason for each in unread.values()],
                "error": [replace_surrogates(each.message) for each in unread.values()],
            },
            "UPDATE sync.queue AS queued SET error_code = stage.code, error = stage.error, "
            "failed_runs = failed_runs + (run_id IS DISTINCT FROM $run_id)::BIGINT, "
            "failed_since = coalesce(failed_since, $at::TIMESTAMPTZ), run_id = $run_id "
            f"FROM stage WHERE {self._is_own} AND queued.id = stage.id",
            {"run_id": self._run_id, "at": self._at.isoformat()},
        )

    def _dequeue(self, ids: Iterable[str]) -> None:
        self._run(
            {"id": ids},
            f"DELETE FROM sync.queue WHERE {self._is_own} AND id IN (SELECT id FROM stage)",
        )

    def _write_bookmark(self, mark: Bookmark) -> None:
        """Replace the stream's bookmark. Asserts that `proven_at` does not move back."""
        before = read_bookmark(self._connection, self._stream).proven_at
        is_forward = before is None or (mark.proven_at is not None and mark.proven_at >= before)
        assert is_forward, f"{self._resource} {self._parent}: the bookmark moved back"
        self._connection.execute(f"DELETE FROM sync.bookmarks WHERE {self._is_own}")
        values = {"resource": self._resource, "parent": self._parent, "run_id": self._run_id}
        values |= asdict(mark)
        marks = ", ".join(f"${name}" for name in values)
        self._connection.execute(
            f"INSERT INTO sync.bookmarks ({', '.join(values)}) VALUES ({marks})", values
        )

    # -- Statements --------------------------------------------------------------------------------

    def _run(
        self, stage: Mapping[str, Iterable[Any]], sql: str, values: Mapping[str, Any] | None = None
    ) -> list[Any]:
        return run_staged(self._connection, stage, sql, values)

    def _insert(self, name: str, table: Mapping[str, list[Any]]) -> None:
        self._run(table, f"INSERT INTO {name} BY NAME SELECT * FROM stage")

    def _touch(self, times: Mapping[int, datetime], column: str) -> None:
        """Set a time of landing rows, by row id."""
        self._run(
            {"place": times, "at": times.values()},
            f"UPDATE {self._landing} AS stored SET {column} = stage.at FROM stage "
            "WHERE stored.rowid = stage.place",
        )

    def _own(self, read_at: datetime | None) -> dict[str, Any]:
        """Return the values of the columns that the connector adds to a row."""
        return {
            "_content_type_id": self._stream.parent,
            "_hydrated_at": read_at,
            "_run_id": self._run_id,
        }


def read_bookmark(connection: Connection, stream: Stream) -> Bookmark:
    """Return the stream's bookmark; a new one if the stream was never pulled."""
    names = list(Bookmark.__dataclass_fields__)
    rows = connection.execute(
        f"SELECT {', '.join(names)} FROM sync.bookmarks WHERE resource = ? AND parent = ?",
        [stream.resource.name, stream.parent or ""],
    ).fetchall()
    values = dict(zip(names, rows[0], strict=True)) if rows else {}
    # A column that a newer version has added is null.
    return Bookmark(**{name: value for name, value in values.items() if value is not None})


def _anomalies(rows: RowBatch) -> tuple[Event, ...]:
    """Return an event for each undeclared field or value in the rows, with one of the records."""
    return tuple(replace(each, id=id) for each, id in rows.anomalies.items())
