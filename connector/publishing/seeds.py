"""Seeds: small tables in csv files that people own and edit, read as their columns are declared.

A person's file may come from a spreadsheet program: a byte order mark and semicolons or tabs are
taken as they are. A row of which only the first cell is filled waits for somebody to fill in the
others, and is passed over. Empty cells are null.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb

from connector.catalog import CATALOG
from connector.errors import SeedInvalid
from connector.publishing.folder import CONTENT_VIEWS
from connector.publishing.project import Project, Seed, naming_line
from connector.warehouse.duckdb_file import literal, quoted, transaction
from connector.warehouse.schema import Column, columns

DELIMITERS = (",", ";", "\t")


@dataclass(frozen=True, slots=True)
class Rows:
    """A seed's file as read: each row with its line, in the order of the declared columns."""

    delimiter: str
    rows: tuple[tuple[int, tuple[str | None, ...]], ...]

    @property
    def filled(self) -> tuple[tuple[int, tuple[str | None, ...]], ...]:
        """The rows that are more than a value to fill in."""
        return tuple(
            (line, cells)
            for line, cells in self.rows
            if len(cells) == 1 or any(cell is not None for cell in cells[1:])
        )


def read_rows(seed: Seed) -> Rows:
    """Read a seed's file. Raises `SeedInvalid` with the line of what is wrong, and no value."""
    try:
        text = seed.path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise SeedInvalid(
            "is not UTF-8", path=seed.path, line=line, action="Save it as csv in UTF-8."
        ) from None
    except OSError as error:
        raise SeedInvalid(f"cannot be read: {error.strerror}", path=seed.path) from None
    wanted = [each.name for each in seed.columns]
    delimiter = _delimiter(text, wanted, seed.path)
    return Rows(delimiter, tuple(_rows(text, delimiter, len(wanted), seed.path)))


def _delimiter(text: str, wanted: Sequence[str], path: Path) -> str:
    first = text.partition("\n")[0].rstrip("\r")
    for each in DELIMITERS:
        if next(csv.reader([first], delimiter=each), []) == list(wanted):
            return each
    raise SeedInvalid(
        f"the headings are not those declared: {', '.join(wanted)}",
        path=path,
        line=1,
        action=f"Make the first line {','.join(wanted)}",
    )


def _rows(
    text: str, delimiter: str, columns: int, path: Path
) -> Iterator[tuple[int, tuple[str | None, ...]]]:
    reader = csv.reader(text.splitlines(keepends=True), delimiter=delimiter, strict=True)
    try:
        for cells in reader:
            if reader.line_num == 1 or not any(cells):
                continue
            if len(cells) != columns:
                problem = f"the row has {len(cells)} cells and not {columns}"
                raise SeedInvalid(problem, path=path, line=reader.line_num)
            yield reader.line_num, tuple(cell or None for cell in cells)
    except csv.Error as error:
        raise SeedInvalid(f"cannot be read: {error}", path=path, line=reader.line_num) from None


def make_table(connection: duckdb.DuckDBPyConnection, seed: Seed) -> int:
    """Make the seed's table anew, and return its rows. Raises `SeedInvalid`.

    Whoever calls it holds a transaction.
    """
    rows = read_rows(seed).filled
    texts = ", ".join(
        f"cells ->> {place} AS {quoted(each.name)}" for place, each in enumerate(seed.columns, 1)
    )
    # As one text: a list as a parameter makes DuckDB import libraries that nobody needs here.
    connection.execute(
        f"CREATE OR REPLACE TEMP TABLE seed_cells AS SELECT CAST(cells ->> 0 AS BIGINT) AS line, "
        f"{texts} FROM (SELECT unnest(CAST(? AS JSON[])) AS cells)",
        [json.dumps([[line, *cells] for line, cells in rows])],
    )
    for each in seed.columns:
        name, type = quoted(each.name), str(each.type)
        found = connection.execute(
            f"SELECT min(line) FROM seed_cells WHERE {name} IS NOT NULL "
            f"AND TRY_CAST({name} AS {type}) IS NULL"
        ).fetchone()
        if found is not None and found[0] is not None:
            problem = f"the cell of {each.name} is not of the type {type.lower()}"
            raise SeedInvalid(problem, path=seed.path, line=int(found[0]))
    read = ", ".join(
        f"CAST({quoted(c.name)} AS {c.type}) AS {quoted(c.name)}" for c in seed.columns
    )
    connection.execute(
        f"CREATE OR REPLACE TABLE {seed.table} AS SELECT {read} FROM seed_cells ORDER BY line"
    )
    connection.execute("DROP TABLE seed_cells")
    return len(rows)


