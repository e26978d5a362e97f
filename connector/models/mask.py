"""Personal columns, and a copy of the draft in which they are hashed or left out.

The copy is a new file, written table by table, because a column that is dropped in place leaves its
bytes in the file. Views become tables, because their source columns may be missing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Set
from pathlib import Path

import duckdb
from pydantic import SecretStr

from connector.catalog import CATALOG
from connector.errors import UnknownName
from connector.models.project import Node, Project
from connector.models.runner import TableColumns, read_columns, source_names, tables_read_by
from connector.settings import Settings
from connector.warehouse.file import STORAGE_VERSION, convert_errors, literal, open_file, quoted

_RECORD = "_record"
"""Column with the API's response as received."""

_PERSONAL_TEXTS = {"push.batches": {"file"}, "push.rows": {"before", "after", "answer"}}
"""Personal columns of the connector's own tables: typed texts, and received records."""

_SAFE_TYPES = ("BOOLEAN", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UBIGINT")
"""Types of flags and counts. Columns of other types may contain names, birthdays or salaries."""

# -- Personal columns ------------------------------------------------------------------------------


def personal_columns(
    project: Project, columns: TableColumns, connection: duckdb.DuckDBPyConnection
) -> frozenset[tuple[str, str]]:
    """Return the personal columns of an open file, each with its table.

    A column of `landing` and `history` is personal if the catalog declares its field so. A column
    of a model is personal if

    - its entry in the schema file says `meta: {personal: true}`, or
    - the entry does not say it, and the model reads a personal column of the same name, or
    - it is of an own model, has no entry, and is no count, no flag and no id that is passed on
      unchanged. Columns of shipped models have an entry, or are read under the same name.
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
            entry, names = node.entry.named.get(each.name), source_names(each.name)
            sources = {(t, c.name) for t in read for c in columns[t] if c.name.lower() in names}
            is_personal = not found.isdisjoint(sources)
            if entry is not None and entry.personal is not None:
                is_personal = entry.personal
            elif entry is None and node.is_own and each.type not in _SAFE_TYPES:
                is_personal |= not _is_passed_on(node, each.name, sources, connection)
            if is_personal:
                found.add((table, each.name))
    return frozenset(found)


def _is_passed_on(
    node: Node, name: str, sources: Set[tuple[str, str]], connection: duckdb.DuckDBPyConnection
) -> bool:
    """Return True for an id of which a column that the model reads has all values."""
    if name != "id" and not name.endswith("_id"):
        return False
    values = f"SELECT {quoted(name)} FROM {quoted(node.table)} WHERE {quoted(name)} IS NOT NULL"
    return any(
        not connection.execute(
            f"({values} EXCEPT SELECT {quoted(column)} FROM {quoted(source)}) LIMIT 1"
        ).fetchall()
        for source, column in sources
    )


def _is_personal_in_source(table: str, column: str) -> bool:
    """Return True for a personal column of a loaded table, a seed or a view that no model makes."""
    schema, _, name = table.partition(".")
    if name.startswith("content_") and schema == "marts":
        # A view of a content type has the type's own fields, which may contain any data.
        name = "content_items"
        if column not in CATALOG[name].fields:
            return True
    elif schema not in ("landing", "history"):
        # Seeds only contain what colleagues may see.
        return column in _PERSONAL_TEXTS.get(table, ()) or schema not in ("sync", "push", "seeds")
    field = CATALOG[name].fields.get(column) if name in CATALOG else None
    return column == _RECORD or (field is not None and field.personal is not None)


# -- Copy ------------------------------------------------------------------------------------------

TOKEN_CHARACTERS = 32
"""Number of characters of a hash in hexadecimal digits: half of an HMAC with SHA-256."""


def write_masked(draft: Path, copy: Path, settings: Settings, project: Project) -> None:
    """Write a copy of a draft without personal values, and without names in `publish_without`.

    Raises:
        UnknownName: A table or column to leave out does not exist.
        WarehouseError: The copy cannot be written, for example because the disk is full.
    """
    left_out, treatment = {*settings.publish_without}, settings.publish_personal
    key = settings.publish_hash_key if treatment == "hash" else None
    with open_file(draft) as connection, convert_errors(copy):
        storage = f"STORAGE_VERSION '{STORAGE_VERSION}'"
        connection.execute(f"ATTACH {literal(str(copy))} AS masked ({storage})")
        copy.chmod(0o600)
        if key is not None:
            _set_hash_key(connection, key)
        columns = read_columns(connection, project)
        for name in left_out:
            table = ".".join(name.split(".")[:2])
            known = [*columns, *(f"{table}.{each.name}" for each in columns.get(table, ()))]
            if "." in name and name not in known:
                raise UnknownName("table or column in publish_without", name, known)
        is_kept = treatment == "keep"
        personal = frozenset() if is_kept else personal_columns(project, columns, connection)
        abouts = dict(
            connection.execute(
                "SELECT schema_name || '.' || table_name, comment FROM duckdb_tables() UNION ALL "
                "SELECT schema_name || '.' || view_name, comment FROM duckdb_views()"
            ).fetchall()
        )
        for table, some in columns.items():
            if not left_out.isdisjoint((table, table.partition(".")[0])):
                continue
            target, shown = f"masked.{quoted(table)}", []
            comments = [f"COMMENT ON TABLE {target} IS {literal(abouts[table] or '')}"]
            for each in some:
                name, comment = quoted(each.name), each.comment
                is_personal = (table, each.name) in personal
                # Received records are too long to be compared, texts about a row join with nothing.
                is_dropped = key is None or each.name == _RECORD or table in _PERSONAL_TEXTS
                if (is_personal and is_dropped) or f"{table}.{each.name}" in left_out:
                    continue
                if is_personal:
                    comment = f"{comment} The value is replaced by a hash.".strip()
                shown.append(f"{_hash_expression(name) if is_personal else name} AS {name}")
                comments.append(f"COMMENT ON COLUMN {target}.{name} IS {literal(comment)}")
            if shown:
                connection.execute(f"CREATE SCHEMA IF NOT EXISTS {target.rpartition('.')[0]}")
                source = f"SELECT {', '.join(shown)} FROM {quoted(table)}"
                connection.execute(f"CREATE TABLE {target} AS {source}; {';'.join(comments)}")
        connection.execute("CHECKPOINT masked; DETACH masked")


def _set_hash_key(connection: duckdb.DuckDBPyConnection, key: SecretStr) -> None:
    """Set the two pads of the HMAC key (RFC 2104) as variables, to keep them out of statements."""
    plain = key.get_secret_value().encode()
    # A block of the hash has 64 bytes.
    plain = (hashlib.sha256(plain).digest() if len(plain) > 64 else plain).ljust(64, b"\0")
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
