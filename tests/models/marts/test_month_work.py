"""Marts of journeys, loads, outcomes and goals equal the figures that pandas computes."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from typing import Any

import pandas as pd
import pytest

from tests.models.marts.month import GOALS, NOW, local_date
from tests.models.marts.recomputed import (
    STANDING,
    TODAY,
    Frame,
    SimulatedMonth,
    assert_same_rows,
    days_between,
    first_of_month,
    round_days,
)

pytestmark = pytest.mark.slow

ACTIVE = ("new_lead", "screening", "submitted", "interviewing", "offer_made", "on_hold")


def earliest(values: Any) -> Any:
    """Return the earliest time, None without any."""
    return min(values, default=None)


def test_candidate_journeys_equal_the_truth(month: SimulatedMonth) -> None:
    visits = month.observed_visits("candidates")
    entries = visits[(visits.status == "submitted") & visits.is_new.astype(bool)]
    met = month.bookings[month.bookings.counts_as.isin(("interview_held", "interview_to_come"))]
    rows: list[Any] = []
    for id, person in month.candidates.iterrows():
        theirs = met[met.candidate_id == id]
        held = theirs[theirs.is_held.astype(bool)]
        submitted = earliest(entries[entries.id == id].entered_at)
        after = earliest(at for at in held.start_at if submitted and at >= submitted)
        booked = month.bookings[month.bookings.candidate_id == id]
        took_place = booked[booked.is_held.astype(bool)].start_at
        active = max((person.updated, *booked.created, *took_place))
        placed = month.placements[month.placements.candidate_id == id]
        rows.append(
            (
                id,
                submitted,
                after,
                round_days(days_between(submitted, after)) if submitted and after else None,
                len(held),
                len(theirs) - len(held),
                held.job_id.nunique(),
                earliest(held.start_at),
                max(held.start_at, default=None),
                earliest(theirs[~theirs.is_held.astype(bool)].start_at),
                len(placed),
                earliest(placed.placed_on),
                active,
                round_days(days_between(active, NOW)),
            )
        )
    columns = [
        *("candidate_id", "submitted_at", "interviewed_after_submission_at"),
        *("days_submitted_to_interview", "interviews_held", "interviews_to_come"),
        *("jobs_interviewed_for", "first_interview_at", "last_interview_at", "next_interview_at"),
        *("placements", "first_placed_on", "last_activity_at", "days_since_last_activity"),
    ]
    truth = pd.DataFrame(rows, columns=columns, dtype=object)
    assert truth.days_submitted_to_interview.count() > 0
    assert_same_rows(month.mart("fct_candidates"), truth, *columns)


def list_open_work(month: SimulatedMonth) -> Iterator[tuple[Any, str, int]]:
    """Yield consultant, kind and number of open positions for each item of open work."""
    open_jobs = month.mart("dim_jobs")
    for id, job in month.jobs.iterrows():
        if job.status in ("published", "on_hold"):
            (left,) = open_jobs.positions_open[open_jobs.job_id == id]
            yield job.assigned_to, "open_jobs", int(left)
    for _, person in month.candidates.iterrows():
        if person.status in ACTIVE:
            yield person.assigned_to, "active_candidates", 0
    for _, booking in month.bookings.iterrows():
        if booking.counts_as == "interview_to_come":
            yield booking.consultant, "interviews_to_come", 0
    for _, placement in month.contracts.iterrows():
        if placement.contract_state == "running":
            yield placement.consultant, "running_contracts", 0


def test_consultant_loads_equal_the_truth(month: SimulatedMonth) -> None:
    frame: Frame = pd.DataFrame(
        list_open_work(month), columns=["consultant_id", "kind", "positions"]
    )
    truth = frame.groupby(["consultant_id", "kind"], dropna=False).size().unstack(fill_value=0)
    truth["open_positions"] = frame.groupby("consultant_id", dropna=False).positions.sum()
    truth = truth.reset_index()
    kinds = ("open_jobs", "active_candidates", "interviews_to_come", "running_contracts")
    assert all(truth[kind].sum() > 0 for kind in kinds)
    truth["person_id"] = truth.pop("consultant_id").fillna("none")
    busy = " + ".join(kinds)
    assert_same_rows(month.mart("dim_people", f"{busy} > 0"), truth, *truth.columns)
    jobs = month.mart("dim_jobs", "is_open")
    jobs["person_id"] = jobs.consultant_id.fillna("none")
    values = jobs.groupby("person_id").agg(
        jobs_with_value=("reporting_value", "count"),
        reporting_value=(
            "reporting_value",
            lambda fees: fees.dropna().sum() if fees.count() else None,
        ),
    )
    shown = month.mart("dim_people", "open_jobs > 0")
    assert_same_rows(shown, values.reset_index(), "person_id", "jobs_with_value", "reporting_value")


@pytest.fixture(scope="module")
def placement_outcomes(month: SimulatedMonth) -> Frame:
    """Every placement that a pull observed as agreed, and what became of it."""
    visits = month.observed_visits("bookings")
    agreed_ids = set(visits[visits.status.isin(STANDING)].id)
    last = visits[visits.left_by.isna()].set_index("id")
    rows: list[Any] = []
    for id, row in month.bookings.iterrows():
        accepted = row.offer_accepted_date
        was_agreed = id in agreed_ids or isinstance(accepted, str)
        is_off = row.status == "cancelled" and was_agreed
        if row.booking_type not in ("permanent", "contract"):
            continue
        if row.counts_as not in ("placement", "extension") and not is_off:
            continue
        agreed = (
            date.fromisoformat(accepted)
            if isinstance(accepted, str)
            else min(row.created_date, row.start_date)
        )
        is_dated = is_off and last.number[id] > 1
        off = local_date(last.entered_at[id], row.timezone) if is_dated else None
        months = row.probation_period_months
        over = None
        if pd.notna(months):
            over = (pd.Timestamp(row.start_date) + pd.DateOffset(months=int(months))).date()
        if is_off and not off:
            outcome = "cancelled"
        elif off:
            outcome = "cancelled_" + ("after" if off >= row.start_date else "before") + "_start"
        elif row.status == "completed":
            outcome = "completed"
        else:
            outcome = "started" if row.start_date <= TODAY else "to_come"
        state = None
        if over and not (is_off and not off):
            state = "passed" if TODAY >= over else "running"
            if off and off < over:
                state = "not_started" if off < row.start_date else "failed"
        reason = row.cancellation_reason
        reason_text = reason.strip() or None if is_off and isinstance(reason, str) else None
        days = (off - row.start_date).days if off else None
        rows.append(
            (id, agreed, off, days, over, outcome, state, reason_text, row.consultant, is_off)
        )
    columns = [
        *("booking_id", "placed_on", "cancelled_on", "days_from_start", "probation_end_on"),
        *(
            "placement_outcome",
            "probation_state",
            "cancellation_reason",
            "consultant_id",
            "is_fall_off",
        ),
    ]
    return pd.DataFrame(rows, columns=columns, dtype=object)


def test_placement_outcomes_equal_the_truth(
    month: SimulatedMonth, placement_outcomes: Frame
) -> None:
    assert_same_rows(month.mart("fct_placements"), placement_outcomes, *placement_outcomes.columns)
    assert {"cancelled", "cancelled_before_start", "cancelled_after_start"} <= set(
        placement_outcomes.placement_outcome
    )
    assert len(set(placement_outcomes.probation_state.dropna())) > 1
    assert placement_outcomes.cancellation_reason.notna().any()


def test_goal_progress_equals_the_activity_of_the_goal_period(month: SimulatedMonth) -> None:
    team = {"u1": "North", "u2": "South"}
    done = month.mart("sum_consultant_activity", "period = 'month'")
    done["team"] = [team.get(each) for each in done.consultant_id]
    rows: list[Any] = []
    for line in GOALS[:-1]:
        consultant, of, day, measure, target = line.split(",")
        begins = first_of_month(date.fromisoformat(day))
        whose = done.consultant_id == consultant if consultant else done.team == of
        actual = float(done[whose & (done.period_start == begins)][measure].sum())
        wanted = float(target)
        share = round(actual / wanted, 4) if wanted else None
        over = (begins.year, begins.month) < (TODAY.year, TODAY.month)
        rows.append(
            (
                *(consultant or None, of or team.get(consultant), begins, measure),
                *(wanted, actual, share, actual >= wanted, over),
            )
        )
    columns = ["group_id", "team", "month_start", "measure", "target", "actual"]
    truth = pd.DataFrame(
        rows, columns=[*columns, "attainment", "is_reached", "is_over"], dtype=object
    )
    assert {True, False} == set(truth.is_reached)
    assert truth.actual.sum() > 0
    assert_same_rows(month.mart("sum_goal_attainment"), truth, *truth.columns)
