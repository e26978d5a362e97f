"""Marts count what their descriptions say: days, months, states, names and currencies."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from connector.models.project import load_project
from connector.models.publish import publish
from connector.settings import load_settings
from tests.catalog.document import list_quoted_words, parse_tables
from tests.models.marts.world import (
    BORN,
    BuiltWorld,
    ModelWorld,
    build_models,
    make_january_booking,
)
from tests.models.small import build_file
from tests.support.agency import rows

PAGE = Path(__file__).parents[3] / "docs" / "MARTS.md"


# -- days ------------------------------------------------------------------------------------------


def load_late_evening_records(world: ModelWorld) -> None:
    """Load records whose date differs between UTC and their own time zone."""
    contract: dict[str, Any] = {
        "all_day": True,
        "placement_fee": 100,
        "end_datetime": "2026-06-30T21:59:00Z",
    }
    eve = "2025-12-31T23:00:00Z"
    world.set_time_zone("Europe/Berlin")
    world.load_details(
        "2026-03-01 09:00",
        bookings={
            "berlin": make_january_booking(
                "contract", eve, "confirmed", timezone="Europe/Berlin", **contract
            ),
            "unsaid": make_january_booking("contract", eve, "confirmed", **contract),
            "nowhere": make_january_booking(
                "contract", eve, "confirmed", timezone="Mars/Olympus", **contract
            ),
            "london": make_january_booking(
                "contract", eve, "confirmed", timezone="Europe/London", **contract
            ),
            "york": make_january_booking(
                *("contract", "2026-01-01T00:00:00Z", "confirmed"),
                timezone="America/New_York",
                **contract,
            ),
            # Half past eleven in the evening of the last of February, in New York.
            "met": make_january_booking(
                *("interview", "2026-03-01T04:30:00Z", "completed"), timezone="America/New_York"
            ),
        },
        candidates={"ann": {"created": "2026-01-31 23:30", "status": "new_lead"}},
        jobs={
            "job": {
                **BORN,
                "status": "published",
                "published_at": "2026-01-31T23:30:00Z",
                "title": "A job",
            }
        },
        leads={"lead": {"created": "2026-01-31 23:30", "status": "lead"}},
    )


def test_days_are_in_the_time_zone_of_the_booking_or_else_the_account(world: ModelWorld) -> None:
    load_late_evening_records(world)
    shown = build_models(
        world,
        "fct_placements",
        "sum_months",
        "fct_job_openings",
        "fct_leads",
        "sum_consultant_activity",
    )

    assert [
        ("berlin", "2026-01-01", "2026-06-30", "Europe/Berlin"),
        ("london", "2025-12-31", "2026-06-30", "Europe/London"),
        ("nowhere", "2026-01-01", "2026-06-30", "Europe/Berlin"),
        ("unsaid", "2026-01-01", "2026-06-30", "Europe/Berlin"),
        ("york", "2026-01-01", "2026-06-30", "America/New_York"),
    ] == shown.query_tuples(
        "SELECT booking_id, start_date, end_date, time_zone FROM marts.fct_placements ORDER BY ALL"
    )
    assert [("2025-12-01", 1), ("2026-01-01", 4)] == shown.query_tuples(
        "SELECT month_start, placements_started FROM marts.sum_months WHERE placements_started > 0 "
        "ORDER BY month_start"
    )
    # It is 6 March at 01:00 in Berlin.
    assert ["2026-03-06", "Europe/Berlin"] == shown.read_row(
        "staging.as_of", "true", "as_of_date", "time_zone"
    )
    assert ["2026-02-01"] == shown.read_row("marts.fct_job_openings", "true", "opened_on")
    assert ["2026-02-01"] == shown.read_row("marts.fct_leads", "true", "created_month")
    assert [("2026-02-01", 1, 1, 1, 1)] == shown.query_tuples(
        "SELECT period_start, sum(candidates_added), sum(jobs_added + 1), sum(leads_added), "
        "sum(interviews_held) FROM marts.sum_consultant_activity "
        "WHERE period = 'month' AND period_start = '2026-02-01' GROUP BY period_start"
    )


def test_a_published_file_dates_days_in_the_time_zone_of_the_account(tmp_path: Path) -> None:
    world = ModelWorld(tmp_path)
    world.load_details("2026-03-01 09:00", candidates={"ann": {"created": "2026-01-31 23:30"}})
    world.mark_verified("2026-03-05 23:30")
    world.warehouse.close()
    given = {"TIME_ZONE": "Europe/Berlin", "DATA_DIR": str(tmp_path), "MODELS": "off"}
    environ = {f"CONNECTOR_{name}": value for name, value in given.items()}
    file = publish(load_settings({}, environ, tmp_path)).file
    build_file(file, load_project(), ["+as_of"])

    assert [{"time_zone": "Europe/Berlin", "day": "2026-03-06"}] == rows(
        file, "SELECT time_zone, as_of_date::VARCHAR AS day FROM staging.as_of"
    )


# -- stages ----------------------------------------------------------------------------------------


def test_candidates_still_in_a_stage_count_in_its_time(world: ModelWorld) -> None:
    waiting = {f"w{n}": {**BORN, "status": "offer_made"} for n in range(20)}
    quick = {"created": "2026-02-01 09:00", "status": "offer_made"}
    slow = {f"s{n}": {"created": "2026-02-01 09:00", "status": "screening"} for n in range(4)}
    world.load_details("2026-02-01 08:00", candidates=waiting)
    world.load_details("2026-02-01 10:00", candidates={"quick": quick, **slow})
    world.load_details(
        "2026-02-04 09:00",
        candidates={
            "quick": {"updated": "2026-02-03 21:00", "status": "placed"},
            "s0": {"updated": "2026-02-03 09:00", "status": "rejected"},
        },
    )
    world.load_details(
        "2026-02-11 09:00", candidates={"s1": {"updated": "2026-02-10 09:00", "status": "rejected"}}
    )
    shown = build_models(world, "sum_time_in_stage")
    columns = ("p25_at_risk", "p50_days", "p50_at_risk", "current_visits", "current_p50_days")

    # No other one was observed so early. From 1 June at 09:00 to 6 March are 277 days and 15 hours.
    assert [None, None, None, 20, 277.63] == shown.read_row(
        "marts.sum_time_in_stage", "stage = 'offer_made'", *columns
    )
    # Four and then three were watched: too few for a quantile.
    assert [4, None, 3, 2, 32.63] == shown.read_row(
        "marts.sum_time_in_stage", "stage = 'screening'", *columns
    )


def test_a_visit_that_may_contain_unseen_changes_is_marked(world: ModelWorld) -> None:
    here = {"created": "2026-02-01 09:00", "status": "screening"}
    world.load_details(
        "2026-02-01 10:00", candidates={"quiet": here, "edited": here, "moved": here}
    )
    world.load_details(
        "2026-02-08 10:00",
        candidates={
            "quiet": {},
            "edited": {"updated": "2026-02-05 09:00"},
            "moved": {"updated": "2026-02-05 09:00", "status": "submitted"},
        },
    )
    shown = build_models(world, "fct_candidate_stages")

    assert [
        ("edited", "screening", True),
        ("moved", "screening", False),
        ("moved", "submitted", False),
        ("quiet", "screening", False),
    ] == shown.query_tuples(
        "SELECT candidate_id, stage, may_contain_gap FROM marts.fct_candidate_stages ORDER BY ALL"
    )


def test_events_before_the_first_pull_belong_to_no_month(world: ModelWorld) -> None:
    offer = {"status": "offer_made", "updated": "2026-01-20 09:00"}
    world.load_details("2026-02-01 08:00", candidates={"old": {**BORN, **offer}})
    new = {"created": "2026-02-01 09:00", "status": "interviewing"}
    world.load_details("2026-02-01 10:00", candidates={"new": new})
    world.load_details(
        "2026-02-08 10:00",
        candidates={"new": {"updated": "2026-02-05 09:00", "status": "offer_made"}},
    )
    shown = build_models(world, "fct_offers")

    assert [("new", "2026-02-01"), ("old", None)] == shown.query_tuples(
        "SELECT candidate_id, offered_month FROM marts.fct_offers ORDER BY ALL"
    )


# -- bookings --------------------------------------------------------------------------------------


def load_bookings(world: ModelWorld, status: str) -> None:
    """Load a booking of each kind in the status, and a past and a future interview."""
    parties = {"candidate_id": f"c-{status}", "job_id": f"j-{status}"}
    ends = {"end_datetime": "2026-05-01T09:00:00Z"}
    soon, past = "2026-03-20T09:00:00Z", "2026-02-20T09:00:00Z"
    other = {**parties, "job_id": f"k-{status}"}
    world.load_details(
        "2026-03-01 09:00",
        jobs={id: {**BORN, "status": "published"} for id in (f"j-{status}", f"k-{status}")},
        leads={f"l-{status}": {**BORN, "status": "lead"}},
        bookings={
            f"soon-{status}": make_january_booking("interview", soon, status, **parties),
            f"past-{status}": make_january_booking("interview", past, status, **other),
            f"p-{status}": make_january_booking(
                "permanent", "2025-12-01T09:00:00Z", status, placement_fee=100, **parties
            ),
            f"contract-{status}": make_january_booking("contract", past, status, **ends, **other),
            f"talk-{status}": make_january_booking(
                "consultation", past, status, lead_id=f"l-{status}"
            ),
        },
    )


@pytest.mark.slow
def test_every_booking_status_counts_as_documented(world: ModelWorld) -> None:
    table = next(t for t in parse_tables(PAGE.read_text("utf-8")) if t.header[0] == "Status")
    records = {list_quoted_words(each["Status"])[0]: each for each in table.rows_as_dicts()}
    for status in records:
        load_bookings(world, status)
    shown = build_models(world, "dim_jobs", "fct_leads", "fct_contracts", "sum_months")

    def of(query: str) -> set[str]:
        return {name for (name,) in shown.query_tuples(query)}

    def words(job: str, status: str) -> str:
        held, coming, cancelled = (
            f"{prefix}-{status}" in of(f"SELECT job_id FROM marts.{where}")
            for prefix, where in (
                (job, "dim_jobs WHERE interviews_held > 0"),
                (job, "dim_jobs WHERE interviews_to_come > 0"),
                (job, "dim_jobs WHERE interviews_cancelled > 0"),
            )
        )
        assert [held, coming, cancelled].count(True) <= 1
        return "held" if held else "to come" if coming else "cancelled" if cancelled else "no"

    for status, documented in records.items():
        placed = f"p-{status}" in of(
            "SELECT booking_id FROM marts.fct_placements WHERE is_placement"
        )
        ending = f"contract-{status}" in of(
            "SELECT booking_id FROM marts.fct_contracts WHERE band IS NOT NULL"
        )
        talked = f"l-{status}" in of("SELECT lead_id FROM marts.fct_leads WHERE consultations > 0")
        assert documented["Interview in time"] == words("j", status), status
        assert documented["Interview past"] == words("k", status), status
        assert (documented["Placement"] != "no") is placed, status
        assert (documented["Contract that ends"] != "no") is ending, status
        assert (documented["Consultation or visit"] == "yes") is talked, status
    confirmed = sum(each["Confirmed fee"] == "yes" for each in records.values())
    assert [(100 * confirmed,)] == shown.query_tuples(
        "SELECT sum(confirmed_fee) FROM marts.sum_months WHERE month_start = '2025-12-01'"
    )
    # The one that was rescheduled is in the funnel's interviews like any other that is to come.
    assert [1] == shown.read_row("marts.dim_jobs", "job_id = 'j-rescheduled'", "interviews_to_come")


def test_a_parallel_contract_is_not_the_next_booking(world: ModelWorld) -> None:
    def contract(who: str, job: str, start: str, end: str) -> dict[str, Any]:
        return make_january_booking(
            *("contract", f"{start}T09:00:00Z", "confirmed"),
            candidate_id=who,
            job_id=job,
            end_datetime=f"{end}T17:00:00Z",
        )

    world.load_details(
        "2026-03-01 09:00",
        bookings={
            "one": contract("ann", "a", "2026-01-05", "2026-04-30"),
            "beside": contract("ann", "b", "2026-02-02", "2026-12-31"),
            "first": contract("bob", "a", "2026-01-05", "2026-04-30"),
            "after": contract("bob", "b", "2026-05-04", "2026-12-31"),
        },
    )
    shown = build_models(world, "fct_contracts")

    assert [
        ("after", None, False),
        ("beside", None, False),
        ("first", "after", True),
        ("one", None, False),
    ] == shown.query_tuples(
        "SELECT booking_id, next_booking_id, is_redeployed FROM marts.fct_contracts "
        "ORDER BY booking_id"
    )


# -- clients and money -----------------------------------------------------------------------------


@pytest.mark.slow
def test_deleted_clients_api_counters_and_currencies_are_shown(world: ModelWorld) -> None:
    counters = {"jobs_count": 2, "active_jobs_count": 1, "placements_count": 4}
    world.load_details(
        "2026-02-01 09:00",
        companies={
            "gone": {**BORN, "name": "Gone Ltd", "fee_percentage": 10},
            "here": {**BORN, "name": "Here Ltd", **counters},
        },
        jobs={
            "j1": {**BORN, "status": "published", "company_id": "gone", "salary_min": 50000},
            "j2": {**BORN, "status": "on_hold", "company_id": "here"},
            "j3": {**BORN, "status": "published", "company_id": "here"},
            "j4": {**BORN, "status": "closed", "company_id": "never landed"},
        },
        bookings={
            "p1": make_january_booking(
                "permanent", "2026-02-02T09:00:00Z", "confirmed", job_id="j1"
            ),
            "p2": make_january_booking(
                "permanent", "2026-02-02T09:00:00Z", "scheduled", job_id="j3"
            ),
        },
    )
    world.load_deletions("2026-03-01 09:00", companies=("gone",))
    shown = build_models(world)

    assert [
        ("p1", "Gone Ltd", True, 5000, "company_percentage", None),
        ("p2", "Here Ltd", False, None, "none", None),
    ] == shown.query_tuples(
        "SELECT booking_id, company_name, is_company_deleted, fee, fee_source, currency "
        "FROM marts.fct_placements ORDER BY booking_id"
    )
    assert [
        ("Gone Ltd", True, 1),
        ("Here Ltd", False, 2),
        ("unknown company", False, 1),
    ] == shown.query_tuples(
        "SELECT company_name, is_deleted, jobs FROM marts.dim_companies ORDER BY ALL"
    )
    assert [(None, 2, 5000)] == shown.query_tuples(
        "SELECT currency, placements_started, fee FROM marts.sum_months"
    )
    # The one placement is only scheduled.
    assert [2, 2, 1, 1, 4, 0] == shown.read_row(
        "marts.dim_companies",
        "company_id = 'here'",
        *("api_jobs_count", "jobs", "api_active_jobs_count", "published_jobs"),
        *("api_placements_count", "confirmed_placements"),
    )
    warned = {each.check.name for each in shown.built.failed("warn")}
    assert "company_counters" in warned


def test_no_mart_column_is_a_hugeint_or_wide_decimal(empty_world: BuiltWorld) -> None:
    assert [] == empty_world.query_tuples(
        "SELECT table_name, column_name FROM duckdb_columns() WHERE schema_name IN "
        "('marts', 'staging') AND (data_type = 'HUGEINT' OR data_type LIKE 'DECIMAL(38%')"
    )
