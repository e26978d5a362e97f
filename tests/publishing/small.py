"""A project of three models over one landed table: enough to break in every way."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb

from connector.publishing.build import build
from connector.publishing.project import BuildResult, CheckResult, ModelBuilt, Project
from connector.publishing.project_loader import load_project

PROJECT = """\
name: small
version: "1.0.0"
model-paths: [staging, marts]
seed-paths: [seeds]
test-paths: [audits]
models: {small: {+materialized: table}}
seeds: {small: {+schema: seeds}}
"""

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
-- model: stg_jobs
-- grain: one row per job
-- Jobs as they stand.
{{ config(materialized='view') }}

select id as job_id, title, status, assigned_to as person_id
from {{ source('landing', 'jobs') }}
"""

FCT_JOBS = """\
-- model: fct_jobs
-- grain: one row per job
-- Jobs with their consultants.

select
    jobs.*,
    people.name as person_name
from {{ ref('stg_jobs') }} as jobs
left join {{ ref('people') }} as people on people.id = jobs.person_id
"""

SUM_JOBS = """\
-- model: sum_jobs
-- grain: one row per status
-- How many jobs there are in each status.

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
    "dbt_project.yml": PROJECT,
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
    """The project and a file to build it in, both of which a test may spoil first."""

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
        """Put a file into the project; its path."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def replace(self, name: str, old: str, new: str) -> Path:
        """Write a file anew with something in it replaced; its path."""
        text = FILES[name]
        assert old in text, f"{old!r} is not in {name}"
        return self.write(name, text.replace(old, new))

    def set_aside(self, *select: str) -> Path:
        """Build it, or what is selected, in a file beside it; this one stays as it was."""
        earlier = self.file.with_name("earlier.duckdb")
        fresh = self.file.read_bytes()
        self.build(*select)
        self.file.rename(earlier)
        self.file.write_bytes(fresh)
        return earlier

    def project(self, seeds: Path | None = None) -> Project:
        """The project as it is now."""
        return load_project(self.folder, seeds=seeds)

    def build(self, *select: str, **more: Any) -> BuildResult:
        """Build it, or what is selected."""
        return build(self.file, self.project(), select=select, **more)

    def rows(self, sql: str) -> list[Row]:
        """Query the file."""
        with duckdb.connect(str(self.file), read_only=True) as connection:
            return connection.execute(sql).fetchall()


class Follower:
    """Writes down what a build tells, and which models were made anew."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.made: list[str] = []

    def on_plan(self, models: int, checks: int) -> None:
        """So much is to be done."""
        self.told.append(f"{models} {checks}")

    def on_model_start(self, name: str) -> None:
        """The model's turn has come."""
        self.told.append(name)

    def on_model_end(self, model: ModelBuilt) -> None:
        if not model.is_copied:
            self.made.append(model.name)

    def on_check_end(self, check: CheckResult) -> None:
        """A check has ended."""
        self.told.append(check.name)
