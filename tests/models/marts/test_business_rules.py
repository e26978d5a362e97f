"""Each business rule is a column of a staging view, and marts and report use only that column."""

from __future__ import annotations

from typing import Any

import pytest

from tests.models.marts.world import BORN, ModelWorld, build_models, make_january_booking

# -- interviews and contracts ----------------------------------------------------------------------


def test_a_future_interview_does_not_count_as_interviewed(world: ModelWorld) -> None:
    who = {"candidate_id": "ann", "job_id": "job"}
    world.load_details(
        "2026-03-01 09:00",
        candidates={"ann": {**BORN, "status": "interviewing", "source": "referral"}},
        jobs={"job": {**BORN, "status": "published"}},
        bookings={
            "soon": make_january_booking("interview", "2026-03-20T09:00:00Z", "scheduled", **who)
        },
    )
    shown = build_models(world, "dim_jobs", "sum_source_effectiveness")

    assert [1, 0] == shown.read_row(
        "marts.dim_jobs", "true", "candidates_with_interview", "candidates_interviewed"
    )
    assert [1, 0, 0] == shown.read_row(
        "marts.sum_source_effectiveness",
        "source = 'referral'",
        *("candidates_with_interview", "candidates_interviewed", "interview_rate"),
    )


def test_a_completed_contract_has_no_running_days_or_future_fees(world: ModelWorld) -> None:
    def contract(status: str, ends: str | None) -> dict[str, Any]:
        # Monday.
        start = "2026-02-02T09:00:00Z"
        return make_january_booking("contract", start, status, end_datetime=ends, day_rate=100)

    future = "2026-06-30T17:00:00Z"
    world.load_details(
        "2026-02-01 09:00",
        bookings={
            "open-ended": contract("confirmed", None),
            "ended-early": contract("confirmed", future),
            "running": contract("confirmed", future),
        },
    )
    done = {"status": "completed", "updated": "2026-02-06 12:00"}
    world.load_details("2026-02-09 09:00", bookings={"open-ended": done, "ended-early": done})
    shown = build_models(world, "fct_placements", "fct_contract_months", "fct_contracts")

    assert [
        ("ended-early", "ended", "2026-02-06"),
        ("open-ended", "ended", "2026-02-06"),
        ("running", "running", "2026-06-30"),
    ] == shown.query_tuples(
        "SELECT booking_id, contract_state, last_day FROM marts.fct_placements ORDER BY booking_id"
    )
    # Monday to Friday of the first week, and nothing in any month after it.
    assert [
        ("ended-early", "2026-02-01", 500),
        ("open-ended", "2026-02-01", 500),
    ] == shown.query_tuples(
        "SELECT booking_id, month_start, billings FROM marts.fct_contract_months "
        "WHERE booking_id <> 'running' ORDER BY booking_id"
    )
    assert [("running",)] == shown.query_tuples(
        "SELECT booking_id FROM marts.fct_contracts WHERE contract_state <> 'ended'"
    )


# -- estimates, rankings, counters -----------------------------------------------------------------


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


@pytest.mark.slow
def test_days_before_the_first_pull_count_as_a_lower_bound(world: ModelWorld) -> None:
    old = {**BORN, "updated": "2025-12-01 09:00", "status": "screening"}
    world.load_details("2026-02-01 09:00", candidates={"old": old})
    world.load_details(
        "2026-02-02 09:00",
        candidates={
            "old": {"updated": "2026-02-01 18:00", "status": "submitted"},
            "new": {"created": "2026-02-02 08:00", "status": "screening"},
        },
    )
    world.load_details(
        "2026-02-05 09:00",
        candidates={"new": {"updated": "2026-02-04 08:00", "status": "submitted"}},
    )
    shown = build_models(world, "fct_candidate_stages")

    assert [("new", True, 2, 2), ("old", True, None, 62.38)] == shown.query_tuples(
        "SELECT candidate_id, left_stage, days_observed, days_at_least "
        "FROM marts.fct_candidate_stages WHERE stage = 'screening' ORDER BY candidate_id"
    )


@pytest.mark.slow
def test_counters_are_compared_only_if_read_after_the_last_change(world: ModelWorld) -> None:
    counters = {**BORN, "jobs_count": 1, "active_jobs_count": 1, "placements_count": 0}
    job = {**BORN, "status": "published"}
    world.load_details(
        "2026-02-01 09:00",
        companies={id: {**counters, "name": id} for id in ("late", "read", "wrong")},
        jobs={f"job-{id}": {**job, "company_id": id} for id in ("late", "read", "wrong")},
    )
    # A placement whose booking names no company counts for no counter of the platform's.
    more = {**job, "created": "2026-02-19 09:00"}
    placed = make_january_booking(
        "permanent", "2026-02-10T09:00:00Z", "confirmed", job_id="job-read"
    )
    world.load_details(
        "2026-02-20 09:00",
        jobs={f"more-{id}": {**more, "company_id": id} for id in ("late", "read", "wrong")},
        bookings={"p": {**placed, "candidate_id": "ann"}},
    )
    new = {"jobs_count": 2, "active_jobs_count": 2, "updated": "2026-02-21 09:00"}
    world.load_details(
        "2026-02-22 09:00", companies={"read": new, "wrong": {**new, "jobs_count": 3}}
    )
    shown = build_models(world)

    assert [("late", False, 1, 2), ("read", True, 2, 2), ("wrong", True, 3, 2)] == (
        shown.query_tuples(
            "SELECT company_id, is_comparable, api_jobs_count, jobs FROM marts.dim_companies "
            "ORDER BY company_id"
        )
    )
    assert [("read", 2, 0), ("wrong", 2, 0)] == shown.query_tuples(
        "SELECT company_id, published_jobs, confirmed_placements FROM marts.dim_companies "
        "WHERE is_comparable ORDER BY company_id"
    )
    (warned,) = (each for each in shown.built.failed("warn") if each.check.name == "company_counters")
    assert ("wrong",) == warned.examples


@pytest.mark.slow
def test_a_currency_that_is_not_a_three_letter_code_is_null(world: ModelWorld) -> None:
    world.load_details(
        "2026-02-01 09:00",
        jobs={
            "code": {**BORN, "status": "published", "salary_currency": " pln "},
            "sign": {**BORN, "status": "published", "salary_currency": "z\u0142"},
        },
    )
    shown = build_models(world, "dim_jobs")

    assert [("code", "PLN"), ("sign", None)] == shown.query_tuples(
        "SELECT job_id, salary_currency FROM marts.dim_jobs ORDER BY job_id"
    )
