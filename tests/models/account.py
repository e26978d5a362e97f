"""An account that was never pulled, with jobs in its landing and a small project of models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from connector.models import publish as publishing
from connector.models.project import Project, load_project
from connector.models.publish import PublishResult, publish
from connector.models.runner import BuildResult, Watch, build
from connector.settings import Settings, load_settings
from connector.state.database import Database
from connector.state.lock import LOCK_FILE
from connector.state.runs import Publication, Runs
from connector.warehouse.file import open_file
from connector.warehouse.publish import STATE_TABLES
from connector.warehouse.warehouse import Warehouse
from tests.support.agency import rows

FILES = {
    "staging/sources.yml": """\
sources:
  - name: landing
    tables:
      - name: jobs
        columns: [{name: id, data_tests: [unique, not_null]}]
      - name: candidates
""",
    "staging/stg_jobs.sql": """\
{{ config(materialized='view') }}

select id as job_id, title, status, assigned_to as person_id
from {{ source('landing', 'jobs') }}
""",
    "marts/schema.yml": """\
models:
  - name: fct_jobs
    description: Every job with its consultant.
    columns:
      - name: job_id
        data_tests: [unique, not_null]
      - name: status
        description: The job's state.
        data_tests:
          - accepted_values: {arguments: {values: [open, closed]}}
      - name: person_id
        description: The consultant.
        data_tests:
          - relationships: {arguments: {to: ref('people'), field: id}}
  - name: sum_jobs
    columns:
      - {name: status, data_tests: [{not_null: {config: {severity: warn}}}]}
      - {name: jobs, description: "How many there are."}
""",
    "marts/fct_jobs.sql": """\
select
    jobs.*,
    people.name as person_name
from {{ ref('stg_jobs') }} as jobs
left join {{ ref('people') }} as people on people.id = jobs.person_id
""",
    "marts/sum_jobs.sql": """\
select status, count(*) as jobs
from {{ ref('fct_jobs') }}
group by status
""",
    "seeds/seeds.yml": """\
seeds:
  - name: people
    description: Who is who.
    config: {column_types: {id: varchar, name: varchar, since: date}}
    columns:
      - {name: id, description: "The user's id.", data_tests: [unique, not_null]}
      - {name: name, description: "The person's name."}
      - {name: since, description: "The first day."}
""",
    "seeds/people.csv": "id,name,since\np1,Ada,2024-02-01\np2,Grace,\n",
    "audits/titles_are_short.sql": """\
-- audit: titles_are_short
-- No title has more than ten letters.

select job_id, title from {{ ref('stg_jobs') }} where length(title) > 10
""",
    "audits/jobs_are_few.sql": """\
-- audit: jobs_are_few
-- There are at most four jobs.
{{ config(severity='warn') }}

