"""`connector push`, `template`, `undo` and `resolve`: write to the API by rows.

Parses, calls, prints. What becomes of a row, and why, is decided in `connector/pushes`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar, get_args

import click

from connector.cli import session as options
from connector.cli.session import Command, RunProgress, Session
from connector.cli.terminal import Terminal, shorten
from connector.errors import EncodingUnknown, Misused, closed, count_noun
from connector.ledger.journal import Journal
from connector.ledger.ledger import Ledger
from connector.ledger.push_states import Mode
from connector.pushes.batch_report import BatchReport, Decision, DeclaredRecord
from connector.pushes.dry_run import ADD_COLUMNS, Preview
from connector.pushes.dry_run import template as write_template
from connector.pushes.options import DECIMALS, POLICIES, PUSH_OPTIONS, PushOptions
from connector.pushes.push import PushReport, PushRunOptions, ReportRows
from connector.pushes.push import push as run_push
from connector.pushes.undo_report import GOOD, UndoneRow, UndoReport
from connector.settings.model import Settings
from connector.spreadsheet.mapping import to_saved_map
from connector.spreadsheet.mapping_file import save_map
from connector.spreadsheet.problems import COLUMN_MISSING
from connector.spreadsheet.report import GroupKey, ProblemGroup

SHOWN_MAX = 10
"""Rows that are told one by one on the screen; the report has them all."""

CREATES_SHOWN_MAX = 3
"""Rows to create that are printed field by field."""

UNDONE_COLUMNS = ("row", "operation", "outcome", "field", "current value", "former value", "id")
_UNDONE_WIDE, _UNDONE_WIDE_FROM = ("operation", "id"), 100
"""Columns of it that a narrow terminal has no room for; `--json` has them all."""

UNDONE_SHOWN_MAX = 20
"""Rows that are told one by one on the screen, of those that are well and of the others; `--json`
has them all.
"""

IN_DOUBT_COLUMNS = ("batch", "row", "operation", "who", "code", "found", "since", "file")
IN_DOUBT_HEADINGS = (
    *("batch", "row", "operation", "identified by", "reason", "possible records", "since"),
    "file",
)

_EXAMPLE_MAX, _UNDONE_TEXT_MAX = 40, 40
_CHANGE_MARGIN = 34
"""Letters of a table of changes beside its two texts."""

_OUTCOMES = {
    "create": "to create",
    "update": "to update",
    "convert": "to convert",
    "delete": "to delete",
    "restore": "to restore",
    "not_reached": "not reached",
}
"""Outcomes in words, where they are not words already."""

F = TypeVar("F", bound=Callable[..., Any])

_MANNERS: dict[str, dict[str, Any]] = {
    "mode": {"type": click.Choice(get_args(Mode)), "required": True},
    "match": {"type": options.comma_separated, "default": "", "metavar": "FIELD,..."},
    "mapping_file": {"type": click.Path(path_type=Path, dir_okay=False), "metavar": "FILE"},
    "ignore": {"type": options.comma_separated, "default": "", "metavar": "COLUMN,..."},
    "content_type": {"metavar": "SLUG"},
    "header_row": {"type": click.IntRange(min=1), "metavar": "N"},
    "date_format": {"metavar": "FORM"},
    "century": {"type": int, "metavar": "YEAR"},
    "region": {"metavar": "CODE"},
    "decimal": {"type": click.Choice(tuple(DECIMALS))},
    "clear": {"metavar": "TOKEN"},
    "unconfirmed": {"type": click.Choice(POLICIES), "default": "hold", "show_default": True},
    "marker_field": {"metavar": "FIELD"},
}
"""How options of a push are given; others are a switch, or else text with NAME for a metavar."""

_FLAGS = {"mapping_file": "--mapping", "content_type": "--type"}


def push_options(*names: str, **more: Any) -> Callable[[F], F]:
    """Options of a push by their names in `PUSH_OPTIONS`, with `more` said of each."""
    switches = {each.name for each in fields(PushOptions) if each.default is False}

    def decorate(command: F) -> F:
        for name in reversed(names):
            given = {"is_flag": True} if name in switches else {"metavar": "NAME"}
            given = _MANNERS.get(name, given) | {"help": PUSH_OPTIONS[name]} | more
            flag = _FLAGS.get(name, f"--{name.replace('_', '-')}")
            command = click.option(flag, name, **given)(command)
        return command

    return decorate


# -- Push ------------------------------------------------------------------------------------------


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
    if_interrupted="No row is lost or sent twice. Run the same command again to continue.",
)
@click.argument("files", nargs=-1, required=True, metavar="RESOURCE FILE...")
@push_options("mode", "match")
@options.apply_option("Send the rows. Default: preview only.")
@push_options("mapping_file")
@options.file_option(
    "--save-mapping", about="Write the column mapping to a file, for editing and for --mapping."
)
@push_options("ignore", "accept_warnings", "content_type", "sheet", "header_row", "encoding")
@push_options("delimiter", "date_format", "century", "decimal", "region", "clear")
@push_options("overwrite", "resend", "unconfirmed", "marker_field")
@click.option("--no-pull", is_flag=True, help="Compare with the local copy without pulling first.")
@click.option(
    "--no-wait",
    is_flag=True,
    help="If the answer to a row is lost, do not wait for its record. The row stays unconfirmed.",
)
@click.option(
    "--report",
    type=click.Choice(get_args(ReportRows)),
    default="problems",
    show_default=True,
    help="Rows in the report of a preview: only rows with problems, or all.",
)
@options.file_option("--output", about="Path of the report. [default: next to the file]")
@options.budget
@options.ask_anyway
def push(
    session: Session, *, files: tuple[str, ...], save_mapping: Path | None, **given: Any
) -> int:
    """Check a spreadsheet and send its rows to the API.

    Previews by default: it checks every row, reports all problems together, and sends nothing. Add
    --apply to send the valid rows. The report is written next to the file, with the file's
    columns and the result of each row. Correct the rows in the report and push it: rows that were
    already applied are not sent again. Several files are pushed in the order in which they refer to
    each other. A conversion of a lead cannot be undone.
    """
    settings, terminal = session.load(), session.terminal
    said = PushOptions(**{name: given[name] for name in PUSH_OPTIONS})
    asked = [said.push_file(resource, path) for resource, path in _resource_and_file(files)]
    manner = PushRunOptions(
        applies=given["applies"],
        pulls=not given["no_pull"],
        settles=not given["no_wait"],
        output=given["output"],
        report=given["report"],
        terms=said.policy(),
        asks_anyway=given["asks_anyway"],
    )
    with terminal.progress("push") as meter:
        follower, budget = RunProgress(meter), given["budget"]
        pushing = run_push(
            settings, asked, manner, budget=budget, watch=follower, waits=terminal.say
        )
        try:
            reports = asyncio.run(pushing)
        except EncodingUnknown as error:
            # The person whose file it is can tell whether the letters are right.
            for sample in error.samples:
                terminal.warn(f'read as {error.offered}: "{sample}"')
            raise
    maps = _write_maps(save_mapping, reports, has_map=said.mapping_file is not None)
    for each in reports:
        for notice in each.pulled.notices if each.pulled is not None else ():
            terminal.warn(f"{notice}. Run 'connector doctor' to find the cause")
        _print_reading(terminal, each)
        _print(terminal, each)
        if (written := maps.get(each.preview.asked.path)) is not None:
            terminal.say(f"Column mapping (edit it and give it with --mapping): {written}")
    told = [each.as_json() for each in reports]
    terminal.print_object(told[0] if len(told) == 1 else {"files": told})
    return max(each.exit_status for each in reports)


def _resource_and_file(files: tuple[str, ...]) -> list[tuple[str, Path]]:
    """The files with their resources."""
    if len(files) % 2:
        raise Misused(
            f"each resource needs a file, but {len(files)} values were given: {' '.join(files)}",
            action="Example: connector push candidates people.csv --mode create",
        )
    return [(resource, Path(name)) for resource, name in zip(files[::2], files[1::2], strict=True)]


def _write_maps(
    wanted: Path | None, reports: Sequence[PushReport], *, has_map: bool
) -> dict[Path, Path]:
    """Write down what each file's columns were taken for; where, by the file.

    Beside the file, unless a map was given; one that is there already is left as it is.
    """
    if wanted is not None and len(reports) > 1:
        raise Misused(
            "--save-mapping works with one file only", action="Push the files one by one."
        )
    written = {}
    for each in reports:
        file, columns = each.preview.asked.path, each.preview.columns
        path = wanted or file.with_name(f"{file.stem.removesuffix('.report')}.map.toml")
        if wanted is not None or not (has_map or path.exists()):
            row = each.preview.asked.header_row
            save_map(path, replace(to_saved_map(columns), header_row=row))
            written[file] = path
    return written


def _print_reading(terminal: Terminal, report: PushReport) -> None:
    """Say how the file was read: what was taken for what, and what fills nothing."""
    preview, columns = report.preview, report.preview.columns
    for notice in preview.notices:
        terminal.say(notice)
    aliases = [each for each in columns.columns if each.how == "alias"]
    if aliases:
        told = ", ".join(f"{each.heading!r} is {each.target.name}" for each in aliases)
        terminal.say(f"Recognised columns: {told}.")
    has_no_headings = any(each.code == "headings" for each in preview.questions)
    for left in () if has_no_headings else columns.unmapped:
        likely = "; ".join(f"{name} ({why})" for name, why in left.suggestions)
        hint = f" It may be the field {likely}." if likely else ""
        terminal.warn(f"column {left.heading!r} is not imported: {left.reason}.{hint}")
    if columns.missing:
        resource, missing = preview.asked.resource, ", ".join(columns.missing)
        count = preview.uncreatable
        rows = f": {count_noun(count, 'row')} cannot create {resource}" if count else ""
        terminal.warn(f"the file has no column for {missing}{rows}. {ADD_COLUMNS}")
    if merged := preview.table.merged:
        terminal.warn(
            f"the file has merged cells: {', '.join(merged)}. Only the first cell of each range "
            f"has a value."
            " Unmerge the cells and fill in the others if they need the value."
        )


def _print(terminal: Terminal, report: PushReport) -> None:
    """The counts as a table, the first changes and problems, and a closing sentence."""
    _print_counts(terminal, report.counts)
    if report.batch is None:
        _print_changes(terminal, report.preview)
    summary = report.summary
    previewed = report.preview.summary
    if summary.troubled:
        have = "row has an error and is" if summary.troubled == 1 else "rows have errors and are"
        refused = f"{summary.troubled:,} {have} not sent:"
        _print_groups(terminal, summary.problems, refused)
    if previewed.warned:
        have = "row has a warning" if previewed.warned == 1 else "rows have warnings"
        _print_groups(terminal, previewed.warnings, f"{previewed.warned:,} {have}:")
    for question in report.preview.questions:
        terminal.warn(f"{question.message}. {question.repair}")
    error = report.error or (report.batch.error if report.batch is not None else None)
    terminal.end(error, unpublished=report.unpublished)
    for line in _closing_sentence(report):
        terminal.say(line)


def _print_counts(terminal: Terminal, counts: Mapping[Any, int]) -> None:
    rows = [[_OUTCOMES.get(name, name), count] for name, count in sorted(counts.items())]
    terminal.print_table(("outcome", "rows"), rows)


def _print_changes(terminal: Terminal, preview: Preview) -> None:
    """Print the first records that would be created or changed, field by field."""
    rows = preview.rows
    for number, values in islice(rows.creates.items(), CREATES_SHOWN_MAX):
        terminal.print_line(f"Row {number} would create:")
        for name, value in values.items():
            terminal.print_line(f"  {name}: {shorten(value, max(20, terminal.columns - 30))}")
    width = max(20, (terminal.columns - _CHANGE_MARGIN) // 2)
    changes = [
        [number, shorten(field, 20), shorten(old, width), shorten(new, width)]
        for number, changed in islice(rows.changes.items(), SHOWN_MAX)
        for field, (old, new) in changed.items()
    ]
    if changes:
        terminal.print_table(("row", "field", "now", "then"), changes)
    if rows.changing > SHOWN_MAX:
        terminal.say(f"and {rows.changing - SHOWN_MAX:,} more rows that would change")


def _print_groups(
    terminal: Terminal, groups: Mapping[GroupKey, ProblemGroup], heading: str
) -> None:
    """Print the problems by kind, the most frequent first, with what to do."""
    shown = [each for (code, _), each in groups.items() if code != COLUMN_MISSING]
    if not shown:
        return
    terminal.say(heading)
    for group in sorted(shown, key=lambda each: -each.count)[:SHOWN_MAX]:
        problem = group.problem
        where = f"{problem.column}, " if problem.column else ""
        for line in group.lines:
            terminal.say(f"  {where}{closed(line)}")
        if problem.allowed:
            terminal.say(f"    Allowed: {problem.allowed}.")
        hints = (group.fix, _HINTS.get(problem.code))
        if advice := " ".join(closed(each) for each in hints if each):
            terminal.say(f"    {advice}")
    if len(shown) > SHOWN_MAX:
        more = count_noun(len(shown) - SHOWN_MAX, "more kind")
        terminal.say(f"  {more} of problems: see the report")


_HINTS: Mapping[str, str] = {
    "ambiguous_date": "--date-format dmy or mdy sets the order for all dates.",
    "ambiguous_number": "--decimal dot or comma sets the separator for all numbers.",
    "decimal_sign": "--decimal dot or comma sets the separator for all numbers.",
    "two_digit_year": "--century 1930 reads the years as 1930 to 2029.",
    "unknown_value": "A column mapping (--mapping) can translate values.",
    "value_not_accepted": "A column mapping (--mapping) can translate values.",
    "says_nothing": "To import the word itself, keep it in a column mapping (--mapping).",
    "number_in_text": "If no digit is missing, add whole_numbers = true to a column mapping.",
    "no_time_zone": "A column mapping (--mapping) can set the time zone of a column.",
    "record_unknown": "If the record is new, run 'connector pull' first.",
    "record_not_read": "Run 'connector pull' first.",
    "reference_unknown": "If the record is new, run 'connector pull' first.",
    "duplicate_in_warehouse": "--mode upsert with --match updates records that exist.",
    "person_erased": "'connector erase --release' removes the person from the list of erasures.",
}
"""Options of the command that help with a problem, by its code."""


def _closing_sentence(report: PushReport) -> Iterator[str]:
    batch = report.batch
    if report.file is not None:
        yield f"Report: {report.file}"
    if leads := report.counts.get("convert", 0) + report.counts.get("converted", 0):
        yield f"{count_noun(leads, 'conversion')}: a conversion cannot be undone."
    if report.is_held_back:
        questions = "question" if len(report.preview.stopping) == 1 else "questions"
        yield f"Nothing was sent. Answer the {questions} above first."
        return
    if batch is None and report.error is None:
        yield _preview_text(report.preview)
        return
    sent = _describe_cost(report)
    if batch is None:
        yield f"Nothing was sent, because the pull before the push did not finish ({sent})."
        return
    held = report.counts.get("held", 0)
    if held:
        yield (
            f"{count_noun(held, 'row')} unconfirmed. Run 'connector resolve' to show and "
            "resolve them."
        )
    if batch.exit_status == 3:
        yield "Correct the rows in the report and push it. Applied rows are not sent again."
    yield f"Batch {batch.batch} is {report.outcome} ({sent})."


def _preview_text(preview: Preview) -> str:
    if not preview.sent:
        return "No row is ready to be sent."
    cost = f"about {count_noun(preview.requests, 'request')}"
    if preview.month_share:
        cost += f", {preview.month_share:.1%} of the month's quota"
    if preview.minutes is not None and preview.minutes >= 1:
        cost += f", {preview.minutes:,.0f} minutes at the last known rate limit"
    compared = "the local copy is empty"
    if preview.pulled_at:
        compared = f"compared with the copy of {preview.pulled_at:.16}"
    rows = preview.summary.rows
    verb = "is" if preview.sent == 1 else "are"
    first = "Run the command with --apply to send them."
    if preview.stopping:
        questions = "question" if len(preview.stopping) == 1 else "questions"
        first = f"Answer the {questions} above, then run the command with --apply."
    ready = f"{preview.sent:,} of {count_noun(rows, 'row')} {verb} ready"
    rest = ""
    if preview.rows.reported and preview.sent < rows:
        rest = " Correct the other rows in the report and push the report too."
    return f"{ready} ({cost}; {compared}). {first}{rest}"


def _describe_cost(report: PushReport | UndoReport) -> str:
    return f"{count_noun(report.requests, 'request')} in {report.seconds:,.1f} s"


# -- Template --------------------------------------------------------------------------------------


@click.command(
    cls=Command,
    examples=(
        "connector template candidates",
        "connector template jobs --out jobs.csv",
        "connector template content_items --type news",
    ),
)
@click.argument("resource")
@options.file_option("--out", about="File to write, .csv or .xlsx. [default: RESOURCE.xlsx]")
@push_options("mode", required=False, default="create", show_default=True)
@push_options("match", "content_type")
def template(
    session: Session,
    *,
    resource: str,
    out: Path | None,
    mode: Mode,
    match: tuple[str, ...],
    content_type: str | None,
) -> int:
    """Write an empty spreadsheet with all columns of RESOURCE.

    Each column shows its rule, a list of the allowed values, and an example. In a workbook all
    columns are text, so leading zeros and plus signs are kept.
    """
    path, settings = out or Path(f"{resource}.xlsx"), session.load()
    columns = write_template(settings, resource, path, mode=mode, match=match, parent=content_type)
    session.terminal.print_object({"file": path, "columns": columns})
    session.terminal.say(
        f"{path} has {columns} columns. Fill it in, then: "
        f"connector push {resource} {path} --mode {mode}"
    )
    return 0


# -- Undo ------------------------------------------------------------------------------------------


@click.command(
    cls=Command,
    examples=("connector undo last", "connector undo 20261122T000029Z-eac3b1 --apply"),
    if_interrupted="Run the same command again to undo the remaining rows.",
    checks_alerts=True,
)
@click.argument("batch")
@options.apply_option("Undo the push. Default: preview only.")
@options.budget
@options.ask_anyway
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
    """The counts, the rows as far as they fit, and a closing sentence."""
    _print_counts(terminal, report.counts)
    well = [each for each in report.rows if each.outcome in GOOD and each.outcome != "nothing"]
    troubled = [each for each in report.rows if each.outcome not in GOOD]
    for some in (well, troubled):
        if some:
            names = [
                each
                for each in UNDONE_COLUMNS
                if each not in _UNDONE_WIDE or terminal.columns >= _UNDONE_WIDE_FROM
            ]
            width = min(_UNDONE_TEXT_MAX, max(12, (terminal.columns - _CHANGE_MARGIN - 14) // 2))
            lines = [line for row in some[:UNDONE_SHOWN_MAX] for line in _undone_lines(row, width)]
            terminal.print_line()
            terminal.print_table(names, [[line[name] for name in names] for line in lines])
        if len(some) > UNDONE_SHOWN_MAX:
            more = count_noun(len(some) - UNDONE_SHOWN_MAX, "more row")
            terminal.say(f"and {more}: --json lists them all")
    for row in troubled[:UNDONE_SHOWN_MAX]:
        for problem in row.problems:
            terminal.warn(f"row {row.number}: {problem.message}. {problem.fix or ''}".rstrip())
    if report.unlanded:
        answers = count_noun(report.unlanded, "answer")
        terminal.warn(
            f"{answers} of the API could not be saved in the local copy. Run 'connector "
            f"sweep' to read the records."
        )
    terminal.end(report.error, unpublished=report.unpublished)
    terminal.say(_undone_closing(report))


def _undone_lines(row: UndoneRow, width: int) -> Iterator[dict[str, object]]:
    """Lines of a row: one for each field, whether it goes back or not, or one in all."""
    head = [row.number, row.operation, _OUTCOMES.get(row.outcome, row.outcome)]
    told: list[list[object]] = [
        [shorten(name, 20), shorten(now, width), shorten(then, width)]
        for name, (now, then) in row.changes.items()
    ]
    # What somebody else has changed stays: there is no other value for it to have.
    told += [
        [shorten(each.field, 20), shorten(each.found, width), None]
        for each in row.problems
        if each.field
    ]
    for line in told or [[None, None, None]]:
        yield dict(zip(UNDONE_COLUMNS, [*head, *line, row.record_id], strict=True))


def _undone_closing(report: UndoReport) -> str:
    cost = _describe_cost(report)
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
    checks_alerts=True,
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
    applied. Check the record in the application. Then name it with --record, or send the row again
    with --resend. Without ROW, the command resolves all rows of the BATCH. ROW is the row number in
    the pushed file.
    """
    settings = session.load()
    said: list[Decision] = []
    said += ["look"] if looks else []
    said += [] if record is None else [DeclaredRecord(record, is_sure)]
    said += ["resend"] if resends else []
    said += ["drop"] if drops else []
    if batch is None:
        if said:
            raise Misused(
                "no batch is given for the decision",
                action="Run 'connector resolve' to list the unconfirmed rows, then give"
                " their batch.",
            )
        return _print_in_doubt(session.terminal, settings)
    if len(said) != 1 or (record is not None and len(rows) != 1):
        raise Misused(
            f"{count_noun(len(said), 'decision')} on {count_noun(len(rows), 'row')} given",
            action="Give one of --look, --resend and --drop, or one row and --record ID.",
        )
    if not rows:
        with Ledger(settings.folder) as ledger:
            rows = tuple(each.number for each in Journal(ledger).in_doubt() if each.batch == batch)
    from connector.pushes.batch import resolve as run_resolve  # noqa: PLC0415

    # What may still arrive is not waited for in silence.
    report = asyncio.run(run_resolve(settings, batch, rows, said[0], sleep=None))
    _print_settled(session.terminal, report, rows)
    return report.exit_status


