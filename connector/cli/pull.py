"""`connector pull`: bring the landing up to date, and say what became of each resource.

Parses, calls, prints. What is read, and why, is the run's own affair (`connector/pulls/run.py`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import click

from connector.cli import session as options
from connector.cli.publish import BuildFollower, unshared
from connector.cli.session import Command, Session
from connector.cli.terminal import Meter, Terminal
from connector.engine.commands import PER_PAGE
from connector.engine.pull import Manner
from connector.engine.quota import requests_left
from connector.errors import Misused, count_noun
from connector.errors_api import Stopped
from connector.privacy.harm import harmed
from connector.pulls.advice import difference, explain
from connector.pulls.outcome import PullReport
from connector.pulls.run import pull as run_pull
from connector.pulls.run_context import select
from connector.warehouse.runs import ResourceRun

# -- Ending ----------------------------------------------------------------------------------------
# A pull's report in words: what became of each resource and why, what to do, how it all ended.
#
# Words alone: nothing is printed here, and nothing is decided.


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
                f"{name}: {count_noun(erased, 'record')} of people who were erased came again, and"
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
    cost = f"{count_noun(report.requests, 'request')} in {report.seconds:,.1f} s"
    if report.waited_seconds >= _WAIT_SECONDS_TOLD:
        cost += f", {report.waited_seconds:,.0f} s of waiting for the rate limit among them"
    brought = f"{new:,} new, {changed:,} changed, {deleted:,} deleted ({cost})."
    if isinstance(report.error, Stopped):
        return f"Stopped: {brought} {_left(report)}{explain(report.error)}"
    if report.outcome == "failed":
        return f"Failed: {brought}"
    if report.outcome == "partial":
        done = sum(e.outcome == "done" for e in each)
        return f"Done in part, {done} of {count_noun(len(each), 'resource')}: {brought}"
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
    cost = f"{'about' if is_known else 'at least'} {count_noun(requests, 'request')}"
    return (
        f"{count_noun(pending, 'record')} still to be read, for {cost}{_share(requests, report)}. "
    )


def _share(requests: int, report: PullReport) -> str:
    limit = report.month.limit if report.month is not None else None
    return "" if limit is None else f" ({requests / limit:.1%} of the month's)"


# -- Pull ------------------------------------------------------------------------------------------
#


_LOGGER = logging.getLogger(__name__)

COLUMNS = (
    "resource",
    "outcome",
    "proven",
    "requests",
    "new",
    "changed",
    "unchanged",
    "deleted",
    "live",
    "total",
    "pending",
)
"""The table's columns, all of them named as in `sync.run_resources`."""


class Follower:
    """Moves a meter as a run goes on: one step for each record that is read."""

    def __init__(self, meter: Meter) -> None:
        self._meter = meter
        # Steps of the resources before, and of this one.
        self._before = self._read = 0

    def began(self, resource: str) -> None:
        """The resource's turn has come."""
        self._before, self._read = self._before + self._read, 0
        self._meter.tell(resource)

    def moved(self, resource: str, read: int, pending: int, requests: int) -> None:
        """Show how many records are read, of those known of so far."""
        _LOGGER.debug(f"{resource}: {read} read, {pending} pending, {requests} requests")
        self._meter.tell(f"{resource}, {requests} requests")
        self._meter.expect(self._before + read + pending)
        self._meter.advance(read - self._read)
        self._read = read

    def ended(self, done: ResourceRun) -> None:
        """The resource has ended; the table will say how."""
        _LOGGER.debug(f"{done.resource}: {done.outcome}, {done.requests} requests")


