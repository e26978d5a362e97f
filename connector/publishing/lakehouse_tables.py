"""Tables of the lakehouse: one for each shared table of published files.

A table of the lakehouse has `account` first, then the columns of the file. It is partitioned by
account. A column that the file of an account lacks is null in the account's rows.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

import duckdb

from connector.errors import LakehouseError
from connector.publishing.columns import read_table_columns
from connector.publishing.lakehouse_connection import LAKE
from connector.warehouse.duckdb_file import literal, quoted
from connector.warehouse.schema import Column, TableSchema

SCHEMAS = ("landing", "history", "marts", "seeds")
"""Schemas of a published file that are shared. `staging` is an intermediate step, and `sync` and
`push` belong to one account.
"""

CONTENT = re.compile(r"marts\.content_")
"""Tables made from an account's own content types, which mean different things in each account."""

ACCOUNT = "account"

_ACCOUNT_COMMENT = "Account of the row."

_WIDER: Mapping[str, str] = {
    "HUGEINT": "DECIMAL(38,0)",
    "UHUGEINT": "DECIMAL(38,0)",
    "UBIGINT": "DECIMAL(38,0)",
}
_INTEGERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT")
_FLOATS = ("FLOAT", "DOUBLE")


def published_tables(connection: duckdb.DuckDBPyConnection) -> tuple[TableSchema, ...]:
    """Return the tables of the attached file `published` that are copied to the lakehouse.

    Views, content types and internal schemas are not copied.
    """
    comments = connection.execute(
        "SELECT schema_name || '.' || table_name, coalesce(comment, '') FROM duckdb_tables() "
        "WHERE database_name = 'published' AND NOT internal"
    ).fetchall()
    about = dict(comments)
    return tuple(
        replace(each, about=about[str(each)])
        for each in _read_tables(connection, "published")
        if str(each) in about and each.schema in SCHEMAS and not CONTENT.match(str(each))
    )


def lakehouse_tables(connection: duckdb.DuckDBPyConnection) -> dict[str, TableSchema]:
    """Return the tables of the lakehouse by name, with all of their columns."""
    return {str(each): each for each in _read_tables(connection, LAKE)}


def ensure_table(
    connection: duckdb.DuckDBPyConnection, table: TableSchema, existing: TableSchema | None
) -> None:
    """Create or complete the table. Raises `LakehouseError` for an incompatible column."""
    target = f"{LAKE}.{table.quoted}"
    for each in table.columns:
        if each.name.lower() == ACCOUNT:
            raise LakehouseError(
                f"{table} already has a column named {each.name}",
                action="Rename the column: the lakehouse has a column of that name.",
                code="lakehouse_differs",
            )
    if existing is None:
        _create_table(connection, table, target)
        return
    existing_columns = {each.name.lower(): each for each in existing.columns}
    for column in table.columns:
        known = existing_columns.get(column.name.lower())
        if known is None:
            connection.execute(
                f"ALTER TABLE {target} ADD COLUMN {quoted(column.name)} {column.type}"
            )
            _write_column_comments(connection, target, (column,))
        elif known.type != column.type and not _is_wider(known.type, column.type):
            if not _is_wider(column.type, known.type):
                raise LakehouseError(
                    f"{table}.{column.name} is {known.type} in the lakehouse, and {column.type} in"
                    " the published file",
                    code="lakehouse_differs",
                )
            connection.execute(
                f"ALTER TABLE {target} ALTER COLUMN {quoted(column.name)} "
                f"SET DATA TYPE {column.type}"
            )


def _create_table(connection: duckdb.DuckDBPyConnection, table: TableSchema, target: str) -> None:
    """Create the table `target`, with a first column `account` that partitions it."""
    columns = (Column(ACCOUNT, "VARCHAR", _ACCOUNT_COMMENT), *table.columns)
    defined = ", ".join(f"{quoted(each.name)} {each.type}" for each in columns)
    connection.execute(f"CREATE SCHEMA IF NOT EXISTS {LAKE}.{quoted(table.schema)}")
    connection.execute(f"CREATE TABLE {target} ({defined})")
    connection.execute(f"ALTER TABLE {target} SET PARTITIONED BY ({ACCOUNT})")
    if table.about:
        connection.execute(f"COMMENT ON TABLE {target} IS {literal(table.about)}")
    _write_column_comments(connection, target, columns)


def _write_column_comments(
    connection: duckdb.DuckDBPyConnection, target: str, columns: Iterable[Column]
) -> None:
    """Write the comments that are not empty to the columns of the table `target`."""
    for each in columns:
        if each.comment:
            connection.execute(
                f"COMMENT ON COLUMN {target}.{quoted(each.name)} IS {literal(each.comment)}"
            )


def _is_wider(wide: str, narrow: str) -> bool:
    """Return True if the type `wide` has every value of the type `narrow`."""
    return any(
        wide in types and narrow in types and types.index(wide) > types.index(narrow)
        for types in (_INTEGERS, _FLOATS)
    )


def _read_tables(connection: duckdb.DuckDBPyConnection, database: str) -> Iterator[TableSchema]:
    """Yield the tables and views of an attached database, with types of the lakehouse."""
    for table, columns in read_table_columns(connection, database).items():
        schema, _, name = table.partition(".")
        found = (replace(each, type=_lakehouse_type(each.type)) for each in columns)
        yield TableSchema(schema, name, tuple(found))


def _lakehouse_type(type: str) -> str:
    """Return the column type that keeps values of DuckDB's type unchanged in Parquet."""
    if type.startswith("ENUM("):
        return "VARCHAR"
    return _WIDER.get(type, type)


def insert_rows(connection: duckdb.DuckDBPyConnection, table: TableSchema, account: str) -> int:
    """Insert the table's rows of the attached file for the account; return their number."""
    ((inserted,),) = connection.execute(
        f"INSERT INTO {LAKE}.{table.quoted} BY NAME "
        f"SELECT {literal(account)} AS {ACCOUNT}, * FROM published.{table.quoted}"
    ).fetchall()
    return int(inserted)


def delete_rows(connection: duckdb.DuckDBPyConnection, table: TableSchema, account: str) -> int:
    """Delete the account's rows from the table; return their number."""
    ((deleted,),) = connection.execute(
        f"DELETE FROM {LAKE}.{table.quoted} WHERE {ACCOUNT} = {literal(account)}"
    ).fetchall()
    return int(deleted)
