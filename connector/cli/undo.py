"""`connector undo`: what would take a push back, and with `--apply`, doing it.

Parses, calls, prints. What can be taken back is decided in `connector/engine/reversal.py`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import click

from connector.cli import session as options
from connector.cli.session import Command, Session
from connector.cli.terminal import Meter, Terminal
from connector.errors import count_noun
from connector.errors_api import Stopped
from connector.pulls.advice import explain
from connector.pushes.undo import undo as run_undo
from connector.pushes.undo_report import GOOD, UndoneRow, UndoReport

COLUMNS = ("row", "operation", "outcome", "field", "now", "then", "id")
SHOWN_MAX = 20
"""Rows that are told one by one on the screen, of those that are well and of the others; `--json`
has them all.
"""

_TOLD = {"delete": "to delete", "restore": "to restore", "not_reached": "not reached"}
_TEXT_MAX = 40


class _Follower:
    """Moves a meter: one step for each row."""

    def __init__(self, meter: Meter) -> None:
        self._meter, self._ended = meter, 0

    def began(self, batch: str, rows: int) -> None:
        """The rows are about to be looked at."""
        self._meter.tell(f"undo {batch}")
        self._meter.expect(rows)

    def moved(self, ended: int, rows: int, requests: int) -> None:
        """Show how many rows have ended."""
        self._meter.tell(f"undo, {requests} requests")
        self._meter.advance(ended - self._ended)
        self._ended = ended

    def waiting(self, until: object, rows: int) -> None:
        """An undo waits for nothing."""


@click.command(
    cls=Command,
    examples=(
        "connector undo last",
        "connector undo 20261122T000029Z-eac3b1 --apply",
    ),
    if_interrupted="Run the same command again; it goes on with what is left.",
    checks_alerts=True,
)
@click.argument("batch")
@click.option("--apply", "applies", is_flag=True, help="Do it. Without: say what would be done.")
@options.budget
@options.ask_anyway
def undo(
    session: Session, *, batch: str, applies: bool, budget: int | None, asks_anyway: bool
) -> int:
    """Take back what the push BATCH (or 'last') did, where nobody has touched it since.

    Fields of an update get the values that they had before, unless somebody else has changed them
    since; records that the push created are deleted, unless anything of them has changed since.
    What cannot be taken back is told row by row. A conversion of a lead cannot be undone.

    A preview sends nothing but reads, one for each record; with --apply come as many writes. An
    undo that was cut off is run again. 'connector push' names its batch when it ends.
    """
    settings = session.load()
    terminal = session.terminal
    with terminal.progress("undo") as meter:
        report = asyncio.run(
            run_undo(
                settings,
                batch,
                applies=applies,
                budget=budget,
                asks_anyway=asks_anyway,
                watch=_Follower(meter),
            )
        )
    if terminal.is_json:
        terminal.print_object(report.as_json())
    _print(terminal, report)
    return report.exit_status


def _print(terminal: Terminal, report: UndoReport) -> None:
    """The counts, the rows as far as they fit, and a closing sentence."""
    counts = [[_TOLD.get(name, name), count] for name, count in sorted(report.counts.items())]
    terminal.print_table(("outcome", "rows"), counts)
    well = [each for each in report.rows if each.outcome in GOOD and each.outcome != "nothing"]
    troubled = [each for each in report.rows if each.outcome not in GOOD]
    for some in (well, troubled):
        if some:
            terminal.print_line("")
            terminal.print_table(
                COLUMNS, [line for row in some[:SHOWN_MAX] for line in _lines(row)]
            )
        if len(some) > SHOWN_MAX:
            terminal.say(
                f"and {count_noun(len(some) - SHOWN_MAX, 'more row')}: --json has them all"
            )
    for row in troubled[:SHOWN_MAX]:
        for problem in row.problems:
            terminal.warn(f"row {row.number}: {problem.message}. {problem.fix or ''}".rstrip())
    error = report.error
    if error is not None and isinstance(error, Stopped):
        terminal.warn(f"{error} {error.action}")
    elif error is not None and not terminal.is_json:
        terminal.fail(error)
    if report.unlanded:
        terminal.warn(
            f"{count_noun(report.unlanded, 'answer')} could not be landed: run 'connector sweep'."
        )
    if report.unpublished is not None:
        terminal.warn(explain(report.unpublished))
    terminal.say(_closing(report))


def _lines(row: UndoneRow) -> Iterator[list[object]]:
    """The row's lines: one for each field that goes back and each that does not, or one."""
    head = [row.number, row.operation, _TOLD.get(row.outcome, row.outcome)]
    told: list[list[object]] = [
        [name, _short(a), _short(b)] for name, (a, b) in row.changes.items()
    ]
    # What somebody else has changed stays: there is no other value for it to have.
    told += [[each.field, _short(each.found), None] for each in row.problems if each.field]
    for field, now, then in told or [[None, None, None]]:
        yield [*head, field, now, then, row.record_id]


def _closing(report: UndoReport) -> str:
    cost = f"{count_noun(report.requests, 'request')} in {report.seconds:,.1f} s"
    if report.error is not None:
        return f"The undo of {report.batch} is {report.outcome} ({cost}); run it again to go on."
    if report.is_applied:
        return f"The undo of {report.batch} is {report.outcome} ({cost})."
    count = sum(report.counts.get(name, 0) for name in ("delete", "restore", "partly"))
    if not count:
        return f"Nothing would be taken back ({cost})."
    return f"{count_noun(count, 'row')} would be taken back ({cost}). Do it with --apply."


def _short(value: object) -> str:
    text = "(empty)" if value is None else str(value)
    return text if len(text) <= _TEXT_MAX else text[: _TEXT_MAX - 1] + "…"
