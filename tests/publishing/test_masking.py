"""What is left out of a published file is nowhere in it: not in a table, and not in its bytes."""

from __future__ import annotations

import hmac
import json
from pathlib import Path

import pytest

from connector.catalog import CATALOG
from connector.errors import SettingsError, UnknownName, WarehouseError
from connector.publishing.columns import describe, personal_columns
from connector.publishing.project import ColumnType
from connector.publishing.project_loader import load_project
from tests.publishing.agency import PublishingAccount, tables_of
from tests.support.errors import has_code

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
def peopled(agency: PublishingAccount) -> PublishingAccount:
    """The agency with a person, wherever a person can be: landed, observed, pushed."""
    agency.land("candidates", CANDIDATE, {"id": "c2", "email": EMAIL, "first_name": ""})
    agency.land("history.candidates", {**CANDIDATE, "_version": 1})
    agency.land("leads", {"id": "l1", "email": EMAIL, "last_name": NAME})
    agency.land("push.batches", {"batch": "b1", "file": f"{NAME}.csv"})
    agency.land("push.attempts", {"batch": "b1", "number": 2, "body": json.dumps(RAW)})
    agency.land("push.problems", {"batch": "b1", "number": 2, "code": "x", "received": PHONE})
    agency.land("push.before_images", {"batch": "b1", "number": 2, "record": json.dumps(RAW)})
    return agency


def planted_in(file: Path) -> list[str]:
    """Return the person's texts that are in the bytes of a file."""
    held = file.read_bytes()
    return [each for each in PLANTED if each.encode() in held]


def masked(agency: PublishingAccount, personal: str, **more: str) -> None:
    """Publish with a setting for personal fields."""
    agency.given |= {"CONNECTOR_PUBLISH_PERSONAL": personal, **more}
    agency.publish()


def test_dropped_fields_are_nowhere_in_the_file(peopled: PublishingAccount) -> None:
    peopled.publish()
    assert set(PLANTED) - {"1999-12-31", "87654"} <= set(planted_in(peopled.file))

    masked(peopled, "drop")

    assert [] == planted_in(peopled.file)
    assert NAME in planted_in(peopled.warehouse.work)
    assert [] == peopled.leftovers()
    tables = tables_of(peopled.file)
    assert ["candidate_id", "status", "letters", "is_young"] == tables["marts.dim_people"]
    assert ["job_id", "title"] == tables["staging.stg_jobs"]
    personal = {each.name for each in CATALOG["candidates"].fields.values() if each.personal}
    for schema in ("landing", "history"):
        kept = set(tables[f"{schema}.candidates"])
        assert set() == kept & {*personal, "_record"}
        assert {"id", "status", "industry", "created_at"} <= kept
    assert ["batch", "number", "step", "noted_at", "change"] == tables["push.before_images"]
    assert [{"n": 2}] == peopled.rows("SELECT count(*) AS n FROM landing.candidates")
    assert "drop" == peopled.last.personal


def test_hashed_fields_join_and_tell_nothing(peopled: PublishingAccount) -> None:
    masked(peopled, "hash", CONNECTOR_PUBLISH_HASH_KEY=KEY)

    assert [] == planted_in(peopled.file)
    token = hmac.new(KEY.encode(), EMAIL.encode(), "sha256").hexdigest()[:32]
    assert [{"l": "l1", "email": token}] == peopled.rows(
        "SELECT DISTINCT l.id AS l, email FROM landing.leads AS l JOIN landing.candidates "
        "USING (email) JOIN marts.dim_people USING (email)"
    )
    (second,) = peopled.rows("SELECT first_name, phone FROM landing.candidates WHERE id = 'c2'")
    assert {"first_name": "", "phone": None} == second
    assert "_record" not in tables_of(peopled.file)["landing.candidates"]
    (column,) = peopled.rows(
        "SELECT data_type, comment FROM duckdb_columns() WHERE schema_name = 'landing' "
        "AND table_name = 'candidates' AND column_name = 'date_of_birth'"
    )
    assert ("VARCHAR", "Date of birth. The value is replaced by a hash.") == (
        column["data_type"],
        column["comment"],
    )

    masked(peopled, "hash", CONNECTOR_PUBLISH_HASH_KEY="x" * 70)
    (other,) = peopled.rows("SELECT email FROM landing.leads")
    assert other["email"] == hmac.new(b"x" * 70, EMAIL.encode(), "sha256").hexdigest()[:32]


