"""The agency's business: fees, contracts, sources, leads, consultants and content."""

from __future__ import annotations

from collections.abc import Sequence

from connector.errors import count_noun
from connector.report import charts
from connector.report.figure import (
    Chart,
    Drawing,
    FigureTable,
    Section,
    count,
    figure,
    headed,
    lacking,
    money,
    of,
    plain,
    tabled_figure,
)
from connector.report.published import PublishedFile, Row, months, total

_DRAWN_MAX = 12

# -- Fees and contracts ----------------------------------------------------------------------------

_MONTHS_BEFORE = 6
_MONTHS_AFTER = 12
_ROWS_MAX = 20

FORECAST_NEEDS = {
    "sum_fee_forecast": "month_start currency month_kind placements placements_with_fee "
    "fee_coverage fee confirmed_fee fee_from_booking fee_from_job fee_from_percentage "
    "reporting_fee reporting_currency"
}
"""The columns that `forecast_rows` reads."""


def forecast_rows(published: PublishedFile) -> list[Row]:
    """Fees of the months around now, and of all later ones, by currency and month."""
    begins = ""
    if published.today is not None:
        present = f"date_trunc('month', DATE '{published.today}')"
        begins = f"OR month_start >= {present} - INTERVAL {_MONTHS_BEFORE} MONTH "
    return published.rows(
        "SELECT * REPLACE (coalesce(fee, 0) AS fee, coalesce(confirmed_fee, 0) AS confirmed_fee), "
        "coalesce(f.fee, 0) - coalesce(f.confirmed_fee, 0) AS scheduled_fee "
        f"FROM marts.sum_fee_forecast AS f WHERE month_kind <> 'past' {begins}"
        "ORDER BY month_start, currency NULLS LAST"
    )


def fees(rows: Sequence[Row]) -> dict[str, float]:
    """Fees by known currency, in the order of their codes, without those of 0.

    Amounts of two currencies are not to be compared, so that none comes before another by its own.
    """
    found: dict[str, float] = {}
    for row in rows:
        if row["fee"] and row["currency"]:
            found[row["currency"]] = found.get(row["currency"], 0.0) + float(row["fee"])
    return dict(sorted(found.items()))


def converted(rows: Sequence[Row]) -> str:
    """The fees that rates can convert, added up, as in GBP 12,300; else ""."""
    amount = total(rows, "reporting_fee")
    return (
        money(next(r["reporting_currency"] for r in rows if r["reporting_fee"]), amount)
        if (amount)
        else ""
    )


@figure(
    "forecast",
    "Fee forecast",
    {**FORECAST_NEEDS, "fct_placements": ""},
    empty="No placement starts in the months around now.",
    is_wide=True,
)
def _forecast(published: PublishedFile) -> Drawing | None:
    rows = forecast_rows(published)
    if not rows:
        return None
    ahead = fees([row for row in rows if row["month_kind"] != "past"])
    placements = total(rows, "placements")
    missing = placements - total(rows, "placements_with_fee")
    table = FigureTable(
        "Fees by month of the start and currency",
        "sum_fee_forecast",
        headed(
            "month_start Month; currency Currency; placements Placements; placements_with_fee With "
            "a fee; fee_coverage Coverage; fee Fees; confirmed_fee Confirmed; fee_from_booking "
            "From booking; fee_from_job From job; fee_from_percentage From percentage; "
            "reporting_fee Converted; reporting_currency To"
        ),
        rows,
    )
    amounts = ", ".join(money(currency, fee) for currency, fee in ahead.items())
    whole = converted([row for row in rows if row["month_kind"] != "past"])
    worth = f"; together {whole} (currencies with an exchange rate)" if whole else ""
    told = "have no known fee and are not included."
    strange = int(total([row for row in rows if not row["currency"]], "placements_with_fee"))
    unsaid = lacking(strange, placements, "placements", "have a fee in an unknown currency.")
    return Drawing(
        f"From this month on: {amounts}{worth}."
        if amounts
        else "No fee is known from this month on.",
        _by_currency(rows),
        lacking(missing, placements, "placements", told) + unsaid,
        (table,),
    )


def _by_currency(rows: list[Row]) -> tuple[Chart, ...]:
    """A chart for each currency with fees: two never share an axis."""
    starts = [row["month_start"] for row in rows]
    drawn = months(min(starts), max(starts))[: _MONTHS_BEFORE + _MONTHS_AFTER]
    found = {(row["currency"], row["month_start"]): row for row in rows}
    parts = {"confirmed_fee": "confirmed or begun", "scheduled_fee": "scheduled"}
    nothing = dict.fromkeys(parts, 0)
    return tuple(
        charts.stacked(
            [
                {**found.get((currency, month), nothing), "month": f"{month:%b %y}"}
                for month in drawn
            ],
            "month",
            parts,
            unit=f"fees in {currency}",
            is_upright=True,
        )
        for currency in fees(rows)
    )


