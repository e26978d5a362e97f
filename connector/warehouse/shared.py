"""The record of what went to the shared lakehouse, and why not where it did not.

It is written after the file was published, so that it is in the next one.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import duckdb

from connector.warehouse.file import opened, transaction
from connector.warehouse.moment import from_microseconds
from connector.warehouse.quoting import literal
from connector.warehouse.schema import is_migrated, migrate

ROWS_KEPT = 1_000
"""How many of the latest attempts are kept."""


@dataclass(frozen=True, slots=True)
class SharedPublication:
    """One attempt. `outcome` is published, unchanged (the lakehouse had it all) or failed;
    `publication` is that of the file, `snapshot` the lakehouse's after it.
    """

    started_at: datetime
    ended_at: datetime
    outcome: str
    publication: str | None = None
    snapshot: int | None = None
    tables: int = 0
    inserted: int = 0
    removed: int = 0
    error_code: str | None = None
    message: str | None = None


_NAMES = tuple(SharedPublication.__dataclass_fields__)
_MOMENTS = frozenset(("started_at", "ended_at"))


def write_shared(work: Path, row: SharedPublication) -> None:
    """Write the attempt down in the work file, and forget the oldest. Raises a `WarehouseError`."""
    values = ", ".join(_literal(getattr(row, name)) for name in _NAMES)
    with opened(work) as connection:
        if not is_migrated(connection):
            migrate(connection, str(work))
        with transaction(connection):
            connection.execute(
                f"INSERT INTO sync.lakehouse ({', '.join(_NAMES)}) VALUES ({values})"
            )
            connection.execute(
                "DELETE FROM sync.lakehouse WHERE rowid NOT IN (SELECT rowid FROM sync.lakehouse "
                f"ORDER BY started_at DESC, rowid DESC LIMIT {ROWS_KEPT})"
            )


def last_shared(connection: duckdb.DuckDBPyConnection) -> SharedPublication | None:
    """The latest attempt; None where there was none."""
    shown = ", ".join(f"epoch_us({each})" if each in _MOMENTS else each for each in _NAMES)
    rows = connection.execute(
        f"SELECT {shown} FROM sync.lakehouse ORDER BY started_at DESC, rowid DESC LIMIT 1"
    ).fetchall()
    for row in rows:
        values: dict[str, Any] = dict(zip(_NAMES, row, strict=True))
        return SharedPublication(
            **{**values, **{name: from_microseconds(values[name]) for name in _MOMENTS}}
        )
    return None


def _literal(value: object) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, datetime):
        return literal(value.isoformat())
    return literal(value) if isinstance(value, str) else str(value)
