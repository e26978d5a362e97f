"""Lookups in the work file for the checks of a spreadsheet.

The file stays open between queries until another process waits for it. Values are written into the
statements, and results are read as Arrow: passing a table as a parameter would make DuckDB import
pandas.
"""

from __future__ import annotations

import csv
import json
from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from connector.catalog import CATALOG, declaration
from connector.catalog.content import ContentTypeField
from connector.catalog.field import Field, Kind, parse_datetime
from connector.state.row import LandedRecord
from connector.warehouse.duckdb_file import from_microseconds, literal, quoted, to_microseconds
from connector.warehouse.runs import PROVEN_AT
from connector.warehouse.schema import PARTS_TABLE
from connector.warehouse.warehouse import Warehouse

IDS_MAX = 20
"""Maximum number of ids that are returned for the same values."""

_ROWS_AT_ONCE = 5_000


@dataclass(frozen=True, slots=True)
class KnownId:
    """Id of a user or a lead status, which the API does not list.

    `name` is the name that the agency gave it, or empty. `records` is the number of loaded records
    that have the id.
    """

    id: str
    name: str = ""
    records: int = 0

    def __str__(self) -> str:
        return self.name or f"{self.id} ({self.records:,} records)"


class WarehouseLookups:
    """Searches one account's loaded records for the checks of a spreadsheet.

    The file stays open between queries until another process waits for it, or until the end of the
    context. `fold` converts texts with the same meaning to one form. `seen_at` is the time at which
    the user saw the records. Every method raises a `WarehouseError` if the file cannot be read.
    """

    def __init__(
        self, warehouse: Warehouse, fold: Callable[[str], str], seen_at: datetime | None = None
    ) -> None:
        # A separate instance, so that other parts can close the file independently.
        self._warehouse, self._fold = Warehouse(warehouse.folder), fold
        self._seen_at = seen_at
        self._open = ExitStack()
        self._held: dict[str, bool] = {}
        self._known: dict[str, list[KnownId]] = {}
        self._indexes: dict[tuple[str, tuple[str, ...], str | None], _ValueIndex] = {}

    def __enter__(self) -> Self:
        self._open.enter_context(self._warehouse.keep_open())
        return self

    def __exit__(self, *exception: object) -> None:
        self._open.close()

    def release(self) -> None:
        """Close the file if it is open; the next query opens it again."""
        self._warehouse.release()

    def find_ids(
        self,
        resource: str,
        fields: Sequence[str],
        values: Sequence[tuple[Any, ...]],
        parent: str | None = None,
    ) -> Sequence[tuple[str, ...]]:
        """Return, for each tuple of values, the ids of the live records whose `fields` equal them.

        At most `IDS_MAX` ids are returned, as of the first query for these fields. Values are as in
        a request body; `parent` is the slug or id of a content type. Raises `UnknownName` for an
        unknown resource or field.
        """
        index = self._value_index(resource, tuple(fields), parent)
        self._warehouse.release_if_requested()
        return [index.ids(each) for each in values]

    def list_texts(self, resource: str, fields: Sequence[str]) -> list[tuple[str, ...]]:
        """Return id and texts of these fields of all live records, without those that are empty."""
        names = [quoted(declaration(resource).field(name).name) for name in fields]
        with self._open_connection() as connection:
            return connection.execute(
                f"SELECT id, {', '.join(names)} FROM landing.{quoted(resource)} "
                f"WHERE _deleted_at IS NULL AND {' AND '.join(f'{n} IS NOT NULL' for n in names)}"
                " ORDER BY id"
            ).fetchall()

    def known_ids(self, field: str) -> list[KnownId]:
        """Return the users or lead statuses that a field can have: those of the seeds and
        records.
        """
        if field not in self._known:
            fields = _USER_FIELDS if field in _USER_FIELDS else (field,)
            seed = "people" if field in _USER_FIELDS else "lead_statuses"
            names = _read_seed(self._warehouse.folder / "seeds" / f"{seed}.csv")
            counts: Counter[str] = Counter()
            with self._open_connection() as connection:
                for name, declared in CATALOG.items():
                    for each in (each for each in fields if each in declared.fields):
                        counts |= dict(
                            connection.execute(
                                f"SELECT {quoted(each)}, count(*) FROM landing.{quoted(name)} "
                                f"WHERE {quoted(each)} IS NOT NULL GROUP BY 1"
                            ).fetchall()
                        )
            ids = {**names, **counts}
            self._known[field] = [KnownId(id, names.get(id, ""), counts[id]) for id in ids]
        return self._known[field]

    def landed_records(self, resource: str, ids: Collection[str]) -> dict[str, LandedRecord]:
        """Return the loaded rows, also deleted ones, with the detail that the user saw."""
        name, id_list = quoted(declaration(resource).name), ", ".join(map(literal, ids))
        if not id_list:
            return {}
        with self._open_connection() as connection:
            rows = connection.execute(
                "SELECT id, _record::VARCHAR, _hydrated_at IS NOT NULL, _deleted_at IS NOT NULL "
                f"FROM landing.{name} WHERE rowid IN "
                # The ids are filtered first, so that other rows' records are not read.
                f"(SELECT rowid FROM landing.{name} WHERE id IN ({id_list}))"
            ).fetchall()
            records = dict(self._records_seen_by_user(connection, name, id_list))
        return {
            id: LandedRecord(json.loads(record), is_whole, is_deleted, records.get(id))
            for id, record, is_whole, is_deleted in rows
        }

    def _records_seen_by_user(
        self, connection: duckdb.DuckDBPyConnection, name: str, id_list: str
    ) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Yield id and latest detail that a run loaded before `seen_at`, if it is set."""
        if self._seen_at is None:
            return
        at = f"make_timestamptz({to_microseconds(self._seen_at)})"
        # The local clock: server times are whole seconds, and the server clock may be wrong.
        rows = connection.execute(
            f"SELECT id, arg_max(_record::VARCHAR, _version) FROM history.{name} "
            f"WHERE id IN ({id_list}) AND _hydrated_at IS NOT NULL "
            f"AND _run_id NOT IN (SELECT run_id FROM sync.runs WHERE started_at > {at}) GROUP BY id"
        ).fetchall()
        for id, record in rows:
            yield id, json.loads(record)

    def has_records(self, resource: str) -> bool:
        """Return True if any record of the resource was ever loaded."""
        if not self._held.get(resource):
            name = quoted(declaration(resource).name)
            with self._open_connection() as connection:
                found = connection.execute(f"SELECT 1 FROM landing.{name} LIMIT 1").fetchall()
            self._held[resource] = bool(found)
        return self._held[resource]

    def proven_at(self, resource: str) -> datetime | None:
        """Return the time up to which the resource is verified; None if it is not."""
        with self._open_connection() as connection:
            ((timestamp,),) = connection.execute(
                f"SELECT {PROVEN_AT} FROM sync.bookmarks WHERE resource = {literal(resource)}"
            ).fetchall()
        return from_microseconds(timestamp)

    def content_fields(self, content_type: str) -> tuple[ContentTypeField, ...] | None:
        """Return the fields of the content type with that slug or id; None if it is not loaded."""
        ids = _type_ids(content_type)
        with self._open_connection() as connection:
            types = connection.execute(ids).fetchall()
            rows = connection.execute(
                f"SELECT _record::VARCHAR FROM landing.{PARTS_TABLE} "
                f"WHERE _deleted_at IS NULL AND _content_type_id IN ({ids}) "
                "ORDER BY display_order NULLS LAST, id"
            ).fetchall()
        if not types:
            return None
        return tuple(ContentTypeField(json.loads(record)) for (record,) in rows)

    def _value_index(
        self, resource: str, names: tuple[str, ...], parent: str | None
    ) -> _ValueIndex:
        """Return the index of live records by these fields, which is built at the first call."""
        known = self._indexes.get((resource, names, parent))
        if known is not None:
            return known
        declared = declaration(resource)
        fields = tuple(declared.field(name) for name in names)
        conditions = [
            "_deleted_at IS NULL",
            *(f"{quoted(field.name)} IS NOT NULL" for field in fields),
        ]
        if parent is not None:
            conditions.append(f"_content_type_id IN ({_type_ids(parent)})")
        index = _ValueIndex(fields, self._fold)
        columns = ", ".join(map(_text_expression, fields))
        with self._open_connection() as connection:
            found = connection.execute(
                f"SELECT id, {columns} FROM landing.{quoted(resource)} WHERE "
                + " AND ".join(conditions)
            )
            for rows in found.to_arrow_reader(_ROWS_AT_ONCE):
                index.add(rows)
        index.sort()
        self._indexes[resource, names, parent] = index
        return index

    @contextmanager
    def _open_connection(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """Open a connection, after another process that waits for the file."""
        self._warehouse.release_if_requested()
        with self._warehouse.open_connection() as connection:
            yield connection


_USER_FIELDS = ("assigned_to", "account_manager_id")
"""Fields with the id of a user."""


def _read_seed(path: Path) -> dict[str, str]:
    """Return the names of the user's seed by id; empty without the file."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = list(csv.DictReader(file))
    except FileNotFoundError:
        return {}
    return {row["id"]: (row.get("name") or "").strip() for row in rows if row.get("id")}