@figure(
    "ending",
    "Contracts by end date",
    {
        "fct_contractors_ending": "booking_id job_title company_name consultant_name end_date "
        "days_left band ends_within_14_days ends_within_30_days ends_within_90_days "
        "next_booking_id next_start_date is_extended is_replaced"
    },
    empty="No contract is running or to come.",
    is_wide=True,
)
def _ending(published: PublishedFile) -> Drawing | None:
    rows = published.rows(
        "SELECT CASE band WHEN 'later' THEN 'after 90 days' WHEN 'open' THEN 'no end stated' "
        "ELSE 'in ' || band || ' days' END AS band, count(*) AS contracts, "
        "count(next_booking_id) AS next_booking_id, "
        "count(*) - count(next_booking_id) AS unfollowed, "
        "count(*) FILTER (is_extended) AS is_extended, "
        "count(*) FILTER (is_replaced) AS is_replaced, "
        "count(*) FILTER (ends_within_14_days) AS in_14, "
        "count(*) FILTER (ends_within_30_days) AS in_30, "
        "count(*) FILTER (ends_within_90_days) AS in_90 "
        "FROM marts.fct_contractors_ending AS c GROUP BY c.band "
        "ORDER BY list_position(['0-14', '15-30', '31-90', 'later', 'open'], c.band)"
    )
    if not rows:
        return None
    table = FigureTable(
        "Contracts by the days that are left",
        "fct_contractors_ending",
        headed(
            "band Ending; contracts Contracts; next_booking_id Next known; is_extended Extended; "
            "is_replaced Replaced"
        ),
        rows,
    )
    parts = {"next_booking_id": "next booking known", "unfollowed": "no next booking"}
    return Drawing(
        f"Ending within 14 days: {count_noun(total(rows, 'in_14'), 'contract')}; "
        f"within 30: {total(rows, 'in_30'):,}; within 90: {total(rows, 'in_90'):,}; "
        f"of {count_noun(total(rows, 'contracts'), 'contract')} running or to come.",
        (charts.stacked(rows, "band", parts, unit="contracts"),),
        tables=(table, *_soon(published)),
    )


def _soon(published: PublishedFile) -> tuple[FigureTable, ...]:
    rows = published.rows(
        "SELECT * REPLACE (left(booking_id::VARCHAR, 8) AS booking_id) "
        "FROM marts.fct_contractors_ending AS c WHERE ends_within_30_days "
        f"ORDER BY days_left, c.booking_id LIMIT {_ROWS_MAX}"
    )
    table = FigureTable(
        "Contracts that end within 30 days",
        "fct_contractors_ending",
        headed(
            "booking_id Booking; job_title Job; company_name Client; consultant_name Consultant; "
            "end_date Last day; days_left Days left; next_start_date Next begins; is_replaced "
            "Replaced"
        ),
        rows,
        is_open=True,
    )
    return (table,) if rows else ()


FEES = Section(
    "fees",
    "Fees and contracts",
    "Amounts in different currencies are not added up, except where they are converted.",
    (_forecast, _ending),
)


# -- Sources and consultants -----------------------------------------------------------------------

_MONTHS = 12
_NO_SOURCE = frozenset(("not stated", "unmapped", "unread"))
_UNKNOWN = "unmapped"

_ACTIVITY = (
    "candidates_added leads_added jobs_added interviews_booked interviews_held placements "
    "placements_with_reporting_fee reporting_fee"
)
ACTIVITY_NEEDS = {
    "sum_consultant_activity": "period period_start consultant_id consultant_name "
    f"reporting_currency {_ACTIVITY}"
}
"""The columns that `recent` reads."""


