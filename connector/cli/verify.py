"""`connector verify`: how the landing compares with the API, record by record.

Parses, calls, prints.
"""

from __future__ import annotations

import asyncio

import click

from connector.cli import session as options
from connector.cli.session import Command, Session
from connector.cli.terminal import Meter, Terminal
from connector.engine.comparison import Comparison
from connector.errors import count_noun
from connector.errors_api import Stopped
from connector.operations.verify import VerifyReport
from connector.operations.verify import verify as run_verify
from connector.privacy.harm import REREAD
from connector.warehouse.runs import ResourceRun

COLUMNS = ("resource", "equal", "compared", "missing", "extra", "stale", "unhydrated", "unread")
SHOWN_MAX = 10
"""Differing records of one resource that are named on the screen; `--json` has them all."""


class _Follower:
    """Tells which resource is being compared."""

    def __init__(self, meter: Meter) -> None:
        self._meter = meter

    def began(self, resource: str) -> None:
        """The resource's turn has come."""
        self._meter.tell(resource)

    def moved(self, resource: str, read: int, pending: int, requests: int) -> None:
        """Nothing lands while verifying."""

    def ended(self, done: ResourceRun) -> None:
        """Nothing is recorded of a verification."""


@click.command(
    cls=Command,
    examples=("connector verify", "connector verify candidates --json > differences.json"),
    if_interrupted="Nothing was changed; what was compared until then is lost.",
)
@options.resources
@options.budget
def verify(session: Session, *, resources: tuple[str, ...], budget: int | None) -> int:
    """Compare everything with the API, record by record, and change nothing.

    It costs a request for each record and for each hundred of them. Exit status 0 says that the
    landing equals the API, 3 that it does not. People who change records meanwhile make
    differences that are none; the next pull brings them.
    """
    settings = session.load()
    terminal = session.terminal
    with terminal.progress("verify") as meter:
        report = asyncio.run(run_verify(settings, resources, budget=budget, watch=_Follower(meter)))
    _print(terminal, report)
    return report.exit_status


def _print(terminal: Terminal, report: VerifyReport) -> None:
    if terminal.is_json:
        terminal.print_object(report.as_json())
    rows = [_row(name, each) for name, each in report.streams.items()]
    terminal.print_table(COLUMNS, rows)
    for name, each in report.streams.items():
        for line in _differences(each):
            terminal.warn(f"{name}: {line}")
    error = report.error
    if error is not None and not terminal.is_json:
        if isinstance(error, Stopped):
            terminal.warn(str(error))
        else:
            terminal.fail(error)
    for name, count in report.harmed.items():
        terminal.warn(
            f"{name}: {count_noun(count, 'record')} may have lost a text to an earlier erasure of"
            f" somebody else, which no pull notices. {REREAD}"
        )
    cost = f"{count_noun(report.requests, 'request')} in {report.seconds:,.1f} s"
    if report.is_equal:
        terminal.say(f"The landing equals the API ({cost}).")
    elif error is None:
        terminal.say(
            f"The landing differs from the API ({cost}). Run 'connector pull', then again."
        )


def _row(name: str, each: Comparison) -> tuple[object, ...]:
    counts = (len(each.missing), len(each.extra), len(each.stale))
    return (name, each.is_equal, each.compared, *counts, len(each.unhydrated), len(each.unread))


def _differences(each: Comparison) -> list[str]:
    """Sentences on the differing records, the first few of each kind."""
    lines = []
    for kind, ids in (("missing", each.missing), ("extra", each.extra)):
        if ids:
            lines.append(f"{kind}: {_listed(ids)}")
    for id, names in list(each.stale.items())[:SHOWN_MAX]:
        lines.append(f"{id} differs in {', '.join(names)}")
    if len(each.stale) > SHOWN_MAX:
        lines.append(f"and {len(each.stale) - SHOWN_MAX:,} more that differ")
    return lines


def _listed(ids: list[str]) -> str:
    more = f" and {len(ids) - SHOWN_MAX:,} more" if len(ids) > SHOWN_MAX else ""
    return ", ".join(ids[:SHOWN_MAX]) + more
