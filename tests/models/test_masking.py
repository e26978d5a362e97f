"""Data that is left out of a published file is in none of its tables and not in its bytes."""

from __future__ import annotations

import hmac
import json
from pathlib import Path

import pytest

from connector.catalog import CATALOG
from connector.errors import UnknownName
from connector.models.mask import personal_columns
from connector.models.project import Project, load_project
from connector.models.runner import describe, tables_read_by
from connector.state.database import Database
from connector.state.journal import Journal, Plan
from connector.state.row import Policy, Problem, Row
from connector.warehouse.schema import Column
from tests.models.agency import PublishingAccount, list_columns

KEY = "planted-hash-key-77aa"
NAME, EMAIL, PHONE, NOTE = "Zebediah", "zebediah@planted.example", "+44 7700 900123", "likes yaks"
PLANTED = (NAME, EMAIL, PHONE, NOTE, "1999-12-31", "87654")
RAW = {
    "id": "c1",
    "first_name": NAME,
    "email": EMAIL,
    "phone": PHONE,
    "notes": NOTE,
    "nickname": NAME,
}
CANDIDATE = {
    **{name: RAW[name] for name in ("id", "first_name", "email", "phone", "notes")},
    "date_of_birth": "1999-12-31",
    "expected_salary": 87654.0,
    "status": "new_lead",
    "_record": json.dumps(RAW),
}


@pytest.fixture
def agency_with_person(agency: PublishingAccount) -> PublishingAccount:
    """Account with the texts of one person in every table that can contain them."""
    agency.insert_rows("candidates", CANDIDATE, {"id": "c2", "email": EMAIL, "first_name": ""})
    agency.insert_rows("history.candidates", {**CANDIDATE, "_version": 1})
    agency.insert_rows("leads", {"id": "l1", "email": EMAIL, "last_name": NAME})
    with Database(agency.warehouse.folder) as database:
        problems = (Problem("x", "wrong", received=PHONE),)
        row = Row(2, "candidates", "update", fields=RAW, before=RAW, problems=problems)
        plan = Plan("candidates", "update", f"{NAME}.csv", "d1", (row,))
        Journal(database).begin(plan, Policy(), "b1")
    return agency


def find_planted_texts(file: Path) -> list[str]:
    """Return the texts of `PLANTED` that occur in the bytes of a file."""
    held = file.read_bytes()
    return [each for each in PLANTED if each.encode() in held]


def publish_masked(agency: PublishingAccount, personal: str, **more: str) -> None:
    """Publish with a setting for personal fields: keep, hash or drop."""
    agency.environ |= {"CONNECTOR_PUBLISH_PERSONAL": personal, **more}
    agency.publish()


def test_dropped_personal_fields_are_not_in_the_bytes_of_the_file(
    agency_with_person: PublishingAccount,
) -> None:
    agency_with_person.publish()
    assert set(PLANTED) - {"1999-12-31", "87654"} <= set(
        find_planted_texts(agency_with_person.published_file)
    )

    publish_masked(agency_with_person, "drop")

    assert [] == find_planted_texts(agency_with_person.published_file)
    assert NAME in find_planted_texts(agency_with_person.warehouse.work)
    assert [] == agency_with_person.list_leftover_files()
    tables = list_columns(agency_with_person.published_file)
    assert ["candidate_id", "status", "letters", "is_young"] == tables["marts.dim_people"]
    assert ["job_id", "title"] == tables["staging.stg_jobs"]
    personal = {each.name for each in CATALOG["candidates"].fields.values() if each.personal}
    for schema in ("landing", "history"):
        kept = set(tables[f"{schema}.candidates"])
        assert set() == kept & {*personal, "_record"}
        assert {"id", "status", "industry", "created_at"} <= kept
    assert {"batch", "number", "outcome", "record_id"} <= {*tables["push.rows"]}
    assert set() == {"before", "after", "answer"} & {*tables["push.rows"]}
    assert "file" not in tables["push.batches"]
    assert [{"n": 2}] == agency_with_person.query("SELECT count(*) AS n FROM landing.candidates")
    assert "drop" == agency_with_person.last_publication.personal


