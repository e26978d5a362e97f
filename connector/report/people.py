"""Where candidates and leads come from, how leads stand, and what each consultant did."""

from __future__ import annotations

from collections.abc import Sequence

from connector.errors import count_noun
from connector.report import charts
from connector.report.figure import Column, Figure, Section, Shown, Table, count, of, plain, share
from connector.report.jobs import BY_SOURCE, BY_STATUS
from connector.report.published import Published, Row, months, total

_MONTHS = 12
_DRAWN_MAX = 12
_NO_SOURCE = frozenset(("not stated", "unmapped", "unread"))

_ACTIVITY = (
    *("candidates_added", "leads_added", "jobs_added", "interviews_booked", "interviews_held"),
    *("placements", "placements_with_reporting_fee", "reporting_fee"),
)


def _sources(published: Published) -> Shown | None:
    rows = published.rows(
        "SELECT source_group, sum(candidates) AS candidates, "
        "sum(candidates_interviewed) AS candidates_interviewed, "
        "sum(candidates_placed) AS candidates_placed, sum(placements) AS placements, "
        "sum(candidates_interviewed) / nullif(sum(candidates), 0) AS interview_rate, "
        "sum(candidates_placed) / nullif(sum(candidates), 0) AS hire_rate, "
        "sum(placements_with_reporting_fee) AS placements_with_reporting_fee, "
        "sum(reporting_fee) AS reporting_fee, max(reporting_currency) AS reporting_currency, "
        "sum(candidates) FILTER (source_group = 'unmapped') AS unmapped "
        "FROM marts.sum_source_effectiveness GROUP BY source_group "
        "ORDER BY candidates_placed DESC, candidates DESC, source_group"
    )
    everybody, unmapped = int(total(rows, "candidates")), int(total(rows, "unmapped"))
    if not everybody:
        return None
    shown = [
        {**row, "text": f"{count(row['candidates_placed'])} of {count(row['candidates'])}"}
        for row in rows
        if row["candidates"]
    ]
    drawn = shown[:_DRAWN_MAX]
    return Shown(
        _best(shown),
        (charts.bars(drawn, "source_group", "hire_rate", "text", unit="candidates placed"),),
        (_source_table(rows),),
        (
            f"{share(unmapped / everybody)} of candidates ({unmapped:,} of {everybody:,}) name a "
            "source that the seed source_groups does not know.",
        )
        if unmapped
        else (),
    )


def _best(rows: Sequence[Row]) -> str:
    """The group of sources, where it is a known one, that brought the most who were placed."""
    named = [row for row in rows if row["source_group"] not in _NO_SOURCE] or rows
    best = max(named, key=lambda row: row["candidates_placed"])
    if not best["candidates_placed"]:
        return "No candidate of a known source was placed yet."
    placed = of(int(best["candidates_placed"]), int(total(rows, "candidates_placed")))
    return f"{best['source_group']} brought the most who were placed: {placed}."


def _source_table(rows: Sequence[Row]) -> Table:
    return Table(
        "Candidates by the group of their source",
        "sum_source_effectiveness",
        (
            Column("source_group", "Source group", "text"),
            Column("candidates", "Candidates"),
            Column("candidates_interviewed", "Interviewed"),
            Column("interview_rate", "Of all", "share"),
            Column("candidates_placed", "Placed"),
            Column("hire_rate", "Of all", "share"),
            Column("placements", "Placements"),
            Column("placements_with_reporting_fee", "With a fee"),
            Column("reporting_fee", "Fees, converted", "amount"),
            Column("reporting_currency", "To", "text"),
        ),
        rows,
    )


def recent(published: Published, by: str, order: str) -> list[Row]:
    """The activity of the last twelve months, the present one among them, added up by columns;
    nothing where it is not known when now is.
    """
    if published.today is None:
        return []
    present = f"date_trunc('month', DATE '{published.today}')"
    sums = ", ".join(f"coalesce(sum({name}), 0) AS {name}" for name in _ACTIVITY)
    return published.rows(
        f"SELECT {by}, {sums}, max(reporting_currency) AS reporting_currency "
        "FROM marts.sum_consultant_activity WHERE period = 'month' "
        f"AND period_start > {present} - INTERVAL {_MONTHS} MONTH AND period_start <= {present} "
        f"GROUP BY {by} ORDER BY {order}"
    )


