"""Manifest of the lakehouse, its schema `lakehouse`: what accounts published.

It has the size of each account's part of each table too, and is written in the transaction that it
is about. Where an account's table is as this says it was, nothing of the table is read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import duckdb

from connector.lakehouse.connect import LAKE, LakehouseAccount
from connector.lakehouse.tables import Part, remove_part
from connector.system.version import program_version
from connector.warehouse.duckdb_file import literal
from connector.warehouse.own_tables import RowsOf

PUBLICATIONS = "lakehouse.publications"
PARTS = "lakehouse.parts"

_COLUMNS: Mapping[str, Mapping[str, str]] = {
    PUBLICATIONS: {
        "account VARCHAR": "The account, by its name; `_unnamed` for the one without.",
        "publication VARCHAR": "The file that it shows (`sync.publications` of the account).",
        "published_at TIMESTAMPTZ": "When that file was made.",
        "true_of TIMESTAMPTZ": "The moment that the account's data is true of.",
        "personal VARCHAR": "What became of personal fields: keep, drop or hash.",
        "source VARCHAR": "The address that the account's records come from.",
        "version VARCHAR": "The version of the connector that published.",
    },
    PARTS: {
        "account VARCHAR": "The account.",
        "table_name VARCHAR": "The table, as `schema.table`.",
        "rows BIGINT": "How many rows of it are the account's.",
        "digest VARCHAR": "A fingerprint of these rows.",
    },
}


@dataclass(frozen=True, slots=True)
class ManifestEntry:
    """What an account has published last. `published_at` is when the file was made."""

    account: str
    publication: str
    published_at: datetime
    true_of: datetime | None
    personal: str | None
    source: str | None
    version: str


_ENTRIES = RowsOf(ManifestEntry, f"{LAKE}.{PUBLICATIONS}", _COLUMNS[PUBLICATIONS])


def read_file(
    connection: duckdb.DuckDBPyConnection, file: Path, place: LakehouseAccount
) -> ManifestEntry:
    """The entry for the file that is attached as `published`.

    A file that goes without its `sync` is known by when it was put in place.
    """
    source, own = place.source, program_version()
    try:
        rows = connection.execute(
            "SELECT ?, publication, epoch_us(started_at), epoch_us(true_of), personal, ?, ? "
            "FROM published.sync.publications ORDER BY started_at DESC LIMIT 1",
            [place.account, source, own],
        ).fetchall()
    except duckdb.CatalogException:
        rows = []
    if rows:
        return _ENTRIES.read(rows[0])
    at = datetime.fromtimestamp(file.stat().st_mtime, UTC)
    return ManifestEntry(place.account, f"{at:%Y%m%dT%H%M%S.%fZ}", at, None, None, source, own)


def make_manifest(connection: duckdb.DuckDBPyConnection) -> None:
    """Make the tables, which are not there yet."""
    connection.execute(f"CREATE SCHEMA IF NOT EXISTS {LAKE}.lakehouse")
    for table, columns in _COLUMNS.items():
        connection.execute(f"CREATE TABLE {LAKE}.{table} ({', '.join(columns)})")
        connection.execute(f"ALTER TABLE {LAKE}.{table} SET PARTITIONED BY (account)")
        for column, about in columns.items():
            name = column.partition(" ")[0]
            connection.execute(f"COMMENT ON COLUMN {LAKE}.{table}.{name} IS {literal(about)}")


def read_entries(connection: duckdb.DuckDBPyConnection) -> tuple[ManifestEntry, ...]:
    """What each account has published last, by name."""
    rows = connection.execute(
        f"SELECT {_ENTRIES.selected} FROM {LAKE}.{PUBLICATIONS} ORDER BY account"
    ).fetchall()
    return tuple(map(_ENTRIES.read, rows))


def read_parts(connection: duckdb.DuckDBPyConnection) -> dict[str, dict[str, Part]]:
    """By account, its part of each table."""
    found: dict[str, dict[str, Part]] = {}
    for account, table, *part in connection.execute(
        f"SELECT account, table_name, rows, digest FROM {LAKE}.{PARTS} ORDER BY ALL"
    ).fetchall():
        found.setdefault(account, {})[table] = Part(*part)
    return found


def write_entry(connection: duckdb.DuckDBPyConnection, entry: ManifestEntry) -> None:
    """Write down what the account has published now."""
    remove_part(connection, PUBLICATIONS, entry.account)
    _ENTRIES.insert(connection, entry)


def write_parts(
    connection: duckdb.DuckDBPyConnection, account: str, parts: Mapping[str, Part]
) -> None:
    """Write down the account's part of each table."""
    remove_part(connection, PARTS, account)
    rows = ", ".join(
        f"({literal(account)}, {literal(table)}, {part.rows}, {literal(part.digest)})"
        for table, part in sorted(parts.items())
    )
    if rows:
        connection.execute(f"INSERT INTO {LAKE}.{PARTS} VALUES {rows}")


def forget_table(connection: duckdb.DuckDBPyConnection, table: str) -> None:
    """Forget that any account has a part of the table."""
    connection.execute(f"DELETE FROM {LAKE}.{PARTS} WHERE table_name = {literal(table)}")


def forget_account(connection: duckdb.DuckDBPyConnection, account: str) -> None:
    """Forget that the account ever published."""
    for table in (PUBLICATIONS, PARTS):
        remove_part(connection, table, account)
