"""Marts of stages equal the figures that pandas computes from the states that pulls observed.

The true states must be within the bounds that the marts show.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime, timedelta
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.models.marts.month import NOW, STAGES, local_date
from tests.models.marts.recomputed import (
    TODAY,
    Frame,
    SimulatedMonth,
    assert_same_rows,
    days_between,
    round_days,
)

pytestmark = pytest.mark.slow

KIND = dict(zip(STAGES, ["open"] * 5 + ["won"] * 2 + ["paused"] + ["lost"] * 2, strict=True))
PARTS = (10, 25, 50, 75, 90)
WATCHED_MIN = 20
"""Minimum number of visits for a quantile of days in a stage."""
ORDER = {stage: place for place, stage in enumerate(STAGES[:7], 1)}


def test_stage_and_status_visits_equal_the_observed_changes(month: SimulatedMonth) -> None:
    columns = ("id", "number", "status", "entered_at", "left_at", "left_by", "hides", "is_new")
    renamed = {"visit_number": "number", "may_contain_gap": "hides", "is_entry_observed": "is_new"}
    for resource, mart, key, status in (
        ("candidates", "fct_candidate_stages", "candidate_id", "stage"),
        ("jobs", "fct_job_statuses", "job_id", "job_status"),
    ):
        shown = month.mart(mart).rename(columns={key: "id", status: "status", **renamed})
        assert_same_rows(shown, month.observed_visits(resource), *columns)


def test_true_days_in_stage_are_within_the_bounds(month: SimulatedMonth) -> None:
    true_days: dict[str, list[tuple[datetime, datetime, str]]] = {}
    for each in month.month["candidates"]:
        changes = [(at, fields["status"]) for at, fields in each.edits if "status" in fields]
        kept = changes[:1] + [b for a, b in pairwise(changes) if a[1] != b[1]]
        end = min(each.deleted or NOW, NOW)
        stops = [*(at for at, _ in kept[1:]), end]
        spans = zip(kept, stops, strict=True)
        true_days[each.id] = [(at, till, status) for (at, status), till in spans if at < till]
    hidden = 0
    visits = month.mart("fct_candidate_stages").set_index("stage_visit_id")
    for visit in month.observed_visits("candidates").itertuples():
        row = visits.loc[f"{visit.id}:{visit.number}"]
        seen = visit.entered_before
        (span,) = [s for s in true_days[visit.id] if s[0] <= seen < s[1] or seen == NOW == s[1]]
        assert span[2] == visit.status
        days = days_between(span[0], span[1])
        if not visit.hides:
            assert row.days_min <= days <= row.days_max, (visit.id, visit.number)
        hidden += not row.days_min <= days <= row.days_max
    assert hidden > 0


def observed_visits_with_days(month: SimulatedMonth) -> Frame:
    """Return candidates' visits to stages with `days` in the stage and days until the `first` pull.

    Days are rounded to two decimals, as in the mart.
    """
    visits = month.observed_visits("candidates")
    ends = [
        left or max(NOW, at) for left, at in zip(visits.left_at, visits.entered_before, strict=True)
    ]
    visits["days"] = [
        round_days(days_between(a, b)) for a, b in zip(visits.entered_at, ends, strict=True)
    ]
    # An answer is of the second that begins when it was made.
    firsts = [at + timedelta(seconds=1) for at in visits.entered_before]
    visits["first"] = [
        round_days(days_between(a, b)) for a, b in zip(visits.entered_at, firsts, strict=True)
    ]
    return visits


def test_stage_survival_equals_the_kaplan_meier_estimate(month: SimulatedMonth) -> None:
    visits = observed_visits_with_days(month)
    visits = visits[visits.days > visits["first"]]
    rows: list[tuple[Any, ...]] = []
    for stage, group in visits.groupby("status"):
        share, exits, reached = 1.0, 0, dict[float, tuple[Any, int]]()
        left = group[group.left_by == "change"]
        for days in sorted(set(left.days)):
            at_risk = int(((group["first"] < days) & (group.days >= days)).sum())
            gone = int((left.days == days).sum())
            if gone == at_risk and days < group.days.max():
                break
            share, exits = share * (1 - gone / at_risk), exits + gone
            for part in PARTS:
                if share <= 1 - part / 100 + 1e-9:
                    reached.setdefault(part, (days, at_risk))
        found = [reached.get(part, (None, None)) for part in PARTS]
        enough = [days if watched and watched >= WATCHED_MIN else None for days, watched in found]
        rows.append((stage, exits, *enough, *(watched for _, watched in found)))
    columns = [
        *("stage", "exits_observed"),
        *(f"p{part}_days" for part in PARTS),
        *(f"p{part}_at_risk" for part in PARTS),
    ]
    truth = pd.DataFrame(rows, columns=columns)
    assert truth.p50_days.notna().any()
    assert truth.p90_days.isna().any()
    stages = "', '".join(truth.stage)
    assert_same_rows(month.mart("sum_time_in_stage", f"stage IN ('{stages}')"), truth, *columns)
    visits["kept"] = visits.is_new.astype(bool) & (visits.left_by == "change")
    visits["days_observed"] = visits.days.where(visits.kept)
    visits["days_at_least"] = visits.days
    visits["stage_visit_id"] = visits.id + ":" + visits.number.astype(str)
    ids = "', '".join(visits.stage_visit_id)
    facts = month.mart("fct_candidate_stages", f"stage_visit_id IN ('{ids}')")
    assert_same_rows(facts, visits, "stage_visit_id", "days_observed", "days_at_least")


def test_stage_conversions_and_offers_equal_the_truth(month: SimulatedMonth) -> None:
    visits = month.observed_visits("candidates")
    rows: list[tuple[Any, ...]] = []
    offers: list[tuple[str, str]] = []
    for id, group in visits.sort_values("number").groupby("id"):
        steps = [ORDER.get(status, 0) for status in group.status]
        last = group.iloc[-1]
        for stage in dict.fromkeys(s for s in group.status if s in ORDER):
            place = list(group.status).index(stage)
            after = max(steps[place + 1 :], default=0)
            outcome = (
                *("advanced" for _ in [0] if after > ORDER[stage]),
                *("arrived" for _ in [0] if stage == "placed"),
                *("lost" for _ in [0] if KIND[last.status] == "lost"),
                *("deleted" for _ in [0] if last.left_by == "deletion"),
                "in_progress",
            )[0]
            rows.append((id, stage, outcome))
        offers += find_offers(group)
    columns = ["candidate_id", "stage", "stage_outcome"]
    truth = pd.DataFrame(rows, columns=columns)
    shown = month.mart("fct_candidate_stages", "is_first_visit AND stage_order IS NOT NULL")
    assert_same_rows(shown, truth, *columns)
    made_offers = pd.DataFrame(offers, columns=["month", "offer_outcome"])
    assert "not_observed" in set(made_offers.month)
    shown = month.mart("fct_offers")
    shown["month"] = [f"{day:%Y-%m}" if day else "not_observed" for day in shown.offered_month]
    unseen = made_offers.offer_outcome == "accepted_offer_not_observed"
    made_offers.loc[unseen, "month"] = "not_observed"
    assert_same_rows(shown, made_offers, *made_offers.columns)


def find_offers(visits: Frame) -> Iterator[tuple[str, str]]:
    """Yield month and outcome of each offer in one candidate's visits to stages."""
    steps: list[Any] = []
    for visit in visits.itertuples():
        if visit.status != "on_hold" and (not steps or steps[-1].status != visit.status):
            steps.append(visit)
    ended = [visit for visit in visits.itertuples() if visit.status != "on_hold"]
    accepted = ("offer_accepted", "placed")
    offered = ("offer_made", *accepted)
    for before, visit, after in zip([None, *steps], steps, [*steps[1:], None], strict=False):
        offer_month = f"{local_date(visit.entered_at):%Y-%m}" if visit.is_new else "not_observed"
        if visit.status == "offer_made" and after is not None:
            yield offer_month, "accepted" if after.status in accepted else "declined"
        elif visit.status == "offer_made":
            yield offer_month, "candidate_deleted" if ended[-1].left_by == "deletion" else "pending"
        elif visit.status in accepted and before and before.status not in offered:
            yield offer_month, "accepted_offer_not_observed"


