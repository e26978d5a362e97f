"""Data quality: completeness, freshness and cost of the copy."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from connector.report import charts
from connector.report.figure import (
    Figure,
    Section,
    describe_age,
    format_share,
    format_timestamp,
    parse_headings,
)
from connector.report.published import PublishedFile
from connector.warehouse.duckdb_file import from_microseconds

_PERSONAL = {
    "keep": "as loaded",
    "drop": "left out of the file",
    "hash": "replaced by a keyed hash",
}

_ROOM = 224
"""Pixels for the names of questions, which have the same beginning."""


_MONEY = frozenset(("fee", "fees", "currency", "currencies", "exchange", "billings", "salary"))
"""Words in the name of a check that concerns money."""


def concerns_money(check: str) -> bool:
    """Return True if the name of a check contains a word for money."""
    return not _MONEY.isdisjoint(check.split("_"))


def _checks_sentence(number: int, failed_checks: Sequence[str]) -> str:
    """Return the sentence on the checks of a publication, as in 10 of 200 checks warn."""
    if not number:
        return "No checks were run."
    if not failed_checks:
        return f"All {number:,} checks passed."
    money = sum(map(concerns_money, failed_checks))
    warns = "warns" if len(failed_checks) == 1 else "warn"
    concerns = "concerns" if money == 1 else "concern"
    return f"{len(failed_checks):,} of {number:,} checks {warns}; {money:,} {concerns} money."


def file_summary(published: PublishedFile, written_at: datetime) -> list[tuple[str, str]]:
    """Return labels and texts about the file: its time, its checks, its personal fields.

    `written_at` is the time when the page is written.
    """
    found: list[tuple[str, str]] = []
    if published.as_of is not None:
        found.append(("As of", format_timestamp(published.to_local_time(published.as_of))))
        found.append(("Age", describe_age(written_at - published.as_of)))
    if not published.has_table("sync.publications"):
        found.append(("Checks", "Unknown: the file was published without the schema sync."))
        return found
    rows = published.query_rows(
        "SELECT epoch_us(started_at) AS began, models, checks, "
        "failed_checks, personal FROM sync.publications ORDER BY started_at DESC LIMIT 1"
    )
    verified = published.verified_at
    for row in rows:
        began = from_microseconds(row["began"])
        shown = format_timestamp(published.to_local_time(verified)) if verified else "not yet"
        found.append(("All loaded records verified up to", shown))
        if began is not None:
            found.append(("Published", format_timestamp(published.to_local_time(began))))
        found.append(("Checks", _checks_sentence(row["checks"] or 0, row["failed_checks"] or ())))
        found.append(("Models", f"{row['models'] or 0:,} in the file"))
        found.append(("Personal fields", _PERSONAL.get(row["personal"] or "", "unknown")))
    return found


_RESOURCES = Figure(
    key="resources",
    title="Loaded records",
    mart="data_freshness",
    sql="SELECT * REPLACE (replace(resource, '_', ' ') AS resource), "
    "current_rows + deleted AS known, string_agg(replace(m.resource, '_', ' '), ', ' "
    "ORDER BY m.resource) FILTER (proven_at IS NULL) OVER () AS the_unproven "
    "FROM marts.data_freshness AS m ORDER BY m.resource",
    headings=parse_headings(
        "resource Resource; current_rows Records; summary_only Summary only; deleted Deleted; "
        "pending Not read yet; proven_at Verified up to; oldest_read_age_days Oldest read, days; "
        "last_outcome Last run; anomalies Anomalies"
    ),
    caption="Loaded records by resource",
    findings=("{current_rows record} of {rows resource} are loaded.",),
    notes=(
        "{pending record} are not read yet.",
        "Not verified yet: {the_unproven}.",
        "{summary_only/current_rows record} have only summary data so far.",
    ),
    text_if_empty="No data is loaded yet.",
    counted_column="known",
    is_open=True,
    is_wide=True,
)

_COVERAGE = Figure(
    key="coverage",
    title="Coverage",
    mart="sum_coverage",
    sql="SELECT * REPLACE (replace(question, '_', ' ') AS question), "
    "first_value(c.about) OVER least_first AS the_about, "
    "first_value(c.covered) OVER least_first AS the_covered, "
    "first_value(c.total) OVER least_first AS the_total "
    "FROM marts.sum_coverage AS c WHERE total > 0 "
    "WINDOW least_first AS (ORDER BY coverage, c.question) ORDER BY coverage, c.question",
    headings=parse_headings(
        "about Data; covered Available; total Of; missing Missing; coverage Coverage"
    ),
    caption="Completeness of the data in the figures",
    findings=("Lowest coverage, {the_covered/the_total}: {the_about}",),
    text_if_empty="No data is loaded yet.",
    chart=lambda _, rows: [
        charts.bar_chart(
            rows,
            "question",
            "coverage",
            unit="coverage",
            text=lambda row: format_share(row["coverage"]),
            maximum=1,
            label_width=_ROOM,
        )
    ],
)

_COST = Figure(
    key="cost",
    title="API requests",
    mart="data_freshness",
    sql="SELECT replace(resource, '_', ' ') AS resource, requests_last_run, requests_this_month, "
    "coalesce(requests_this_month, 0) AS requests FROM marts.data_freshness AS m "
    "WHERE requests > 0 OR requests_last_run > 0 "
    "ORDER BY m.requests_this_month DESC, m.resource",
    headings=parse_headings(
        "resource Resource; requests_last_run Last run; requests_this_month This billing month"
    ),
    caption="Requests by resource",
    findings=(
        "{requests request} in this billing month; the last run of each resource used "
        "{requests_last_run}.",
    ),
    text_if_empty="No request was sent yet.",
    chart=lambda _, rows: [
        charts.bar_chart(rows, "resource", "requests", unit="requests this month")
    ],
)

MIRROR = Section(
    "mirror",
    "Data quality",
    "The figures use a copy of the platform's records. Here: how complete and recent the copy is, "
    "the API requests it took, and the checks before publication.",
    (_RESOURCES, _COVERAGE, _COST),
)
