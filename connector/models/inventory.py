"""Everything that catalogs, documents and commands show of a project, found without any data."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from connector.models.describe import describe
from connector.models.lineage import Named, lineage
from connector.models.project import Project
from connector.models.result import Kind
from connector.models.texts import check_columns, column_texts


@dataclass(frozen=True, slots=True)
class ColumnShown:
    """A column: its type, its text (empty where it has none), the columns that it is made of
    directly, and those of source tables and seeds that it is made of in the end.
    """

    name: str
    type: str
    about: str
    parents: tuple[Named, ...]
    origins: tuple[Named, ...]


@dataclass(frozen=True, slots=True)
class Shown:
    """A seed or model: what its rows are, and what it is made of. A seed has no grain."""

    name: str
    schema: str
    kind: Kind
    grain: str
    about: str
    file: Path
    made_of: tuple[str, ...]
    sources: tuple[str, ...]
    columns: tuple[ColumnShown, ...]

    @property
    def table(self) -> str:
        """The name with its schema, as a query has it."""
        return f"{self.schema}.{self.name}"


def inventory_of(project: Project) -> tuple[Shown, ...]:
    """Every seed and model, in building order.

    Raises a `ModelError` where a model cannot be built even over empty tables, or where a test or
    a text is of a column that is not there.
    """
    shapes = describe(project)
    check_columns(project, shapes)
    texts = column_texts(project, shapes)
    traced = lineage(project, shapes)
    shown = []
    for name in project.order:
        node, model = project.node(name), project.models.get(name)
        columns = tuple(
            ColumnShown(
                name=each.name,
                type=each.type,
                about=texts[node.table].get(each.name, ""),
                parents=traced.parents(node.table, each.name),
                origins=traced.origins(node.table, each.name),
            )
            for each in shapes[node.table]
        )
        shown.append(
            Shown(
                name=name,
                schema=node.schema,
                kind="seed" if model is None else model.materialized,
                grain="" if model is None else model.grain,
                about=project.seeds[name].sentence if model is None else model.about,
                file=node.path,
                made_of=project.parents[name],
                sources=() if model is None else project.sources_of(model),
                columns=columns,
            )
        )
    return tuple(shown)
