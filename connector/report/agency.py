"""Figures on the agency: fees, contracts, sources, leads, consultants and content."""

from __future__ import annotations

from collections.abc import Sequence

from connector.report import charts
from connector.report.figure import (
    Chart,
    ExtraTable,
    Figure,
    Section,
    format_count,
    parse_headings,
    value_words,
)
from connector.report.published import PublishedFile, Row, month_starts

_DRAWN_MAX = 12

# -- Fees and contracts ----------------------------------------------------------------------------

_MONTHS_BEFORE = 6
_MONTHS_AFTER = 12
_ROWS_MAX = 20


def _chart_fees_by_currency(_: PublishedFile, rows: Sequence[Row]) -> Sequence[Chart]:
    """Return a chart of monthly fees for each currency, because currencies cannot share an axis."""
    starts = [row["month_start"] for row in rows]
    drawn = month_starts(min(starts), max(starts))[: _MONTHS_BEFORE + _MONTHS_AFTER]
    found = {(row["currency"], row["month_start"]): row for row in rows}
    parts = {"confirmed_fee": "confirmed or begun", "scheduled_fee": "scheduled"}
    nothing = dict.fromkeys(parts, 0)
    return [
        charts.stacked_bar_chart(
            [{**found.get((code, month), nothing), "month": f"{month:%b %y}"} for month in drawn],
            "month",
            parts,
            unit=f"fees in {code}",
            is_upright=True,
        )
        for code in sorted({row["currency"] for row in rows if row["currency"] and row["fee"]})
    ]


_FORECAST = Figure(
    key="forecast",
    title="Fee forecast",
    mart="sum_fee_forecast",
    further_marts=("fct_placements",),
    sql="SELECT * REPLACE (coalesce(fee, 0) AS fee, coalesce(confirmed_fee, 0) AS confirmed_fee), "
    "coalesce(f.fee, 0) - coalesce(f.confirmed_fee, 0) AS scheduled_fee, "
    "placements - placements_with_fee AS missing, "
    "if(currency IS NULL, placements_with_fee, 0) AS strange, "
    "if(month_kind <> 'past', f.fee, 0) AS ahead, "
    "if(month_kind <> 'past', reporting_fee, 0) AS reporting_ahead "
    "FROM marts.sum_fee_forecast AS f WHERE month_kind <> 'past' "
    f"OR month_start >= date_trunc('month', {{today}}) - INTERVAL {_MONTHS_BEFORE} MONTH "
    "ORDER BY month_start, currency NULLS LAST",
    headings=parse_headings(
        "month_start Month; currency Currency; placements Placements; placements_with_fee With "
        "a fee; fee_coverage Coverage; fee Fees; confirmed_fee Confirmed; fee_from_booking "
        "From booking; fee_from_job From job; fee_from_percentage From percentage; "
        "reporting_fee Converted; reporting_currency To"
    ),
    caption="Fees by month of the start and currency",
    findings=(
        "Fees from this month on: {ahead*currency}; in total {reporting_ahead@reporting_currency} "
        "(currencies with an exchange rate).",
        "Fees from this month on: {ahead*currency}.",
        "No fee is known from this month on.",
    ),
    notes=(
        "{missing/placements placement} have no known fee and are not included.",
        "{strange/placements placement} have a fee in an unknown currency.",
    ),
    text_if_empty="No placement starts in the months before or after today.",
    chart=_chart_fees_by_currency,
    is_wide=True,
)