def test_daily_pipeline_counts_equal_the_truth(month: SimulatedMonth) -> None:
    visits = month.observed_visits("candidates")
    first = min(local_date(at) for at in month.pull_times)

    def day(moment: datetime) -> date:
        return min(max(local_date(moment), first), TODAY)

    entered = [day(at) for at in visits.entered_at]
    left = [
        None if by is None else day(at)
        for by, at in zip(visits.left_by, visits.left_at, strict=True)
    ]
    rows = []
    for at in pd.date_range(first, TODAY).date:
        for stage in sorted(set(visits.status)):
            here = visits.status == stage
            came = here & np.array([each == at for each in entered])
            went = here & np.array([each == at for each in left])
            stood = here & np.array([each <= at for each in entered])
            stood &= np.array([each is None or each > at for each in left])
            by = visits.left_by
            rows.append(
                (
                    *(
                        at,
                        stage,
                        (came & visits.is_new).sum(),
                        (came & ~visits.is_new.astype(bool)).sum(),
                    ),
                    *((went & (by == "change")).sum(), (went & (by == "deletion")).sum()),
                    stood.sum(),
                )
            )
    columns = ["day", "stage", "entered", "initial", "exited", "deleted", "end_of_day_count"]
    assert_same_rows(month.mart("fct_pipeline_days"), pd.DataFrame(rows, columns=columns), *columns)


