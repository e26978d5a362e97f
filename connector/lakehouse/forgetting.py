"""Erasing in the lakehouse: what was taken out of an account's published file leaves no byte there.

The account's part is written anew from the published file, every earlier state of the lakehouse
ends, and the files that only those needed are removed, with those of publishers that were cut off.
The catalog keeps the least and the greatest value of each column, which are somebody's: those of
files that are gone go with them, and those of whole tables are made of the files that are left.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import duckdb

from connector.lakehouse.attaching import LAKE, changing
from connector.lakehouse.place import Place
from connector.lakehouse.sending import Sending, Sent
from connector.lakehouse.upkeep import expire, remove_files, snapshots
from connector.settings import Settings
from connector.warehouse import Warehouse

if TYPE_CHECKING:
    from psycopg import Connection

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
