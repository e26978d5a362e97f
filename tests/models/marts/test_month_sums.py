"""Each summary mart equals what pandas computes from its facts, for all members of all dimensions.

`test_month` and `test_month_stages` compare the facts themselves with the true records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import date
from typing import Any

import pandas as pd
import pytest

from tests.models.marts.month import RATES
from tests.models.marts.recomputed import (
    TODAY,
    Frame,
    SimulatedMonth,
    assert_same_rows,
    normalize_value,
    round_days,
)

pytestmark = pytest.mark.slow

WATCHED_MIN = 20
"""Minimum number of visits for a quantile of days in a stage."""

QUANTILES = {"p10_days": 0.1, "p25_days": 0.25, "p50_days": 0.5, "p75_days": 0.75, "p90_days": 0.9}
Aggregate = Callable[[Frame], Any]

NAMED = {
    "all": (),
    "consultant": ("consultant_id", "consultant_name"),
    "company": ("company_id", "company_name"),
    "lead_status": ("lead_status_id", "lead_status_name"),
}
"""Columns with id and name of a dimension's members. Other dimensions have one column."""


def sum_of(column: str) -> Aggregate:
    """Return an aggregate: the sum of a column."""
    return lambda rows: int(rows[column].sum())


def ratio_of(part: str, whole: str) -> Aggregate:
    """Return an aggregate: the sum of `part` divided by that of `whole`, None if it is zero."""
    return lambda rows: rows[part].sum() / rows[whole].sum() if rows[whole].sum() else None


def quantiles_of(column: str) -> dict[str, Aggregate]:
    """Return the aggregates of a column of days by their names in the mart."""

    def quantile(part: float) -> Aggregate:
        def found(rows: Frame) -> Any:
            known = rows[column].dropna().astype(float)
            return known.quantile(part) if len(known) else None

        return found

    parts = {name: quantile(part) for name, part in QUANTILES.items()}
    return {**parts, "measured": lambda rows: int(rows[column].count())}


def aggregate_facts(
    facts: Frame, dimensions: tuple[str, ...], sums: Mapping[str, Aggregate]
) -> Iterator[tuple[tuple[Any, ...], list[Any]]]:
    """Yield (dimension, id, name) and the aggregates of each group of facts."""
    for group_by in dimensions:
        columns = NAMED.get(group_by, (group_by,))
        groups = facts.groupby([*columns], dropna=False) if columns else [((), facts)]
        for names, rows in groups:
            id, name = None, "all"
            if columns:
                *ids, name = map(normalize_value, names)
                id = ids[0] if ids else None
            yield (group_by, id, name or "unknown"), [of(rows) for of in sums.values()]


def assert_sums(
    month: SimulatedMonth,
    mart: str,
    facts: Frame,
    dimensions: tuple[str, ...],
    sums: Mapping[str, Aggregate],
) -> None:
    """Assert that the mart has one row per value of each dimension, with the facts' aggregates.

    Numbers are compared to two decimals. Rows of other dimensions are ignored.
    """
    has_id = "group_id" in month.mart(mart).columns
    shown = {
        (row.group_by, normalize_value(row.group_id) if has_id else None, row.group_name): [
            normalize_value(getattr(row, name)) for name in sums
        ]
        for row in month.mart(mart).itertuples()
        if row.group_by in dimensions
    }
    truth = dict(aggregate_facts(facts, dimensions, sums))
    assert truth.keys() == shown.keys()
    assert len(truth) >= len(dimensions)
    for key, values in truth.items():
        actual = [None if each is None else float(each) for each in shown[key]]
        assert values == pytest.approx(actual, abs=0.0051), (mart, key)


def with_month_of(facts: Frame, column: str) -> Frame:
    """Return the facts with a column `month`, for example "2026-03", of the dates in a column."""
    named = [f"{day:%Y-%m}" if isinstance(day, date) else "unknown" for day in facts[column]]
    return facts.assign(month=named)


def test_facts_have_the_true_consultant_client_and_type(month: SimulatedMonth) -> None:
    jobs = month.jobs.rename_axis("job_id").reset_index()
    truth = jobs.rename(columns={"assigned_to": "consultant_id"})
    for mart in ("fct_job_funnel", "dim_jobs"):
        assert_same_rows(
            month.mart(mart), truth, "job_id", "consultant_id", "company_id", "employment_type"
        )
    people = month.candidates.rename_axis("candidate_id").reset_index()
    people = people.rename(columns={"assigned_to": "consultant_id"})
    assert_same_rows(month.mart("fct_pipeline_candidates"), people, "candidate_id", "consultant_id")
    leads = month.leads.rename_axis("lead_id").reset_index()
    leads = leads.rename(columns={"assigned_to": "consultant_id"})
    columns = ("lead_id", "consultant_id", "lead_status_id")
    assert_same_rows(month.mart("fct_lead_conversion", "NOT is_deleted"), leads, *columns)


