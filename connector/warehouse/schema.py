"""Tables made from the declarations, and the numbered migrations of our own.

`landing` has one table per resource: every field that answers show, typed and commented, and then
the connector's own columns, which begin with an underscore. There is no primary key: staged
deletes and inserts are faster, and uniqueness is asserted. `history` has a table of the same name
for each resource, with the same documented columns and one row for every observed version.
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
from connector.warehouse.quoting import literal, quoted

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

HISTORY_COLUMNS = (
    Column(
        "_record",
        "JSON",
        "The detail as received; where lists alone showed the version, the list item, without "
        "values that stand in for one that lists cannot show.",
    ),
    Column("_version", "BIGINT", "Counts the record's versions from 1, without a gap."),
    Column(
        "_valid_from",
        "TIMESTAMPTZ",
        "The best single moment of its beginning: `updated_at`, where that lies between "
        "`_began_after` and `_began_before`; `_began_after` where it is earlier, and else when "
        "an answer first showed it.",
    ),
    Column(
        "_valid_to",
        "TIMESTAMPTZ",
        "The best single moment of its end: the next version's `_valid_from`, or when a deletion "
        "was first known. Null for the one version that is open while the record lives.",
    ),
    Column(
        "_observed_from",
        "TIMESTAMPTZ",
        "The server's time of the first answer that showed it: a detail, or a list where lists "
        "alone showed it. Server clocks show whole seconds, so the answer was made within the "
        "second that begins here.",
    ),
    Column(
        "_observed_to",
        "TIMESTAMPTZ",
        "The server's time of the last answer that showed it; the second that begins here.",
    ),
    Column(
        "_began_after",
        "TIMESTAMPTZ",
        "It began after this moment, when the record was last seen otherwise (a first version: not "
        "before it, the record's creation), and before `_began_before`.",
    ),
    Column(
        "_began_before",
        "TIMESTAMPTZ",
        "The end of the second in which an answer first showed it.",
    ),
    Column(
        "_ended_after",
        "TIMESTAMPTZ",
        "It ended after this moment, when it was last seen, and before `_ended_before`; null while "
        "it is open.",
    ),
    Column(
        "_ended_before",
        "TIMESTAMPTZ",
        "The end of the second in which the next version was first seen, or the record known to "
        "be gone; null while open.",
    ),
    Column("_ended_by", "VARCHAR", "How it ended: `change` or `deletion`; null while it is open."),
    Column(
        "_changed",
        "VARCHAR[]",
        "Names of the fields that changed from the version before, documented or not, "
        "`_deleted_at` first where the record had been deleted; null for a first version.",
    ),
    Column(
        "_hydrated_at",
        "TIMESTAMPTZ",
        "When a detail first showed it whole; null while it was seen in lists alone, and then "
        "fields that lists do not show are null: nobody knows them.",
    ),
    Column("_run_id", "VARCHAR", "The run that read what the row shows (`sync.runs.run_id`)."),
)


def columns(resource: Declaration) -> tuple[Column, ...]:
    """The columns of a resource's landing table, in their order."""
    own = (_PARENT, *OWN_COLUMNS) if resource.parent else OWN_COLUMNS
    return (*_columns(resource.detail_fields), *own)


def history_columns(resource: Declaration) -> tuple[Column, ...]:
    """The columns of a resource's history table, in their order."""
    own = (_PARENT, *HISTORY_COLUMNS) if resource.parent else HISTORY_COLUMNS
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


def history_tables() -> dict[str, tuple[Column, ...]]:
    """Every history table with its columns, in the API's order. The parts of a content type are
    in its `_record`.
    """
    return {resource.name: history_columns(resource) for resource in CATALOG.values()}


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
        for schema in ("landing", "history", "sync"):
            connection.execute(f"CREATE SCHEMA IF NOT EXISTS {schema}")
        connection.execute(
            "CREATE TABLE IF NOT EXISTS sync.migrations "
            "(number BIGINT, name VARCHAR, applied_at TIMESTAMPTZ DEFAULT now())"
        )
        applied = {
            n for (n,) in connection.execute("SELECT number FROM sync.migrations").fetchall()
        }
        if applied - {number for number, _, _ in MIGRATIONS}:
            raise NotAWarehouse(
                f"{path} was made by a later version of the connector",
                action="Install that version again, or restore a backup that this one has made.",
            )
        for number, name, statements in MIGRATIONS:
            if number not in applied:
                connection.execute(statements)
                connection.execute(
                    f"INSERT INTO sync.migrations (number, name) VALUES ({number}, {literal(name)})"
                )
        for table, wanted in landing_tables().items():
            about = CATALOG[table].about if table in CATALOG else "The fields of each content type."
            _make(connection, "landing", table, wanted, about)
        for table, wanted in history_tables().items():
            about = f"Every observed version of the {table.replace('_', ' ')}, one row each."
            _make(connection, "history", table, wanted, about)
            _widen_intervals(connection, table)
            _begin_history(connection, table)
    # A schema change left in the log has made files unreadable; a checkpoint leaves none there.
    connection.execute("CHECKPOINT")


