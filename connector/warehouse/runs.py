"""The ledger of runs: what each one did with each resource, what it cost, and the month's requests.

Functions over an open connection; whoever calls them holds the transaction. Nothing is counted
here but events: the figures come from the run itself.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any

import duckdb

from connector.engine.quota import Use, period_of
from connector.warehouse.moment import from_microseconds, iso


@dataclass(frozen=True, slots=True)
class Run:
    """One execution: its end has a name, and its cost is counted."""

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
    """What one run did with one resource: requests by kind, rows by fate, bookmarks before and
    after.

    `proven` is whether the landing equals the API up to the new bookmark; `message` says why not.
    `sweeps` and `scrubs` are those of the `requests` that looked for deletions, and that read
    again what seems clean. `lateness_seconds` is how late a write may become visible by all that
    was seen; `oldest_read_at` is when the live row was read whose reading is longest ago.
    `anomalies` counts the run's events by kind, deletions left out; `month_share` is the part of
    the month's requests, None where the plan's figure is not known.
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


_RUN = tuple(Run.__dataclass_fields__)
_RUN_MOMENTS = frozenset({"started_at", "ended_at"})


def write_run(connection: duckdb.DuckDBPyConnection, run: Run) -> None:
    """Insert the run, or replace it by how it ended."""
    connection.execute("DELETE FROM sync.runs WHERE run_id = ?", [run.run_id])
    marks = ("?::TIMESTAMPTZ" if name in _RUN_MOMENTS else "?" for name in _RUN)
    values = (getattr(run, name) for name in _RUN)
    connection.execute(
        f"INSERT INTO sync.runs ({', '.join(_RUN)}) VALUES ({', '.join(marks)})",
        [iso(v) if isinstance(v, datetime) else v for v in values],
    )


def name_interrupted(connection: duckdb.DuckDBPyConnection) -> None:
    """Give runs that never came to an end a name for how they ended."""
    connection.execute("UPDATE sync.runs SET outcome = 'interrupted' WHERE outcome IS NULL")


_RESOURCE_RUN = tuple(ResourceRun.__dataclass_fields__)
_MOMENTS = frozenset({"bookmark_before", "bookmark_after", "oldest_read_at"})


def write_resource_run(
    connection: duckdb.DuckDBPyConnection, run_id: str, done: ResourceRun
) -> None:
    """Append what the run did with one resource."""
    names = ", ".join(f'"{name}"' for name in _RESOURCE_RUN)
    marks = ", ".join("?::TIMESTAMPTZ" if name in _MOMENTS else "?" for name in _RESOURCE_RUN)
    values = [getattr(done, name) for name in _RESOURCE_RUN]
    connection.execute(
        f"INSERT INTO sync.run_resources (run_id, {names}) VALUES (?, {marks})",
        [run_id, *(_plain(value) for value in values)],
    )


def count_anomalies(
    connection: duckdb.DuckDBPyConnection, run_id: str, resource: str
) -> dict[str, int]:
    """The run's events by kind; a deletion is none, since it has its own count."""
    rows = connection.execute(
        "SELECT kind, count(*) FROM sync.events WHERE run_id = ? AND resource = ? "
        "AND kind <> 'deleted' GROUP BY kind ORDER BY kind",
        [run_id, resource],
    ).fetchall()
    return dict(rows)


def last_runs(connection: duckdb.DuckDBPyConnection, count: int) -> tuple[Run, ...]:
    """The latest runs, newest first."""
    shown = (f"epoch_us({name})" if name in _RUN_MOMENTS else name for name in _RUN)
    rows = connection.execute(
        f"SELECT {', '.join(shown)} FROM sync.runs ORDER BY started_at DESC, run_id DESC LIMIT ?",
        [count],
    ).fetchall()
    return tuple(
        Run(run_id, command, _started(started), from_microseconds(ended), *rest)
        for run_id, command, started, ended, *rest in rows
    )


def last_resource_run(connection: duckdb.DuckDBPyConnection, resource: str) -> ResourceRun | None:
    """What the latest run that touched the resource did with it."""
    names = ", ".join(
        f'epoch_us(r."{name}")' if name in _MOMENTS else f'r."{name}"' for name in _RESOURCE_RUN
    )
    rows = connection.execute(
        f"SELECT {names} FROM sync.run_resources AS r JOIN sync.runs USING (run_id) "
        "WHERE r.resource = ? AND r.outcome <> 'not_started' "
        "ORDER BY started_at DESC, run_id DESC LIMIT 1",
        [resource],
    ).fetchall()
    return _resource_run(rows[0]) if rows else None


def last_resource_runs(
    connection: duckdb.DuckDBPyConnection,
) -> dict[str, tuple[str, ResourceRun]]:
    """Of every resource, the latest run that touched it, and what it did with it."""
    names = ", ".join(
        f'epoch_us(r."{name}")' if name in _MOMENTS else f'r."{name}"' for name in _RESOURCE_RUN
    )
    rows = connection.execute(
        f"SELECT run_id, {names} FROM sync.run_resources AS r JOIN sync.runs USING (run_id) "
        "WHERE r.outcome <> 'not_started' "
        "QUALIFY row_number() OVER (PARTITION BY r.resource "
        "ORDER BY started_at DESC, run_id DESC) = 1"
    ).fetchall()
    done = ((run_id, _resource_run(tuple(values))) for run_id, *values in rows)
    return {each.resource: (run_id, each) for run_id, each in done}


def _resource_run(row: tuple[Any, ...]) -> ResourceRun:
    values: dict[str, Any] = dict(zip(_RESOURCE_RUN, row, strict=True))
    for name in _MOMENTS:
        values[name] = from_microseconds(values[name])
    values["anomalies"] = json.loads(values["anomalies"])
    return ResourceRun(**values)


def last_quota_day(connection: duckdb.DuckDBPyConnection) -> date | None:
    """The latest day in the copy of the requests spent; None where it is empty."""
    ((day,),) = connection.execute("SELECT max(day) FROM sync.quota").fetchall()
    assert day is None or isinstance(day, date)
    return day


def write_quota(
    connection: duckdb.DuckDBPyConnection, uses: Sequence[Use], since: date | None, billing_day: int
) -> None:
    """Replace the copy of the requests spent, from a day on or whole."""
    connection.execute(
        "DELETE FROM sync.quota WHERE day >= coalesce(?::DATE, DATE '0001-01-01')",
        [since],
    )
    # One statement for all: DuckDB is slow at many small ones.
    connection.execute(
        "INSERT INTO sync.quota (cycle_begins, day, command, kind, requests) SELECT"
        " unnest(?::DATE[]), unnest(?::DATE[]), unnest(?::VARCHAR[]), unnest(?::VARCHAR[]),"
        " unnest(?::BIGINT[])",
        [
            [period_of(each.day, billing_day).begins for each in uses],
            [each.day for each in uses],
            [each.command for each in uses],
            [each.kind for each in uses],
            [each.requests for each in uses],
        ],
    )


def _started(microseconds: int) -> datetime:
    moment = from_microseconds(microseconds)
    assert moment is not None
    return moment


def _plain(value: object) -> object:
    """A value as DuckDB takes it: moments as ISO 8601, counts by kind as JSON."""
    if isinstance(value, datetime):
        return iso(value)
    return json.dumps(value) if isinstance(value, Mapping) else value
