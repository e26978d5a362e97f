"""`connector push` and `template`: check spreadsheets and send their rows to the API."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import MISSING, fields, replace
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar, get_args

import click

from connector.cli import options
from connector.cli.session import Command, Session
from connector.cli.terminal import Terminal, describe_cost, shorten
from connector.errors import DONE, PARTIAL, Misused, count_noun, end_sentence
from connector.pushes.options import (
    DECIMALS,
    MODES,
    PUSH_OPTIONS,
    PushFile,
    PushOptions,
    ReportRows,
)
from connector.pushes.preview import ADD_COLUMNS, Preview, create_template, unanswered_values
from connector.pushes.query import file_from_query
from connector.pushes.report import PushReport
from connector.pushes.report import push as run_push
from connector.settings import Settings
from connector.spreadsheet.mapping import to_saved_map
from connector.spreadsheet.mapping_file import save_map
from connector.spreadsheet.problems import COLUMN_MISSING
from connector.spreadsheet.report import GroupKey, ProblemGroup
from connector.state.row import Mode

SHOWN_MAX = 10
"""Rows and kinds of problems that are printed; the report has all of them."""

CREATES_SHOWN_MAX = 3
"""Rows to create that are printed field by field."""

CHANGE_MARGIN = 34
"""Width of a table of changes without its two columns of text."""

_SHOWN_AS = ("create", "update", "convert", "delete", "restore")
OUTCOMES = {name: f"to {name}" for name in _SHOWN_AS} | {"not_reached": "not reached"}
"""Outcomes whose words differ from their names."""

F = TypeVar("F", bound=Callable[..., Any])

_FLAGS = {"content_type": "--type", "set_values": "--set"}

_TYPES: Mapping[str, Any] = {
    **dict.fromkeys(("mapping", "output"), options.FILE),
    "mode": click.Choice(MODES),
    "decimal": click.Choice(tuple(DECIMALS)),
    "report": click.Choice(get_args(ReportRows)),
    "header_row": click.IntRange(min=1),
    **dict.fromkeys(("match", "ignore", "accept"), options.comma_separated),
}
"""Types of options whose values are neither text nor switches."""

_METAVARS: Mapping[str, str] = {
    **dict.fromkeys(("mapping", "output"), "FILE"),
    **dict.fromkeys(("sheet", "encoding", "delimiter"), "NAME"),
    "match": "FIELD,...",
    "ignore": "COLUMN,...",
    "accept": "CODE,...",
    "header_row": "N",
    "content_type": "SLUG",
    "date_format": "ORDER",
    "region": "CODE",
    "day_hours": "HOURS",
    "set_values": "FIELD=VALUE",
    "clear": "TOKEN",
}


def add_push_options(*names: str, **more: Any) -> Callable[[F], F]:
    """Return a decorator that adds options of a push; `more` overrides arguments of click."""
    defaults = {each.name: each.default for each in fields(PushOptions)}

    def decorate(command: F) -> F:
        for name in reversed(names):
            default = defaults[name]
            given: dict[str, Any] = {
                "type": _TYPES.get(name),
                "metavar": _METAVARS.get(name),
                "is_flag": default is False,
                "show_default": name == "report",
            }
            if default is MISSING:
                given["required"] = True
            else:
                given |= {"default": "" if default == () else default}
            if name == "set_values":
                given |= {"multiple": True, "default": ()}
            flag = _FLAGS.get(name, f"--{name.replace('_', '-')}")
            command = click.option(flag, name, help=PUSH_OPTIONS[name], **given | more)(command)
        return command

    return decorate


# -- Push ------------------------------------------------------------------------------------------


@click.command(
    cls=Command,
    examples=(
        "connector push candidates people.xlsx --mode create",
        "connector push candidates people.xlsx --mode create --apply",
        "connector push candidates people.csv --mode upsert --match email --apply",
        "connector push leads won.csv --mode convert --apply",
        'connector push candidates --query "from own.candidates_to_update" --mode update',
    ),
    if_interrupted="No row is lost or sent twice. Run the same command again to continue.",
)
@click.argument("resource")
@click.argument("file", required=False)
@add_push_options(*PUSH_OPTIONS)
@click.option(
    "--query",
    metavar="SQL",
    help="Take the rows from a query of the published file instead of FILE: SQL, or the path of a"
    " .sql file.",
)
@click.option(
    "--clear-nulls",
    "clears_nulls",
    is_flag=True,
    help="Empty the fields that are null in the result of --query. Default: nulls change nothing.",
)
@click.option(
    "--save-mapping",
    type=options.FILE,
    metavar="FILE",
    help="Write the column mapping to a file, for editing and for --mapping.",
)
@click.option("--no-pull", is_flag=True, help="Compare with the local copy without pulling first.")
@click.option(
    "--no-wait",
    is_flag=True,
    help="If the answer to a row is lost, do not wait for its record. The row stays unconfirmed.",
)
@options.budget
@options.ignore_quota
def push(session: Session, *, save_mapping: Path | None, **given: Any) -> int:
    """Check a spreadsheet and send its rows to the API.

    Previews by default: it checks every row, reports all problems together, and sends nothing. Add
    --apply to send the valid rows. The report is written next to the file, with the file's
    columns and the result of each row. Correct the rows in the report and push it: rows that were
    already applied are not sent again. Push files that refer to each other one after the other, for
    example companies before their jobs. A conversion of a lead cannot be undone.

    With --query, the columns of the result are fields. The result is written to the folder pushes/
    of the data folder, and pushed like a file.
    """
    settings, terminal = session.load(), session.terminal
    push_options = PushOptions(
        **{name: given[name] for name in PUSH_OPTIONS},
        pull=not given["no_pull"],
        wait=not given["no_wait"],
        max_requests=given["budget"],
        ignore_quota=given["ignores_quota"],
    )
    push_file = _find_file(settings, push_options, **given)
    if push_file is None:
        rows = {"resource": given["resource"], "rows": 0, "requests": 0, "error": None}
        terminal.print_object(rows)
        terminal.say("The query returned no rows. Nothing was sent.")
        return DONE
    if given["query"] is not None:
        terminal.say(f"Rows of the query: {push_file.path}")
    with terminal.progress("push") as bar:
        report = asyncio.run(run_push(settings, push_file, watch=bar))
    has_mapping = given["query"] is not None or push_options.mapping is not None
    written = _save_mapping(save_mapping, report, has_mapping=has_mapping)
    _print_column_notes(terminal, report.preview)
    _print_report(terminal, report)
    if written is not None:
        terminal.say(f"Column mapping (edit it and give it with --mapping): {written}")
    terminal.print_object(report.as_json())
    return report.exit_status


def _find_file(
    settings: Settings, push_options: PushOptions, *, resource: str, file: str | None,
    query: str | None, clears_nulls: bool, **_: Any,
) -> PushFile | None:  # fmt: skip
    """Return the file to push, or the rows of a query as one; None if the query has no rows.

    Raises `Misused` for options that do not belong together.
    """
    if query is not None and file is not None:
        raise Misused(f"FILE and --query are both given: {file}", action="Give one of them.")
    if query is not None:
        return file_from_query(settings, resource, query, push_options, clears_nulls=clears_nulls)
    if clears_nulls:
        action = "For a file, use --clear TOKEN and write the token in the cells."
        raise Misused("--clear-nulls needs --query", action=action)
    if file is None:
        action = "Example: connector push candidates people.csv --mode create"
        raise Misused(f"no file was given for {resource}", action=action)
    return push_options.push_file(resource, Path(file))


def _save_mapping(
    requested_path: Path | None, report: PushReport, *, has_mapping: bool
) -> Path | None:
    """Save the column mapping of the file, and return its path; None if it was not saved.

    Saves it at the requested path, or next to the file unless a mapping was given. Without a
    requested path, an existing mapping is kept.
    """
    file, columns = report.preview.push_file.path, report.preview.columns
    path = requested_path or file.with_name(f"{file.stem.removesuffix('.report')}.map.toml")
    if requested_path is None and (has_mapping or path.exists()):
        return None
    row = report.preview.push_file.options.header_row
    unanswered = unanswered_values(report.summary)
    save_map(path, replace(to_saved_map(columns), header_row=row, unanswered=unanswered))
    return path


def _print_column_notes(terminal: Terminal, preview: Preview) -> None:
    """Print recognised columns, and warn about columns that are missing or not imported."""
    columns, asked = preview.columns, {each.code for each in preview.questions}
    for notice in preview.notices:
        terminal.say(notice)
    if aliases := [each for each in columns.columns if each.match_kind == "alias"]:
        names = ", ".join(f"{each.heading!r} is {each.target.name}" for each in aliases)
        terminal.say(f"Recognised columns: {names}.")
    for left in () if "headings" in asked else columns.unmapped:
        likely = " or ".join(left.suggestions)
        hint = f" It may be the field {likely}." if likely else ""
        if likely or "columns_lost" not in asked:
            terminal.warn(f"column {left.heading!r} is not imported: {left.reason}.{hint}")
    if columns.missing:
        resource, missing = preview.push_file.resource, ", ".join(columns.missing)
        count = preview.summary.codes[COLUMN_MISSING]
        rows = f": {count_noun(count, 'row')} cannot create {resource}" if count else ""
        terminal.warn(f"the file has no column for {missing}{rows}. {ADD_COLUMNS}")


def _print_report(terminal: Terminal, report: PushReport) -> None:
    """Print the rows by outcome, the first changes and problems, and closing sentences."""
    print_counts(terminal, report.counts)
    shown, refused = report.preview, report.summary.rows_with_problems
    if not report.batch:
        _print_changes(terminal, shown)
    if refused:
        have = "row has an error and is" if refused == 1 else "rows have errors and are"
        asked = [code for each in shown.questions for code in _ASKED.get(each.code, ())]
        heading = f"{refused:,} {have} not sent:"
        _print_groups(terminal, report.summary.problems, heading, (COLUMN_MISSING, *asked))
    if warned := shown.summary.rows_with_warnings:
        have = count_noun(warned, "row has a warning", "rows have warnings")
        _print_groups(terminal, shown.summary.warnings, f"{have}:")
    for question in shown.questions:
        terminal.warn(f"{question.message}. {question.repair}")
        for column, cells in question.choices if question.code == "values" else ():
            terminal.say(f"  {column}: {cells}")
    terminal.print_errors(report.error, report.unpublished)
    for line in _closing_lines(report):
        terminal.say(line)


def print_counts(terminal: Terminal, counts: Mapping[Any, int]) -> None:
    """Print the number of rows by outcome."""
    rows = [[OUTCOMES.get(name, name), count] for name, count in sorted(counts.items())]
    terminal.print_table(("outcome", "rows"), rows)


def _print_changes(terminal: Terminal, preview: Preview) -> None:
    """Print the first records that would be created or changed, field by field."""
    creates = (row for row in preview.rows if row.outcome == "create")
    for row in islice(creates, CREATES_SHOWN_MAX):
        terminal.print_line(f"Row {row.number} would create:")
        for name, value in row.values.items():
            terminal.print_line(f"  {name}: {shorten(value, max(20, terminal.columns - 30))}")
    width = max(20, (terminal.columns - CHANGE_MARGIN) // 2)
    updates = [row for row in preview.rows if row.outcome == "update"]
    changes = [
        [row.number, shorten(field, 20), shorten(old, width), shorten(new, width)]
        for row in updates[:SHOWN_MAX]
        for field, old, new in row.changes
    ]
    if changes:
        terminal.print_table(("row", "field", "now", "then"), changes)
    if len(updates) > SHOWN_MAX:
        terminal.say(f"and {len(updates) - SHOWN_MAX:,} more rows that would change")


_ASKED: Mapping[str, tuple[str, ...]] = {"day_hours": ("time_missing",)}
"""Codes of problems that the answer to a question solves."""


def _print_groups(
    terminal: Terminal,
    groups: Mapping[GroupKey, ProblemGroup],
    heading: str,
    hidden: Collection[str] = (COLUMN_MISSING,),
) -> None:
    """Print the most frequent kinds of problems with what to do; nothing if there are none.

    Problems with `hidden` codes, and cells for which a question asks, are not printed here.
    """
    shown = [
        each
        for (code, _), each in groups.items()
        if code not in hidden and not each.is_answered_by_value
    ]
    if not shown:
        return
    terminal.say(heading)
    for group in sorted(shown, key=lambda each: -each.count)[:SHOWN_MAX]:
        problem = group.problem
        where = f"{problem.column}, " if problem.column else ""
        for line in group.describe():
            terminal.say(f"  {where}{end_sentence(line)}")
        if problem.allowed:
            terminal.say(f"    Allowed: {problem.allowed}.")
        hints = (group.fix, _HINTS.get(problem.code))
        if advice := " ".join(end_sentence(each) for each in hints if each):
            terminal.say(f"    {advice}")
    if len(shown) > SHOWN_MAX:
        more = count_noun(len(shown) - SHOWN_MAX, "more kind")
        terminal.say(f"  {more} of problems: see the report")


_HINTS: Mapping[str, str] = {
    "ambiguous_date": "--date-format dmy or mdy sets the order for all dates.",
    "ambiguous_number": "--decimal dot or comma sets the separator for all numbers.",
    "decimal_sign": "--decimal dot or comma sets the separator for all numbers.",
    "unknown_value": "A column mapping (--mapping) can translate values.",
    "value_not_accepted": "A column mapping (--mapping) can translate values.",
    "says_nothing": "To import the word itself, keep it in a column mapping (--mapping).",
    "number_in_text": "If no digit is missing, add whole_numbers = true to a column mapping.",
    "no_time_zone": "A column mapping (--mapping) can set the time zone of a column.",
    "record_unknown": "If the record is new, run 'connector pull' first.",
    "record_not_read": "Run 'connector pull' first.",
    "reference_unknown": "If the record is new, run 'connector pull' first.",
    "duplicate_in_warehouse": "--mode upsert with --match updates records that exist.",
}
"""Options that help with a problem, by its code."""


def _closing_lines(report: PushReport) -> Iterator[str]:
    """Yield the report's path, the outcome of the push and the next step."""
    batch, cost = report.batch, describe_cost(report.requests, report.seconds)
    if report.file is not None:
        yield f"Report: {report.file}"
    if leads := report.counts.get("convert", 0) + report.counts.get("converted", 0):
        yield f"{count_noun(leads, 'conversion')}: a conversion cannot be undone."
    if report.is_held_back:
        yield f"Nothing was sent. Answer the {_questions(report.preview)} above first."
    elif not batch and report.error is None:
        yield _preview_sentence(report.preview)
    elif not batch:
        yield f"Nothing was sent, because the pull before the push did not finish ({cost})."
    else:
        if held := report.counts.get("held", 0):
            rows = count_noun(held, "row")
            yield f"{rows} unconfirmed. Run 'connector resolve' to show and resolve them."
        if report.exit_status == PARTIAL:
            yield "Correct the rows in the report and push it. Applied rows are not sent again."
        yield f"Batch {batch} is {report.outcome} ({cost})."


