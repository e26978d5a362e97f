"""Tables of a work file, made from their declarations and brought up to them.

`landing` has one table per resource: every field that answers show, typed and commented, and then
the connector's own columns, which begin with an underscore. There is no primary key: staged
deletes and inserts are faster, and uniqueness is asserted. `history` has a table of the same name
for each resource, with the same documented columns and one row for every observed version.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import duckdb

from connector.catalog import CATALOG
from connector.catalog.content import ContentTypeField
from connector.catalog.field import Field
from connector.catalog.resource import Declaration
from connector.catalog.value import Kind
from connector.errors import NotAWarehouse
from connector.warehouse.duckdb_file import literal, quoted, transaction
from connector.warehouse.own_tables import OWN_TABLES

SCHEMA_VERSION = 11
"""The number of the last migration; greater where a later version of the connector changes tables.

Tables are brought up to their declarations, whatever version made the file, so that the number
says only which version a file needs.
"""

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


def _named(texts: Mapping[str, str]) -> tuple[Column, ...]:
    """Columns of the connector's own, each by its name and type, with its comment."""
    named = (each.split(" ", maxsplit=1) for each in texts)
    pairs = zip(named, texts.values(), strict=True)
    return tuple(Column(name, type, comment) for (name, type), comment in pairs)


_PARENT = Column("_content_type_id", "VARCHAR", "The content type (`content_types.id`).")

OWN_COLUMNS = _named(
    {
        "_record JSON": "The answer as received, with whatever it held beyond the columns.",
        "_hydrated_at TIMESTAMPTZ": "The server's time of the detail that the row shows; null "
        "while it was only listed.",
        "_seen_at TIMESTAMPTZ": "The server's time of the last answer that showed it.",
        "_deleted_at TIMESTAMPTZ": "When the API first said that it is gone; null if live.",
        "_run_id VARCHAR": "The run that landed what the row shows (`sync.runs.run_id`).",
    }
)

