"""Progress, counts and report of a run."""

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
    # The type only: importing this module must not load all of publishing.
    from connector.publishing.publication import PublishResult

RunOutcome = Literal["done", "partial", "stopped", "failed"]
ResourceOutcome = Literal["done", "partial", "skipped", "stopped", "failed", "not_started"]


@dataclass(frozen=True, slots=True)
class Progress:
    """Progress of a run for a resource, or for a `batch` of its rows.

    A run reports it at the start, after each commit or row, and when a resource ends.

    Attributes:
        read: Number of details read or rows ended so far.
        pending: Number of details or rows that wait.
        requests: Number of requests sent for the resource.
        ended: Result of the resource, once it has ended.
        until: Time before which unclear rows cannot be checked.
        waits_until: Time before which no request is sent. Such an event has no other values.
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
"""Shortest wait that is reported, in seconds."""

Watch = Callable[[Progress], None]
"""Callback for the progress of a run. It is called between requests and must not block."""


@dataclass(slots=True)
class RequestTally(Observer):
    """Observer of the client that counts requests by resource and kind, and waits.

    Attributes:
        purpose: Purpose of the next requests, set by the executor.
        readable: Number of responses that the executor could read.
    """

    requests: int = 0
    rate_limited: int = 0
    waited_seconds: float = 0.0
    by_kind: Counter[tuple[str, str]] = field(default_factory=Counter)
    by_purpose: Counter[tuple[str, str]] = field(default_factory=Counter)
    purpose: Purpose = "pull"
    readable: int = 0
    report_wait: Callable[[float], None] | None = None

    def before_send(self, request: Request) -> None:
        """Count a request."""
        self.requests += 1
        self.by_kind[request.resource, request.operation] += 1
        self.by_purpose[request.resource, self.purpose] += 1

    def on_response(self, request: Request, status: int | None, seconds: float) -> None:
        """Count a response with status 429."""
        self.rate_limited += status == 429

    def on_hold(self, seconds: float, why: str) -> None:
        """Report a wait that is long enough."""
        if self.report_wait is not None and seconds >= WAIT_TOLD_SECONDS_MIN:
            self.report_wait(seconds)

    def on_wait_end(self, seconds: float, why: str) -> None:
        """Count the time of a wait for the rate limiter."""
        self.waited_seconds += seconds

    def count_of(self, resource: str) -> int:
        """Return the number of requests sent for the resource."""
        return sum(count for (name, _), count in self.by_kind.items() if name == resource)


class ResourceTally:
    """Counts of one resource's pull, over all its streams."""

    def __init__(self) -> None:
        self.fates = LandedCounts()
        self.read = self.pending = 0
        self.total: int | None = None
        self.is_proven = True
        self.reason: str | None = None
        self.code: str | None = None

    def add_commit(self, commit: Commit, counts: LandedCounts) -> None:
        """Count one commit."""
        self.fates += counts
        self.read += len(commit.records)
        self.pending += counts.listed + len(commit.enqueue) - len(commit.records) - len(commit.gone)
        self.pending = max(0, self.pending)

    def add_result(self, result: PullResult) -> None:
        """Count the result of one stream."""
        self.total = (self.total or 0) + result.total
        self.is_proven = self.is_proven and result.is_proven
        if self.reason is None or (self.code is None and result.code is not None):
            self.reason, self.code = result.reason, result.code


@dataclass(frozen=True, slots=True)
class PullReport:
    """Result of a pull by resource.

    Attributes:
        error: Error that ended the pull early.
        month: Requests of the month; None if they could not be read.
        published: Result of publishing; None if nothing was published.
        unpublished: Error of publishing.
        notices: Sentences on files that were lost and created again.
        anomalies: Undocumented fields and values in the records, by resource.
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
        """Return 0 done, 1 failed, 3 partial or not published, 4 stopped; or the error's own."""
        if self.outcome == "failed" and self.error is not None:
            return self.error.exit_status
        if self.outcome == "done" and self.published is not None and self.published.unshared:
            return 3
        return {"done": 0, "failed": 1, "partial": 3, "stopped": 4}[self.outcome]

    def as_json(self) -> dict[str, Any]:
        """Return the report as `--json` prints it, without empty values."""
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
    """Return the value for JSON: timestamps and dates as ISO 8601, at any depth."""
    if isinstance(value, Mapping):
        return {name: to_json_value(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [to_json_value(each) for each in value]
    return value.isoformat() if isinstance(value, date) else value