select job_id from {{ ref('fct_jobs') }} qualify row_number() over (order by job_id) > 4
""",
}

JOBS = (
    {"id": "j1", "title": "Nurse", "status": "open", "assigned_to": "p1"},
    {"id": "j2", "title": "Driver", "status": "open", "assigned_to": "p2"},
    {"id": "j3", "title": "Cook", "status": "closed", "assigned_to": None},
)

LONG = "Head of everything"
"""A title that an audit finds."""


class Account:
    """Account below `folder`, with the jobs in its work file, and the project that it builds."""

    def __init__(
        self, folder: Path, jobs: Sequence[Mapping[str, Any]] = JOBS, **given: str
    ) -> None:
        self.folder, self.project, self.own = folder, folder / "project", folder / "my_models"
        self.environ = {"CONNECTOR_DATA_DIR": str(folder / "data"), **given}
        for name, text in FILES.items():
            self.write(name, text)
        self.own.mkdir(exist_ok=True)
        self.warehouse = Warehouse(self.settings().folder)
        self.warehouse.prepare()
        self.insert("jobs", *jobs)

    def settings(self, **more: str) -> Settings:
        """Return the settings, with the environment variables in `more`."""
        return load_settings({}, {**self.environ, **more}, self.folder)

    # -- Project -----------------------------------------------------------------------------------

    def write(self, name: str, text: str) -> Path:
        """Write a file of the project, or below `my_models`, and return its path."""
        path = (self.folder if name.startswith("my_models") else self.project) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def replace(self, name: str, old: str, new: str) -> Path:
        """Write a file of the project with one text replaced, and return its path."""
        assert old in FILES[name], f"{old!r} is not in {name}"
        return self.write(name, FILES[name].replace(old, new))

    def load_project(self, seeds: Path | None = None) -> Project:
        """Load the project, with the own models, and the user's seeds if a folder is given."""
        return load_project(self.project, seeds=seeds, own=self.own)

    def use_project(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Make `publish` build this account's project instead of the shipped one."""
        monkeypatch.setattr(publishing, "load_account_project", lambda _: self.load_project())

    def build(self, watch: Watch | None = None) -> BuildResult:
        """Build the project in the work file."""
        return build_file(self.warehouse.work, self.load_project(), watch=watch)

    # -- Files -------------------------------------------------------------------------------------

    def insert(self, table: str, *rows: Mapping[str, Any]) -> None:
        """Insert rows into a landing table of the work file, `schema.table`, or the state."""
        if table in {each.name for each in STATE_TABLES}:
            with Database(self.warehouse.folder) as database:
                for row in rows:
                    database.put(table.split(".")[1], row)
            return
        name = table if "." in table else f"landing.{table}"
        with open_file(self.warehouse.work) as connection:
            for row in rows:
                marks = ", ".join("?" for _ in row)
                sql = f"INSERT INTO {name} ({', '.join(row)}) VALUES ({marks})"
                connection.execute(sql, list(row.values()))

    def run(self, *statements: str) -> None:
        """Run SQL statements in the work file."""
        with open_file(self.warehouse.work) as connection:
            for each in statements:
                connection.execute(each)

    def publish(self, **options: Any) -> PublishResult:
        """Publish the work file with these options of `publish`."""
        return publish(self.settings(), **options)

    @property
    def file(self) -> Path:
        """Published file."""
        return self.warehouse.published

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        """Return the rows of a query on the published file, else on the work file."""
        file = self.file if self.file.exists() else self.warehouse.work
        return [tuple(row.values()) for row in rows(file, sql)]

    def columns(self) -> dict[str, list[str]]:
        """Return the columns of every table and view of the published file."""
        return list_columns(self.file)

    @property
    def last_publication(self) -> Publication:
        """Latest publication recorded in the state."""
        return self.publications(1)[0]

    def publications(self, count: int) -> tuple[Publication, ...]:
        """Return the latest publications recorded in the state, newest first."""
        with Database(self.warehouse.folder) as database:
            return Runs(database).publications(count)

    def leftovers(self) -> list[str]:
        """Return names of files in the data folder that a publication must not leave behind."""
        kept = ("work.duckdb", "recruitment.duckdb", "state.sqlite", LOCK_FILE)
        return sorted(p.name for p in self.warehouse.folder.iterdir() if p.name not in kept)


def list_columns(file: Path) -> dict[str, list[str]]:
    """Return the columns of every table and view of a file, by `schema.table`."""
    found = rows(
        file,
        "SELECT schema_name || '.' || table_name AS name, list(column_name ORDER BY column_index) "
        "AS columns FROM duckdb_columns() WHERE NOT internal "
        "AND database_name = current_database() GROUP BY 1 ORDER BY 1",
    )
    return {row["name"]: row["columns"] for row in found}


def build_file(
    file: Path, project: Project, select: Sequence[str] = (), watch: Watch | None = None
) -> BuildResult:
    """Build all or the selected models in a file, and run the checks that read no others."""
    nodes = {name: project.nodes[name] for name in project.selected(select)}
    left_out = {each.table for name, each in project.nodes.items() if name not in nodes}
    checks = [each for each in project.checks_of([*nodes]) if not each.reads & left_out]
    with open_file(file) as connection:
        chosen = replace(project, nodes=nodes, checks=tuple(checks))
        return build(connection, chosen, watch=watch)
