"""Tables of a work file, created and completed from the catalog, and rows for them.

`landing` has one table per resource: every field in responses, typed and commented, followed by the
connector's own columns, which begin with an underscore. `history` has a table with the same name
and the same documented columns, and one row for every version. There is no primary key: staged
deletes and inserts are faster, and the tests assert uniqueness.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from functools import cache
from types import NoneType
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

from connector.catalog import CATALOG
from connector.catalog.content import ContentTypeField
from connector.catalog.field import Field, Kind
from connector.catalog.resource import Declaration, Record, Resource
from connector.errors import WarehouseError
from connector.state.runs import Event
from connector.warehouse.file import Connection, literal, quoted, run_staged, transaction
from connector.warehouse.stream import Bookmark

SCHEMA_VERSION = 2
"""Layout of a work file. An older version of the connector refuses a newer layout.

A new table or column needs no new number: `complete_tables` adds it.
"""

PARTS_TABLE = "content_type_fields"
"""Table for the parts of a content type."""

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

# -- Tables ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Column:
    """Column of a table. `field` is None for the connector's own columns."""

    name: str
    type: str
    comment: str
    field: Field | None = None


@dataclass(frozen=True, slots=True)
class Table:
    """Table of a work file: its name with the schema, its columns in order, and its comment."""

    name: str
    columns: tuple[Column, ...]
    about: str


def columns(texts: Mapping[str, str]) -> tuple[Column, ...]:
    """Return columns from texts such as `{"seen_at TIMESTAMPTZ": "Comment."}`."""
    named = (each.split(" ", maxsplit=1) for each in texts)
    pairs = zip(named, texts.values(), strict=True)
    return tuple(Column(name, type, comment) for (name, type), comment in pairs)


def record_columns(record: type) -> Iterator[Column]:
    """Yield a column for each field of a dataclass that is annotated with a comment."""
    for name, hint in get_type_hints(record, include_extras=True).items():
        if get_origin(hint) is Annotated:
            type, comment = get_args(hint)
            yield Column(name, _column_type(type), comment)


def _column_type(hint: Any) -> str:
    """Return the column type for a type of Python; structures are JSON."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is tuple:
        return f"{_column_type(arguments[0])}[]"
    if NoneType in arguments:
        return _column_type(arguments[0])
    return "VARCHAR" if origin is Literal else _PYTHON_TYPES.get(hint, "JSON")


_PYTHON_TYPES = {str: "VARCHAR", int: "BIGINT", float: "DOUBLE", bool: "BOOLEAN", date: "DATE"}
_PYTHON_TYPES |= {datetime: "TIMESTAMPTZ"}

_PARENT = Column("_content_type_id", "VARCHAR", "The content type (`content_types.id`).")

OWN_COLUMNS = columns({
    "_record JSON": "The record as received, with fields that have no column.",
    "_hydrated_at TIMESTAMPTZ": "Server time at which the record was last read; null if it was "
    "only listed.",
    "_deleted_at TIMESTAMPTZ": "Server time at which the API first reported the record as deleted; "
    "null if it is live.",
    "_run_id VARCHAR": "Run that read the row (`sync.runs.run_id`).",
})  # fmt: skip

HISTORY_COLUMNS = columns({
    "_record JSON": "The record as received.",
    "_version BIGINT": "Number of the version, from 1.",
    "_valid_from TIMESTAMPTZ": "Start of the version: `updated_at`, or the nearest time at which "
    "it can have begun.",
    "_valid_to TIMESTAMPTZ": "End of the version: `_valid_from` of the next version, or the time "
    "when the deletion was found. Null for the current version.",
    "_began_after TIMESTAMPTZ": "The version began after this time, when the record was last read "
    "with other values (first version: the record's creation).",
    "_changed VARCHAR[]": "Names of the fields that changed from the previous version, "
    "`_deleted_at` first if the record had been deleted; null for the first version.",
    "_hydrated_at TIMESTAMPTZ": "Server time at which the version was first read.",
    "_run_id VARCHAR": "Run that read the row (`sync.runs.run_id`).",
})  # fmt: skip

_STREAM = {
    "resource VARCHAR": "The resource, by the name of its table in `landing`.",
    "parent VARCHAR": "Content type of the items; empty for other resources.",
}

SYNC_TABLES = (
    Table("sync.schema_version", columns({
        "version BIGINT": "Format of the file. An older version of the connector cannot open it.",
    }), "Format of the file: one row."),
    Table("sync.folder", columns({
        "folder VARCHAR": "Random name of the data folder; `state.sqlite` has the same.",
        "address VARCHAR": "Address of the workspace whose records are in the file.",
        "written_by VARCHAR": "Version of the connector that wrote the file last.",
    }), "Data folder of the file: one row."),
    Table("sync.bookmarks", (*columns({
        **_STREAM, "run_id VARCHAR": "Run that wrote the row (`sync.runs.run_id`).",
    }), *record_columns(Bookmark)), "One row per stream, with its progress."),
    Table("sync.queue", columns({
        **_STREAM,
        "id VARCHAR": "Record that must be read.",
        "reason VARCHAR": "Reason for reading it.",
        "created_at TIMESTAMPTZ": "The record's `created_at`.",
        "error_code VARCHAR": "Error code of the last failed attempt; null if no attempt failed.",
        "error VARCHAR": "Error message of the last failed attempt.",
        "failed_runs BIGINT DEFAULT 0": "Number of runs in which the reading failed.",
        "failed_since TIMESTAMPTZ": "Time of the first failed attempt.",
        "run_id VARCHAR": "Last run in which the reading failed (`sync.runs.run_id`).",
    }), "Records that must be read or read again, with the reason."),
)  # fmt: skip


def _field_columns(fields: Iterable[Field]) -> Iterator[Column]:
    """Yield a column for each field, except arrays of parts, which have a table of their own."""
    for each in fields:
        if each.kind is not Kind.ARRAY:
            yield Column(each.name, TYPES[each.kind], each.about, each)


@cache
def landing_columns(name: str) -> tuple[Column, ...]:
    """Return the columns of a resource's landing table, in order."""
    return (*_field_columns(CATALOG[name].detail_fields), *_parent_column(name), *OWN_COLUMNS)