def _print_in_doubt(terminal: Terminal, settings: Settings) -> int:
    """Print the unconfirmed rows. Return 3 if there are any, because they need a decision."""
    with Ledger(settings.folder) as ledger:
        journal = Journal(ledger)
        held = journal.in_doubt()
        files = {each.batch: each.file for each in journal.batches()}
        pending = {key: journal.row(key) for key in [(each.batch, each.number) for each in held]}
    rows = []
    for each in held:
        row = pending[each.batch, each.number]
        who = " ".join(map(str, row.task.identity.values())) if row is not None else ""
        found = " ".join(problem.found or "" for problem in each.problems)
        since = each.moved_at.isoformat(timespec="seconds")
        told = (each.batch, each.number, each.operation, who, each.code, found, since)
        rows.append((*told, files[each.batch]))
    terminal.print_object({"rows": [dict(zip(IN_DOUBT_COLUMNS, row, strict=True)) for row in rows]})
    terminal.print_table(IN_DOUBT_HEADINGS, rows)
    for each in held:
        for problem in each.problems:
            terminal.say(f"{each.batch}, row {each.number}: {closed(problem.message)}")
    terminal.say(f"{count_noun(len(held), 'row')} unconfirmed.")
    return 3 if held else 0


def _print_settled(terminal: Terminal, report: BatchReport, numbers: Collection[int]) -> None:
    settled = [each for each in report.rows if each.number in numbers]
    outcomes = {str(each.number): each.outcome for each in settled}
    terminal.print_object({**report.as_json(), "settled": outcomes})
    cells = [(each.number, each.outcome, each.code, each.record_id) for each in settled]
    terminal.print_table(("row", "outcome", "code", "id"), cells)
    for each in settled:
        for problem in each.problems:
            terminal.warn(f"row {each.number}: {problem.message}")
    terminal.end(report.error, unpublished=report.unpublished)