def make_empty_table(connection: duckdb.DuckDBPyConnection, seed: Seed) -> None:
    """Make the seed's table anew, with its columns and no rows."""
    defined = ", ".join(f"{quoted(each.name)} {each.type}" for each in seed.columns)
    connection.execute(f"CREATE OR REPLACE TABLE {seed.table} ({defined})")


# -- Content ---------------------------------------------------------------------------------------
# One typed view per content type: the statements are rows of the model `content_views`.
#
# dbt makes the same views with a macro that runs the same statements (`macros/content_views.sql`).


_SCHEMA = "marts"
_PREFIX = "content_"
_PASSED_ON = frozenset(
    ("id", "title", "slug", "status", "published_at", "created_at", "updated_at")
)


def make_content_views(connection: duckdb.DuckDBPyConnection, project: Project) -> tuple[str, ...]:
    """Make the views anew, with comments, and return their names; none where the project asks for
    none. A view whose content type is gone goes as well.
    """
    if not project.makes_content_views:
        return ()
    model = project.models[CONTENT_VIEWS]
    with (
        naming_line(model.path, "the views of content types cannot be made"),
        transaction(connection),
    ):
        _drop_views(connection, project)
        made = connection.execute(
            f"SELECT view_name, type_name, statement FROM {model.table} ORDER BY view_name"
        ).fetchall()
        for name, type_name, statement in made:
            connection.execute(statement)
            _comment(connection, name, type_name or "", model.schema)
    return tuple(str(name) for name, _, _ in made)


def _drop_views(connection: duckdb.DuckDBPyConnection, project: Project) -> None:
    connection.execute(f"CREATE SCHEMA IF NOT EXISTS {_SCHEMA}")
    there = connection.execute(
        "SELECT view_name FROM duckdb_views() WHERE database_name = current_database() "
        "AND schema_name = ? AND starts_with(view_name, ?)",
        [_SCHEMA, _PREFIX],
    ).fetchall()
    for (name,) in there:
        if name not in project.models:
            connection.execute(f"DROP VIEW {_SCHEMA}.{quoted(name)}")


def _comment(connection: duckdb.DuckDBPyConnection, view: str, type_name: str, schema: str) -> None:
    """Comment the view and the columns of its fields with the names that people gave them."""
    table = f"{_SCHEMA}.{quoted(view)}"
    fields = connection.execute(
        f"SELECT c.column_name, c.field_name, c.help_text FROM {schema}.content_columns AS c "
        f"JOIN {schema}.content_names AS n USING (content_type_id) WHERE n.view_name = ?",
        [view],
    ).fetchall()
    about = f"Live content items of the type {type_name}, with a typed column for each field."
    statements = [f"COMMENT ON VIEW {table} IS {literal(about)}"]
    passed_on = [(each.name, each.comment, None) for each in _items_columns()]
    for column, field_name, help_text in (*passed_on, *fields):
        text = ": ".join(each for each in (field_name, help_text) if each)
        statements.append(f"COMMENT ON COLUMN {table}.{quoted(column)} IS {literal(text)}")
    connection.execute(";".join(statements))


def _items_columns() -> tuple[Column, ...]:
    """The columns of every such view that are those of the items."""
    return tuple(each for each in columns(CATALOG["content_items"]) if each.name in _PASSED_ON)