def test_hashed_fields_still_join_and_do_not_contain_the_values(
    agency_with_person: PublishingAccount,
) -> None:
    publish_masked(agency_with_person, "hash", CONNECTOR_PUBLISH_HASH_KEY=KEY)

    assert [] == find_planted_texts(agency_with_person.published_file)
    token = hmac.new(KEY.encode(), EMAIL.encode(), "sha256").hexdigest()[:32]
    assert [{"l": "l1", "email": token}] == agency_with_person.query(
        "SELECT DISTINCT l.id AS l, email FROM landing.leads AS l JOIN landing.candidates "
        "USING (email) JOIN marts.dim_people USING (email)"
    )
    (second,) = agency_with_person.query(
        "SELECT first_name, phone FROM landing.candidates WHERE id = 'c2'"
    )
    assert {"first_name": "", "phone": None} == second
    assert "_record" not in list_columns(agency_with_person.published_file)["landing.candidates"]
    (column,) = agency_with_person.query(
        "SELECT data_type, comment FROM duckdb_columns() WHERE schema_name = 'landing' "
        "AND table_name = 'candidates' AND column_name = 'date_of_birth'"
    )
    assert ("VARCHAR", "Date of birth. The value is replaced by a hash.") == (
        column["data_type"],
        column["comment"],
    )

    publish_masked(agency_with_person, "hash", CONNECTOR_PUBLISH_HASH_KEY="x" * 70)
    (other,) = agency_with_person.query("SELECT email FROM landing.leads")
    assert other["email"] == hmac.new(b"x" * 70, EMAIL.encode(), "sha256").hexdigest()[:32]


def test_publish_without_leaves_out_schemas(agency_with_person: PublishingAccount) -> None:
    publish_masked(agency_with_person, "keep", CONNECTOR_PUBLISH_WITHOUT="landing,push")

    schemas = {table.partition(".")[0] for table in list_columns(agency_with_person.published_file)}
    assert {"history", "sync", "staging", "marts"} == schemas
    titles = agency_with_person.query("SELECT title FROM staging.stg_jobs ORDER BY title")
    assert [{"title": "Cook"}, {"title": "Nurse"}] == titles
    comments = agency_with_person.query(
        "SELECT comment FROM duckdb_columns() WHERE table_name = 'candidates' "
        "AND schema_name = 'history' AND column_name = 'email'"
    )
    assert [{"comment": "Email address."}] == comments


LEFT_OUT = ("candidates.phone", "candidates.email", "marts.dim_people.address", "staging.stg_jobs")


def test_a_left_out_field_is_in_no_table_however_a_model_computes_it(
    agency_with_person: PublishingAccount,
) -> None:
    left_out = ",".join((*LEFT_OUT, "landing.leads.email"))
    model = agency_with_person.project_folder / "marts" / "raw_people.sql"
    model.write_text(
        "select id, _record as raw, _record->>'$.phone' as called, 'to ' || email as address "
        "from {{ source('landing', 'candidates') }}\n",
        encoding="utf-8",
    )

    publish_masked(agency_with_person, "keep", CONNECTOR_PUBLISH_WITHOUT=left_out)

    tables = list_columns(agency_with_person.published_file)
    for table in ("landing.candidates", "history.candidates"):
        assert {"phone", "email"} & {*tables[table]} == set()
        assert {"first_name", "notes", "_record"} <= {*tables[table]}
    (person,) = agency_with_person.query(
        "SELECT raw, called, address FROM marts.raw_people WHERE id = 'c1'"
    )
    assert {k: v for k, v in RAW.items() if k not in ("phone", "email")} == json.loads(
        person["raw"]
    )
    assert (None, None) == (person["called"], person["address"])
    assert "address" not in tables["marts.dim_people"]
    assert [{"email": None}] == agency_with_person.query(
        "SELECT email FROM marts.dim_people WHERE candidate_id = 'c1'"
    )
    assert "email" not in tables["landing.leads"]
    assert "answer" not in tables["push.rows"]
    assert "staging.stg_jobs" not in tables
    assert {NAME, NOTE} == {
        each
        for each in find_planted_texts(agency_with_person.published_file)
        if each in RAW.values()
    }
    assert {*LEFT_OUT, "landing.leads.email"} == {*agency_with_person.last_publication.left_out}


