"""Spreadsheets into the API: previewed, applied if wanted, and reported on.

A preview sends nothing. To apply, the landing is brought up to date first, so that rows are
compared with what is there now; then what is left to be sent is sent (`pushes/batch.py`). The
report has one line for each row, and can be corrected and pushed again.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import Any, Literal

from connector.catalog import CATALOG, REFERRED_FIRST
from connector.client.client import Client
from connector.engine.push_plan import PushPolicy
from connector.engine.push_states import PreviewOutcome
from connector.errors import ConnectorError, Misused, UnknownName
from connector.errors_api import LeaseHeld
from connector.lakehouse.push_claims import sharing
from connector.ledger.journal_reads import RowRecord
from connector.pulls.outcome import PullReport, Watch
from connector.pulls.run import pull
from connector.pushes.batch import apply
from connector.pushes.batch_report import BatchReport, BatchWatch
from connector.pushes.dry_run import OPERATIONS, Asked, Preview, as_told, preview
from connector.pushes.landed import publish
from connector.settings.model import Settings
from connector.spreadsheet.report import RowResult, Summary, report_path, write_report
from connector.system.spill_file import Mapped

ORDER = tuple(name for name in REFERRED_FIRST if "create" in CATALOG[name].operations)
"""In which order files are pushed that are given together: those first that others refer to."""

PULL_LOOK_SECONDS = 1.0
"""How often a push looks whether the pull that it waits for has ended."""

PushOutcome = Literal["previewed", "done", "partial", "stopped", "failed"]


@dataclass(frozen=True, slots=True)
class PushReport:
    """What became of one file. `results` are its rows, in order, and `summary` what
    they come to. `batch` is None while nothing was applied, and then they say what is foreseen;
    `pulled` is the pull that went before; `file` is where the report is; `unpublished` is why
    analysts do not see yet what was written.
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

    @property
    def counts(self) -> dict[PreviewOutcome, int]:
        """How many rows have each outcome; those that none has are left out."""
        return dict(self.summary.counts)

    @property
    def outcome(self) -> PushOutcome:
        """How it ended."""
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
            # What was written is written, but somebody has to look why it is not to be seen.
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
            "changes": self._changes(),
            "report": str(self.file) if self.file is not None else None,
            "error": error.as_json() if error is not None else None,
            "unpublished": self.unpublished.as_json() if self.unpublished is not None else None,
        }

    def _changes(self) -> list[dict[str, Any]]:
        """What the first rows would change, field by field; nothing once they were sent."""
        if self.batch is not None:
            return []
        return [
            {"row": number, "field": name, "now": now, "then": then}
            for number, fields in self.preview.rows.changes.items()
            for name, (now, then) in fields.items()
        ]


@dataclass(frozen=True, slots=True)
class Manner:
    """How a push goes about it.

    `applies`: send what is foreseen, and do not only say it. `pulls`: bring the landing up to date
    first. `reports`: write the report, into `report` if that is named, else beside the file.
    """

    applies: bool = False
    pulls: bool = True
    reports: bool = True
    report: Path | None = None
    terms: PushPolicy = field(default_factory=PushPolicy)
    asks_anyway: bool = False


@dataclass(frozen=True, slots=True)
class Watches:
    """Watchers of a push: of its rows, of the pull before, and of why it waits."""

    rows: BatchWatch | None = None
    pull: Watch | None = None
    waits: Callable[[str], None] | None = None


_UNWATCHED = Watches()


async def push(
    settings: Settings,
    files: Sequence[Asked],
    manner: Manner,
    *,
    budget: int | None = None,
    watches: Watches = _UNWATCHED,
    connect: Callable[..., Client] = Client,
) -> list[PushReport]:
    """Push the files, those first that others refer to, and say what became of each.

    At most `budget` requests are sent, all files and pulls together. A file after one that failed
    or was stopped is previewed and not applied. A pull that is under way is waited for, unless the
    manner leaves pulling out. Raises `Misused`, `UnknownName` or a `SpreadsheetError` for what
    cannot be meant, and `PushJournalUnreached`, before anything is sent, and `WarehouseError`.
    """
    for each in files:
        if each.resource not in ORDER:
            raise UnknownName("resource that can be pushed", each.resource, ORDER)
    if manner.report is not None and len(files) > 1:
        raise Misused(
            "one report was named for several files",
            action="Leave --report out: each report is written beside its file.",
        )
    ordered = sorted(files, key=lambda each: ORDER.index(each.resource))
    # Every file is read whole before the first request: a mistake in the last one costs nothing.
    foreseen: list[Preview] = []
    for each in ordered:
        earlier = [before.planned for before in foreseen]
        is_last = len(foreseen) + 1 == len(ordered)
        # The first file to be sent may be sent as it was foreseen here.
        keeps_tasks = not is_last or (manner.applies and not foreseen)
        foreseen.append(
            await preview(
                settings, each, again=manner.terms.again, earlier=earlier, keeps_tasks=keeps_tasks
            )
        )
    if manner.applies:
        # A shared journal that cannot be reached is known before the first request.
        with sharing(settings):
            pass
    reports: list[PushReport] = []
    left, goes_on = budget, manner.applies
    for seen in foreseen:
        run = _Push(settings, manner, left, watches, connect)
        is_first = not reports
        done = await (run.applied(seen, is_first) if goes_on else run.previewed(seen))
        reports.append(done)
        left = None if left is None else max(0, left - done.requests)
        goes_on = goes_on and done.outcome in ("done", "partial")
    return reports


