"""Push of spreadsheets: preview, send, report.

A preview sends nothing. Before sending, the warehouse is pulled, so that rows are compared with
current records; then the rows are sent (`pushes/batch.py`). The report has a line for each row. It
can be corrected and pushed again.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import Any, Literal

from connector.catalog import CATALOG, REFERRED_FIRST
from connector.errors import ConnectorError, LeaseHeld, UnknownName, count_noun
from connector.ledger.journal import Journal
from connector.ledger.journal_records import BatchAction, RowRecord
from connector.ledger.ledger import Ledger
from connector.ledger.push_plan import PushPolicy, RowResult
from connector.ledger.push_states import PreviewOutcome
from connector.pulls.outcome import Progress, PullReport, Watch
from connector.pushes.batch import BatchReport
from connector.pushes.dry_run import OPERATIONS, Preview, PushFile, preview, with_column
from connector.pushes.file_warnings import remember_mapping
from connector.pushes.spill_file import SpillMap
from connector.settings import Settings
from connector.spreadsheet.problems import SheetRow
from connector.spreadsheet.report import Summary, pair_rows, report_path, write_report
from connector.spreadsheet.table import Spreadsheet

ORDER = tuple(name for name in REFERRED_FIRST if "create" in CATALOG[name].operations)
"""Resources that can be pushed: those that others refer to come first."""

PULL_CHECK_SECONDS = 1.0
"""Seconds between two checks whether a running pull has ended."""

ReportRows = Literal["problems", "all"]
"""Rows in the report of a preview. A report after sending has all of them."""

PushOutcome = Literal["previewed", "done", "partial", "stopped", "failed"]


@dataclass(frozen=True, slots=True)
class PushReport:
    """Result of the push of one file.

    Attributes:
        results: Result of each row, in order: of the preview if `batch` is None, else of the batch.
        summary: Number of rows by outcome.
        file: Report file; None if none was written.
        batch: Report on the batch; None if nothing was sent.
        pulled: Report on the pull before the push.
        error: Error of the pull, which prevented the push.
        unpublished: Error that prevented the publication of the results.
        is_held_back: Whether questions of the preview have to be answered first.
    """

    preview: Preview
    results: Collection[RowResult]
    summary: Summary
    seconds: float
    file: Path | None = None
    batch: BatchReport | None = None
    pulled: PullReport | None = None
    error: ConnectorError | None = None
    unpublished: ConnectorError | None = None
    is_held_back: bool = False

    @property
    def counts(self) -> dict[PreviewOutcome, int]:
        """Number of rows by outcome, without outcomes that no row has."""
        return dict(self.summary.counts)

    @property
    def outcome(self) -> PushOutcome:
        """Outcome of the batch; "previewed" if nothing was sent."""
        if self.batch is not None:
            return self.batch.outcome
        if self.error is not None:
            return "stopped" if self.error.exit_status == 4 else "failed"
        return "previewed"

    @property
    def requests(self) -> int:
        """Number of requests that were sent, including those of the pull."""
        pulled = self.pulled.requests if self.pulled is not None else 0
        return pulled + (self.batch.requests if self.batch is not None else 0)

    @property
    def exit_status(self) -> int:
        """0 if every row is fine, 3 if rows need attention, else the exit status of the error."""
        if self.batch is not None:
            # The rows were sent, but the user has to check why they were not published.
            status = self.batch.exit_status
            return 1 if self.unpublished is not None and status in (0, 3) else status
        if self.error is not None:
            return self.error.exit_status
        return 0 if self.preview.is_clean else 3

    def as_json(self) -> dict[str, Any]:
        """Return the report for `--json`."""
        asked = self.preview.push_file
        error = self.error or (self.batch.error if self.batch is not None else None)
        return {
            "outcome": self.outcome,
            "batch": self.batch.batch if self.batch is not None else None,
            "resource": asked.resource,
            "file": str(asked.path),
            "rows": self.summary.rows,
            **{str(name): count for name, count in self.counts.items()},
            "requests": self.requests,
            "requests_expected": self.preview.requests,
            "seconds": round(self.seconds, 3),
            "merged": list(self.preview.table.merged_ranges),
            "missing": list(self.preview.columns.missing),
            "unmapped": [each.heading for each in self.preview.columns.unmapped],
            "notices": list(self.preview.notices),
            "questions": [asdict(each) for each in self.preview.questions],
            "warned": self.preview.summary.rows_with_warnings,
            "changes": self._changes(),
            "report": str(self.file) if self.file is not None else None,
            "error": error.as_json() if error is not None else None,
            "unpublished": self.unpublished.as_json() if self.unpublished is not None else None,
        }

    def _changes(self) -> list[dict[str, Any]]:
        """Return row, field, current and new value of the first changes; empty after sending."""
        if self.batch is not None:
            return []
        rows = self.preview.rows
        changes: dict[int, dict[str, tuple[Any, Any]]] = {
            number: {name: (None, value) for name, value in fields.items()}
            for number, fields in rows.creates.items()
        }
        changes |= {number: dict(fields) for number, fields in rows.changes.items()}
        return [
            {"row": number, "field": name, "now": now, "then": then}
            for number, fields in sorted(changes.items())
            for name, (now, then) in fields.items()
        ]


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
        people: Users who prepared and sent the file, for the journal.
    """

    applies: bool = False
    pulls: bool = True
    waits_for_lookups: bool = True
    reports: bool = True
    output: Path | None = None
    report_rows: ReportRows = "problems"
    policy: PushPolicy = field(default_factory=PushPolicy)
    ignores_quota: bool = False
    people: Mapping[BatchAction, str] = field(default_factory=dict)


