"""Where an account stands, in words: whose turn it is, what the month has come to, what is left.

Words and their figures alone: nothing is printed here, and nothing is asked of a file.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime

from connector.engine.commands import PER_PAGE
from connector.engine.quota import requests_left, shown
from connector.errors import count_noun
from connector.ledger.lease import Lease
from connector.ledger.ledger import Standing
from connector.warehouse.runs import Run
from connector.warehouse.state import StreamState

TELLING_REQUESTS = 50
"""A run with fewer requests says nothing about the pace."""


@dataclass(frozen=True, slots=True)
class Left:
    """What is still to be read: records, about how many requests, at how many a minute (None: not
    known), and the part of the month's requests (None: the plan's figure is not known).

    `is_known` is false while a list is still being read: there may be more.
    """

    records: int
    requests: int
    per_minute: float | None
    month_share: float | None
    is_known: bool

    @property
    def minutes(self) -> float | None:
        """How long that takes."""
        return self.requests / self.per_minute if self.per_minute else None


def left(
    resources: Sequence[StreamState], runs: Sequence[Run], standing: Standing | None, now: datetime
) -> Left | None:
    """What is still to be read of the resources; None where nothing is."""
    waiting = [each for each in resources if each.pending or each.is_listing]
    if not waiting:
        return None
    requests = sum(
        requests_left(
            pending=each.pending,
            live=each.live,
            is_loaded=each.proven_at is not None,
            per_page=PER_PAGE,
        )
        for each in waiting
    )
    limit = standing.month.limit if standing is not None else None
    return Left(
        records=sum(each.pending for each in waiting),
        requests=requests,
        per_minute=_per_minute(runs, standing, now),
        month_share=None if limit is None else requests / limit,
        is_known=not any(each.is_listing for each in waiting),
    )


def _per_minute(runs: Sequence[Run], standing: Standing | None, now: datetime) -> float | None:
    """Requests a minute: of the run under way, of the last one, or what the API allows."""
    for each in under_way(standing, now):
        seconds = (now - each.since).total_seconds()
        if each.requests >= TELLING_REQUESTS and seconds > 0:
            return each.requests / seconds * 60
    for run in runs:
        if run.requests is not None and run.requests >= TELLING_REQUESTS and run.seconds:
            return run.requests / run.seconds * 60
    return standing.limit_per_minute if standing is not None else None


def under_way(standing: Standing | None, now: datetime) -> Iterator[Lease]:
    """The leases of runs that are under way."""
    for each in standing.leases if standing is not None else ():
        if not each.is_over(now):
            yield each


def lines(standing: Standing, now: datetime) -> Iterator[str]:
    """Whose turn it is, and what the month has come to."""
    for each in under_way(standing, now):
        owner = each.owner
        yield (
            f"Under way: {each.name} since {shown(each.since)}, process {owner.pid}"
            f" ({owner.command}) on {owner.host}, {count_noun(each.requests, 'request')} so far."
        )
    yield _month(standing)
    if standing.exhaustion is not None:
        yield (
            f"The API said at {shown(standing.exhaustion.noted_at)} that the month is spent:"
            f" nothing is asked of it before {shown(standing.exhaustion.until)}."
        )


def _month(standing: Standing) -> str:
    month = standing.month
    said = f"Billing cycle {month.period.begins} to {month.period.ends}: {month.used:,} "
    if month.limit is None:
        said += "requests (monthly_requests is not set)"
    else:
        said += f"of {month.limit:,} requests ({month.used / month.limit:.1%})"
        if month.reserve:
            said += f", {month.reserve:,} of them left to people"
    if standing.forecast is not None:
        said += f"; about {standing.forecast:,} by its end, at {standing.usual_day:,} a day"
    return f"{said}."


def first_loads(resources: Sequence[StreamState]) -> Iterator[str]:
    """How far each first load is."""
    for each in resources:
        if each.proven_at is not None or not (each.live or each.is_listing):
            continue
        if each.is_listing:
            yield f"{each.resource}: first load, {each.live:,} records listed so far."
        elif each.listed_only:
            read = each.live - each.listed_only
            yield (
                f"{each.resource}: first load, {read:,} of {each.live:,} records read"
                f" ({read / each.live:.0%})."
            )


def remaining(what: Left) -> str:
    """What is still to be read, how long it takes and what it costs."""
    about = "about" if what.is_known else "at least"
    said = (
        f"{count_noun(what.records, 'record')}, for {about} {count_noun(what.requests, 'request')}"
    )
    if what.month_share is not None:
        said += f" ({what.month_share:.1%} of the month's)"
    if what.per_minute is not None and what.minutes is not None:
        said += f", {_time(what.minutes)} at {what.per_minute:,.0f} requests a minute"
    return f"Still to be read: {said}."


def as_json(standing: Standing, now: datetime) -> dict[str, object]:
    """The same as an object; moments are left as they are."""
    month = standing.month
    leases = [
        {
            "name": each.name,
            **{n: v for n, v in asdict(each.owner).items() if n in _OWNER_SHOWN},
            "since": each.since,
            "expires_at": each.expires_at,
            "requests": each.requests,
            "is_under_way": not each.is_over(now),
        }
        for each in standing.leases
    ]
    told = standing.exhaustion
    return {
        "month": {
            "begins": month.period.begins,
            "ends": month.period.ends,
            "used": month.used,
            "limit": month.limit,
            "reserve": month.reserve,
            "left_for_pulls": month.room(keeps_reserve=True),
            "usual_day": standing.usual_day,
            "forecast": standing.forecast,
            "spent_until": None if told is None else told.until,
        },
        "limit_per_minute": standing.limit_per_minute,
        "leases": leases,
    }


_OWNER_SHOWN = frozenset(("run_id", "command", "pid", "host"))


def _time(minutes: float) -> str:
    """A length of time in its largest unit, roughly."""
    if minutes < 1:
        return "less than a minute"
    return f"about {minutes:,.0f} min" if minutes < 90 else f"about {minutes / 60:,.1f} h"
