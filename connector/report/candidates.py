"""The candidates' part of the funnel: each person counts once, whatever the jobs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

from connector.report import charts
from connector.report.figure import Column, Figure, Section, Shown, Table, count, of, plain, share
from connector.report.published import Published, Row, total

_DECIDED_MIN = 5
"""A rate of fewer decisions than these says nothing about a stage."""

_MONTHS = 12


def _standing(published: Published) -> Shown | None:
    rows = published.rows(
        "SELECT stage, count(*) AS candidates, count(*) FILTER (is_active) AS active, "
        "count(*) FILTER (NOT is_hydrated) AS listed, "
        "quantile_cont(days_in_stage, 0.5) AS median_days FROM marts.fct_pipeline_candidates "
        "GROUP BY stage, stage_order ORDER BY stage_order NULLS LAST, candidates DESC"
    )
    if not rows:
        return None
    everybody, listed = total(rows, "candidates"), total(rows, "listed")
    shown = [
        {**row, "stage": plain(row["stage"]), "text": count(row["candidates"])} for row in rows
    ]
    table = Table(
        "Candidates by stage",
        "fct_pipeline_candidates",
        (
            Column("stage", "Stage", "text"),
            Column("candidates", "Candidates", of=""),
            Column("median_days", "Median days in it so far", "days", of="days_in_stage"),
        ),
        shown,
    )
    return Shown(
        f"{of(total(rows, 'active'), everybody, 'candidate')} are active: in an open stage, or "
        "paused.",
        (charts.bars(shown, "stage", "candidates", "text", unit="candidates by stage"),),
        (table,),
        _but_listed(listed, everybody),
    )


def _but_listed(listed: int, everybody: int) -> tuple[str, ...]:
    if not listed:
        return ()
    return (
        f"{share(listed / everybody)} of candidates ({listed:,} of {everybody:,}) were only "
        "listed so far: their source and consultant are not known yet.",
    )


def _progress(published: Published) -> Shown | None:
    rows = published.rows(
        "SELECT stage, entered, advanced, arrived, advanced + arrived AS further, lost, "
        "in_progress, deleted, decided, conversion_rate, decided_rate, passed_unseen "
        "FROM marts.sum_stage_conversion WHERE dimension = 'all' "
        "ORDER BY stage_order"
    )
    if not total(rows, "entered"):
        return None
    shown = [{**row, "stage": plain(row["stage"])} for row in rows]
    table = Table(
        "From each stage further on",
        "sum_stage_conversion",
        (
            Column("stage", "Stage", "text"),
            Column("entered", "Seen in it"),
            Column("advanced", "Went further"),
            Column("arrived", "At the end"),
            Column("in_progress", "Not decided"),
            Column("lost", "Lost"),
            Column("deleted", "Deleted"),
            Column("conversion_rate", "Of all", "share"),
            Column("decided_rate", "Of decided", "share"),
        ),
        shown,
    )
    parts = {
        "further": "went further, or is at the end",
        "lost": "lost",
        "in_progress": "not decided",
        "deleted": "deleted",
    }
    unseen = total(rows, "passed_unseen")
    return Shown(
        _narrowest(shown),
        (charts.stacked(shown, "stage", parts, unit="candidates seen in the stage"),),
        (table,),
        (
            f"Candidates seen further on and never in the stage, over all stages: {count(unseen)}. "
            "They passed it between two looks, or before the first.",
        )
        if unseen
        else (),
    )


def _narrowest(rows: Sequence[Row]) -> str:
    """The stage where the smallest part of those decided goes further."""
    told = [row for row in rows if row["decided"] >= _DECIDED_MIN and not row["arrived"]]
    if not told:
        first = rows[0]
        return f"{of(first['advanced'], first['entered'])} seen in {first['stage']} went further."
    row = min(told, key=lambda each: each["decided_rate"])
    return (
        f"The narrowest place is {row['stage']}: {of(row['advanced'], row['decided'])} of those "
        "decided went further."
    )


def _offers(published: Published) -> Shown | None:
    rows = published.rows(
        "SELECT dimension, member, offers, accepted, declined, pending, dropped, decided, "
        "acceptance_rate, accepted_unseen FROM marts.sum_offer_acceptance "
        "WHERE dimension IN ('all', 'month') ORDER BY dimension, member"
    )
    everything = [row for row in rows if row["dimension"] == "all"]
    months = [
        {**row, "month": f"{date.fromisoformat(row['member'] + '-01'):%b %y}"}
        for row in rows
        if row["dimension"] == "month"
    ][-_MONTHS:]
    if not total(everything, "offers"):
        return None
    (whole,) = everything
    unseen = whole["accepted_unseen"]
    table = Table(
        "Offers by the month in which they were made",
        "sum_offer_acceptance",
        (
            Column("member", "Month", "text"),
            Column("offers", "Offers"),
            Column("accepted", "Accepted"),
            Column("declined", "Declined"),
            Column("pending", "Pending"),
            Column("dropped", "Dropped"),
            Column("acceptance_rate", "Accepted of decided", "share"),
        ),
        [*months, {**whole, "member": "All months"}],
    )
    parts = {"accepted": "accepted", "declined": "declined", "pending": "pending"}
    drawn = [charts.stacked(months, "month", parts, unit="offers", is_upright=True)]
    return Shown(
        (
            f"{of(whole['accepted'], whole['decided'], 'decided offer')} were accepted; "
            if whole["decided"]
            else "No offer is decided yet; "
        )
        + f"pending: {whole['pending']:,}.",
        tuple(drawn if months else ()),
        (table,),
        (f"Acceptances without an offer that was seen: {count(unseen)} more.",) if unseen else (),
    )


SECTION = Section(
    "candidates",
    "Candidates",
    "Each person counts once, whatever jobs they were considered for: a candidate's status says "
    "nothing about which job it was for.",
    (
        Figure(
            "stages",
            "Where candidates stand",
            {
                "fct_pipeline_candidates": (
                    *("stage", "stage_order", "is_active", "days_in_stage", "is_hydrated"),
                )
            },
            _standing,
            "No candidates have landed yet.",
        ),
        Figure(
            "funnel",
            "How far candidates went",
            {
                "sum_stage_conversion": (
                    *("dimension", "stage", "stage_order", "entered", "advanced", "arrived"),
                    *("lost", "in_progress", "deleted", "decided", "conversion_rate"),
                    *("decided_rate", "passed_unseen"),
                )
            },
            _progress,
            "No candidate was seen in a stage of the pipeline yet.",
        ),
        Figure(
            "offers",
            "Offers and what became of them",
            {
                "sum_offer_acceptance": (
                    *("dimension", "member", "offers", "accepted", "declined", "pending"),
                    *("dropped", "decided", "acceptance_rate", "accepted_unseen"),
                )
            },
            _offers,
            "No offer was seen yet.",
            is_wide=True,
        ),
    ),
)
