"""Tables made from the declarations, and the numbered migrations of our own.

`landing` has one table per resource: every field that answers show, typed and commented, and then
the connector's own columns, which begin with an underscore. There is no primary key: staged
deletes and inserts are faster, and uniqueness is asserted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import duckdb

from connector.catalog import CATALOG, ContentTypeField
from connector.errors import NotAWarehouse
from connector.field import Field
from connector.resource import Declaration
from connector.value import Kind
from connector.warehouse.file import transaction
from connector.warehouse.migrations import MIGRATIONS

TYPES = {
    Kind.STRING: "VARCHAR",
    Kind.UUID: "VARCHAR",
    Kind.NUMBER: "DOUBLE",
    Kind.INTEGER: "BIGINT",
    Kind.BOOL: "BOOLEAN",
    Kind.DATE: "DATE",
    Kind.DATETIME: "TIMESTAMPTZ",
    Kind.VALUES: "JSON",
}
"""The column type of each kind; an array of parts has a table of its own."""

PARTS_TABLE = "content_type_fields"
"""Where the parts of a content type land."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a landing table: `field` is None for the connector's own."""

    name: str
    type: str
    comment: str
    field: Field | None = None


_PARENT = Column("_content_type_id", "VARCHAR", "The content type (`content_types.id`).")

OWN_COLUMNS = (
    Column("_record", "JSON", "The answer as received, with whatever it held beyond the columns."),
    Column(
        "_hydrated_at",
        "TIMESTAMPTZ",
        "The server's time of the detail that the row shows; null while it was only listed.",
    ),
    Column("_seen_at", "TIMESTAMPTZ", "The server's time of the last answer that showed it."),
    Column("_deleted_at", "TIMESTAMPTZ", "When the API first said that it is gone; null if live."),
    Column("_run_id", "VARCHAR", "The run that landed what the row shows (`sync.runs.run_id`)."),
)


def quoted(name: str) -> str:
    """An SQL identifier, quoted."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """An SQL string, quoted."""
    return "'" + text.replace("'", "''") + "'"


def columns(resource: Declaration) -> tuple[Column, ...]:
    """The columns of a resource's landing table, in their order."""
    own = (_PARENT, *OWN_COLUMNS) if resource.parent else OWN_COLUMNS
    return (*_columns(resource.detail_fields), *own)


def part_columns() -> tuple[Column, ...]:
    """The columns of the table of content type fields."""
    declared = tuple(ContentTypeField.fields_declared.values())
    return (*_columns(declared), _PARENT, *OWN_COLUMNS)


def _columns(fields: tuple[Field, ...]) -> Iterator[Column]:
    for each in fields:
        if each.kind is not Kind.PARTS:
            yield Column(each.name, TYPES[each.kind], each.about, each)


def landing_tables() -> dict[str, tuple[Column, ...]]:
    """Every landing table with its columns, in the API's order."""
    tables: dict[str, tuple[Column, ...]] = {}
    for resource in CATALOG.values():
        tables[resource.name] = columns(resource)
        if any(each.kind is Kind.PARTS for each in resource.detail_fields):
            tables[PARTS_TABLE] = part_columns()
    return tables


def migrate(connection: duckdb.DuckDBPyConnection, path: str) -> None:
    """Bring the file's tables up to this version; does nothing where they are.

    Raises `NotAWarehouse` where the file holds tables of somebody else, or of a later version.
    """
    if _is_current(connection):
        return
    names = {
        f"{schema}.{table}"
        for schema, table in connection.execute(
            "SELECT schema_name, table_name FROM duckdb_tables()"
        ).fetchall()
    }
    if names and "sync.migrations" not in names:
        raise NotAWarehouse(f"{path} is a DuckDB database that the connector did not make")
    with transaction(connection):
        for schema in ("landing", "sync"):
            connection.execute(f"CREATE SCHEMA IF NOT EXISTS {schema}")
        connection.execute(
            "CREATE TABLE IF NOT EXISTS sync.migrations "
            "(number BIGINT, name VARCHAR, applied_at TIMESTAMPTZ DEFAULT now())"
        )
        applied = {
            n for (n,) in connection.execute("SELECT number FROM sync.migrations").fetchall()
        }
        if applied - {number for number, _, _ in MIGRATIONS}:
            raise NotAWarehouse(f"{path} was made by a later version of the connector")
        for number, name, statements in MIGRATIONS:
            if number not in applied:
                connection.execute(statements)
                connection.execute(
                    "INSERT INTO sync.migrations (number, name) VALUES (?, ?)", [number, name]
                )
        for table, wanted in landing_tables().items():
            _make_landing(connection, table, wanted)
    # A schema change left in the log has made files unreadable; a checkpoint leaves none there.
    connection.execute("CHECKPOINT")


def _is_current(connection: duckdb.DuckDBPyConnection) -> bool:
    held = connection.execute(
        "SELECT table_name, column_name FROM duckdb_columns() WHERE schema_name = 'landing'"
    ).fetchall()
    wanted = [(t, c.name) for t, each in landing_tables().items() for c in each]
    if not set(wanted) <= set(held):
        return False
    done = connection.execute("SELECT number FROM sync.migrations").fetchall()
    return {n for (n,) in done} == {number for number, _, _ in MIGRATIONS}


def _make_landing(
    connection: duckdb.DuckDBPyConnection, table: str, wanted: tuple[Column, ...]
) -> None:
    """Make the table, or add the columns that a newer declaration brings, with all comments."""
    name = f"landing.{quoted(table)}"
    defined = ", ".join(f"{quoted(c.name)} {c.type}" for c in wanted)
    connection.execute(f"CREATE TABLE IF NOT EXISTS {name} ({defined})")
    for column in wanted:
        connection.execute(
            f"ALTER TABLE {name} ADD COLUMN IF NOT EXISTS {quoted(column.name)} {column.type}"
        )
        connection.execute(
            f"COMMENT ON COLUMN {name}.{quoted(column.name)} IS {literal(column.comment)}"
        )
    about = CATALOG[table].about if table in CATALOG else "The fields of each content type."
    connection.execute(f"COMMENT ON TABLE {name} IS {literal(about)}")
