"""The text of every column: written once in a schema file, or inherited from what it passes on.

A landed column's text stands in the API's declaration, and its comment in the file bears it. A
column that only passes another one on, lineage says, means what that one means.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from connector.errors import ModelInvalid
from connector.models.declared import Documented, Model
from connector.models.describe import Shapes
from connector.models.lineage import Lineage, lineage
from connector.models.project import Project


def column_texts(project: Project, shapes: Shapes) -> dict[str, dict[str, str]]:
    """The text of each column by its table, as far as there is one, for all tables known."""
    texts: dict[str, dict[str, str]] = {
        table: {each.name: each.comment for each in columns} for table, columns in shapes.items()
    }
    for source in project.sources.values():
        texts.setdefault(source.table, {}).update(_written(source.columns))
    for seed in project.seeds.values():
        texts[seed.table] = {each.name: each.description for each in seed.columns}
    traced = lineage(project, shapes)
    for name in project.order:
        if name in project.models:
            model = project.models[name]
            columns = [each.name for each in shapes.get(model.table, ())]
            texts[model.table] = _texts_of(model, columns, traced, texts)
    return texts


def _written(columns: Mapping[str, Documented]) -> dict[str, str]:
    return {each.name: each.description for each in columns.values() if each.description}


def _texts_of(
    model: Model, columns: list[str], traced: Lineage, texts: Mapping[str, Mapping[str, str]]
) -> dict[str, str]:
    found = _written(model.columns)
    for name in columns:
        if name not in found:
            passed_on = traced.plain_parents(model.table, name)
            inherited = {texts.get(table, {}).get(column, "") for table, column in passed_on}
            # Parts of a union may mean different things, and then neither's text is right.
            if len(inherited) == 1:
                found[name] = inherited.pop()
    return {name: found[name] for name in columns if found.get(name)}


def undescribed(project: Project, shapes: Shapes) -> tuple[str, ...]:
    """The columns of seeds and models, as `schema.table.column`, that no text describes."""
    texts = column_texts(project, shapes)
    return tuple(
        f"{table}.{column.name}"
        for name in project.order
        for table in (project.node(name).table,)
        for column in shapes.get(table, ())
        if not texts[table].get(column.name)
    )


def check_columns(project: Project, shapes: Shapes) -> None:
    """Raise `ModelInvalid` for a test or a text of a column that is not there."""
    for path, line, what, table, column in _asked(project):
        there = {each.name for each in shapes.get(table, ())}
        if there and column not in there:
            raise ModelInvalid(
                f"{what} is of the column {column}, and {table} has none of that name",
                path=path,
                line=line,
                action=f"Name one of its columns: {', '.join(sorted(there))}.",
            )


def _asked(project: Project) -> Iterator[tuple[Path, int, str, str, str]]:
    """Every column that a schema file names: where, what for, its table, its name."""
    for test in project.tests:
        place = test.place
        yield place.path, place.line, f"the test {test.name}", test.table, test.column
        if test.to is not None and test.field is not None:
            yield place.path, place.line, f"the test {test.name}", test.to, test.field
    for model in project.models.values():
        if model.place is not None:
            for column in model.columns:
                yield model.place.path, model.place.line, "a text", model.table, column
