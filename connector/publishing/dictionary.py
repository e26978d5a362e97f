"""The dictionary of everything in a published file, `docs/DATA.md`.

Every table and column with its type, its meaning and what it is made of. Nothing is described
here: landed fields are described in the API's declaration, the connector's own columns where they
are made, models and seeds in their schema files. A test holds the page equal to them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from connector.catalog import CATALOG
from connector.publishing.columns import check_columns, column_texts, describe, empty_warehouse
from connector.publishing.lineage import Column, Lineage
from connector.publishing.project import ColumnType, Kind, Model, Project
from connector.publishing.project_loader import load_project
from connector.warehouse.schema import HISTORY_COLUMNS, PARTS_TABLE

# -- Inventory -------------------------------------------------------------------------------------
# Everything that catalogs and commands show of a project, found without any data.


@dataclass(frozen=True, slots=True)
class ColumnDescription:
    """Column: its type, its text (empty where it has none), and what it is made of.

    `parents` are the columns that it is made of directly, `origins` those of source tables and
    seeds that it is made of in the end.
    """

    name: str
    type: str
    about: str
    parents: tuple[Column, ...]
    origins: tuple[Column, ...]


@dataclass(frozen=True, slots=True)
class ModelDescription:
    """Seed or model: what its rows are, and what it is made of. A seed has no grain."""

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
        """The name with its schema, as a query has it."""
        return f"{self.schema}.{self.name}"


def inventory_of(project: Project) -> tuple[ModelDescription, ...]:
    """Every seed and model, in building order.

    Raises a `ModelError` where a model cannot be built even over empty tables, or where a test or
    a text is of a column that is not there.
    """
    shapes = describe(project)
    check_columns(project, shapes)
    texts = column_texts(project, shapes)
    traced = Lineage(project, shapes)
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
                    name=each.name,
                    type=each.type,
                    about=texts[node.table].get(each.name, ""),
                    parents=traced.parents(node.table, each.name),
                    origins=traced.origins(node.table, each.name),
                )
                for each in shapes[node.table]
            ),
        )
        for node in project.nodes
    )


# -- Page ------------------------------------------------------------------------------------------

_ORIGINS_MAX = 4
"""How many columns are named that one is made of; the rest are counted."""

_SCHEMAS = {
    "marts": "Tables for analysts, one per model. Tables named `dim_...` describe people, jobs and"
    " companies, `fct_...` have one row per fact, and `sum_...` one row per group.",
    "staging": "Views of the loaded records that are not deleted. Undocumented fields that the API"
    " sends are columns of `staging.RESOURCE_extra`, for example `staging.candidates_extra`: its"
    " `id` is the record's, and each type is that of the values received so far. Masking keeps"
    " only their true and false values. Own models read these fields from `_record`.",
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


def text() -> str:
    """The page, whole."""
    project = load_project()
    shapes = describe(project)
    texts = column_texts(project, shapes)
    traced = Lineage(project, shapes)
    with empty_warehouse() as connection:
        comments = dict(
            connection.execute(
                "SELECT schema_name || '.' || table_name, comment FROM duckdb_tables()"
            ).fetchall()
        )
    for node in project.nodes:
        # Each part of a model's contract stands on a line of its own.
        end = "  \n" if isinstance(node, Model) else "\n"
        comments[node.table] = end.join(node.about.strip().splitlines())
    tables = {s: [each for each in shapes if each.split(".")[0] == s] for s in _SCHEMAS}
    parts = [_HEAD, "\n| Schema | Tables |\n|---|---|\n"]
    for schema, named in tables.items():
        links = (f"[{t.split('.')[1]}](#{t.replace('.', '')})" for t in named)
        parts.append(f"| [{schema}](#{schema}) | {', '.join(links)} |\n")
    for schema, about in _SCHEMAS.items():
        parts.append(f"\n## {schema}\n\n{about}\n")
        for table in tables[schema]:
            parts.append(f"\n### {table}\n\n{_about(table, comments)}\n\n")
            parts += _rows(shapes[table], table, texts[table], traced)
    return "".join(parts)


def _about(table: str, comments: Mapping[str, str]) -> str:
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


def _rows(
    columns: tuple[ColumnType, ...], table: str, texts: Mapping[str, str], traced: Lineage
) -> Iterator[str]:
    schema = table.split(".", maxsplit=1)[0]
    is_model = schema in ("staging", "marts")
    own = {each.name for each in HISTORY_COLUMNS}
    yield "| Column | Type | Meaning | Made of |\n" if is_model else "| Column | Type | Meaning |\n"
    yield "|---|---|---|---|\n" if is_model else "|---|---|---|\n"
    for each in columns:
        if schema == "history" and each.name not in own:
            continue
        meaning = " ".join(texts.get(each.name, "").split()).replace("|", "\\|")
        made_of = f" {_made_of(traced, table, each.name)} |" if is_model else ""
        yield f"| `{each.name}` | {each.type} | {meaning} |{made_of}\n"


def _made_of(traced: Lineage, table: str, column: str) -> str:
    """The source columns that a column is made of in the end, the first few by name."""
    origins = [f"`{'.'.join(each)}`" for each in traced.origins(table, column)]
    named, more = origins[:_ORIGINS_MAX], len(origins) - _ORIGINS_MAX
    return ", ".join(named) + (f" and {more} more" if more > 0 else "")
