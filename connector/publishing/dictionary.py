"""Generates `docs/DATA.md`, the dictionary of all tables and columns in a published file.

It contains every table and column with its type and its meaning. The descriptions come from the
catalog, from the connector's own tables, and from the schema files of models and seeds. A test
compares the page with them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from connector.catalog import CATALOG
from connector.publishing.columns import (
    check_columns,
    column_descriptions,
    describe_project,
    empty_warehouse,
)
from connector.publishing.project import Kind, Model, Project
from connector.publishing.project_loader import load_project
from connector.warehouse.schema import HISTORY_COLUMNS, PARTS_TABLE, Column

# -- Inventory -------------------------------------------------------------------------------------
# Descriptions of a project for catalogs and commands, computed without data.


@dataclass(frozen=True, slots=True)
class ColumnDescription:
    """Column with its type and its description, which may be empty."""

    name: str
    type: str
    about: str


@dataclass(frozen=True, slots=True)
class ModelDescription:
    """Seed or model with its columns.

    `made_of` are the seeds and models that it reads, `sources` the loaded tables. A seed has no
    grain.
    """

    name: str
    schema: str
    kind: Kind
    grain: str
    about: str
    file: Path
    made_of: tuple[str, ...]
    sources: tuple[str, ...]
    columns: tuple[ColumnDescription, ...]

    @property
    def table(self) -> str:
        """Name with the schema, as in a query."""
        return f"{self.schema}.{self.name}"


def describe_models(project: Project) -> tuple[ModelDescription, ...]:
    """Return a description of every seed and model, in building order, without data.

    Raises a `ModelError` if a model cannot be built over empty tables, or if a schema file names a
    column that does not exist.
    """
    table_columns = describe_project(project)
    check_columns(project, table_columns)
    texts = column_descriptions(project, table_columns)
    return tuple(
        ModelDescription(
            name=node.name,
            schema=node.schema,
            kind=node.kind,
            grain=node.grain,
            about=node.about,
            file=node.path,
            made_of=project.parents[node.name],
            sources=node.query.sources if isinstance(node, Model) else (),
            columns=tuple(
                ColumnDescription(
                    name=each.name, type=each.type, about=texts[node.table].get(each.name, "")
                )
                for each in table_columns[node.table]
            ),
        )
        for node in project.nodes
    )


# -- Page ------------------------------------------------------------------------------------------

_SCHEMAS = {
    "marts": "Tables for analysts, one per model. Tables named `dim_...` describe people, jobs and"
    " companies, `fct_...` have one row per fact, and `sum_...` one row per group.",
    "staging": "Views of the loaded records that are not deleted. Fields that the"
    " API sends and the catalog does not name are in `_record` of `landing`.",
    "seeds": "Values that the API does not have: your csv files in the folder `seeds` of the data"
    " folder.",
    "landing": "The API's records as last read: one row per `id`, including deleted records.",
    "history": "Every observed version of every record, with the time from which it was valid.",
    "sync": "Runs with their outcomes and requests, and the time up to which each resource is "
    "verified.",
    "push": "Rows of pushed spreadsheets, with their outcomes.",
}
_HEAD = """# Tables and columns

For analysts. Look up here every table and column of the published file, `recruitment.duckdb`.
[Query the published file](QUESTIONS.md) shows how to open it. The same texts are comments in the
file: `select * from duckdb_columns()`. All times are in UTC. Besides these tables, `marts` has one
view for each content type, `content_` and its slug, with a column for each field.
"""


def build_page() -> str:
    """Return the Markdown of docs/DATA.md."""
    project = load_project()
    table_columns = describe_project(project)
    texts = column_descriptions(project, table_columns)
    with empty_warehouse() as connection:
        comments = dict(
            connection.execute(
                "SELECT schema_name || '.' || table_name, comment FROM duckdb_tables()"
            ).fetchall()
        )
    for node in project.nodes:
        # Each part of a model's contract is on a separate line.
        end = "  \n" if isinstance(node, Model) else "\n"
        comments[node.table] = end.join(node.about.strip().splitlines())
    tables = {s: [each for each in table_columns if each.split(".")[0] == s] for s in _SCHEMAS}
    parts = [_HEAD, "\n| Schema | Tables |\n|---|---|\n"]
    for schema, named in tables.items():
        links = (f"[{t.split('.')[1]}](#{t.replace('.', '')})" for t in named)
        parts.append(f"| [{schema}](#{schema}) | {', '.join(links)} |\n")
    for schema, about in _SCHEMAS.items():
        parts.append(f"\n## {schema}\n\n{about}\n")
        for table in tables[schema]:
            parts.append(f"\n### {table}\n\n{_table_description(table, comments)}\n\n")
            parts += _table_lines(table_columns[table], table, texts[table])
    return "".join(parts)


def _table_description(table: str, comments: Mapping[str, str]) -> str:
    """Return the paragraph that introduces a table."""
    schema, name = table.split(".")
    if schema not in ("landing", "history"):
        return comments[table]
    if name == PARTS_TABLE:
        return "The fields of each content type."
    if schema == "landing":
        return f"{CATALOG[name].about} Read from `{CATALOG[name].path or name}` of the API."
    return (
        f"All versions of the records of `landing.{name}`. The table has the documented columns of "
        f"`landing.{name}` and the columns below."
    )


def _table_lines(
    columns: tuple[Column, ...], table: str, texts: Mapping[str, str]
) -> Iterator[str]:
    """Yield the lines of the Markdown table of columns."""
    schema = table.split(".", maxsplit=1)[0]
    own = {each.name for each in HISTORY_COLUMNS}
    yield "| Column | Type | Meaning |\n|---|---|---|\n"
    for each in columns:
        if schema == "history" and each.name not in own:
            continue
        meaning = " ".join(texts.get(each.name, "").split()).replace("|", "\\|")
        yield f"| `{each.name}` | {each.type} | {meaning} |\n"
