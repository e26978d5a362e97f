"""Progress, counts and report of a run, with the next action for each problem."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import date, datetime
from typing import TYPE_CHECKING, Any, Literal

from connector.catalog import declaration
from connector.errors import ConnectorError, Forbidden, TryAgain, codes_of, count_noun
from connector.log import shorten_name
from connector.pulls.pull import NOT_READ, ONLY_THESE, TOO_FEW, UNSORTED
from connector.state.quota import MonthUse
from connector.state.runs import Event, ResourceRun
from connector.warehouse.queries import UnreadRecord

if TYPE_CHECKING:
    # The type only: importing this module must not load the runner of models.
    from connector.models.publish import PublishResult

RunOutcome = Literal["done", "partial", "stopped", "failed"]
ResourceOutcome = Literal["done", "partial", "skipped", "stopped", "failed", "not_started"]


@dataclass(frozen=True, slots=True)
class Progress:
    """Progress of a run for a resource, or for a `batch` of its rows.

    A run reports it at the start, after each commit or row, and when a resource ends.

    Attributes:
        read: Number of details or rows that are done.
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


Watch = Callable[[Progress], None]
"""Callback for the progress of a run. It is called between requests and must not block."""


@dataclass(frozen=True, slots=True)
class PullReport:
    """Result of a pull by resource.

    Attributes:
        error: Error that ended the pull early.
        month: Requests of the month; None if they could not be read.
        published: Result of publishing; None if nothing was published.
        unpublished: Error of publishing.
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
    anomalies: Mapping[str, tuple[Event, ...]] = field(default_factory=dict)

    @property
    def exit_status(self) -> int:
        """Return 0 done, 1 failed, 3 partial or not published, 4 stopped; or the error's own."""
        if self.outcome == "failed" and self.error is not None:
            return self.error.exit_status
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
            "anomalies": to_json_value(
                {name: list(map(asdict, each)) for name, each in self.anomalies.items()}
            ),
            "month": None if self.month is None else to_json_value(asdict(self.month)),
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


# -- What to do ------------------------------------------------------------------------------------
# A run's record has error codes, and a code leads to its kind of error and to the next action.


UNREAD_SHOWN_MAX = 3
"""Maximum number of unreadable records that one sentence names."""

ANOMALIES_SHOWN_MAX = 5
"""Maximum number of anomalies of one resource that one sentence names."""

QUIET_KINDS = frozenset(("unproven", "mass_deletion", "late"))
"""Kinds of event that are reported elsewhere or already allowed for."""

_UNPROVEN = "Run the same command again. It continues from here, so no record is missed."

_UNREADABLE = ConnectorError.codes["record_unreadable"]
_UNREPEATED = {
    UNSORTED: "Contact the platform's support. Until then every pull reads the whole list.",
    TOO_FEW: "Ask the platform's support which records are counted and not listed. Another pull"
    " does not change this.",
    ONLY_THESE: "Run 'connector pull' without ids to verify all records.",
    NOT_READ: f"Run the same command again. If it fails again: {_UNREADABLE}",
    "the API has no record": "Check the ids: the API has no records with these ids.",
    "gone from the API": "Nothing to do: the records are marked as deleted.",
    "not loaded": "Check the ids, or run 'connector pull', which loads the parent records first.",
}
"""Actions by the beginning of a reason, if a retry would have the same result."""


def explain(error_or_result: ConnectorError | ResourceRun) -> str:
    """Return a sentence on the error or result, and a sentence on the next action."""
    if isinstance(error_or_result, ConnectorError):
        happened, action = str(error_or_result), error_or_result.action
    else:
        happened, action = (
            error_or_result.message or f"{error_or_result.resource} is not verified",
            next_action(error_or_result),
        )
    return f"{happened.rstrip().removesuffix('.')}. {action}"


def explain_together(resources: Sequence[ResourceRun]) -> Iterator[str]:
    """Yield one line per cause; resources with the same cause share a line."""
    groups: dict[tuple[str, str], list[ResourceRun]] = {}
    for each in resources:
        cause = each.error_code or each.resource
        groups.setdefault((cause, next_action(each)), []).append(each)
    for group in groups.values():
        names = ", ".join(each.resource for each in group)
        outcomes = ", ".join(dict.fromkeys(each.outcome for each in group))
        yield f"{names} {outcomes}: {explain(group[0])}"


def describe_unread(unread: Sequence[UnreadRecord]) -> str:
    """Return for example "2 records could not be read: ID (REASON), ..."."""
    descriptions = []
    for each in unread[:UNREAD_SHOWN_MAX]:
        runs = f", in {each.failed_runs} runs so far" if each.is_broken else ""
        descriptions.append(f"{shorten_name(each.id)} ({each.error}{runs})")
    more = len(unread) - len(descriptions)
    noun = count_noun(len(unread), "record could not be read", "records could not be read")
    return f"{noun}: {', '.join(descriptions)}{f' and {more:,} more' if more else ''}"


def describe_anomalies(resource: str, events: Sequence[Event]) -> str:
    """Return a sentence on undocumented fields and values in the records of a resource."""
    descriptions = [
        f"{each.kind}: {each.detail}" + (f" (record {shorten_name(each.id)})" if each.id else "")
        for each in events[:ANOMALIES_SHOWN_MAX]
    ]
    more = len(events) - len(descriptions)
    return f"{resource} has {'; '.join(descriptions)}{f'; and {more:,} more' if more else ''}."


def describe_row_difference(result: ResourceRun) -> str | None:
    """Return a sentence if the number of loaded rows differs from the API's; else None."""
    if result.total is None:
        return f"The API's total of {result.resource} is unknown: no list was read to its end."
    if result.live == result.total:
        return None
    return (
        f"landing.{result.resource} has {result.live:,} live rows and the API has {result.total:,}:"
        " records changed during the pull, or the list's total is wrong. The next pull compares"
        " them again."
    )


def can_retry(result: ResourceRun) -> bool:
    """Return True if the next pull may succeed without any change."""
    return issubclass(_class_and_action(result.error_code)[0], TryAgain)


def next_action(outcome: ResourceRun | str | None) -> str:
    """Return the next action for a resource with a problem, or for an error's code."""
    if not isinstance(outcome, ResourceRun):
        return _class_and_action(outcome)[1]
    if outcome.error_code is None:
        message = outcome.message or ""
        found = (_UNREPEATED[each] for each in _UNREPEATED if message.startswith(each))
        return next(found, _UNPROVEN)
    kind, action = _class_and_action(outcome.error_code)
    if issubclass(kind, Forbidden):
        scope = declaration(outcome.resource).read_scope()
        return Forbidden("", status=403, scope=scope).action
    return action


def _class_and_action(code: str | None) -> tuple[type[ConnectorError], str]:
    """Return the error class and the action of an error code."""
    found = {known: (kind, action) for known, kind, action in codes_of(ConnectorError)}
    return found.get(code or "", (ConnectorError, ConnectorError.action))
