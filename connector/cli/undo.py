"""`connector undo` and `resolve`: undo a push, and decide on its unconfirmed rows."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from connector.cli import options
from connector.cli.push import CHANGE_MARGIN, OUTCOMES, print_counts
from connector.cli.session import Command, Session
from connector.cli.terminal import Terminal, describe_cost, shorten
from connector.errors import DONE, PARTIAL, Misused, count_noun, end_sentence
from connector.pushes.run import Decision, DeclaredRecord
from connector.pushes.run import resolve as run_resolve
from connector.pushes.undo import UndoReport
from connector.pushes.undo import undo as run_undo
from connector.settings import Settings
from connector.state.database import Database
from connector.state.journal import Journal
from connector.state.row import GOOD, Row

UNDONE_COLUMNS = ("row", "outcome", "field", "current value", "former value", "id")

UNDONE_SHOWN_MAX = 20
"""Rows to print of each table; `--json` lists all rows."""

UNCONFIRMED_COLUMNS = ("batch", "row", "operation", "who", "code", "found", "since", "file")
UNCONFIRMED_HEADINGS = (
    *("batch", "row", "operation", "identified by", "reason", "possible records", "since"),
    "file",
)
_TEXT_MAX, _WIDE_FROM = 40, 100
"""Maximum width of a value, and the width of a terminal that has room for ids."""

# -- Undo ------------------------------------------------------------------------------------------


@click.command(
    cls=Command,
    examples=("connector undo last", "connector undo 20261122T000029Z-eac3b1 --apply"),
    if_interrupted="Run the same command again to undo the remaining rows.",
)
@click.argument("batch")
@click.option("--apply", "applies", is_flag=True, help="Undo the push. Default: preview only.")
@options.budget
@options.ignore_quota
def undo(session: Session, *, batch: str, **given: Any) -> int:
    """Undo a push, except for records that changed since.

    Restores the earlier values of updated fields, and deletes the records that the push created.
    Fields and records that others changed since are not touched. The command reports each
    row that cannot be undone. A conversion of a lead cannot be undone.

    Previews by default: one read request for each record. With --apply it sends as many writes. Run
    the command again if it was interrupted. BATCH is the name that 'connector push' prints at the
    end, or 'last'.
    """
    settings, terminal = session.load(), session.terminal
    with terminal.progress("undo") as bar:
        report = asyncio.run(run_undo(settings, batch, watch=bar, **given))
    terminal.print_object(report.as_json())
    _print_undone(terminal, report)
    for name, file in _other_batches(settings, report.batch):
        text = f"The same import has another batch that is not undone, of the file {file}."
        terminal.say(f"{text} To undo it too, run: connector undo {name}")
    return report.exit_status


def _other_batches(settings: Settings, batch: str) -> Iterator[tuple[str, str]]:
    """Yield name and file of other batches of the same import with rows that can be undone.

    An import is a file and its corrected reports.
    """
    with Database(settings.folder) as database:
        journal = Journal(database)
        this = journal.batch(batch)
        for each in journal.batches():
            imports = {(one.resource, _import_of(one.file)) for one in (this, each)}
            rows = journal.rows(each.batch) if each.batch != batch and len(imports) == 1 else []
            if any(row.outcome in ("created", "updated") and not row.undone_at for row in rows):
                yield each.batch, each.file


def _import_of(file: str) -> str:
    """Return the name of the file, without the end that marks a report."""
    return re.sub(r"\.report(-?[0-9]+)?\Z", "", Path(file).stem)


def _print_undone(terminal: Terminal, report: UndoReport) -> None:
    """Print the number of rows by outcome, the first changes, problems and a closing sentence."""
    print_counts(terminal, report.counts)
    well = [each for each in report.rows if each.outcome in GOOD and each.outcome != "nothing"]
    troubled = [each for each in report.rows if each.outcome not in GOOD]
    for some in filter(None, (well, troubled)):
        columns = UNDONE_COLUMNS if terminal.columns >= _WIDE_FROM else UNDONE_COLUMNS[:-1]
        width = min(_TEXT_MAX, max(12, (terminal.columns - CHANGE_MARGIN - 14) // 2))
        shown = some[:UNDONE_SHOWN_MAX]
        terminal.print_line()
        lines = [line[: len(columns)] for row in shown for line in _undone_lines(row, width)]
        terminal.print_table(columns, lines)
        if more := len(some) - len(shown):
            terminal.say(f"and {count_noun(more, 'more row')}: --json lists them all")
    for row in troubled[:UNDONE_SHOWN_MAX]:
        for problem in row.problems:
            terminal.warn(f"row {row.number}: {problem.message}. {problem.fix or ''}".rstrip())
    terminal.print_errors(report.error, report.unpublished)
    cost = describe_cost(report.requests, report.seconds)
    count = sum(report.counts.get(name, 0) for name in ("delete", "restore", "partly"))
    if report.error is not None:
        text = f"The undo of {report.batch} is {report.outcome} ({cost}); run it again to continue."
    elif report.is_applied:
        text = f"The undo of {report.batch} is {report.outcome} ({cost})."
    elif count:
        text = f"{count_noun(count, 'row')} would be undone ({cost}). Run the command with --apply"
        text += " to undo."
    else:
        text = f"Nothing to undo ({cost})."
    terminal.say(text)


def _undone_lines(row: Row, width: int) -> Iterator[tuple[object, ...]]:
    """Yield a line for each field of a pushed row, or one if the row has no fields."""
    # A value that another user changed stays, so it has no former value.
    kept = [(each.field, each.found, "") for each in row.problems if each.field]
    changed = [(name, now, shorten(then, width)) for name, now, then in row.changes]
    outcome = OUTCOMES.get(row.outcome, row.outcome)
    for name, now, then in (*changed, *kept):
        yield row.number, outcome, shorten(name, 20), shorten(now, width), then, row.record_id
    if not changed and not kept:
        yield row.number, outcome, None, None, None, row.record_id


# -- Resolve ---------------------------------------------------------------------------------------


@click.command(
    cls=Command,
    examples=(
        "connector resolve",
        "connector resolve 20261122T000029Z-eac3b1 17 --look",
        "connector resolve 20261122T000029Z-eac3b1 17 --resend",
    ),
    if_interrupted="The row stays unconfirmed. Run the same command again.",
)
@click.argument("batch", required=False)
@click.argument("rows", nargs=-1, metavar="[ROW]...", type=click.IntRange(min=2))
@click.option("--look", is_flag=True, help="Search the API again for the record of this row.")
@click.option("--record", metavar="ID", help="ID of the record that this row created or changed.")
@click.option(
    "--force",
    "is_sure",
    is_flag=True,
    help="With --record: accept the record even if its values differ from the row.",
)
@click.option(
    "--resend", is_flag=True, help="Confirm that the API did not apply the row, and send it again."
)
@click.option("--drop", is_flag=True, help="Mark the row as not applied, and do not send it.")
def resolve(
    session: Session, *, batch: str | None, rows: tuple[int, ...], record: str | None,
    is_sure: bool, **chosen: bool,
) -> int:  # fmt: skip
    """Show unconfirmed rows, and resolve them.

    A row is unconfirmed if its answer was lost and its record is not found. It may have been
    applied. Check the record on the platform. Then name it with --record, or send the row again
    with --resend. Without ROW, the command resolves all rows of the BATCH. ROW is the row number in
    the pushed file.
    """
    settings, terminal = session.load(), session.terminal
    words: tuple[Decision, ...] = ("look", "resend", "drop")
    decisions = [word for word in words if chosen[str(word)]]
    if record is not None:
        decisions.append(DeclaredRecord(record, is_sure))
    if batch is None and not decisions:
        return _print_unconfirmed(terminal, settings)
    if batch is None:
        raise Misused(
            "no batch is given for the decision",
            action="Run 'connector resolve' to list the unconfirmed rows, then give their batch.",
        )
    if len(decisions) != 1 or (record is not None and len(rows) != 1):
        wrong = "--record needs exactly one row"
        if not decisions:
            wrong = f"no action is given for the rows of the batch {batch!r}"
        elif len(decisions) > 1:
            wrong = "several actions are given, and a row can have only one"
        action = "Give one of --look, --resend and --drop, or one row and --record ID."
        raise Misused(wrong, action=action)
    if not rows:
        with Database(settings.folder) as database:
            held = Journal(database).unconfirmed() if database.exists else []
        rows = tuple(each.number for each in held if each.batch == batch)
    # Without a wait for late answers, which would show no progress.
    report = asyncio.run(run_resolve(settings, batch, rows, decisions[0], sleep=None))
    settled = [each for each in report.rows if each.number in rows]
    outcomes = {str(each.number): each.outcome for each in settled}
    terminal.print_object({**report.as_json(), "settled": outcomes})
    cells = [(each.number, each.outcome, each.code, each.record_id) for each in settled]
    terminal.print_table(("row", "outcome", "code", "id"), cells)
    for each in settled:
        for problem in each.problems:
            terminal.warn(f"row {each.number}: {problem.message}")
    terminal.print_errors(report.error, report.unpublished)
    return report.exit_status


def _print_unconfirmed(terminal: Terminal, settings: Settings) -> int:
    """Print the unconfirmed rows. Return 3 if there are any, because they need a decision."""
    with Database(settings.folder) as database:
        journal = Journal(database)
        held = journal.unconfirmed() if database.exists else []
        files = {each.batch: each.file for each in journal.batches()} if held else {}
    rows = []
    for each in held:
        who = " ".join(map(str, each.identity.values()))
        found = " ".join(problem.found or "" for problem in each.problems)
        since = each.moved_at.isoformat(timespec="seconds") if each.moved_at else ""
        values = (each.batch, each.number, each.operation, who, each.code, found, since)
        rows.append((*values, files[each.batch]))
    objects = [dict(zip(UNCONFIRMED_COLUMNS, row, strict=True)) for row in rows]
    terminal.print_object({"rows": objects})
    terminal.print_table(UNCONFIRMED_HEADINGS, rows)
    for each in held:
        for problem in each.problems:
            terminal.say(f"{each.batch}, row {each.number}: {end_sentence(problem.message)}")
    terminal.say(f"{count_noun(len(held), 'row')} unconfirmed.")
    return PARTIAL if held else DONE
