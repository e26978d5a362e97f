"""Masked copy of a draft, without selected columns, values or schemas.

It is written to a new file, table by table, because a column dropped in place leaves its bytes in
the file. Views become tables, because their source columns may be missing.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

import duckdb
from pydantic import SecretStr

from connector.catalog import CATALOG
from connector.errors import UnknownName
from connector.publishing.columns import (
    CONTENT_VIEW_PREFIX,
    PERSONAL_OWN_COLUMNS,
    RECORD,
    describe_project,
    personal_columns,
    read_table_columns,
    read_tables,
)
from connector.publishing.project import Model, Project
from connector.settings.model import Treatment
from connector.warehouse.duckdb_file import (
    STORAGE_VERSION,
    convert_errors,
    literal,
    open_file,
    quoted,
    transaction,
)
from connector.warehouse.schema import TableSchema

ColumnKey = tuple[str, str]
"""Column: its table as `schema.table`, and its name."""


def can_be_hashed(table: str, column: str) -> bool:
    """Return True if a personal column can be published as hashes instead of being left out.

    Received records are too large to be compared, and texts about a row of a push join with
    nothing.
    """
    return column != RECORD and table not in PERSONAL_OWN_COLUMNS


# -- Own models ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class UndeclaredColumn:
    """Model or column of the user's folder without an entry in a schema file.

    `column` is None for a model without an entry. `is_masked` is True if the column counts as
    personal.
    """

    table: str
    column: str | None
    file: Path
    is_masked: bool

    @property
    def sentence(self) -> str:
        """Warning about the missing entry."""
        if self.column is None:
            return f"{self.table} is not listed in a schema.yml next to {self.file}."
        masked = (
            " The connector treats it as personal: publish_personal = drop or hash masks it."
            if self.is_masked
            else ""
        )
        name = f"{self.table}.{self.column}"
        return f"{name} ({self.file}) is not declared in a schema.yml.{masked}"


def find_undeclared(project: Project) -> tuple[UndeclaredColumn, ...]:
    """Return the models and columns of the user's folder without an entry, in building order."""
    own = [each for each in project.nodes if isinstance(each, Model) and each.is_own]
    if not own:
        return ()
    table_columns = describe_project(project)
    personal = personal_columns(project, table_columns)
    found: list[UndeclaredColumn] = []
    for model in own:
        if model.declared is None:
            found.append(UndeclaredColumn(model.table, None, model.path, is_masked=False))
        found += [
            UndeclaredColumn(
                model.table, each.name, model.path, (model.table, each.name) in personal
            )
            for each in table_columns.get(model.table, ())
            if each.name not in model.column_descriptions
        ]
    return tuple(found)


# -- Left out --------------------------------------------------------------------------------------
# A field of a resource is cleared in the draft before the models are built. So no model can contain
# its values, however it computes its columns.

_TABLES = ("landing", "history")


def clear_fields(draft: Path, without: Collection[str]) -> None:
    """Set each `RESOURCE.FIELD` to null in the draft, and remove it from the received records.

    Names of schemas, tables and their columns are ignored. Raises a `WarehouseError`.
    """
    fields = [each.split(".") for each in without if _is_field(each)]
    if not fields:
        return
    with open_file(draft) as connection, transaction(connection):
        for resource, field in fields:
            removed = literal(json.dumps({field: None}))
            for schema in _TABLES:
                connection.execute(
                    f"UPDATE {schema}.{quoted(resource)} SET {quoted(field)} = NULL, "
                    f"{RECORD} = json_merge_patch({RECORD}, {removed})"
                )


def _is_field(name: str) -> bool:
    """Return True for `RESOURCE.FIELD`."""
    resource, _, field = name.partition(".")
    return resource in CATALOG and field in CATALOG[resource].fields


def left_out_columns(without: Collection[str]) -> frozenset[ColumnKey]:
    """Return table and column of each column that the setting `publish_without` leaves out.

    `RESOURCE.FIELD` leaves out the columns of landing and history, and the texts of `push` that may
    hold its values. `SCHEMA.TABLE.COLUMN` is that column alone.
    """
    split = [name.rpartition(".")[::2] for name in without]
    found = {(table, column) for table, column in split if "." in table}
    fields = [name.split(".") for name in without if _is_field(name)]
    found |= {(f"{schema}.{table}", column) for table, column in fields for schema in _TABLES}
    if fields:
        found |= {
            (table, column)
            for table in PERSONAL_OWN_COLUMNS
            for column in PERSONAL_OWN_COLUMNS[table]
        }
    return frozenset(found)