@click.command(
    cls=Command,
    checks_alerts=True,
    examples=(
        "connector pull",
        "connector pull jobs candidates",
        "connector pull --budget 500",
        "connector pull --scrub 200",
        "connector pull candidates --full",
        "connector pull --json | jq .",
    ),
    if_interrupted="What has landed is kept; run the same command again to continue.",
)
@options.resources
@options.budget
@click.option(
    "--full", "is_full", is_flag=True, help="Read every record again, whatever is proven."
)
@click.option(
    "--scrub",
    "scrub_requests",
    type=click.IntRange(min=0),
    default=0,
    metavar="N",
    help="Spend N requests more on looking again at what was verified longest ago, and then as many"
    " as it takes to read what that finds wrong.",
)
@click.option(
    "--ids",
    metavar="ID,...",
    help="Read these records of one RESOURCE again, and nothing else.",
)
@click.option(
    "--reread-erased",
    "rereads",
    is_flag=True,
    help="Read the records again that an earlier erasure of somebody else may have overwritten, and"
    " nothing else.",
)
@options.accept_deletes
@options.ask_anyway
def pull(
    session: Session,
    *,
    resources: tuple[str, ...],
    ids: str | None,
    rereads: bool,
    budget: int | None,
    asks_anyway: bool,
    **manner: Any,
) -> int:
    """Bring the landed copy up to date with the API, and publish it.

    Reads what is new or has changed since the last pull, finds what was deleted, and publishes
    recruitment.duckdb for analysts. Without a RESOURCE it pulls all of them. It may be stopped at
    any moment: what has landed is kept, and the next pull goes on from there. One pull of an
    account runs at a time; another one says who is at it, and sends nothing.
    """
    wanted: Sequence[str] | Mapping[str, Sequence[str]] = _ids(ids)
    if rereads:
        if wanted or any(manner.values()):
            raise Misused(
                "--reread-erased is given with something else to read",
                action="Give it alone, or with the resources that are meant.",
            )
        names = select(resources)
        found = harmed(session.load())
        wanted = {name: ids for name, ids in found.items() if name in names}
        if not wanted:
            session.terminal.say("No text was overwritten by an erasure: nothing is to be read.")
            return 0
    return pull_and_print(
        session,
        resources,
        manner=Manner(**manner),
        ids=wanted,
        budget=budget,
        asks_anyway=asks_anyway,
    )


def pull_and_print(
    session: Session, resources: tuple[str, ...], *, command: str = "pull", **asked: Any
) -> int:
    """Pull as `asked` (the options of `pull`), print what became of it, and return the
    exit status.
    """
    settings = session.load()
    terminal = session.terminal
    with terminal.progress(command) as meter:
        watch = Follower(meter)
        asked |= {"watch": watch, "building": BuildFollower(meter)}
        report = asyncio.run(run_pull(settings, resources, command=command, **asked))
    print_report(terminal, report)
    return report.exit_status


def _ids(asked: str | None) -> tuple[str, ...]:
    """The ids of `--ids`, parted by commas."""
    return tuple(filter(None, (each.strip() for each in (asked or "").split(","))))


def print_report(terminal: Terminal, report: PullReport) -> None:
    """The table, a line for each resource that did not end well, and a closing sentence."""
    if terminal.is_json:
        terminal.print_object(report.as_json())
    started = [each for each in report.resources.values() if each.outcome != "not_started"]
    rows = [[getattr(each, name) for name in COLUMNS] for each in started]
    terminal.print_table(COLUMNS, rows)
    for line in reasons(report):
        terminal.warn(line)
    error = report.error
    # With --json the object has the error already, and there must be no second one.
    if error is not None and not isinstance(error, Stopped) and not terminal.is_json:
        terminal.fail(error)
    unpublished = report.unpublished
    if unpublished is not None and unpublished is not error:
        terminal.warn(explain(unpublished))
    for line in unshared(report.published):
        terminal.warn(line)
    terminal.say(closing(report))


# -- Sweep -----------------------------------------------------------------------------------------
# `connector sweep`: a pull that compares every page of the lists as well.
#
# Parses, calls, prints, as `connector pull` does.


@click.command(
    cls=Command,
    checks_alerts=True,
    examples=("connector sweep", "connector sweep candidates --accept-deletes"),
    if_interrupted="What has landed is kept; run the same command again to continue.",
)
@options.resources
@options.budget
@options.accept_deletes
def sweep(
    session: Session, *, resources: tuple[str, ...], budget: int | None, accepts_deletes: bool
) -> int:
    """Pull, and compare every page of the lists with what is landed.

    A pull looks for deletions where the counts differ; a sweep looks everywhere, for one request
    per hundred records, and finds what cancels out in a count. What differs is read again; only
    what the API itself says is gone is marked as deleted.
    """
    manner = Manner(sweeps=True, accepts_deletes=accepts_deletes)
    return pull_and_print(session, resources, command="sweep", manner=manner, budget=budget)
