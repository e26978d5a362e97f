"""Builds a project in one DuckDB file: seeds, views, tables, comments, tests and audits.

Each model is built in a transaction of its own: what fails leaves what stood before.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import duckdb

from connector.publishing.checks import Check, checks_of, run_checks
from connector.publishing.folder import CONTENT_VIEWS
from connector.publishing.lineage import Shapes, check_columns, column_texts, read_shapes
from connector.publishing.project import (
    Building,
    Built,
    Checked,
    Materialized,
    Model,
    ModelBuilt,
    Project,
    Seed,
    naming_line,
)
from connector.publishing.seeds import make_content_views, make_table
from connector.warehouse.duckdb_file import literal, naming_errors, opened, quoted, transaction

# -- Comments --------------------------------------------------------------------------------------
# Comments on what was built, from the texts of the schema files, written in one batch.


Texts = Mapping[str, Mapping[str, str]]
"""The text of each column, by its table."""


def write_comments(
    connection: duckdb.DuckDBPyConnection,
    project: Project,
    names: Iterable[str],
    texts: Texts,
    shapes: Shapes,
) -> int:
    """Comment the tables and views and their columns, and return how many comments there are."""
    statements = [each for name in names for each in _statements(project, name, texts, shapes)]
    if statements:
        connection.execute(";\n".join(statements))
    return len(statements)


def _statements(project: Project, name: str, texts: Texts, shapes: Shapes) -> Iterator[str]:
    node = project.node(name)
    is_seed = name in project.seeds
    about = project.seeds[name].sentence if is_seed else project.models[name].about
    is_view = not is_seed and project.models[name].materialized == "view"
    yield f"COMMENT ON {'VIEW' if is_view else 'TABLE'} {node.table} IS {literal(about)}"
    for column in shapes[node.table]:
        text = texts.get(node.table, {}).get(column.name)
        if text:
            yield f"COMMENT ON COLUMN {node.table}.{quoted(column.name)} IS {literal(text)}"


# -- Build -----------------------------------------------------------------------------------------
#


_EARLIER = "earlier"


def build(
    file: Path,
    project: Project,
    *,
    select: Sequence[str] = (),
    carry_from: Path | None = None,
    watch: Building | None = None,
) -> Built:
    """Build seeds, views and tables in `file`, comment them, and run their tests and audits.

    With `select`, what it means is built, and nothing else; or, where `carry_from` names an
    earlier file, everything stands afterwards: views and seeds are made anew, since they are
    cheap, and a table that was not selected is copied from that file if it has it with the same
    columns, and built if not. Checks that would compare a copied table with a new one are left
    out, as the two are of different moments.

    Raises a `ModelError` that names file and line where a model cannot be built, and a
    `WarehouseError` for a file that cannot be used.
    """
    selected = project.selected(select)
    names = project.order if carry_from else selected
    with opened(file) as connection, _attached(connection, carry_from) as earlier:
        if watch is not None:
            watch.planned(len(names), len(checks_of(project, names)))
        work = _Building(connection, project, selected, earlier, watch)
        built = tuple(work.build(name) for name in names)
        if CONTENT_VIEWS in names:
            make_content_views(connection, project)
        shapes = read_shapes(connection)
        check_columns(project, shapes)
        texts = column_texts(project, shapes)
        with transaction(connection):
            write_comments(connection, project, names, texts, shapes)
        carried = frozenset(each.name for each in built if each.is_carried)
        checks = _comparable(project, names, carried)
        checked = tuple(run_checks(connection, project, checks, shapes, watch))
        connection.execute("CHECKPOINT")
    return Built(built, checked)


def check(
    file: Path, project: Project, *, select: Sequence[str] = (), watch: Building | None = None
) -> tuple[Checked, ...]:
    """Run the tests and audits of what `select` means in a file that was built, and change
    nothing in it.

    Raises a `ModelError` for a check that cannot be run, and a `WarehouseError`.
    """
    checks = checks_of(project, project.selected(select))
    if watch is not None:
        watch.planned(0, len(checks))
    with naming_errors(file), duckdb.connect(str(file), read_only=True) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        shapes = read_shapes(connection)
        check_columns(project, shapes)
        return tuple(run_checks(connection, project, checks, shapes, watch))


@contextmanager
def _attached(connection: duckdb.DuckDBPyConnection, path: Path | None) -> Iterator[Shapes]:
    """The earlier file beside the new one for the body's duration; the columns of its tables."""
    if path is None or not path.exists():
        yield {}
        return
    connection.execute(f"ATTACH {literal(str(path))} AS {_EARLIER} (READ_ONLY)")
    try:
        yield read_shapes(connection, _EARLIER)
    finally:
        connection.execute(f"DETACH {_EARLIER}")


