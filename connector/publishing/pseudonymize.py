"""Masked copy of a draft: without columns, values or whole schemas.

It is written into a fresh file, table by table: a column that is dropped in place leaves its bytes
behind. Views become tables, since what they would look at may be gone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

import duckdb
from pydantic import SecretStr

from connector.publishing.columns import (
    OWN,
    RECORD,
    Shapes,
    describe,
    personal_columns,
    read_shapes,
)
from connector.publishing.project import ColumnType, Model, Project
from connector.settings.model import Treatment
from connector.warehouse.duckdb_file import (
    STORAGE_VERSION,
    convert_errors,
    literal,
    open_file,
    quoted,
    transaction,
)


def is_token(table: str, column: str) -> bool:
    """Return True if a hash can replace a personal column.

    Records as they came hold too much to be compared, and texts about a row of a push join with
    nothing.
    """
    return column != RECORD and table not in OWN


# -- Own models ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class UndeclaredColumn:
    """Model or column of the user's folder without an entry in a schema file.

    `column` is None for a model without an entry. `is_masked`: the column counts as personal.
    """

    table: str
    column: str | None
    file: Path
    is_masked: bool

    @property
    def sentence(self) -> str:
        """The warning about the missing entry."""
        if self.column is None:
            return f"{self.table} is not listed in a schema.yml next to {self.file}."
        masked = (
            " It counts as personal and is masked with publish_personal = drop or hash."
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
    shapes = describe(project)
    personal = personal_columns(project, shapes)
    found: list[UndeclaredColumn] = []
    for model in own:
        if model.declared is None:
            found.append(UndeclaredColumn(model.table, None, model.path, is_masked=False))
        found += [
            UndeclaredColumn(
                model.table, each.name, model.path, (model.table, each.name) in personal
            )
            for each in shapes.get(model.table, ())
            if each.name not in model.texts
        ]
    return tuple(found)


# -- Copy ------------------------------------------------------------------------------------------

TOKEN_CHARACTERS = 32
"""Characters of a token, which are hexadecimal digits: half of an HMAC with SHA-256."""

_BLOCK_BYTES = 64
_HASHED = "The value is replaced by a hash."


@dataclass(frozen=True, slots=True)
class Mask:
    """Treatment of personal columns, the key of hashes, and the schemas left out."""

    personal: Treatment
    key: SecretStr | None
    without: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _DraftTable:
    """Table or view of the draft, with its comments; columns are in their order."""

    name: str
    comment: str | None
    columns: tuple[ColumnType, ...]


def write_masked(draft: Path, copy: Path, mask: Mask, project: Project | None) -> None:
    """Write a masked copy of a draft, which does not change.

    Args:
        draft: The file to copy.
        copy: The new file, which must not exist yet.
        mask: The treatment of personal columns, and the schemas to leave out.
        project: The models in the draft; None if it has none.

    Raises:
        DiskFull: The disk has no room for the copy.
        WarehouseError: The draft cannot be read or the copy cannot be written.
    """
    with open_file(draft) as connection, convert_errors(copy):
        connection.execute(
            f"ATTACH {literal(str(copy))} AS masked (STORAGE_VERSION '{STORAGE_VERSION}')"
        )
        copy.chmod(0o600)
        if mask.key is not None:
            _set_key(connection, mask.key)
        shapes = read_shapes(connection)
        personal = personal_columns(project, shapes) if mask.personal != "keep" else frozenset()
        for table in _tables(connection, shapes):
            schema = table.name.partition(".")[0]
            if schema not in mask.without:
                connection.execute(f"CREATE SCHEMA IF NOT EXISTS masked.{quoted(schema)}")
                _copy_table(connection, table, mask, personal)
        connection.execute("CHECKPOINT masked")
        connection.execute("DETACH masked")


def _copy_table(
    connection: duckdb.DuckDBPyConnection,
    table: _DraftTable,
    mask: Mask,
    personal: Collection[tuple[str, str]],
) -> None:
    shown: list[str] = []
    comments: dict[str, str] = {}
    for column in table.columns:
        name = quoted(column.name)
        if (table.name, column.name) not in personal:
            shown.append(name)
            comments[name] = column.comment
        elif mask.personal == "hash" and is_token(table.name, column.name):
            shown.append(f"{_token(name)} AS {name}")
            comments[name] = f"{column.comment} {_HASHED}".strip()
    if not shown:
        return
    source = _quoted_table(table.name)
    target = f"masked.{source}"
    connection.execute(f"CREATE TABLE {target} AS SELECT {', '.join(shown)} FROM {source}")
    said = [
        f"COMMENT ON COLUMN {target}.{name} IS {literal(text)}"
        for name, text in comments.items()
        if text
    ]
    if table.comment:
        said.append(f"COMMENT ON TABLE {target} IS {literal(table.comment)}")
    if said:
        # Of one transaction: each would be a commit of its own, and there are a thousand columns.
        with transaction(connection):
            connection.execute(";".join(said))


def _quoted_table(name: str) -> str:
    schema, _, table = name.partition(".")
    return f"{quoted(schema)}.{quoted(table)}"


def _tables(connection: duckdb.DuckDBPyConnection, shapes: Shapes) -> Iterator[_DraftTable]:
    """Yield every table and view of the draft."""
    of_draft = "database_name = current_database() AND NOT internal"
    for table, comment in connection.execute(
        f"SELECT schema_name || '.' || table_name, comment FROM duckdb_tables() WHERE {of_draft} "
        f"UNION ALL SELECT schema_name || '.' || view_name, comment FROM duckdb_views() "
        f"WHERE {of_draft} ORDER BY ALL"
    ).fetchall():
        yield _DraftTable(table, comment, shapes.get(table, ()))


def _set_key(connection: duckdb.DuckDBPyConnection, key: SecretStr) -> None:
    """Put the two pads of the key (RFC 2104) into variables, and no statement."""
    plain = key.get_secret_value().encode()
    if len(plain) > _BLOCK_BYTES:
        plain = hashlib.sha256(plain).digest()
    plain = plain.ljust(_BLOCK_BYTES, b"\0")
    for name, byte in (("inner_pad", 0x36), ("outer_pad", 0x5C)):
        connection.execute(f"SET VARIABLE {name} = ?::BLOB", [bytes(b ^ byte for b in plain)])


def _token(name: str) -> str:
    """The token of a column's value as an expression: HMAC with SHA-256.

    DuckDB makes it itself, since a function of Python's would be called for each value. Null stays
    null, and an empty text stays empty: it tells that nothing was said.
    """
    text = f"CAST({name} AS VARCHAR)"
    inner = f"unhex(sha256(getvariable('inner_pad') || encode({text})))"
    whole = f"sha256(getvariable('outer_pad') || {inner})"
    return f"CASE WHEN {text} = '' THEN '' ELSE left({whole}, {TOKEN_CHARACTERS}) END"