class _Push:
    """One file's push."""

    def __init__(
        self,
        settings: Settings,
        manner: Manner,
        budget: int | None,
        watches: Watches,
        connect: Callable[..., Client],
    ) -> None:
        self._settings, self._manner, self._budget = settings, manner, budget
        self._watches, self._connect = watches, connect
        self._started = time.monotonic()

    async def previewed(self, foreseen: Preview) -> PushReport:
        """Say what would be done."""
        return await self._report(foreseen, foreseen.results)

    async def applied(self, foreseen: Preview, is_first: bool) -> PushReport:
        """Bring the landing up to date, foresee again where it is another one, and send."""
        pulled = None
        if self._manner.pulls and not foreseen.is_pushed:
            pulled = await self._pull(foreseen)
            if pulled.error is not None:
                unpublished = None
                if pulled.outcome != "failed":
                    unpublished = await asyncio.to_thread(publish, self._settings)
                return await self._report(
                    foreseen,
                    _unsent(foreseen),
                    pulled=pulled,
                    error=pulled.error,
                    unpublished=unpublished,
                )
        if pulled is not None or not is_first:
            # The landing is another one now: by the pull, or by the files before this one.
            again = self._manner.terms.again
            foreseen = await preview(self._settings, foreseen.asked, again=again, keeps_tasks=True)
        spent = pulled.requests if pulled is not None else 0
        # Sending takes long, and needs none of a workbook's values.
        foreseen.table.release()
        done = await apply(
            self._settings,
            await asyncio.to_thread(foreseen.plan),
            self._manner.terms,
            budget=None if self._budget is None else max(1, self._budget - spent),
            asks_anyway=self._manner.asks_anyway,
            watch=self._watches.rows,
            connect=self._connect,
        )
        # The rows are written, even where analysts cannot be shown them now.
        unpublished = await asyncio.to_thread(publish, self._settings)
        return await self._report(
            foreseen, _ended(foreseen, done), batch=done, pulled=pulled, unpublished=unpublished
        )

    async def _pull(self, foreseen: Preview) -> PullReport:
        """Bring the landing up to date. A pull that is under way is waited for: what it
        has not read yet may be what the rows are compared with.
        """
        is_told = False
        while True:
            try:
                return await pull(
                    self._settings,
                    sorted(foreseen.resources),
                    budget=self._budget,
                    asks_anyway=self._manner.asks_anyway,
                    # It is published once, with what the push writes.
                    publishes=False,
                    command="push",
                    watch=self._watches.pull,
                    connect=self._connect,
                )
            except LeaseHeld as held:
                if self._watches.waits is not None and not is_told:
                    self._watches.waits(f"{held}; this push waits for its end")
                is_told = True
            await asyncio.sleep(PULL_LOOK_SECONDS)

    async def _report(
        self, foreseen: Preview, results: Collection[RowResult], **more: Any
    ) -> PushReport:
        path = None
        if self._manner.reports:
            path = self._manner.report or report_path(foreseen.table)
            await asyncio.to_thread(write_report, path, foreseen.table, results)
        is_foreseen = results is foreseen.results
        summary = foreseen.summary if is_foreseen else Summary.of(results)
        seconds = time.monotonic() - self._started
        return PushReport(foreseen, results, summary, seconds, path, **more)


def _ended(foreseen: Preview, done: BatchReport) -> Collection[RowResult]:
    """How every row ended, as the journal has it.
    Raises `AssertionError` where they do not add up: a report that leaves out a row is worse
    than none.
    """

    def result(row: RowRecord) -> RowResult:
        problems = tuple(as_told(each, foreseen.columns) for each in row.problems)
        return RowResult(row.number, row.outcome, problems, row.code or None, row.record_id)

    for wanted, row in zip_longest(foreseen.results, done.rows):
        is_told = wanted is not None and row is not None and wanted.number == row.number
        assert is_told, "the report's rows are not the file's"
    return Mapped(done.rows, result, len(done.rows))


def _unsent(foreseen: Preview) -> Collection[RowResult]:
    """What is foreseen, with the rows that would be sent called not sent."""

    def result(row: RowResult) -> RowResult:
        is_left = row.outcome in OPERATIONS
        return RowResult(row.number, "not_sent", record_id=row.record_id) if is_left else row

    return Mapped(foreseen.results, result, len(foreseen.results))
