"""Clocks that a test moves, and pulls whose waits take no time."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from connector.catalog import CATALOG
from connector.client.client import Client
from connector.client.session import Limits
from connector.pulls.ports import FEWEST_REQUESTS, PullOptions
from connector.pulls.report import PullReport
from connector.pulls.run import pull
from connector.sandbox.server import Sandbox
from tests.support.agency import published, rows, settings_of

START = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
BEGAN_AT = datetime(2026, 5, 4, 9, 0, tzinfo=UTC)
REQUEST_SECONDS = 0.01


class Clock:
    """Clock that shows the same time until a test moves it."""

    def __init__(self, now: datetime = START) -> None:
        self.now = now

    def __call__(self) -> datetime:
        return self.now

    def pass_time(self, **length: float) -> None:
        """Move the clock by a `timedelta` with these arguments."""
        self.now += timedelta(**length)


class ClientClock:
    """Clock in seconds that only a client's waits move; `waits` lists them."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.waits: list[float] = []

    def __call__(self) -> float:
        return self.now

    async def wait(self, seconds: float) -> None:
        """Move the clock forward immediately, and record the wait."""
        self.waits.append(seconds)
        self.now += seconds
        await asyncio.sleep(0)


class Time:
    """Simulated time that the client, the server and the run share.

    It passes when a client waits, and a little with each request, so that backoffs and rate limit
    windows take no real time. `skew` is how far the server's clock is ahead.
    """

    def __init__(self) -> None:
        self.seconds = 0.0
        self.skew = timedelta(0)
        self.waits: list[float] = []

    def monotonic(self) -> float:
        """Return the client's clock in seconds."""
        return self.seconds

    def local_now(self) -> datetime:
        """Return the time of the connector's clock."""
        return BEGAN_AT + timedelta(seconds=self.seconds)

    def server_now(self) -> datetime:
        """Let a request's time pass, and return the time of the server's clock."""
        self.seconds += REQUEST_SECONDS
        return self.local_now() + self.skew

    async def wait(self, seconds: float) -> None:
        """Move the time forward immediately, and record the wait. Parallel waits overlap."""
        assert seconds >= 0, seconds
        self.waits.append(seconds)
        until = self.seconds + seconds
        await asyncio.sleep(0)
        self.seconds = max(self.seconds, until)

    def pass_minutes(self, minutes: float) -> None:
        """Let time pass without requests."""
        self.seconds += minutes * 60


def pulled(
    sandbox: Sandbox,
    folder: Path,
    *resources: str,
    time: Time | None = None,
    limits: Limits | None = None,
    key: str | None = None,
    base_url: str | None = None,
    options: PullOptions = FEWEST_REQUESTS,
) -> PullReport:
    """Pull in simulated time, and return the report.

    Without names, pulls all resources that have records in the sandbox.
    """
    time = time or Time()
    resources = resources or tuple(name for name in CATALOG if sandbox.store.records(name))
    terms: dict[str, Any] = {"clock": time.monotonic, "sleep": time.wait, "limits": limits}
    connect = partial(Client, chance=lambda: 0.5, **terms)
    settings = settings_of(sandbox, folder, key)
    if base_url is not None:
        settings = settings.model_copy(update={"base_url": base_url})
    running = pull(settings, resources, options=options, now=time.local_now, connect=connect)
    return asyncio.run(running)


def pull_until_done(
    sandbox: Sandbox, folder: Path, *, time: Time, runs_max: int
) -> list[PullReport]:
    """Pull until a report's outcome is "done", at most `runs_max` times; return all reports."""
    reports: list[PullReport] = []
    while len(reports) < runs_max and (not reports or reports[-1].outcome != "done"):
        reports.append(pulled(sandbox, folder, time=time))
    return reports


def count_deleted_candidates(folder: Path) -> int:
    """Return the number of candidates that are deleted in the published file."""
    query = "FROM landing.candidates WHERE _deleted_at IS NOT NULL"
    return len(rows(published(folder), query))


def work_rows(folder: Path, query: str) -> list[dict[str, Any]]:
    """Query the work file, which must not be in use."""
    return rows(folder / "data" / "work.duckdb", query)
