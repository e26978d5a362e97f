"""What the lakehouse says of itself, in its schema `lakehouse`: for each account what was published
there last, and the size of its part of each table.

It is written in the transaction that it is about. Where an account's table is as this says it was,
nothing of the table is read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import duckdb

from connector.lakehouse.attaching import LAKE, Place
from connector.lakehouse.tables import Part, remove_part
from connector.warehouse.duckdb_file import from_microseconds, literal

PUBLICATIONS = "lakehouse.publications"
PARTS = "lakehouse.parts"

_COLUMNS: Mapping[str, Mapping[str, tuple[str, str]]] = {
    PUBLICATIONS: {
        "account": ("VARCHAR", "The account, by its name; `_unnamed` for the one without."),
        "publication": ("VARCHAR", "The file that it shows (`sync.publications` of the account)."),
        "published_at": ("TIMESTAMPTZ", "When that file was made."),
        "true_of": ("TIMESTAMPTZ", "The moment that the account's data is true of."),
        "personal": ("VARCHAR", "What became of personal fields: keep, drop or hash."),
        "source": ("VARCHAR", "The address that the account's records come from."),
        "version": ("VARCHAR", "The version of the connector that published."),
    },
    PARTS: {
        "account": ("VARCHAR", "The account."),
        "table_name": ("VARCHAR", "The table, as `schema.table`."),
        "rows": ("BIGINT", "How many rows of it are the account's."),
        "digest": ("VARCHAR", "A fingerprint of these rows."),
    },
}


@dataclass(frozen=True, slots=True)
class Entry:
    """What an account has published last. `published_at` is when the file was made."""

    account: str
    publication: str
    published_at: datetime
    true_of: datetime | None
    personal: str | None
    source: str | None
    version: str


@dataclass(frozen=True, slots=True)
class Shown:
    """What a published file says of itself; `published_at` is when it was made."""

    publication: str
    published_at: datetime
    true_of: datetime | None
    personal: str | None


def read_file(connection: duckdb.DuckDBPyConnection, file: Path) -> Shown:
    """What the file says that is attached as `published`. One that goes without its `sync` is known
    by when it was put in place.
    """
    try:
        rows = connection.execute(
            "SELECT publication, epoch_us(started_at), epoch_us(true_of), personal "
            "FROM published.sync.publications ORDER BY started_at DESC LIMIT 1"
        ).fetchall()
    except duckdb.CatalogException:
        rows = []
    for publication, published_at, true_of, personal in rows:
        at = from_microseconds(published_at)
        assert at is not None
        return Shown(publication, at, from_microseconds(true_of), personal)
    changed_at = datetime.fromtimestamp(file.stat().st_mtime, UTC)
    return Shown(f"{changed_at:%Y%m%dT%H%M%S.%fZ}", changed_at, None, None)


def make_book(connection: duckdb.DuckDBPyConnection) -> None:
    """Make the tables that are not there yet."""
    connection.execute(f"CREATE SCHEMA IF NOT EXISTS {LAKE}.lakehouse")
    for table, columns in _COLUMNS.items():
        defined = ", ".join(f"{name} {type}" for name, (type, _) in columns.items())
        connection.execute(f"CREATE TABLE {LAKE}.{table} ({defined})")
        connection.execute(f"ALTER TABLE {LAKE}.{table} SET PARTITIONED BY (account)")
        for name, (_, about) in columns.items():
            connection.execute(f"COMMENT ON COLUMN {LAKE}.{table}.{name} IS {literal(about)}")


def read_entries(connection: duckdb.DuckDBPyConnection) -> tuple[Entry, ...]:
    """What each account has published last, by name."""
    rows = connection.execute(
        "SELECT account, publication, epoch_us(published_at), epoch_us(true_of), personal, source, "
        f"version FROM {LAKE}.{PUBLICATIONS} ORDER BY account"
    ).fetchall()
    return tuple(_entry(row) for row in rows)


def read_parts(connection: duckdb.DuckDBPyConnection, account: str) -> dict[str, Part]:
    """The account's part of each table."""
    rows = connection.execute(
        f"SELECT table_name, rows, digest FROM {LAKE}.{PARTS} WHERE account = {literal(account)}"
    ).fetchall()
    return {table: Part(count, digest) for table, count, digest in rows}


def count_rows(connection: duckdb.DuckDBPyConnection) -> dict[str, dict[str, int]]:
    """How many rows of each table each account has, by account."""
    found: dict[str, dict[str, int]] = {}
    for account, table, rows in connection.execute(
        f"SELECT account, table_name, rows FROM {LAKE}.{PARTS} ORDER BY ALL"
    ).fetchall():
        found.setdefault(account, {})[table] = rows
    return found


def write_entry(connection: duckdb.DuckDBPyConnection, place: Place, file: Shown) -> None:
    """Write down what the account has published now."""
    remove_part(connection, PUBLICATIONS, place.account)
    values = (
        place.account,
        file.publication,
        file.published_at.isoformat(),
        None if file.true_of is None else file.true_of.isoformat(),
        file.personal,
        place.source,
        version("recruitment-connector"),
    )
    shown = ", ".join("NULL" if each is None else literal(each) for each in values)
    connection.execute(f"INSERT INTO {LAKE}.{PUBLICATIONS} VALUES ({shown})")


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


def _entry(row: tuple[Any, ...]) -> Entry:
    account, publication, published_at, true_of, *others = row
    at = from_microseconds(published_at)
    assert at is not None
    return Entry(account, publication, at, from_microseconds(true_of), *others)