async def push(
    settings: Settings,
    file: PushFile,
    options: PushRunOptions,
    *,
    table: Spreadsheet | None = None,
    budget: int | None = None,
    watch: Watch | None = None,
    on_wait: Callable[[str], None] | None = None,
) -> PushReport:
    """Preview or push the file, and return the report. Waits for a running pull.

    Args:
        settings: Settings of the account.
        file: The file.
        options: Options of the run.
        table: The table to push, if it differs from that in the file by edits of the user.
        budget: Maximum number of requests, including those of the pull.
        watch: Called with the progress of the pull and of the rows.
        on_wait: Called with a sentence when the push has to wait.

    Raises:
        Misused: Options do not fit each other. Nothing was sent; likewise for `UnknownName` and
            `SpreadsheetError`.
        WarehouseError: A file of the data folder cannot be read or written.
    """
    if file.resource not in ORDER:
        raise UnknownName("resource that can be pushed", file.resource, ORDER)
    started = time.monotonic()
    seen = await asyncio.to_thread(
        preview,
        settings,
        file,
        resend=options.policy.resend,
        keeps_tasks=options.applies,
        # The rows of a new file are only checked after the pull.
        only_if_pushed=options.applies and options.pulls,
        compares_as_seen=options.applies,
        table=table,
    )
    run = _FilePush(settings, options, budget, watch, on_wait, started)
    return await (run.send_and_report(seen) if options.applies else run.report_preview(seen))


def record_preview(
    folder: Path, previewed: Preview, at: datetime, report: Path | None = None
) -> None:
    """Record that the user saw the changes of the file at this time.

    With a `report`, a push found conflicts: that counts as a preview of the file and of its report,
    unless there was one before. So a second push of the same values finds the same conflicts.
    """
    resource, digests = previewed.push_file.resource, [previewed.table.digest]
    with Ledger(folder) as ledger:
        journal = Journal(ledger)
        if report is not None:
            at = journal.previewed_at(digests[0], resource) or at
            with report.open("rb") as file:
                digests.append(hashlib.file_digest(file, "sha256").hexdigest())
        for digest in digests:
            journal.record_preview(digest, resource, at)


