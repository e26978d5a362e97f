"""A project of three models over one landing table, with every kind of file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb

from connector.models.project import Project, load_project
from connector.models.runner import BuildResult, BuiltModel, CheckResult, Watch, build
from connector.warehouse.file import open_file

SOURCES = """\
sources:
  - name: landing
    tables:
      - name: jobs
        columns:
          - {name: id, description: "Identifies the job.", data_tests: [unique, not_null]}
          - {name: title, description: "The job's title."}
"""

SEEDS = """\
seeds:
  - name: people
    description: Who is who.
    config: {column_types: {id: varchar, name: varchar, since: date}}
    columns:
      - {name: id, description: "The user's id.", data_tests: [unique, not_null]}
      - {name: name, description: "The person's name."}
      - {name: since, description: "The first day."}
"""

MARTS = """\
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
"""

STG_JOBS = """\
{{ config(materialized='view') }}

select id as job_id, title, status, assigned_to as person_id
from {{ source('landing', 'jobs') }}
"""

FCT_JOBS = """\
select
    jobs.*,
    people.name as person_name
from {{ ref('stg_jobs') }} as jobs
left join {{ ref('people') }} as people on people.id = jobs.person_id
"""

SUM_JOBS = """\
select status, count(*) as jobs
from {{ ref('fct_jobs') }}
group by status
"""

AUDIT = """\
-- audit: titles_are_short
-- No title has more than ten letters.

select job_id, title from {{ ref('stg_jobs') }} where length(title) > 10
"""

FILES = {
    "staging/sources.yml": SOURCES,
    "staging/stg_jobs.sql": STG_JOBS,
    "marts/schema.yml": MARTS,
    "marts/fct_jobs.sql": FCT_JOBS,
    "marts/sum_jobs.sql": SUM_JOBS,
    "seeds/seeds.yml": SEEDS,
    "seeds/people.csv": "id,name,since\np1,Ada,2024-02-01\np2,Grace,\n",
    "audits/titles_are_short.sql": AUDIT,
}

JOBS = (
    ("j1", "Nurse", "open", "p1"),
    ("j2", "Driver", "open", "p2"),
    ("j3", "Cook", "closed", None),
)

Row = tuple[Any, ...]


class SmallProject:
    """Folder of a small project and the database file that it builds in. Tests can change both."""

    def __init__(self, folder: Path, rows: tuple[Row, ...] = JOBS) -> None:
        self.folder = folder / "project"
        self.file = folder / "small.duckdb"
        for name, text in FILES.items():
            self.write(name, text)
        with duckdb.connect(str(self.file)) as connection:
            connection.execute("CREATE SCHEMA landing")
            connection.execute(
                "CREATE TABLE landing.jobs "
                "(id VARCHAR, title VARCHAR, status VARCHAR, assigned_to VARCHAR)"
            )
            connection.executemany("INSERT INTO landing.jobs VALUES (?, ?, ?, ?)", rows)

    def write(self, name: str, text: str) -> Path:
        """Write a file of the project and return its path."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def replace(self, name: str, old: str, new: str) -> Path:
        """Write a file of the project with one text replaced, and return its path."""
        text = FILES[name]
        assert old in text, f"{old!r} is not in {name}"
        return self.write(name, text.replace(old, new))

    def load_project(self, seeds: Path | None = None) -> Project:
        """Load the project, with the user's seeds if a folder is given."""
        return load_project(self.folder, seeds=seeds)

    def build(self, *select: str, watch: Watch | None = None) -> BuildResult:
        """Build all or the selected models in the project's file."""
        return build_file(self.file, self.load_project(), select, watch)

    def query(self, sql: str) -> list[Row]:
        """Return the rows of a query on the project's file."""
        with duckdb.connect(str(self.file), read_only=True) as connection:
            return connection.execute(sql).fetchall()


def build_file(
    file: Path, project: Project, select: Sequence[str] = (), watch: Watch | None = None
) -> BuildResult:
    """Build all or the selected models of a project in a file."""
    with open_file(file) as connection:
        return build(connection, select_models(project, select), watch=watch)


def select_models(project: Project, select: Sequence[str]) -> Project:
    """Return the project with only the selected models, and the checks that read no others."""
    nodes = {name: project.nodes[name] for name in project.selected(select)}
    left_out = {each.table for name, each in project.nodes.items() if name not in nodes}
    checks = [each for each in project.checks_of([*nodes]) if not each.reads & left_out]
    return replace(project, nodes=nodes, checks=tuple(checks))


class BuildRecorder:
    """Watch of a build that records the names of models and checks."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.steps = set[int]()

    def __call__(self, done: BuiltModel | CheckResult, steps: int) -> None:
        """Record the name and the number of steps."""
        self.names.append(done.check.name if isinstance(done, CheckResult) else done.name)
        self.steps.add(steps)
