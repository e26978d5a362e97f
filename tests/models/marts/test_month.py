"""Marts of bookings, clients and candidates equal the figures that pandas computes."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import numpy as np
import pandas as pd

from tests.models.marts.month import HOLIDAYS, NOW, local_date
from tests.models.marts.recomputed import (
    TODAY,
    Frame,
    SimulatedMonth,
    assert_same_rows,
    first_of_month,
)


def test_a_simulated_month_passes_every_blocking_check(month: SimulatedMonth) -> None:
    """The month also contains bookings of every kind and a deleted company."""
    assert () == month.world.built.blocking
    kinds = set(month.bookings.counts_as)
    assert {
        "placement",
        "interview_held",
        "interview_to_come",
        "not_counted",
        "site_visit",
    } <= kinds
    assert month.companies.is_deleted.any()


def test_fct_bookings_equals_the_truth(month: SimulatedMonth) -> None:
    truth = month.bookings.reset_index(names="booking_id")
    columns = ("booking_id", "counts_as", "is_held", "start_date", "end_date", "created_date")
    assert_same_rows(month.mart("fct_bookings"), truth, *columns)


def test_placements_and_fees_equal_the_truth(month: SimulatedMonth) -> None:
    truth = month.placements.reset_index(names="booking_id")
    names = month.companies.name
    truth["company_name"] = [
        "no company" if not isinstance(id, str) else names.get(id, "unknown company")
        for id in truth.client
    ]
    gone = month.companies.is_deleted
    truth["is_company_deleted"] = [bool(gone.get(id, False)) for id in truth.client]
    columns = ("booking_id", "placed_on", "start_date", "company_name", "is_company_deleted")
    money = ("currency", "fee", "reporting_fee")
    placements = month.mart("fct_placements", "is_placement")
    assert_same_rows(placements, truth, *columns, *money)
    contract = ("booking_id", "completed_on", "last_day", "contract_state")
    assert_same_rows(placements, truth, *contract)
    assert {"to_come", "running", "ended"} == set(truth.contract_state.dropna())

    truth["month_start"] = truth.start_date.map(first_of_month)
    sure = truth.status.isin(("confirmed", "in_progress", "completed"))
    truth["confirmed_fee"] = truth.fee.where(sure)
    summed = truth.groupby(["month_start", "currency"], dropna=False).agg(
        placements_started=("booking_id", "size"),
        placements_with_fee=("fee", "count"),
        fee=("fee", lambda fees: fees.sum(min_count=1)),
        confirmed_fee=("confirmed_fee", lambda fees: fees.sum(min_count=1)),
        reporting_fee=("reporting_fee", lambda fees: fees.sum(min_count=1)),
    )
    summed = summed.reset_index()
    assert_same_rows(month.mart("sum_months", "placements_started > 0"), summed, *summed.columns)


def test_contract_months_and_ending_contracts_equal_the_truth(month: SimulatedMonth) -> None:
    contracts = month.contracts
    rows: list[Any] = []
    for id, row in contracts.iterrows():
        last = row.billed_until
        if row.billed_from > last:
            continue
        for begin in pd.date_range(row.billed_from.replace(day=1), last, freq="MS"):
            begins = max(begin.date(), row.billed_from)
            ends = min((begin + pd.offsets.MonthEnd(0)).date(), last)
            days = np.busday_count(begins, ends + timedelta(days=1), holidays=HOLIDAYS)
            rate = None if row.day_rate is None or np.isnan(row.day_rate) else row.day_rate
            worth = None if rate is None else rate * int(days)
            rows.append((id, begin.date(), int(days), worth, row.currency))
    columns = ["booking_id", "month_start", "working_days", "billings", "currency"]
    truth = pd.DataFrame(rows, columns=columns)
    truth["billings"] = truth.billings.astype(float)
    fallen = "SELECT booking_id FROM marts.fct_placements WHERE is_fall_off"
    months = month.mart("fct_contract_months", f"booking_id NOT IN ({fallen})")
    assert_same_rows(months, truth, *columns)
    truth = month.mart("fct_contract_months")
    truth["billings"] = truth.billings.astype(float)
    summed = truth.groupby(["month_start", "currency"], dropna=False, as_index=False).agg(
        contracts=("booking_id", "size"),
        working_days=("working_days", "sum"),
        billings=("billings", lambda known: known.sum(min_count=1)),
    )
    assert_same_rows(month.mart("sum_months", "contracts > 0"), summed, *summed.columns)

    ending = contracts[contracts.contract_state.isin(("running", "to_come"))]
    rows = []
    for id, row in ending.iterrows():
        after = month.placements[month.placements.candidate_id == row.candidate_id]
        after = after[after.start_date > row.start_date]
        if row.end_date is None:
            after = after.iloc[:0]
        else:
            within = row.end_date + timedelta(days=30)
            after = after[(after.start_date >= row.end_date) & (after.start_date <= within)]
        after = after.rename_axis("booking_id").sort_values(["start_date", "booking_id"])
        left = None if row.end_date is None else (row.end_date - TODAY).days
        rows.append((id, left, after.index[0] if len(after) else None))
    ended = pd.DataFrame(rows, columns=["booking_id", "days_left", "next_booking_id"])
    assert_same_rows(month.mart("fct_contracts", "band IS NOT NULL"), ended, *ended.columns)


def test_job_funnels_and_interviews_equal_the_truth(month: SimulatedMonth) -> None:
    met = month.bookings[month.bookings.counts_as.isin(("interview_held", "interview_to_come"))]
    held = met[met.is_held.astype(bool)]
    booked, pairs = (set(zip(each.job_id, each.candidate_id, strict=True)) for each in (met, held))
    assert pairs < booked
    placed = set(zip(month.placements.job_id, month.placements.candidate_id, strict=True))
    live = [*month.jobs.index]
    truth = pd.DataFrame(
        {
            "job_id": live,
            "interviews_held": [sum(held.job_id == job) for job in live],
            "placements": [sum(month.placements.job_id == job) for job in live],
            "candidates_with_interview": [sum(j == job for j, _ in booked) for job in live],
            "candidates_interviewed": [sum(j == job for j, _ in pairs) for job in live],
            "candidates_placed": [sum(j == job for j, _ in placed) for job in live],
            "candidates_placed_after_interview": [
                sum(j == job for j, _ in placed & pairs) for job in live
            ],
        }
    )
    assert_same_rows(month.mart("dim_jobs", "is_live"), truth, *truth.columns)
    coming = met[met.counts_as == "interview_to_come"].job_id.value_counts()
    open_now = month.mart("dim_jobs", "is_open").set_index("job_id")
    shown = open_now.interviews_to_come
    open_jobs = month.jobs.index[month.jobs.status.isin(("published", "on_hold"))]
    assert {job: int(coming.get(job, 0)) for job in open_jobs} == shown.to_dict()


def test_clients_have_the_true_jobs_placements_and_api_counters(month: SimulatedMonth) -> None:
    jobs = month.jobs.copy()
    jobs["number"] = [sum(month.placements.job_id == job) for job in jobs.index]
    jobs["positions"] = jobs.positions_available.fillna(1)
    decided = jobs.status.isin(("filled", "closed", "cancelled"))
    jobs["marked"] = jobs.status == "filled"
    jobs["decided"], jobs["asked"] = decided, jobs.positions.where(decided, 0)
    jobs["ours"] = jobs[["number", "positions"]].min(axis=1).where(decided, 0)
    truth = jobs.groupby(jobs.company_id.fillna("none")).agg(
        jobs=("status", "size"),
        jobs_marked_filled=("marked", "sum"),
        decided_jobs=("decided", "sum"),
        decided_positions=("asked", "sum"),
        positions_placed=("ours", "sum"),
    )
    truth["placements"] = month.placements.client.fillna("none").value_counts()
    truth = truth.fillna({"placements": 0}).reset_index(names="company_id")
    assert_same_rows(month.mart("dim_companies", "jobs > 0"), truth, *truth.columns)

    sure = month.placements[month.placements.status.isin(("confirmed", "in_progress", "completed"))]
    rows: list[Any] = []
    for id, row in month.companies[~month.companies.is_deleted.astype(bool)].iterrows():
        theirs = month.jobs[month.jobs.company_id == id]
        changed = month.last_changed_at(str(id))
        is_read = changed is None or month.last_read_at(str(id)) > changed
        shown = (row[f"{name}_count"] for name in ("jobs", "active_jobs", "placements"))
        ours = (len(theirs), sum(theirs.status == "published"), sum(sure.company_id == id))
        rows.append((id, *shown, *ours, is_read))
    api = [f"api_{name}_count" for name in ("jobs", "active_jobs", "placements")]
    columns = ["company_id", *api, "jobs", "published_jobs", "confirmed_placements"]
    counters = pd.DataFrame(rows, columns=[*columns, "is_comparable"])
    assert {True, False} == set(counters.is_comparable)
    shown = month.mart("dim_companies", "NOT is_deleted AND created_at IS NOT NULL")
    assert_same_rows(shown, counters, *counters.columns)


def test_consultant_activity_equals_the_truth_of_each_month(month: SimulatedMonth) -> None:
    """Each action counts on its day in the time zone of the booking."""
    rows = [
        (row.assigned_to, local_date(row.created), column)
        for name, column in (
            *(("candidates", "candidates_added"), ("leads", "leads_added"), ("jobs", "jobs_added")),
        )
        for _, row in month.existing_records(name).iterrows()
    ]
    done = {"interview_held": "interviews_held", "consultation": "consultations_held"}
    for _, row in month.bookings.iterrows():
        if row.counts_as in ("interview_held", "interview_to_come"):
            rows.append((row.consultant, row.created_date, "interviews_booked"))
        column = done.get(row.counts_as) or f"{row.counts_as}s_held"
        if row.is_held:
            rows.append((row.consultant, row.start_date, column))
    rows += [(r.consultant, r.placed_on, "placements") for _, r in month.placements.iterrows()]
    frame = pd.DataFrame(rows, columns=["consultant_id", "day", "what"])
    frame["period_start"] = frame.day.map(first_of_month)
    truth: Frame = frame.groupby(["period_start", "consultant_id", "what"], dropna=False).size()
    truth = truth.unstack(fill_value=0).reset_index()
    assert_same_rows(
        month.mart("sum_consultant_activity", "period = 'month'"), truth, *truth.columns
    )


def test_times_to_hire_and_lead_conversions_equal_the_truth(month: SimulatedMonth) -> None:
    rows: list[Any] = []
    ordered = month.placements.reset_index(names="id").sort_values(["placed_on", "id"])
    for _, group in ordered.groupby("candidate_id"):
        for number, row in enumerate(group.itertuples(), 1):
            born = month.candidates.created.get(row.candidate_id)
            days = None if born is None or number > 1 else (row.placed_on - local_date(born)).days
            rows.append((row.id, number, days if days is not None and days >= 0 else None))
    columns = ["booking_id", "placement_number", "days_since_record"]
    truth = pd.DataFrame(rows, columns=columns)
    truth["days_since_record"] = truth.days_since_record.astype(float)
    assert_same_rows(month.mart("fct_placements", "is_placement"), truth, *columns)

    seen = [
        each for each in month.month["leads"] if any(each.state_at(at) for at in month.pull_times)
    ]
    rows = []
    for each in seen:
        last = [now for at in month.pull_times if (now := each.state_at(at))][-1]
        is_won, is_gone = last["lead_status_id"] == "s2", each.state_at(NOW) is None
        begun = first_of_month(local_date(last["created"]))
        rows.append((each.id, is_won, last["lead_status_id"] == "s3", begun, is_gone))
    columns = ["lead_id", "is_converted", "is_lost", "created_month", "is_deleted"]
    leads = pd.DataFrame(rows, columns=columns)
    assert (leads.is_deleted & ~leads.is_converted).any()
    assert_same_rows(month.mart("fct_leads"), leads, *columns)


def test_sources_have_the_true_outcomes_of_candidates_and_leads(month: SimulatedMonth) -> None:
    """Candidates and leads count in the month in which they were created."""

    def normalize_source(text: str | None) -> str:
        return (text or "").strip().lower() or "not stated"

    people = month.candidates
    source = people.source.map(normalize_source)
    met = month.bookings[month.bookings.counts_as.isin(("interview_held", "interview_to_come"))]
    truth = pd.DataFrame(
        {
            "source": source,
            "created_month": people.created.map(lambda at: first_of_month(local_date(at))),
            "candidates": 1,
            "candidates_with_interview": people.index.isin(met.candidate_id),
            "candidates_interviewed": people.index.isin(met.candidate_id[met.is_held.astype(bool)]),
            "candidates_placed": people.index.isin(month.placements.candidate_id),
            "placements": [sum(month.placements.candidate_id == id) for id in people.index],
            "reporting_fee": [
                month.placements.reporting_fee[month.placements.candidate_id == id].sum(min_count=1)
                for id in people.index
            ],
        }
    )
    truth["reporting_fee"] = truth.reporting_fee.astype(float)
    truth = truth.groupby(["source", "created_month"], as_index=False).sum(min_count=1)
    assert truth.created_month.nunique() > 1
    assert truth.source.duplicated().any()
    shown = month.mart("sum_source_effectiveness", "candidates > 0")
    assert_same_rows(shown, truth, *truth.columns)

    rows = []
    for each in month.month["leads"]:
        known = [now for at in month.pull_times if (now := each.state_at(at))]
        if known:
            last = known[-1]
            begun = first_of_month(local_date(last["created"]))
            rows.append(
                (normalize_source(last["source"]), begun, 1, last["lead_status_id"] == "s2")
            )
    columns = ["source", "created_month", "leads", "leads_converted"]
    leads = pd.DataFrame(rows, columns=columns).groupby(columns[:2], as_index=False).sum()
    assert_same_rows(month.mart("sum_source_effectiveness", "leads > 0"), leads, *columns)
    standing = people.status.value_counts()
    stages = month.mart("fct_candidates").stage.value_counts()
    assert standing.to_dict() == stages.to_dict()


def test_open_jobs_have_the_true_days_without_a_booking(month: SimulatedMonth) -> None:
    """Days count from the last booking, or from the opening if no booking exists."""
    openings = month.mart("fct_job_openings").sort_values("opening_number")
    opened = openings.groupby("job_id").opened_on.last()
    counted = month.bookings[
        month.bookings.counts_as.isin(("interview_held", "interview_to_come", "placement"))
    ]
    rows: list[Any] = []
    for id in month.jobs.index[month.jobs.status.isin(("published", "on_hold"))]:
        booked = counted[counted.job_id == id]
        last = max([opened[id], *(local_date(at) for at in booked.created)])
        ages = (max((TODAY - day).days, 0) for day in (opened[id], last))
        rows.append((id, *ages))
    columns = ["job_id", "age_days", "days_since_last_booking"]
    assert_same_rows(
        month.mart("dim_jobs", "is_open"), pd.DataFrame(rows, columns=columns), *columns
    )
