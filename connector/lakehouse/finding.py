"""Where somebody is in the lakehouse: in which files of an account, whatever state they are of, and
in which of the catalog's figures on them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import duckdb

from connector.errors import NothingPublished
from connector.lakehouse.attaching import reading
from connector.lakehouse.catalog import connected
from connector.lakehouse.place import Place
from connector.settings import Settings
from connector.suppression import Person
from connector.warehouse.quoting import literal, quoted

if TYPE_CHECKING:
    from psycopg import Connection

CATALOG_TABLE = "catalog statistics"
"""What the catalog's figures are called among the tables."""

_TEXTS = ("VARCHAR", "JSON")


@dataclass(slots=True)
class InLakehouse:
    """How many rows of each table name somebody, rows of earlier states and those that are deleted
    among them; `unreadable` are files that were left half written.
    """

    rows: Counter[str] = field(default_factory=Counter)
    unreadable: list[str] = field(default_factory=list)


def look_for(settings: Settings, person: Person) -> InLakehouse:
    """What the account's part of the lakehouse holds of somebody; nothing where there is no
    lakehouse. Raises a `LakehouseError`.
    """
    found = InLakehouse()
    place = Place.of(settings)
    if place is None or not person.needles:
        return found
    try:
        with reading(place) as connection, connected(place) as catalog:
            for table, files in _files(connection, place).items():
                _look_in(connection, table, files, person, found)
            found.rows[CATALOG_TABLE] = _in_statistics(catalog, place, person)
    except NothingPublished:
        return found
    found.rows = +found.rows
    return found


def _files(connection: duckdb.DuckDBPyConnection, place: Place) -> dict[str, list[str]]:
    """The account's files by table: all that are there, whether or not any state needs them."""
    pattern = f"{place.data}/*/*/account={place.account}/*.parquet"
    found: dict[str, list[str]] = {}
    for (path,) in connection.execute(f"SELECT file FROM glob({literal(pattern)})").fetchall():
        schema, table = path.split("/")[-4:-2]
        found.setdefault(f"{schema}.{table}", []).append(path)
    return found


def _look_in(
    connection: duckdb.DuckDBPyConnection,
    table: str,
    files: Sequence[str],
    person: Person,
    found: InLakehouse,
) -> None:
    try:
        found.rows[table] += _count(connection, files, person)
    except duckdb.Error:
        if len(files) == 1:
            found.unreadable += files
            return
        for each in files:
            _look_in(connection, table, (each,), person, found)


def _count(connection: duckdb.DuckDBPyConnection, files: Sequence[str], person: Person) -> int:
    listed = ", ".join(map(literal, files))
    source = f"read_parquet([{listed}], union_by_name => true, hive_partitioning => false)"
    columns = [
        quoted(name)
        for name, type in connection.execute(
            f"SELECT column_name, column_type FROM (DESCRIBE SELECT * FROM {source})"
        ).fetchall()
        if type in _TEXTS
    ]
    if not columns:
        return 0
    # One text of all columns, since a condition for each would cost more than the look.
    text = f"concat_ws(chr(31), {', '.join(columns)})"
    where = " OR ".join(f"contains(lower(text), {literal(each)})" for each in person.needles)
    rows = connection.execute(
        f"SELECT text FROM (SELECT {text} AS text FROM {source}) WHERE {where}"
    ).fetchall()
    return sum(person.without(_unescaped(shown)) != _unescaped(shown) for (shown,) in rows)


def _unescaped(text: str) -> str:
    """The text without the signs with which JSON parts lines: they hide where a word begins."""
    return re.sub(r"\\[nrt]", " ", text)


def _in_statistics(catalog: Connection[Any], place: Place, person: Person) -> int:
    """How many of the catalog's figures name somebody: of the account's files, and of whole tables
    where no other account's file has the same value.
    """
    figures = "SELECT coalesce(s.min_value, ''), coalesce(s.max_value, '') FROM"
    of_files = "JOIN ducklake_data_file AS f USING (data_file_id) WHERE"
    folder = f"account={place.account}/"
    own = catalog.execute(
        f"{figures} ducklake_file_column_stats AS s {of_files} starts_with(f.path, %s)", (folder,)
    ).fetchall()
    others = catalog.execute(
        f"{figures} ducklake_file_column_stats AS s {of_files} NOT starts_with(f.path, %s)",
        (folder,),
    ).fetchall()
    whole = catalog.execute(f"{figures} ducklake_table_column_stats AS s").fetchall()
    elsewhere = set(_named(others, person))
    found = [*_named(own, person), *(e for e in _named(whole, person) if e not in elsewhere)]
    return len(found)


def _named(figures: Sequence[tuple[Any, ...]], person: Person) -> Iterator[str]:
    for pair in figures:
        for value in pair:
            if person.without(value) != value:
                yield value
