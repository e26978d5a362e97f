"""The website's list of every table and column of a published file, on the page of the marts."""

from __future__ import annotations

from collections.abc import Iterator

from connector.catalog import CATALOG
from connector.models.project import load_project
from connector.models.runner import describe
from connector.warehouse.publish import STATE_TABLES
from connector.warehouse.schema import HISTORY_COLUMNS, PARTS_TABLE, Column, declared_tables
from generate.files import Texts, read_or_empty

_SCHEMAS = {
    "marts": "Tables for analysts, one per model. Tables named `dim_...` describe people, jobs and"
    " companies, `fct_...` have one row per fact, and `sum_...` one row per group.",
    "staging": "Views of the loaded records that are not deleted. Fields that the"
    " API sends and the catalog does not name are in `_record` of `landing`.",
    "seeds": "Values that the API does not have: your csv files in the folder `seeds` of the data"
    " folder.",
    "landing": "The API's records as last read: one row per `id`, including deleted records.",
    "history": "Every version of every record that was read, with the time from which it was"
    " valid.",
    "sync": "Runs with their outcomes and requests, and the time up to which each resource is "
    "verified.",
    "push": "Rows of pushed spreadsheets, with their outcomes.",
}
_PAGE = "docs/MARTS.md"
_HEAD = """
## Tables and columns

The same texts are comments in the file: `select * from duckdb_columns()`. All times are in UTC.
"""


def data_page() -> Texts:
    """Return the page, followed by the current tables, columns and descriptions."""
    project = load_project()
    columns = describe(project)
    abouts = {each.name: each.about for each in (*declared_tables(), *STATE_TABLES)}
    # Each part of a model's contract is on a separate line.
    ends = {node.table: "\n" if node.kind == "seed" else "  \n" for node in project.nodes.values()}
    for each in project.nodes.values():
        abouts[each.table] = each.entry.description.replace("\n", ends[each.table])
    tables = {s: [each for each in columns if each.split(".")[0] == s] for s in _SCHEMAS}
    parts = [read_or_empty(_PAGE), _HEAD, "\n| Schema | Tables |\n|---|---|\n"]
    for schema, named in tables.items():
        links = (f"[{t.split('.')[1]}](#{t.replace('.', '')})" for t in named)
        parts.append(f"| [{schema}](#{schema}) | {', '.join(links)} |\n")
    for schema, about in _SCHEMAS.items():
        parts.append(f"\n### {schema}\n\n{about}\n")
        for table in tables[schema]:
            parts.append(f"\n#### {table}\n\n{_about(table, abouts[table])}\n\n")
            parts += _rows(table, columns[table])
    return {_PAGE: "".join(parts)}


def _about(table: str, about: str) -> str:
    """Return the paragraph that introduces a table."""
    schema, name = table.split(".")
    if schema == "landing" and name != PARTS_TABLE:
        return f"{about} Read from `{CATALOG[name].path or name}` of the API."
    if schema == "history":
        return (
            f"All versions of the records of `landing.{name}`. The table has the documented columns"
            f" of `landing.{name}` and the columns below."
        )
    return about


def _rows(table: str, columns: tuple[Column, ...]) -> Iterator[str]:
    """Yield the lines of the Markdown table of columns."""
    own = {each.name for each in HISTORY_COLUMNS}
    yield "| Column | Type | Meaning |\n|---|---|---|\n"
    for each in columns:
        if not table.startswith("history.") or each.name in own:
            meaning = " ".join(each.comment.split()).replace("|", "\\|")
            yield f"| `{each.name}` | {each.type} | {meaning} |\n"
