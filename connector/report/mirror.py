"""The mirror's own health: how complete, fresh and dear the copy is, and what was checked."""

from __future__ import annotations

from datetime import datetime

from connector.errors import count_noun
from connector.report import charts
from connector.report.figure import (
    Column,
    Figure,
    Section,
    Shown,
    Table,
    age,
    moment,
    of,
    plain,
    share,
)
from connector.report.published import Published, total
from connector.warehouse.duckdb_file import from_microseconds

_PERSONAL = {
    "keep": "as they landed",
    "drop": "left out of the file",
    "hash": "replaced by a keyed hash",
}

_ROOM = 224
"""Pixels for the names of questions, which begin alike."""


def facts(published: Published, written_at: datetime) -> list[tuple[str, str]]:
    """What the file says of itself as a whole: its moment, its checks, its personal fields.

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
        failed = list(row["failed_checks"] or ())
        told = f"; these warn: {', '.join(failed)}" if failed else ", and all passed"
        ran = f"{row['checks'] or 0:,} tests and audits were run"
        found.append(("Checks", f"{ran}{told}." if row["checks"] else "None was run."))
        found.append(("Models", f"{row['models'] or 0:,} in the file"))
        found.append(("Personal fields", _PERSONAL.get(row["personal"] or "", "not said")))
    return found


def _resources(published: Published) -> Shown | None:
    rows = published.rows(
        "SELECT resource, live, hydrated, listed_only, deleted, pending, "
        "proven_at, hours_behind, last_run_at, last_outcome, requests_this_month, "
        "scrub_age_days, anomalies FROM marts.mirror_health ORDER BY resource"
    )
    live = total(rows, "live")
    if not live and not total(rows, "deleted"):
        return None
    shown = [{**row, "resource": plain(row["resource"])} for row in rows]
    waiting, unproven = total(rows, "pending"), [r for r in shown if r["proven_at"] is None]
    table = Table(
        "The copy of each resource",
        "mirror_health",
        (
            Column("resource", "Resource", "text"),
            Column("live", "Live"),
            Column("listed_only", "Only listed"),
            Column("deleted", "Deleted"),
            Column("pending", "Waiting"),
            Column("proven_at", "Proven up to", "moment"),
            Column("scrub_age_days", "Oldest reading, days", "days"),
            Column("last_outcome", "Last run", "text"),
            Column("anomalies", "Anomalies"),
        ),
        shown,
        is_open=True,
    )
    lacking = total(rows, "listed_only")
    told = [f"{count_noun(waiting, 'record')} wait to be read."] if waiting else []
    if unproven:
        names = ", ".join(row["resource"] for row in unproven)
        told.append(f"Not proven at all: {names}.")
    if lacking:
        told.append(f"{of(lacking, live, 'record')} were only listed so far.")
    return Shown(
        f"{count_noun(live, 'record')} of {count_noun(len(rows), 'resource')} are landed.",
        (),
        (table,),
        tuple(told),
    )


def _cost(published: Published) -> Shown | None:
    rows = published.rows(
        "SELECT resource, requests_last_run, requests_this_month "
        "FROM marts.mirror_health WHERE coalesce(requests_this_month, 0) > 0 "
        "OR coalesce(requests_last_run, 0) > 0 ORDER BY requests_this_month DESC, resource"
    )
    if not rows:
        return None
    shown = [
        {
            **row,
            "resource": plain(row["resource"]),
            "requests": row["requests_this_month"] or 0,
            "text": f"{row['requests_this_month'] or 0:,}",
        }
        for row in rows
    ]
    month, last = total(rows, "requests_this_month"), total(rows, "requests_last_run")
    table = Table(
        "Requests by resource",
        "mirror_health",
        (
            Column("resource", "Resource", "text"),
            Column("requests_last_run", "Last run"),
            Column("requests_this_month", "This billing month"),
        ),
        shown,
    )
    return Shown(
        f"{count_noun(month, 'request')} in this billing month; the last runs took {last:,}.",
        (charts.bars(shown, "resource", "requests", "text", unit="requests this month"),),
        (table,),
    )


def _coverage(published: Published) -> Shown | None:
    rows = published.rows(
        "SELECT question, about, covered, total, missing, coverage FROM marts.sum_coverage "
        "WHERE total > 0 ORDER BY coverage, question"
    )
    if not rows:
        return None
    shown = [
        {**row, "question": plain(row["question"]), "text": share(row["coverage"])} for row in rows
    ]
    table = Table(
        "How much of what the figures rest on is there",
        "sum_coverage",
        (
            Column("about", "Question", "text"),
            Column("covered", "Have it"),
            Column("total", "Of"),
            Column("missing", "Missing"),
            Column("coverage", "Coverage", "share"),
        ),
        shown,
    )
    least = rows[0]
    return Shown(
        f"Thinnest, with {of(least['covered'], least['total'])}: {least['about']}",
        (charts.bars(shown, "question", "coverage", "text", unit="coverage", most=1, room=_ROOM),),
        (table,),
    )


SECTION = Section(
    "mirror",
    "The mirror itself",
    "These figures are made from a copy of the platform's records. This is how complete and how "
    "fresh the copy is, what it cost, and what was checked before it was published.",
    (
        Figure(
            "resources",
            "What is landed, and how far it is proven",
            {
                "mirror_health": (
                    *("resource", "live", "hydrated", "listed_only", "deleted", "pending"),
                    *("proven_at", "hours_behind", "last_run_at", "last_outcome", "anomalies"),
                    *("requests_this_month", "scrub_age_days"),
                )
            },
            _resources,
            "Nothing has landed yet.",
            is_wide=True,
        ),
        Figure(
            "coverage",
            "Coverage",
            {"sum_coverage": ("question", "about", "covered", "total", "missing", "coverage")},
            _coverage,
            "Nothing has landed that could be covered.",
        ),
        Figure(
            "cost",
            "What it cost",
            {"mirror_health": ("resource", "requests_last_run", "requests_this_month")},
            _cost,
            "No request was spent yet.",
        ),
    ),
)
