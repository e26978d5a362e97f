"""What was pushed, as analysts see it: a copy of the journal, brought up to date after each push.

Functions over an open connection; whoever calls them holds the transaction. What has changed in
the journal comes whole, and takes the place of what was copied before.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import duckdb
import pyarrow as pa

from connector.value import Kind
from connector.value import read as read_value
from connector.warehouse.looks import staged
from connector.warehouse.rows import as_json, storable

Rows = Sequence[Mapping[str, Any]]
"""Rows of one table, by the names of its columns; what the table has no column for is left out."""


@dataclass(frozen=True, slots=True)
class PushChanges:
    """A part of what changed in the journal since it was copied last. A row that changed comes with
    all of its problems.
    """

    batches: Rows = ()
    rows: Rows = ()
    attempts: Rows = ()
    problems: Rows = ()
    before_images: Rows = ()

    @property
    def is_nothing(self) -> bool:
        """Whether nothing has changed."""
        return not any(getattr(self, table) for table in _COLUMNS)


_TEXT, _COUNT, _JSON = pa.string(), pa.int64(), "JSON"
_MOMENT = pa.timestamp("us", tz="UTC")

_ROW = ("batch", "number")
_KEYS: Mapping[str, tuple[str, ...]] = {
    "batches": ("batch",),
    "rows": _ROW,
    "attempts": (*_ROW, "attempt"),
    "problems": (*_ROW, "place"),
    "before_images": (*_ROW, "step"),
}
_COLUMNS: Mapping[str, Mapping[str, Any]] = {
    "batches": {
        **dict.fromkeys(("batch", "resource", "mode", "file", "digest"), _TEXT),
        "terms": _JSON,
        "run_id": _TEXT,
        **dict.fromkeys(("begun_at", "ended_at"), _MOMENT),
        **dict.fromkeys(("outcome", "error_code", "message"), _TEXT),
        "requests": _COUNT,
        "seconds": pa.float64(),
        "change": _COUNT,
    },
    "rows": {
        "batch": _TEXT,
        "number": _COUNT,
        **dict.fromkeys(("operation", "state", "outcome", "code", "record_id"), _TEXT),
        "updated_at": _MOMENT,
        "same_batch": _TEXT,
        "same_number": _COUNT,
        **dict.fromkeys(("undone_at", "moved_at"), _MOMENT),
        "change": _COUNT,
    },
    "attempts": {
        "batch": _TEXT,
        **dict.fromkeys(("number", "attempt"), _COUNT),
        **dict.fromkeys(("step", "method", "path"), _TEXT),
        "body": _TEXT,
        **dict.fromkeys(("intended_at", "sent_after", "ended_at"), _MOMENT),
        **dict.fromkeys(("fate", "reason"), _TEXT),
        "change": _COUNT,
    },
    "problems": {
        "batch": _TEXT,
        **dict.fromkeys(("number", "place"), _COUNT),
        **dict.fromkeys(("code", "message", "field", "column", "received"), _TEXT),
        **dict.fromkeys(("found", "allowed", "fix"), _TEXT),
    },
    "before_images": {
        "batch": _TEXT,
        "number": _COUNT,
        "step": _TEXT,
        "record": _JSON,
        "noted_at": _MOMENT,
        "change": _COUNT,
    },
}


def last_copied(connection: duckdb.DuckDBPyConnection) -> int:
    """The number of the latest change of the journal that was copied; 0 where none was.

    Changes are copied as of one moment, so that all before it were copied as well.
    """
    tables = " UNION ALL ".join(
        f"SELECT max(change) AS change FROM push.{table}"
        for table, columns in _COLUMNS.items()
        if "change" in columns
    )
    ((last,),) = connection.execute(f"SELECT coalesce(max(change), 0) FROM ({tables})").fetchall()
    return int(last)


def write_pushes(
    connection: duckdb.DuckDBPyConnection, copied: int, parts: Iterable[PushChanges]
) -> bool:
    """Put everything that changed since the change `copied` in the place of what was copied of the
    same things. False, and nothing is written, where somebody else has copied meanwhile, and
    perhaps something later.
    """
    if last_copied(connection) != copied:
        return False
    for changes in parts:
        _write(connection, changes)
    return True


def _write(connection: duckdb.DuckDBPyConnection, changes: PushChanges) -> None:
    if changes.rows:
        # A row may have fewer problems than before.
        with staged(connection, _table("rows", changes.rows)):
            connection.execute(
                "DELETE FROM push.problems WHERE (batch, number) IN "
                "(SELECT (batch, number) FROM stage)"
            )
    for table in _COLUMNS:
        rows: Rows = getattr(changes, table)
        if not rows:
            continue
        key = ", ".join(_KEYS[table])
        with staged(connection, _table(table, rows)):
            connection.execute(
                f"DELETE FROM push.{table} WHERE ({key}) IN (SELECT ({key}) FROM stage)"
            )
            connection.execute(f"INSERT INTO push.{table} BY NAME SELECT * FROM stage")


def _table(name: str, rows: Rows) -> pa.Table:
    """The rows as an Arrow table, ready to be staged."""
    return pa.table(
        {
            column: pa.array([_value(each[column], kind) for each in rows], _arrow(kind))
            for column, kind in _COLUMNS[name].items()
        }
    )


def _arrow(kind: Any) -> pa.DataType:
    return _TEXT if kind == _JSON else kind


def _value(value: Any, kind: Any) -> Any:
    """A value as its column takes it."""
    if value is None:
        return None
    if kind == _JSON:
        return as_json(value)
    if kind == _MOMENT and not isinstance(value, datetime):
        return _moment(value)
    return storable(value) if isinstance(value, str) else value


def _moment(text: object) -> datetime | None:
    """A moment as the API wrote it; None for what is none."""
    try:
        moment = read_value(Kind.DATETIME, text)
    except (ValueError, TypeError, OverflowError):
        return None
    return moment if isinstance(moment, datetime) else None
