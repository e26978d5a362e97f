"""A pull's report in words: what became of each resource and why, what to do, how it all ended.

Words alone: nothing is printed here, and nothing is decided.
"""

from __future__ import annotations

from collections.abc import Iterator

from connector.advice import difference, explain
from connector.errors import Stopped
from connector.outcome import PullReport

_WAIT_SECONDS_TOLD = 1.0
"""Waiting for less than this is not worth a word."""


def reasons(report: PullReport) -> Iterator[str]:
    """A line for each resource that is not done, or not as the API counts it: what to do.

    What ended the whole run is left out: `closing` or the error itself says it.
    """
    for name, each in report.resources.items():
        is_told = report.error is not None and each.message == str(report.error)
        if each.outcome == "done" and (differs := difference(each)):
            yield differs
        elif each.outcome not in ("done", "not_started") and not is_told:
            yield f"{name} is {each.outcome}: {explain(each)}"
    not_started = [n for n, each in report.resources.items() if each.outcome == "not_started"]
    if not_started:
        yield f"not started: {', '.join(not_started)}"


def closing(report: PullReport) -> str:
    """One sentence on how the pull ended, what it brought and what it cost."""
    each = report.resources.values()
    new, changed, deleted = (
        sum(getattr(e, n) for e in each) for n in ("new", "changed", "deleted")
    )
    cost = f"{counted(report.requests, 'request')} in {report.seconds:,.1f} s"
    if report.waited_seconds >= _WAIT_SECONDS_TOLD:
        cost += f", {report.waited_seconds:,.0f} s of waiting for the rate limit among them"
    brought = f"{new:,} new, {changed:,} changed, {deleted:,} deleted ({cost})."
    if isinstance(report.error, Stopped):
        pending = sum(e.pending for e in each)
        left = f"{counted(pending, 'record')} still to be read. " if pending else ""
        return f"Stopped: {brought} {left}{explain(report.error)}"
    if report.outcome == "failed":
        return f"Failed: {brought}"
    if report.outcome == "partial":
        done = sum(e.outcome == "done" for e in each)
        return f"Done in part, {done} of {counted(len(each), 'resource')}: {brought}"
    if not new + changed + deleted:
        return f"Nothing to do: nothing has changed since the last pull ({cost})."
    return f"Done: {brought}"


def counted(number: int, noun: str) -> str:
    """The number with its noun, as in "1 record" and "2 records"."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
