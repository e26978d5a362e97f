"""Tables of a work file, created and completed from their declarations.

`landing` has one table per resource: every field in responses, typed and commented, followed by the
connector's own columns, which begin with an underscore. There is no primary key: staged deletes and
inserts are faster, and uniqueness is asserted. `history` has a table for each resource, with the
same name, the same documented columns and one row for every observed version.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import duckdb
import pyarrow as pa

from connector.catalog import CATALOG
from connector.catalog.content import ContentTypeField
from connector.catalog.field import Field, Kind
from connector.catalog.resource import Declaration, Record
from connector.errors import WarehouseError
from connector.warehouse.duckdb_file import literal, quoted, staged_table, transaction
from connector.warehouse.internal_tables import OWN_TABLES

# -- Rows -----------------------------------------------------------------------------------------
# Conversion of responses to rows: one Arrow table per batch, typed by the declaration.
#
# No received data is lost: a value that does not fit its column stays in `_record` and is reported
# once.


ARROW_TYPES = {
    "VARCHAR": pa.string(),
    "JSON": pa.string(),
    "DOUBLE": pa.float64(),
    "BIGINT": pa.int64(),
    "BOOLEAN": pa.bool_(),
    "DATE": pa.date32(),
    "TIMESTAMPTZ": pa.timestamp("us", tz="UTC"),
}
HALF_PAIR_MARK = "\ufffd"
"""Replacement of half a surrogate pair."""

_VALUE_CHARACTERS_MAX = 60
_HALF_PAIR = re.compile("[\ud800-\udfff]")
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)


@dataclass(frozen=True, slots=True)
class Column:
    """Column of a table. `field` is None for the connector's own columns."""

    name: str
    type: str
    comment: str
    field: Field | None = None


@dataclass(frozen=True, slots=True)
class Anomaly:
    """Undeclared field or value in a response, described without personal data."""

    kind: str
    detail: str


