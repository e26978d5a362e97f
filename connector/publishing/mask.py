"""A copy of a draft without what is not to be in it: columns, values and whole schemas.

It is written into a fresh file, table by table: a column that is dropped in place leaves its bytes
behind. Views become tables, since what they would look at may be gone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import duckdb
from pydantic import SecretStr

from connector.publishing.personal import Column, Origins, is_personal, is_token, origins_of
from connector.publishing.project import Project
from connector.settings.model import Settings, Treatment
from connector.warehouse.duckdb_file import (
    STORAGE_VERSION,
    literal,
    naming_errors,
    opened,
    quoted,
    transaction,
)

TOKEN_CHARACTERS = 32
"""Characters of a token, which are hexadecimal digits: half of an HMAC with SHA-256."""

_BLOCK_BYTES = 64
_HASHED = "A token in the place of the value."


@dataclass(frozen=True, slots=True)
class Mask:
    """What becomes of personal columns, by which key, and which schemas are left out."""

    personal: Treatment
    key: SecretStr | None
    without: tuple[str, ...]

    @classmethod
    def of(cls, settings: Settings) -> Self | None:
        """As the settings say; None where everything is published as it is. Raises
        `SettingsError` where fields are to be hashed and there is no key.
        """
        without = settings.publish_without.value
        if settings.publish_personal.value == "keep" and not without:
            return None
        return cls(settings.publish_personal.value, settings.hash_key(), without)


@dataclass(frozen=True, slots=True)
class _Table:
    """A table or view of the draft, with its columns in order and all comments."""

    name: str
    comment: str | None
    columns: Mapping[Column, str | None]


def write_masked(draft: Path, copy: Path, mask: Mask, project: Project | None) -> None:
    """Write the copy, which must not be there yet; the draft stays as it is. `project` are the
    models in it. Raises `DiskFull` or another `WarehouseError`.
    """
    origins = {} if project is None or mask.personal == "keep" else origins_of(project)
    with opened(draft) as connection, naming_errors(copy):
        connection.execute(
            f"ATTACH {literal(str(copy))} AS masked (STORAGE_VERSION '{STORAGE_VERSION}')"
        )
        copy.chmod(0o600)
        if mask.key is not None:
            _set_key(connection, mask.key)
        for table in _tables(connection):
            schema = table.name.partition(".")[0]
            if schema not in mask.without:
                connection.execute(f"CREATE SCHEMA IF NOT EXISTS masked.{quoted(schema)}")
                _copy_table(connection, table, mask, origins)
        connection.execute("CHECKPOINT masked")
        connection.execute("DETACH masked")


def _copy_table(
    connection: duckdb.DuckDBPyConnection, table: _Table, mask: Mask, origins: Origins
) -> None:
    shown: list[str] = []
    comments: dict[str, str | None] = {}
    for column, comment in table.columns.items():
        name = quoted(column.name)
        if mask.personal == "keep" or not is_personal(column, origins):
            shown.append(name)
            comments[name] = comment
        elif mask.personal == "hash" and is_token(column):
            shown.append(f"{_token(name)} AS {name}")
            comments[name] = f"{comment} {_HASHED}" if comment else _HASHED
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


def _tables(connection: duckdb.DuckDBPyConnection) -> Iterator[_Table]:
    """Every table and view of the draft."""
    of_draft = "database_name = current_database() AND NOT internal"
    comments = connection.execute(
        f"SELECT schema_name || '.' || table_name, comment FROM duckdb_tables() WHERE {of_draft} "
        f"UNION ALL SELECT schema_name || '.' || view_name, comment FROM duckdb_views() "
        f"WHERE {of_draft} ORDER BY ALL"
    ).fetchall()
    columns: dict[str, dict[Column, str | None]] = {}
    for table, name, type, comment in connection.execute(
        "SELECT schema_name || '.' || table_name, column_name, data_type, comment "
        f"FROM duckdb_columns() WHERE {of_draft} ORDER BY schema_name, table_name, column_index"
    ).fetchall():
        columns.setdefault(table, {})[Column(table, name, type)] = comment
    for table, comment in comments:
        yield _Table(table, comment, columns.get(table, {}))


def _set_key(connection: duckdb.DuckDBPyConnection, key: SecretStr) -> None:
    """Put the two pads of the key (RFC 2104) where statements find them, and in no statement."""
    plain = key.get_secret_value().encode()
    if len(plain) > _BLOCK_BYTES:
        plain = hashlib.sha256(plain).digest()
    plain = plain.ljust(_BLOCK_BYTES, b"\0")
    pads: Sequence[tuple[str, int]] = (("inner_pad", 0x36), ("outer_pad", 0x5C))
    for name, byte in pads:
        connection.execute(f"SET VARIABLE {name} = ?::BLOB", [bytes(b ^ byte for b in plain)])


def _token(name: str) -> str:
    """The token of a column's value as an expression: HMAC with SHA-256, made by DuckDB itself,
    since a function of Python's would be called for each value. Null stays null, and an empty text
    stays empty: it tells that nothing was said.
    """
    text = f"CAST({name} AS VARCHAR)"
    inner = f"unhex(sha256(getvariable('inner_pad') || encode({text})))"
    whole = f"sha256(getvariable('outer_pad') || {inner})"
    return f"CASE WHEN {text} = '' THEN '' ELSE left({whole}, {TOKEN_CHARACTERS}) END"
