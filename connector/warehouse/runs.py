"""Records of runs and publications: their results and costs.

All functions use an open connection; the caller begins and ends the transaction. Only events are
counted here; other figures come from the run itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from pathlib import Path

import duckdb

from connector.errors import WarehouseError
from connector.state.quota import RequestUse, billing_period
from connector.warehouse.duckdb_file import from_microseconds, literal
from connector.warehouse.internal_tables import RowMapper
from connector.warehouse.published_file import query
from connector.warehouse.stream import Event


@dataclass(frozen=True, slots=True)
class Run:
    """Record of one execution of a command: its outcome and its requests."""

    run_id: str
    command: str
    started_at: datetime
    ended_at: datetime | None = None
    outcome: str | None = None
    seconds: float | None = None
    waited_seconds: float | None = None
    requests: int | None = None
    rate_limited: int | None = None
    error_code: str | None = None
    message: str | None = None
    budget: int | None = None
    month_share: float | None = None


@dataclass(frozen=True, slots=True)
class ResourceRun:
    """Result of one run for one resource: requests by kind, and rows by result.

    Attributes:
        proven: True if the local copy is verified up to `bookmark_after`.
        message: Reason why it is not verified.
        sweeps: Number of requests that searched for deletions.
        scrubs: Number of requests that verified unchanged records.
        lateness_seconds: Assumed delay before a write becomes visible.
        oldest_read_at: Time of the least recently read detail of a live row.
        anomalies: Number of events by kind, except deletions.
        month_share: Share of the monthly quota; None if the quota is unknown.
    """

    resource: str
    outcome: str
    proven: bool
    requests: int
    lists: int
    details: int
    new: int
    changed: int
    unchanged: int
    deleted: int
    live: int
    total: int | None
    pending: int
    bookmark_before: datetime | None
    bookmark_after: datetime | None
    error_code: str | None = None
    message: str | None = None
    sweeps: int = 0
    scrubs: int = 0
    waited_seconds: float = 0.0
    rate_limited: int = 0
    lateness_seconds: float | None = None
    oldest_read_at: datetime | None = None
    anomalies: Mapping[str, int] = field(default_factory=dict)
    month_share: float | None = None


_RUNS = RowMapper(Run, "sync.runs")
_RESOURCE_RUNS = RowMapper(ResourceRun, "sync.run_resources")

PROVEN_AT = "CASE WHEN bool_and(proven_at IS NOT NULL) THEN epoch_us(min(proven_at)) END"
"""SQL for the time up to which a resource is verified: the earliest of its streams, and null while
one of them was never loaded.
"""


def write_run(connection: duckdb.DuckDBPyConnection, run: Run) -> None:
    """Insert the run, or replace it if it exists."""
    connection.execute("DELETE FROM sync.runs WHERE run_id = ?", [run.run_id])
    _RUNS.insert(connection, run)


def begin_run(connection: duckdb.DuckDBPyConnection, run: Run) -> None:
    """Insert a run that starts now; earlier runs without an outcome become `interrupted`."""
    connection.execute("UPDATE sync.runs SET outcome = 'interrupted' WHERE outcome IS NULL")
    write_run(connection, run)


def write_resource_run(
    connection: duckdb.DuckDBPyConnection, run_id: str, result: ResourceRun
) -> None:
    """Append the result of the run for one resource."""
    _RESOURCE_RUNS.insert(connection, result, run_id=run_id)


def finish_resource_run(
    connection: duckdb.DuckDBPyConnection, run_id: str, result: ResourceRun
) -> ResourceRun:
    """Insert the result of a run for one resource; return it with its number of events by kind.

    Deletions are not among the events because they have their own count.
    """
    rows = connection.execute(
        "SELECT kind, count(*) FROM sync.events WHERE run_id = ? AND resource = ? "
        "AND kind <> 'deleted' GROUP BY kind ORDER BY kind",
        [run_id, result.resource],
    ).fetchall()
    result = replace(result, anomalies=dict(rows))
    write_resource_run(connection, run_id, result)
    return result


def count_runs_with_changes(connection: duckdb.DuckDBPyConnection, kind: str) -> int:
    """Return the number of runs that changed a row since the last event of this kind."""
    ((count,),) = connection.execute(
        "SELECT count(DISTINCT run_id) FROM sync.run_resources JOIN sync.runs USING (run_id) "
        "WHERE new + changed + deleted > 0 AND started_at > coalesce((SELECT max(seen_at) "
        f"FROM sync.events WHERE kind = {literal(kind)}), TIMESTAMPTZ '-infinity')"
    ).fetchall()
    return int(count)


def last_runs(connection: duckdb.DuckDBPyConnection, count: int) -> tuple[Run, ...]:
    """Return the latest runs, newest first."""
    rows = connection.execute(
        f"SELECT {_RUNS.select_list} FROM sync.runs ORDER BY started_at DESC, run_id DESC LIMIT ?",
        [count],
    ).fetchall()
    return tuple(map(_RUNS.read, rows))


def last_resource_runs(
    connection: duckdb.DuckDBPyConnection, resource: str | None = None
) -> dict[str, tuple[str, ResourceRun]]:
    """Return run id and result of the latest run of each resource (default: all)."""
    rows = connection.execute(
        f"SELECT run_id, {_RESOURCE_RUNS.select_list} FROM sync.run_resources "
        "JOIN (SELECT run_id, started_at FROM sync.runs) USING (run_id) "
        "WHERE outcome <> 'not_started' AND resource = coalesce(?, resource) QUALIFY row_number() "
        "OVER (PARTITION BY resource ORDER BY started_at DESC, run_id DESC) = 1",
        [resource],
    ).fetchall()
    done = ((run_id, _RESOURCE_RUNS.read(values)) for run_id, *values in rows)
    return {each.resource: (run_id, each) for run_id, each in done}


def resources_not_started(connection: duckdb.DuckDBPyConnection) -> frozenset[str]:
    """Return the resources that the latest run did not reach."""
    rows = connection.execute(
        "SELECT resource FROM sync.run_resources WHERE outcome = 'not_started' AND run_id = "
        "(SELECT run_id FROM sync.runs ORDER BY started_at DESC, run_id DESC LIMIT 1)"
    ).fetchall()
    return frozenset(name for (name,) in rows)


QUOTA_DAYS_AGAIN = 7
"""Number of days whose request counts are copied again each time."""


def copy_quota(
    connection: duckdb.DuckDBPyConnection,
    read_uses: Callable[[date | None], Sequence[RequestUse]],
    billing_day: int,
) -> None:
    """Copy the request counts from the state for analysts.

    `read_uses` returns the counts from a day on (None: all). The last days are copied again,
    because a running pull stores its requests late.
    """
    ((last,),) = connection.execute("SELECT max(day) FROM sync.quota").fetchall()
    since = None if last is None else last - timedelta(days=QUOTA_DAYS_AGAIN)
    uses = read_uses(since)
    connection.execute(
        "DELETE FROM sync.quota WHERE day >= coalesce(?::DATE, DATE '0001-01-01')", [since]
    )
    # One statement for all, because DuckDB is slow with many small ones.
    connection.execute(
        "INSERT INTO sync.quota (cycle_begins, day, command, kind, requests) SELECT"
        " unnest(?::DATE[]), unnest(?::DATE[]), unnest(?::VARCHAR[]), unnest(?::VARCHAR[]),"
        " unnest(?::BIGINT[])",
        [
            [billing_period(each.day, billing_day).begins for each in uses],
            [each.day for each in uses],
            [each.command for each in uses],
            [each.kind for each in uses],
            [each.requests for each in uses],
        ],
    )


# -- Publications ----------------------------------------------------------------------------------
# Records of publications: the published file, or the reason why publishing failed.
#
# All functions use an open connection; the caller begins and ends the transaction. A published file
# contains its own record, which stays with copies of the file.


@dataclass(frozen=True, slots=True)
class Publication:
    """Attempt to publish. `outcome` is None while it is running.

    Attributes:
        publication: Id of the attempt.
        true_of: Time up to which the data is verified.
        failed_checks: Names of failed checks; in a published file, only warnings.
        failed_rows: Number of wrong rows of each failed check.
        failed_samples: Id of one wrong row of each failed check.
        unfilled_seeds: Seeds that the user has not started to fill in.
        unfilled_rows: Number of values that each of these seeds lacks.
        personal: Setting `publish_personal`.
        left_out: Setting `publish_without`.
        bytes: Size of the file; None within the file itself.
    """

    publication: str
    started_at: datetime
    run_id: str | None = None
    ended_at: datetime | None = None
    true_of: datetime | None = None
    outcome: str | None = None
    models: int = 0
    checks: int = 0
    failed_checks: tuple[str, ...] = ()
    failed_rows: tuple[int, ...] = ()
    failed_samples: tuple[str | None, ...] = ()
    unfilled_seeds: tuple[str, ...] = ()
    unfilled_rows: tuple[int, ...] = ()
    personal: str = "keep"
    left_out: tuple[str, ...] = ()
    time_zone: str | None = None
    error_code: str | None = None
    message: str | None = None
    bytes: int | None = None
    seconds: float | None = None


_PUBLICATIONS = RowMapper(Publication, "sync.publications")


def write_publication(connection: duckdb.DuckDBPyConnection, row: Publication) -> None:
    """Insert the publication, or replace it if it exists."""
    connection.execute("DELETE FROM sync.publications WHERE publication = ?", [row.publication])
    _PUBLICATIONS.insert(connection, row)


_OPEN = "(outcome IS NULL OR (outcome = 'published' AND bytes IS NULL))"


def end_interrupted_publications(connection: duckdb.DuckDBPyConnection, published: Path) -> None:
    """Set the outcome of publications whose process ended without recording it.

    A publication that the published file contains was published; any other was interrupted. A
    publication without checks is marked as published beforehand; its size is known afterwards.
    """
    found = connection.execute(f"SELECT publication FROM sync.publications WHERE {_OPEN}")
    open_ones = {name for (name,) in found.fetchall()}
    if not open_ones:
        return
    shown = read_own_publication(published)
    if shown is not None and shown.publication in open_ones:
        write_publication(connection, shown)
    connection.execute(f"UPDATE sync.publications SET outcome = 'interrupted' WHERE {_OPEN}")


def last_publications(connection: duckdb.DuckDBPyConnection, count: int) -> tuple[Publication, ...]:
    """Return the latest publications, newest first."""
    rows = connection.execute(
        f"SELECT {_PUBLICATIONS.select_list} FROM sync.publications "
        "ORDER BY started_at DESC, publication DESC LIMIT ?",
        [count],
    ).fetchall()
    return tuple(map(_PUBLICATIONS.read, rows))


def read_own_publication(path: Path) -> Publication | None:
    """Return the publication that a published file contains; None if it has none."""
    if not path.exists():
        return None
    try:
        return _read_publication(path)
    except (WarehouseError, duckdb.Error):
        # It was published by an older version, or without the schema.
        return None


def _read_publication(path: Path) -> Publication | None:
    """Return the file's latest publication with the file's size; None if it contains none."""
    selected = _PUBLICATIONS.select_list
    sql = f"SELECT {selected} FROM sync.publications ORDER BY started_at DESC LIMIT 1"
    rows = query(path, sql).rows
    return replace(_PUBLICATIONS.read(rows[0]), bytes=path.stat().st_size) if rows else None


def read_data_time(connection: duckdb.DuckDBPyConnection) -> datetime | None:
    """Return the time of the data, which the models use as "now".

    It is the latest time up to which a resource is verified, or the time of the last run before
    the first verification.
    """
    ((timestamp,),) = connection.execute(
        "SELECT epoch_us(coalesce((SELECT max(proven_at) FROM sync.bookmarks), "
        "(SELECT max(coalesce(ended_at, started_at)) FROM sync.runs)))"
    ).fetchall()
    return from_microseconds(timestamp)


# -- Health ----------------------------------------------------------------------------------------
# Recent runs and publications, for monitoring. These functions only read, and do not read landing
# tables.


RUNS_READ = 100
PUBLICATIONS_READ = 10


@dataclass(frozen=True, slots=True)
class RunHealth:
    """Latest runs and publications of an account, newest first, to judge its health.

    Attributes:
        scrubs: Number of requests that verified unchanged records, by run.
        first_run_at: Start of the first recorded run.
        resources: Id and result of the latest run, by resource.
        proven_at: Time up to which each resource is verified; None if it is not.
        events: Events of each resource in its latest run, or earlier ones that still apply.
    """

    runs: tuple[Run, ...]
    scrubs: Mapping[str, int]
    first_run_at: datetime | None
    resources: Mapping[str, tuple[str, ResourceRun]]
    proven_at: Mapping[str, datetime | None]
    publications: tuple[Publication, ...]
    events: Mapping[str, tuple[Event, ...]] = field(default_factory=dict)
