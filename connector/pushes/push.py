"""Spreadsheets into the API: previewed, applied if wanted, and reported on.

A preview sends nothing. To apply, the landing is brought up to date first, so that rows are
compared with what is there now; then what is left to be sent is sent (`pushes/batch.py`). The
report has one line for each row, and can be corrected and pushed again.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from connector.catalog import CATALOG, REFERRED_FIRST
from connector.errors import ConnectorError, Misused, UnknownName, count_noun
from connector.errors_api import LeaseHeld
from connector.ledger.journal import Journal
from connector.ledger.journal_records import BatchAction, RowRecord
from connector.ledger.ledger import Ledger
from connector.ledger.push_plan import PushPolicy
from connector.ledger.push_states import PreviewOutcome
from connector.pulls.outcome import Progress, PullReport, Watch
from connector.pushes.batch_report import BatchReport
from connector.pushes.dry_run import OPERATIONS, Preview, PushFile, preview, with_column
from connector.pushes.file_warnings import save_match
from connector.pushes.spill_file import SpillMap
from connector.settings.model import Settings
from connector.spreadsheet.problems import SheetRow
from connector.spreadsheet.report import (
    PLAIN_WORDS,
    ReportWords,
    RowResult,
    Summary,
    report_path,
    write_report,
    write_some_rows,
)

if TYPE_CHECKING:
    # What sends takes a third of a second to be imported, and a preview sends nothing.
    from connector.client.client import Client

ORDER = tuple(name for name in REFERRED_FIRST if "create" in CATALOG[name].operations)
"""In which order files are pushed that are given together: those first that others refer to."""

PULL_LOOK_SECONDS = 1.0
"""How often a push looks whether the pull that it waits for has ended."""

ReportRows = Literal["problems", "all"]
"""Rows in the report of a preview. The report of rows that were sent has all of them."""

PushOutcome = Literal["previewed", "done", "partial", "stopped", "failed"]


@dataclass(frozen=True, slots=True)
class PushReport:
    """Result of the push of one file. `results` are its rows, in order, and `summary` what
    they come to. `batch` is None while nothing was applied, and then they say what is previewed;
    `pulled` is the pull that went before; `file` is where the report is; `unpublished` is why
    analysts do not see yet what was written. It `is_held_back` until a person has answered the
    preview's questions.
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
        """The outcome."""
        if self.batch is not None:
            return self.batch.outcome
        if self.error is not None:
            return "stopped" if self.error.exit_status == 4 else "failed"
        return "previewed"

    @property
    def requests(self) -> int:
        """Requests that were sent, those of the pull among them."""
        pulled = self.pulled.requests if self.pulled is not None else 0
        return pulled + (self.batch.requests if self.batch is not None else 0)

    @property
    def exit_status(self) -> int:
        """0 where every row is well, 3 where some need a person, else as it ended."""
        if self.batch is not None:
            # What was written is written, but a person has to look why it is not to be seen.
            status = self.batch.exit_status
            return 1 if self.unpublished is not None and status in (0, 3) else status
        if self.error is not None:
            return self.error.exit_status
        return 0 if self.preview.is_clean else 3

    def as_json(self) -> dict[str, Any]:
        """The report as `--json` prints it."""
        asked = self.preview.asked
        error = self.error or (self.batch.error if self.batch is not None else None)
        return {
            "outcome": self.outcome,
            "batch": self.batch.batch if self.batch is not None else None,
            "resource": asked.resource,
            "file": str(asked.path),
            "rows": self.summary.rows,
            **{str(name): count for name, count in self.counts.items()},
            "requests": self.requests,
            "requests_foreseen": self.preview.requests,
            "seconds": round(self.seconds, 3),
            "merged": list(self.preview.table.merged),
            "missing": list(self.preview.columns.missing),
            "unmapped": [each.heading for each in self.preview.columns.unmapped],
            "notices": list(self.preview.notices),
            "questions": [asdict(each) for each in self.preview.questions],
            "warned": self.preview.summary.warned,
            "changes": self._changes(),
            "report": str(self.file) if self.file is not None else None,
            "error": error.as_json() if error is not None else None,
            "unpublished": self.unpublished.as_json() if self.unpublished is not None else None,
        }

    def _changes(self) -> list[dict[str, Any]]:
        """Changes of the first rows, field by field; empty after sending."""
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
    """Options of a push that are not about the file.

    `applies`: send what is previewed, and do not only say it. `pulls`: bring the landing up to date
    first. `reports`: write the report, into `output` if that is named, else next to the file.
    `report`: the rows in it while nothing is sent, those with problems or all.
    `settles`: wait until rows whose answers were lost can be told from those that never arrived.
    `people`: who prepared and sent it, for the journal. `words`: words of the report.
    """

    applies: bool = False
    pulls: bool = True
    settles: bool = True
    reports: bool = True
    output: Path | None = None
    report: ReportRows = "problems"
    terms: PushPolicy = field(default_factory=PushPolicy)
    asks_anyway: bool = False
    people: Mapping[BatchAction, str] = field(default_factory=dict)
    words: ReportWords = PLAIN_WORDS