def is_migrated(connection: duckdb.DuckDBPyConnection) -> bool:
    """Whether all migrations are applied, told at once; `migrate` looks at every column as well."""
    return last_migration(connection) == MIGRATIONS[-1][0]


def last_migration(connection: duckdb.DuckDBPyConnection) -> int:
    """The number of the file's last migration; 0 where none was ever applied."""
    try:
        ((last,),) = connection.execute("SELECT max(number) FROM sync.migrations").fetchall()
    except duckdb.CatalogException:
        return 0
    return int(last or 0)


def _is_current(connection: duckdb.DuckDBPyConnection) -> bool:
    held = connection.execute(
        "SELECT schema_name, table_name, column_name FROM duckdb_columns() "
        "WHERE schema_name IN ('landing', 'history')"
    ).fetchall()
    schemas = {"landing": landing_tables(), "history": history_tables()}
    wanted = [
        (s, t, c.name) for s, tables in schemas.items() for t, cs in tables.items() for c in cs
    ]
    if not set(wanted) <= set(held):
        return False
    done = connection.execute("SELECT number FROM sync.migrations").fetchall()
    return {n for (n,) in done} == {number for number, _, _ in MIGRATIONS}


def _make(
    connection: duckdb.DuckDBPyConnection,
    schema: str,
    table: str,
    wanted: tuple[Column, ...],
    about: str,
) -> None:
    """Make the table, or add the columns that a newer declaration brings, with all comments."""
    name = f"{schema}.{quoted(table)}"
    defined = ", ".join(f"{quoted(c.name)} {c.type}" for c in wanted)
    connection.execute(f"CREATE TABLE IF NOT EXISTS {name} ({defined})")
    there = dict(
        connection.execute(
            "SELECT column_name, comment FROM duckdb_columns() "
            f"WHERE schema_name = {literal(schema)} AND table_name = {literal(table)}"
        ).fetchall()
    )
    statements = [f"COMMENT ON TABLE {name} IS {literal(about)}"]
    for column in wanted:
        if column.name not in there:
            statements.append(f"ALTER TABLE {name} ADD COLUMN {quoted(column.name)} {column.type}")
        if there.get(column.name) != column.comment:
            comment = literal(column.comment)
            statements.append(f"COMMENT ON COLUMN {name}.{quoted(column.name)} IS {comment}")
    connection.execute(";".join(statements))


def _widen_intervals(connection: duckdb.DuckDBPyConnection, table: str) -> None:
    """Give the versions of a file that had no `_began_before` their intervals, as they are now.

    They were observed since a list had shown a part of them, ended as late as a list had shown
    the record, and at a second, not within it.
    """
    name = f"history.{quoted(table)}"
    # Rows are written once more, since an update takes far more memory.
    connection.execute(
        f"INSERT INTO {name} SELECT * REPLACE ("
        "coalesce(_hydrated_at, _observed_from) AS _observed_from, "
        "coalesce(_hydrated_at, _observed_from) + INTERVAL 1 SECOND AS _began_before, "
        "CASE WHEN _valid_to IS NOT NULL THEN _observed_to END AS _ended_after, "
        "_ended_before + INTERVAL 1 SECOND AS _ended_before) "
        f"FROM {name} WHERE _began_before IS NULL; "
        f"DELETE FROM {name} WHERE _began_before IS NULL"
    )


def _begin_history(connection: duckdb.DuckDBPyConnection, table: str) -> None:
    """Make landed rows that have no history their records' first versions.

    When such a row was first seen is forgotten: its last detail is the earliest moment for which
    there is evidence, or the last list where there was no detail.
    """
    shared = ", ".join(
        f"held.{quoted(c.name)}"
        for c in columns(CATALOG[table])
        if c.name not in ("_hydrated_at", "_seen_at", "_deleted_at")
    )
    seen = "coalesce(held._hydrated_at, held._seen_at)"
    gone = "greatest(held._deleted_at, _observed_to)"
    dated = "TRUE" if CATALOG[table].lists_cursor else "held._hydrated_at IS NOT NULL"
    connection.execute(
        f"INSERT INTO history.{quoted(table)} BY NAME SELECT {shared}, held._hydrated_at, "
        f"1 AS _version, {seen} AS _observed_from, {seen} AS _observed_to, "
        "_observed_from + INTERVAL 1 SECOND AS _began_before, "
        # DuckDB's least and greatest pass over nulls.
        f"CASE WHEN held.created_at IS NOT NULL THEN least(held.created_at, {seen}) END "
        "AS _began_after, "
        f"greatest(_began_after, least(CASE WHEN {dated} THEN held.updated_at END, {seen})) "
        "AS _valid_from, "
        f"CASE WHEN held._deleted_at IS NOT NULL THEN {gone} END AS _valid_to, "
        "CASE WHEN held._deleted_at IS NOT NULL THEN _observed_to END AS _ended_after, "
        "_valid_to + INTERVAL 1 SECOND AS _ended_before, "
        "CASE WHEN held._deleted_at IS NOT NULL THEN 'deletion' END AS _ended_by "
        f"FROM landing.{quoted(table)} AS held "
        f"WHERE held.id NOT IN (SELECT id FROM history.{quoted(table)})"
    )
