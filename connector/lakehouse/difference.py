"""What of an account's table differs between the published file and the lakehouse.

Rows are known by fingerprints: the lakehouse keeps one with each row, so that finding what has
changed reads one narrow column of it, and none where the whole table is as it was.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import duckdb

from connector.lakehouse.attaching import LAKE
from connector.lakehouse.tables import ACCOUNT, FINGERPRINT, Table
from connector.warehouse.quoting import literal

REWRITE_SHARE = 0.5
"""From which share of changed rows on the account's part of a table is written anew: its old files
then go as a whole.
"""


@dataclass(frozen=True, slots=True)
class Part:
    """An account's part of a table: how many rows, and a fingerprint of them all."""

    rows: int
    digest: str


@dataclass(frozen=True, slots=True)
class Changed:
    """How many rows of a table went in, and how many out."""

    inserted: int = 0
    removed: int = 0


def take_fingerprints(connection: duckdb.DuckDBPyConnection, table: Table) -> Part:
    """Take the fingerprint of each row of the published table, into `fresh`, and of all of them."""
    connection.execute(
        "CREATE OR REPLACE TEMP TABLE fresh AS SELECT rowid AS row, "
        f"md5(to_json(shown)::VARCHAR)::UUID AS {FINGERPRINT} "
        f"FROM published.{table.quoted} AS shown"
    )
    ((rows, digest),) = connection.execute(
        f"SELECT count(*), md5(coalesce(string_agg({FINGERPRINT}::VARCHAR, '' "
        f"ORDER BY {FINGERPRINT}), '')) FROM fresh"
    ).fetchall()
    return Part(rows, digest)


def add_part(connection: duckdb.DuckDBPyConnection, table: Table, account: str) -> Changed:
    """Add all rows of `fresh`, of an account that has none in the table."""
    return Changed(_insert(connection, table, account, "TRUE"))


def replace_part(connection: duckdb.DuckDBPyConnection, table: Table, account: str) -> Changed:
    """Put all rows of `fresh` in the place of the account's rows."""
    removed = remove_part(connection, table.quoted, account)
    return replace(add_part(connection, table, account), removed=removed)


def remove_part(connection: duckdb.DuckDBPyConnection, table: str, account: str) -> int:
    """Delete the account's rows of the quoted table; says how many they were."""
    ((removed,),) = connection.execute(
        f"DELETE FROM {LAKE}.{table} WHERE {ACCOUNT} = {literal(account)}"
    ).fetchall()
    return int(removed)


def change_part(connection: duckdb.DuckDBPyConnection, table: Table, account: str) -> Changed:
    """Make the account's rows those of `fresh`, and leave alone what is the same already."""
    connection.execute(
        "CREATE OR REPLACE TEMP TABLE differing AS "
        f"SELECT {FINGERPRINT}, coalesce(held.rows, 0) AS held, coalesce(wanted.rows, 0) AS wanted "
        f"FROM (SELECT {FINGERPRINT}, count(*) AS rows FROM {LAKE}.{table.quoted} "
        f"WHERE {ACCOUNT} = {literal(account)} GROUP BY ALL) AS held "
        f"FULL JOIN (SELECT {FINGERPRINT}, count(*) AS rows FROM fresh GROUP BY ALL) AS wanted "
        f"USING ({FINGERPRINT}) WHERE held.rows IS DISTINCT FROM wanted.rows"
    )
    ((differing, going),) = connection.execute(
        "SELECT count(*), coalesce(sum(held), 0)::BIGINT FROM differing"
    ).fetchall()
    if not differing:
        return Changed()
    ((held,),) = connection.execute(
        f"SELECT count(*) FROM {LAKE}.{table.quoted} WHERE {ACCOUNT} = {literal(account)}"
    ).fetchall()
    if going >= REWRITE_SHARE * held:
        return replace_part(connection, table, account)
    if going:
        connection.execute(
            f"DELETE FROM {LAKE}.{table.quoted} WHERE {ACCOUNT} = {literal(account)} AND "
            f"{FINGERPRINT} IN (SELECT {FINGERPRINT} FROM differing WHERE held > 0)"
        )
    which = f"fresh.{FINGERPRINT} IN (SELECT {FINGERPRINT} FROM differing)"
    return Changed(_insert(connection, table, account, which), going)


def _insert(connection: duckdb.DuckDBPyConnection, table: Table, account: str, which: str) -> int:
    ((inserted,),) = connection.execute(
        f"INSERT INTO {LAKE}.{table.quoted} BY NAME SELECT {literal(account)} AS {ACCOUNT}, "
        f"shown.*, fresh.{FINGERPRINT} FROM published.{table.quoted} AS shown "
        f"JOIN fresh ON fresh.row = shown.rowid WHERE {which}"
    ).fetchall()
    return int(inserted)
