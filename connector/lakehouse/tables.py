"""Tables of the lakehouse: one for each shared table of published files.

A table of the lakehouse has `account` first, then the file's columns, then `_fingerprint`; it is
partitioned by account. What an account's file lacks of a table's columns is null in its rows.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from hashlib import md5
from typing import NamedTuple

import duckdb

from connector.errors import LakehouseDiffers
from connector.lakehouse.connect import LAKE
from connector.warehouse.duckdb_file import literal, quoted
from connector.warehouse.schema import Column, TableSchema

SCHEMAS = ("landing", "history", "marts", "seeds")
"""What is shared of a published file. `staging` is a means to an end, and `sync` and `push` are the
affairs of one account.
"""

CONTENT = re.compile(r"marts\.content_")
"""Tables made of an account's own content types: those of two accounts mean different things."""

ACCOUNT = "account"
FINGERPRINT = "_fingerprint"

_ACCOUNT_COMMENT = "The account that the row is of."
_FINGERPRINT_COMMENT = "The MD5 of the row as JSON, by which publications find what has changed."

_WIDER: Mapping[str, str] = {
    "HUGEINT": "DECIMAL(38,0)",
    "UHUGEINT": "DECIMAL(38,0)",
    "UBIGINT": "DECIMAL(38,0)",
}
_INTEGERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT")
_FLOATS = ("FLOAT", "DOUBLE")


def published_tables(connection: duckdb.DuckDBPyConnection) -> tuple[TableSchema, ...]:
    """The tables of the attached file `published` that are shared. Views are not."""
    comments = connection.execute(
        "SELECT schema_name || '.' || table_name, coalesce(comment, '') FROM duckdb_tables() "
        "WHERE database_name = 'published' AND NOT internal"
    ).fetchall()
    about = dict(comments)
    return tuple(
        replace(each, about=about[str(each)])
        for each in _tables(connection, "published")
        if str(each) in about and each.schema in SCHEMAS and not CONTENT.match(str(each))
    )


def lake_tables(connection: duckdb.DuckDBPyConnection) -> dict[str, TableSchema]:
    """The tables of the lakehouse by name, with all of their columns."""
    return {str(each): each for each in _tables(connection, LAKE)}


def bring_up(
    connection: duckdb.DuckDBPyConnection, table: TableSchema, held: TableSchema | None
) -> None:
    """Make the table, or add to `held`, how it is there, the columns that it lacks.

    Raises `LakehouseDiffers` for a column whose type is another.
    """
    target = f"{LAKE}.{table.quoted}"
    for each in table.columns:
        if each.name.lower() in (ACCOUNT, FINGERPRINT):
            raise LakehouseDiffers(
                f"{table} has a column of its own that is called {each.name}",
                action=f"Give the column another name than {ACCOUNT} and {FINGERPRINT}.",
            )
    if held is None:
        _make(connection, table, target)
        return
    there = {each.name.lower(): each for each in held.columns}
    for column in table.columns:
        known = there.get(column.name.lower())
        if known is None:
            connection.execute(
                f"ALTER TABLE {target} ADD COLUMN {quoted(column.name)} {column.type}"
            )
            _comment(connection, target, (column,))
        elif known.type != column.type and not _holds(known.type, column.type):
            if not _holds(column.type, known.type):
                raise LakehouseDiffers(
                    f"{table}.{column.name} is {known.type} in the lakehouse, and {column.type} in"
                    " the published file"
                )
            connection.execute(
                f"ALTER TABLE {target} ALTER COLUMN {quoted(column.name)} "
                f"SET DATA TYPE {column.type}"
            )


def _make(connection: duckdb.DuckDBPyConnection, table: TableSchema, target: str) -> None:
    columns = (
        Column(ACCOUNT, "VARCHAR", _ACCOUNT_COMMENT),
        *table.columns,
        Column(FINGERPRINT, "UUID", _FINGERPRINT_COMMENT),
    )
    defined = ", ".join(f"{quoted(each.name)} {each.type}" for each in columns)
    connection.execute(f"CREATE SCHEMA IF NOT EXISTS {LAKE}.{quoted(table.schema)}")
    connection.execute(f"CREATE TABLE {target} ({defined})")
    connection.execute(f"ALTER TABLE {target} SET PARTITIONED BY ({ACCOUNT})")
    if table.about:
        connection.execute(f"COMMENT ON TABLE {target} IS {literal(table.about)}")
    _comment(connection, target, columns)


def _comment(connection: duckdb.DuckDBPyConnection, target: str, columns: Iterable[Column]) -> None:
    for each in columns:
        if each.comment:
            connection.execute(
                f"COMMENT ON COLUMN {target}.{quoted(each.name)} IS {literal(each.comment)}"
            )


def _holds(wide: str, narrow: str) -> bool:
    """Whether every value of the one type is one of the other as well."""
    return any(
        wide in types and narrow in types and types.index(wide) > types.index(narrow)
        for types in (_INTEGERS, _FLOATS)
    )