_ENDING = Figure(
    key="ending",
    title="Contracts by end date",
    mart="fct_contracts",
    sql="SELECT CASE band WHEN 'later' THEN 'after 90 days' WHEN 'open' THEN 'no end stated' "
    "ELSE 'in ' || band || ' days' END AS band, count(*) AS contracts, "
    "count(next_booking_id) AS next_booking_id, "
    "count(*) - count(next_booking_id) AS unfollowed, "
    "count(*) FILTER (is_extended) AS is_extended, "
    "count(*) FILTER (is_replaced) AS is_replaced, "
    "sum(count(*) FILTER (ends_within_14_days)) OVER () || '' AS the_14, "
    "sum(count(*) FILTER (ends_within_30_days)) OVER () || '' AS the_30, "
    "sum(count(*) FILTER (ends_within_90_days)) OVER () || '' AS the_90 "
    "FROM marts.fct_contracts AS c WHERE c.band IS NOT NULL GROUP BY c.band "
    "ORDER BY list_position(['0-14', '15-30', '31-90', 'later', 'open'], c.band)",
    headings=parse_headings(
        "band Ending; contracts Contracts; next_booking_id With a next booking; is_extended "
        "Extended; is_replaced Replaced"
    ),
    caption="Contracts by days until the end",
    findings=(
        "Contracts ending within 14 days: {the_14}; within 30: {the_30}; within 90: {the_90}; of "
        "{contracts contract} running or planned.",
    ),
    text_if_empty="No contract is running or planned.",
    chart=lambda _, rows: [
        charts.stacked_bar_chart(
            rows,
            "band",
            {"next_booking_id": "next booking known", "unfollowed": "no next booking"},
            unit="contracts",
        )
    ],
    more=(
        ExtraTable(
            "Contracts that end within 30 days",
            "fct_contracts",
            "SELECT * REPLACE (left(booking_id::VARCHAR, 8) AS booking_id) "
            "FROM marts.fct_contracts AS c WHERE ends_within_30_days "
            f"ORDER BY days_left, c.booking_id LIMIT {_ROWS_MAX}",
            parse_headings(
                "booking_id Booking; job_title Job; company_name Client; consultant_name "
                "Consultant; end_date Last day; days_left Days left; next_start_date Next begins; "
                "is_replaced Replaced"
            ),
            is_open=True,
        ),
    ),
    is_wide=True,
)

FEES = Section(
    "fees",
    "Fees and contracts",
    "Amounts in different currencies are not added up, except where they are converted.",
    (_FORECAST, _ENDING),
)


# -- Sources and consultants -----------------------------------------------------------------------

_MONTHS = 12
_ACTIVITY = (
    *("candidates_added", "leads_added", "jobs_added", "interviews_booked", "interviews_held"),
    *("placements", "placements_with_reporting_fee", "reporting_fee"),
)

_SOURCES = Figure(
    key="sources",
    title="Sources of candidates",
    mart="sum_source_effectiveness",
    sql="SELECT source_group, sum(candidates) AS candidates, "
    "sum(candidates_interviewed) AS candidates_interviewed, "
    "sum(candidates_placed) AS candidates_placed, sum(placements) AS placements, "
    "sum(s.candidates_interviewed) / nullif(sum(s.candidates), 0) AS interview_rate, "
    "sum(s.candidates_placed) / nullif(sum(s.candidates), 0) AS placement_rate, "
    "sum(placements_with_reporting_fee) AS placements_with_reporting_fee, "
    "sum(reporting_fee) AS reporting_fee, max(reporting_currency) AS reporting_currency, "
    "if(source_group = 'unmapped', sum(s.candidates), 0) AS unmapped, "
    "source_group NOT IN ('not stated', 'unmapped', 'unread') AS is_known, "
    "arg_max(source_group, sum(s.candidates_placed)) FILTER (is_known) OVER () AS the_best, "
    "max(sum(s.candidates_placed)) FILTER (is_known) OVER () AS the_placed "
    "FROM marts.sum_source_effectiveness AS s GROUP BY source_group "
    "ORDER BY placement_rate DESC NULLS LAST, candidates DESC, source_group",
    headings=parse_headings(
        "source_group Source group; candidates Candidates; candidates_interviewed Interviewed; "
        "interview_rate Share interviewed; candidates_placed Placed; placement_rate Share placed; "
        "placements Placements; placements_with_reporting_fee With a fee; "
        "reporting_fee Fees, converted; reporting_currency To"
    ),
    caption="Candidates by the group of their source",
    findings=(
        "{the_best} has the most placed candidates: {the_placed/candidates_placed}.",
        "No candidate of a known source is placed yet.",
    ),
    notes=("{unmapped/candidates candidate} have a source without a group.",),
    text_if_empty="No candidates are loaded yet.",
    counted_column="candidates",
    chart=lambda _, rows: [
        charts.bar_chart(
            [row for row in rows if row["candidates"]][:_DRAWN_MAX],
            "source_group",
            "placement_rate",
            unit="candidates placed",
            text=lambda row: (
                f"{format_count(row['candidates_placed'])} of {format_count(row['candidates'])}"
            ),
        )
    ],
)