@cache
def history_columns(name: str) -> tuple[Column, ...]:
    """Return the columns of a resource's history table, in order."""
    return (*_field_columns(CATALOG[name].detail_fields), *_parent_column(name), *HISTORY_COLUMNS)


def _parent_column(name: str) -> tuple[Column, ...]:
    return (_PARENT,) if CATALOG[name].parent else ()


PARTS_COLUMNS = (*_field_columns(ContentTypeField.fields_declared.values()), _PARENT, *OWN_COLUMNS)


def declared_tables() -> Iterator[Table]:
    """Yield every table of a work file."""
    yield from SYNC_TABLES
    for name, resource in CATALOG.items():
        yield Table(f"landing.{name}", landing_columns(name), resource.about)
        if any(each.kind is Kind.ARRAY for each in resource.detail_fields):
            about = "The fields of each content type."
            yield Table(f"landing.{PARTS_TABLE}", PARTS_COLUMNS, about)
        about = f"Every observed version of the {name.replace('_', ' ')}, one row each."
        yield Table(f"history.{name}", history_columns(name), about)


def complete_tables(connection: Connection, path: str) -> None:
    """Create the tables and columns that the file lacks; write nothing if it is complete.

    `path` is for errors. Raises `WarehouseError` if the file belongs to another program or to a
    newer version.
    """
    existing = defaultdict[str, set[str]](set)
    for table, column in connection.execute(
        "SELECT schema_name || '.' || table_name, column_name FROM duckdb_columns() "
        "WHERE NOT internal AND database_name = current_database()"
    ).fetchall():
        existing[table].add(column)
    problem, action, version = f"{path} is a DuckDB database of another program", None, None
    if "sync.schema_version" in existing:
        ((version,),) = connection.execute(
            "SELECT coalesce(max(version), 0) FROM sync.schema_version"
        ).fetchall()
        problem = f"{path} was written by a newer version of the connector"
        action = "Install that version, or restore a backup of this version."
    if existing and (version is None or version > SCHEMA_VERSION):
        raise WarehouseError(problem, action=action, code="not_a_warehouse")
    incomplete = [
        each for each in declared_tables() if {c.name for c in each.columns} - existing[each.name]
    ]
    if not incomplete and version:
        return
    with transaction(connection):
        for each in incomplete:
            if existing[each.name]:
                _add_columns(connection, each, existing[each.name])
            else:
                create_table(connection, each)
        if not version:
            connection.execute(f"INSERT INTO sync.schema_version VALUES ({SCHEMA_VERSION})")
    # Schema changes left in the log have made files unreadable; a checkpoint removes them.
    connection.execute("CHECKPOINT")


def create_table(connection: Connection, table: Table) -> None:
    """Create a table with its comments, and its schema if it is missing."""
    name = quoted(table.name)
    defined = ", ".join(f"{quoted(each.name)} {each.type}" for each in table.columns)
    connection.execute(f"CREATE SCHEMA IF NOT EXISTS {table.name.split('.')[0]}")
    connection.execute(f"CREATE TABLE {name} ({defined})")
    connection.execute(f"COMMENT ON TABLE {name} IS {literal(table.about)}")
    for each in table.columns:
        _comment(connection, name, each)