@dataclass(slots=True)
class RowBatch:
    """Rows to insert: by column name, a list with the value of each row."""

    columns: tuple[Column, ...]
    values: dict[str, list[Any]] = field(init=False)
    anomalies: dict[Anomaly, None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.values = {column.name: [] for column in self.columns}

    def add(self, record: Record, own_values: Mapping[str, Any]) -> None:
        """Add a record; `own_values` are the values of the connector's own columns.

        They may contain `_record`, the record's JSON, if it is known already.
        """
        for column in self.columns:
            value: Any
            if column.name == "_record":
                value = own_values.get("_record") or as_json(record.raw)
            elif column.field is None:
                value = own_values.get(column.name)
            elif (value := record.raw.get(column.name)) is not None:
                value, problem = column_value(column.field, value)
                if problem is not None:
                    self._add_anomaly(column, value, problem)
            self.values[column.name].append(value)
        for name in record.undeclared_fields:
            self.anomalies[
                Anomaly("unknown_field", replace_surrogates(name)[:_VALUE_CHARACTERS_MAX])
            ] = None

    def __len__(self) -> int:
        return len(next(iter(self.values.values())))

    def table(self) -> pa.Table:
        """Return the batch as an Arrow table."""
        types = {column.name: ARROW_TYPES[column.type] for column in self.columns}
        return pa.table({n: pa.array(v, types[n]) for n, v in self.values.items()})

    def _add_anomaly(self, column: Column, value: Any, problem: str) -> None:
        """Add an anomaly for an undeclared value, or (None) one that cannot be stored."""
        assert column.field is not None
        # A choice is a value of the platform and may be shown; other values may be personal.
        shown = f" {value[:_VALUE_CHARACTERS_MAX]!r}" if column.field.values and value else ""
        kind = "unknown_value" if value is not None else "unreadable_value"
        self.anomalies[Anomaly(kind, f"{column.name}{shown} {problem}")] = None


def column_value(field: Field, value: Any) -> tuple[Any, str | None]:
    """Return the column's value for a received value, and a description of the problem or None."""
    read, problem = field.parse(value)
    if field.kind is Kind.OBJECT and read is not None:
        return as_json(read), problem
    return replace_surrogates(read) if isinstance(read, str) else read, problem


def as_json(value: Any) -> str:
    """Return the value as JSON text in the received order of keys, without half surrogates."""
    return replace_surrogates(_ENCODER.encode(value))


def replace_surrogates(text: str) -> str:
    """Return the text with a mark for each half surrogate pair, which columns cannot store."""
    return _HALF_PAIR.sub(HALF_PAIR_MARK, text)


def ids_table(ids: Iterable[str], **columns: pa.Array) -> pa.Table:
    """Return an Arrow table with the ids as the column `id`, and further columns."""
    return pa.table({"id": pa.array(list(ids), pa.string()), **columns})


def rowids_table(rowids: Iterable[int], **columns: pa.Array) -> pa.Table:
    """Return an Arrow table with DuckDB's row ids as the column `place`, and further columns."""
    return pa.table({"place": pa.array(list(rowids), pa.int64()), **columns})


def timestamp_array(values: Iterable[datetime | None]) -> pa.Array:
    """Return an Arrow array of UTC timestamps in microseconds."""
    return pa.array(list(values), pa.timestamp("us", tz="UTC"))


# -- Differences -----------------------------------------------------------------------------------
# The rules for what counts as a change between two responses for one record.
#
# Two details differ in a field if its JSON differs, ignoring the order of keys. A list item and a
# detail are compared in the fields that both contain, by their parsed values, because lists may
# format a value differently. Lists document fewer values than details for some fields
# (`Field.item_values`). If the detail has a value that a list cannot show, there is no difference.


_SCALARS = (str, int, float, bool, type(None))


def differing_names(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of fields whose JSON differs, those of `after` first."""
    names = (*after, *(name for name in before if name not in after))
    return tuple(name for name in names if not _is_same(before, after, name))


def differing_listed_names(
    declaration: Declaration, item: Mapping[str, Any], record: Mapping[str, Any]
) -> tuple[str, ...]:
    """Return the names of listed fields whose value in a list item differs from the record.

    Values of the record that a list cannot show are ignored.
    """
    return tuple(
        field.name
        for field in declaration.item_fields
        if field.name in item
        and field.name in record
        and not _is_same(item, record, field.name)
        and can_appear_in_list(field, record[field.name])
        and parsed_value(field, item[field.name]) != parsed_value(field, record[field.name])
    )


def can_appear_in_list(field: Field, value: Any) -> bool:
    """Return True if a list contains the field and can show this value."""
    return field.listed and (not field.item_values or value in field.item_values)


def parsed_value(field: Field, value: Any) -> Any:
    """Return the value as its column stores it; None if it cannot be read."""
    read = field.parse(value)[0]
    # The loaded value comes from a column, which contains no half surrogates.
    return replace_surrogates(read) if isinstance(read, str) else read


def _is_same(before: Mapping[str, Any], after: Mapping[str, Any], name: str) -> bool:
    """Return True if both records have the field, with the same JSON in any order of keys."""
    if name not in before or name not in after:
        return False
    one, other = before[name], after[name]
    if type(one) is not type(other):
        return False
    if isinstance(one, _SCALARS):
        return bool(one == other)
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


# -- Schema ---------------------------------------------------------------------------------------


SCHEMA_VERSION = 1
"""Layout version of a work file. An older version of the connector refuses a newer layout.

A new table or column needs no new number: `complete_tables` adds it.
"""

TYPES = {
    Kind.STRING: "VARCHAR",
    Kind.UUID: "VARCHAR",
    Kind.NUMBER: "DOUBLE",
    Kind.INTEGER: "BIGINT",
    Kind.BOOL: "BOOLEAN",
    Kind.DATE: "DATE",
    Kind.DATETIME: "TIMESTAMPTZ",
    Kind.OBJECT: "JSON",
}
"""Column type of each kind; an array of parts has a separate table."""

PARTS_TABLE = "content_type_fields"
"""Table for the parts of a content type."""


def _parse_columns(texts: Mapping[str, str]) -> tuple[Column, ...]:
    """Return columns from texts such as `{"seen_at TIMESTAMPTZ": "Comment."}`."""
    named = (each.split(" ", maxsplit=1) for each in texts)
    pairs = zip(named, texts.values(), strict=True)
    return tuple(Column(name, type, comment) for (name, type), comment in pairs)


_PARENT = Column("_content_type_id", "VARCHAR", "The content type (`content_types.id`).")

OWN_COLUMNS = _parse_columns(
    {
        "_record JSON": "The record as received, with fields that have no column.",
        "_hydrated_at TIMESTAMPTZ": "Server time at which the record was read; null if it "
        "was only listed.",
        "_seen_at TIMESTAMPTZ": "Server time of the last answer with the record.",
        "_deleted_at TIMESTAMPTZ": (
            "Time when the API first reported the record as deleted; null if it is live."
        ),
        "_run_id VARCHAR": "Run that loaded the row (`sync.runs.run_id`).",
    }
)

HISTORY_COLUMNS = _parse_columns(
    {
        "_record JSON": "The record as received. If the version was only listed, the list item.",
        "_version BIGINT": "Number of the version, from 1.",
        "_valid_from TIMESTAMPTZ": "Best estimate of the version's start: `updated_at` if it "
        "is between `_began_after` and `_began_before`, else the "
        "nearest observed time.",
        "_valid_to TIMESTAMPTZ": "Best estimate of the version's end: `_valid_from` of the "
        "next version, or the time when the deletion was found. "
        "Null for the current version.",
        "_observed_from TIMESTAMPTZ": "Server time (whole seconds) of the first answer with "
        "this version.",
        "_observed_to TIMESTAMPTZ": "Server time (whole seconds) of the last answer with "
        "this version.",
        "_began_after TIMESTAMPTZ": "The version began after this time, when the record was "
        "last read with other values (first version: the "
        "record's creation).",
        "_began_before TIMESTAMPTZ": (
            "The version began before this time, the end of the second of the first answer with it."
        ),
        "_ended_after TIMESTAMPTZ": "The version ended after this time, when it was last "
        "read; null for the current version.",
        "_ended_before TIMESTAMPTZ": "The version ended before this time; null for the "
        "current version.",
        "_ended_by VARCHAR": (
            "End of the version: `change` or `deletion`; null for the current version."
        ),
        "_changed VARCHAR[]": "Names of the fields that changed from the previous version, "
        "`_deleted_at` first if the record had been deleted; null for "
        "the first version.",
        "_hydrated_at TIMESTAMPTZ": "Time when the version was first read in full. Null if "
        "it was only listed; fields that lists do not contain "
        "are then null.",
        "_run_id VARCHAR": "Run that read the row (`sync.runs.run_id`).",
    }
)


def landing_columns(resource: Declaration) -> tuple[Column, ...]:
    """Return the columns of a resource's landing table, in order."""
    own = (_PARENT, *OWN_COLUMNS) if resource.parent else OWN_COLUMNS
    return (*_field_columns(resource.detail_fields), *own)


def history_columns(resource: Declaration) -> tuple[Column, ...]:
    """Return the columns of a resource's history table, in order."""
    own = (_PARENT, *HISTORY_COLUMNS) if resource.parent else HISTORY_COLUMNS
    return (*_field_columns(resource.detail_fields), *own)


def content_type_field_columns() -> tuple[Column, ...]:
    """Return the columns of the table of content type fields."""
    declared = tuple(ContentTypeField.fields_declared.values())
    return (*_field_columns(declared), _PARENT, *OWN_COLUMNS)


def _field_columns(fields: tuple[Field, ...]) -> Iterator[Column]:
    """Yield a column for each field, except arrays of parts, which have a table of their own."""
    for each in fields:
        if each.kind is not Kind.ARRAY:
            yield Column(each.name, TYPES[each.kind], each.about, each)


@dataclass(frozen=True, slots=True)
class TableSchema:
    """Definition of a table: its columns in order, and its comment."""

    schema: str
    name: str
    columns: tuple[Column, ...]
    about: str = ""

    def __str__(self) -> str:
        return f"{self.schema}.{self.name}"

    @property
    def quoted(self) -> str:
        """Schema and name, quoted for SQL."""
        return f"{quoted(self.schema)}.{quoted(self.name)}"


def declared_tables() -> Iterator[TableSchema]:
    """Yield every table of a work file: the connector's own tables, landing and history tables."""
    for table, (about, texts) in OWN_TABLES.items():
        schema, _, name = table.partition(".")
        yield TableSchema(schema, name, _parse_columns(texts), about)
    for resource in CATALOG.values():
        yield TableSchema("landing", resource.name, landing_columns(resource), resource.about)
        if any(each.kind is Kind.ARRAY for each in resource.detail_fields):
            about = "The fields of each content type."
            yield TableSchema("landing", PARTS_TABLE, content_type_field_columns(), about)
        # The history of a content type has its parts in `_record`.
        about = f"Every observed version of the {resource.name.replace('_', ' ')}, one row each."
        yield TableSchema("history", resource.name, history_columns(resource), about)


def complete_tables(connection: duckdb.DuckDBPyConnection, path: str) -> None:
    """Create the tables and columns that the file lacks; write nothing if it is complete.

    `path` is for errors. Raises `WarehouseError` if the file belongs to another program or to a
    newer version.
    """
    existing: dict[tuple[str, str], dict[str, str | None]] = {}
    for schema, table, column, comment in connection.execute(
        "SELECT schema_name, table_name, column_name, comment FROM duckdb_columns() "
        "WHERE NOT internal AND database_name = current_database()"
    ).fetchall():
        existing.setdefault((schema, table), {})[column] = comment
    if existing and ("sync", "schema_version") not in existing:
        raise WarehouseError(
            f"{path} is a DuckDB database of another program", code="not_a_warehouse"
        )
    version = schema_version(connection) if existing else None
    if version is not None and version > SCHEMA_VERSION:
        raise WarehouseError(
            f"{path} was written by a newer version of the connector",
            action="Install that version, or restore a backup of this version.",
            code="not_a_warehouse",
        )
    declared = tuple(declared_tables())
    if version is not None and all(
        column.name in existing.get((table.schema, table.name), {})
        for table in declared
        for column in table.columns
    ):
        return
    with transaction(connection):
        for table in declared:
            _complete_table(connection, table, existing.get((table.schema, table.name)))
        if version is None:
            connection.execute(f"INSERT INTO sync.schema_version VALUES ({SCHEMA_VERSION})")
    # Schema changes left in the log have made files unreadable; a checkpoint removes them.
    connection.execute("CHECKPOINT")


def schema_version(connection: duckdb.DuckDBPyConnection) -> int | None:
    """Return the layout version of the file; None if no table was created yet."""
    try:
        rows = connection.execute("SELECT max(version) FROM sync.schema_version").fetchall()
    except duckdb.CatalogException:
        return None
    ((version,),) = rows
    return None if version is None else int(version)


def _complete_table(
    connection: duckdb.DuckDBPyConnection,
    table: TableSchema,
    existing: Mapping[str, str | None] | None,
) -> None:
    """Create the table, or add its missing columns, and write the comments.

    `existing` has the comment of each existing column; None if there is no table yet.
    """
    name = table.quoted
    missing = (
        [] if existing is None else [each for each in table.columns if each.name not in existing]
    )
    statements = [f"CREATE SCHEMA IF NOT EXISTS {table.schema}"]
    if existing is None:
        defined = ", ".join(f"{quoted(each.name)} {each.type}" for each in table.columns)
        statements.append(f"CREATE TABLE {name} ({defined})")
    statements.append(f"COMMENT ON TABLE {name} IS {literal(table.about)}")
    for each in table.columns:
        if each in missing:
            statements.append(f"ALTER TABLE {name} ADD COLUMN {quoted(each.name)} {each.type}")
        if existing is None or existing.get(each.name) != each.comment:
            comment = literal(each.comment)
            statements.append(f"COMMENT ON COLUMN {name}.{quoted(each.name)} IS {comment}")
    connection.execute(";".join(statements))
    for each in missing:
        if each.field is not None:
            _fill_column(connection, table, each)


def _fill_column(connection: duckdb.DuckDBPyConnection, table: TableSchema, column: Column) -> None:
    """Set a new column from the field in `_record`, in rows that were loaded before it existed."""
    assert column.field is not None
    name, value = quoted(column.name), f"(_record->{literal(column.name)})"
    rows = connection.execute(
        f"SELECT rowid, {value} FROM {table.quoted} WHERE {value} IS NOT NULL"
    ).fetchall()
    values = [column_value(column.field, json.loads(text))[0] for _, text in rows]
    stage = rowids_table(
        (place for place, _ in rows), value=pa.array(values, ARROW_TYPES[column.type])
    )
    with staged_table(connection, stage):
        connection.execute(
            f"UPDATE {table.quoted} AS held SET {name} = stage.value FROM stage "
            "WHERE held.rowid = stage.place"
        )