HISTORY_COLUMNS = _named(
    {
        "_record JSON": "The detail as received; where lists alone showed the version, the list "
        "item, without values that stand in for one that lists cannot show.",
        "_version BIGINT": "Counts the record's versions from 1, without a gap.",
        "_valid_from TIMESTAMPTZ": "The best single moment of its beginning: `updated_at`, where "
        "that lies between `_began_after` and `_began_before`; `_began_after` where it is "
        "earlier, and else when an answer first showed it.",
        "_valid_to TIMESTAMPTZ": "The best single moment of its end: the next version's "
        "`_valid_from`, or when a deletion was first known. Null for the one version that is open "
        "while the record lives.",
        "_observed_from TIMESTAMPTZ": "The server's time of the first answer that showed it: a "
        "detail, or a list where lists alone showed it. Server clocks show whole seconds, so the "
        "answer was made within the second that begins here.",
        "_observed_to TIMESTAMPTZ": "The server's time of the last answer that showed it; the "
        "second that begins here.",
        "_began_after TIMESTAMPTZ": "It began after this moment, when the record was last seen "
        "otherwise (a first version: not before it, the record's creation), and before "
        "`_began_before`.",
        "_began_before TIMESTAMPTZ": "The end of the second in which an answer first showed it.",
        "_ended_after TIMESTAMPTZ": "It ended after this moment, when it was last seen, and "
        "before `_ended_before`; null while it is open.",
        "_ended_before TIMESTAMPTZ": "The end of the second in which the next version was first "
        "seen, or the record known to be gone; null while open.",
        "_ended_by VARCHAR": "How it ended: `change` or `deletion`; null while it is open.",
        "_changed VARCHAR[]": "Names of the fields that changed from the version before, "
        "documented or not, `_deleted_at` first where the record had been deleted; null for a "
        "first version.",
        "_hydrated_at TIMESTAMPTZ": "When a detail first showed it whole; null while it was seen "
        "in lists alone, and then fields that lists do not show are null: nobody knows them.",
        "_run_id VARCHAR": "The run that read what the row shows (`sync.runs.run_id`).",
    }
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


@dataclass(frozen=True, slots=True)
class TableSchema:
    """A table as it is, or is to be: its columns in order, and what it is about."""

    schema: str
    name: str
    columns: tuple[Column, ...]
    about: str = ""

    def __str__(self) -> str:
        return f"{self.schema}.{self.name}"

    @property
    def quoted(self) -> str:
        """The schema and the name as SQL has them."""
        return f"{quoted(self.schema)}.{quoted(self.name)}"


def declared_tables() -> Iterator[TableSchema]:
    """Every table of a work file: the connector's own, the landing and the history."""
    for table, (about, texts) in OWN_TABLES.items():
        schema, _, name = table.partition(".")
        yield TableSchema(schema, name, _named(texts), about)
    for resource in CATALOG.values():
        yield TableSchema("landing", resource.name, columns(resource), resource.about)
        if any(each.kind is Kind.PARTS for each in resource.detail_fields):
            about = "The fields of each content type."
            yield TableSchema("landing", PARTS_TABLE, part_columns(), about)
        # The parts of a content type are in its `_record` there.
        about = f"Every observed version of the {resource.name.replace('_', ' ')}, one row each."
        yield TableSchema("history", resource.name, history_columns(resource), about)


def migrate(connection: duckdb.DuckDBPyConnection, path: str) -> None:
    """Bring the file's tables up to this version; does nothing where they are.

    Raises `NotAWarehouse` where the file holds tables of somebody else, or of a later version.
    """
    held: dict[tuple[str, str], dict[str, str | None]] = {}
    for schema, table, column, comment in connection.execute(
        "SELECT schema_name, table_name, column_name, comment FROM duckdb_columns() "
        "WHERE NOT internal AND database_name = current_database()"
    ).fetchall():
        held.setdefault((schema, table), {})[column] = comment
    if held and ("sync", "migrations") not in held:
        raise NotAWarehouse(f"{path} is a DuckDB database that the connector did not make")
    last = last_migration(connection)
    if last > SCHEMA_VERSION:
        raise NotAWarehouse(
            f"{path} was made by a later version of the connector",
            action="Install that version again, or restore a backup that this one has made.",
        )
    wanted = tuple(declared_tables())
    if last == SCHEMA_VERSION and all(
        column.name in held.get((table.schema, table.name), {})
        for table in wanted
        for column in table.columns
    ):
        return
    with transaction(connection):
        for table in wanted:
            _bring_up(connection, table, held.get((table.schema, table.name)))
        for resource in CATALOG:
            _widen_intervals(connection, resource)
            _begin_history(connection, resource)
        if last < SCHEMA_VERSION:
            connection.execute(
                "INSERT INTO sync.migrations (number, name) "
                f"VALUES ({SCHEMA_VERSION}, 'tables as they are declared')"
            )
    # A schema change left in the log has made files unreadable; a checkpoint leaves none there.
    connection.execute("CHECKPOINT")


def is_migrated(connection: duckdb.DuckDBPyConnection) -> bool:
    """Whether the last migration is applied; `migrate` looks at columns as well."""
    return last_migration(connection) == SCHEMA_VERSION


def last_migration(connection: duckdb.DuckDBPyConnection) -> int:
    """The number of the file's last migration; 0 where none was ever applied."""
    try:
        ((last,),) = connection.execute("SELECT max(number) FROM sync.migrations").fetchall()
    except duckdb.CatalogException:
        return 0
    return int(last or 0)


def _bring_up(
    connection: duckdb.DuckDBPyConnection, table: TableSchema, held: Mapping[str, str | None] | None
) -> None:
    """Make the table, or add the columns that it lacks, with all comments."""
    name = table.quoted
    statements = [f"CREATE SCHEMA IF NOT EXISTS {table.schema}"]
    if held is None:
        defined = ", ".join(f"{quoted(each.name)} {each.type}" for each in table.columns)
        statements.append(f"CREATE TABLE {name} ({defined})")
    statements.append(f"COMMENT ON TABLE {name} IS {literal(table.about)}")
    for each in table.columns:
        if held is not None and each.name not in held:
            statements.append(f"ALTER TABLE {name} ADD COLUMN {quoted(each.name)} {each.type}")
        if held is None or held.get(each.name) != each.comment:
            comment = literal(each.comment)
            statements.append(f"COMMENT ON COLUMN {name}.{quoted(each.name)} IS {comment}")
    connection.execute(";".join(statements))


def _widen_intervals(connection: duckdb.DuckDBPyConnection, table: str) -> None:
    """Give versions that have no `_began_before` their intervals.

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
