"""Plan: what a pull, and a schedule of pulls until the month's end, would cost.

A plan sends a few requests of its own and lands nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from math import ceil
from typing import Any

from connector.catalog import declaration
from connector.catalog.page import PER_PAGE_MAX
from connector.catalog.resource import Declaration
from connector.client.client import Client
from connector.errors_api import Forbidden
from connector.ledger.quota import MonthUse, midnight
from connector.pulls.comparison import PullCost, estimate_pull_cost, read_listed_ids
from connector.pulls.outcome import Progress, Watch, to_json_value
from connector.pulls.pull_executor import PullExecutor
from connector.pulls.run_context import PLAN_LEASE, RunContext, open_run, select_resources
from connector.settings.model import Settings
from connector.warehouse.bookmark import Stream
from connector.warehouse.state import read_status


@dataclass(frozen=True, slots=True)
class Schedule:
    """Estimated requests of regular pulls until the month ends.

    These are `pulls` with at least `quiet_requests` each, and `changes_a_day` records to read as
    they change.
    """

    every_seconds: float
    pulls: int
    quiet_requests: int
    changes_a_day: float
    requests: int


@dataclass(frozen=True, slots=True)
class PlanReport:
    """Estimated requests of a pull by resource, and the requests of the estimate itself.

    `limit_per_minute` is the limit as the API told it, None where it did not; `month` is what the
    month has come to. `skipped` are resources that the key may not read.
    """

    prices: dict[str, PullCost]
    skipped: tuple[str, ...]
    spent: int
    limit_per_minute: int | None
    month: MonthUse | None
    schedule: Schedule | None = None

    @property
    def requests(self) -> int:
        """Requests that the pull would send, in all."""
        return sum(each.requests for each in self.prices.values())

    @property
    def minutes(self) -> float | None:
        """Minutes that the requests take at the present limit; None if it is unknown."""
        return self.requests / self.limit_per_minute if self.limit_per_minute else None

    @property
    def month_share(self) -> float | None:
        """The requests as a part of the month's, if the plan's figure is known."""
        limit = self.month.limit if self.month is not None else None
        return self.requests / limit if limit else None

    def as_json(self) -> dict[str, Any]:
        """The report as `--json` prints it."""
        return {
            "requests": self.requests,
            "minutes": self.minutes,
            "month_share": self.month_share,
            "limit_per_minute": self.limit_per_minute,
            "spent": self.spent,
            "resources": {
                name: {**asdict(each), "requests": each.requests}
                for name, each in self.prices.items()
            },
            "skipped": list(self.skipped),
            "month": None if self.month is None else to_json_value(asdict(self.month)),
            "schedule": None if self.schedule is None else asdict(self.schedule),
        }


async def plan(
    settings: Settings,
    resources: Sequence[str] = (),
    *,
    every: timedelta | None = None,
    watch: Watch | None = None,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
    connect: Callable[..., Client] = Client,
) -> PlanReport:
    """Cost of a pull of the resources (default: all), and of one `every` so often.

    Raises what ends a pull, but for a missing scope, which skips the resource.
    """
    names = select_resources(resources)
    prices: dict[str, PullCost] = {}
    skipped: list[str] = []
    opening = open_run(settings, "plan", lease=PLAN_LEASE, watch=watch, now=now, connect=connect)
    async with opening as context:
        for name in names:
            context.watch(Progress(name))
            try:
                prices[name] = await _price(context, name)
            except Forbidden:
                skipped.append(name)
        month = await context.read_month()
        schedule = None
        if every is not None:
            schedule = await _schedule(context, prices, every, month)
    return PlanReport(
        prices=prices,
        skipped=tuple(skipped),
        spent=context.tally.requests,
        limit_per_minute=context.client.limiter.limit,
        month=month,
        schedule=schedule,
    )


async def _price(context: RunContext, name: str) -> PullCost:
    """The price of one resource, over all its streams that are known."""
    whole = PullCost(0, 0, 0, 0, 0, 0)
    for stream in await _streams(context, declaration(name)):
        bookmark = await context.bookmark(stream)
        steps = estimate_pull_cost(stream.resource, bookmark)
        each = await PullExecutor(context, stream).run(steps)
        whole = PullCost(
            total=whole.total + each.total,
            changed=whole.changed + each.changed,
            deleted=whole.deleted + each.deleted,
            queued=whole.queued + each.queued,
            lists=whole.lists + each.lists,
            details=whole.details + each.details,
            is_first=whole.is_first or each.is_first,
        )
    return whole


async def _streams(context: RunContext, resource: Declaration) -> tuple[Stream, ...]:
    """The streams of a resource, with those of parents that were never landed."""
    if resource.parent is None:
        return (Stream(resource),)
    parents = Stream(declaration(resource.parent))
    ids = await PullExecutor(context, parents).run(read_listed_ids(parents.resource))
    return tuple(Stream(resource, id) for id in ids)


async def _schedule(
    context: RunContext, prices: dict[str, PullCost], every: timedelta, month: MonthUse
) -> Schedule:
    """Cost until the month's end, if records go on changing as they did lately."""
    now, quiet, changes_a_day = context.now(), 0, 0.0
    for name, each in prices.items():
        for stream in await context.streams(declaration(name)):
            quiet += _quiet_requests(stream, each)
        state = await asyncio.to_thread(context.warehouse.read, read_status, name, tells_last=False)
        proven_at = state.proven_at
        if proven_at is not None and now > proven_at:
            days = max((now - proven_at) / timedelta(days=1), 1 / 24)
            changes_a_day += each.changed / days
    left = max(timedelta(0), midnight(month.period.ends) - now)
    pulls = ceil(left / every)
    requests = pulls * quiet + round(changes_a_day * (left / timedelta(days=1)))
    return Schedule(every.total_seconds(), pulls, quiet, changes_a_day, requests)


def _quiet_requests(stream: Stream, whole: PullCost) -> int:
    """Number of requests of a pull of the stream if nothing has changed."""
    if not stream.resource.sortable:
        return max(1, ceil(whole.total / PER_PAGE_MAX))
    return 1 if stream.resource.lists_cursor else 2
