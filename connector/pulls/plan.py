"""Estimated cost of a pull.

An estimate sends one request for each stream and loads nothing. A first load follows from the total
of page 1. Later, it expects the requests of the last pull, and those of new and deleted records.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import ceil
from typing import Any

from connector.catalog import declaration
from connector.catalog.resource import Declaration
from connector.errors import Forbidden
from connector.pulls.account import RunContext, open_run, select_resources
from connector.pulls.report import to_json_value
from connector.pulls.streams import StreamApi
from connector.settings import Settings
from connector.state.quota import MonthUse
from connector.warehouse import queries
from connector.warehouse.stream import Stream


@dataclass(slots=True)
class PullCost:
    """Estimated changes and requests of the pull of a resource.

    Attributes:
        total: Number of records according to the API.
        changed: Records created or changed since the last pull.
        deleted: Deleted records.
        queued: Records queued to be read.
        requests: Number of requests.
        is_first: True if the first load is not complete.
    """

    total: int = 0
    changed: int = 0
    deleted: int = 0
    queued: int = 0
    requests: int = 0
    is_first: bool = False


@dataclass(frozen=True, slots=True)
class CostEstimate:
    """Estimated cost of a pull, and the requests that the estimate itself needed.

    Attributes:
        by_resource: Estimate by resource.
        skipped: Resources that the API key may not read.
        spent: Requests that the estimate needed.
        limit_per_minute: Rate limit that the API reported; None if unknown.
        month: Requests of the month so far.
    """

    by_resource: dict[str, PullCost]
    skipped: tuple[str, ...]
    spent: int
    limit_per_minute: int | None
    month: MonthUse

    @property
    def requests(self) -> int:
        """Total number of requests of the pull."""
        return sum(each.requests for each in self.by_resource.values())

    @property
    def minutes(self) -> float | None:
        """Minutes that the requests take at the current rate limit; None if it is unknown."""
        return self.requests / self.limit_per_minute if self.limit_per_minute else None

    @property
    def month_share(self) -> float | None:
        """Requests as a share of the monthly quota; None if the quota is unknown."""
        return self.requests / self.month.limit if self.month.limit else None

    def as_json(self) -> dict[str, Any]:
        """Return the report as `--json` prints it."""
        return {
            "requests": self.requests,
            "minutes": self.minutes,
            "month_share": self.month_share,
            "limit_per_minute": self.limit_per_minute,
            "spent": self.spent,
            "resources": {name: asdict(each) for name, each in self.by_resource.items()},
            "skipped": list(self.skipped),
            "month": to_json_value(asdict(self.month)),
        }


async def estimate_cost(settings: Settings, resources: Sequence[str] = ()) -> CostEstimate:
    """Estimate a pull of the resources (default: all).

    Raises the errors of a pull, except for a missing scope, which skips the resource.
    """
    costs: dict[str, PullCost] = {}
    skipped: list[str] = []
    async with open_run(settings, "plan") as context:
        for name in select_resources(resources):
            try:
                costs[name] = await _estimate_resource(context, declaration(name))
            except Forbidden:
                skipped.append(name)
        return CostEstimate(
            by_resource=costs,
            skipped=tuple(skipped),
            spent=context.tally.requests,
            limit_per_minute=context.client.limiter.limit,
            month=context.quota.month(),
        )


async def _estimate_resource(context: RunContext, resource: Declaration) -> PullCost:
    """Return the estimate of a resource, from the first page of each of its streams."""
    state = context.warehouse.read(queries.resource_state, resource.name)
    _, last = context.runs.latest_of_resources().get(resource.name, ("", None))
    cost = PullCost(queued=state.pending, is_first=state.proven_at is None)
    for stream in await _all_streams(context, resource):
        page = await StreamApi(context, stream, None).page(
            1, "created_at" if resource.sortable else None, "asc"
        )
        pages = max(1, ceil(page.total / page.per_page))
        # One page that is not full needs no second reading; a scan and its detail follow.
        is_once = pages == 1 and (not page.is_full or not resource.sortable)
        scan = bool(resource.sortable) + bool(
            resource.sortable and page.total and not resource.lists_updated_at
        )
        cost.requests += (pages if is_once else 2 * pages) + scan
        cost.total += page.total
    new, cost.deleted = max(0, cost.total - state.live), max(0, state.live - cost.total)
    cost.changed = new + (0 if cost.is_first or last is None else last.changed)
    if not cost.is_first and last is not None:
        cost.requests = last.requests
    cost.requests += new + cost.deleted + cost.queued
    return cost


async def _all_streams(context: RunContext, resource: Declaration) -> tuple[Stream, ...]:
    """Return the streams of a resource, also of parents that are not loaded yet."""
    if resource.parent is None:
        return (Stream(resource),)
    api = StreamApi(context, Stream(declaration(resource.parent)), None)
    ids, number = dict[str, None](), 1
    while True:
        page = await api.page(number, None, "asc")
        ids |= dict.fromkeys(item.id for item in page.items)
        if page.is_last:
            return tuple(Stream(resource, id) for id in ids)
        number += 1
