"""The grid at the top of the page: the few figures that a director asks for first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from connector.errors import count_noun
from connector.report.fees import FORECAST_NEEDS, coming, forecast_rows
from connector.report.figure import NOTHING, KeyFigure, KeyQuestion, count, days, money, of, share
from connector.report.people import ACTIVITY_NEEDS, recent
from connector.report.published import Published, total

Drawn = tuple[tuple[str, ...], str, Mapping[str, Any]]


def _active(published: Published) -> Drawn | None:
    row = published.row(
        "SELECT count(*) AS candidates, count(*) FILTER (is_active) AS active "
        "FROM marts.fct_pipeline_candidates"
    )
    if not row["candidates"]:
        return None
    return (count(row["active"]),), f"of {count_noun(row['candidates'], 'candidate')}", row


def _open(published: Published) -> Drawn | None:
    row = published.row(
        "SELECT count(*) AS open_jobs, coalesce(sum(positions_open), 0)::BIGINT AS positions_open "
        "FROM marts.fct_pipeline_jobs"
    )
    if not row["open_jobs"]:
        return None
    return (count(row["open_jobs"]),), count_noun(row["positions_open"], "position") + " open", row


def _placed(published: Published) -> Drawn | None:
    rows = recent(published, "consultant_id", "consultant_id")
    if not rows:
        return None
    placements, held = int(total(rows, "placements")), int(total(rows, "interviews_held"))
    detail = f"and {count_noun(held, 'interview')} held"
    return (count(placements),), detail, {"placements": placements, "interviews_held": held}


def _median(published: Published, mart: str, whole: str, noun: str) -> Drawn | None:
    found = published.rows(
        f"SELECT {whole} AS counted, measured, p50_days, p90_days FROM marts.{mart} "
        "WHERE dimension = 'all'"
    )
    if not found or not found[0]["counted"]:
        return None
    (row,) = found
    value = NOTHING if row["p50_days"] is None else f"{days(row['p50_days'])} days"
    return (value,), f"{row['measured']:,} of {count_noun(row['counted'], noun)} measured", row


def _to_fill(published: Published) -> Drawn | None:
    return _median(published, "sum_time_to_fill", "filled", "filled opening")


def _to_hire(published: Published) -> Drawn | None:
    return _median(published, "sum_time_to_hire", "placements", "placement")


def _accepted(published: Published) -> Drawn | None:
    found = published.rows(
        "SELECT accepted, decided, acceptance_rate FROM marts.sum_offer_acceptance "
        "WHERE dimension = 'all'"
    )
    if not found or not found[0]["decided"]:
        return None
    (row,) = found
    detail = f"{row['accepted']:,} of {count_noun(row['decided'], 'decided offer')}"
    return (share(row["acceptance_rate"]),), detail, row


def _ahead(published: Published) -> Drawn | None:
    rows = [row for row in forecast_rows(published) if row["month_kind"] != "past"]
    placements = sum(row["placements"] for row in rows)
    if not placements:
        return None
    fees = coming(rows)
    known = sum(row["placements_with_fee"] for row in rows)
    values = tuple(money(currency, fee) for currency, fee in fees.items()) or (NOTHING,)
    return (
        values,
        f"{of(known, placements, 'placement')} have a fee",
        {"fees": fees, "placements": placements, "placements_with_fee": known},
    )


def _ending(published: Published) -> Drawn | None:
    row = published.row(
        "SELECT count(*) AS contracts, count(*) FILTER (ends_within_14_days) AS within_14_days, "
        "count(*) FILTER (ends_within_30_days) AS within_30_days, "
        "count(*) FILTER (ends_within_90_days) AS within_90_days "
        "FROM marts.fct_contractors_ending"
    )
    if not row["contracts"]:
        return None
    detail = (
        f"{row['within_14_days']:,} within 14 days, {row['within_90_days']:,} within 90; "
        f"of {count_noun(row['contracts'], 'contract')}"
    )
    return (count(row["within_30_days"]),), detail, row


_DISTRIBUTED = ("dimension", "measured", "p50_days", "p90_days")

QUESTIONS = (
    KeyQuestion(
        key="active_candidates",
        label="Active candidates",
        needs={"fct_pipeline_candidates": ("is_active",)},
        means="fct_pipeline_candidates.is_active",
        section="stages",
        draw=_active,
        empty="No candidates yet.",
    ),
    KeyQuestion(
        key="open_jobs",
        label="Open jobs",
        needs={"fct_pipeline_jobs": ("positions_open",)},
        means="fct_pipeline_jobs",
        section="ageing",
        draw=_open,
        empty="No job is open.",
    ),
    KeyQuestion(
        key="placements",
        label="Placements in twelve months",
        needs=ACTIVITY_NEEDS,
        means="sum_consultant_activity.placements",
        section="consultants",
        draw=_placed,
        empty="No placement yet.",
    ),
    KeyQuestion(
        key="offer_acceptance",
        label="Offers accepted",
        needs={"sum_offer_acceptance": ("dimension", "accepted", "decided", "acceptance_rate")},
        means="sum_offer_acceptance.acceptance_rate",
        section="offers",
        draw=_accepted,
        empty="No offer is decided yet.",
    ),
    KeyQuestion(
        key="time_to_fill",
        label="Median time to fill",
        needs={"sum_time_to_fill": (*_DISTRIBUTED, "filled")},
        means="sum_time_to_fill.p50_days",
        section="time-to-fill",
        draw=_to_fill,
        empty="No job was filled yet.",
    ),
    KeyQuestion(
        key="time_to_hire",
        label="Median time to hire",
        needs={"sum_time_to_hire": (*_DISTRIBUTED, "placements")},
        means="sum_time_to_hire.p50_days",
        section="time-to-hire",
        draw=_to_hire,
        empty="Nobody was placed yet.",
    ),
    KeyQuestion(
        key="fees_ahead",
        label="Fees from this month on",
        needs=FORECAST_NEEDS,
        means="sum_fee_forecast.fee",
        section="forecast",
        draw=_ahead,
        empty="No placement starts from now on.",
    ),
    KeyQuestion(
        key="contracts_ending",
        label="Contracts ending within 30 days",
        needs={
            "fct_contractors_ending": (
                *("ends_within_14_days", "ends_within_30_days", "ends_within_90_days"),
            )
        },
        means="fct_contractors_ending.ends_within_30_days",
        section="ending",
        draw=_ending,
        empty="No contract is running.",
    ),
)
"""The key figures, in the order in which they are shown."""


def key_figures(published: Published) -> list[KeyFigure]:
    """Each key figure as the file answers it; a dash and the reason where it has no answer."""
    return [_answer(question, published) for question in QUESTIONS]


def _answer(question: KeyQuestion, published: Published) -> KeyFigure:
    lacking = published.missing(question.needs)
    drawn = None if lacking else question.draw(published)
    if drawn is None:
        words = f"The file has no {lacking[0]}." if lacking else question.empty
        drawn = (NOTHING,), words, {}
    values, detail, numbers = drawn
    mart, _, column = question.means.partition(".")
    return KeyFigure(
        key=question.key,
        label=question.label,
        values=values,
        detail=detail,
        source=question.means,
        means=published.meaning(mart, column) if column else published.contract(mart).grain,
        section=question.section,
        numbers=numbers,
    )
