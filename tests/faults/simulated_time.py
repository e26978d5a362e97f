"""Time for the tests of faults: it passes when somebody waits, and a little with each request.

The client's clock, the server's and the run's are one, so that backoffs and windows of the rate
limit are real to both sides and take no time.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from connector.catalog import CATALOG
from connector.client.client import Client, Limits
from connector.pulls.outcome import PullReport
from connector.pulls.run import pull
from connector.sandbox.server import Sandbox
from tests.pulls.landed import published, rows, settings_of

BEGAN_AT = datetime(2026, 5, 4, 9, 0, tzinfo=UTC)
REQUEST_SECONDS = 0.01


class Time:
    """One time for a server and its client. `skew` is how far the server's clock is ahead."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.skew = timedelta(0)
        self.waits: list[float] = []

    def monotonic(self) -> float:
        """The client's own clock, in seconds."""
        return self.seconds

    def ours(self) -> datetime:
        """The time on this machine's wall."""
        return BEGAN_AT + timedelta(seconds=self.seconds)

    def servers(self) -> datetime:
        """The time on the server's wall; reading it takes a moment."""
        self.seconds += REQUEST_SECONDS
        return self.ours() + self.skew

    async def wait(self, seconds: float) -> None:
        """Let that much time pass, at once. Those who wait together wait through the same time."""
        assert seconds >= 0, seconds
        self.waits.append(seconds)
        until = self.seconds + seconds
        await asyncio.sleep(0)
        self.seconds = max(self.seconds, until)

    def pass_minutes(self, minutes: float) -> None:
        """Let time pass in which nothing is asked."""
        self.seconds += minutes * 60


def pulled(
    sandbox: Sandbox,
    folder: Path,
    *resources: str,
    time: Time | None = None,
    limits: Limits | None = None,
    key: str | None = None,
    base_url: str | None = None,
) -> PullReport:
    """Pull with that time, which no wait really takes, and return the report.

    What is pulled, unless it is said, are the resources that the sandbox has records of.
    """
    time = time or Time()
    resources = resources or tuple(name for name in CATALOG if sandbox.store.records(name))
    terms: dict[str, Any] = {"clock": time.monotonic, "sleep": time.wait, "limits": limits}
    connect = partial(Client, chance=lambda: 0.5, **terms)
    settings = settings_of(sandbox, folder, key)
    if base_url is not None:
        settings = replace(settings, base_url=replace(settings.base_url, value=base_url))
    return asyncio.run(pull(settings, resources, now=time.ours, connect=connect))


def pulled_until_done(
    sandbox: Sandbox, folder: Path, *, time: Time, runs_max: int
) -> list[PullReport]:
    """Pull again and again until a run is done, at most that often; the reports."""
    reports: list[PullReport] = []
    while len(reports) < runs_max and (not reports or reports[-1].outcome != "done"):
        reports.append(pulled(sandbox, folder, time=time))
    return reports


def tombstones(folder: Path) -> int:
    """How many candidates are held to be deleted, in the copy for analysts."""
    query = "FROM landing.candidates WHERE _deleted_at IS NOT NULL"
    return len(rows(published(folder), query))


def work_rows(folder: Path, query: str) -> list[dict[str, Any]]:
    """The rows of a query on the connector's own file, which nobody may be using."""
    return rows(folder / "data" / "work.duckdb", query)
