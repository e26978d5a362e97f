"""Dimensions, open jobs and data quality equal what pandas computes from the true records."""

from __future__ import annotations

import pandas as pd
import pytest

from tests.models.marts.month import RATES
from tests.models.marts.recomputed import SimulatedMonth, assert_same_rows, round_days

pytestmark = pytest.mark.slow


def test_facts_have_the_true_consultant_client_and_type(month: SimulatedMonth) -> None:
    jobs = month.jobs.rename_axis("job_id").reset_index()
    truth = jobs.rename(columns={"assigned_to": "consultant_id"})
    columns = ("job_id", "consultant_id", "company_id", "employment_type")
    assert_same_rows(month.mart("dim_jobs", "is_live"), truth, *columns)
    people = month.candidates.rename_axis("candidate_id").reset_index()
    people = people.rename(columns={"assigned_to": "consultant_id"})
    assert_same_rows(month.mart("fct_candidates"), people, "candidate_id", "consultant_id")
    leads = month.leads.rename_axis("lead_id").reset_index()
    leads = leads.rename(columns={"assigned_to": "consultant_id"})
    names = ("lead_id", "consultant_id", "lead_status_id")
    assert_same_rows(month.mart("fct_leads", "NOT is_deleted"), leads, *names)


def test_current_visits_have_the_median_of_their_days(month: SimulatedMonth) -> None:
    visits = month.mart("fct_candidate_stages", "is_current")
    for row in month.mart("sum_time_in_stage").itertuples():
        here = visits[visits.stage == row.stage].days_at_least.astype(float)
        assert len(here) == row.current_visits
        if len(here):
            half = round_days(float(here.quantile(0.5)))
            assert half == pytest.approx(row.current_p50_days, abs=0.011)
    assert len(visits)


def test_open_job_sums_and_coverage_equal_the_truth(month: SimulatedMonth) -> None:
    jobs = month.jobs[month.jobs.status.isin(("published", "on_hold"))]
    ours = month.placements.groupby("job_id").size()
    # A reopened job counts the placements since.
    fills = month.mart("fct_job_openings").sort_values("opening_number").groupby("job_id").last()
    is_first = fills.opening_number.reindex(jobs.index).fillna(1).astype(int) == 1
    ours = ours.reindex(jobs.index).fillna(0).where(is_first, fills.placements_in_opening)
    left = jobs.positions_available.fillna(1) - ours
    pay = (jobs.salary_min.fillna(jobs.salary_max) + jobs.salary_max.fillna(jobs.salary_min)) / 2
    client = month.companies.reindex(jobs.company_id).set_index(jobs.index)
    theirs = client.fee_percentage.where(client.fee_type == "percentage")
    fee = jobs.placement_fee.fillna(pay * jobs.fee_percentage / 100).fillna(pay * theirs / 100)
    truth = pd.DataFrame({"job_id": jobs.index, "positions_open": left.clip(lower=0).to_list()})
    truth["expected_fee"] = fee.astype(float).to_list()
    truth["pipeline_value"] = truth.expected_fee * truth.positions_open
    shown = month.mart("dim_jobs", "is_open")
    assert_same_rows(shown, truth, *truth.columns)
    rates = shown.currency.map(RATES)
    worth = (shown.pipeline_value.astype(float) * rates).dropna()
    assert worth.sum() == pytest.approx(float(shown.reporting_value.dropna().sum()), abs=0.01)
    assert shown.reporting_value[rates.isna()].isna().all()

    placed = month.placements
    covered = {
        "placements_with_fee": (placed.fee.count(), len(placed)),
        "placements_with_currency": (placed.currency.count(), len(placed)),
        "fees_with_exchange_rate": (placed.reporting_fee.count(), placed.fee.count()),
        "placements_with_offer_date": (placed.offer_accepted_date.count(), len(placed)),
        "jobs_with_positions": (month.jobs.positions_available.count(), len(month.jobs)),
        "candidates_with_source": (
            month.candidates.source.fillna("").str.strip().astype(bool).sum(),
            len(month.candidates),
        ),
        "candidates_with_consultant": (month.candidates.assigned_to.count(), len(month.candidates)),
    }
    coverage = month.mart("data_quality").set_index("check_name")
    for question, (some, all_of_them) in covered.items():
        assert (some, all_of_them) == (coverage.covered[question], coverage.total[question]), (
            question
        )
