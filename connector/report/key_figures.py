"""The grid at the top of the page: the few figures that a director asks for first."""

from __future__ import annotations

from connector.errors import count_noun
from connector.report.agency import ACTIVITY_NEEDS, FORECAST_NEEDS, fees, forecast_rows, recent
from connector.report.figure import (
    NOTHING,
    KeyFigure,
    KeyQuestion,
    KeyValues,
    count,
    days,
    money,
    of,
    share,
)
from connector.report.published import PublishedFile, total


def _active(published: PublishedFile) -> KeyValues | None:
    row = published.row(
        "SELECT count(*) AS candidates, count(*) FILTER (is_active) AS active "
        "FROM marts.fct_pipeline_candidates"
    )
    if not row["candidates"]:
        return None
    return (count(row["active"]),), f"of {count_noun(row['candidates'], 'candidate')}", row


def _open(published: PublishedFile) -> KeyValues | None:
    row = published.row(
        "SELECT count(*) AS open_jobs, coalesce(sum(positions_open), 0)::BIGINT AS positions_open "
        "FROM marts.fct_pipeline_jobs"
    )
    if not row["open_jobs"]:
        return None
    return (count(row["open_jobs"]),), count_noun(row["positions_open"], "position") + " open", row


def _placed(published: PublishedFile) -> KeyValues | None:
    rows = recent(published, "consultant_id", "consultant_id")
    if not rows:
        return None
    placements, held = int(total(rows, "placements")), int(total(rows, "interviews_held"))
    detail = f"and {count_noun(held, 'interview')} held"
    return (count(placements),), detail, {"placements": placements, "interviews_held": held}


def _accepted(published: PublishedFile) -> KeyValues | None:
    found = published.rows(
        "SELECT accepted, decided, acceptance_rate FROM marts.sum_offer_acceptance "
        "WHERE dimension = 'all'"
    )
    if not found or not found[0]["decided"]:
        return None
    (row,) = found
    detail = f"{row['accepted']:,} of {count_noun(row['decided'], 'decided offer')}"
    return (share(row["acceptance_rate"]),), detail, row


def _median(published: PublishedFile, mart: str, whole: str, noun: str) -> KeyValues | None:
    found = published.rows(
        f"SELECT {whole} AS counted, measured, p50_days, p90_days FROM marts.{mart} "
        "WHERE dimension = 'all'"
    )
    if not found or not found[0]["counted"]:
        return None
    (row,) = found
    value = NOTHING if row["p50_days"] is None else f"{days(row['p50_days'])} days"
    return (value,), f"{row['measured']:,} of {count_noun(row['counted'], noun)} measured", row


def _ahead(published: PublishedFile) -> KeyValues | None:
    rows = [row for row in forecast_rows(published) if row["month_kind"] != "past"]
    placements, known = total(rows, "placements"), total(rows, "placements_with_fee")
    if not placements:
        return None
    ahead = fees(rows)
    return (
        tuple(money(currency, fee) for currency, fee in ahead.items()) or (NOTHING,),
        f"{of(known, placements, 'placement')} have a fee",
        {"fees": ahead, "placements": placements, "placements_with_fee": known},
    )


def _ending(published: PublishedFile) -> KeyValues | None:
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


QUESTIONS = (
    KeyQuestion(
        "active_candidates",
        "Active candidates",
        {"fct_pipeline_candidates": "is_active"},
        means="fct_pipeline_candidates.is_active",
        section="stages",
        draw=_active,
        empty="No candidates yet.",
    ),
    KeyQuestion(
        "open_jobs",
        "Open jobs",
        {"fct_pipeline_jobs": "positions_open"},
        means="fct_pipeline_jobs",
        section="ageing",
        draw=_open,
        empty="No job is open.",
    ),
    KeyQuestion(
        "placements",
        "Placements in twelve months",
        ACTIVITY_NEEDS,
        means="sum_consultant_activity.placements",
        section="consultants",
        draw=_placed,
        empty="No placement yet.",
    ),
    KeyQuestion(
        "offer_acceptance",
        "Offers accepted",
        {"sum_offer_acceptance": "dimension accepted decided acceptance_rate"},
        means="sum_offer_acceptance.acceptance_rate",
        section="offers",
        draw=_accepted,
        empty="No offer is decided yet.",
    ),
    KeyQuestion(
        "time_to_fill",
        "Median time to fill",
        {"sum_time_to_fill": "dimension measured p50_days p90_days filled"},
        means="sum_time_to_fill.p50_days",
        section="time-to-fill",
        draw=lambda file: _median(file, "sum_time_to_fill", "filled", "filled opening"),
        empty="No job was filled yet.",
    ),
    KeyQuestion(
        "time_to_hire",
        "Median time to hire",
        {"sum_time_to_hire": "dimension measured p50_days p90_days placements"},
        means="sum_time_to_hire.p50_days",
        section="time-to-hire",
        draw=lambda file: _median(file, "sum_time_to_hire", "placements", "placement"),
        empty="Nobody was placed yet.",
    ),
    KeyQuestion(
        "fees_ahead",
        "Fees from this month on",
        FORECAST_NEEDS,
        means="sum_fee_forecast.fee",
        section="forecast",
        draw=_ahead,
        empty="No placement starts from now on.",
    ),
    KeyQuestion(
        "contracts_ending",
        "Contracts ending within 30 days",
        {"fct_contractors_ending": "ends_within_14_days ends_within_30_days ends_within_90_days"},
        means="fct_contractors_ending.ends_within_30_days",
        section="ending",
        draw=_ending,
        empty="No contract is running.",
    ),
)
"""The key figures, in the order in which they are shown."""


def answer(question: KeyQuestion, published: PublishedFile) -> KeyFigure:
    """The key figure as the file answers it, or a dash and the reason."""
    lacking = published.missing(question.needs)
    drawn = None if lacking else question.draw(published)
    if drawn is None:
        words = f"The file has no {lacking[0]}." if lacking else question.empty
        drawn = (NOTHING,), words, {}
    mart, _, column = question.means.partition(".")
    means = published.meaning(mart, column) if column else published.contract(mart).get("Grain", "")
    return KeyFigure(question, *drawn[:2], means, drawn[2])
