"""Own models, and data that is left out of a published file: in no table and not in its bytes."""

from __future__ import annotations

import hmac
import json
import re
from pathlib import Path

import duckdb
import pytest

from connector.catalog import CATALOG
from connector.errors import ModelError, PublishingRefused, SettingsError, UnknownName
from connector.models.mask import personal_columns
from connector.models.project import Project, load_project
from connector.models.publish import load_account_project
from connector.models.runner import TableColumns, describe, tables_read_by
from connector.sandbox.server import Sandbox
from connector.state.database import Database
from connector.state.journal import Journal, Plan
from connector.state.row import Policy, Problem, Row
from connector.warehouse.schema import Column
from tests.models.account import Account
from tests.repository import ROOT
from tests.support.command import call

KEY = "planted-hash-key-77aa"
NAME, EMAIL, PHONE, NOTE = "Zebediah", "zebediah@planted.example", "+44 7700 900123", "likes yaks"
PLANTED = (NAME, EMAIL, PHONE, NOTE, "1999-12-31", "87654")
RAW = {"id": "c1", "first_name": NAME, "email": EMAIL, "phone": PHONE, "notes": NOTE}
CANDIDATE = {
    **RAW,
    "date_of_birth": "1999-12-31",
    "expected_salary": 87654.0,
    "status": "new_lead",
    "_record": json.dumps({**RAW, "nickname": NAME}),
}

PEOPLE = """\
select
    id as candidate_id,
    status,
    email,
    'a note of ' || email as note,
    concat_ws(' ', first_name, last_name) as whole_name,
    cast(expected_salary as decimal(18, 2)) as hoped_for,
    length(email) as letters,
    date_of_birth > '2000-01-01' as is_young
from {{ source('landing', 'candidates') }}
"""
SCHEMA = """\
models:
  - name: own_people
    description: The agency's people.
    columns:
      - {name: candidate_id, description: The candidate., data_tests: [unique, not_null]}
      - {name: status, description: The stage.}
      - {name: note, description: A note., meta: {personal: true}}
"""


@pytest.fixture
def with_person(account: Account) -> Account:
    """Account with the texts of one person in every table that can contain them."""
    account.insert("candidates", CANDIDATE, {"id": "c2", "email": EMAIL, "first_name": ""})
    account.insert("history.candidates", {**CANDIDATE, "_version": 1})
    account.insert("leads", {"id": "l1", "email": EMAIL, "last_name": NAME})
    account.write("my_models/own_people.sql", PEOPLE)
    account.write("my_models/schema.yml", SCHEMA)
    with Database(account.warehouse.folder) as database:
        problems = (Problem("x", "wrong", received=PHONE),)
        row = Row(2, "candidates", "update", fields=RAW, before=RAW, problems=problems)
        plan = Plan("candidates", "update", f"{NAME}.csv", "d1", (row,))
        Journal(database).begin(plan, Policy(), "b1")
    return account


def find_planted(file: Path) -> list[str]:
    """Return the texts of `PLANTED` that occur in the bytes of a file."""
    held = file.read_bytes()
    return [each for each in PLANTED if each.encode() in held]


def publish_masked(account: Account, personal: str, **more: str) -> dict[str, list[str]]:
    """Publish with a setting for personal fields, and return the columns of the file."""
    account.environ |= {"CONNECTOR_PUBLISH_PERSONAL": personal, **more}
    account.publish()
    assert [] == account.leftovers()
    return account.columns()


# -- Masks -----------------------------------------------------------------------------------------


def test_dropped_personal_fields_are_not_in_the_bytes_of_the_file(with_person: Account) -> None:
    with_person.publish()
    assert {*PLANTED} - {"1999-12-31", "87654"} <= {*find_planted(with_person.file)}

    tables = publish_masked(with_person, "drop")

    assert [] == find_planted(with_person.file)
    assert NAME in find_planted(with_person.warehouse.work)
    assert ["candidate_id", "status", "letters", "is_young"] == tables["own.own_people"]
    assert ["job_id", "title", "status", "person_id"] == tables["staging.stg_jobs"]
    personal = {each.name for each in CATALOG["candidates"].fields.values() if each.personal}
    for schema in ("landing", "history"):
        kept = {*tables[f"{schema}.candidates"]}
        assert set() == kept & {*personal, "_record"}
        assert {"id", "status", "industry", "created_at"} <= kept
    assert {"batch", "number", "outcome", "record_id"} <= {*tables["push.rows"]}
    assert set() == {"before", "after", "answer"} & {*tables["push.rows"]}
    assert "file" not in tables["push.batches"]
    assert [(2,)] == with_person.query("SELECT count(*) AS n FROM landing.candidates")
    assert "drop" == with_person.last_publication.personal


