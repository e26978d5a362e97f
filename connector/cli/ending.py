"""A pull's report in words: what became of each resource and why, what to do, how it all ended.

Words alone: nothing is printed here, and nothing is decided.
"""

from __future__ import annotations

from collections.abc import Iterator

from connector.advice import difference, explain
from connector.engine.ask import PER_PAGE
from connector.engine.quota import requests_left
from connector.errors import Stopped
from connector.outcome import PullReport
from connector.words import counted

_WAIT_SECONDS_TOLD = 1.0
"""Waiting for less than this is not worth a word."""


def reasons(report: PullReport) -> Iterator[str]:
    """A line for each file that was lost and made again, and for each resource that is not done, or
    not as the API counts it: what to do.

    What ended the whole run is left out: `closing` or the error itself says it.
    """
    for notice in report.notices:
        yield f"{notice}; find out why ('connector doctor')"
    for name, each in report.resources.items():
        is_told = report.error is not None and each.message == str(report.error)
        if each.outcome == "done" and (differs := difference(each)):
            yield differs
        elif each.outcome not in ("done", "not_started") and not is_told:
            yield f"{name} is {each.outcome}: {explain(each)}"
        if erased := each.anomalies.get("suppressed"):
            yield (
                f"{name}: {counted(erased, 'record')} of people who were erased came again, and"
                " landed without what tells of them; erase them on the platform as well"
            )
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
        return f"Stopped: {brought} {_left(report)}{explain(report.error)}"
    if report.outcome == "failed":
        return f"Failed: {brought}"
    if report.outcome == "partial":
        done = sum(e.outcome == "done" for e in each)
        return f"Done in part, {done} of {counted(len(each), 'resource')}: {brought}"
    if not new + changed + deleted:
        return f"Nothing to do: nothing has changed since the last pull ({cost})."
    return f"Done: {brought}"


def _left(report: PullReport) -> str:
    """What a stopped pull leaves to be read, and what that costs; nothing where nothing waits."""
    begun = [each for each in report.resources.values() if each.outcome != "not_started"]
    pending = sum(each.pending for each in begun)
    if not pending:
        return ""
    requests = sum(
        requests_left(
            pending=each.pending,
            live=each.live,
            is_loaded=each.bookmark_after is not None,
            per_page=PER_PAGE,
        )
        for each in begun
        if each.pending
    )
    # A list that was not read to its end may hold more, and so may one that was not begun.
    is_known = len(begun) == len(report.resources) and all(e.bookmark_after for e in begun)
    cost = f"{'about' if is_known else 'at least'} {counted(requests, 'request')}"
    return f"{counted(pending, 'record')} still to be read, for {cost}{_share(requests, report)}. "


def _share(requests: int, report: PullReport) -> str:
    limit = report.month.limit if report.month is not None else None
    return "" if limit is None else f" ({requests / limit:.1%} of the month's)"