Manner = PushRunOptions
"""The public name of a push's options."""


async def push(
    settings: Settings,
    files: Sequence[PushFile],
    manner: PushRunOptions,
    *,
    budget: int | None = None,
    watch: Watch | None = None,
    waits: Callable[[str], None] | None = None,
    connect: Callable[..., Client] | None = None,
) -> list[PushReport]:
    """Push the files, those first that others refer to, and say what became of each.

    At most `budget` requests are sent, all files and pulls together. `watch` is told how the pull
    and the rows go on, `waits` why nothing does; `connect` makes another client. A file after one
    that failed or was stopped is previewed and not applied. A pull that is under way is waited for,
    unless the manner leaves pulling out. Raises `Misused`, `UnknownName` or a
    `SpreadsheetError` for what cannot be meant, before anything is sent, and `WarehouseError`.
    """
    for each in files:
        if each.resource not in ORDER:
            raise UnknownName("resource that can be pushed", each.resource, ORDER)
    if manner.output is not None and len(files) > 1:
        raise Misused(
            "--output names one report, but several files were given",
            action="Leave out --output. Each report is written next to its file.",
        )
    ordered = sorted(files, key=lambda each: ORDER.index(each.resource))
    foreseen = await asyncio.to_thread(_previews, settings, ordered, manner)
    reports: list[PushReport] = []
    left, goes_on = budget, manner.applies
    for seen, seconds in foreseen:
        started = time.monotonic() - seconds
        run = _FilePush(settings, manner, left, watch, waits, connect, started)
        is_first = not reports
        done = await (run.send_and_report(seen, is_first) if goes_on else run.report_preview(seen))
        reports.append(done)
        left = None if left is None else max(0, left - done.requests)
        goes_on = goes_on and done.outcome in ("done", "partial")
    return reports


def _previews(
    settings: Settings, files: Sequence[PushFile], manner: PushRunOptions
) -> list[tuple[Preview, float]]:
    """Preview all files before the first request: a mistake in any of them costs nothing.

    Returns each preview with the seconds that it took.

    The rows of an only file are checked once, against what its pull has landed. Those of several
    refer to each other, so that they are previewed together here, and checked again one by one.
    """
    foreseen: list[tuple[Preview, float]] = []
    for each in files:
        started = time.monotonic()
        is_last = len(foreseen) + 1 == len(files)
        seen = preview(
            settings,
            each,
            again=manner.terms.again,
            earlier=[before.planned for before, _ in foreseen],
            # The first file to be sent may be sent as it was previewed here.
            keeps_tasks=not is_last or (manner.applies and not foreseen),
            only_if_pushed=manner.applies and manner.pulls and len(files) == 1,
            as_seen=manner.applies,
        )
        foreseen.append((seen, time.monotonic() - started))
    return foreseen


