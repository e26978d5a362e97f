"""Questions to a published file: one statement, read-only, plain values back.

The file is opened for the one question and closed, and can never be changed here. What is asked
is the caller's affair.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from connector.resource import Declaration
from connector.warehouse.file import naming_errors
from connector.warehouse.schema import quoted


@dataclass(frozen=True, slots=True)
class Answer:
    """What a query returned: the names of its columns, and its rows."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]


def query(path: Path, sql: str) -> Answer:
    """Ask the file. Raises a `WarehouseError` for a file that is not there or cannot be read."""
    with naming_errors(path), duckdb.connect(str(path), read_only=True) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        cursor = connection.execute(sql)
        columns = tuple(str(each[0]) for each in cursor.description or ())
        return Answer(columns, tuple(cursor.fetchall()))


def count_by(path: Path, resource: Declaration, field: str) -> dict[Any, int]:
    """How many live landed records have each value of a field, the most frequent first."""
    name = quoted(resource.field(field).name)
    found = query(
        path,
        f"SELECT {name}, count(*) FROM landing.{quoted(resource.name)} "
        "WHERE _deleted_at IS NULL GROUP BY 1 ORDER BY 2 DESC, 1",
    )
    return dict(found.rows)
