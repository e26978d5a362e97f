"""Building the small project in a database file: its tables and its errors."""

from __future__ import annotations

from pathlib import Path

import pytest

from connector.errors import ModelError, ModelFailed
from connector.models.runner import BuildResult, CheckResult
from tests.models.small import JOBS, BuildRecorder, SmallProject


def find_check(built: BuildResult, name: str) -> CheckResult:
    """Return the only check with this name."""
    (one,) = (each for each in built.checks if each.check.name == name)
    return one


def test_models_are_built_in_their_schemas(small: SmallProject) -> None:
    built = small.build()
    kinds = small.query(
        "SELECT table_schema, table_name, table_type FROM information_schema.tables "
        "WHERE table_schema <> 'landing' ORDER BY ALL"
    )

    assert [
        ("people", "seed", 2),
        ("stg_jobs", "view", None),
        ("fct_jobs", "table", 3),
        ("sum_jobs", "table", 2),
    ] == [(each.name, each.kind, each.rows) for each in built.models]
    assert [
        ("marts", "fct_jobs", "BASE TABLE"),
        ("marts", "sum_jobs", "BASE TABLE"),
        ("seeds", "people", "BASE TABLE"),
        ("staging", "stg_jobs", "VIEW"),
    ] == kinds
    assert [("closed", 1), ("open", 2)] == small.query("SELECT * FROM marts.sum_jobs ORDER BY 1")
    assert (10, (), ()) == (len(built.checks), built.failed("error"), built.failed("warn"))


def test_descriptions_become_comments_of_tables_and_columns(small: SmallProject) -> None:
    small.build()
    comments: dict[str, str] = dict(
        small.query(
            "SELECT table_name || '.' || column_name, comment FROM duckdb_columns() "
            "WHERE comment IS NOT NULL AND schema_name <> 'landing'"
        )
    )

    # A text is inherited under the same name only, since a renamed column may mean something else.
    assert "The job's title." == comments["stg_jobs.title"] == comments["fct_jobs.title"]
    assert "stg_jobs.job_id" not in comments
    assert "The job's state." == comments["fct_jobs.status"] == comments["sum_jobs.status"]
    assert "The person's name." == comments["people.name"]
    assert "stg_jobs.status" not in comments
    assert [("Every job with its consultant.",)] == small.query(
        "SELECT comment FROM duckdb_tables() WHERE table_name = 'fct_jobs'"
    )


def test_views_still_work_after_the_file_is_renamed(small: SmallProject) -> None:
    small.build()
    small.file = small.file.rename(small.file.with_name("recruitment.duckdb"))

    assert [(3,)] == small.query("SELECT count(*) FROM staging.stg_jobs")


FAULTS = {
    "unique_fct_jobs_job_id": (("j1", "Cook", "open", "p1"), ("j1",)),
    "not_null_fct_jobs_job_id": ((None, "Cook", "open", "p1"), ()),
    "accepted_values_fct_jobs_status": (("j4", "Cook", "ajar", "p1"), ("j4",)),
    "relationships_fct_jobs_person_id": (("j4", "Cook", "open", "p9"), ("j4",)),
    "titles_are_short": (("j4", "Anaesthetist", "open", "p1"), ("j4",)),
    "unique_landing_jobs_id": (("j1", "Cook", "open", "p1"), ("j1",)),
}


@pytest.mark.parametrize("check", FAULTS)
def test_each_kind_of_check_finds_a_planted_fault(tmp_path: Path, check: str) -> None:
    row, examples = FAULTS[check]
    built = SmallProject(tmp_path, (*JOBS, row)).build()

    assert (1, examples, "error") == (
        find_check(built, check).failing,
        find_check(built, check).examples,
        find_check(built, check).check.severity,
    )
    assert find_check(built, check) in built.failed("error")


def test_a_failed_check_of_severity_warn_does_not_block(tmp_path: Path) -> None:
    built = SmallProject(tmp_path, (*JOBS, ("j4", "Cook", None, "p1"))).build()

    assert ["not_null_sum_jobs_status"] == [each.check.name for each in built.failed("warn")]
    assert () == built.failed("error")


SQL_FAULTS = {
    "a column that is not there": ("people.name as", "people.nmae as", "3", "nmae"),
    "a comma too many": ("jobs.*,\n", "jobs.*,,\n", "2", "syntax error"),
    "a table in plain SQL": ("{{ ref('people') }}", "seeds.peple", "5", "peple"),
    "after a long brace": (
        "{{ ref('stg_jobs') }} as jobs\nleft",
        "{{\n  ref('stg_jobs')\n}} as jobs\nlfet",
        *("7", "syntax error"),
    ),
}


@pytest.mark.parametrize("fault", SQL_FAULTS)
def test_invalid_sql_is_reported_with_file_and_line(small: SmallProject, fault: str) -> None:
    old, new, place, problem = SQL_FAULTS[fault]
    path = small.replace("marts/fct_jobs.sql", old, new)

    with pytest.raises(ModelFailed) as caught:
        small.build()

    assert str(caught.value).startswith(f"{path}:{place}: fct_jobs cannot be built: ")
    assert problem in str(caught.value)


def test_build_errors_contain_no_data(tmp_path: Path) -> None:
    small = SmallProject(tmp_path, (*JOBS, ("j4", "Ada Lovelace", "open", None)))
    small.replace("marts/sum_jobs.sql", "count(*) as jobs", "sum(title::int) as jobs")

    with pytest.raises(ModelFailed, match=r"sum_jobs\.sql:1: .*Could not convert") as caught:
        small.build()

    message = f"{caught.value} {caught.value.action} {caught.value.__cause__}"
    assert not [title for _, title, *_ in JOBS if title in message]
    assert "Ada" not in message


def test_a_failed_build_keeps_the_earlier_tables(small: SmallProject) -> None:
    small.build()
    small.replace("marts/sum_jobs.sql", "count(*)", "cuont(*)")

    with pytest.raises(ModelFailed):
        small.build()

    assert [("closed", 1), ("open", 2)] == small.query("SELECT * FROM marts.sum_jobs ORDER BY 1")


def test_a_check_on_a_missing_column_is_rejected(small: SmallProject) -> None:
    for old, new, problem in (
        ("name: job_id", "name: jbo_id", "marts.fct_jobs has no such column"),
        ("field: id", "field: idd", 'does not have a column named "idd"'),
        ("{name: jobs, ", "{name: jbos, ", "marts.sum_jobs has no such column"),
    ):
        path = small.replace("marts/schema.yml", old, new)
        with pytest.raises(ModelError, match=problem) as caught:
            small.build()

        line = next(n for n, text in enumerate(path.read_text().splitlines(), 1) if new in text)
        assert (path, True) == (caught.value.path, caught.value.line in (line, line - 1))


def test_a_build_reports_each_model_and_check(small: SmallProject) -> None:
    recorder = BuildRecorder()
    built = small.build(watch=recorder)
    names = [*(each.name for each in built.models), *(each.check.name for each in built.checks)]

    assert names == recorder.names
    assert {len(names)} == recorder.steps
