"""Masked copy of a draft: without columns, values or whole schemas.

It is written into a fresh file, table by table: a column that is dropped in place leaves its bytes
behind. Views become tables, since what they would look at may be gone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import duckdb
from pydantic import SecretStr

from connector.catalog import CATALOG
from connector.catalog.field import Field
from connector.catalog.value import Kind
from connector.publishing.lineage import describe, lineage
from connector.publishing.project import Model, Project
from connector.settings.model import Settings, Treatment
from connector.warehouse.duckdb_file import (
    STORAGE_VERSION,
    literal,
    naming_errors,
    opened,
    quoted,
    transaction,
)

# -- Personal columns ------------------------------------------------------------------------------
# Landing and history have their fields' declarations (`personal=`); of what models make of them,
# lineage tells. Where it is not certain a column counts as personal: a column too few can be asked
# for, and one too many cannot be taken back.

RECORD = "_record"

OWN: Mapping[str, frozenset[str]] = {
    "push.batches": frozenset(("file",)),
    "push.attempts": frozenset(("body", "reason")),
    "push.problems": frozenset(("message", "received", "found", "allowed", "fix")),
    "push.before_images": frozenset(("record",)),
}
"""Columns of the connector's own that hold what people wrote, or records as they came."""

FEES = frozenset(("fee_percentage", "fee_type", "placement_fee"))
"""Fields of the agency's own income. An amount that is made with them is its income as well, and
not what the person earns.
"""

PARTS = frozenset(("converted_at",))
"""Columns that models take out of a record as it came and that are known to be nobody's: when a
lead was converted (API 4.5), which no detail answer declares.
"""

_LANDED = ("landing", "history")
_GROUPED = "marts.sum_"
_CONTENT = "marts.content_"
_COUNTS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UINTEGER", "UBIGINT")
_FIGURES = (*_COUNTS, "DECIMAL", "DOUBLE", "FLOAT", "DATE", "TIMESTAMP")


@dataclass(frozen=True, slots=True)
class FileColumn:
    """Column of a file: its table as `schema.table`, its name and DuckDB's type."""

    table: str
    name: str
    type: str


Origins = Mapping[str, Mapping[str, Iterable[tuple[str, str]]]]
"""By table and column of a model, the source columns that it is made of, as table and column; a
column that is not in it has an unknown origin.
"""


def is_personal(column: FileColumn, origins: Origins) -> bool:
    """Whether the column must go with personal fields."""
    schema, _, table = column.table.partition(".")
    if schema in _LANDED:
        return column.name == RECORD or _is_declared(table, column.name)
    if column.table in OWN:
        return column.name in OWN[column.table]
    if schema in ("sync", "push", "seeds"):
        # Seeds are the user's own, and say of colleagues what colleagues should see.
        return False
    made_of = origins.get(column.table, {}).get(column.name)
    if made_of is None:
        return _may_be(column)
    return _is_made_personal(column, tuple(made_of))


def is_token(column: FileColumn) -> bool:
    """Whether a hash can stand in the column's place.

    Records as they came hold too much to be compared, and what people wrote about a row of a push
    joins with nothing.
    """
    return column.name != RECORD and column.table not in OWN


def _is_declared(table: str, name: str) -> bool:
    field = _field(table, name)
    return field is not None and field.personal is not None


def _field(table: str, name: str) -> Field | None:
    return CATALOG[table].fields.get(name) if table in CATALOG else None


def _may_be(column: FileColumn) -> bool:
    """Whether a column of unknown origin may be personal.

    It is where it is named as a personal field, or may hold text under a name that no field has. A
    content type's own fields may hold anything.
    """
    if column.table.startswith(_CONTENT):
        field = _field("content_items", column.name)
        return field is None or field.personal is not None
    named = [r.fields[column.name] for r in CATALOG.values() if column.name in r.fields]
    if named:
        return any(each.personal is not None for each in named)
    return column.type not in ("BOOLEAN", *_COUNTS)


def _is_made_personal(column: FileColumn, made_of: tuple[tuple[str, str], ...]) -> bool:
    if any(name == RECORD or name in OWN.get(table, ()) for table, name in made_of):
        return True
    found = (_field(table.partition(".")[2], name) for table, name in made_of)
    fields = [each for each in found if each is not None]
    personal = [each for each in fields if each.personal is not None]
    if any(each.name in FEES for each in fields):
        personal = [e for e in personal if e.personal != "pay" or e.name == column.name]
    if not personal:
        return False
    if any(each.name == column.name or each.kind is Kind.VALUES for each in personal):
        # The field itself, or something of an object whose parts nobody has declared.
        return True
    if column.type == "BOOLEAN":
        return False
    if not column.type.startswith(_FIGURES):
        return True
    # A figure of a group is nobody's, and one that is made of texts tells nothing of what stood in
    # them; one that is made of somebody's pay or birthday may be it.
    is_grouped = column.table.startswith(_GROUPED)
    has_figures = any(e.personal == "pay" or e.kind is Kind.DATE for e in personal)
    return has_figures and not is_grouped


def origins_of(project: Project) -> Origins:
    """The source columns of each column of each model.

    Known parts of a record have none, and the views of content types are not in it.
    """
    shapes = describe(project)
    traced = lineage(project, shapes)
    return {
        model.table: {
            each.name: traced.origins(model.table, each.name, without=PARTS)
            for each in shapes.get(model.table, ())
        }
        for model in project.models.values()
    }


