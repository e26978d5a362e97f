"""`connector push`: what a spreadsheet would do, and with `--apply`, doing it.

Parses, calls, prints. What becomes of a row, and why, is decided in `connector/pushes`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any

import click

from connector.cli import session as options
from connector.cli.pull import Follower
from connector.cli.session import Command, Session
from connector.cli.terminal import Meter, Terminal
from connector.engine.push_states import Mode
from connector.errors import EncodingUnknown, Misused, count_noun
from connector.errors_api import Stopped
from connector.pulls.advice import explain
from connector.pushes.dry_run import ADD_COLUMNS, Preview
from connector.pushes.options import DECIMALS, POLICIES, PUSH_OPTIONS, PushOptions
from connector.pushes.push import Manner, PushReport, Watches
from connector.pushes.push import push as run_push
from connector.pushes.template import template as write_template
from connector.spreadsheet.mapping import saved_from
from connector.spreadsheet.mapping_file import save_map
from connector.spreadsheet.problems import COLUMN_MISSING

# -- Push told -------------------------------------------------------------------------------------
# A push's report in words: what each column was taken for, what became of the rows, what to do.


SHOWN_MAX = 10
"""Rows that are told one by one on the screen; the report has them all."""

_FORESEEN = {"create": "to create", "update": "to update", "convert": "to convert"}
_TEXT_MAX = 60


def say_mapping(terminal: Terminal, report: PushReport) -> None:
    """Say which columns fill nothing, and which fields a column was taken for by another name."""
    columns = report.preview.columns
    for each in columns.columns:
        if each.how == "alias":
            terminal.say(f"Column {each.heading!r} is taken for {each.target.name}.")
    for left in columns.unmapped:
        likely = "; ".join(f"{name}: {why}" for name, why in left.suggestions)
        hint = f" It may be meant for {likely}" if likely else ""
        terminal.warn(f"column {left.heading!r} is left out: {left.reason}.{hint}")
    if merged := report.preview.table.merged:
        terminal.warn(
            f"merged cells: {', '.join(merged)}. Only the first cell of each range has a value, and"
            " the others are blank: unmerge them and fill them in, if that is meant."
        )


def print_report(terminal: Terminal, report: PushReport) -> None:
    """The counts as a table, the first changes and problems, and a closing sentence."""
    rows = [[_FORESEEN.get(name, name), count] for name, count in sorted(report.counts.items())]
    terminal.print_table(("outcome", "rows"), rows)
    if report.batch is None:
        _print_changes(terminal, report.preview)
    for line in _problems(report):
        terminal.warn(line)
    error = report.error or (report.batch.error if report.batch is not None else None)
    if error is not None and not terminal.is_json:
        if isinstance(error, Stopped):
            terminal.warn(f"{error} {error.action}")
        else:
            terminal.fail(error)
    if report.unpublished is not None:
        terminal.warn(explain(report.unpublished))
    for line in _closing(report):
        terminal.say(line)


def _print_changes(terminal: Terminal, preview: Preview) -> None:
    """The first records that would change, field by field."""
    changes = [
        [number, field, _short(old), _short(new)]
        for number, fields in islice(preview.rows.changes.items(), SHOWN_MAX)
        for field, (old, new) in fields.items()
    ]
    if changes:
        terminal.print_table(("row", "field", "now", "then"), changes)
    if preview.rows.changing > SHOWN_MAX:
        terminal.say(f"and {preview.rows.changing - SHOWN_MAX:,} more rows that would change")


def _problems(report: PushReport) -> Iterator[str]:
    """The first rows with a problem, and how many rows have which."""
    summary, preview = report.summary, report.preview
    if preview.uncreatable:
        resource, missing = preview.asked.resource, ", ".join(preview.columns.missing)
        yield (
            f"{count_noun(preview.uncreatable, 'row')} cannot make {resource}: that needs"
            f" {missing}, and no heading is that. {ADD_COLUMNS}"
        )
    for each in summary.first[:SHOWN_MAX]:
        for problem in each.problems:
            if problem.code == COLUMN_MISSING:
                continue
            where = f"{problem.column}: " if problem.column else ""
            received = f" (received {_short(problem.received)})" if problem.received else ""
            yield f"row {each.number}, {where}{problem.message}{received}"
    if summary.troubled > SHOWN_MAX:
        told = ", ".join(f"{code} {count:,}" for code, count in summary.codes.most_common())
        yield f"{count_noun(summary.troubled, 'row')} have problems: {told}"


def _closing(report: PushReport) -> Iterator[str]:
    preview, batch = report.preview, report.batch
    if report.file is not None:
        yield f"The report: {report.file}"
    if batch is None and report.error is None:
        yield _foreseen(preview)
        return
    sent = f"{count_noun(report.requests, 'request')} in {report.seconds:,.1f} s"
    if batch is None:
        yield f"Nothing was sent: the pull before it did not end ({sent})."
        return
    held = report.counts.get("held", 0)
    if held:
        yield f"{count_noun(held, 'row')} in doubt: 'connector resolve' shows and settles them."
    if batch.exit_status == 3:
        yield "Correct the report's rows and push the report; what was applied is not sent again."
    yield f"Batch {batch.batch} is {report.outcome} ({sent})."


def _foreseen(preview: Preview) -> str:
    if not preview.sent:
        return "Nothing would be sent."
    share = f", {preview.month_share:.1%} of the month's" if preview.month_share else ""
    minutes = ""
    if preview.minutes is not None:
        minutes = f", {preview.minutes:,.1f} minutes at the limit that was last seen"
    compared = f"what was landed at {preview.pulled_at}" if preview.pulled_at else "nothing landed"
    return (
        f"{count_noun(preview.sent, 'row')} would be sent,"
        f" for about {count_noun(preview.requests, 'request')}"
        f"{share}{minutes}. Compared with {compared}. Send them with --apply."
    )


def _short(value: object) -> str:
    text = "(empty)" if value is None else str(value)
    return text if len(text) <= _TEXT_MAX else text[: _TEXT_MAX - 1] + "…"


# -- Push ------------------------------------------------------------------------------------------
#


class _Follower:
    """Moves a meter as a batch goes on: one step for each row that has ended."""

    def __init__(self, meter: Meter) -> None:
        self._meter, self._ended = meter, 0

    def began(self, batch: str, rows: int) -> None:
        """The rows are about to be sent."""
        self._ended = 0
        self._meter.tell(f"push {batch}")
        self._meter.expect(rows)

    def moved(self, ended: int, rows: int, requests: int) -> None:
        """Show how many rows have ended."""
        self._meter.tell(f"push, {requests} requests")
        self._meter.advance(ended - self._ended)
        self._ended = ended

    def waiting(self, until: datetime, rows: int) -> None:
        """Say why nothing moves."""
        self._meter.tell(
            f"{count_noun(rows, 'row')} in doubt, looking again at {until:%H:%M:%S} UTC"
        )


@click.command(
    cls=Command,
    checks_alerts=True,
    examples=(
        "connector push candidates people.xlsx --mode create",
        "connector push candidates people.xlsx --mode create --apply",
        "connector push candidates people.csv --mode upsert --match email --apply",
        "connector push companies firms.csv jobs jobs.csv --mode create --apply",
        "connector push leads won.csv --mode convert --apply",
    ),
    if_interrupted="Every row is in the journal; run the same command again to go on.",
)
@click.argument("files", nargs=-1, required=True, metavar="RESOURCE FILE...")
@options.mode()
@options.match
@click.option("--apply", "applies", is_flag=True, help="Send it. Without: say what would be sent.")
@click.option(
    "--map",
    "map_file",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help=PUSH_OPTIONS["map_file"],
)
@click.option(
    "--save-map",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write down what each column is taken for, to be changed, shared and given with --map.",
)
@click.option(
    "--ignore",
    type=options.Names(),
    default="",
    metavar="COLUMN,...",
    help=PUSH_OPTIONS["ignore"],
)
@options.content_type
@click.option("--sheet", metavar="NAME", help=PUSH_OPTIONS["sheet"])
@click.option("--encoding", metavar="NAME", help=PUSH_OPTIONS["encoding"])
@click.option("--delimiter", metavar="NAME", help=PUSH_OPTIONS["delimiter"])
@click.option("--date-format", metavar="FORM", help=PUSH_OPTIONS["date_format"])
@click.option("--decimal", type=click.Choice(tuple(DECIMALS)), help=PUSH_OPTIONS["decimal"])
@click.option("--clear", metavar="TOKEN", help=PUSH_OPTIONS["clear"])
@click.option(
    "--overwrite",
    is_flag=True,
    help=PUSH_OPTIONS["overwrite"],
)
@click.option("--again", is_flag=True, help=PUSH_OPTIONS["again"])
@click.option(
    "--in-doubt",
    type=click.Choice(POLICIES),
    default="hold",
    show_default=True,
    help=PUSH_OPTIONS["in_doubt"],
)
@click.option(
    "--marker-field",
    metavar="FIELD",
    help=PUSH_OPTIONS["marker_field"],
)
@click.option("--no-pull", is_flag=True, help="Compare with what is landed, however old.")
@click.option(
    "--report",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Where the report goes (default: beside the file).",
)
@options.budget
@options.ask_anyway
def push(session: Session, *, files: tuple[str, ...], save_map: Path | None, **given: Any) -> int:
    """Check a spreadsheet, say what it would do, and do it with --apply.

    Every row is checked before the first request, and everything that is wrong with it is told
    at once. The report beside the file has the file's own columns, and what became of each row:
    correct it, and push the report. What was applied is not sent again. Several files are pushed
    together, those first that others refer to. A conversion of a lead cannot be undone.
    """
    settings = session.load()
    terminal = session.terminal
    said = PushOptions(**{name: given[name] for name in PUSH_OPTIONS})
    asked = [said.asked(resource, path) for resource, path in _pairs(files)]
    manner = Manner(
        applies=given["applies"],
        pulls=not given["no_pull"],
        report=given["report"],
        terms=said.terms(),
        asks_anyway=given["asks_anyway"],
    )
    with terminal.progress("push") as meter:
        try:
            reports = asyncio.run(
                run_push(
                    settings,
                    asked,
                    manner,
                    budget=given["budget"],
                    watches=Watches(_Follower(meter), Follower(meter), terminal.say),
                )
            )
        except EncodingUnknown as error:
            # The person whose file it is can tell whether the letters are right.
            for sample in error.samples:
                terminal.warn(f"read as {error.offered}: {sample}")
            raise
    if save_map is not None:
        _save(save_map, reports)
    for each in reports:
        for notice in each.pulled.notices if each.pulled is not None else ():
            terminal.warn(f"{notice}; find out why ('connector doctor')")
        say_mapping(terminal, each)
        print_report(terminal, each)
    if terminal.is_json:
        shown = [each.as_json() for each in reports]
        terminal.print_object(shown[0] if len(shown) == 1 else {"files": shown})
    return max(each.exit_status for each in reports)


def _pairs(files: tuple[str, ...]) -> list[tuple[str, Path]]:
    """The files with their resources."""
    if len(files) % 2:
        raise Misused(
            f"resources and files come in pairs, and {len(files)} words were given:"
            f" {' '.join(files)}",
            action="Say, for example: connector push candidates people.csv --mode create",
        )
    return [(resource, Path(name)) for resource, name in zip(files[::2], files[1::2], strict=True)]


def _save(path: Path, reports: Sequence[PushReport]) -> None:
    if len(reports) > 1:
        raise Misused("one map was asked for of several files", action="Push them one by one.")
    save_map(path, saved_from(reports[0].preview.columns))


# -- Template --------------------------------------------------------------------------------------
# `connector template`: an empty table to fill in.
#
# Parses, calls, prints.


@click.command(
    cls=Command,
    examples=(
        "connector template candidates",
        "connector template jobs --out jobs.csv",
        "connector template content_items --type news",
    ),
)
@click.argument("resource")
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="The file to write, csv or xlsx by its name (default: RESOURCE.xlsx).",
)
@options.mode(default="create")
@options.match
@options.content_type
def template(
    session: Session,
    *,
    resource: str,
    out: Path | None,
    mode: Mode,
    match: tuple[str, ...],
    content_type: str | None,
) -> int:
    """Write an empty table with every column that pushing RESOURCE takes.

    Each column has its rule, its allowed values as a list to choose from, and an example. In a
    workbook all columns are text, so that leading zeros and a plus stay what was typed.
    """
    path = out or Path(f"{resource}.xlsx")
    columns = write_template(
        session.load(), resource, path, mode=mode, match=match, parent=content_type
    )
    terminal = session.terminal
    if terminal.is_json:
        terminal.print_object({"file": str(path), "columns": columns})
    terminal.say(
        f"{path} has {columns} columns. Fill it in, then: "
        f"connector push {resource} {path} --mode {mode}"
    )
    return 0