def _consultants(published: Published) -> Shown | None:
    rows = recent(
        published,
        "consultant_id, consultant_name",
        "placements DESC, interviews_held DESC, consultant_name, consultant_id",
    )
    if not rows:
        return None
    placements = int(total(rows, "placements"))
    missing = placements - int(total(rows, "placements_with_reporting_fee"))
    shown = [{**row, "text": count(row["placements"])} for row in rows]
    table = Table(
        "Activity of the last twelve months",
        "sum_consultant_activity",
        (
            Column("consultant_name", "Consultant", "text"),
            Column("candidates_added", "Candidates"),
            Column("jobs_added", "Jobs"),
            Column("interviews_booked", "Interviews entered"),
            Column("interviews_held", "Held"),
            Column("placements", "Placements"),
            Column("placements_with_reporting_fee", "With a fee"),
            Column("reporting_fee", "Fees, converted", "amount"),
            Column("reporting_currency", "To", "text"),
        ),
        rows,
    )
    return Shown(
        f"{count_noun(placements, 'placement')} in twelve months, by "
        f"{count_noun(len(rows), 'consultant')} with any activity.",
        (
            charts.bars(
                shown[:_DRAWN_MAX], "consultant_name", "placements", "text", unit="placements"
            ),
        ),
        (table,),
        (
            f"{share(missing / placements)} of the placements ({missing:,} of {placements:,}) have "
            "no fee that can be converted.",
        )
        if missing
        else (),
    )


def _months(published: Published) -> Shown | None:
    rows = recent(published, "period_start", "period_start")
    if not rows or published.today is None:
        return None
    by_month = {row["period_start"]: row for row in rows}
    nothing = dict.fromkeys(_ACTIVITY, 0)
    shown = [
        {**nothing, **by_month.get(month, {}), "period_start": month, "month": f"{month:%b %y}"}
        for month in months(min(by_month), published.today)
    ]
    table = Table(
        "Activity by month",
        "sum_consultant_activity",
        (
            Column("period_start", "Month", "month"),
            Column("candidates_added", "Candidates"),
            Column("leads_added", "Leads"),
            Column("jobs_added", "Jobs"),
            Column("interviews_held", "Interviews held"),
            Column("placements", "Placements"),
        ),
        shown,
    )
    latest = shown[-1]
    held, placed = int(latest["interviews_held"]), int(latest["placements"])
    return Shown(
        f"So far this month: {count_noun(held, 'interview')} held,"
        f" {count_noun(placed, 'placement')}.",
        tuple(
            charts.uprights(shown, "month", column, unit=plain(column), across="month")
            for column in ("interviews_held", "placements")
        ),
        (table,),
    )


ACTIVITY_NEEDS = {
    "sum_consultant_activity": (
        *("period", "period_start", "consultant_id", "consultant_name", "reporting_currency"),
        *_ACTIVITY,
    )
}
"""The columns that `recent` reads."""

SECTION = Section(
    "people",
    "Sources and consultants",
    "Records count for the consultant to whom they are assigned now, and sources are what people "
    "typed, put into groups by the seed source_groups.",
    (
        Figure(
            "sources",
            "Sources of candidates",
            {
                "sum_source_effectiveness": (
                    *("source_group", "candidates", "candidates_interviewed", "candidates_placed"),
                    *("interview_rate", "hire_rate", "placements", "reporting_fee"),
                    *("placements_with_reporting_fee", "reporting_currency"),
                )
            },
            _sources,
            "No candidates have landed yet.",
        ),
        BY_SOURCE,
        BY_STATUS,
        Figure(
            "consultants",
            "Consultants",
            ACTIVITY_NEEDS,
            _consultants,
            "Nothing was done in any month yet.",
        ),
        Figure(
            "months",
            "Activity by month",
            ACTIVITY_NEEDS,
            _months,
            "Nothing was done in any month yet.",
        ),
    ),
)
