"""How a run goes and how it ended: what is counted on the way, who watches, and the report.

Nothing here acts; `run.py` and `driver.py` fill it in.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import date
from typing import Any, Literal, Protocol

from connector.client.request import Request
from connector.engine.commands import Commit, Purpose
from connector.engine.pull import Pulled
from connector.engine.quota import Month
from connector.errors import ConnectorError
from connector.publishing.publication import Published
from connector.warehouse.landing import Landed
from connector.warehouse.runs import ResourceRun

RunOutcome = Literal["done", "partial", "stopped", "failed"]
ResourceOutcome = Literal["done", "partial", "skipped", "stopped", "failed", "not_started"]


class Watch(Protocol):
    """Somebody who watches a run; called between requests, so it must not block."""

    def began(self, resource: str) -> None:
        """The resource's turn has come."""

    def moved(self, resource: str, read: int, pending: int, requests: int) -> None:
        """Something was committed: details read so far, how many wait, and the requests spent."""

    def ended(self, done: ResourceRun) -> None:
        """The resource has ended, for better or worse."""


class Unwatched:
    """Nobody watches."""

    def began(self, resource: str) -> None:
        """Ignore it."""

    def moved(self, resource: str, read: int, pending: int, requests: int) -> None:
        """Ignore it."""

    def ended(self, done: ResourceRun) -> None:
        """Ignore it."""


@dataclass(slots=True)
class Tally:
    """Counts what leaves, by resource and kind, and what is waited for; the client's observer.

    Whoever drives an engine sets `purpose` to "sweep" or "scrub" for as long as it does that.
    """

    requests: int = 0
    rate_limited: int = 0
    waited_seconds: float = 0.0
    by_kind: dict[tuple[str, str], int] = field(default_factory=dict)
    by_purpose: dict[tuple[str, str], int] = field(default_factory=dict)
    purpose: Purpose = "pull"

    def before_send(self, request: Request) -> None:
        """One more request leaves."""
        self.requests += 1
        kind = (request.resource, request.operation)
        self.by_kind[kind] = self.by_kind.get(kind, 0) + 1
        purpose = (request.resource, self.purpose)
        self.by_purpose[purpose] = self.by_purpose.get(purpose, 0) + 1

    def answered(self, request: Request, status: int | None, seconds: float) -> None:
        """Count refusals for going too fast."""
        self.rate_limited += status == 429

    def waited(self, seconds: float, why: str) -> None:
        """The pace held a request back."""
        self.waited_seconds += seconds

    def of(self, resource: str) -> int:
        """Requests spent on the resource."""
        return sum(n for (name, _), n in self.by_kind.items() if name == resource)

    def lists(self, resource: str) -> int:
        """List requests spent on the resource."""
        return self.by_kind.get((resource, "list"), 0)

    def details(self, resource: str) -> int:
        """Detail requests spent on the resource."""
        return self.by_kind.get((resource, "get"), 0)

    def towards(self, resource: str, purpose: Purpose) -> int:
        """Requests spent on the resource for one purpose."""
        return self.by_purpose.get((resource, purpose), 0)


@dataclass(frozen=True, slots=True)
class PullReport:
    """How a pull ended. `error` is what ended it early, if anything did; `month` is what the
    month's requests had come to, None where that could not be read; `published` is None where
    nothing was, and `unpublished` says why not, where that was tried. `notices` are sentences on
    files that were lost and made again.
    """

    outcome: RunOutcome
    run_id: str
    seconds: float
    waited_seconds: float
    requests: int
    rate_limited: int
    resources: dict[str, ResourceRun]
    error: ConnectorError | None = None
    month: Month | None = None
    published: Published | None = None
    unpublished: ConnectorError | None = None
    notices: tuple[str, ...] = ()

    @property
    def exit_status(self) -> int:
        """0 done, 1 failed, 3 partial or not shared, 4 stopped; an error's own status where one
        ended the run.
        """
        if self.outcome == "failed" and self.error is not None:
            return self.error.exit_status
        if self.outcome == "done" and self.published is not None and self.published.unshared:
            return 3
        return {"done": 0, "failed": 1, "partial": 3, "stopped": 4}[self.outcome]

    def as_json(self) -> dict[str, Any]:
        """The report as `--json` prints it; moments as ISO 8601."""
        resources = {}
        for name, each in self.resources.items():
            values = {k: v for k, v in asdict(each).items() if k != "resource"}
            resources[name] = plain(values)
        shown = {
            "outcome": self.outcome,
            "run_id": self.run_id,
            "seconds": round(self.seconds, 3),
            "waited_seconds": round(self.waited_seconds, 3),
            "requests": self.requests,
            "rate_limited": self.rate_limited,
            "resources": resources,
        }
        if self.notices:
            shown["notices"] = list(self.notices)
        if self.month is not None:
            shown["month"] = plain(asdict(self.month))
        if self.published is not None:
            shown["published"] = self.published.as_json()
        if self.unpublished is not None:
            shown["unpublished"] = self.unpublished.as_json()
        if self.error is not None:
            shown["error"] = self.error.as_json()
        return shown


def plain(value: Any) -> Any:
    """The value as JSON has it: moments and days as ISO 8601, through mappings and sequences."""
    if isinstance(value, Mapping):
        return {name: plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    return value.isoformat() if isinstance(value, date) else value


class Progress:
    """What one resource's pull has done so far, over all its streams."""

    def __init__(self) -> None:
        self.fates = Landed()
        self.read = self.pending = 0
        self.total: int | None = None
        self.is_proven = True
        self.reason: str | None = None
        self.code: str | None = None

    def commit(self, what: Commit, fates: Landed) -> None:
        """Count one commit."""
        self.fates += fates
        self.read += len(what.records)
        self.pending += fates.listed + len(what.enqueue) - len(what.records) - len(what.gone)
        self.pending = max(0, self.pending)

    def add(self, pulled: Pulled) -> None:
        """Count one stream's end."""
        self.total = (self.total or 0) + pulled.total
        self.is_proven = self.is_proven and pulled.is_proven
        if self.reason is None or (self.code is None and pulled.code is not None):
            self.reason, self.code = pulled.reason, pulled.code
