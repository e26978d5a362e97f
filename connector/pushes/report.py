"""Push of one file: check, pull, check again, send, publish, and report.

Without `apply`, the file is only checked. The report has the file's columns and the result of
each row. It can be corrected and pushed again: rows that were applied are not sent again.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from connector.catalog import CATALOG, REFERRED_FIRST
from connector.errors import ConnectorError, UnknownName
from connector.pulls.report import PullReport, Watch
from connector.pulls.run import pull
from connector.pushes.options import PushFile
from connector.pushes.preview import Preview, preview, remember
from connector.pushes.run import Report, publish_results, send
from connector.settings import Settings
from connector.spreadsheet.mapping import ColumnMap
from connector.spreadsheet.report import Summary, report_path, write_report
from connector.spreadsheet.table import Spreadsheet
from connector.state.database import Database
from connector.state.journal import HELD_BACK, Journal
from connector.state.lock import WAIT_SECONDS, Holder, hold
from connector.state.row import Policy, Problem, Row
from connector.warehouse.file import make_folder

ORDER = tuple(name for name in REFERRED_FIRST if "create" in CATALOG[name].operations)
"""Resources that can be pushed: those that others refer to come first."""

CHANGES_MAX = 100
"""Maximum number of rows whose changes `--json` shows."""

_FOUND_HERE = frozenset(("record_ambiguous", "reference_ambiguous", "duplicate_in_file"))
"""Codes of problems whose `found` are records of the local copy or rows of the file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PushReport(Report):
    """Result of the push of one file.

    The rows are those of the preview if nothing was sent; then `batch` is empty. `error` may be
    that of the pull before the push, and `requests` has those of the pull.

    Attributes:
        summary: Counts of the rows and of their problems.
        file: Report file; None if none was written.
    """

    preview: Preview
    summary: Summary
    file: Path | None = None

    @property
    def is_held_back(self) -> bool:
        """Return True if questions of the preview have to be answered before rows are sent."""
        asked_to_send = self.preview.push_file.options.apply
        return asked_to_send and not self.is_applied and self.error is None

    @property
    def exit_status(self) -> int:
        """0 if every row is fine, 3 if rows need attention, else the exit status of the error."""
        if self.is_applied or self.error is not None:
            return super(PushReport, self).exit_status
        return 0 if self.preview.is_clean else 3

    def as_json(self) -> dict[str, Any]:
        """Return the report for `--json`."""
        shown, asked = self.preview, self.preview.push_file
        return {
            **super(PushReport, self).as_json(),
            "batch": self.batch or None,
            "resource": asked.resource,
            "file": str(asked.path),
            "requests_expected": shown.requests,
            "merged": list(shown.table.merged_ranges),
            "missing": list(shown.columns.missing),
            "unmapped": [each.heading for each in shown.columns.unmapped],
            "notices": list(shown.notices),
            "questions": [asdict(each) for each in shown.questions],
            "warned": shown.summary.rows_with_warnings,
            "changes": [] if self.batch else _changes(shown.rows),
            "report": str(self.file) if self.file is not None else None,
        }


