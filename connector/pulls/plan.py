"""Estimated cost of a pull.

An estimate sends one request for each stream and loads nothing. It expects as many changes as the
last pull found. New and deleted records follow from the total of the list, unless totals are wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import ceil, log2
from typing import Any

from connector.catalog import declaration
from connector.catalog.resource import Declaration
from connector.errors import Forbidden
from connector.pulls.account import RunContext, open_run, select_resources
from connector.pulls.report import to_json_value
from connector.pulls.streams import StreamApi, StreamCopy
from connector.settings import Settings
from connector.state.quota import MonthUse
from connector.warehouse.stream import Stream


@dataclass(frozen=True, slots=True)
class PullCost:
    """Estimated changes and requests of the pull of a resource.

    Attributes:
        total: Number of records according to the API.
        changed: Records created or changed since the last verified pull.
        deleted: Deleted records.
        queued: Records queued to be read.
        lists: Requests for list pages.
        details: Requests for single records.
        is_first: True if the first load is not complete.
    """

    total: int = 0
    changed: int = 0
    deleted: int = 0
    queued: int = 0
    lists: int = 0
    details: int = 0
    is_first: bool = False

    @property
    def requests(self) -> int:
        """Total number of requests."""
        return self.lists + self.details

    def __add__(self, other: PullCost) -> PullCost:
        first, second = asdict(self), asdict(other)
        sums = {name: first[name] + second[name] for name in first}
        return PullCost(**{**sums, "is_first": self.is_first or other.is_first})


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
            "resources": {
                name: {**asdict(each), "requests": each.requests}
                for name, each in self.by_resource.items()
            },
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
    cost = PullCost()
    _, last = context.runs.latest_of_resources().get(resource.name, ("", None))
    share = last.changed / last.live if last is not None and last.live else 0.0
    for stream in await _all_streams(context, resource):
        cost += await _estimate_stream(context, stream, share)
    return cost


async def _estimate_stream(context: RunContext, stream: Stream, share: float) -> PullCost:
    """Return the estimate of one stream. `share` of its records is expected to have changed."""
    resource, copy = stream.resource, StreamCopy(context, stream, lambda *_: None)
    mark, live = await context.bookmark(stream), await copy.count()
    api = StreamApi(context, stream, copy)
    page = await api.page(1, "created_at" if resource.sortable else None, "asc")
    total = page.total if mark.is_total_exact or mark.proven_at is None else live
    pages = max(1, ceil(total / page.per_page))
    closing = 0 if resource.lists_updated_at or not total else 1
    new, deleted = max(0, total - live), max(0, live - total)
    queued = len(await copy.queued(total + live, ()))
    is_sorted = bool(resource.sortable) and mark.unsorted_at is None
    if mark.proven_at is None or not is_sorted:
        # Pages that an interrupted load has read are not read again.
        swept = pages if mark.is_listed else max(0, (mark.load_page or 1) - 1)
        is_once = pages == 1 and (not page.is_full or not resource.sortable)
        lists = (pages if is_once else 2 * pages - swept) + is_sorted
        details = new + queued + deleted + closing * is_sorted
        is_first = mark.proven_at is None
        return PullCost(total, new, deleted, queued, lists, details, is_first)
    changed = new + round(share * live)
    lists = min(pages, changed // page.per_page + 1)
    searched = min(pages, deleted * (ceil(log2(max(1, pages / deleted))) + 2)) if deleted else 0
    details = changed + closing + deleted + queued
    return PullCost(total, changed, deleted, queued, lists + searched, details)


async def _all_streams(context: RunContext, resource: Declaration) -> tuple[Stream, ...]:
    """Return the streams of a resource, also of parents that are not loaded yet."""
    if resource.parent is None:
        return (Stream(resource),)
    parents = Stream(declaration(resource.parent))
    api = StreamApi(context, parents, None)
    ids, number = dict[str, None](), 1
    while True:
        page = await api.page(number, None, "asc")
        ids |= dict.fromkeys(item.id for item in page.items)
        if page.is_last:
            return tuple(Stream(resource, id) for id in ids)
        number += 1
