"""Hints: what happened and what to do, for an error or for the result of a resource.

A run's record stores error codes. This module maps a code to its kind of error again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from connector.catalog import declaration
from connector.errors import ConnectorError, codes_of, count_noun
from connector.errors_api import Forbidden, TryAgain
from connector.log import shortened
from connector.pulls.incremental_scan import NO_END
from connector.pulls.resource_pull import NOT_READ, ONLY_THESE, UNSORTED
from connector.warehouse.pull_commands import Event
from connector.warehouse.runs import ResourceRun
from connector.warehouse.state import UnreadRecord

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
    NO_END: "Contact the platform's support: the API's lists do not contain their length.",
    ONLY_THESE: "Run 'connector pull' without ids to verify all records.",
    NOT_READ: f"Run the same command again. If it fails again: {_UNREADABLE}",
    "the API has no record": "Check the ids: the API has no records with these ids.",
    "gone from the API": "Nothing to do: the records are marked as deleted.",
    "not loaded": "Check the ids, or run 'connector pull', which loads the parent records first.",
}
"""Actions by the beginning of a reason, if a retry would have the same result."""


def explain(error_or_result: ConnectorError | ResourceRun) -> str:
    """Return a sentence on an error or a result, and a sentence on the next action."""
    if isinstance(error_or_result, ConnectorError):
        happened, action = str(error_or_result), error_or_result.action
    else:
        happened, action = (
            error_or_result.message or f"{error_or_result.resource} is not verified",
            next_action(error_or_result),
        )
    return f"{happened.rstrip().removesuffix('.')}. {action}"


def explain_together(resources: Sequence[ResourceRun]) -> Iterator[str]:
    """Return a line for each cause, so that an outage of many resources is one line."""
    groups: dict[tuple[str, str], list[ResourceRun]] = {}
    for each in resources:
        cause = each.error_code or each.resource
        groups.setdefault((cause, next_action(each)), []).append(each)
    for group in groups.values():
        names = ", ".join(each.resource for each in group)
        outcomes = ", ".join(dict.fromkeys(each.outcome for each in group))
        yield f"{names} {outcomes}: {explain(group[0])}"


def describe_unread(unread: Sequence[UnreadRecord]) -> str:
    """Return the part of a sentence on unreadable records: which, why, and how often."""
    descriptions = []
    for each in unread[:UNREAD_SHOWN_MAX]:
        runs = f", in {each.failed_runs} runs so far" if each.is_broken else ""
        descriptions.append(f"{shortened(each.id)} ({each.error}{runs})")
    more = len(unread) - len(descriptions)
    noun = count_noun(len(unread), "record could not be read", "records could not be read")
    return f"{noun}: {', '.join(descriptions)}{f' and {more:,} more' if more else ''}"


def describe_anomalies(resource: str, events: Sequence[Event]) -> str:
    """Return a sentence on undocumented fields and values in the records of a resource."""
    descriptions = [
        f"{each.kind}: {each.detail}" + (f" (record {shortened(each.id)})" if each.id else "")
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
        " records changed during the pull. The next pull resolves the difference."
    )


def can_retry(result: ResourceRun) -> bool:
    """Return True if the same request may succeed later without any change."""
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
    found = {known: (kind, action) for known, kind, action in codes_of(ConnectorError)}
    return found.get(code or "", (ConnectorError, ConnectorError.action))