def _questions(preview: Preview) -> str:
    """Return "question" or "questions", for the questions that have to be answered first."""
    return "question" if len(preview.blocking_questions) == 1 else "questions"


def _preview_sentence(preview: Preview) -> str:
    """Return the number of rows that are ready, their cost and the next step."""
    if not preview.to_send:
        return "No row is ready to be sent."
    cost = f"about {count_noun(preview.requests, 'request')}"
    if preview.minutes is not None and preview.minutes >= 1:
        cost += f", {preview.minutes:,.0f} minutes at the last known rate limit"
    compared = "the local copy is empty"
    if preview.pulled_at:
        compared = f"compared with the copy of {preview.pulled_at:.16}"
    verb = "is" if len(preview.to_send) == 1 else "are"
    ready = f"{len(preview.to_send):,} of {count_noun(preview.summary.rows, 'row')} {verb} ready"
    text = f"{ready} ({cost}; {compared}). Run the command with --apply to send them."
    if preview.blocking_questions:
        first = f"Answer the {_questions(preview)} above, then run the command with --apply."
        text = f"{ready} ({cost}; {compared}). {first}"
    if held := [row for row in preview.rows if preview.is_held_back(row)]:
        kinds = ",".join(sorted({each.code for row in held for each in row.warnings}))
        text += f" {count_noun(len(held), 'row')} with warnings: add --accept-warnings to send them"
        text += f" too, or --accept with the kinds that you have checked ({kinds})."
    if any(row.problems for row in preview.rows):
        text += " Correct the other rows in the report and push the report too."
    return text


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
@click.option(
    "--out",
    type=options.FILE,
    metavar="FILE",
    help="File to write, .csv or .xlsx. [default: RESOURCE.xlsx]",
)
@add_push_options("mode", required=False, default="create", show_default=True)
@add_push_options("match", "content_type")
def template(
    session: Session, *, resource: str, out: Path | None, mode: Mode, match: tuple[str, ...],
    content_type: str | None,
) -> None:  # fmt: skip
    """Write an empty spreadsheet with all columns of RESOURCE.

    Each column shows its rule, a list of the allowed values, and an example. In a workbook all
    columns are text, so leading zeros and plus signs are kept.
    """
    path, settings = out or Path(f"{resource}.xlsx"), session.load()
    asked = PushOptions(mode, match=match, content_type=content_type)
    columns = create_template(settings, asked.push_file(resource, path))
    session.terminal.print_object({"file": path, "columns": columns})
    session.terminal.say(
        f"{path} has {columns} columns. Fill it in, then: "
        f"connector push {resource} {path} --mode {mode}"
    )
