"""Outcome of a run: its counts, its progress and its report.

These are values, which `run.py` and `pull_executor.py` fill in.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import date, datetime
from typing import TYPE_CHECKING, Any, Literal

from connector.client.request import Observer, Request
from connector.errors import ConnectorError
from connector.ledger.quota import MonthUse
from connector.pulls.resource_pull import PullResult
from connector.warehouse.landing import LandedCounts
from connector.warehouse.pull_commands import Commit, Event, Purpose
from connector.warehouse.runs import ResourceRun

if TYPE_CHECKING:
    # A report may have one, but who imports this module need not load all that publishes.
    from connector.publishing.publication import PublishResult

RunOutcome = Literal["done", "partial", "stopped", "failed"]
ResourceOutcome = Literal["done", "partial", "skipped", "stopped", "failed", "not_started"]


@dataclass(frozen=True, slots=True)
class Progress:
    """Progress of a run with a resource, or with a `batch` of its rows.

    There is an event when it begins, after each commit or row, and when a resource's pull ends or
    fails. `read` are the details read or rows ended so far, `pending` those that wait, `requests`
    all those sent for it. `until` is the time before which rows in doubt cannot be settled.
    `waits_until` is the time before which no request leaves; such an event has nothing else.
    """

    resource: str
    read: int = 0
    pending: int = 0
    requests: int = 0
    ended: ResourceRun | None = None
    batch: str | None = None
    until: datetime | None = None
    waits_until: datetime | None = None


WAIT_TOLD_SECONDS_MIN = 1.0
"""A shorter wait is not reported."""

Watch = Callable[[Progress], None]
"""Callback for a run's progress; called between requests, so it must not block."""


@dataclass(slots=True)
class RequestTally(Observer):
    """Counts requests by resource and kind, and waits; the client's observer.

    The executor sets `purpose` to the purpose of the next requests. It counts in
    `readable` the answers that it could read.
    """

    requests: int = 0
    rate_limited: int = 0
    waited_seconds: float = 0.0
    by_kind: Counter[tuple[str, str]] = field(default_factory=Counter)
    by_purpose: Counter[tuple[str, str]] = field(default_factory=Counter)
    purpose: Purpose = "pull"
    readable: int = 0
    tell_wait: Callable[[float], None] | None = None

    def before_send(self, request: Request) -> None:
        """One more request leaves."""
        self.requests += 1
        self.by_kind[request.resource, request.operation] += 1
        self.by_purpose[request.resource, self.purpose] += 1

    def on_response(self, request: Request, status: int | None, seconds: float) -> None:
        """Count refusals for going too fast."""
        self.rate_limited += status == 429

    def on_hold(self, seconds: float, why: str) -> None:
        """Tell of a wait that is worth a word."""
        if self.tell_wait is not None and seconds >= WAIT_TOLD_SECONDS_MIN:
            self.tell_wait(seconds)

    def on_wait_end(self, seconds: float, why: str) -> None:
        """Note a wait for the rate limiter."""
        self.waited_seconds += seconds

    def count_of(self, resource: str) -> int:
        """Requests spent on the resource."""
        return sum(count for (name, _), count in self.by_kind.items() if name == resource)


class ResourceTally:
    """Counts what one resource's pull has done so far, over all its streams."""

    def __init__(self) -> None:
        self.fates = LandedCounts()
        self.read = self.pending = 0
        self.total: int | None = None
        self.is_proven = True
        self.reason: str | None = None
        self.code: str | None = None

    def commit(self, what: Commit, fates: LandedCounts) -> None:
        """Count one commit."""
        self.fates += fates
        self.read += len(what.records)
        self.pending += fates.listed + len(what.enqueue) - len(what.records) - len(what.gone)
        self.pending = max(0, self.pending)

    def add(self, pulled: PullResult) -> None:
        """Count one stream's end."""
        self.total = (self.total or 0) + pulled.total
        self.is_proven = self.is_proven and pulled.is_proven
        if self.reason is None or (self.code is None and pulled.code is not None):
            self.reason, self.code = pulled.reason, pulled.code


@dataclass(frozen=True, slots=True)
class PullReport:
    """Result of a pull, resource by resource.

    `error` is what ended it early, if anything did; `month` is what the month's requests had come
    to, None where that could not be read; `published` is None where nothing was, and `unpublished`
    says why not, where that was tried. `notices` are sentences on files that were lost and made
    again. `anomalies` are by resource what its records have and the API's description does not.
    """

    outcome: RunOutcome
    run_id: str
    seconds: float
    waited_seconds: float
    requests: int
    rate_limited: int
    resources: dict[str, ResourceRun]
    error: ConnectorError | None = None
    month: MonthUse | None = None
    published: PublishResult | None = None
    unpublished: ConnectorError | None = None
    notices: tuple[str, ...] = ()
    anomalies: Mapping[str, tuple[Event, ...]] = field(default_factory=dict)

    @property
    def exit_status(self) -> int:
        """0 done, 1 failed, 3 partial or not shared, 4 stopped; or the error's own."""
        if self.outcome == "failed" and self.error is not None:
            return self.error.exit_status
        if self.outcome == "done" and self.published is not None and self.published.unshared:
            return 3
        return {"done": 0, "failed": 1, "partial": 3, "stopped": 4}[self.outcome]

    def as_json(self) -> dict[str, Any]:
        """The report as `--json` prints it; what there is none of is left out."""
        resources = {name: to_json_value(asdict(each)) for name, each in self.resources.items()}
        for each in resources.values():
            del each["resource"]
        shown = {
            "outcome": self.outcome,
            "run_id": self.run_id,
            "seconds": round(self.seconds, 3),
            "waited_seconds": round(self.waited_seconds, 3),
            "requests": self.requests,
            "rate_limited": self.rate_limited,
            "resources": resources,
        }
        optional = {
            "notices": list(self.notices),
            "anomalies": to_json_value(
                {n: list(map(asdict, each)) for n, each in self.anomalies.items()}
            ),
            "month": to_json_value(asdict(self.month)) if self.month is not None else None,
            "published": self.published.as_json() if self.published is not None else None,
            "unpublished": self.unpublished.as_json() if self.unpublished is not None else None,
            "error": self.error.as_json() if self.error is not None else None,
        }
        return shown | {name: value for name, value in optional.items() if value}


def to_json_value(value: Any) -> Any:
    """Value as JSON has it: times and days as ISO 8601, at any depth."""
    if isinstance(value, Mapping):
        return {name: to_json_value(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [to_json_value(each) for each in value]
    return value.isoformat() if isinstance(value, date) else value