def check_left_out(without: Collection[str], project: Project | None) -> None:
    """Raise `UnknownName` for a table or column in `publish_without` that does not exist."""
    named = [name.split(".") for name in without if "." in name and not _is_field(name)]
    named = [each for each in named if not ".".join(each).startswith(CONTENT_VIEW_PREFIX)]
    if not named:
        return
    project = project or Project({}, {}, {}, makes_content_views=False)
    table_columns = describe_project(project)
    for schema, name, *columns in named:
        table = f"{schema}.{name}"
        if table not in table_columns:
            known = [each for each in table_columns if each.startswith(f"{schema}.")]
            raise UnknownName("table in publish_without", table, known)
        known = [each.name for each in table_columns[table]]
        if columns and columns[0] not in known:
            raise UnknownName(f"column of {table} in publish_without", columns[0], known)


# -- Copy ------------------------------------------------------------------------------------------

TOKEN_CHARACTERS = 32
"""Number of characters of a token in hexadecimal digits: half of an HMAC with SHA-256."""

_BLOCK_BYTES = 64
_HASHED = "The value is replaced by a hash."


@dataclass(frozen=True, slots=True)
class Mask:
    """Rules for a masked copy.

    Attributes:
        personal: Keep, drop or hash personal columns.
        key: Key of the hashes; None if nothing is hashed.
        without: Schemas, tables, `RESOURCE.FIELD` and `SCHEMA.TABLE.COLUMN` to leave out.
    """

    personal: Treatment
    key: SecretStr | None
    without: tuple[str, ...]


def write_masked(draft: Path, copy: Path, mask: Mask, project: Project | None) -> None:
    """Write a masked copy of a draft, which does not change.

    The file `copy` must not exist yet. `project` are the models in the draft, if it has any. Raises
    a `WarehouseError`, for example if the disk is full.
    """
    with open_file(draft) as connection, convert_errors(copy):
        connection.execute(
            f"ATTACH {literal(str(copy))} AS masked (STORAGE_VERSION '{STORAGE_VERSION}')"
        )
        copy.chmod(0o600)
        if mask.key is not None:
            _set_hash_key(connection, mask.key)
        table_columns = read_table_columns(connection)
        personal = (
            personal_columns(project, table_columns) if mask.personal != "keep" else frozenset()
        )
        left_out = left_out_columns(mask.without)
        for table in read_tables(connection):
            if not {table.schema, str(table)} & {*mask.without}:
                connection.execute(f"CREATE SCHEMA IF NOT EXISTS masked.{quoted(table.schema)}")
                _copy_table(connection, table, mask, personal, left_out)
        connection.execute("CHECKPOINT masked")
        connection.execute("DETACH masked")


def _copy_table(
    connection: duckdb.DuckDBPyConnection,
    table: TableSchema,
    mask: Mask,
    personal: Collection[ColumnKey],
    left_out: Collection[ColumnKey],
) -> None:
    """Copy the table with masked columns; skip it if no column remains."""
    shown: list[str] = []
    comments: dict[str, str] = {}
    owner = str(table)
    removed = [name for each, name in left_out if each == owner]
    for column in table.columns:
        name = quoted(column.name)
        if column.name in removed:
            continue
        if (owner, column.name) not in personal:
            shown.append(name)
            comments[name] = column.comment
        elif mask.personal == "hash" and can_be_hashed(owner, column.name):
            shown.append(f"{_hash_expression(name)} AS {name}")
            comments[name] = f"{column.comment} {_HASHED}".strip()
    if not shown:
        return
    target = f"masked.{table.quoted}"
    connection.execute(f"CREATE TABLE {target} AS SELECT {', '.join(shown)} FROM {table.quoted}")
    statements = [
        f"COMMENT ON COLUMN {target}.{name} IS {literal(text)}"
        for name, text in comments.items()
        if text
    ]
    if table.about:
        statements.append(f"COMMENT ON TABLE {target} IS {literal(table.about)}")
    if statements:
        # In one transaction: otherwise each comment would be a commit, and there are a thousand.
        with transaction(connection):
            connection.execute(";".join(statements))


def _set_hash_key(connection: duckdb.DuckDBPyConnection, key: SecretStr) -> None:
    """Set the two pads of the HMAC key (RFC 2104) as variables, to keep them out of statements."""
    plain = key.get_secret_value().encode()
    if len(plain) > _BLOCK_BYTES:
        plain = hashlib.sha256(plain).digest()
    plain = plain.ljust(_BLOCK_BYTES, b"\0")
    for name, byte in (("inner_pad", 0x36), ("outer_pad", 0x5C)):
        connection.execute(f"SET VARIABLE {name} = ?::BLOB", [bytes(b ^ byte for b in plain)])


def _hash_expression(name: str) -> str:
    """Return the SQL for the hash of a column's value: the first half of an HMAC with SHA-256.

    DuckDB computes it, because a Python function would be called for each value. Null stays null,
    and an empty text stays empty, to show that the field was empty.
    """
    text = f"CAST({name} AS VARCHAR)"
    inner = f"unhex(sha256(getvariable('inner_pad') || encode({text})))"
    whole = f"sha256(getvariable('outer_pad') || {inner})"
    return f"CASE WHEN {text} = '' THEN '' ELSE left({whole}, {TOKEN_CHARACTERS}) END"
