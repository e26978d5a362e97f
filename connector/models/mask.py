"""Personal columns, and a copy of the draft in which they are hashed or left out.

The copy is a new file, written table by table, because a column that is dropped in place leaves its
bytes in the file. Views become tables, because their source columns may be missing.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

import duckdb
from pydantic import SecretStr

from connector.catalog import CATALOG
from connector.errors import UnknownName
from connector.models.project import Node, Project
from connector.models.runner import (
    TableColumns,
    describe,
    read_columns,
    source_names,
    tables_read_by,
)
from connector.settings import Settings, Treatment
from connector.warehouse.file import STORAGE_VERSION, convert_errors, literal, open_file, quoted
from connector.warehouse.schema import Column

_RECORD = "_record"
"""Column with the API's response as received."""

_PERSONAL_TEXTS = {"push.batches": {"file"}, "push.rows": {"before", "after", "answer"}}
"""Personal columns of the connector's own tables: typed texts, and received records."""

_CONTENT_VIEWS = "marts.content_"
_SAFE_TYPES = ("BOOLEAN", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UBIGINT")
"""Types of flags and counts. Columns of other types may contain names, birthdays or salaries."""

ColumnKey = tuple[str, str]
"""Column: its table as `schema.table`, and its name."""

# -- Personal columns ------------------------------------------------------------------------------


def personal_columns(
    project: Project, columns: TableColumns, connection: duckdb.DuckDBPyConnection | None = None
) -> frozenset[ColumnKey]:
    """Return the personal columns of all tables.

    A column of `landing` and `history` is personal if the catalog declares its field so. A column
    of a model is personal if

    - its entry in the schema file says `meta: {personal: true}`, or
    - the entry does not say it, and the model reads a personal column of the same name, or
    - it has no entry and is no count or flag. A shipped model's column needs no entry if the model
      reads it under the same name, and neither does an own model's id that is passed on unchanged.

    Args:
        project: Models in the file.
        columns: Columns of the file.
        connection: Connection to the file, to compare ids with those of the tables that a model
            reads. Without it, an id counts as passed on if such a table has it.
    """
    made = {node.table: node for node in project.nodes.values() if node.kind != "seed"}
    found = {
        (table, each.name)
        for table, some in columns.items()
        for each in some
        if table not in made and _is_personal_in_source(table, each.name)
    }
    for table, node in made.items():
        read = tables_read_by(node, columns)
        for each in columns.get(table, ()):
            entry = node.entry.named.get(each.name)
            sources = [
                (source, column.name)
                for source in read
                for column in columns[source]
                if column.name.lower() in source_names(each.name)
            ]
            if entry is not None and entry.meta.personal is not None:
                is_personal = entry.meta.personal
            elif not found.isdisjoint(sources):
                is_personal = True
            else:
                is_personal = entry is None and each.type not in _SAFE_TYPES
                is_personal = is_personal and not _is_passed_on(
                    node, each.name, sources, connection
                )
            if is_personal:
                found.add((table, each.name))
    return frozenset(found)


def _is_passed_on(
    node: Node,
    name: str,
    sources: Collection[ColumnKey],
    connection: duckdb.DuckDBPyConnection | None,
) -> bool:
    """Return True if an undeclared column has only values of the columns that the model reads."""
    if not node.is_own or not sources:
        return bool(sources)
    if name != "id" and not name.endswith("_id"):
        return False
    values = f"SELECT {quoted(name)} FROM {quoted(node.table)} WHERE {quoted(name)} IS NOT NULL"
    return connection is None or any(
        not connection.execute(
            f"({values} EXCEPT SELECT {quoted(column)} FROM {quoted(source)}) LIMIT 1"
        ).fetchall()
        for source, column in sources
    )


def _is_personal_in_source(table: str, column: str) -> bool:
    """Return True for a personal column of a loaded table, a seed or a view that no model makes."""
    schema, _, name = table.partition(".")
    if schema in ("landing", "history"):
        fields = CATALOG[name].fields if name in CATALOG else {}
        is_declared = column in fields and fields[column].personal is not None
        return is_declared or column == _RECORD
    if table.startswith(_CONTENT_VIEWS):
        # A view of a content type has the type's own fields, which may contain any data.
        return column not in CATALOG["content_items"].fields or _is_personal_in_source(
            "landing.content_items", column
        )
    if table in _PERSONAL_TEXTS:
        return column in _PERSONAL_TEXTS[table]
    # The connector's own tables, and seeds. Seeds only contain what colleagues may see.
    return schema not in ("sync", "push", "seeds")


def find_undeclared(project: Project) -> list[str]:
    """Return the columns of the user's models that count as personal because they have no entry."""
    own = {n.table: n for n in project.nodes.values() if n.is_own and n.kind != "seed"}
    personal = personal_columns(project, describe(project)) if own else frozenset()
    return sorted(
        f"{table}.{column}"
        for table, column in personal
        if table in own and column not in own[table].entry.named
    )


# -- Mask ------------------------------------------------------------------------------------------

_TOKEN_BLOCK_BYTES = 64
TOKEN_CHARACTERS = 32
"""Number of characters of a hash in hexadecimal digits: half of an HMAC with SHA-256."""


@dataclass(frozen=True, slots=True)
class Mask:
    """Rules of a masked copy.

    Attributes:
        personal: Keep, drop or hash personal columns.
        key: Key of the hashes; None if nothing is hashed.
        without: Schemas, tables, `RESOURCE.FIELD` and `SCHEMA.TABLE.COLUMN` to leave out.
    """

    personal: Treatment
    key: SecretStr | None
    without: tuple[str, ...] = ()

    @classmethod
    def from_settings(cls, settings: Settings) -> Mask | None:
        """Return the mask; None if all is published. Raises `SettingsError` without a hash key."""
        personal, without = settings.publish_personal, settings.publish_without
        is_plain = personal == "keep" and not without
        key = settings.publish_hash_key if personal == "hash" else None
        return None if is_plain else cls(personal, key, without)

    @property
    def fields(self) -> list[tuple[str, str]]:
        """Resource and field of each `RESOURCE.FIELD`."""
        split = [name.partition(".")[::2] for name in self.without]
        return [(r, field) for r, field in split if r in CATALOG and field in CATALOG[r].fields]

    @property
    def left_out(self) -> set[str]:
        """Schemas, tables and columns to leave out.

        `RESOURCE.FIELD` leaves out the columns of landing and history, and the texts of `push`
        that may contain its values.
        """
        found = {*self.without}
        for resource, field in self.fields:
            found |= {f"{schema}.{resource}.{field}" for schema in ("landing", "history")}
            found |= {f"{table}.{name}" for table, some in _PERSONAL_TEXTS.items() for name in some}
        return found

    def check_names(self, project: Project) -> None:
        """Raise `UnknownName` for a table or column to leave out that does not exist."""
        fields = {".".join(each) for each in self.fields}
        for name in self.without:
            if "." not in name or name in fields or name.startswith(_CONTENT_VIEWS):
                continue
            columns, table = describe(project), ".".join(name.split(".")[:2])
            known = [f"{table}.{each.name}" for each in columns.get(table, ())]
            if name not in (*columns, *known):
                raise UnknownName("table or column in publish_without", name, known or columns)

    def clear_fields(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Set each `RESOURCE.FIELD` to null, and remove it from the received records.

        This is done before the models are built, so that no model can contain the values.
        """
        for resource, field in self.fields:
            removed = literal(json.dumps({field: None}))
            for schema in ("landing", "history"):
                connection.execute(
                    f"UPDATE {schema}.{quoted(resource)} SET {quoted(field)} = NULL, "
                    f"{_RECORD} = json_merge_patch({_RECORD}, {removed})"
                )


def write_masked(draft: Path, copy: Path, mask: Mask, project: Project) -> None:
    """Write a masked copy of a draft, which does not change, to a new file.

    Raises a `WarehouseError`, for example if the disk is full.
    """
    with open_file(draft) as connection, convert_errors(copy):
        storage = f"STORAGE_VERSION '{STORAGE_VERSION}'"
        connection.execute(f"ATTACH {literal(str(copy))} AS masked ({storage})")
        copy.chmod(0o600)
        if mask.key is not None:
            _set_hash_key(connection, mask.key)
        columns, left_out = read_columns(connection, project), mask.left_out
        is_kept = mask.personal == "keep"
        personal = frozenset() if is_kept else personal_columns(project, columns, connection)
        abouts = connection.execute(
            "SELECT schema_name || '.' || table_name, comment FROM duckdb_tables() "
            "WHERE database_name = current_database() UNION ALL "
            "SELECT schema_name || '.' || view_name, comment FROM duckdb_views() "
            "WHERE database_name = current_database() AND NOT internal ORDER BY ALL"
        ).fetchall()
        for table, about in abouts:
            if left_out.isdisjoint((table, table.partition(".")[0])):
                kept = [c for c in columns[table] if f"{table}.{c.name}" not in left_out]
                shown = [*_shown_columns(table, kept, mask, personal)]
                _copy_table(connection, table, about, shown)
        connection.execute("CHECKPOINT masked; DETACH masked")


def _shown_columns(
    table: str, columns: Collection[Column], mask: Mask, personal: Collection[ColumnKey]
) -> Iterator[tuple[str, str, str]]:
    """Yield the name, expression and comment of each column of the copy."""
    for each in columns:
        name = quoted(each.name)
        if (table, each.name) not in personal:
            yield name, name, each.comment
        # Received records are too long to be compared, and texts about a row join with nothing.
        elif mask.personal == "hash" and each.name != _RECORD and table not in _PERSONAL_TEXTS:
            comment = f"{each.comment} The value is replaced by a hash.".strip()
            yield name, _hash_expression(name), comment


def _copy_table(
    connection: duckdb.DuckDBPyConnection,
    table: str,
    about: str | None,
    columns: Collection[tuple[str, str, str]],
) -> None:
    """Copy the columns of a table with their comments; no table if it has no columns."""
    if not columns:
        return
    target, schema = f"masked.{quoted(table)}", quoted(table.partition(".")[0])
    shown = ", ".join(f"{expression} AS {name}" for name, expression, _ in columns)
    connection.execute(f"CREATE SCHEMA IF NOT EXISTS masked.{schema}")
    connection.execute(f"CREATE TABLE {target} AS SELECT {shown} FROM {quoted(table)}")
    comments = [f"COMMENT ON TABLE {target} IS {literal(about or '')}"]
    for name, _, text in columns:
        comments.append(f"COMMENT ON COLUMN {target}.{name} IS {literal(text)}")
    connection.execute(";".join(comments))


def _set_hash_key(connection: duckdb.DuckDBPyConnection, key: SecretStr) -> None:
    """Set the two pads of the HMAC key (RFC 2104) as variables, to keep them out of statements."""
    plain = key.get_secret_value().encode()
    if len(plain) > _TOKEN_BLOCK_BYTES:
        plain = hashlib.sha256(plain).digest()
    plain = plain.ljust(_TOKEN_BLOCK_BYTES, b"\0")
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
