"""Leads: which sources bring those that are converted, and what status they have."""

from __future__ import annotations

from connector.report import charts
from connector.report.figure import Column, Figure, Shown, Table
from connector.report.published import Published, total
from connector.report.words import count, of

_DRAWN_MAX = 12
_UNKNOWN = "unmapped"


def _by_source(published: Published) -> Shown | None:
    rows = published.rows(
        "SELECT dimension, member, leads, converted, lost, conversion_rate, converted_with_date, "
        "p50_days_to_convert FROM marts.sum_lead_conversion "
        "WHERE dimension IN ('all', 'source_group') ORDER BY dimension, leads DESC, member"
    )
    everything = [row for row in rows if row["dimension"] == "all"]
    if not total(everything, "leads"):
        return None
    (whole,) = everything
    groups = [
        {**row, "text": f"{row['converted']:,} of {row['leads']:,}"}
        for row in rows
        if row["dimension"] == "source_group" and row["leads"]
    ]
    table = Table(
        "Leads by the group of their source",
        "sum_lead_conversion",
        (
            Column("member", "Source group", "text"),
            Column("leads", "Leads"),
            Column("converted", "Converted"),
            Column("lost", "Lost"),
            Column("conversion_rate", "Converted of all", "share"),
            Column("p50_days_to_convert", "Median days", "days"),
        ),
        [*groups, {**whole, "member": "All"}],
    )
    undated = whole["converted"] - whole["converted_with_date"]
    return Shown(
        f"At the least {of(whole['converted'], whole['leads'], 'lead')} are converted.",
        (
            charts.bars(
                groups[:_DRAWN_MAX], "member", "conversion_rate", "text", unit="leads converted"
            ),
        )
        if groups
        else (),
        (table,),
        (f"{of(undated, whole['converted'])} conversions have no date.",) if undated else (),
    )


def _by_status(published: Published) -> Shown | None:
    rows = published.rows(
        "SELECT member, sum(leads)::BIGINT AS leads, sum(converted)::BIGINT AS converted, "
        "sum(lost)::BIGINT AS lost, sum(converted) / nullif(sum(leads), 0) AS conversion_rate "
        "FROM marts.sum_lead_conversion WHERE dimension = 'lead_status' "
        "GROUP BY member ORDER BY leads DESC, member"
    )
    everything = int(total(rows, "leads"))
    if not everything:
        return None
    known = [row for row in rows if row["member"] != _UNKNOWN]
    unknown = everything - int(total(known, "leads"))
    most = (known or rows)[0]
    table = Table(
        "Leads by their status",
        "sum_lead_conversion",
        (
            Column("member", "Status", "text"),
            Column("leads", "Leads"),
            Column("converted", "Converted"),
            Column("lost", "Lost"),
            Column("conversion_rate", "Converted of all", "share"),
        ),
        rows,
    )
    drawn = [{**row, "text": count(row["leads"])} for row in rows[:_DRAWN_MAX]]
    return Shown(
        f"{most['member']} is the status of {of(most['leads'], everything, 'lead')}.",
        (charts.bars(drawn, "member", "leads", "text", unit="leads"),),
        (table,),
        (
            f"{of(unknown, everything, 'lead')} have a status that the seed lead_statuses does not "
            "know.",
        )
        if unknown
        else (),
    )


BY_SOURCE = Figure(
    "leads",
    "Leads and their conversion",
    {
        "sum_lead_conversion": (
            *("dimension", "member", "leads", "converted", "lost", "conversion_rate"),
            *("converted_with_date", "p50_days_to_convert"),
        ),
        "fct_lead_conversion": (),
    },
    _by_source,
    "No leads have landed yet.",
)
"""Leads by the group of their source."""

BY_STATUS = Figure(
    "lead_statuses",
    "Leads by status",
    {
        "sum_lead_conversion": (
            *("dimension", "member", "leads", "converted", "lost"),
            "conversion_rate",
        ),
        "fct_lead_conversion": (),
    },
    _by_status,
    "No leads have landed yet.",
)
"""Leads by the status that the agency has given them."""