def test_hashed_fields_still_join_and_do_not_contain_the_values(with_person: Account) -> None:
    tables = publish_masked(with_person, "hash", CONNECTOR_PUBLISH_HASH_KEY=KEY)

    assert [] == find_planted(with_person.file)
    token = hmac.new(KEY.encode(), EMAIL.encode(), "sha256").hexdigest()[:32]
    assert [("l1", token)] == with_person.query(
        "SELECT DISTINCT l.id AS l, email FROM landing.leads AS l JOIN landing.candidates "
        "USING (email) JOIN own.own_people USING (email)"
    )
    assert [("", None)] == with_person.query(
        "SELECT first_name, phone FROM landing.candidates WHERE id = 'c2'"
    )
    assert "_record" not in tables["landing.candidates"]
    assert [("VARCHAR", "Date of birth. The value is replaced by a hash.")] == with_person.query(
        "SELECT data_type, comment FROM duckdb_columns() WHERE schema_name = 'landing' "
        "AND table_name = 'candidates' AND column_name = 'date_of_birth'"
    )
    assert [("c1", "new_lead", 32, 32)] == with_person.query(
        "SELECT candidate_id, status, length(note), length(whole_name) AS n FROM own.own_people "
        "WHERE candidate_id = 'c1'"
    )

    publish_masked(with_person, "hash", CONNECTOR_PUBLISH_HASH_KEY="x" * 70)
    other = hmac.new(b"x" * 70, EMAIL.encode(), "sha256").hexdigest()[:32]
    assert [(other,)] == with_person.query("SELECT email FROM landing.leads")


def test_schemas_tables_and_columns_are_left_out_by_name(with_person: Account) -> None:
    left_out = "landing,push,staging.stg_jobs,own.own_people.email,own.own_people.note"

    tables = publish_masked(with_person, "keep", CONNECTOR_PUBLISH_WITHOUT=left_out)

    assert {"history", "sync", "marts", "seeds", "own"} == {t.partition(".")[0] for t in tables}
    assert {"email", "note"} & {*tables["own.own_people"]} == set()
    assert [("Cook",), ("Driver",), ("Nurse",)] == with_person.query(
        "SELECT title FROM marts.fct_jobs ORDER BY title"
    )
    assert [("Email address.",)] == with_person.query(
        "SELECT comment FROM duckdb_columns() WHERE table_name = 'candidates' "
        "AND schema_name = 'history' AND column_name = 'email'"
    )
    assert {*left_out.split(",")} == {*with_person.last_publication.left_out}
    for name, near in (
        ("own.own_people.candidate", "own.own_people.candidate_id"),
        ("own.own_peple.email", "own.own_people"),
    ):
        with pytest.raises(UnknownName, match=rf"Did you mean '{near}'\?"):
            publish_masked(with_person, "keep", CONNECTOR_PUBLISH_WITHOUT=name)


# -- Personal columns ------------------------------------------------------------------------------


def find_personal(project: Project, columns: TableColumns) -> set[str]:
    """Return the personal columns of tables that no own model makes, without a file."""
    with duckdb.connect() as connection:
        found = personal_columns(project, columns, connection)
    return {f"{table}.{column}" for table, column in found}


def test_the_catalog_decides_which_columns_of_loaded_tables_are_personal() -> None:
    expected = {
        "landing.jobs._record": True,
        "landing.companies.name": False,
        "landing.bookings.title": True,
        "history.candidates.email": True,
        "sync.events.detail": False,
        "push.rows.answer": True,
        "seeds.people.name": False,
        "marts.unknown.rows": True,
        "marts.content_news.birthday": True,
        "marts.content_news.title": False,
    }
    for name, is_personal in expected.items():
        table, _, column = name.rpartition(".")
        columns = {table: (Column(column, "BIGINT", ""),)}
        assert is_personal == bool(find_personal(Project({}, {}, ()), columns)), name


OWN_COLUMNS = "select upper(first_name) as listed, email, expected_salary::integer as pay, city, "
OWN_COLUMNS += 'phone, mobile as "Mobile", first_name as unlisted, true as unlisted_flag, '
OWN_COLUMNS += "length(email) as unlisted_count from landing.candidates"
PASSED_ON = {
    "select id, count(*) as n from landing.jobs group by id": ["id", "n"],
    "select j.id, c.email from landing.jobs as j, landing.candidates as c": ["id"],
    "select upper(c.email) as id, 1 as n from landing.jobs, landing.candidates as c": ["n"],
    "select id || '-' || title as id, 1 as n from landing.jobs": ["n"],
    # A text is personal even if a column that is not personal has its name.
    "select id, name from landing.companies": ["id"],
    # An entry that says nothing hides only columns that a model reads as personal.
    OWN_COLUMNS: ["listed", "city", "unlisted_flag", "unlisted_count"],
}
ENTRIES = "[{name: listed}, {name: email}, {name: pay, meta: {personal: true}}, {name: Mobile}"
ENTRIES += ", {name: city, meta: {personal: false}}]"


@pytest.mark.parametrize("sql", PASSED_ON)
def test_a_column_of_an_own_model_is_shown_if_it_is_declared_or_harmless(
    with_person: Account, sql: str
) -> None:
    with_person.write("my_models/own_rows.sql", sql)
    if sql == OWN_COLUMNS:
        text = f"models: [{{name: own_rows, columns: {ENTRIES}}}]"
        with_person.write("my_models/rows.yml", text)

    assert PASSED_ON[sql] == publish_masked(with_person, "drop")["own.own_rows"]


