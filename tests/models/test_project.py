"""A project of models: its errors with file and line, its selection, its tables and its checks."""

from __future__ import annotations

from pathlib import Path

import pytest

from connector.errors import ModelError, ModelFailed, UnknownName
from connector.models.runner import BuildResult, BuiltModel, CheckResult
from tests.models.account import FILES, JOBS, Account
from tests.support.errors import has_code

FCT_JOBS = FILES["marts/fct_jobs.sql"]

# -- Files -----------------------------------------------------------------------------------------

_FCT, _STG, _YML = "marts/fct_jobs.sql", "staging/stg_jobs.sql", "marts/schema.yml"
_REF, _TESTS = "{{ ref('stg_jobs') }}", "[unique, not_null]"
INVALID = (
    (_FCT, _REF, "{{ var('x') }}", 4, "'var' is undefined"),
    (_FCT, _REF, "{% if 1 %} x", 5, "Unexpected end of template"),
    (_FCT, _REF, "{{ ref('stg_jobs').up() }}", 4, "has no attribute 'up'"),
    (_FCT, _REF, "{{ ref('a', 'b') }}", 4, "ref() takes 1 positional argument but 2 were given"),
    (_FCT, "'stg_jobs') }}", "'stg_jobs')", 4, "expected token"),
    (_FCT, "ref('stg_jobs')", "ref('stg_job')", 4, "Did you mean 'stg_jobs'?"),
    (_STG, "'landing', 'jobs'", "'landing', 'jbos'", 4, "Did you mean 'landing.jobs'?"),
    (_YML, "ref('people')", "ref('peple')", 14, "Did you mean 'people'?"),
    (_YML, "name: sum_jobs", "name: sum_job", 15, "Did you mean 'sum_jobs'?"),
    (_YML, _TESTS, "[uniqe]", 5, "'unique', 'not_null'"),
    (_YML, _TESTS, "5", 5, "valid list"),
    (_YML, _TESTS, "[{unique: 5}]", 6, "is not a test"),
    (_YML, _TESTS, "[{unique: {where: x}}]", 6, "where: Extra inputs are not permitted"),
    (_YML, _TESTS, "[unique, unique]", 5, "unique_fct_jobs_job_id is also in"),
    (_YML, "severity: warn", "severity: loud", 17, "'error' or 'warn'"),
    (_YML, "  - name: sum_jobs", "  - name: sum_jobs\n    config: {tags: x}", 16, "config.tags"),
    (_YML, "models:", "models: [", 2, "is not valid YAML"),
    (_YML, "name: sum_jobs", "name: sum_jobs\n    name: x", 16, "duplicate"),
)


@pytest.mark.parametrize("fault", INVALID)
def test_an_invalid_file_is_reported_with_its_line(
    account: Account, fault: tuple[str, str, str, int, str]
) -> None:
    file, old, new, line, problem = fault
    path = account.replace(file, old, new)

    with pytest.raises(ModelError, check=has_code("model_invalid")) as caught:
        account.load_project()

    assert problem in str(caught.value)
    assert (str(path), line) == (str(caught.value.path), caught.value.line)


def test_a_circle_of_references_and_two_models_of_a_name_are_rejected(account: Account) -> None:
    path = account.replace(_STG, "{{ source('landing', 'jobs') }}", "{{ ref('sum_jobs') }}")
    with pytest.raises(ModelError, match="fct_jobs -> stg_jobs -> sum_jobs -> fct_jobs"):
        account.load_project()

    path.write_text(FILES[_STG])
    account.write("staging/fct_jobs.sql", FCT_JOBS)
    with pytest.raises(ModelError, match=r"fct_jobs is also in .*fct_jobs\.sql"):
        account.load_project()


def test_models_are_selected_by_name_folder_parents_and_children(account: Account) -> None:
    account.write("marts/other.sql", "select * from {{ ref('stg_jobs') }}")
    project = account.load_project()

    for words, names in {
        "": ("people", "stg_jobs", "fct_jobs", "sum_jobs", "other"),
        "stg_jobs": ("stg_jobs",),
        "marts": ("fct_jobs", "sum_jobs", "other"),
        "+fct_jobs": ("people", "stg_jobs", "fct_jobs"),
        "stg_jobs+": ("stg_jobs", "fct_jobs", "sum_jobs", "other"),
        "+fct_jobs+": ("people", "stg_jobs", "fct_jobs", "sum_jobs"),
    }.items():
        assert sorted(names) == sorted(project.selected(words.split())), words
    order = [*project.nodes]
    assert order.index("people") < order.index("fct_jobs") < order.index("sum_jobs")
    with pytest.raises(UnknownName, match="Did you mean 'fct_jobs'"):
        project.selected(["fct_job"])


def test_jinja_is_rendered_and_a_semicolon_at_the_end_is_accepted(account: Account) -> None:
    sql = "{% set wanted = ['open'] %}\nselect '{{ wanted | first }}' as status {# a note #};\n"
    account.write("marts/sum_jobs.sql", sql)
    account.replace(_YML, '      - {name: jobs, description: "How many there are."}\n', "")

    account.build()

    assert [("open",)] == account.query("SELECT * FROM marts.sum_jobs")


# -- Build -----------------------------------------------------------------------------------------


def find_check(built: BuildResult, name: str) -> CheckResult:
    """Return the only check with this name."""
    (one,) = (each for each in built.checks if each.check.name == name)
    return one


