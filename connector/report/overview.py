"""Overview of the file: the grid on top of the page, the health of the mirror below."""

from __future__ import annotations

from datetime import datetime

from connector.errors import count_noun
from connector.report import charts
from connector.report.agency import ACTIVITY_NEEDS, FORECAST_NEEDS, fees, forecast_rows, recent
from connector.report.figure import (
    NOTHING,
    Drawing,
    KeyFigure,
    KeyQuestion,
    KeyValues,
    Section,
    age,
    count,
    days,
    headed,
    moment,
    money,
    of,
    share,
    tabled_figure,
)
from connector.report.published import PublishedFile, Row, total
from connector.warehouse.duckdb_file import from_microseconds

# -- Key figures -----------------------------------------------------------------------------------
# The grid at the top of the page: the few figures that a director asks for first.


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


# -- Mirror ----------------------------------------------------------------------------------------
# How complete, fresh and dear the copy is.

_PERSONAL = {
    "keep": "as they landed",
    "drop": "left out of the file",
    "hash": "replaced by a keyed hash",
}

_ROOM = 224
"""Pixels for the names of questions, which begin alike."""


def facts(published: PublishedFile, written_at: datetime) -> list[tuple[str, str]]:
    """Facts of the file as a whole: its moment, its checks, its personal fields.

    `written_at` is when the page is written.
    """
    found: list[tuple[str, str]] = []
    if published.as_of is not None:
        old = age(written_at - published.as_of)
        found.append(("As of", f"{moment(published.as_of)}, {old} ago"))
    if not published.has("sync.publications"):
        found.append(("Checks", "The file goes without the schema sync, which would tell."))
        return found
    rows = published.rows(
        "SELECT epoch_us(true_of) AS true_of, epoch_us(started_at) AS began, models, checks, "
        "failed_checks, personal FROM sync.publications ORDER BY started_at DESC LIMIT 1"
    )
    for row in rows:
        true_of, began = from_microseconds(row["true_of"]), from_microseconds(row["began"])
        found.append(("Everything is proven up to", moment(true_of) if true_of else "nothing yet"))
        if began is not None:
            found.append(("Published", moment(began)))
        failed = ", ".join(row["failed_checks"] or ())
        told = f"; these warn: {failed}" if failed else ", and all passed"
        ran = f"{row['checks'] or 0:,} tests and audits were run{told}."
        found.append(("Checks", ran if row["checks"] else "None was run."))
        found.append(("Models", f"{row['models'] or 0:,} in the file"))
        found.append(("Personal fields", _PERSONAL.get(row["personal"] or "", "not said")))
    return found


@tabled_figure(
    "resources",
    "What is landed, and how far it is proven",
    {
        "mirror_health": "resource live listed_only deleted pending proven_at last_outcome "
        "anomalies scrub_age_days"
    },
    "SELECT * REPLACE (replace(resource, '_', ' ') AS resource) "
    "FROM marts.mirror_health AS m ORDER BY m.resource",
    caption="The copy of each resource",
    headings=headed(
        "resource Resource; live Live; listed_only Only listed; deleted Deleted; pending Waiting; "
        "proven_at Proven up to; scrub_age_days Oldest reading, days; last_outcome Last run; "
        "anomalies Anomalies"
    ),
    is_open=True,
    empty="Nothing has landed yet.",
    is_wide=True,
)
def _resources(rows: list[Row]) -> Drawing | None:
    live, waiting = total(rows, "live"), total(rows, "pending")
    if not live and not total(rows, "deleted"):
        return None
    told = [f"{count_noun(waiting, 'record')} wait to be read."] if waiting else []
    unproven = [row["resource"] for row in rows if row["proven_at"] is None]
    if unproven:
        told.append(f"Not proven at all: {', '.join(unproven)}.")
    if listed := total(rows, "listed_only"):
        told.append(f"{of(listed, live, 'record')} were only listed so far.")
    return Drawing(
        f"{count_noun(live, 'record')} of {count_noun(len(rows), 'resource')} are landed.",
        coverage=tuple(told),
    )


@tabled_figure(
    "coverage",
    "Coverage",
    {"sum_coverage": "question about covered total missing coverage"},
    "SELECT * REPLACE (replace(question, '_', ' ') AS question) FROM marts.sum_coverage AS c "
    "WHERE total > 0 ORDER BY coverage, c.question",
    caption="How much of what the figures rest on is there",
    headings=headed(
        "about Question; covered Have it; total Of; missing Missing; coverage Coverage"
    ),
    empty="Nothing has landed that could be covered.",
)
def _coverage(rows: list[Row]) -> Drawing:
    chart = charts.bars(
        rows,
        "question",
        "coverage",
        unit="coverage",
        text=lambda row: share(row["coverage"]),
        most=1,
        room=_ROOM,
    )
    least = rows[0]
    finding = f"Thinnest, with {of(least['covered'], least['total'])}: {least['about']}"
    return Drawing(finding, (chart,))


@tabled_figure(
    "cost",
    "What it cost",
    {"mirror_health": "resource requests_last_run requests_this_month"},
    "SELECT replace(resource, '_', ' ') AS resource, requests_last_run, requests_this_month, "
    "coalesce(requests_this_month, 0) AS requests FROM marts.mirror_health AS m "
    "WHERE requests > 0 OR requests_last_run > 0 ORDER BY m.requests_this_month DESC, m.resource",
    caption="Requests by resource",
    headings=headed(
        "resource Resource; requests_last_run Last run; requests_this_month This billing month"
    ),
    empty="No request was spent yet.",
)
def _cost(rows: list[Row]) -> Drawing:
    month, last = total(rows, "requests"), total(rows, "requests_last_run")
    return Drawing(
        f"{count_noun(month, 'request')} in this billing month; the last runs took {last:,}.",
        (charts.bars(rows, "resource", "requests", unit="requests this month"),),
    )


MIRROR = Section(
    "mirror",
    "The mirror itself",
    "These figures are made from a copy of the platform's records. This is how complete and how "
    "fresh the copy is, what it cost, and what was checked before it was published.",
    (_resources, _coverage, _cost),
)
