"""A warehouse that was never pulled, with rows inserted into its landing, and a small project of
models that read them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb
import pytest

from connector.models import publish as publishing
from connector.models.project import load_project
from connector.models.publish import PublishResult, publish
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

select id as job_id, title from {{ source('landing', 'jobs') }}
""",
    "staging/schema.yml": """\
models:
  - {name: stg_jobs, columns: [{name: job_id}]}
""",
    "marts/schema.yml": """\
models:
  - {name: dim_people, columns: [{name: candidate_id}, {name: status}]}
  - {name: fct_jobs, columns: [{name: job_id}, {name: title}]}
""",
    "marts/dim_people.sql": """\
select
    id as candidate_id,
    concat_ws(' ', first_name, last_name) as whole_name,
    lower(email) as address,
    email,
    status,
    length(email) as letters,
    cast(expected_salary as decimal(18, 2)) as hoped_for,
    date_of_birth > '2000-01-01' as is_young
from {{ source('landing', 'candidates') }}
""",
    "marts/fct_jobs.sql": """\
select job_id, title, length(title) as letters from {{ ref('stg_jobs') }}
""",
    "audits/titles_are_short.sql": """\
-- audit: titles_are_short
-- No title has more than ten letters.

select job_id from {{ ref('fct_jobs') }} where letters > 10
""",
    "audits/jobs_are_few.sql": """\
-- audit: jobs_are_few
-- There are at most two jobs.
{{ config(severity='warn') }}

select job_id from {{ ref('fct_jobs') }} qualify row_number() over (order by job_id) > 2
""",
}

LONG = "Head of everything"
"""A title that the audit finds."""


class PublishingAccount:
    """Account below `folder` with a prepared work file and a small project of three models."""

    def __init__(self, folder: Path, **given: str) -> None:
        self.folder = folder
        self.environ = {"CONNECTOR_DATA_DIR": str(folder / "data"), **given}
        self.project_folder = folder / "project"
        for name, text in FILES.items():
            path = self.project_folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        self.warehouse = Warehouse(self.settings().folder)
        self.warehouse.prepare()

    def use_project(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Make `publish` build this account's project instead of the shipped one."""
        monkeypatch.setattr(
            publishing, "load_account_project", lambda _: load_project(self.project_folder)
        )

    def settings(self, **more: str) -> Settings:
        """Return the settings, with the environment variables in `more`."""
        return load_settings({}, {**self.environ, **more}, self.folder)

    def insert_rows(self, table: str, *rows: Mapping[str, Any]) -> None:
        """Insert rows into a landing table of the work file, `schema.table`, or the state."""
        if table in {each.name for each in STATE_TABLES}:
            with Database(self.warehouse.folder) as database:
                for row in rows:
                    database.put(table.split(".")[1], row)
            return
        insert_rows(self.warehouse.work, table, *rows)

    def run_sql(self, *statements: str) -> None:
        """Run SQL statements in the work file."""
        with open_file(self.warehouse.work) as connection:
            for each in statements:
                connection.execute(each)

    def publish(self, **options: Any) -> PublishResult:
        """Publish the work file with these options of `publish`."""
        return publish(self.settings(), **options)

    @property
    def published_file(self) -> Path:
        return self.warehouse.published

    def query(self, sql: str) -> list[dict[str, Any]]:
        """Return the rows of a query on the published file."""
        return rows(self.published_file, sql)

    @property
    def last_publication(self) -> Publication:
        """Latest publication recorded in the state."""
        with Database(self.warehouse.folder) as database:
            return Runs(database).publications(1)[0]

    def list_leftover_files(self) -> list[str]:
        """Return names of files in the data folder that a publication must not leave behind."""
        kept = ("work.duckdb", "recruitment.duckdb", "state.sqlite", LOCK_FILE)
        return sorted(p.name for p in self.warehouse.folder.iterdir() if p.name not in kept)


def insert_rows(work_file: Path, table: str, *rows: Mapping[str, Any]) -> None:
    """Insert rows into a landing table, or into `schema.table`, of a work file."""
    name = table if "." in table else f"landing.{table}"
    with open_file(work_file) as connection:
        for each in rows:
            marks = ", ".join("?" for _ in each)
            connection.execute(
                f"INSERT INTO {name} ({', '.join(each)}) VALUES ({marks})", list(each.values())
            )


def list_columns(file: Path) -> dict[str, list[str]]:
    """Return the columns of every table and view of a file, by `schema.table`."""
    with duckdb.connect(str(file), read_only=True) as connection:
        found: Sequence[tuple[str, list[str]]] = connection.execute(
            "SELECT schema_name || '.' || table_name, list(column_name ORDER BY column_index) "
            "FROM duckdb_columns() WHERE NOT internal GROUP BY 1 ORDER BY 1"
        ).fetchall()
    return dict(found)