@dataclass(slots=True)
class _FilePush:
    """Push of one file, with the options of the run and its budget."""

    settings: Settings
    options: PushRunOptions
    budget: int | None
    watch: Watch | None
    on_wait: Callable[[str], None] | None
    started: float
    checked_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    is_waiting: bool = False

    async def report_preview(self, previewed: Preview) -> PushReport:
        """Record that the user sees the preview, and report it."""
        await asyncio.to_thread(self._record_as_previewed, previewed)
        return await self._make_report(previewed, previewed.results)

    def _record_as_previewed(self, previewed: Preview, report: Path | None = None) -> None:
        """Record that the user saw the changes at the time of the check."""
        record_preview(self.settings.folder, previewed, self.checked_at, report)

    async def send_and_report(self, previewed: Preview) -> PushReport:
        """Pull, check the rows again if the warehouse changed, send them, and report."""
        from connector.pushes.batch import apply  # noqa: PLC0415
        from connector.pushes.landed_writes import copy_and_publish  # noqa: PLC0415

        pulled = None
        if previewed.blocking_questions:
            # A pull does not answer these questions.
            return await self._report_questions(previewed, None)
        if self.options.pulls and not previewed.is_pushed:
            pulled = await self._pull(previewed)
        if pulled is not None:
            # The pull has changed the warehouse.
            again, table = self.options.policy.resend, previewed.table
            check = partial(
                preview, resend=again, keeps_tasks=True, compares_as_seen=True, table=table
            )
            self.checked_at = datetime.now(UTC)
            previewed = await asyncio.to_thread(check, self.settings, previewed.push_file)
        if pulled is not None and pulled.error is not None:
            unpublished = None
            if pulled.outcome != "failed":
                unpublished = await asyncio.to_thread(copy_and_publish, self.settings)
            more = {"pulled": pulled, "error": pulled.error, "unpublished": unpublished}
            return await self._make_report(previewed, _results_as_not_sent(previewed), **more)
        if previewed.blocking_questions:
            return await self._report_questions(previewed, pulled)
        spent = pulled.requests if pulled is not None else 0
        # Sending takes long and does not need the values of a workbook in memory.
        done = await apply(
            self.settings,
            await asyncio.to_thread(previewed.plan),
            self.options.policy,
            budget=None if self.budget is None else max(1, self.budget - spent),
            ignores_quota=self.options.ignores_quota,
            people=self.options.people,
            watch=self._report_progress,
            sleep=asyncio.sleep if self.options.waits_for_lookups else None,
        )
        headings, said = previewed.table.headings, previewed.push_file.saved
        folder = self.settings.folder
        await asyncio.to_thread(remember_mapping, folder, headings, previewed.columns, said)
        # An error of the publication does not make the push fail: the rows are sent.
        unpublished = await asyncio.to_thread(copy_and_publish, self.settings)
        report = await self._make_report(
            previewed,
            _final_results(previewed, done),
            batch=done,
            pulled=pulled,
            unpublished=unpublished,
        )
        if report.summary.counts["conflict"] and report.file is not None:
            await asyncio.to_thread(self._record_as_previewed, previewed, report.file)
        return report

    def _report_progress(self, progress: Progress) -> None:
        """Pass the progress to `watch`. The first time that rows wait, also pass a sentence to
        `on_wait`.
        """
        if progress.until is not None and not self.is_waiting:
            self.is_waiting = True
            if self.on_wait is not None:
                rows = count_noun(progress.pending, "row")
                self.on_wait(
                    f"{rows} unconfirmed, because the answers were lost. The push searches for the "
                    f"records again at {progress.until:%H:%M:%S} UTC (--no-wait skips the search)"
                )
        if self.watch is not None:
            self.watch(progress)

    async def _report_questions(self, previewed: Preview, pulled: PullReport | None) -> PushReport:
        """Report that questions have to be answered before anything is sent."""
        if not previewed.results:
            # The pull was skipped, so the rows have not been checked yet.
            again = self.options.policy.resend
            check = partial(preview, resend=again, table=previewed.table)
            previewed = await asyncio.to_thread(check, self.settings, previewed.push_file)
        why = ", ".join(each.code for each in previewed.blocking_questions)
        unsent = _results_as_not_sent(previewed, why)
        return await self._make_report(previewed, unsent, pulled=pulled, is_held_back=True)

    async def _pull(self, previewed: Preview) -> PullReport:
        """Pull the resources that the rows are compared with, and return the report.

        Waits for a running pull, since it may not have read these records.
        """
        from connector.pulls.run import pull  # noqa: PLC0415

        is_told = False
        while True:
            try:
                return await pull(
                    self.settings,
                    sorted(previewed.resources),
                    budget=self.budget,
                    ignores_quota=self.options.ignores_quota,
                    # The push publishes once, at its end.
                    publishes=False,
                    command="push",
                    watch=self.watch,
                )
            except LeaseHeld as held:
                if self.on_wait is not None and not is_told:
                    self.on_wait(f"{held}. The push waits until this run ends")
                is_told = True
            await asyncio.sleep(PULL_CHECK_SECONDS)

    async def _make_report(
        self, previewed: Preview, results: Collection[RowResult], **more: Any
    ) -> PushReport:
        """Write the report file, and return the report with these results."""
        is_preview = results is previewed.results
        path = await asyncio.to_thread(self._write_report, previewed, results, **more)
        summary = previewed.summary if is_preview else Summary.of(results)
        seconds = time.monotonic() - self.started
        return PushReport(previewed, results, summary, seconds, path, **more)

    def _write_report(
        self,
        previewed: Preview,
        results: Collection[RowResult],
        batch: BatchReport | None = None,
        **more: Any,
    ) -> Path | None:
        """Write the report file and return its path; None if it would have no row."""
        options, table = self.options, previewed.table
        if not options.reports:
            return None
        if batch is not None or options.report_rows == "all":
            path = options.output or report_path(table)
            write_report(path, table, pair_rows(table, results))
            return path
        reported = previewed.rows.reported
        if not reported and options.output is None:
            return None
        path = options.output or report_path(table)
        pairs = reported if results is previewed.results else _replace_results(reported, results)
        write_report(path, table, pairs)
        return path