@tabled_figure(
    "sources",
    "Sources of candidates",
    {
        "sum_source_effectiveness": "source_group candidates candidates_interviewed "
        "candidates_placed interview_rate placement_rate placements reporting_fee "
        "placements_with_reporting_fee reporting_currency"
    },
    "SELECT source_group, sum(candidates) AS candidates, "
    "sum(candidates_interviewed) AS candidates_interviewed, "
    "sum(candidates_placed) AS candidates_placed, sum(placements) AS placements, "
    "sum(s.candidates_interviewed) / nullif(sum(s.candidates), 0) AS interview_rate, "
    "sum(s.candidates_placed) / nullif(sum(s.candidates), 0) AS placement_rate, "
    "sum(placements_with_reporting_fee) AS placements_with_reporting_fee, "
    "sum(reporting_fee) AS reporting_fee, max(reporting_currency) AS reporting_currency "
    "FROM marts.sum_source_effectiveness AS s GROUP BY source_group "
    "ORDER BY placement_rate DESC NULLS LAST, candidates DESC, source_group",
    caption="Candidates by the group of their source",
    headings=headed(
        "source_group Source group; candidates Candidates; candidates_interviewed Interviewed; "
        "interview_rate Of all; candidates_placed Placed; placement_rate Of all; "
        "placements Placements; placements_with_reporting_fee With a fee; "
        "reporting_fee Fees, converted; reporting_currency To"
    ),
    empty="No candidates are loaded yet.",
)
def _sources(rows: list[Row]) -> Drawing | None:
    everybody = int(total(rows, "candidates"))
    if not everybody:
        return None
    unmapped = int(total([r for r in rows if r["source_group"] == _UNKNOWN], "candidates"))
    shown = [row for row in rows if row["candidates"]]
    chart = charts.bars(
        shown[:_DRAWN_MAX],
        "source_group",
        "placement_rate",
        unit="candidates placed",
        text=lambda row: f"{count(row['candidates_placed'])} of {count(row['candidates'])}",
    )
    told = "have a source without a group."
    return Drawing(_best(shown), (chart,), lacking(unmapped, everybody, "candidates", told))


def _best(rows: Sequence[Row]) -> str:
    """The known group of sources that brought the most who were placed."""
    named = [row for row in rows if row["source_group"] not in _NO_SOURCE] or rows
    best = max(named, key=lambda row: row["candidates_placed"])
    if not best["candidates_placed"]:
        return "No candidate of a known source is placed yet."
    placed = of(int(best["candidates_placed"]), int(total(rows, "candidates_placed")))
    return f"{best['source_group']} has the most placed candidates: {placed}."


@tabled_figure(
    "leads",
    "Leads and their conversion",
    {
        "sum_lead_conversion": "group_by group_name leads converted lost conversion_rate "
        "converted_with_date p50_days_to_convert",
        "fct_lead_conversion": "",
    },
    "SELECT * REPLACE (if(group_by = 'all', 'All', group_name) AS group_name) "
    "FROM marts.sum_lead_conversion AS l WHERE group_by = 'all' "
    "OR (group_by = 'source_group' AND leads > 0) "
    "ORDER BY group_by = 'all', conversion_rate DESC, leads DESC, l.group_name",
    caption="Leads by the group of their source",
    headings=headed(
        "group_name Source group; leads Leads; converted Converted; lost Lost; conversion_rate "
        "Converted of all; p50_days_to_convert Median days"
    ),
    empty="No leads are loaded yet.",
)
def _leads(rows: list[Row]) -> Drawing | None:
    *groups, whole = rows
    if not whole["leads"]:
        return None
    chart = charts.bars(
        groups[:_DRAWN_MAX],
        "group_name",
        "conversion_rate",
        unit="leads converted",
        text=lambda row: f"{row['converted']:,} of {row['leads']:,}",
    )
    undated = whole["converted"] - whole["converted_with_date"]
    return Drawing(
        f"At least {of(whole['converted'], whole['leads'], 'lead')} are converted.",
        (chart,) if groups else (),
        (f"{of(undated, whole['converted'], 'conversion')} have no date.",) if undated else (),
    )


@tabled_figure(
    "lead_statuses",
    "Leads by status",
    {
        "sum_lead_conversion": "group_by group_name leads converted lost conversion_rate",
        "fct_lead_conversion": "",
    },
    "SELECT group_name, sum(leads)::BIGINT AS leads, sum(converted)::BIGINT AS converted, "
    "sum(lost)::BIGINT AS lost, sum(s.converted) / nullif(sum(s.leads), 0) AS conversion_rate "
    "FROM marts.sum_lead_conversion AS s WHERE group_by = 'lead_status' "
    "GROUP BY group_name ORDER BY leads DESC, group_name",
    caption="Leads by their status",
    headings=headed(
        "group_name Status; leads Leads; converted Converted; lost Lost; "
        "conversion_rate Converted of all"
    ),
    empty="No leads are loaded yet.",
)
def _lead_statuses(rows: list[Row]) -> Drawing | None:
    everything = int(total(rows, "leads"))
    if not everything:
        return None
    known = [row for row in rows if row["group_name"] != _UNKNOWN]
    unknown = everything - int(total(known, "leads"))
    most = (known or rows)[0]
    told = f"{of(unknown, everything, 'lead')} have a status without a name."
    finding = "No lead status has a name yet. Fill in seeds/lead_statuses.csv."
    if known:
        finding = f"{of(most['leads'], everything, 'lead')} have the status {most['group_name']}."
    return Drawing(
        finding,
        (charts.bars(rows[:_DRAWN_MAX], "group_name", "leads", unit="leads"),),
        (told,) if unknown else (),
    )