def test_a_column_of_a_shipped_mart_without_an_entry_is_read_under_its_name() -> None:
    project = load_project()
    shapes = describe(project)
    names = {table: {each.name.removeprefix("_") for each in shapes[table]} for table in shapes}

    assert [] == [
        f"{model.table}.{each.name}"
        for model in project.nodes.values()
        if model.kind != "seed"
        for each in shapes[model.table]
        if each.name not in model.entry.named
        and not any(each.name in names[read] for read in tables_read_by(model, shapes))
    ]


def test_the_personal_columns_of_shipped_marts_are_the_listed_ones() -> None:
    project = load_project()
    listed = {
        "dim_candidates": "full_name first_name last_name email phone mobile city country skills"
        " current_job_title current_company expected_salary expected_day_rate",
        "fct_leads": "full_name email phone city country lead_job_title",
        "fct_contract_months": "day_rate billings reporting_billings contract_value",
        "fct_contracts": "day_rate contract_value",
        "fct_placements": "cancellation_reason annual_salary day_rate contract_value",
    }

    assert {f"marts.{t}.{name}" for t, names in listed.items() for name in names.split()} == {
        each for each in find_personal(project, describe(project)) if "marts." in each
    }


# -- Own models ------------------------------------------------------------------------------------


def test_own_models_can_use_plain_table_names_instead_of_ref(account: Account) -> None:
    account.write("my_models/a.sql", "select count(*) as n from {{ ref('b') }}")
    account.write("my_models/b.sql", "select job_id, status from marts.fct_jobs")

    account.publish()
    account.insert("jobs", {"id": "j4", "status": "open"})
    account.publish()

    assert [(4,)] == account.query("FROM own.a")


def test_the_schema_file_of_own_models_adds_comments_and_checks(with_person: Account) -> None:
    with_person.publish()

    assert [("The agency's people.",)] == with_person.query(
        "SELECT comment FROM duckdb_tables() WHERE table_name = 'own_people'"
    )
    doubled = f"{PEOPLE}union all by name select 'c1' as candidate_id, 'x' as status\n"
    with_person.write("my_models/own_people.sql", doubled)
    with pytest.raises(PublishingRefused, match="unique_own_people_candidate_id"):
        with_person.publish()
    assert [(2,)] == with_person.query("SELECT count(*) AS n FROM own.own_people")


def test_an_own_audit_warns_or_blocks_by_its_severity(account: Account) -> None:
    audit = "-- audit: jobs_are_closed\n-- No job is open.\n{}\nselect job_id"
    audit += " from {{{{ ref('stg_jobs') }}}} where status = 'open'\n"
    account.write("my_models/closed.sql", audit.format("{{ config(severity='warn') }}"))
    assert ("closed",) == account.publish().publication.failed_checks

    account.write("my_models/closed.sql", audit.format(""))
    with pytest.raises(PublishingRefused, match="closed"):
        account.publish()


@pytest.mark.parametrize(
    ("file", "message"),
    [
        ("own.sql", r"own\.sql:2: own cannot be built: .*stauts"),
        ("My Mart.sql", "is not a valid table name"),
    ],
)
def test_errors_in_own_models_name_file_and_line(account: Account, file: str, message: str) -> None:
    account.write(f"my_models/{file}", "select job_id,\n  stauts from {{ ref('fct_jobs') }}\n")

    with pytest.raises(ModelError, match=message):
        account.publish()


def test_a_missing_models_folder_is_rejected(account: Account) -> None:
    settings = account.settings(CONNECTOR_MODELS_FOLDER=str(account.folder / "nowhere"))

    with pytest.raises(SettingsError, match=r"models_folder is .*nowhere.*a folder that exists"):
        load_account_project(settings)


PAGE = (ROOT / "docs" / "MARTS.md").read_text(encoding="utf-8")


def read_code_blocks(language: str) -> list[str]:
    """Return the code blocks of one language in docs/MARTS.md."""
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.slow
def test_the_documented_session_with_own_models_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [line for block in read_code_blocks("sh") for line in block.splitlines()]
    served = next(line for line in lines if line.startswith("connector sandbox"))
    counts = {name: int(n) for name, n in re.findall(r"--(jobs|[a-z]+s) (\d+)", served)}
    (tmp_path / "my_models").mkdir()
    (tmp_path / "my_models" / "own_open_jobs.sql").write_text(read_code_blocks("sql")[0])
    (tmp_path / "connector.toml").write_text(read_code_blocks("toml")[0], encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    with Sandbox(counts=counts) as sandbox:
        environ = {"CONNECTOR_BASE_URL": sandbox.base_url, "CONNECTOR_API_KEY": sandbox.key}
        for line in lines:
            if line.startswith("connector") and line != served:
                called = call(line.split()[1:], environ)
                assert 0 == called.status, called.err

    exec(read_code_blocks("python")[0], {})  # noqa: S102  # the page's own code

    assert capsys.readouterr().out.strip() == read_code_blocks("text")[0].strip()
