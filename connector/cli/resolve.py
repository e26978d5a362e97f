"""`connector resolve`: rows of pushes whose fate is unknown, and a person's word on them.

Parses, calls, prints.
"""

from __future__ import annotations

import asyncio

import click

from connector.cli.session import Command, Session
from connector.cli.terminal import Terminal
from connector.errors import Misused, count_noun
from connector.ledger.journal import Journal
from connector.ledger.journal_reads import RowRecord
from connector.ledger.ledger import Ledger
from connector.pulls.advice import explain
from connector.pulls.outcome import plain
from connector.pushes.batch import resolve as run_resolve
from connector.pushes.batch_report import BatchReport, Decision, Declared
from connector.settings.model import Settings

COLUMNS = ("batch", "row", "operation", "code", "since", "file")


@click.command(
    cls=Command,
    examples=(
        "connector resolve",
        "connector resolve 20261122T000029Z-eac3b1 17 --look",
        "connector resolve 20261122T000029Z-eac3b1 17 --resend",
    ),
    if_interrupted="The row stays in doubt; run the same command again.",
    checks_alerts=True,
)
@click.argument("batch", required=False)
@click.argument("row", required=False, type=click.IntRange(min=2))
@click.option("--look", "looks", is_flag=True, help="Look for the record once more.")
@click.option("--record", metavar="ID", help="It was applied: this is the record.")
@click.option("--resend", "resends", is_flag=True, help="It was not applied: send it again.")
@click.option("--drop", "drops", is_flag=True, help="Give the row up; nothing is sent.")
def resolve(
    session: Session,
    *,
    batch: str | None,
    row: int | None,
    looks: bool,
    record: str | None,
    resends: bool,
    drops: bool,
) -> int:
    """Show the rows that are in doubt; with BATCH and ROW, settle one.

    A row is in doubt when it was sent, was not answered, and is not found: it may have been
    applied after all. Look in the application, then say which record it is, or that it is to be
    sent again. The row is its number in the file that was pushed.
    """
    settings = session.load()
    terminal = session.terminal
    said: list[Decision] = []
    said += ["look"] if looks else []
    said += [Declared(record)] if record else []
    said += ["resend"] if resends else []
    said += ["drop"] if drops else []
    if batch is None or row is None:
        if said or batch is not None:
            raise Misused(
                "a decision needs the batch and the row that it is about",
                action="Run 'connector resolve' for the rows in doubt, then name one.",
            )
        return _list(terminal, settings)
    if len(said) != 1:
        raise Misused(
            f"{len(said)} decisions were given on row {row}",
            action="Give one of --look, --record ID, --resend and --drop.",
        )
    report = asyncio.run(run_resolve(settings, batch, row, said[0]))
    _print(terminal, report, row)
    return report.exit_status


def _list(terminal: Terminal, settings: Settings) -> int:
    """The rows in doubt. 3 where there are some, since they need a person."""
    with Ledger(settings.folder) as ledger:
        journal = Journal(ledger)
        held = journal.held()
        files = {each.batch: each.file for each in journal.batches()}
    if terminal.is_json:
        shown = [
            {
                "batch": each.batch,
                "row": each.number,
                "operation": each.operation,
                "code": each.code,
                "since": plain(each.moved_at),
                "file": files[each.batch],
            }
            for each in held
        ]
        terminal.print_object({"rows": shown})
    terminal.print_table(COLUMNS, [_cells(each, files) for each in held])
    for each in held:
        for problem in each.problems:
            terminal.say(f"{each.batch}, row {each.number}: {problem.message}")
    terminal.say(f"{count_noun(len(held), 'row')} in doubt.")
    return 3 if held else 0


def _cells(row: RowRecord, files: dict[str, str]) -> list[object]:
    moved = row.moved_at.isoformat(timespec="seconds")
    return [row.batch, row.number, row.operation, row.code, moved, files[row.batch]]


def _print(terminal: Terminal, report: BatchReport, number: int) -> None:
    settled = next(each for each in report.rows if each.number == number)
    if terminal.is_json:
        terminal.print_object({**report.as_json(), "row": number, "row_outcome": settled.outcome})
    terminal.print_table(
        ("row", "outcome", "code", "id"),
        [[number, settled.outcome, settled.code, settled.record_id]],
    )
    for problem in settled.problems:
        terminal.warn(problem.message)
    if report.unpublished is not None:
        terminal.warn(explain(report.unpublished))
    if report.error is not None and not terminal.is_json:
        terminal.fail(report.error)