def record_preview(
    folder: Path, foreseen: Preview, at: datetime, report: Path | None = None
) -> None:
    """Note that a person sees what the file would change, as of that time.

    A push that told of conflicts notes it of its file and of its report, unless there was a
    preview: what others have changed is not written over by saying the same again.
    """
    resource, digests = foreseen.asked.resource, [foreseen.table.digest]
    with Ledger(folder) as ledger:
        journal = Journal(ledger)
        if report is not None:
            at = journal.previewed_at(digests[0], resource) or at
            with report.open("rb") as file:
                digests.append(hashlib.file_digest(file, "sha256").hexdigest())
        for digest in digests:
            journal.note_preview(digest, resource, at)


@dataclass(slots=True)
class _FilePush:
    """One file's push."""

    settings: Settings
    manner: PushRunOptions
    budget: int | None
    watch: Watch | None
    waits: Callable[[str], None] | None
    connect: Callable[..., Client] | None
    started: float
    checked_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    is_waiting: bool = False

    async def report_preview(self, foreseen: Preview) -> PushReport:
        """Say what would be done."""
        await asyncio.to_thread(self._note_seen, foreseen)
        return await self._report(foreseen, foreseen.results)

    def _note_seen(self, foreseen: Preview, report: Path | None = None) -> None:
        record_preview(self.settings.folder, foreseen, self.checked_at, report)

    async def send_and_report(self, foreseen: Preview, is_first: bool) -> PushReport:
        """Bring the landing up to date, check where it is another one, and send."""
        from connector.pushes.batch import apply  # noqa: PLC0415
        from connector.pushes.landed_writes import copy_and_publish  # noqa: PLC0415

        pulled = None
        if foreseen.stopping:
            # What keeps the file back now does so after a pull as well.
            return await self._questions_before_sending(foreseen, None)
        if self.manner.pulls and not foreseen.is_pushed:
            pulled = await self._pull(foreseen)
        if pulled is not None or not is_first:
            # The landing is another one now: by the pull, or by the files before this one.
            again, table = self.manner.terms.again, foreseen.table
            check = partial(preview, again=again, keeps_tasks=True, as_seen=True, table=table)
            self.checked_at = datetime.now(UTC)
            foreseen = await asyncio.to_thread(check, self.settings, foreseen.asked)
        if pulled is not None and pulled.error is not None:
            unpublished = None
            if pulled.outcome != "failed":
                unpublished = await asyncio.to_thread(copy_and_publish, self.settings)
            more = {"pulled": pulled, "error": pulled.error, "unpublished": unpublished}
            return await self._report(foreseen, _as_unsent(foreseen), **more)
        if foreseen.stopping:
            return await self._questions_before_sending(foreseen, pulled)
        spent = pulled.requests if pulled is not None else 0
        # Sending takes long, and needs none of a workbook's values.
        foreseen.table.release()
        done = await apply(
            self.settings,
            await asyncio.to_thread(foreseen.plan),
            self.manner.terms,
            budget=None if self.budget is None else max(1, self.budget - spent),
            asks_anyway=self.manner.asks_anyway,
            people=self.manner.people,
            watch=self._follow,
            sleep=asyncio.sleep if self.manner.settles else None,
            **self._client,
        )
        headings, said = foreseen.table.headings, foreseen.asked.saved
        folder = self.settings.folder
        await asyncio.to_thread(save_match, folder, headings, foreseen.columns, said)
        # The rows are written, even where analysts cannot be shown them now.
        unpublished = await asyncio.to_thread(copy_and_publish, self.settings)
        report = await self._report(
            foreseen,
            _final_results(foreseen, done),
            batch=done,
            pulled=pulled,
            unpublished=unpublished,
        )
        if report.summary.counts["conflict"] and report.file is not None:
            await asyncio.to_thread(self._note_seen, foreseen, report.file)
        return report

    def _follow(self, progress: Progress) -> None:
        """Pass progress on, and say once for what rows in doubt wait."""
        if progress.until is not None and not self.is_waiting:
            self.is_waiting = True
            if self.waits is not None:
                rows = count_noun(progress.pending, "row")
                self.waits(
                    f"{rows} unconfirmed, because the answers were lost. The push searches for the "
                    f"records again at {progress.until:%H:%M:%S} UTC (--no-wait skips the search)"
                )
        if self.watch is not None:
            self.watch(progress)

    async def _questions_before_sending(
        self, foreseen: Preview, pulled: PullReport | None
    ) -> PushReport:
        """Say what a person has to settle before anything is sent."""
        if not foreseen.results:
            # The pull was saved, and so the rows have not been checked yet.
            again = self.manner.terms.again
            check = partial(preview, again=again, table=foreseen.table)
            foreseen = await asyncio.to_thread(check, self.settings, foreseen.asked)
        why = ", ".join(each.code for each in foreseen.stopping)
        unsent = _as_unsent(foreseen, why)
        return await self._report(foreseen, unsent, pulled=pulled, is_held_back=True)

    @property
    def _client(self) -> dict[str, Any]:
        return {} if self.connect is None else {"connect": self.connect}

    async def _pull(self, foreseen: Preview) -> PullReport:
        """Bring the landing up to date. A pull that is under way is waited for: what it
        has not read yet may be what the rows are compared with.
        """
        from connector.pulls.run import pull  # noqa: PLC0415

        is_told = False
        while True:
            try:
                return await pull(
                    self.settings,
                    sorted(foreseen.resources),
                    budget=self.budget,
                    asks_anyway=self.manner.asks_anyway,
                    # It is published once, with what the push writes.
                    publishes=False,
                    command="push",
                    watch=self.watch,
                    **self._client,
                )
            except LeaseHeld as held:
                if self.waits is not None and not is_told:
                    self.waits(f"{held}. The push waits until this run ends")
                is_told = True
            await asyncio.sleep(PULL_LOOK_SECONDS)

    async def _report(
        self, foreseen: Preview, results: Collection[RowResult], **more: Any
    ) -> PushReport:
        is_foreseen = results is foreseen.results
        path = await asyncio.to_thread(self._write_report, foreseen, results, **more)
        summary = foreseen.summary if is_foreseen else Summary.of(results)
        seconds = time.monotonic() - self.started
        return PushReport(foreseen, results, summary, seconds, path, **more)

    def _write_report(
        self,
        foreseen: Preview,
        results: Collection[RowResult],
        batch: BatchReport | None = None,
        **more: Any,
    ) -> Path | None:
        """Write the report and return its path; None where it would have no row."""
        manner, table = self.manner, foreseen.table
        if not manner.reports:
            return None
        if batch is not None or manner.report == "all":
            path = manner.output or report_path(table)
            write_report(path, table, results, manner.words)
            return path
        reported = foreseen.rows.reported
        if not reported and manner.output is None:
            table.release()
            return None
        path = manner.output or report_path(table)
        pairs = reported if results is foreseen.results else _with_results(reported, results)
        write_some_rows(path, table, pairs, foreseen.summary, manner.words)
        return path


