"""Rows of the ledger's tables as records, and records as rows: the names of
columns are those of the fields, and a field's type says how its value is written down.

Moments are written in ISO 8601, paths as texts, and mappings as JSON.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import fields
from datetime import date, datetime
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast, get_args, get_origin, get_type_hints

T = TypeVar("T")

_Reader = Callable[[Any], Any]

_READERS: Mapping[Any, _Reader] = {
    datetime: datetime.fromisoformat,
    date: date.fromisoformat,
    bool: bool,
    int: int,
    float: float,
    Path: Path,
    Mapping: json.loads,
}


def read_records(
    connection: sqlite3.Connection,
    kind: type[T],
    query: str,
    parameters: Iterable[Any] = (),
    readers: Mapping[str, _Reader] | None = None,
) -> list[T]:
    """The rows of a query as records of that kind, of which it selects every field or
    those without a default. `readers` read the values of fields whose type says too little.
    """
    cursor = connection.execute(query, tuple(parameters))
    names = [column for column, *_ in cursor.description]
    known = {**_readers_of(cast("Any", kind)), **(readers or {})}
    takes = [known.get(name) for name in names]
    return [
        kind(
            **{
                name: value if take is None or value is None else take(value)
                for name, value, take in zip(names, row, takes, strict=True)
            }
        )
        for row in cursor
    ]


def columns_of(kind: type[Any]) -> str:
    """The names of a kind's fields, as a query selects them."""
    return ", ".join(each.name for each in fields(kind))


def values_of(record: Any) -> dict[str, Any]:
    """The fields of a record by their names."""
    return {each.name: getattr(record, each.name) for each in fields(record)}


def insert(connection: sqlite3.Connection, table: str, values: Mapping[str, Any]) -> int:
    """Add a row to a table; returns its row id."""
    marks = ", ".join("?" for _ in values)
    cursor = connection.execute(
        f"INSERT INTO {table} ({', '.join(values)}) VALUES ({marks})",
        [written(value) for value in values.values()],
    )
    return cursor.lastrowid or 0


def written(value: Any) -> Any:
    """A value as it is written down."""
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Mapping):
        return json.dumps(dict(value), default=written)
    return str(value) if isinstance(value, Path) else value


@cache
def _readers_of(kind: Hashable) -> Mapping[str, _Reader]:
    """The readers of those fields of a kind that are not written down as they are."""
    found = {}
    for name, hint in get_type_hints(kind).items():
        # Of a value that may be None, the type is among the arguments.
        for each in (hint, *get_args(hint)):
            if (reader := _READERS.get(get_origin(each) or each)) is not None:
                found[name] = reader
                break
    return found
