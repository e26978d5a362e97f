"""dbt builds the same tables as the runner, from the same project and data.

dbt has a separate environment ('make referee'), since its dependencies conflict with the tests'.
Because dbt is slow, it runs once, with few records; `FAULTS=all` takes as many as the
demonstration has. The seeds are the copies that a user gets to fill in.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pytest

from connector.cli import demo
from connector.models.project import SHIPPED_FOLDER, load_project
from connector.models.seeds import find_unmapped, write_seed_copies
from connector.pulls.run import pull
from connector.sandbox.server import Sandbox
from connector.settings import load_settings
from connector.state.database import Database
from connector.warehouse.file import open_file
from connector.warehouse.publish import make_draft
from connector.warehouse.warehouse import Warehouse
from tests.models.account import build_file
from tests.models.demonstration import FEW
from tests.repository import ROOT
from tests.support.command import variables
from tests.support.kill_points import IS_ALL

DBT = ROOT / ".venv-referee" / "bin" / "dbt"

COUNTS = demo.COUNTS if IS_ALL else FEW
"""Number of records per resource. With FAULTS=all, they are those of the demonstration."""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not DBT.exists(), reason="no dbt: 'make referee' installs it"),
]


@dataclass(frozen=True)
class RunnerAndDbtBuilds:
    """Two attached database files: models built by the runner, and the same models built by dbt."""

    connection: duckdb.DuckDBPyConnection
    runner: str
    dbt: str
    folder: Path

    def list_tables(self, catalog: str) -> set[tuple[str, str, str]]:
        """Return schema, name and type (table or view) of everything that was built in a file."""
        found = self.connection.execute(
            "SELECT table_schema, table_name, table_type FROM information_schema.tables "
            "WHERE table_catalog = ? AND table_schema IN ('seeds', 'staging', 'marts')",
            [catalog],
        ).fetchall()
        return set(found)

    def list_columns(self, catalog: str) -> list[tuple[str, ...]]:
        """Return schema, table, column and data type of every built column in a file."""
        return self.connection.execute(
            "SELECT table_schema, table_name, column_name, data_type "
            "FROM information_schema.columns WHERE table_catalog = ? "
            "AND table_schema IN ('seeds', 'staging', 'marts') ORDER BY ALL",
            [catalog],
        ).fetchall()

    def count_differing_rows(self, table: str, columns: str = "*") -> int:
        """Return the number of rows of a table that only one of the files has."""
        one, other = (f"SELECT {columns} FROM {file}.{table}" for file in (self.runner, self.dbt))
        found = self.connection.execute(
            f"SELECT count(*) FROM (({one} EXCEPT ALL {other}) "
            f"UNION ALL ({other} EXCEPT ALL {one}))"
        ).fetchone()
        assert found is not None
        return int(found[0])


@pytest.fixture(scope="module")
def both_builds(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunnerAndDbtBuilds]:
    """One pulled agency with its models built by the runner and by dbt."""
    folder = tmp_path_factory.mktemp("referee")
    work = pull_agency(folder / "data")
    mine, other = folder / "mine.duckdb", folder / "other.duckdb"
    shutil.copy(work, mine)
    build_file(mine, load_project())
    project = load_project()
    with open_file(mine) as connection:
        unmapped = find_unmapped(connection, project)
    assert write_seed_copies(folder / "seeds", unmapped, project)
    shutil.copy(work, mine)
    shutil.copy(work, other)
    assert () == build_file(mine, load_project(seeds=folder / "seeds")).failed("error")
    _run_dbt(folder, other)
    with duckdb.connect(":memory:") as connection:
        # Views that dbt made hold the file's name, so each is attached under its own.
        for each in (mine, other):
            connection.execute(f"ATTACH '{each}' AS {each.stem} (READ_ONLY)")
        connection.execute("SET TimeZone = 'UTC'")
        yield RunnerAndDbtBuilds(connection, mine.stem, other.stem, folder)


def pull_agency(folder: Path) -> Path:
    """Pull a generated agency into the folder; return a file with the tables that models read."""
    with Sandbox(counts=COUNTS, rate_limit=60_000) as sandbox:
        settings = load_settings(
            {}, variables(sandbox.base_url, folder, sandbox.key), folder.parent
        )
        assert 0 == asyncio.run(pull(settings, ())).exit_status
    draft = folder / "unbuilt.duckdb"
    with Database(folder) as database:
        make_draft(Warehouse(folder), draft, database, settings.billing_day)
    return draft


def _run_dbt(folder: Path, file: Path) -> None:
    """Build and test a copy of the shipped project with dbt in the file.

    The seeds are the copies that `connector models seeds --write` makes, not filled in.
    """
    project = folder / "project"
    shutil.copytree(SHIPPED_FOLDER, project)
    shutil.copytree(folder / "seeds", project / "seeds", dirs_exist_ok=True)
    done = subprocess.run(
        [*(str(DBT), "build"), *("--project-dir", str(project), "--profiles-dir", str(project))],
        env={**os.environ, "RECRUITMENT_FILE": str(file), "DO_NOT_TRACK": "1"},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert 0 == done.returncode, done.stdout[-3000:]


def test_the_runner_and_dbt_create_the_same_tables_and_columns(
    both_builds: RunnerAndDbtBuilds,
) -> None:
    assert both_builds.list_tables(both_builds.runner) == both_builds.list_tables(both_builds.dbt)
    assert both_builds.list_columns(both_builds.runner) == both_builds.list_columns(both_builds.dbt)
    assert 3 == sum(
        name.startswith("content_")
        for s, name, _ in both_builds.list_tables(both_builds.runner)
        if s == "marts"
    )


def test_the_runner_and_dbt_create_equal_rows(both_builds: RunnerAndDbtBuilds) -> None:
    tables = [
        f"{schema}.{name}"
        for schema, name, _ in sorted(both_builds.list_tables(both_builds.runner))
    ]
    people = both_builds.connection.execute(
        f"SELECT count(*) FROM {both_builds.runner}.marts.dim_candidates"
    ).fetchall()

    assert dict.fromkeys(tables, 0) == {
        table: both_builds.count_differing_rows(table) for table in tables
    }
    assert [(COUNTS["candidates"],)] == people