def test_schemas_are_left_out(peopled: PublishingAccount) -> None:
    masked(peopled, "keep", CONNECTOR_PUBLISH_WITHOUT="landing,push")

    schemas = {table.partition(".")[0] for table in tables_of(peopled.file)}
    assert {"history", "sync", "staging", "marts"} == schemas
    titles = peopled.rows("SELECT title FROM staging.stg_jobs ORDER BY title")
    assert [{"title": "Cook"}, {"title": "Nurse"}] == titles
    comments = peopled.rows(
        "SELECT comment FROM duckdb_columns() WHERE table_name = 'candidates' "
        "AND schema_name = 'history' AND column_name = 'email'"
    )
    assert [{"comment": "Email address."}] == comments


LEFT_OUT = "candidates.phone,candidates.email,marts.dim_people.address,marts.dim_people.letters"


def test_columns_are_left_out_of_every_table_that_passes_them_on(
    peopled: PublishingAccount,
) -> None:
    masked(peopled, "keep", CONNECTOR_PUBLISH_WITHOUT=f"{LEFT_OUT},landing.leads.email")

    tables = tables_of(peopled.file)
    for table in ("landing.candidates", "history.candidates"):
        assert {"phone", "email"} & {*tables[table]} == set()
        assert {"first_name", "notes", "_record"} <= {*tables[table]}
    (record,) = peopled.rows("SELECT _record FROM landing.candidates WHERE id = 'c1'")
    assert {k: v for k, v in RAW.items() if k not in ("phone", "email")} == json.loads(
        record["_record"]
    )
    assert {"candidate_id", "whole_name", "status", "hoped_for", "is_young"} == {
        *tables["marts.dim_people"]
    }
    assert "email" not in tables["landing.leads"]
    assert "received" not in tables["push.problems"]
    assert {NAME, NOTE} == {each for each in planted_in(peopled.file) if each in RAW.values()}
    assert (*LEFT_OUT.split(","), "landing.leads.email") == peopled.last.left_out


def test_a_published_file_without_a_column_restores_no_work_file(
    peopled: PublishingAccount,
) -> None:
    masked(peopled, "keep", CONNECTOR_PUBLISH_WITHOUT="candidates.phone")
    peopled.warehouse.work.unlink()

    with pytest.raises(
        WarehouseError, match=r"published without candidates\.phone", check=has_code("work_lost")
    ):
        peopled.warehouse.prepare()


def test_a_model_that_computes_from_a_column_left_out_is_named(peopled: PublishingAccount) -> None:
    with pytest.raises(SettingsError) as caught:
        masked(peopled, "keep", CONNECTOR_PUBLISH_WITHOUT="candidates.email")

    assert str(caught.value) == (
        "publish_without leaves out landing.candidates.email, but the model marts.dim_people "
        "computes its column address from it"
    )
    assert "marts.dim_people.address, marts.dim_people.letters." in caught.value.action
    assert "failed" == peopled.last.outcome


def test_a_field_left_out_is_in_no_copy_of_the_record(peopled: PublishingAccount) -> None:
    model = peopled.project_folder / "marts" / "raw_people.sql"
    header = "-- model: raw_people\n-- grain: one row per candidate\n-- All of them.\n"
    peopled_from = "from {{ source('landing', 'candidates') }}\n"
    model.write_text(f"{header}select * {peopled_from}", encoding="utf-8")
    masked(peopled, "keep", CONNECTOR_PUBLISH_WITHOUT="candidates.phone,push")

    assert PHONE not in planted_in(peopled.file)
    assert NOTE in peopled.rows("SELECT _record FROM marts.raw_people ORDER BY id")[0]["_record"]
    for column in ("_record as raw", "_record->>'$.phone' as called"):
        model.write_text(f"{header}select {column} {peopled_from}", encoding="utf-8")
        with pytest.raises(
            SettingsError, match=r"marts\.raw_people computes its column (raw|called)"
        ):
            peopled.publish()


