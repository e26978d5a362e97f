"""Rows of the ledger's tables as records, and records as rows.

The names of columns are those of the fields, and a field's type says how its value is written
down: times in ISO 8601, paths as texts, and mappings as JSON. SQLite stores a value of any kind
in any column, so that each is held against its field's type: what is of another kind, no one wrote
here, and the file is damaged.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import fields
from datetime import date, datetime
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeVar, cast, get_args, get_origin, get_type_hints

T = TypeVar("T")

_Reader = Callable[[Any], Any]


def reader_of(*kinds: type[Any]) -> _Reader:
    """Reader of values of one kind. It raises `TypeError` for other kinds."""

    def read(value: Any) -> Any:
        if not isinstance(value, kinds):
            raise TypeError(f"not a {kinds[0].__name__}: {type(value).__name__}")
        return value

    return read


def _one_of(*values: Any) -> _Reader:
    def read(value: Any) -> Any:
        if value not in values:
            raise ValueError("not a value of this field")
        return value

    return read


_READERS: Mapping[Any, _Reader] = {
    datetime: datetime.fromisoformat,
    date: date.fromisoformat,
    bool: lambda value: bool(_one_of(0, 1)(value)),
    int: reader_of(int),
    float: reader_of(float, int),
    str: reader_of(str),
    bytes: reader_of(bytes),
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
        [to_column(value) for value in values.values()],
    )
    return cursor.lastrowid or 0


def to_column(value: Any) -> Any:
    """A value as it is written down."""
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Mapping):
        return json.dumps(dict(value), default=to_column)
    return str(value) if isinstance(value, Path) else value


@cache
def _readers_of(kind: Hashable) -> Mapping[str, _Reader]:
    """The readers of a kind's fields; of one whose type says too little there is none."""
    found = {}
    for name, hint in get_type_hints(kind).items():
        # Of a value that may be None, the type is among the arguments.
        for each in (hint, *get_args(hint)):
            is_literal = get_origin(each) is Literal
            reader = _one_of(*get_args(each)) if is_literal else None
            if (reader := reader or _READERS.get(get_origin(each) or each)) is not None:
                found[name] = reader
                break
    return found