def _replace_results(
    rows: Iterable[tuple[SheetRow, RowResult]], results: Iterable[RowResult]
) -> Iterator[tuple[SheetRow, RowResult]]:
    """Yield each row with its result from `results`, which has one for every row in this order."""
    given = iter(results)
    for row, _ in rows:
        yield row, next(each for each in given if each.number == row.number)


def _final_results(previewed: Preview, done: BatchReport) -> Collection[RowResult]:
    """Return the result of every row, from the journal.

    Raises `AssertionError` if the rows are not those of the file: no report is better than one with
    missing rows.
    """

    def result(row: RowRecord) -> RowResult:
        problems = tuple(with_column(each, previewed.columns) for each in row.problems)
        return RowResult(row.number, row.outcome, problems, row.code or None, row.record_id)

    for wanted, row in zip_longest(previewed.results, done.rows):
        is_told = wanted is not None and row is not None and wanted.number == row.number
        assert is_told, "the report's rows are not the file's"
    return SpillMap(done.rows, result, len(done.rows))


def _results_as_not_sent(previewed: Preview, code: str | None = None) -> Collection[RowResult]:
    """Return the results of the preview, with the outcome `not_sent` for rows to send."""

    def result(row: RowResult) -> RowResult:
        is_left = row.outcome in OPERATIONS
        left = replace(row, outcome="not_sent", code=code, changes=())
        return left if is_left else row

    return SpillMap(previewed.results, result, len(previewed.results))