def _comparable(
    project: Project, names: Collection[str], carried: frozenset[str]
) -> tuple[Check, ...]:
    """The checks whose tables are all there and of one moment: all copied, or none."""
    return tuple(
        each
        for each in checks_of(project, names)
        if (read := project.reads(each)) <= set(names)
        if not read & carried or read <= carried
    )


class _Building:
    """One build under way; `earlier` are the columns of the tables that may be copied."""

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        project: Project,
        selected: Collection[str],
        earlier: Shapes,
        watch: Building | None,
    ) -> None:
        self._connection, self._project = connection, project
        self._selected, self._earlier, self._watch = frozenset(selected), earlier, watch
        self._kinds = _kinds(connection)

    def build(self, name: str) -> ModelBuilt:
        """Build one seed or model, or copy it."""
        if self._watch is not None:
            self._watch.building(name)
        began = time.monotonic()
        node = self._project.node(name)
        is_carried = False
        with transaction(self._connection):
            self._connection.execute(f"CREATE SCHEMA IF NOT EXISTS {quoted(node.schema)}")
            if isinstance(node, Seed):
                rows: int | None = make_table(self._connection, node)
            else:
                is_carried = self._may_copy(node)
                rows = self._make(node, is_carried)
        done = ModelBuilt(
            name=name,
            schema=node.schema,
            kind="seed" if isinstance(node, Seed) else node.materialized,
            rows=rows,
            seconds=time.monotonic() - began,
            is_carried=is_carried,
        )
        if self._watch is not None:
            self._watch.built(done)
        return done

    def _may_copy(self, model: Model) -> bool:
        """Whether the model was not asked for, and the earlier file has it as it would be made."""
        there = self._earlier.get(model.table)
        if there is None or model.name in self._selected or model.materialized == "view":
            return False
        with naming_line(model.path, f"{model.name} cannot be built"):
            made = self._connection.execute(f"DESCRIBE {self._sql(model)}").fetchall()
        return [(each[0], each[1]) for each in made] == [(c.name, c.type) for c in there]

    def _make(self, model: Model, is_carried: bool) -> int | None:
        kind = model.materialized.upper()
        made = f"FROM {_EARLIER}.{model.table}" if is_carried else self._sql(model)
        with naming_line(model.path, f"{model.name} cannot be built"):
            self._drop_other_kind(model)
            self._connection.execute(f"CREATE OR REPLACE {kind} {model.table} AS {made}")
        if model.materialized == "view":
            return None
        found = self._connection.execute(f"SELECT count(*) FROM {model.table}").fetchone()
        assert found is not None
        return int(found[0])

    def _sql(self, model: Model) -> str:
        return self._project.sql(model.template)

    def _drop_other_kind(self, model: Model) -> None:
        """Drop a view where a table will be, or the other way round: neither replaces the other."""
        there = self._kinds.get(model.table)
        if there not in (None, model.materialized):
            self._connection.execute(f"DROP {there} {model.table}")


def _kinds(connection: duckdb.DuckDBPyConnection) -> dict[str, Materialized]:
    """What stands in the file already, by `schema.table`."""
    found = connection.execute(
        "SELECT table_schema || '.' || table_name, table_type FROM information_schema.tables "
        "WHERE table_catalog = current_database()"
    ).fetchall()
    return {name: "view" if kind == "VIEW" else "table" for name, kind in found}
