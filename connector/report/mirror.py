"""Data quality: completeness, freshness and cost of the copy."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from connector.errors import count_noun
from connector.report import charts
from connector.report.figure import Drawing, Section, aged, headed, moment, of, share, tabled_figure
from connector.report.published import PublishedFile, Row, total
from connector.warehouse.duckdb_file import from_microseconds

_PERSONAL = {
    "keep": "as loaded",
    "drop": "left out of the file",
    "hash": "replaced by a keyed hash",
}

_ROOM = 224
"""Pixels for the names of questions, which begin alike."""


_MONEY = frozenset(("fee", "fees", "currency", "currencies", "exchange", "billings", "salary"))
"""Words in the name of a check that concerns money."""


def concerns_money(check: str) -> bool:
    """Return True if the check of that name tests an amount of money."""
    return not _MONEY.isdisjoint(check.split("_"))


def _checks(number: int, warning: Sequence[str]) -> str:
    """Sentence on the checks of a publication, as in 10 of 200 checks warn; 2 concern money."""
    if not number:
        return "No checks were run."
    if not warning:
        return f"All {number:,} checks passed."
    money = sum(map(concerns_money, warning))
    warns = "warns" if len(warning) == 1 else "warn"
    concerns = "concerns" if money == 1 else "concern"
    return f"{len(warning):,} of {number:,} checks {warns}; {money:,} {concerns} money."


def file_summary(published: PublishedFile, written_at: datetime) -> list[tuple[str, str]]:
    """Summary of the file as a whole: its moment, its checks, its personal fields.

    `written_at` is when the page is written.
    """
    found: list[tuple[str, str]] = []
    if published.as_of is not None:
        found.append(("As of", moment(published.local(published.as_of))))
        found.append(("Age", aged(written_at - published.as_of)))
    if not published.has("sync.publications"):
        found.append(("Checks", "Not known: the file has no schema sync."))
        return found
    rows = published.rows(
        "SELECT epoch_us(started_at) AS began, models, checks, "
        "failed_checks, personal FROM sync.publications ORDER BY started_at DESC LIMIT 1"
    )
    verified = published.verified_at
    for row in rows:
        began = from_microseconds(row["began"])
        shown = moment(published.local(verified)) if verified else "not yet"
        found.append(("All loaded records verified up to", shown))
        if began is not None:
            found.append(("Published", moment(published.local(began))))
        found.append(("Checks", _checks(row["checks"] or 0, row["failed_checks"] or ())))
        found.append(("Models", f"{row['models'] or 0:,} in the file"))
        found.append(("Personal fields", _PERSONAL.get(row["personal"] or "", "not said")))
    return found


@tabled_figure(
    "resources",
    "Loaded records",
    {
        "data_freshness": "resource current_rows summary_only deleted pending proven_at "
        "last_outcome anomalies oldest_read_age_days"
    },
    "SELECT * REPLACE (replace(resource, '_', ' ') AS resource) "
    "FROM marts.data_freshness AS m ORDER BY m.resource",
    caption="Loaded records by resource",
    headings=headed(
        "resource Resource; current_rows Records; summary_only Summary only; deleted Deleted; "
        "pending Waiting; proven_at Verified up to; oldest_read_age_days Oldest read, days; "
        "last_outcome Last run; anomalies Anomalies"
    ),
    is_open=True,
    empty="No data is loaded yet.",
    is_wide=True,
)
def _resources(rows: list[Row]) -> Drawing | None:
    live, waiting = total(rows, "current_rows"), total(rows, "pending")
    if not live and not total(rows, "deleted"):
        return None
    told = [f"{count_noun(waiting, 'record')} wait to be read."] if waiting else []
    unproven = [row["resource"] for row in rows if row["proven_at"] is None]
    if unproven:
        told.append(f"Not verified yet: {', '.join(unproven)}.")
    if listed := total(rows, "summary_only"):
        told.append(f"{of(listed, live, 'record')} have only summary data so far.")
    return Drawing(
        f"{count_noun(live, 'record')} of {count_noun(len(rows), 'resource')} are loaded.",
        coverage=tuple(told),
    )


@tabled_figure(
    "coverage",
    "Coverage",
    {"sum_coverage": "question about covered total missing coverage"},
    "SELECT * REPLACE (replace(question, '_', ' ') AS question) FROM marts.sum_coverage AS c "
    "WHERE total > 0 ORDER BY coverage, c.question",
    caption="Data that the figures need",
    headings=headed("about Data; covered Available; total Of; missing Missing; coverage Coverage"),
    empty="No data is loaded yet.",
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
    finding = f"Lowest coverage, {of(least['covered'], least['total'])}: {least['about']}"
    return Drawing(finding, (chart,))


@tabled_figure(
    "cost",
    "API requests",
    {"data_freshness": "resource requests_last_run requests_this_month"},
    "SELECT replace(resource, '_', ' ') AS resource, requests_last_run, requests_this_month, "
    "coalesce(requests_this_month, 0) AS requests FROM marts.data_freshness AS m "
    "WHERE requests > 0 OR requests_last_run > 0 ORDER BY m.requests_this_month DESC, m.resource",
    caption="Requests by resource",
    headings=headed(
        "resource Resource; requests_last_run Last run; requests_this_month This billing month"
    ),
    empty="No request was sent yet.",
)
def _cost(rows: list[Row]) -> Drawing:
    month, last = total(rows, "requests"), total(rows, "requests_last_run")
    return Drawing(
        f"{count_noun(month, 'request')} in this billing month; the last runs took {last:,}.",
        (charts.bars(rows, "resource", "requests", unit="requests this month"),),
    )


MIRROR = Section(
    "mirror",
    "Data quality",
    "The figures are made from a copy of the platform's records: its completeness and freshness, "
    "the API requests it cost, and the checks before publication.",
    (_resources, _coverage, _cost),
)
