"""Push of one file: check, pull, check again, send, publish, and report.

Without `applies`, the file is only checked. The report has the file's columns and the result of
each row. It can be corrected and pushed again: rows that were applied are not sent again.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from connector.catalog import CATALOG, REFERRED_FIRST
from connector.errors import ConnectorError, UnknownName
from connector.pulls.report import PullReport, Watch
from connector.pushes.mappings import remember
from connector.pushes.preview import Preview, PushFile, preview
from connector.pushes.run import BatchReport, Report, publish_results, send
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

CREATES_REMEMBERED, UPDATES_REMEMBERED = 10, 100
"""Maximum number of creates and of updates whose values `--json` shows."""

ReportRows = Literal["problems", "all"]
"""Rows in the report of a preview. A report after sending has all of them."""

_FOUND_HERE = frozenset(("record_ambiguous", "reference_ambiguous", "duplicate_in_file"))
"""Codes of problems whose `found` are records of the local copy or rows of the file."""


@dataclass(frozen=True, slots=True)
class PushRunOptions:
    """Options of a push that are not about reading a file.

    Attributes:
        applies: Whether to send the rows, or only preview them.
        pulls: Whether to pull first.
        waits_for_lookups: Whether to wait until unconfirmed rows can be looked up.
        reports: Whether to write the report.
        output: Report file; by default it is next to the pushed file.
        report_rows: Rows in the report of a preview.
        policy: How to treat repeated, conflicting and unconfirmed rows.
        ignores_quota: Whether to send requests even if the API reported a used-up month.
        sent_by: User of the import page, for the journal.
        wait_seconds: Maximum time to wait for another process; None waits as long as it takes.
    """

    applies: bool = False
    pulls: bool = True
    waits_for_lookups: bool = True
    reports: bool = True
    output: Path | None = None
    report_rows: ReportRows = "problems"
    policy: Policy = field(default_factory=Policy)
    ignores_quota: bool = False
    sent_by: str | None = None
    wait_seconds: float | None = WAIT_SECONDS


@dataclass(frozen=True, slots=True, kw_only=True)
class PushReport(Report[Row]):
    """Result of the push of one file.

    The rows are those of the preview if nothing was sent; then `batch` is empty. `error` may be
    that of the pull before the push, and `requests` has those of the pull.

    Attributes:
        summary: Counts of the rows and of their problems.
        file: Report file; None if none was written.
        pulled: Report on the pull before the push.
        is_held_back: Whether questions of the preview have to be answered first.
    """

    preview: Preview
    summary: Summary
    file: Path | None = None
    pulled: PullReport | None = None
    is_held_back: bool = False

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
            "changes": [] if self.batch else list(_changes(shown.rows)),
            "report": str(self.file) if self.file is not None else None,
        }


def _changes(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Return row, field, current and new value of the first creates and updates."""
    creates = [row for row in rows if row.outcome == "create"][:CREATES_REMEMBERED]
    updates = [row for row in rows if row.outcome == "update"][:UPDATES_REMEMBERED]
    found = []
    for row in sorted([*creates, *updates], key=lambda row: row.number):
        changes = row.changes or tuple((name, None, each) for name, each in row.values.items())
        found += [
            {"row": row.number, "field": name, "now": now, "then": then}
            for name, now, then in changes
        ]
    return found