_LEADS = Figure(
    key="leads",
    title="Leads and their conversion",
    mart="sum_lead_conversion",
    further_marts=("fct_lead_conversion",),
    sql="SELECT * REPLACE (if(group_by = 'all', 'All', group_name) AS group_name), "
    "converted - converted_with_date AS undated "
    "FROM marts.sum_lead_conversion AS l WHERE group_by = 'all' "
    "OR (group_by = 'source_group' AND leads > 0) "
    "ORDER BY group_by = 'all', conversion_rate DESC, leads DESC, l.group_name",
    headings=parse_headings(
        "group_name Source group; leads Leads; converted Converted; lost Lost; conversion_rate "
        "Share converted; p50_days_to_convert Median days"
    ),
    caption="Leads by the group of their source",
    findings=("At least {converted/leads lead} are converted.",),
    notes=("{undated/converted conversion} have no date.",),
    text_if_empty="No leads are loaded yet.",
    counted_column="leads",
    has_total=True,
    chart=lambda _, rows: [
        charts.bar_chart(
            groups[:_DRAWN_MAX],
            "group_name",
            "conversion_rate",
            unit="leads converted",
            text=lambda row: f"{row['converted']:,} of {row['leads']:,}",
        )
        for groups in [rows[:-1]]
        if groups
    ],
)

_LEAD_STATUSES = Figure(
    key="lead_statuses",
    title="Leads by status",
    mart="sum_lead_conversion",
    further_marts=("fct_lead_conversion",),
    sql="SELECT group_name, sum(leads)::BIGINT AS leads, sum(converted)::BIGINT AS converted, "
    "sum(lost)::BIGINT AS lost, sum(s.converted) / nullif(sum(s.leads), 0) AS conversion_rate, "
    "if(group_name = 'unmapped', sum(s.leads), 0) AS unmapped, "
    "group_name <> 'unmapped' AS is_named, "
    "arg_max(group_name, sum(s.leads)) FILTER (is_named) OVER () AS the_status, "
    "max(sum(s.leads)) FILTER (is_named) OVER () AS the_leads "
    "FROM marts.sum_lead_conversion AS s WHERE group_by = 'lead_status' "
    "GROUP BY group_name ORDER BY leads DESC, group_name",
    headings=parse_headings(
        "group_name Status; leads Leads; converted Converted; lost Lost; "
        "conversion_rate Share converted"
    ),
    caption="Leads by their status",
    findings=(
        "{the_leads/leads lead} have the status {the_status}.",
        "No lead status has a name yet. Fill in seeds/lead_statuses.csv.",
    ),
    notes=("{unmapped/leads lead} have a status without a name.",),
    text_if_empty="No leads are loaded yet.",
    counted_column="leads",
    chart=lambda _, rows: [
        charts.bar_chart(rows[:_DRAWN_MAX], "group_name", "leads", unit="leads")
    ],
)


def _recent_activity_query(group_by: str, extra_columns: str, order_by: str) -> str:
    """Return the SQL that adds up the activity of the last twelve months by `group_by`."""
    sums = ", ".join(f"coalesce(sum({name}), 0) AS {name}" for name in _ACTIVITY)
    month = "date_trunc('month', {today})"
    return (
        f"SELECT {group_by}, {sums}, max(reporting_currency) AS reporting_currency{extra_columns} "
        "FROM marts.sum_consultant_activity AS a WHERE period = 'month' "
        f"AND period_start > {month} - INTERVAL {_MONTHS} MONTH AND period_start <= {month} "
        f"GROUP BY {group_by} ORDER BY {order_by}"
    )


