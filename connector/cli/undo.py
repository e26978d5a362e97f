"""`connector undo` and `resolve`: undo a push, and decide on its unconfirmed rows."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator
from typing import Any

import click

from connector.cli import options
from connector.cli.push import CHANGE_MARGIN, OUTCOMES, print_counts
from connector.cli.session import Command, RunProgress, Session
from connector.cli.terminal import Terminal, describe_cost, shorten
from connector.errors import Misused, count_noun, end_sentence
from connector.pushes.run import BatchReport, Decision, DeclaredRecord
from connector.pushes.undo import GOOD, UndoneRow, UndoReport
from connector.settings import Settings
from connector.state.database import Database
from connector.state.journal import Journal

UNDONE_COLUMNS = ("row", "operation", "outcome", "field", "current value", "former value", "id")
_UNDONE_WIDE, _UNDONE_WIDE_FROM = ("operation", "id"), 100
"""Columns that need a wide terminal."""

UNDONE_SHOWN_MAX = 20
"""Rows to print of each table; `--json` lists all rows."""

IN_DOUBT_COLUMNS = ("batch", "row", "operation", "who", "code", "found", "since", "file")
IN_DOUBT_HEADINGS = (
    *("batch", "row", "operation", "identified by", "reason", "possible records", "since"),
    "file",
)
_UNDONE_TEXT_MAX = 40

# -- Undo ------------------------------------------------------------------------------------------


@click.command(
    cls=Command,
    examples=("connector undo last", "connector undo 20261122T000029Z-eac3b1 --apply"),
    if_interrupted="Run the same command again to undo the remaining rows.",
)
@click.argument("batch")
@options.apply_option("Undo the push. Default: preview only.")
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
    from connector.pushes.undo import undo as run_undo  # noqa: PLC0415

    settings = session.load()
    with session.terminal.progress("undo") as meter:
        report = asyncio.run(run_undo(settings, batch, watch=RunProgress(meter), **given))
    session.terminal.print_object(report.as_json())
    _print_undone(session.terminal, report)
    return report.exit_status


def _print_undone(terminal: Terminal, report: UndoReport) -> None:
    """Print the number of rows by outcome, the first changes, problems and a closing sentence."""
    print_counts(terminal, report.counts)
    well = [each for each in report.rows if each.outcome in GOOD and each.outcome != "nothing"]
    troubled = [each for each in report.rows if each.outcome not in GOOD]
    for some in (well, troubled):
        if some:
            names = [
                each
                for each in UNDONE_COLUMNS
                if each not in _UNDONE_WIDE or terminal.columns >= _UNDONE_WIDE_FROM
            ]
            width = min(_UNDONE_TEXT_MAX, max(12, (terminal.columns - CHANGE_MARGIN - 14) // 2))
            lines = [
                line for row in some[:UNDONE_SHOWN_MAX] for line in _undone_table_rows(row, width)
            ]
            terminal.print_line()
            terminal.print_table(names, [[line[name] for name in names] for line in lines])
        if len(some) > UNDONE_SHOWN_MAX:
            more = count_noun(len(some) - UNDONE_SHOWN_MAX, "more row")
            terminal.say(f"and {more}: --json lists them all")
    for row in troubled[:UNDONE_SHOWN_MAX]:
        for problem in row.problems:
            terminal.warn(f"row {row.number}: {problem.message}. {problem.fix or ''}".rstrip())
    terminal.print_errors(report.error, publishing_error=report.unpublished)
    terminal.say(_closing_sentence(report))


def _undone_table_rows(row: UndoneRow, width: int) -> Iterator[dict[str, object]]:
    """Yield a table row for each field of a pushed row, or one if the row has no fields."""
    head = [row.number, row.operation, OUTCOMES.get(row.outcome, row.outcome)]
    values: list[list[object]] = [
        [shorten(name, 20), shorten(now, width), shorten(then, width)]
        for name, (now, then) in row.changes.items()
    ]
    # A value that another user changed stays, so it has no former value.
    values += [
        [shorten(each.field, 20), shorten(each.found, width), None]
        for each in row.problems
        if each.field
    ]
    for line in values or [[None, None, None]]:
        yield dict(zip(UNDONE_COLUMNS, [*head, *line, row.record_id], strict=True))


def _closing_sentence(report: UndoReport) -> str:
    """Return a sentence with the outcome and the cost of the undo."""
    cost = describe_cost(report.requests, report.seconds)
    if report.error is not None:
        return f"The undo of {report.batch} is {report.outcome} ({cost}); run it again to continue."
    if report.is_applied:
        return f"The undo of {report.batch} is {report.outcome} ({cost})."
    count = sum(report.counts.get(name, 0) for name in ("delete", "restore", "partly"))
    if not count:
        return f"Nothing to undo ({cost})."
    return (
        f"{count_noun(count, 'row')} would be undone ({cost}). Run the command with"
        " --apply to undo."
    )


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
@click.option(
    "--look", "looks", is_flag=True, help="Search the API again for the record of this row."
)
@click.option("--record", metavar="ID", help="ID of the record that this row created or changed.")
@click.option(
    "--force",
    "is_sure",
    is_flag=True,
    help="With --record: accept the record even if its values differ from the row.",
)
@click.option(
    "--resend",
    "resends",
    is_flag=True,
    help="Confirm that the API did not apply the row, and send it again.",
)
@click.option(
    "--drop", "drops", is_flag=True, help="Mark the row as not applied, and do not send it."
)
def resolve(
    session: Session,
    *,
    batch: str | None,
    rows: tuple[int, ...],
    looks: bool,
    record: str | None,
    is_sure: bool,
    resends: bool,
    drops: bool,
) -> int:
    """Show unconfirmed rows, and resolve them.

    A row is unconfirmed if its answer was lost and its record is not found. It may have been
    applied. Check the record on the platform. Then name it with --record, or send the row again
    with --resend. Without ROW, the command resolves all rows of the BATCH. ROW is the row number in
    the pushed file.
    """
    settings = session.load()
    chosen: dict[Decision, bool] = {"look": looks, "resend": resends, "drop": drops}
    decisions = [name for name, is_chosen in chosen.items() if is_chosen]
    if record is not None:
        decisions.append(DeclaredRecord(record, is_sure))
    if batch is None:
        if decisions:
            raise Misused(
                "no batch is given for the decision",
                action="Run 'connector resolve' to list the unconfirmed rows, then give"
                " their batch.",
            )
        return _print_unconfirmed(session.terminal, settings)
    if len(decisions) != 1 or (record is not None and len(rows) != 1):
        raise Misused(
            _describe_wrong_decision(len(decisions), batch),
            action="Give one of --look, --resend and --drop, or one row and --record ID.",
        )
    if not rows:
        with Database(settings.folder) as database:
            held = Journal(database).unconfirmed() if database.exists else []
            rows = tuple(each.number for each in held if each.batch == batch)
    from connector.pushes.run import resolve as run_resolve  # noqa: PLC0415

    # Without a wait for late answers, which would show no progress.
    report = asyncio.run(run_resolve(settings, batch, rows, decisions[0], sleep=None))
    _print_resolved(session.terminal, report, rows)
    return report.exit_status


def _describe_wrong_decision(decisions: int, batch: str) -> str:
    """Return a sentence on the number of decisions, or on a record without exactly one row."""
    if decisions == 0:
        return f"no action is given for the rows of the batch {batch!r}"
    if decisions > 1:
        return "several actions are given, and a row can have only one"
    return "--record needs exactly one row"


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
    terminal.print_object({"rows": [dict(zip(IN_DOUBT_COLUMNS, row, strict=True)) for row in rows]})
    terminal.print_table(IN_DOUBT_HEADINGS, rows)
    for each in held:
        for problem in each.problems:
            terminal.say(f"{each.batch}, row {each.number}: {end_sentence(problem.message)}")
    terminal.say(f"{count_noun(len(held), 'row')} unconfirmed.")
    return 3 if held else 0


def _print_resolved(terminal: Terminal, report: BatchReport, numbers: Collection[int]) -> None:
    """Print the outcome of each of these rows."""
    settled = [each for each in report.rows if each.number in numbers]
    outcomes = {str(each.number): each.outcome for each in settled}
    terminal.print_object({**report.as_json(), "settled": outcomes})
    cells = [(each.number, each.outcome, each.code, each.record_id) for each in settled]
    terminal.print_table(("row", "outcome", "code", "id"), cells)
    for each in settled:
        for problem in each.problems:
            terminal.warn(f"row {each.number}: {problem.message}")
    terminal.print_errors(report.error, publishing_error=report.unpublished)