def test_a_build_makes_tables_and_views_and_reports_each_model_and_check(account: Account) -> None:
    seen: list[BuiltModel | CheckResult] = []
    steps = set[int]()

    def watch(done: BuiltModel | CheckResult, count: int) -> None:
        seen.append(done)
        steps.add(count)

    built = account.build(watch)

    assert [
        ("people", "seed", 2),
        ("stg_jobs", "view", None),
        ("fct_jobs", "table", 3),
        ("sum_jobs", "table", 2),
    ] == [(each.name, each.kind, each.rows) for each in built.models]
    assert [("closed", 1), ("open", 2)] == account.query("SELECT * FROM marts.sum_jobs ORDER BY 1")
    assert [("VIEW",)] == account.query(
        "SELECT table_type FROM information_schema.tables WHERE table_name = 'stg_jobs'"
    )
    assert (11, ()) == (len(built.checks), built.failed("error", "warn"))
    assert (seen, steps) == ([*built.models, *built.checks], {15})


def test_descriptions_become_comments_of_tables_and_columns(account: Account) -> None:
    account.build()
    comments = dict(
        account.query(
            "SELECT table_name || '.' || column_name AS name, comment FROM duckdb_columns() "
            "WHERE comment IS NOT NULL AND schema_name IN ('landing', 'staging', 'marts', 'seeds')"
        )
    )

    # A text is inherited under the same name only, since a renamed column may mean something else.
    assert comments["jobs.title"] == comments["stg_jobs.title"] == comments["fct_jobs.title"]
    assert "stg_jobs.job_id" not in comments
    assert "The job's state." == comments["fct_jobs.status"] == comments["sum_jobs.status"]
    assert "The person's name." == comments["people.name"]
    assert [("Every job with its consultant.",)] == account.query(
        "SELECT comment FROM duckdb_tables() WHERE table_name = 'fct_jobs'"
    )


FAULTS = {
    "unique_fct_jobs_job_id": ({"id": "j1", "status": "open"}, ("j1",)),
    "not_null_fct_jobs_job_id": ({"status": "open"}, ()),
    "accepted_values_fct_jobs_status": ({"id": "j4", "status": "ajar"}, ("j4",)),
    "relationships_fct_jobs_person_id": ({"id": "j4", "assigned_to": "p9"}, ("j4",)),
    "titles_are_short": ({"id": "j4", "status": "open", "title": "Anaesthetist"}, ("j4",)),
    "unique_landing_jobs_id": ({"id": "j1", "status": "open"}, ("j1",)),
}


@pytest.mark.parametrize("check", FAULTS)
def test_each_kind_of_check_finds_a_planted_fault(tmp_path: Path, check: str) -> None:
    row, examples = FAULTS[check]
    account = Account(tmp_path, ())
    # Without the key of the landing, so that an id can be there twice.
    columns = "id TEXT, title TEXT, status TEXT, assigned_to TEXT"
    account.run("DROP TABLE landing.jobs", f"CREATE TABLE landing.jobs ({columns})")
    account.insert("jobs", *JOBS, row)

    found = find_check(account.build(), check)

    assert (1, examples, "error") == (found.failing, found.examples, found.check.severity)


def test_a_failed_check_of_severity_warn_does_not_block(account: Account) -> None:
    account.insert("jobs", {"id": "j4", "title": "Cook", "assigned_to": "p1"})
    built = account.build()

    assert ["not_null_sum_jobs_status"] == [each.check.name for each in built.failed("warn")]
    assert () == built.failed("error")


LONG_BRACE = ("{{ ref('stg_jobs') }} as jobs\nleft", "{{\n  ref('stg_jobs')\n}} as jobs\nlfet")
SQL_FAULTS = (
    ("people.name as", "people.nmae as", 3, "nmae"),
    ("jobs.*,\n", "jobs.*,,\n", 2, "syntax error"),
    ("{{ ref('people') }}", "seeds.peple", 5, "peple"),
    (*LONG_BRACE, 7, "syntax error"),
)


@pytest.mark.parametrize(("old", "new", "line", "problem"), SQL_FAULTS)
def test_invalid_sql_is_reported_with_file_and_line(
    account: Account, old: str, new: str, line: int, problem: str
) -> None:
    path = account.replace(_FCT, old, new)

    with pytest.raises(ModelFailed) as caught:
        account.build()

    assert str(caught.value).startswith(f"{path}:{line}: fct_jobs cannot be built: ")
    assert problem in str(caught.value)


def test_a_failed_build_shows_no_data_and_keeps_the_earlier_tables(account: Account) -> None:
    account.build()
    account.insert("jobs", {"id": "j4", "title": "Ada Lovelace", "status": "open"})
    account.replace("marts/sum_jobs.sql", "count(*) as jobs", "sum(title::int) as jobs")

    with pytest.raises(ModelFailed, match=r"sum_jobs\.sql:1: .*Could not convert") as caught:
        account.build()

    message = f"{caught.value} {caught.value.action} {caught.value.__cause__}"
    assert not [name for name in ("Ada", *(each["title"] for each in JOBS)) if str(name) in message]
    assert [("closed", 1), ("open", 2)] == account.query("SELECT * FROM marts.sum_jobs ORDER BY 1")


@pytest.mark.parametrize(
    ("old", "new", "line", "problem"),
    [
        ("name: job_id", "name: jbo_id", 5, "marts.fct_jobs has no column jbo_id"),
        ("field: id", "field: idd", 14, 'does not have a column named "idd"'),
        ("ref('people')", "config(a=1)", 14, "relationships_fct_jobs_person_id cannot be run"),
        ("{name: jobs, ", "{name: jbos, ", 18, "marts.sum_jobs has no column jbos"),
    ],
)
def test_an_entry_of_a_missing_column_or_table_is_rejected(
    account: Account, old: str, new: str, line: int, problem: str
) -> None:
    path = account.replace(_YML, old, new)

    with pytest.raises(ModelError, match=problem) as caught:
        account.build()

    assert (path, line) == (caught.value.path, caught.value.line)