def _tables(connection: duckdb.DuckDBPyConnection, database: str) -> Iterator[TableSchema]:
    columns: dict[tuple[str, str], list[Column]] = {}
    for schema, table, name, type, comment in connection.execute(
        "SELECT schema_name, table_name, column_name, data_type, comment FROM duckdb_columns() "
        f"WHERE database_name = {literal(database)} AND NOT internal "
        "ORDER BY schema_name, table_name, column_index"
    ).fetchall():
        columns.setdefault((schema, table), []).append(Column(name, _type(type), comment or ""))
    for (schema, table), found in columns.items():
        yield TableSchema(schema, table, tuple(found))


def _type(type: str) -> str:
    """The type that holds such values in Parquet without a change."""
    if type.startswith("ENUM("):
        return "VARCHAR"
    return _WIDER.get(type, type)


# -- Difference ------------------------------------------------------------------------------------
# What of an account's table differs between the published file and the lakehouse.
#
# Rows are known by fingerprints: the lakehouse keeps one with each row, so that finding what has
# changed reads one narrow column of it, and none where the whole table is as it was.


REWRITE_SHARE = 0.5
"""From which share of changed rows on the account's part of a table is written anew: its old files
then go as a whole.
"""


class Part(NamedTuple):
    """An account's part of a table: how many rows, and a fingerprint of them all."""

    rows: int = 0
    digest: str = md5(b"", usedforsecurity=False).hexdigest()


class Changed(NamedTuple):
    """How many rows of a table went in, and how many out."""

    inserted: int = 0
    removed: int = 0


def take_fingerprints(connection: duckdb.DuckDBPyConnection, table: TableSchema) -> Part:
    """Note the fingerprint of each row in `fresh`; returns that of them all."""
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


def update_part(
    connection: duckdb.DuckDBPyConnection, table: TableSchema, account: str, *, anew: bool
) -> Changed:
    """Make the account's rows those of `fresh`; `anew` writes all of them."""
    if not anew:
        held, going, differing = _compare(connection, table, account)
        if not differing:
            return Changed()
        if going < REWRITE_SHARE * held:
            if going:
                connection.execute(
                    f"DELETE FROM {LAKE}.{table.quoted} WHERE {ACCOUNT} = {literal(account)} AND "
                    f"{FINGERPRINT} IN (SELECT {FINGERPRINT} FROM differing WHERE held > 0)"
                )
            which = f"WHERE {FINGERPRINT} IN (SELECT {FINGERPRINT} FROM differing)"
            return Changed(_insert(connection, table, account, which), going)
    removed = remove_part(connection, table.quoted, account)
    return Changed(_insert(connection, table, account), removed)


def remove_part(connection: duckdb.DuckDBPyConnection, table: str, account: str) -> int:
    """Delete the account's rows of the quoted table; returns how many they were."""
    ((removed,),) = connection.execute(
        f"DELETE FROM {LAKE}.{table} WHERE {ACCOUNT} = {literal(account)}"
    ).fetchall()
    return int(removed)


def _compare(
    connection: duckdb.DuckDBPyConnection, table: TableSchema, account: str
) -> tuple[int, int, int]:
    """Note in `differing` the fingerprints whose rows differ from `fresh`.

    Returns the account's rows, those of them that go, and how many fingerprints differ.
    """
    mine = f"{LAKE}.{table.quoted} WHERE {ACCOUNT} = {literal(account)}"
    connection.execute(
        "CREATE OR REPLACE TEMP TABLE differing AS "
        f"SELECT {FINGERPRINT}, coalesce(held.rows, 0) AS held "
        f"FROM (SELECT {FINGERPRINT}, count(*) AS rows FROM {mine} GROUP BY ALL) AS held "
        f"FULL JOIN (SELECT {FINGERPRINT}, count(*) AS rows FROM fresh GROUP BY ALL) AS wanted "
        f"USING ({FINGERPRINT}) WHERE held.rows IS DISTINCT FROM wanted.rows"
    )
    ((going, differing),) = connection.execute(
        "SELECT coalesce(sum(held), 0)::BIGINT, count(*) FROM differing"
    ).fetchall()
    ((held,),) = connection.execute(f"SELECT count(*) FROM {mine}").fetchall()
    return held, going, differing


def _insert(
    connection: duckdb.DuckDBPyConnection, table: TableSchema, account: str, which: str = ""
) -> int:
    ((inserted,),) = connection.execute(
        f"INSERT INTO {LAKE}.{table.quoted} BY NAME SELECT {literal(account)} AS {ACCOUNT}, "
        f"shown.*, fresh.{FINGERPRINT} FROM published.{table.quoted} AS shown "
        f"JOIN fresh ON fresh.row = shown.rowid {which}"
    ).fetchall()
    return int(inserted)