async def push(
    settings: Settings,
    file: PushFile,
    options: PushRunOptions,
    *,
    table: Spreadsheet | None = None,
    budget: int | None = None,
    watch: Watch | None = None,
    on_wait: Callable[[Holder | None], None] | None = None,
) -> PushReport:
    """Preview or push the file, and return the report. Waits for another process.

    Args:
        settings: Settings of the account.
        file: The file.
        options: Options of the run.
        table: The table to push, if it differs from that in the file by edits of the user.
        budget: Maximum number of requests, including those of the pull.
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
    run = _FilePush(settings, file, options, table or file.open(), budget, watch)
    make_folder(settings.folder)
    wait = options.wait_seconds
    async with hold(settings.folder, "push", wait_seconds=wait, on_wait=on_wait):
        return await (run.send_and_report() if options.applies else run.report_preview())


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


@dataclass(slots=True)
class _FilePush:
    """Push of one file, within the lock of the account."""

    settings: Settings
    file: PushFile
    options: PushRunOptions
    table: Spreadsheet
    budget: int | None
    watch: Watch | None
    started: float = field(default_factory=time.monotonic)
    checked_at: datetime = field(default_factory=lambda: datetime.now(UTC))

    async def check(self, **more: Any) -> Preview:
        """Return what a push of the file would do."""
        given = {"resend": self.options.policy.resend, "table": self.table, **more}
        return await asyncio.to_thread(preview, self.settings, self.file, **given)

    async def report_preview(self) -> PushReport:
        """Check the file, record that the user sees the result, and report it."""
        shown = await self.check()
        await asyncio.to_thread(note_preview, self.settings.folder, shown, self.checked_at)
        return await self._report(shown, shown.rows)

    async def send_and_report(self) -> PushReport:
        """Pull, check the rows, send those without problems and warnings, publish, and report."""
        options, settings = self.options, self.settings
        # A pull does not answer questions about the columns, so they are asked before it.
        only_rows = () if options.pulls else None
        shown, pulled = await self.check(compares_as_seen=True, only_rows=only_rows), None
        if options.pulls:
            if not shown.blocking_questions:
                pulled = await self._pull(shown)
                self.checked_at = datetime.now(UTC)
            shown = await self.check(compares_as_seen=True)
        if pulled is not None and pulled.error is not None:
            is_loaded = pulled.outcome != "failed"
            unpublished = await publish_results(settings) if is_loaded else None
            unsent, error = _not_sent(shown), pulled.error
            return await self._report(
                shown, unsent, pulled=pulled, error=error, unpublished=unpublished
            )
        if shown.blocking_questions:
            why = ", ".join(each.code for each in shown.blocking_questions)
            unsent = _not_sent(shown, why)
            return await self._report(shown, unsent, pulled=pulled, is_held_back=True)
        spent = pulled.requests if pulled is not None else 0
        done = await send(
            settings,
            shown.plan(),
            options.policy,
            budget=None if self.budget is None else max(1, self.budget - spent),
            ignores_quota=options.ignores_quota,
            sent_by=options.sent_by,
            watch=self.watch,
            sleep=asyncio.sleep if options.waits_for_lookups else None,
        )
        headings, given = shown.table.headings, shown.push_file.saved
        await asyncio.to_thread(remember, settings.folder, headings, shown.columns, given)
        unpublished = await publish_results(settings)
        rows = [_shown(row, shown.columns) for row in done.rows]
        report = await self._report(shown, rows, done, pulled=pulled, unpublished=unpublished)
        if report.file is not None and any(row.outcome == "conflict" for row in rows):
            await asyncio.to_thread(
                note_preview, settings.folder, shown, self.checked_at, report.file
            )
        return report

    async def _pull(self, shown: Preview) -> PullReport:
        """Pull the resources that the rows are compared with, and return the report."""
        from connector.pulls.run import pull  # noqa: PLC0415

        return await pull(
            self.settings,
            sorted(shown.resources),
            budget=self.budget,
            ignores_quota=self.options.ignores_quota,
            publishes=False,  # The push publishes once, at its end.
            command="push",
            watch=self.watch,
        )

    async def _report(
        self,
        shown: Preview,
        rows: Sequence[Row],
        done: BatchReport | None = None,
        *,
        pulled: PullReport | None = None,
        error: ConnectorError | None = None,
        unpublished: ConnectorError | None = None,
        is_held_back: bool = False,
    ) -> PushReport:
        """Write the report file, and return the report with these rows."""
        is_sent, requests = done is not None, pulled.requests if pulled is not None else 0
        return PushReport(
            done.batch if done is not None else "",
            rows,
            requests + (done.requests if done is not None else 0),
            file=await asyncio.to_thread(self._write_report, shown, rows, is_sent=is_sent),
            seconds=time.monotonic() - self.started,
            error=done.error if done is not None else error,
            unpublished=unpublished,
            is_applied=is_sent,
            preview=shown,
            summary=Summary.of(rows),
            pulled=pulled,
            is_held_back=is_held_back,
        )

    def _write_report(self, shown: Preview, rows: Sequence[Row], *, is_sent: bool) -> Path | None:
        """Write the report file and return its path; None if it would have no row."""
        options = self.options
        pairs = list(zip(shown.cells, rows, strict=True))
        for cells, row in pairs:
            assert cells.number == row.number, "the report's rows are not the file's"
        if not is_sent and options.report_rows == "problems":
            pairs = [
                each for each in pairs if each[1].problems or each[1].warnings or each[1].changes
            ]
        if not options.reports or not (pairs or is_sent or options.output):
            return None
        path = options.output or report_path(shown.table)
        write_report(path, shown.table, pairs)
        return path


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