def recent(published: PublishedFile, by: str, order: str) -> list[Row]:
    """Activity of the last twelve months, this one too, added up by columns.

    There is none where it is not known when now is.
    """
    if published.today is None:
        return []
    present = f"date_trunc('month', DATE '{published.today}')"
    sums = ", ".join(f"coalesce(sum({name}), 0) AS {name}" for name in _ACTIVITY.split())
    return published.rows(
        f"SELECT {by}, {sums}, max(reporting_currency) AS reporting_currency "
        "FROM marts.sum_consultant_activity WHERE period = 'month' "
        f"AND period_start > {present} - INTERVAL {_MONTHS} MONTH AND period_start <= {present} "
        f"GROUP BY {by} ORDER BY {order}"
    )


@figure("consultants", "Consultants", ACTIVITY_NEEDS, empty="No activity in any month yet.")
def _consultants(published: PublishedFile) -> Drawing | None:
    rows = recent(
        published,
        "consultant_id, consultant_name",
        "placements DESC, interviews_held DESC, consultant_name, consultant_id",
    )
    if not rows:
        return None
    placements = int(total(rows, "placements"))
    missing = placements - int(total(rows, "placements_with_reporting_fee"))
    table = FigureTable(
        "Activity of the last twelve months",
        "sum_consultant_activity",
        headed(
            "consultant_name Consultant; candidates_added Candidates; jobs_added Jobs; "
            "interviews_booked Interviews entered; interviews_held Held; placements Placements; "
            "placements_with_reporting_fee With a fee; reporting_fee Fees, converted; "
            "reporting_currency To"
        ),
        rows,
    )
    return Drawing(
        f"{count_noun(placements, 'placement')} in twelve months, by "
        f"{count_noun(sum(1 for row in rows if row['consultant_id']), 'consultant')}.",
        (charts.bars(rows[:_DRAWN_MAX], "consultant_name", "placements", unit="placements"),),
        lacking(missing, placements, "the placements", "have no fee that can be converted."),
        (table,),
    )


@figure("months", "Activity by month", ACTIVITY_NEEDS, empty="No activity in any month yet.")
def _by_month(published: PublishedFile) -> Drawing | None:
    rows = recent(published, "period_start", "period_start")
    if not rows or published.today is None:
        return None
    by_month = {row["period_start"]: row for row in rows}
    nothing = dict.fromkeys(_ACTIVITY.split(), 0)
    shown = [
        {**nothing, **by_month.get(month, {}), "period_start": month, "month": f"{month:%b %y}"}
        for month in months(min(by_month), published.today)
    ]
    table = FigureTable(
        "Activity by month",
        "sum_consultant_activity",
        headed(
            "period_start Month; candidates_added Candidates; leads_added Leads; jobs_added Jobs; "
            "interviews_held Interviews held; placements Placements"
        ),
        shown,
    )
    held, placed = int(shown[-1]["interviews_held"]), int(shown[-1]["placements"])
    return Drawing(
        f"So far this month: {count_noun(held, 'interview')} held, "
        f"{count_noun(placed, 'placement')}.",
        tuple(
            charts.uprights(shown, "month", column, unit=plain(column), across="month")
            for column in ("interviews_held", "placements")
        ),
        tables=(table,),
    )


PEOPLE = Section(
    "people",
    "Sources and consultants",
    "Records count for the consultant to whom they are assigned now. Sources are free text, put "
    "into groups.",
    (_sources, _leads, _lead_statuses, _consultants, _by_month),
)


# -- Content ---------------------------------------------------------------------------------------


@tabled_figure(
    "content_items",
    "Content items by type",
    {
        "sum_content_items": "content_type_id content_type_name is_active items items_published "
        "items_draft last_published_on last_updated_on"
    },
    "FROM marts.sum_content_items ORDER BY items DESC, content_type_name, content_type_id",
    caption="Content items by their type",
    headings=headed(
        "content_type_name Type; is_active In use; items Items; items_published Published; "
        "items_draft Drafts; last_published_on Last published; last_updated_on Last changed"
    ),
    empty="No content types are loaded yet.",
)
def _content_items(rows: list[Row]) -> Drawing:
    items, shown = int(total(rows, "items")), int(total(rows, "items_published"))
    if not items:
        types = count_noun(len(rows), "content type")
        return Drawing(f"{types} and no content item yet.")
    chart = charts.bars(
        rows[:_DRAWN_MAX],
        "content_type_name",
        "items",
        unit="content items",
        text=lambda row: f"{count(row['items_published'])} of {count(row['items'])}",
    )
    return Drawing(f"{of(shown, items, 'content item')} are published.", (chart,))


CONTENT = Section(
    "content", "Content", "Content items by the platform's content types.", (_content_items,)
)