_CONSULTANTS = Figure(
    key="consultants",
    title="Consultants",
    mart="sum_consultant_activity",
    sql=_recent_activity_query(
        "consultant_id, consultant_name",
        ", sum(a.placements) - sum(a.placements_with_reporting_fee) AS missing, "
        "if(consultant_id IS NULL, 0, 1) AS consultants",
        "placements DESC, interviews_held DESC, consultant_name, consultant_id",
    ),
    headings=parse_headings(
        "consultant_name Consultant; candidates_added Candidates; jobs_added Jobs; "
        "interviews_booked Interviews booked; interviews_held Interviews held; placements "
        "Placements; "
        "placements_with_reporting_fee With a fee; reporting_fee Fees, converted; "
        "reporting_currency To"
    ),
    caption="Activity of the last twelve months",
    findings=("{placements placement} in twelve months, by {consultants consultant}.",),
    notes=("{missing/placements placement} have no fee that can be converted.",),
    text_if_empty="No activity is loaded yet.",
    chart=lambda _, rows: [
        charts.bar_chart(rows[:_DRAWN_MAX], "consultant_name", "placements", unit="placements")
    ],
)


def _add_empty_months(published: PublishedFile, rows: Sequence[Row]) -> Sequence[Row]:
    """Return the monthly rows up to today, with zeros for months without activity."""
    assert published.today is not None
    by_month = {row["period_start"]: row for row in rows}
    nothing = dict.fromkeys(_ACTIVITY, 0)
    return [
        {**nothing, **by_month.get(month, {}), "period_start": month, "month": f"{month:%b %y}"}
        for month in month_starts(min(by_month), published.today)
    ]


_BY_MONTH = Figure(
    key="months",
    title="Activity by month",
    mart="sum_consultant_activity",
    sql=_recent_activity_query("period_start", "", "period_start"),
    headings=parse_headings(
        "period_start Month; candidates_added Candidates; leads_added Leads; jobs_added Jobs; "
        "interviews_held Interviews held; placements Placements"
    ),
    caption="Activity by month",
    findings=("So far this month: {interviews_held interview} held, {placements placement}.",),
    text_if_empty="No activity is loaded yet.",
    rows=_add_empty_months,
    has_total=True,
    chart=lambda _, rows: [
        charts.column_chart(rows, "month", column, unit=value_words(column), across="month")
        for column in ("interviews_held", "placements")
    ],
)

PEOPLE = Section(
    "people",
    "Sources and consultants",
    "Each record counts for the consultant to whom it is assigned now. Source names are free text, "
    "and sources with similar names are put into one group.",
    (_SOURCES, _LEADS, _LEAD_STATUSES, _CONSULTANTS, _BY_MONTH),
)


# -- Content ---------------------------------------------------------------------------------------

_CONTENT_ITEMS = Figure(
    key="content_items",
    title="Content items by type",
    mart="sum_content_items",
    sql="FROM marts.sum_content_items ORDER BY items DESC, content_type_name, content_type_id",
    headings=parse_headings(
        "content_type_name Type; is_active In use; items Items; items_published Published; "
        "items_draft Drafts; last_published_on Last published; last_updated_on Last changed"
    ),
    caption="Content items by their type",
    findings=(
        "{items_published/items content item} are published.",
        "None of {items content item} is published.",
        "{rows content type} loaded, but no content item yet.",
    ),
    text_if_empty="No content types are loaded yet.",
    chart=lambda _, rows: [
        charts.bar_chart(
            shown,
            "content_type_name",
            "items",
            unit="content items",
            text=lambda row: (
                f"{format_count(row['items_published'])} of {format_count(row['items'])}"
            ),
        )
        for shown in [rows[:_DRAWN_MAX]]
        if any(row["items"] for row in rows)
    ],
)

CONTENT = Section(
    "content", "Content", "Content items by the platform's content types.", (_CONTENT_ITEMS,)
)