def _type_ids(content_type: str) -> str:
    """Return the SQL for the ids of the content type with that slug or id."""
    name = literal(content_type)
    return (
        "SELECT id FROM landing.content_types WHERE _deleted_at IS NULL"
        f" AND (slug = {name} OR id = {name})"
    )


class _ValueIndex:
    """Ids of records by the values of some fields, as sorted hashes in flat arrays.

    A million records take about 60 MB. Among a million values, two have the same 64-bit hash in
    one of about thirty million cases.
    """

    def __init__(self, fields: tuple[Field, ...], fold: Callable[[str], str]) -> None:
        self._fold = fold
        self._texts = [_timestamp_text if f.kind is Kind.DATETIME else str for f in fields]
        self._digests = array("q")
        # Without any array, Arrow would import pandas.
        self._parts: list[pa.Array] = [pa.nulls(0, pa.string())]
        self._sorted: Any = None
        self._ids: Any = None

    def add(self, rows: pa.RecordBatch) -> None:
        """Add rows whose first column is the id and whose other columns are texts without nulls."""
        fold = self._fold
        ids, *columns = rows.columns
        texts = [column.to_pylist() for column in columns]
        self._digests.extend(
            hash("\x1f".join([fold(text) for text in row])) for row in zip(*texts, strict=True)
        )
        self._parts.append(ids)

    def sort(self) -> None:
        """Sort the hashes for queries; no rows can be added afterwards."""
        digests = pa.Array.from_buffers(
            pa.int64(), len(self._digests), [None, pa.py_buffer(self._digests)]
        )
        order = pc.array_sort_indices(digests)
        sorted_digests = memoryview(digests.take(order).buffers()[1]).cast("q")
        self._sorted = sorted_digests[: len(digests)]
        self._ids = pa.chunked_array(self._parts, pa.string()).combine_chunks().take(order)
        self._digests, self._parts = array("q"), []

    def ids(self, values: Sequence[Any]) -> tuple[str, ...]:
        """Return the ids of at most `IDS_MAX` records with these values, as in a request body."""
        fold, digests = self._fold, self._sorted
        pairs = zip(self._texts, values, strict=True)
        digest = hash("\x1f".join([fold(text(value)) for text, value in pairs]))
        first = last = bisect_left(digests, digest)
        end = min(first + IDS_MAX, len(digests))
        while last < end and digests[last] == digest:
            last += 1
        return tuple(sorted(self._ids[first:last].to_pylist())) if last > first else ()


def _timestamp_text(value: Any) -> str:
    """Return the microseconds since 1970 of a timestamp or of its text, as text."""
    timestamp = parse_datetime(value) if isinstance(value, str) else value
    return str(to_microseconds(timestamp.astimezone(UTC)))


def _text_expression(field: Field) -> str:
    """Return the SQL for a column as text; timestamps as microseconds since 1970."""
    if field.kind is Kind.DATETIME:
        return f"epoch_us({quoted(field.name)})::VARCHAR"
    return f"{quoted(field.name)}::VARCHAR"
