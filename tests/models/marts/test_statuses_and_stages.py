"""Cases that need many records: times in stages, and what each status of a booking counts as."""

from __future__ import annotations

from pathlib import Path

import pytest

from connector.models.project import load_project
from connector.models.publish import publish
from connector.settings import load_settings
from tests.catalog.document import list_quoted_words, parse_tables
from tests.models.account import build_file
from tests.models.marts.world import (
    BORN,
    BuiltWorld,
    ModelWorld,
    build_models,
    make_january_booking,
)
from tests.support.agency import rows

PAGE = Path(__file__).parents[3] / "docs" / "MARTS.md"


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


@pytest.mark.slow
@pytest.mark.parametrize(("visits", "expected_median"), [(19, None), (20, 3)])
def test_a_median_of_too_few_visits_is_null(
    world: ModelWorld, visits: int, expected_median: int | None
) -> None:
    ids = [f"c{n}" for n in range(visits)]
    new = {"created": "2026-02-01 09:00", "status": "screening"}
    world.load_details("2026-02-01 10:00", candidates=dict.fromkeys(ids, new))
    left = {"updated": "2026-02-04 09:00", "status": "submitted"}
    world.load_details("2026-02-05 09:00", candidates=dict.fromkeys(ids, left))
    shown = build_models(world, "sum_time_in_stage")

    assert [expected_median, visits, visits] == shown.read_row(
        "marts.sum_time_in_stage", "stage = 'screening'", "p50_days", "p50_at_risk", "p75_at_risk"
    )


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


def test_no_mart_column_is_a_hugeint_or_wide_decimal(empty_world: BuiltWorld) -> None:
    assert [] == empty_world.query_tuples(
        "SELECT table_name, column_name FROM duckdb_columns() WHERE schema_name IN "
        "('marts', 'staging') AND (data_type = 'HUGEINT' OR data_type LIKE 'DECIMAL(38%')"
    )
