"""Writes to the sandbox without API requests, for example of imports and slow transactions.

Tests and simulations use them for changes that requests cannot make: bulk edits with one timestamp,
changes that keep `updated_at`, and commits that become visible late. Nothing is validated.
"""

from __future__ import annotations

import json
import random as chance
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import datetime
from pathlib import Path
from threading import RLock
from typing import Any, Self
from uuid import UUID

from connector.catalog import CATALOG
from connector.catalog import declaration as declared
from connector.errors import SettingsError
from connector.sandbox.behaviour import Behaviours
from connector.sandbox.record_table import (
    AnswerShape,
    Clock,
    RecordTable,
    StoredRecord,
    StoredRow,
    count_company_records,
    format_stored_time,
    truncate_time,
    utc_now,
)

MEMORY = ":memory:"
# Names the layout of the file; another layout cannot be read as this one.
_LAYOUT = json.dumps({n: list(d.fields) for n, d in CATALOG.items()}, sort_keys=True)


class DirectStore:
    """Records of one workspace, with reads and writes that bypass the API's rules."""

    def __init__(
        self,
        *,
        clock: Clock = utc_now,
        random: chance.Random | None = None,
        behaviours: Behaviours | Mapping[str, str] | None = None,
        path: str | Path = MEMORY,
    ) -> None:
        self.clock = clock
        self.behaviours = Behaviours.from_values(behaviours)
        self._random = random or chance.Random(0)  # noqa: S311  # made-up ids are no secrets
        self._lock = RLock()
        self._depth = 0
        self._shapes = {n: AnswerShape(d, self.behaviours) for n, d in CATALOG.items()}
        with ExitStack() as undo:
            try:
                self._connection = sqlite3.connect(
                    str(path),
                    timeout=1,
                    check_same_thread=False,
                    isolation_level=None,
                    cached_statements=512,
                )
                undo.callback(self._connection.close)
                self._tables = {n: RecordTable(self._connection, d) for n, d in CATALOG.items()}
                self.is_new = self._create_or_check_tables()
            except sqlite3.DatabaseError as error:
                message, action = f"cannot be used: {error}", "or move this one away"
                if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_BUSY:
                    message, action = "is used by another sandbox", "or end that one"
                raise SettingsError(
                    f"The data file {path} {message}", action=f"Name another file, {action}."
                ) from error
            undo.pop_all()

    def _create_or_check_tables(self) -> bool:
        """Create the tables of a new file, or check those of an existing file.

        Return True if the file is new. Raises `sqlite3.DatabaseError` for a file with other fields.
        """
        # Two servers of one file would each make records that the other's counters lack.
        self._connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = NORMAL")
        with self._transaction():
            self._connection.execute("CREATE TABLE IF NOT EXISTS layout (fields TEXT)")
            found = self._connection.execute("SELECT fields FROM layout").fetchone()
            if found is not None and found[0] != _LAYOUT:
                raise sqlite3.DatabaseError("it was made for other fields")
            if found is None:
                self._connection.execute("INSERT INTO layout VALUES (?)", (_LAYOUT,))
                for table in self._tables.values():
                    table.create_tables()
                    table.create_indexes()
            else:
                # Another start of the same seed must not draw the ids of the first again.
                sequence = "SELECT coalesce(sum(seq), 0) FROM sqlite_sequence"
                drawn = self._connection.execute(sequence).fetchone()[0]
                self._random.seed(f"{self._random.random()}:{drawn}")
        return found is None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._connection.close()

    # What a test reads.

    def records(self, resource: str, *, type: str | None = None) -> dict[str, dict[str, Any]]:
        """Return every record by id, with the fields of a detail response.

        `type` is the id of a content type; only its items are returned.
        """
        declared(resource)
        with self._lock:
            records = {row.record["id"]: row.record for row in self._tables[resource].rows(type)}
            computed = self._company_counters(resource, list(records))
            shape = self._shapes[resource]
            return {id: shape.detail(each, computed.get(id, {})) for id, each in records.items()}

    def write_only_fields(self, resource: str, id: str) -> dict[str, Any]:
        """Return the stored write-only fields of a record. Raises `KeyError` without the record."""
        with self._lock:
            return self._shapes[resource].write_only_fields(self._require_row(resource, id).record)

    # What a test or a simulation writes.

    def insert(self, resource: str, record: Mapping[str, Any], *, type: str | None = None) -> str:
        """Store a record without validation, and return its id.

        A missing id is random; missing dates are the current time. `type` is the id of a content
        item's type.
        """
        declared(resource)
        with self._transaction():
            stamp = format_stored_time(self._truncate_time(self.clock()))
            id = record.get("id") or self._new_id()
            dates = {"created_at": stamp, "updated_at": record.get("created_at", stamp)}
            self._insert_record(resource, self._to_stored({"id": id, **dates, **record}), type)
        return str(id)

    def load(self, resource: str, records: Iterable[tuple[StoredRecord, str | None]]) -> None:
        """Store many records in one transaction, each with the id of its content type or None."""
        with self._transaction():
            self._tables[resource].add((self._to_stored(each), type) for each, type in records)

    def touch(
        self,
        resource: str,
        id: str,
        changes: Mapping[str, Any] | None = None,
        *,
        updated_at: datetime | None = None,
    ) -> None:
        """Change a record without validation, and set its `updated_at` (by default: now).

        An earlier `updated_at` simulates a transaction that was committed late.
        """
        self.touch_many(resource, (id,), changes, updated_at=updated_at)

    def touch_many(
        self,
        resource: str,
        ids: Iterable[str],
        changes: Mapping[str, Any] | None = None,
        *,
        updated_at: datetime | None = None,
    ) -> None:
        """Change many records like a bulk edit: in one transaction, with the same `updated_at`."""
        with self._transaction():
            stamp = format_stored_time(self._truncate_time(updated_at or self.clock()))
            for id in ids:
                row = self._require_row(resource, id)
                changed = self._to_stored({**row.record, **(changes or {}), "updated_at": stamp})
                self._replace_record(resource, row, changed)

    def change_silently(self, resource: str, id: str, changes: Mapping[str, Any]) -> None:
        """Change a record without updating its `updated_at`."""
        with self._transaction():
            row = self._require_row(resource, id)
            self._replace_record(resource, row, self._to_stored({**row.record, **changes}))

    def remove(self, resource: str, id: str) -> None:
        """Delete a record. Raises `KeyError` if it does not exist."""
        with self._transaction():
            self._delete_record(resource, self._require_row(resource, id))

    # What both halves of the store share.

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """Run the block in a transaction. A nested block belongs to the outer transaction."""
        with self._lock:
            if self._depth == 0:
                self._connection.execute("BEGIN IMMEDIATE")
            self._depth += 1
            try:
                yield
            except BaseException:
                self._depth -= 1
                if self._depth == 0:
                    self._connection.execute("ROLLBACK")
                raise
            self._depth -= 1
            if self._depth == 0:
                self._connection.execute("COMMIT")

    def _new_id(self) -> str:
        """Return a random UUID."""
        return str(UUID(int=self._random.getrandbits(128), version=4))

    def _require_row(self, resource: str, id: str) -> StoredRow:
        """Return the row of a record. Raises `KeyError` if it does not exist."""
        declared(resource)
        row = self._tables[resource].find(id)
        if row is None:
            raise KeyError(f"{resource} has no record {id}")
        return row

    def _to_stored(self, record: StoredRecord) -> StoredRecord:
        """Return the record with its times as texts in the stored format."""
        return {
            name: format_stored_time(self._truncate_time(value))
            if isinstance(value, datetime)
            else value
            for name, value in record.items()
        }

    def _truncate_time(self, moment: datetime) -> datetime:
        """Truncate a time to the server's precision."""
        return truncate_time(moment, self.behaviours)

    def _detail_fields(self, resource: str, record: StoredRecord) -> dict[str, Any]:
        """Return the fields of the record's detail response, including a company's counters."""
        computed = self._company_counters(resource, (record["id"],))
        return self._shapes[resource].detail(record, computed.get(record["id"], {}))

    def _company_counters(self, resource: str, ids: Sequence[str]) -> dict[str, dict[str, int]]:
        """Return the counters of these companies by id; empty for other resources."""
        if resource != "companies":
            return {}
        return count_company_records(ids, self._tables["jobs"], self._tables["bookings"])

    def _insert_record(self, resource: str, record: StoredRecord, parent: str | None) -> None:
        """Insert a record, and update the dates of companies that it changes."""
        self._tables[resource].add([(record, parent)])
        self._update_company_dates(resource, record)

    def _replace_record(self, resource: str, row: StoredRow, record: StoredRecord) -> None:
        """Replace a record, and update the dates of companies that this changes."""
        self._tables[resource].replace(row.serial, record)
        self._update_company_dates(resource, row.record, record)

    def _delete_record(self, resource: str, row: StoredRow) -> None:
        """Delete a record, and update the dates of companies that this changes."""
        self._tables[resource].remove(row.serial)
        self._update_company_dates(resource, row.record)

    def _update_company_dates(self, resource: str, *versions: StoredRecord) -> None:
        """Set `updated_at` of companies whose counters a write may change, if they are "moving".

        `versions` are the record before and after the write.
        """
        if self.behaviours.counters != "moving" or resource not in ("jobs", "bookings"):
            return
        stamp = format_stored_time(self._truncate_time(self.clock()))
        table = self._tables["companies"]
        for id in {each.get("company_id") for each in versions} - {None}:
            if row := table.find(str(id)):
                table.replace(row.serial, {**row.record, "updated_at": stamp})