# -- Own models ------------------------------------------------------------------------------------
# What a user's model makes of personal fields is found by lineage, as for all models. Beyond that
# it may read anything, so that text is masked until the user's schema file declares its column.


@dataclass(frozen=True, slots=True)
class Undeclared:
    """Something that the user's schema files do not say of a model, or of a column of it.

    `column` is None for a model without an entry. `is_masked`: the column counts as personal.
    """

    table: str
    column: str | None
    file: Path
    is_masked: bool
    is_listed: bool = False

    @property
    def sentence(self) -> str:
        """What is missing, and what it leads to."""
        if self.column is None:
            return f"{self.table} has no entry in a schema.yml beside {self.file}."
        name = f"{self.table}.{self.column}"
        if self.is_listed:
            return (
                f"{name} counts as personal and is masked with publish_personal = drop or hash,"
                f" because what it is made of is not known ({self.file}). If it is not personal,"
                " declare it with 'meta: {personal: false}'."
            )
        masked = (
            " It counts as personal and is masked with publish_personal = drop or hash."
            if self.is_masked
            else ""
        )
        return f"{name} ({self.file}) is not declared in a schema.yml.{masked}"


def undeclared(project: Project) -> tuple[Undeclared, ...]:
    """Return what the user's schema files do not say, in building order."""
    own = [each for each in project.nodes if isinstance(each, Model) and each.is_own]
    if not own:
        return ()
    shapes, hidden = describe(project), hidden_columns(project)
    found: list[Undeclared] = []
    for model in own:
        if model.declared is None:
            found.append(Undeclared(model.table, None, model.path, is_masked=False))
        for each in shapes.get(model.table, ()):
            is_masked = (model.table, each.name) in hidden
            is_listed = each.name in model.texts
            if not is_listed or (is_masked and not model.personal.get(each.name)):
                found.append(Undeclared(model.table, each.name, model.path, is_masked, is_listed))
    return tuple(found)


def hidden_columns(project: Project) -> frozenset[tuple[str, str]]:
    """Return table and column of each column that is masked whatever its origins are.

    These are columns declared as `meta: {personal: true}`. Of a user's models they are also text
    that no schema file declares, and whatever has an origin that is not known, unless it is
    declared as `meta: {personal: false}`.
    """
    shapes = describe(project)
    traced = lineage(project, shapes)
    found = set[tuple[str, str]]()
    for model in project.models.values():
        for each in shapes.get(model.table, ()):
            said = model.personal.get(each.name)
            is_text = model.is_own and not _is_figure(each.type) and each.name not in model.texts
            is_unknown = (
                model.is_own
                and said is None
                and each.type != "BOOLEAN"
                and not traced.is_known(model.table, each.name)
            )
            if said or is_text or is_unknown:
                found.add((model.table, each.name))
    return frozenset(found)


def _is_figure(type: str) -> bool:
    """Return True for a type that holds no text: a number, a date, a truth value."""
    return type == "BOOLEAN" or (type.startswith(_FIGURES) and not type.endswith("]"))


# -- Copy ------------------------------------------------------------------------------------------

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
        """As the settings say; None for all. Raises `SettingsError` without a hash key."""
        without = settings.publish_without.value
        if settings.publish_personal.value == "keep" and not without:
            return None
        return cls(settings.publish_personal.value, settings.hash_key(), without)


@dataclass(frozen=True, slots=True)
class _DraftTable:
    """Table or view of the draft, with its columns in order and all comments."""

    name: str
    comment: str | None
    columns: Mapping[FileColumn, str | None]


def write_masked(draft: Path, copy: Path, mask: Mask, project: Project | None) -> None:
    """Write the copy, which must not be there yet; the draft stays as it is.

    `project` are the models in it. Raises `DiskFull` or another `WarehouseError`.
    """
    origins: Origins = {}
    hidden = frozenset[tuple[str, str]]()
    if project is not None and mask.personal != "keep":
        origins, hidden = origins_of(project), hidden_columns(project)
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
                _copy_table(connection, table, mask, origins, hidden)
        connection.execute("CHECKPOINT masked")
        connection.execute("DETACH masked")


def _copy_table(
    connection: duckdb.DuckDBPyConnection,
    table: _DraftTable,
    mask: Mask,
    origins: Origins,
    hidden: Collection[tuple[str, str]],
) -> None:
    shown: list[str] = []
    comments: dict[str, str | None] = {}
    for column, comment in table.columns.items():
        name = quoted(column.name)
        is_hidden = (column.table, column.name) in hidden or is_personal(column, origins)
        if mask.personal == "keep" or not is_hidden:
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


def _tables(connection: duckdb.DuckDBPyConnection) -> Iterator[_DraftTable]:
    """Every table and view of the draft."""
    of_draft = "database_name = current_database() AND NOT internal"
    comments = connection.execute(
        f"SELECT schema_name || '.' || table_name, comment FROM duckdb_tables() WHERE {of_draft} "
        f"UNION ALL SELECT schema_name || '.' || view_name, comment FROM duckdb_views() "
        f"WHERE {of_draft} ORDER BY ALL"
    ).fetchall()
    columns: dict[str, dict[FileColumn, str | None]] = {}
    for table, name, type, comment in connection.execute(
        "SELECT schema_name || '.' || table_name, column_name, data_type, comment "
        f"FROM duckdb_columns() WHERE {of_draft} ORDER BY schema_name, table_name, column_index"
    ).fetchall():
        columns.setdefault(table, {})[FileColumn(table, name, type)] = comment
    for table, comment in comments:
        yield _DraftTable(table, comment, columns.get(table, {}))


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