def test_a_column_left_out_must_exist(peopled: PublishingAccount) -> None:
    with pytest.raises(UnknownName, match=r"Did you mean 'candidate_id'\?"):
        masked(peopled, "keep", CONNECTOR_PUBLISH_WITHOUT="marts.dim_people.candidate")
    with pytest.raises(UnknownName, match=r"Did you mean 'marts.dim_people'\?"):
        masked(peopled, "keep", CONNECTOR_PUBLISH_WITHOUT="marts.dim_peple.email")


@pytest.mark.slow
def test_what_is_masked_is_copied_nowhere(peopled: PublishingAccount) -> None:
    masked(peopled, "hash", CONNECTOR_PUBLISH_HASH_KEY=KEY)
    emails = "SELECT email FROM marts.dim_people WHERE candidate_id = 'c1'"
    hashed = peopled.rows(emails)

    peopled.publish(select=("fct_jobs",))
    again = peopled.rows(emails)
    peopled.given["CONNECTOR_PUBLISH_PERSONAL"] = "keep"
    peopled.publish(select=("fct_jobs",))
    kept = peopled.rows(emails)
    people = peopled.project_folder / "marts" / "dim_people.sql"
    now = people.read_text(encoding="utf-8")
    people.write_text(now.replace("    status,", "    first_name as status,"), encoding="utf-8")
    peopled.publish()
    people.write_text(now, encoding="utf-8")
    peopled.given["CONNECTOR_PUBLISH_PERSONAL"] = "drop"
    peopled.publish(select=("fct_jobs",))

    assert hashed == again
    assert [{"email": EMAIL}] == kept
    assert [] == planted_in(peopled.file)
    assert ["dim_people", "fct_jobs"] == [
        name.removeprefix("marts.") for name in tables_of(peopled.file) if "marts." in name
    ]


@pytest.mark.parametrize(
    ("table", "name", "expected"),
    [
        ("landing.jobs", "_record", True),
        ("landing.companies", "name", False),
        ("landing.bookings", "title", True),
        ("history.candidates", "email", True),
        ("sync.events", "detail", False),
        ("push.problems", "received", True),
        ("seeds.people", "name", False),
        ("marts.unknown", "rows", True),
        ("marts.content_news", "birthday", True),
        ("marts.content_news", "title", False),
    ],
)
def test_tables_that_no_model_makes_are_judged_by_the_catalog(
    table: str, name: str, expected: bool
) -> None:
    shapes = {table: (ColumnType(name, "BIGINT", ""),)}

    assert expected == bool(personal_columns(None, shapes))


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
-- model: dim_people
-- grain: one row per candidate
-- Each case of a column's declaration.

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


def test_a_column_of_a_mart_is_personal_by_its_entry_its_name_or_for_want_of_an_entry(
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


def test_every_column_of_a_shipped_mart_is_declared() -> None:
    project = load_project()
    shapes = describe(project)

    undeclared = [
        f"{model.table}.{each.name}"
        for model in project.models.values()
        if model.schema == "marts"
        for each in shapes[model.table]
        if each.name not in model.texts
    ]

    assert [] == undeclared


def test_personal_columns_of_the_shipped_marts_are_exactly_these() -> None:
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
        *(f"dim_leads.{name}" for name in ("full_name", "email", "phone", "city", "country")),
        "dim_leads.job_title",
        *(f"fct_contract_months.{name}" for name in ("day_rate", "billings", "reporting_billings")),
        "fct_contractors_ending.day_rate",
        "fct_placement_outcomes.cancellation_reason",
        "fct_placements.annual_salary",
        "fct_placements.day_rate",
        "fct_placements.contract_value",
    } == found
