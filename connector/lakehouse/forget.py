"""Persons in the lakehouse: finding one in files and catalog, and erasing."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb

from connector.errors import NothingPublished
from connector.lakehouse.connect import LAKE, LakehouseAccount, changing, connected, reading
from connector.lakehouse.lake_status import expire, remove_files, snapshots
from connector.lakehouse.publish import LakePublication, Publisher
from connector.settings.model import Settings
from connector.suppression.person import Person
from connector.warehouse.duckdb_file import literal
from connector.warehouse.persons import is_identifier
from connector.warehouse.warehouse import Warehouse

if TYPE_CHECKING:
    from psycopg import Connection

CATALOG_TABLE = "catalog statistics"
"""What the catalog's figures are called among the tables."""


@dataclass(slots=True)
class InLakehouse:
    """Rows with an identifier of somebody, by table; `unreadable` files were left half written."""

    rows: Counter[str] = field(default_factory=Counter)
    unreadable: list[str] = field(default_factory=list)


def look_for(settings: Settings, person: Person) -> InLakehouse:
    """Rows of any state with an identifier of somebody; nothing where there is no lakehouse.

    Raises a `LakehouseError`.
    """
    found = InLakehouse()
    place = LakehouseAccount.of(settings)
    if place is None:
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


def _files(connection: duckdb.DuckDBPyConnection, place: LakehouseAccount) -> dict[str, list[str]]:
    """The account's files by table, whether or not any state needs them."""
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
        else:
            for each in files:
                _look_in(connection, table, (each,), person, found)


def _count(connection: duckdb.DuckDBPyConnection, files: Sequence[str], person: Person) -> int:
    listed = ", ".join(map(literal, files))
    source = f"read_parquet([{listed}], union_by_name => true, hive_partitioning => false)"
    names = [
        name
        for name, type in connection.execute(
            f"SELECT column_name, column_type FROM (DESCRIBE SELECT * FROM {source})"
        ).fetchall()
        if type == "VARCHAR"
    ]
    where = " OR ".join(each for name in names for each in is_identifier(name, person))
    if not where:
        return 0
    ((count,),) = connection.execute(f"SELECT count(*) FROM {source} WHERE {where}").fetchall()
    return int(count)


def _in_statistics(catalog: Connection[Any], place: LakehouseAccount, person: Person) -> int:
    """How many of the catalog's figures are an identifier of somebody.

    Figures on whole tables count where no other account's file has the same value.
    """
    figures = "SELECT unnest(ARRAY[min_value, max_value]) FROM"
    of_files = f"{figures} ducklake_file_column_stats JOIN ducklake_data_file USING (data_file_id)"
    folder = f"account={place.account}/"

    def named(sql: str, *parameters: str) -> list[str]:
        values = (value for (value,) in catalog.execute(sql.encode(), parameters).fetchall())
        return [each for each in values if each is not None and person.is_in_row([each])]

    own = named(f"{of_files} WHERE starts_with(path, %s)", folder)
    elsewhere = named(f"{of_files} WHERE NOT starts_with(path, %s)", folder)
    whole = named(f"{figures} ducklake_table_column_stats")
    return len(own) + sum(each not in elsewhere for each in whole)


# -- Forgetting ------------------------------------------------------------------------------------
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


def forget(settings: Settings) -> None:
    """Make the account's part what its published file holds, and nothing else.

    No byte of what was there before is left, in files or catalog. Earlier states end for all
    accounts, since a state is one of the whole lakehouse. Raises what `publish_to_lakehouse`
    raises; whatever was done by then is done, and the next call goes on.
    """
    if (place := LakehouseAccount.of(settings)) is not None:
        file = Warehouse(settings.folder).published
        _replace(place, file if file.exists() else None)


def remove(settings: Settings) -> LakePublication:
    """Take the account out of the lakehouse. Raises as `publish_to_lakehouse` does."""
    return _replace(LakehouseAccount.required(settings), None)


def leave(settings: Settings, account: str) -> LakePublication | None:
    """Take an account that has another name now out; earlier states keep it.

    None where there is no lakehouse. Raises as `publish_to_lakehouse` does.
    """
    place = LakehouseAccount.of(settings)
    if place is None:
        return None
    place = replace(place, account=account)
    with changing(place) as (catalog, connection):
        return Publisher(place, catalog, connection).remove()


def _replace(place: LakehouseAccount, published: Path | None) -> LakePublication:
    began = time.monotonic()
    with changing(place, published=published) as (catalog, connection):
        publisher = Publisher(place, catalog, connection)
        done = publisher.publish(published, anew=True) if published else publisher.remove()
        _end_earlier(connection, catalog)
    return replace(done, seconds=time.monotonic() - began)


def _end_earlier(connection: duckdb.DuckDBPyConnection, catalog: Connection[Any]) -> None:
    """End every state but the present one, with all that only those needed."""
    connection.execute(f"CALL ducklake_flush_inlined_data('{LAKE}')").fetchall()
    expire(connection, [number for number, _ in snapshots(connection)][:-1])
    remove_files(connection, None, applies=True)
    _renew_statistics(catalog)


def _renew_statistics(catalog: Connection[Any]) -> None:
    """Make the figures on whole tables from those on the files that are left.

    Their tables are written anew, so that PostgreSQL keeps no old row.
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
    """The value of the column that comes first in this order; null if none."""
    return (
        f"(array_agg(f.{column} ORDER BY {key} {order}) FILTER (WHERE f.{column} IS NOT NULL))[1]"
    )
