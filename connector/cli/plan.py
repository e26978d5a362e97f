"""`connector plan`: what a pull would cost, before it is made.

Parses, calls, prints.
"""

from __future__ import annotations

import asyncio
import re
from datetime import timedelta
from typing import Any

import click

from connector.cli import session as options
from connector.cli.session import Command, Session
from connector.cli.terminal import Terminal
from connector.errors import count_noun
from connector.pulls.price import PlanReport
from connector.pulls.price import plan as run_plan

COLUMNS = ("resource", "requests", "lists", "details", "changed", "deleted", "queued", "total")
_UNITS = {"m": "minutes", "h": "hours", "d": "days"}


class Every(click.ParamType[timedelta]):
    """A length of time, as in 30m, 1h or 1d."""

    name = "length of time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The time as a `timedelta`; refuses anything else, with what is allowed."""
        found = re.fullmatch(r"([1-9][0-9]{0,3})([mhd])", str(value))
        if found is None:
            self.fail(f"{value!r} is not a length of time: 30m, 1h or 1d, say.", param, ctx)
        return timedelta(**{_UNITS[found[2]]: int(found[1])})


@click.command(
    cls=Command,
    examples=("connector plan", "connector plan candidates", "connector plan --every 1h"),
)
@options.resources
@click.option(
    "--every",
    type=Every(),
    metavar="TIME",
    help="Also what a pull every so often (30m, 1h, 1d) would cost by the month's end.",
)
def plan(session: Session, *, resources: tuple[str, ...], every: timedelta | None) -> int:
    """Say what a pull would cost: requests, minutes, and its part of the month.

    How many records have changed is found with a few requests, and nothing is landed.
    """
    settings = session.load()
    terminal = session.terminal
    with terminal.progress("plan"):
        report = asyncio.run(run_plan(settings, resources, every=every))
    _print(terminal, report)
    return 0


def _print(terminal: Terminal, report: PlanReport) -> None:
    if terminal.is_json:
        terminal.print_object(report.as_json())
    rows = [
        [name, *(getattr(each, column) for column in COLUMNS[1:])]
        for name, each in report.prices.items()
    ]
    terminal.print_table(COLUMNS, rows)
    for name in report.skipped:
        terminal.warn(f"{name} is skipped: the key's scopes do not cover it")
    first = [name for name, each in report.prices.items() if each.is_first]
    if first:
        terminal.say(f"To be loaded for the first time: {', '.join(first)}.")
    terminal.say(
        f"A pull now: {_cost(report)}. This plan took {count_noun(report.spent, 'request')}."
    )
    schedule = report.schedule
    if schedule is not None:
        share = _share(schedule.requests, report)
        terminal.say(
            f"Until the month ends: {count_noun(schedule.pulls, 'pull')} of at least"
            f" {count_noun(schedule.quiet_requests, 'request')}, and {schedule.changes_a_day:,.0f}"
            f" changes a day: about {count_noun(schedule.requests, 'request')}{share}."
        )


def _cost(report: PlanReport) -> str:
    parts = [f"about {count_noun(report.requests, 'request')}{_share(report.requests, report)}"]
    if report.minutes is not None:
        parts.append(f"{report.minutes:,.1f} minutes at {report.limit_per_minute:,} a minute")
    return ", ".join(parts)


def _share(requests: int, report: PlanReport) -> str:
    limit = report.month.limit if report.month is not None else None
    return f", {requests / limit:.1%} of the month's" if limit else ""
