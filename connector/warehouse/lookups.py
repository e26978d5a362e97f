"""Lookups in the work file for the checks of a spreadsheet.

The account's lock is held while the lookups are used. Values are found by an index in memory, which
is built at the first call for the fields.
"""

from __future__ import annotations

import csv
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Self

from connector.catalog import CATALOG, declaration
from connector.catalog.content import ContentTypeField
from connector.catalog.field import Field, Kind, parse_datetime
from connector.log import compact_timestamp
from connector.state.row import KnownId, LandedRecord
from connector.warehouse.file import quoted, run_staged
from connector.warehouse.queries import verified_at
from connector.warehouse.schema import PARTS_TABLE
from connector.warehouse.warehouse import Warehouse

IDS_MAX = 20
"""Maximum number of ids that are returned for the same values."""

_USER_FIELDS = ("assigned_to", "account_manager_id")
"""Fields with the id of a user."""

_TYPE_IDS = "(SELECT id FROM landing.content_types WHERE _deleted_at IS NULL AND $1 IN (slug, id))"
"""Ids of the content type with a slug or id."""


class WarehouseLookups:
    """Searches one account's loaded records for the checks of a spreadsheet.

    `fold` converts texts with the same meaning to one form. `seen_at` is the time at which the user
    saw the records. Every method raises a `WarehouseError` if the file cannot be read.
    """

    def __init__(
        self, warehouse: Warehouse, fold: Callable[[str], str], seen_at: datetime | None = None
    ) -> None:
        self._warehouse, self._fold, self._seen_at = warehouse, fold, seen_at
        self._open = ExitStack()
        self._known: dict[str, list[KnownId]] = {}
        self._indexes: dict[tuple[Any, ...], dict[tuple[str, ...], tuple[str, ...]]] = {}

    def __enter__(self) -> Self:
        self._open.enter_context(self._warehouse.keep_open())
        return self

    def __exit__(self, *exception: object) -> None:
        self._open.close()

    def _rows(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        """Return the rows of a query."""
        with self._warehouse.connection() as connection:
            return connection.execute(sql, values).fetchall()

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
        declared = tuple(declaration(resource).field(name) for name in fields)
        key = (resource, tuple(fields), parent)
        if key not in self._indexes:
            self._indexes[key] = self._index(resource, declared, parent)
        index = self._indexes[key]
        return [index.get(self._folded(declared, each), ()) for each in values]

    def _folded(self, fields: Sequence[Field], values: Sequence[Any]) -> tuple[str, ...]:
        """Return the texts by which values of these fields are compared."""
        pairs = zip(fields, values, strict=True)
        return tuple(
            self._fold(_moment(v) if f.kind is Kind.DATETIME else str(v)) for f, v in pairs
        )

    def _index(
        self, resource: str, fields: Sequence[Field], parent: str | None
    ) -> dict[tuple[str, ...], tuple[str, ...]]:
        """Return the ids of live records by the texts of these fields."""
        names = [quoted(field.name) for field in fields]
        texts = [
            f"epoch_us({name})::VARCHAR" if field.kind is Kind.DATETIME else f"{name}::VARCHAR"
            for name, field in zip(names, fields, strict=True)
        ]
        conditions = ["_deleted_at IS NULL", *(f"{name} IS NOT NULL" for name in names)]
        if parent is not None:
            conditions.append(f"_content_type_id IN {_TYPE_IDS}")
        rows = self._rows(
            f"SELECT id, {', '.join(texts)} FROM landing.{quoted(resource)} WHERE "
            f"{' AND '.join(conditions)} ORDER BY id",
            *((parent,) if parent is not None else ()),
        )
        found = defaultdict[tuple[str, ...], list[str]](list)
        for id, *parts in rows:
            found[tuple(map(self._fold, parts))].append(id)
        return {key: tuple(ids[:IDS_MAX]) for key, ids in found.items()}

    def list_texts(self, resource: str, fields: Sequence[str]) -> list[tuple[str, ...]]:
        """Return id and texts of these fields of all live records, without those that are empty."""
        names = [quoted(declaration(resource).field(name).name) for name in fields]
        filled = " AND ".join(f"{name} IS NOT NULL" for name in names)
        return self._rows(
            f"SELECT id, {', '.join(names)} FROM landing.{quoted(resource)} "
            f"WHERE _deleted_at IS NULL AND {filled} ORDER BY id"
        )

    def known_ids(self, field: str) -> list[KnownId]:
        """Return the users or lead statuses of a field: those of the seeds and of the records."""
        if field not in self._known:
            fields = _USER_FIELDS if field in _USER_FIELDS else (field,)
            seed = "people" if field in _USER_FIELDS else "lead_statuses"
            names = _read_seed(self._warehouse.folder / "seeds" / f"{seed}.csv")
            counts: Counter[str] = Counter()
            for name, declared in CATALOG.items():
                for each in (each for each in fields if each in declared.fields):
                    counts.update(dict(self._rows(
                        f"SELECT {quoted(each)}, count(*) FROM landing.{quoted(name)} "
                        f"WHERE {quoted(each)} IS NOT NULL GROUP BY 1"
                    )))  # fmt: skip
            ids = {**names, **counts}
            self._known[field] = [KnownId(id, names.get(id, ""), counts[id]) for id in ids]
        return self._known[field]

    def landed_records(self, resource: str, ids: Collection[str]) -> dict[str, LandedRecord]:
        """Return the loaded rows, also deleted ones, with the detail that the user saw."""
        name = quoted(declaration(resource).name)
        with self._warehouse.connection() as connection:
            rows = run_staged(
                connection,
                {"id": ids},
                "SELECT id, _record::VARCHAR, _hydrated_at IS NOT NULL, _deleted_at IS NOT NULL "
                f"FROM landing.{name} WHERE rowid IN "
                # The ids are filtered first, so that other rows' records are not read.
                f"(SELECT rowid FROM landing.{name} WHERE id IN (SELECT id FROM stage))",
            )
            # The id of a run begins with its start on the local clock: server times are whole
            # seconds, and the server clock may be wrong.
            before = "" if self._seen_at is None else compact_timestamp(self._seen_at)
            versions = run_staged(
                connection,
                {"id": ids},
                f"SELECT id, arg_max(_record::VARCHAR, _version) FROM history.{name} "
                "WHERE id IN (SELECT id FROM stage) AND _run_id < $before GROUP BY id",
                {"before": before},
            )
        seen = {id: json.loads(text) for id, text in versions}
        return {
            id: LandedRecord(json.loads(text), is_whole, is_deleted, seen.get(id))
            for id, text, is_whole, is_deleted in rows
        }

    def has_records(self, resource: str) -> bool:
        """Return True if any record of the resource was ever loaded."""
        return bool(
            self._rows(f"SELECT 1 FROM landing.{quoted(declaration(resource).name)} LIMIT 1")
        )

    def proven_at(self, resource: str) -> datetime | None:
        """Return the time up to which the resource is verified; None if it is not."""
        return self._warehouse.read(verified_at).get(resource)

    def content_fields(self, content_type: str) -> tuple[ContentTypeField, ...] | None:
        """Return the fields of the content type with that slug or id; None if it is not loaded."""
        if not self._rows(f"SELECT * FROM {_TYPE_IDS}", content_type):
            return None
        rows = self._rows(
            f"SELECT _record::VARCHAR FROM landing.{PARTS_TABLE} WHERE _deleted_at IS NULL "
            f"AND _content_type_id IN {_TYPE_IDS} ORDER BY display_order NULLS LAST, id",
            content_type,
        )
        return tuple(ContentTypeField(json.loads(record)) for (record,) in rows)


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _moment(value: Any) -> str:
    """Return the microseconds since 1970 of a timestamp or of its text, as text."""
    timestamp = parse_datetime(value) if isinstance(value, str) else value
    return str((timestamp - _EPOCH) // timedelta(microseconds=1))


def _read_seed(path: Path) -> dict[str, str]:
    """Return the names of the user's seed by id; empty without the file."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = list(csv.DictReader(file))
    except FileNotFoundError:
        return {}
    return {row["id"]: (row.get("name") or "").strip() for row in rows if row.get("id")}