def _changes(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Return row, field, current and new value of the first creates and updates."""
    shown = [row for row in rows if row.outcome in ("create", "update")][:CHANGES_MAX]
    return [
        {"row": row.number, "field": name, "now": now, "then": then}
        for row in shown
        for name, now, then in row.changes or ((n, None, each) for n, each in row.values.items())
    ]


async def push(
    settings: Settings,
    file: PushFile,
    *,
    table: Spreadsheet | None = None,
    sent_by: str | None = None,
    wait_seconds: float | None = WAIT_SECONDS,
    watch: Watch | None = None,
    on_wait: Callable[[Holder | None], None] | None = None,
) -> PushReport:
    """Preview or push the file, and return the report. Waits for another process.

    Args:
        settings: Settings of the account.
        file: The file, with the options of the push.
        table: The table to push, if it differs from that in the file by edits of the user.
        sent_by: User of the import page, for the journal.
        wait_seconds: Maximum time to wait for another process; None waits as long as it takes.
        watch: Called with the progress of the pull and of the rows.
        on_wait: Called with the holder of the account's lock, if the push has to wait for it.

    Raises:
        Misused: Options do not fit each other. Nothing was sent; likewise for `UnknownName` and
            `SpreadsheetError`.
        AccountBusy: Another process uses the account.
        WarehouseError: A file of the data folder cannot be read or written.
    """
    if file.resource not in ORDER:
        raise UnknownName("resource that can be pushed", file.resource, ORDER)
    started, options, table = time.monotonic(), file.options, table or file.open()
    make_folder(settings.folder)

    async def check(**more: Any) -> Preview:
        return await asyncio.to_thread(
            preview, settings, file, table=table, compares_as_seen=options.apply, **more
        )

    pulled: PullReport | None = None
    done: Report | None = None
    unpublished: ConnectorError | None = None
    checked_at = datetime.now(UTC)
    async with hold(settings.folder, "push", wait_seconds=wait_seconds, on_wait=on_wait):
        # A pull does not answer questions about the columns, so they are asked before it.
        pulls_first = options.apply and options.pull
        shown = await check(only_rows=() if pulls_first else None)
        if pulls_first and not shown.blocking_questions:
            pulled = await pull(
                settings,
                sorted(shown.resources),
                budget=options.max_requests,
                ignores_quota=options.ignore_quota,
                publishes=False,  # The push publishes once, at its end.
                command="push",
                watch=watch,
            )
            checked_at = datetime.now(UTC)
        if pulls_first:
            shown = await check()
        if not options.apply:
            rows: Sequence[Row] = shown.rows
            await asyncio.to_thread(note_preview, settings.folder, shown, checked_at)
        elif pulled is not None and pulled.error is not None:
            rows = _not_sent(shown)
            if pulled.outcome != "failed":
                unpublished = await publish_results(settings)
        elif shown.blocking_questions:
            rows = _not_sent(shown, ", ".join(each.code for each in shown.blocking_questions))
        else:
            done = await _send(settings, shown, pulled, sent_by, watch)
            rows = [_shown(row, shown.columns) for row in done.rows]
            unpublished = await publish_results(settings)
        path = await asyncio.to_thread(_write_report, shown, rows, is_sent=done is not None)
        if done is not None and path and any(row.outcome == "conflict" for row in rows):
            await asyncio.to_thread(note_preview, settings.folder, shown, checked_at, path)
    last = done or pulled
    return PushReport(
        batch=done.batch if done is not None else "",
        rows=rows,
        requests=sum(each.requests for each in (pulled, done) if each is not None),
        seconds=time.monotonic() - started,
        error=last.error if last is not None else None,
        unpublished=unpublished,
        is_applied=done is not None,
        preview=shown,
        summary=Summary.of(rows),
        file=path,
    )


async def _send(
    settings: Settings,
    shown: Preview,
    pulled: PullReport | None,
    sent_by: str | None,
    watch: Watch | None,
) -> Report:
    """Send the rows without problems and warnings, and remember the column mapping."""
    options, spent = shown.push_file.options, pulled.requests if pulled is not None else 0
    done = await send(
        settings,
        shown.plan(),
        Policy(overwrite=options.overwrite, resend=options.resend),
        budget=max(1, options.max_requests - spent) if options.max_requests else None,
        ignores_quota=options.ignore_quota,
        sent_by=sent_by,
        watch=watch,
        sleep=asyncio.sleep if options.wait else None,
    )
    headings, saved = shown.table.headings, shown.push_file.saved
    await asyncio.to_thread(remember, settings.folder, headings, shown.columns, saved)
    return done


def _write_report(shown: Preview, rows: Sequence[Row], *, is_sent: bool) -> Path | None:
    """Write the report file and return its path; None if it would have no row."""
    options, pairs = shown.push_file.options, list(zip(shown.cells, rows, strict=True))
    for cells, row in pairs:
        assert cells.number == row.number, "the report's rows are not the file's"
    if not is_sent and options.report == "problems":
        pairs = [each for each in pairs if each[1].problems or each[1].warnings or each[1].changes]
    if not (pairs or is_sent or options.output):
        return None
    path = options.output or report_path(shown.table)
    write_report(path, shown.table, pairs)
    return path


def note_preview(folder: Path, shown: Preview, at: datetime, report: Path | None = None) -> None:
    """Record that the user saw the changes of the file at this time.

    With a `report`, a push found conflicts: that counts as a preview of the file and of its report,
    unless there was one before. So a second push of the same values finds the same conflicts.
    """
    resource, digests = shown.push_file.resource, [shown.table.digest]
    with Database(folder) as database:
        journal = Journal(database)
        if report is not None:
            at = journal.previewed_at(digests[0], resource) or at
            with report.open("rb") as file:
                digests.append(hashlib.file_digest(file, "sha256").hexdigest())
        for digest in digests:
            journal.note_preview(digest, resource, at)


def _not_sent(shown: Preview, code: str = "") -> list[Row]:
    """Return the rows of a preview, with the outcome `not_sent` for rows to send."""
    return [
        replace(row, outcome="not_sent", code=code) if row.state == "planned" else row
        for row in shown.rows
    ]


def _shown(row: Row, columns: ColumnMap) -> Row:
    """Return a row of the journal for the report, with columns and the API's values."""
    problems = [with_column(each, columns) for each in row.problems]
    warnings = row.warnings if row.code == HELD_BACK else ()
    return replace(row, problems=tuple(problems), warnings=warnings)


def with_column(problem: Problem, columns: ColumnMap) -> Problem:
    """Return a problem from the journal with its column, and the API's value in its message."""
    column = problem.column or (columns.heading_of(problem.field) if problem.field else None)
    is_shown = problem.found is not None and problem.code not in _FOUND_HERE
    found = f" The API has: {problem.found}." if is_shown else ""
    return replace(problem, message=problem.message + found, column=column or problem.field)
