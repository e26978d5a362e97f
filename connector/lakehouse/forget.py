"""Where somebody is in the lakehouse: in which files of an account, whatever state they are of, and
in which of the catalog's figures on them.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import duckdb

from connector.errors import NothingPublished
from connector.lakehouse.attaching import LAKE, Place, changing, connected, reading
from connector.lakehouse.maintenance import expire, remove_files, snapshots
from connector.lakehouse.share import Sending, Sent
from connector.settings.model import Settings
from connector.suppression.person import Person
from connector.warehouse.duckdb_file import literal, quoted
from connector.warehouse.warehouse import Warehouse

if TYPE_CHECKING:
    from psycopg import Connection

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


# -- Forgetting ------------------------------------------------------------------------------------
# Erasing in the lakehouse: what was taken out of an account's published file leaves no byte there.
#
# The account's part is written anew from the published file, every earlier state of the lakehouse
# ends, and the files that only those needed are removed, with those of publishers that were cut
# off. The catalog keeps the least and the greatest value of each column, which are somebody's:
# those of files that are gone go with them, and those of whole tables are made of the files that
# are left.


_VALUES = ("ducklake_file_column_stats", "ducklake_table_column_stats")
"""The catalog's tables that hold values of rows."""

_NUMBERS = "c.column_type ~ '^(u?int|float|decimal)'"

_READER_SECONDS = 60
"""For how long a reader of the catalog is waited for that holds one of its tables."""

# PostgreSQL's own figures on these tables are samples of the same values.
_VACUUMED = (*_VALUES, "ducklake_inlined_data_tables", "pg_catalog.pg_statistic")


def forget(settings: Settings) -> Sent | None:
    """Make the account's part what its published file holds, or nothing where there is none, and
    leave nothing behind of what was there before, in files and catalog; None where there is no
    lakehouse.

    Earlier states end for all accounts, since a state is one of the whole lakehouse. Raises what
    `send` raises; whatever was done by then is done, and the next call goes on.
    """
    place = Place.of(settings)
    if place is None:
        return None
    file = Warehouse(settings.folder).published
    shown = file if file.exists() else None
    began = time.monotonic()
    with changing(place, published=shown) as (catalog, connection):
        sending = Sending(place, catalog, connection, began)
        sent = sending.take_away() if shown is None else sending.carry_out(shown, anew=True)
        _end_earlier(connection, catalog)
    return sent


def remove(settings: Settings) -> Sent:
    """Take the account out of the lakehouse, with everything that it ever published there. Raises
    as `send` does.
    """
    place = Place.asked_of(settings)
    began = time.monotonic()
    with changing(place) as (catalog, connection):
        sent = Sending(place, catalog, connection, began).take_away()
        _end_earlier(connection, catalog)
    return sent


def _end_earlier(connection: duckdb.DuckDBPyConnection, catalog: Connection[Any]) -> None:
    """End every state but the present one, with all that only those needed."""
    connection.execute(f"CALL ducklake_flush_inlined_data('{LAKE}')").fetchall()
    expire(connection, [number for number, _ in snapshots(connection)][:-1])
    remove_files(connection, None, applies=True)
    _renew_statistics(catalog)


def _renew_statistics(catalog: Connection[Any]) -> None:
    """Make the figures on whole tables from those on the files that there are, and write what holds
    values anew, so that PostgreSQL keeps no old row of it.
    """
    for is_numbers, key in ((True, "::numeric"), (False, ' COLLATE "C"')):
        least = _extreme("min_value", f"f.min_value{key}", "ASC")
        greatest = _extreme("max_value", f"f.max_value{key}", "DESC")
        which = _NUMBERS if is_numbers else f"NOT ({_NUMBERS})"
        catalog.execute(
            "UPDATE ducklake_table_column_stats AS held SET min_value = found.least, "
            "max_value = found.greatest FROM ("
            f"SELECT s.table_id, s.column_id, {least} AS least, {greatest} AS greatest "
            "FROM ducklake_table_column_stats AS s "
            "JOIN ducklake_column AS c ON c.table_id = s.table_id AND c.column_id = s.column_id "
            f"AND c.end_snapshot IS NULL AND {which} "
            "LEFT JOIN ducklake_file_column_stats AS f "
            "ON f.table_id = s.table_id AND f.column_id = s.column_id GROUP BY 1, 2) AS found "
            "WHERE held.table_id = found.table_id AND held.column_id = found.column_id"
        )
    catalog.execute(f"SET lock_timeout = {_READER_SECONDS * 1000}")
    for table in _VACUUMED:
        # One that is not ours to write anew is passed over by PostgreSQL, with a warning.
        catalog.execute(f"VACUUM (FULL, ANALYZE) {table}")


def _extreme(column: str, key: str, order: str) -> str:
    """The value of the column that comes first in this order, as it is written; null where no file
    has any.
    """
    return (
        f"(array_agg(f.{column} ORDER BY {key} {order}) FILTER (WHERE f.{column} IS NOT NULL))[1]"
    )
