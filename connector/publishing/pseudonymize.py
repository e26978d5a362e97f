"""Masked copy of a draft, without selected columns, values or schemas.

It is written to a new file, table by table, because a column dropped in place leaves its bytes in
the file. Views become tables, because their source columns may be missing.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

import duckdb
from pydantic import SecretStr

from connector.errors import SettingsError, UnknownName
from connector.publishing.columns import (
    CONTENT_VIEW_PREFIX,
    PERSONAL_OWN_COLUMNS,
    RECORD,
    TableColumns,
    describe_project,
    personal_columns,
    read_table_columns,
    read_tables,
)
from connector.publishing.lineage import ColumnKey, Lineage
from connector.publishing.project import Model, Project, Seed
from connector.settings.model import Treatment
from connector.warehouse.duckdb_file import (
    STORAGE_VERSION,
    convert_errors,
    literal,
    open_file,
    quoted,
    transaction,
)
from connector.warehouse.schema import Column, TableSchema


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


# -- Columns left out ------------------------------------------------------------------------------

_TABLES = ("landing", "history")


def left_out_columns(without: Collection[str], project: Project | None) -> frozenset[ColumnKey]:
    """Return table and column of each column that the setting `publish_without` leaves out.

    `RESOURCE.FIELD` is a column of landing and history, each model's column that is read from it
    under the same name, and the texts of `push` that may hold its values. `SCHEMA.TABLE.COLUMN` is
    that column alone. A field that is removed from the `_record` of a table counts as a column of
    that table.

    `without` is the value of the setting; names of schemas are ignored. Raises `UnknownName`, and
    `SettingsError` if a model computes another column from a column that is left out.
    """
    split = [name.rpartition(".")[::2] for name in without]
    listed = {(table, column) for table, column in split if "." in table}
    fields = [(table, column) for table, column in split if table and "." not in table]
    if not listed and not fields:
        return frozenset()
    project = project or Project({}, {}, {}, makes_content_views=False)
    table_columns = describe_project(project)
    for table, column in listed:
        if not table.startswith(CONTENT_VIEW_PREFIX):
            _check_column(table, column, table_columns)
    if not fields:
        return frozenset(listed)
    found = {(f"{schema}.{table}", column) for table, column in fields for schema in _TABLES}
    found |= {
        (table, column) for table in PERSONAL_OWN_COLUMNS for column in PERSONAL_OWN_COLUMNS[table]
    }
    needed: list[tuple[ColumnKey, ColumnKey]] = []
    lineage = Lineage(project, table_columns)
    for node in project.nodes:
        for each in table_columns[node.table]:
            made = node.table, each.name
            parents = lineage.parents(*made)
            sources = [parent for parent in parents if parent in found]
            if any(each.name.lower() == name.lower().removeprefix("_") for _, name in sources):
                found.add(made)
                continue
            records = [owner for owner, name in parents if name == RECORD]
            keys = [key for key in found if key[0] in records]
            if each.name == RECORD:
                found |= {(node.table, key) for _, key in keys}
            else:
                sources += [key for key in keys if _may_contain_key(node, each, key[1])]
            if sources and made not in listed:
                needed.append((made, sources[0]))
    if needed:
        (table, name), source = needed[0]
        raise SettingsError(
            f"publish_without leaves out {'.'.join(source)}, but the model {table} computes its"
            f" column {name} from it",
            action="Add these columns to publish_without, or keep the field: "
            f"{', '.join('.'.join(column) for column, _ in needed)}.",
        )
    return frozenset((*found, *listed))


def _may_contain_key(node: Model | Seed, column: Column, key: str) -> bool:
    """Return True if a column that is computed from `_record` may contain the value of this key."""
    sql = node.query.sql if isinstance(node, Model) else ""
    return column.type == "JSON" or bool(re.search(rf"'[^']*\b{key}\b[^']*'", sql))


def _check_column(table: str, column: str, table_columns: TableColumns) -> None:
    """Raise `UnknownName` for a table or column that does not exist."""
    schema = table.partition(".")[0]
    if table not in table_columns:
        names = [each for each in table_columns if each.startswith(f"{schema}.")]
        raise UnknownName("table in publish_without", table, names)
    names = [each.name for each in table_columns[table]]
    if column not in names:
        raise UnknownName(f"column of {table} in publish_without", column, names)


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
        without: Schemas, `RESOURCE.FIELD` and `SCHEMA.TABLE.COLUMN` to leave out.
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
        left_out = left_out_columns(mask.without, project)
        for table in read_tables(connection):
            if table.schema not in mask.without:
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
    is_content_view = owner.startswith(CONTENT_VIEW_PREFIX)
    without_removed = literal(json.dumps(dict.fromkeys(removed)))
    for column in table.columns:
        name = quoted(column.name)
        is_left_out = is_content_view and ("landing.content_items", column.name) in left_out
        if column.name in removed or is_left_out:
            continue
        if (owner, column.name) not in personal:
            is_record = column.name == RECORD and removed
            patched = f"json_merge_patch({name}, {without_removed}) AS {name}"
            shown.append(patched if is_record else name)
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