def test_openings_and_their_fill_dates_equal_the_truth(month: SimulatedMonth) -> None:
    visits = month.observed_visits("jobs")
    rows = []
    for id, group in visits[visits.id.isin(month.jobs.index)].groupby("id"):
        published = month.jobs.published_at[id]
        shown = datetime.fromisoformat(published) if published else None
        placed = sorted(month.placements.placed_on[month.placements.job_id == id])
        openings = find_openings(group, shown, month.jobs.created[id])
        for (number, opened, last), after in zip(openings, [*openings, None][1:], strict=True):
            till = after[1] if after else date.max
            ours = [day for day in placed if (number == openings[0][0] or day >= opened)]
            ours = [day for day in ours if day < till]
            marked = [v for v in last if v.status == "filled"]
            seen = [local_date(v.entered_at) for v in marked if v.number > 1]
            on = ours[0] if ours else seen[0] if seen else None
            end = last[-1].status
            positions = month.jobs.positions_available[id]
            wanted = 1 if pd.isna(positions) else int(positions)
            outcome = "partly_filled" if ours else end if end in OVER else "open"
            outcome = "filled" if marked or len(ours) >= wanted else outcome
            rows.append((id, number, opened, len(ours), outcome, on))
    columns = [
        "job_id",
        "opening_number",
        "opened_on",
        "placements_in_opening",
        "opening_outcome",
        "filled_on",
    ]
    truth = pd.DataFrame(rows, columns=columns, dtype=object)
    assert_same_rows(month.mart("fct_job_openings"), truth, *columns)
    waiting = truth[truth.opening_outcome == "open"]
    waiting = waiting.assign(days_open=[max((TODAY - day).days, 0) for day in waiting.opened_on])
    shown = month.mart("fct_job_openings", "days_open IS NOT NULL")
    assert_same_rows(shown, waiting, "job_id", "opening_number", "days_open")


OVER = ("filled", "closed", "cancelled")


def find_openings(
    group: Frame, published: datetime | None, created: datetime
) -> list[tuple[int, date, list[Any]]]:
    """Return number, first day and visits of each opening in one job's visits to statuses.

    A job that was never published has no opening.
    """
    parts: list[list[Any]] = [[]]
    for visit in group.sort_values("number").itertuples():
        if parts[-1] and parts[-1][-1].status in OVER and visit.status not in OVER:
            parts.append([])
        parts[-1].append(visit)
    found = []
    for number, visits in enumerate(parts, 1):
        if published or any(v.status != "draft" for v in visits):
            begins = [published or created]
            if number > 1:
                begins = [visits[0].entered_at, *([published] if published else [])]
            found.append((number, local_date(max(begins)), visits))
    return found
