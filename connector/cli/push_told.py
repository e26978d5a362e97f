"""A push's report in words: what each column was taken for, what became of the rows, what to do."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from connector.advice import explain
from connector.cli.terminal import Terminal
from connector.errors import Stopped
from connector.preview import Preview
from connector.preview.foreseen import ADD_COLUMNS
from connector.push import PushReport
from connector.spreadsheet.problems import COLUMN_MISSING
from connector.words import counted

SHOWN_MAX = 10
"""Rows that are told one by one on the screen; the report has them all."""

_FORESEEN = {"create": "to create", "update": "to update", "convert": "to convert"}
_TEXT_MAX = 60


def say_mapping(terminal: Terminal, report: PushReport) -> None:
    """Say which columns fill nothing, and which fields a column was taken for by another name."""
    columns = report.preview.columns
    for each in columns.columns:
        if each.how == "alias":
            terminal.say(f"Column {each.heading!r} is taken for {each.slot.column}.")
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
            f"{counted(preview.uncreatable, 'row')} cannot make {resource}: that needs {missing},"
            f" and no heading is that. {ADD_COLUMNS}"
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
        yield f"{counted(summary.troubled, 'row')} have problems: {told}"


def _closing(report: PushReport) -> Iterator[str]:
    preview, batch = report.preview, report.batch
    if report.file is not None:
        yield f"The report: {report.file}"
    if batch is None and report.error is None:
        yield _foreseen(preview)
        return
    sent = f"{counted(report.requests, 'request')} in {report.seconds:,.1f} s"
    if batch is None:
        yield f"Nothing was sent: the pull before it did not end ({sent})."
        return
    held = report.counts.get("held", 0)
    if held:
        yield f"{counted(held, 'row')} in doubt: 'connector resolve' shows and settles them."
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
        f"{counted(preview.sent, 'row')} would be sent,"
        f" for about {counted(preview.requests, 'request')}"
        f"{share}{minutes}. Compared with {compared}. Send them with --apply."
    )


def _short(value: object) -> str:
    text = "(empty)" if value is None else str(value)
    return text if len(text) <= _TEXT_MAX else text[: _TEXT_MAX - 1] + "…"