def test_quantiles_of_time_to_fill_equal_those_of_the_facts(month: SimulatedMonth) -> None:
    fills = with_month_of(month.mart("fct_time_to_fill"), "filled_month")
    fills = fills[fills.outcome.isin(("filled", "partly_filled", "open"))]
    waited = [
        max((TODAY - row.opened_on).days, 0) if row.outcome == "open" else None
        for row in fills.itertuples()
    ]
    fills["waited"] = pd.Series(waited, fills.index, dtype=object)
    filled = fills.outcome != "open"
    sums = {"openings_filled": lambda rows: int((rows.outcome != "open").sum())}
    sums |= quantiles_of("days_to_fill")
    assert_sums(month, "sum_time_to_fill", fills[filled], ("month",), sums)
    sums |= {"openings_open": lambda rows: int((rows.outcome == "open").sum())}
    sums |= {"open_p50_days": quantiles_of("waited")["p50_days"]}
    fills["opened_month"] = [f"{day:%Y-%m}" for day in fills.opened_month]
    grouped = ("all", "employment_type", "consultant", "team", "company", "opened_month")
    assert_sums(month, "sum_time_to_fill", fills, grouped, sums)


def test_stage_sums_equal_the_sums_of_their_facts(month: SimulatedMonth) -> None:
    survival, visits = month.mart("sum_stage_survival"), month.mart("fct_time_in_stage")
    for row in month.mart("sum_time_in_stage").itertuples():
        curve = survival[survival.stage == row.stage].sort_values("days")
        for name, part in QUANTILES.items():
            reached = curve[curve.survival_probability <= 1 - part + 1e-9]
            watched: Any = reached.at_risk.iloc[0] if len(reached) else None
            first = reached.days.iloc[0] if watched and watched >= WATCHED_MIN else None
            assert normalize_value(getattr(row, name)) == normalize_value(first), (row.stage, name)
            assert normalize_value(
                getattr(row, name.replace("days", "at_risk"))
            ) == normalize_value(watched)
        here = visits[(visits.stage == row.stage) & visits.is_current.astype(bool)]
        assert (len(here), int(curve.exits.sum())) == (row.current_visits, row.exits_observed)
        if len(here):
            half = round_days(float(here.days_at_least.astype(float).quantile(0.5)))
            assert half == pytest.approx(row.current_p50_days, abs=0.011)
    counts = {
        "sum_offer_acceptance": "offers accepted declined pending candidate_deleted "
        "accepted_offer_not_observed",
        "sum_stage_conversion": "entered advanced arrived lost in_progress deleted inferred",
    }
    for mart, names in counts.items():
        totals = month.mart(mart).groupby("group_by")[names.split()].sum()
        assert len(totals) >= 3
        assert [totals.loc["all"].to_list()] * len(totals) == totals.to_numpy().tolist()


def test_open_job_sums_and_coverage_equal_the_truth(month: SimulatedMonth) -> None:
    jobs = month.jobs[month.jobs.status.isin(("published", "on_hold"))]
    ours = month.placements.groupby("job_id").size()
    # A reopened job counts the placements since.
    fills = month.mart("fct_time_to_fill").sort_values("opening_number").groupby("job_id").last()
    is_first = fills.opening_number.reindex(jobs.index).fillna(1).astype(int) == 1
    ours = ours.reindex(jobs.index).fillna(0).where(is_first, fills.placements)
    left = jobs.positions_available.fillna(1) - ours
    pay = (jobs.salary_min.fillna(jobs.salary_max) + jobs.salary_max.fillna(jobs.salary_min)) / 2
    client = month.companies.reindex(jobs.company_id).set_index(jobs.index)
    theirs = client.fee_percentage.where(client.fee_type == "percentage")
    fee = jobs.placement_fee.fillna(pay * jobs.fee_percentage / 100).fillna(pay * theirs / 100)
    truth = pd.DataFrame({"job_id": jobs.index, "positions_open": left.clip(lower=0).to_list()})
    truth["expected_fee"] = fee.astype(float).to_list()
    truth["pipeline_value"] = truth.expected_fee * truth.positions_open
    shown = month.mart("fct_pipeline_jobs")
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
    coverage = month.mart("sum_coverage").set_index("question")
    for question, (some, all_of_them) in covered.items():
        assert (some, all_of_them) == (coverage.covered[question], coverage.total[question]), (
            question
        )