def _comment(connection: Connection, table: str, column: Column) -> None:
    name = f"{table}.{quoted(column.name)}"
    connection.execute(f"COMMENT ON COLUMN {name} IS {literal(column.comment)}")


def _add_columns(connection: Connection, table: Table, existing: set[str]) -> None:
    """Add the missing columns of a table, and fill those of fields from `_record`."""
    name = quoted(table.name)
    missing = [each for each in table.columns if each.name not in existing]
    # DuckDB cannot add a column in a transaction that has updated the table.
    for each in missing:
        connection.execute(f"ALTER TABLE {name} ADD COLUMN {quoted(each.name)} {each.type}")
        _comment(connection, name, each)
    for each in missing:
        if each.field is None:
            continue
        value = f"(_record -> {literal(each.name)})"
        rows = connection.execute(
            f"SELECT rowid, {value} FROM {name} WHERE {value} IS NOT NULL"
        ).fetchall()
        values = [column_value(each.field, json.loads(text))[0] for _, text in rows]
        run_staged(
            connection,
            {"place": [place for place, _ in rows], "value": values},
            f"UPDATE {name} AS held SET {quoted(each.name)} = stage.value FROM stage "
            "WHERE held.rowid = stage.place",
        )


# -- Rows ------------------------------------------------------------------------------------------
# No received data is lost: a value that does not fit its column stays in `_record`.

_HALF_PAIR = re.compile("[\ud800-\udfff]")
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)
_SHOWN_MAX = 60


class RowBatch:
    """Rows to insert: in `values`, by column name, a list with the value of each row.

    `anomalies` has an event for each undeclared field or value of a response, without personal
    data, with the id of the first record that has it.
    """

    def __init__(self, columns: tuple[Column, ...]) -> None:
        self._columns = columns
        self.values: dict[str, list[Any]] = {column.name: [] for column in columns}
        self.anomalies: dict[Event, str] = {}

    def add(self, record: Record, own_values: Mapping[str, Any]) -> None:
        """Add a record; `own_values` are the values of the connector's own columns."""
        id = str(record.raw.get("id"))
        # The documented status that only a converted record has (API 3.5) is no unknown value.
        converted = record.declaration.converted_status if isinstance(record, Resource) else None
        for column in self._columns:
            name, declared = column.name, column.field
            if declared is None:
                value = own_values.get(name)
                if name == "_record" and value is None:
                    value = as_json(record.raw)
            elif (value := record.raw.get(name)) is not None:
                value, problem = column_value(declared, value)
                is_converted = name == "status" and value is not None and value == converted
                if problem is not None and not is_converted:
                    # A choice is a value of the platform and may be shown; others may be personal.
                    shown = f" {value[:_SHOWN_MAX]!r}" if declared.values and value else ""
                    kind = "unknown_value" if value is not None else "unreadable_value"
                    self.anomalies.setdefault(Event(kind, f"{name}{shown} {problem}"), id)
            self.values[name].append(value)
        for name in record.undeclared_fields:
            shown = replace_surrogates(name)[:_SHOWN_MAX]
            self.anomalies.setdefault(Event("unknown_field", shown), id)

    def __len__(self) -> int:
        return len(next(iter(self.values.values())))


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
    return _HALF_PAIR.sub("\ufffd", text)


# -- Differences -----------------------------------------------------------------------------------
# Two details differ in a field if its JSON differs, ignoring the order of keys. A list item and a
# detail are compared in the fields that both contain, by their parsed values, because lists may
# format a value differently. Lists document fewer values than details for some fields
# (`Field.item_values`): if the detail has a value that a list cannot show, they do not differ.


def differing_names(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of fields whose JSON differs, those of `after` first."""
    names = (*after, *(name for name in before if name not in after))
    return tuple(name for name in names if not _is_same(before, after, name))


def differs_from_item(
    resource: Declaration, item: Mapping[str, Any], record: Mapping[str, Any]
) -> bool:
    """Return True if a list item shows another value than the record, which a list can show."""
    return any(
        each.name in item
        and each.name in record
        and not _is_same(item, record, each.name)
        and (not each.item_values or record[each.name] in each.item_values)
        and column_value(each, item[each.name])[0] != column_value(each, record[each.name])[0]
        for each in resource.item_fields
    )


def _is_same(before: Mapping[str, Any], after: Mapping[str, Any], name: str) -> bool:
    """Return True if both records have the field, with the same JSON in any order of keys."""
    if name not in before or name not in after:
        return False
    one, other = before[name], after[name]
    if type(one) is not type(other):
        return False
    if isinstance(one, dict | list):
        return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
    return bool(one == other)