def _with_results(
    rows: Iterable[tuple[SheetRow, RowResult]], results: Iterable[RowResult]
) -> Iterator[tuple[SheetRow, RowResult]]:
    """The rows with other results, of which there is one for every row of the table."""
    given = iter(results)
    for row, _ in rows:
        yield row, next(each for each in given if each.number == row.number)


def _final_results(foreseen: Preview, done: BatchReport) -> Collection[RowResult]:
    """Return the outcome of every row by the journal.
    Raises `AssertionError` where they do not add up: a report that leaves out a row is worse
    than none.
    """

    def result(row: RowRecord) -> RowResult:
        problems = tuple(with_column(each, foreseen.columns) for each in row.problems)
        return RowResult(row.number, row.outcome, problems, row.code or None, row.record_id)

    for wanted, row in zip_longest(foreseen.results, done.rows):
        is_told = wanted is not None and row is not None and wanted.number == row.number
        assert is_told, "the report's rows are not the file's"
    return SpillMap(done.rows, result, len(done.rows))


def _as_unsent(foreseen: Preview, code: str | None = None) -> Collection[RowResult]:
    """Return the previewed results, with rows to be sent as not sent."""

    def result(row: RowResult) -> RowResult:
        is_left = row.outcome in OPERATIONS
        left = replace(row, outcome="not_sent", code=code, changes=())
        return left if is_left else row

    return SpillMap(foreseen.results, result, len(foreseen.results))