def test_leaving_out_an_unknown_column_is_rejected_with_the_nearest_name(
    agency_with_person: PublishingAccount,
) -> None:
    with pytest.raises(UnknownName, match=r"Did you mean 'marts.dim_people.candidate_id'\?"):
        publish_masked(
            agency_with_person, "keep", CONNECTOR_PUBLISH_WITHOUT="marts.dim_people.candidate"
        )
    with pytest.raises(UnknownName, match=r"Did you mean 'marts.dim_people'\?"):
        publish_masked(
            agency_with_person, "keep", CONNECTOR_PUBLISH_WITHOUT="marts.dim_peple.email"
        )


@pytest.mark.parametrize(
    ("table", "column", "is_personal"),
    [
        ("landing.jobs", "_record", True),
        ("landing.companies", "name", False),
        ("landing.bookings", "title", True),
        ("history.candidates", "email", True),
        ("sync.events", "detail", False),
        ("push.rows", "answer", True),
        ("seeds.people", "name", False),
        ("marts.unknown", "rows", True),
        ("marts.content_news", "birthday", True),
        ("marts.content_news", "title", False),
    ],
)
def test_the_catalog_decides_which_columns_of_landing_are_personal(
    table: str, column: str, is_personal: bool
) -> None:
    shapes = {table: (Column(column, "BIGINT", ""),)}

    assert is_personal == bool(personal_columns(Project({}, {}, ()), shapes))


PEOPLE_COLUMNS = """\
models:
  - name: dim_people
    columns:
      - {name: listed}
      - {name: email}
      - {name: pay, meta: {personal: true}}
      - {name: city, meta: {personal: false}}
      - {name: Mobile}
"""
PEOPLE_SQL = """\
select
    upper(first_name) as listed,
    email,
    expected_salary::integer as pay,
    city,
    phone,
    mobile as "Mobile",
    first_name as unlisted,
    expected_salary as unlisted_amount,
    length(email) as unlisted_count,
    true as unlisted_flag
from {{ source('landing', 'candidates') }}
"""


def test_a_mart_column_is_personal_if_declared_or_named_so_or_undeclared(
    agency: PublishingAccount,
) -> None:
    (agency.project_folder / "marts" / "dim_people.sql").write_text(PEOPLE_SQL, encoding="utf-8")
    schema = agency.project_folder / "marts" / "schema.yml"
    schema.write_text(PEOPLE_COLUMNS, encoding="utf-8")
    project = load_project(agency.project_folder)

    found = personal_columns(project, describe(project))

    assert {"email", "pay", "phone", "Mobile", "unlisted", "unlisted_amount"} == {
        column for table, column in found if table == "marts.dim_people"
    }


def test_a_column_of_a_shipped_mart_without_an_entry_is_read_under_its_name() -> None:
    project = load_project()
    shapes = describe(project)
    names = {table: {each.name.removeprefix("_") for each in shapes[table]} for table in shapes}

    undeclared = [
        f"{model.table}.{each.name}"
        for model in project.nodes.values()
        if model.schema == "marts"
        for each in shapes[model.table]
        if each.name not in model.entry.named
        and not any(each.name in names[read] for read in tables_read_by(model, shapes))
    ]

    assert [] == undeclared


def test_the_personal_columns_of_shipped_marts_are_the_listed_ones() -> None:
    project = load_project()

    found = {
        f"{table.partition('.')[2]}.{column}"
        for table, column in personal_columns(project, describe(project))
        if table.startswith("marts.")
    }

    who = ("full_name", "first_name", "last_name", "email", "phone", "mobile", "city", "country")
    what = ("current_job_title", "current_company", "skills")
    assert {
        *(f"dim_candidates.{name}" for name in (*who, *what)),
        "dim_candidates.expected_salary",
        "dim_candidates.expected_day_rate",
        *(f"fct_leads.{name}" for name in ("full_name", "email", "phone", "city", "country")),
        "fct_leads.lead_job_title",
        *(f"fct_contract_months.{name}" for name in ("day_rate", "billings", "reporting_billings")),
        "fct_contracts.day_rate",
        "fct_contracts.contract_value",
        "fct_contract_months.contract_value",
        "fct_placements.cancellation_reason",
        "fct_placements.annual_salary",
        "fct_placements.day_rate",
        "fct_placements.contract_value",
    } == found
