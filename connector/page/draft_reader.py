"""Readings of drafts: files are opened, checked and corrected in the background, one at a time.

A screen requests a reading and gets a job, which ends quickly for a short file. A reading is valid
for the answers with which it was made; other answers require another reading.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from itertools import islice
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Any, Generic, TypeVar

from connector.errors import ConnectorError
from connector.ledger.journal import Journal
from connector.ledger.journal_records import RowRecord
from connector.ledger.ledger import Ledger
from connector.ledger.push_plan import RowResult
from connector.page.drafts import RECORD, DraftFolder, Edits, ImportDraft
from connector.page.row_index import TAKEN_BACK, IndexedRow, RowIndex
from connector.pushes.dry_run import (
    Preview,
    PushFile,
    open_push_file,
    preview,
    push_target_of,
    with_column,
)
from connector.pushes.file_warnings import load_remembered_mapping
from connector.pushes.push import record_preview
from connector.settings.model import Settings
from connector.spreadsheet.mapping import ColumnMap, map_headings
from connector.spreadsheet.problems import Cell, SheetRow, text_of
from connector.spreadsheet.report import report_path, write_report
from connector.spreadsheet.table import Spreadsheet
from connector.spreadsheet.targets import PushTarget, comparison_text
from connector.warehouse.lookups import WarehouseLookups
from connector.warehouse.warehouse import Warehouse

SAMPLED_ROWS, SAMPLES_MAX = 200, 3
"""Number of rows from which sample cells are taken, and number of samples per column."""

SHOWN_ROWS, SHOWN_COLUMNS = 15, 12
"""Number of rows at the start of a file from which the user selects the heading row."""

SHEETS_SHOWN, SHEET_ROWS = 12, 4
"""Number of sheets from which the user selects one, and number of rows shown of each."""

_KEPT_MAX = 6
"""Number of readings that are cached."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class OpenedFile:
    """Table of a file, its target, and samples of its columns.

    `beginning` are the file's first rows, starting with row `begins_at`. `samples` are a few
    different cells of each column.
    """

    table: Spreadsheet
    target: PushTarget
    beginning: tuple[tuple[str, ...], ...]
    begins_at: int
    samples: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class CheckedFile:
    """Preview of the push of a file, and its rows with their results."""

    preview: Preview
    rows: RowIndex


@dataclass(slots=True)
class ReadingJob(Generic[T]):
    """Reading of a draft's file. `rows` is the number of rows read so far; `future` has the result.

    The result is valid for drafts with the same `key`.
    """

    key: str
    rows: int = 0
    future: Future[T] = field(default_factory=Future)

    def report_rows(self, rows: int) -> None:
        """Set the number of rows read, unless it is lower than before."""
        self.rows = max(self.rows, rows)

    def run(self, work: Callable[[str, ReadingJob[T]], T], id: str) -> None:
        """Do the work and store its result or its error in the future."""
        try:
            self.future.set_result(work(id, self))
        except Exception as error:
            self.future.set_exception(error)


class DraftReader:
    """Reads files of one account's drafts in a thread, one at a time, and caches the results."""

    def __init__(self, settings: Settings, drafts: DraftFolder) -> None:
        self._settings, self._drafts = settings, drafts
        self._lock = Lock()
        self._opened: OrderedDict[str, ReadingJob[OpenedFile]] = OrderedDict()
        self._checked: OrderedDict[str, ReadingJob[CheckedFile]] = OrderedDict()
        self._outcomes: OrderedDict[str, ReadingJob[RowIndex]] = OrderedDict()
        self._queue: SimpleQueue[Callable[[], None]] = SimpleQueue()
        Thread(target=self._run_jobs, name="readings", daemon=True).start()

    def read_file(self, draft: ImportDraft) -> ReadingJob[OpenedFile]:
        """Return the job that opens the draft's file."""
        options = {name: draft.options.get(name) for name in _PLACE_OPTIONS}
        key = repr((draft.file, draft.resource, draft.mode, sorted(options.items())))
        return self._get_or_start_job(self._opened, draft.id, key, self._read_file_in_thread)

    def check_rows(self, draft: ImportDraft) -> ReadingJob[CheckedFile]:
        """Return the job that writes edits to a copy of the file and checks all rows."""
        return self._get_or_start_job(
            self._checked, draft.id, self._make_check_key(draft), self._check_rows_in_thread
        )

    def read_outcomes(self, draft: ImportDraft) -> ReadingJob[RowIndex]:
        """Return the job that reads the outcome of every row of a sent draft."""
        return self._get_or_start_job(
            self._outcomes,
            draft.id,
            f"{draft.batch} {draft.version}",
            self._read_outcomes_in_thread,
        )

    def last_checked_file(self, draft: ImportDraft) -> CheckedFile | None:
        """Return the rows as of the last check; None if it is running, failed, or is outdated."""
        job = self._checked.get(draft.id)
        if job is None or not job.future.done() or job.future.exception() is not None:
            return None
        found = job.future.result()
        return found if found.preview.push_file == self.push_file(draft) else None

    def discard_results(self, id: str) -> None:
        """Remove the cached results of a draft."""
        with self._lock:
            self._opened.pop(id, None)
            self._checked.pop(id, None)
            self._outcomes.pop(id, None)

    def push_file(self, draft: ImportDraft) -> PushFile:
        """Return the file to be pushed, with its options."""
        options = draft.push_options(self._drafts.folder_of(draft.id))
        return options.push_file(draft.resource, self._drafts.file_path(draft))

    def map_columns(self, draft: ImportDraft, opened: OpenedFile) -> tuple[ColumnMap, bool]:
        """Return the draft's column mapping, and True if it was saved for an earlier file."""
        push_file, headings = self.push_file(draft), opened.table.headings
        saved, saved_name = push_file.saved, None
        if push_file.remembers:
            folder = self._settings.folder
            saved, saved_name = load_remembered_mapping(
                folder, push_file.resource, headings, push_file.saved
            )
        found = map_headings(headings, opened.target, saved=saved, ignored=push_file.ignored)
        return found, saved_name is not None

    def check_edited_rows(self, draft: ImportDraft, numbers: list[int]) -> None:
        """Check the rows with these numbers, with their edits, and update the last check.

        Duplicates in other rows are only found when the whole file is checked.
        """
        checked = self.last_checked_file(draft)
        if checked is None:
            return
        headings, rows = checked.preview.table.headings, checked.rows
        edited = []
        for number in numbers:
            before, edit = rows.row(number), draft.edits.get(str(number), {})
            if before is None or edit is None or not edit:
                rows.rechecked.pop(number, None)
            else:
                edited.append(apply_edit(before.row, edit, headings))
        if edited:
            table = checked.preview.table
            rechecked = preview(
                self._settings, checked.preview.push_file, table=table, only_rows=edited
            )
            for row, result in zip(edited, rechecked.results, strict=True):
                rows.replace_checked_row(IndexedRow(row, result))

    def values_to_send(
        self, checked: CheckedFile, rows: list[IndexedRow]
    ) -> dict[int, Mapping[str, Any]]:
        """Return the values that the push would send for these rows, by row number and field."""
        push_file, table = checked.preview.push_file, checked.preview.table
        only = [each.row for each in rows]
        checked_rows = preview(
            self._settings, push_file, table=table, only_rows=only, keeps_tasks=True
        )
        return {each.number: {**each.fields, **each.afterwards} for each in checked_rows.rows.tasks}

    def preview_sheets(
        self, draft: ImportDraft, names: Sequence[str]
    ) -> dict[str, Sequence[Sequence[str]]]:
        """Return the first rows of each sheet, up to `SHEETS_SHOWN` sheets."""
        push_file = self.push_file(draft)
        return {
            name: _first_rows(replace(push_file, sheet=name))[0][:SHEET_ROWS]
            for name in names[:SHEETS_SHOWN]
        }

    def load_records(self, resource: str, ids: Collection[str]) -> Mapping[str, Mapping[str, Any]]:
        """Return the records of the local copy with these ids, by id."""
        if not ids:
            return {}
        with WarehouseLookups(_open_warehouse(self._settings), comparison_text) as lookups:
            return {id: each.record for id, each in lookups.landed_records(resource, ids).items()}

    def count_rows_missing_in_report(self, draft: ImportDraft) -> int:
        """Return the number of rows above the headings that a report of the draft's file omits."""
        return _count_rows_above_headings(open_push_file(self.push_file(draft)))

    def edits_skipping_finished_rows(self, draft: ImportDraft, rest: ImportDraft) -> Edits:
        """Return edits for `rest`, made of the draft's report, that skip rows without errors."""
        assert draft.batch is not None
        rows_lost = rest.shift - draft.shift
        with Ledger(self._settings.folder) as ledger:
            wanted = {
                each.number - rows_lost
                for each in Journal(ledger).rows(draft.batch)
                if each.outcome in TO_CORRECT
            }
        table = open_push_file(self.push_file(rest))
        numbers = (row.number for row in table.rows() if not row.is_left_out)
        return {str(number): None for number in numbers if number not in wanted}

    def _make_check_key(self, draft: ImportDraft) -> str:
        """Return a key that changes with everything that affects the check.

        That is the file, the answers, the edits, and the latest push of the account.
        """
        with Ledger(self._settings.folder) as ledger:
            pushed = [(each.batch, each.outcome) for each in Journal(ledger).batches()[:1]]
        return f"{self._drafts.content_key(draft)} {pushed}"

    # -- Work -------------------------------------------------------------------------------------

    def _get_or_start_job(
        self,
        cache: OrderedDict[str, ReadingJob[T]],
        id: str,
        key: str,
        work: Callable[[str, ReadingJob[T]], T],
    ) -> ReadingJob[T]:
        """Return the cached job of a draft if its key is the same; otherwise queue a new job."""
        with self._lock:
            job = cache.get(id)
            if job is None or job.key != key:
                job = cache[id] = ReadingJob(key)
                self._queue.put(partial(job.run, work, id))
            cache.move_to_end(id)
            while len(cache) > _KEPT_MAX:
                cache.popitem(last=False)
            return job

    def _run_jobs(self) -> None:
        """Run queued jobs, forever."""
        while True:
            self._queue.get()()

    def _read_file_in_thread(self, id: str, job: ReadingJob[OpenedFile]) -> OpenedFile:
        """Open a draft's file; return its table, target and samples."""
        draft = self._drafts.load(id)
        push_file = self.push_file(draft)
        table = open_push_file(push_file)
        with WarehouseLookups(_open_warehouse(self._settings), comparison_text) as lookups:
            target = push_target_of(push_file, lookups)
        beginning, begins_at = _first_rows(push_file)
        samples: list[dict[str, None]] = [{} for _ in table.headings]
        for row in islice(table.rows(), SAMPLED_ROWS):
            for some, cell in zip(samples, () if row.is_outside else row.cells, strict=False):
                if len(some) < SAMPLES_MAX and (text := text_of(cell).strip()):
                    some[text] = None
        return OpenedFile(table, target, beginning, begins_at, tuple(map(tuple, samples)))

    def _check_rows_in_thread(self, id: str, job: ReadingJob[CheckedFile]) -> CheckedFile:
        """Write a draft's edits to a copy of its file, and check all rows."""
        draft = self._drafts.load(id)
        if draft.edits:
            draft = self._write_edits_to_copy(draft)
            job.key = self._make_check_key(draft)
        push_file, at = self.push_file(draft), datetime.now(UTC)
        opened = open_push_file(push_file)
        rows = RowIndex(self._settings.folder)
        counted = _store_rows_while_reading(opened, rows, job.report_rows)
        previewed = preview(
            self._settings, push_file, resend=bool(draft.options.get("resend")), table=counted
        )
        record_preview(self._settings.folder, previewed, at)
        rows.add_results(previewed.results, opened.headings)
        return CheckedFile(previewed, rows)

    def _read_outcomes_in_thread(self, id: str, job: ReadingJob[RowIndex]) -> RowIndex:
        """Return the rows of a sent draft with the outcomes in the journal."""
        draft = self._drafts.load(id)
        assert draft.batch is not None
        table = open_push_file(self.push_file(draft))
        columns, _ = self.map_columns(draft, self._read_file_in_thread(id, ReadingJob(job.key)))
        with Ledger(self._settings.folder) as ledger:
            records = list(Journal(ledger).rows(draft.batch))
        results = [_row_result(each, columns) for each in records]
        rows = RowIndex(self._settings.folder)
        for _ in _store_rows_while_reading(table, rows, job.report_rows).rows():
            pass
        rows.add_results(results, table.headings)
        return rows

    def _write_edits_to_copy(self, draft: ImportDraft) -> ImportDraft:
        """Write the draft's edits to a copy of its file; return the draft with the copy.

        The copy is a report: every table can be written as a report, and the command can read it.
        """
        push_file, edits = self.push_file(draft), draft.edits
        table = open_push_file(push_file)

        results: deque[RowResult] = deque()

        def rows() -> Iterator[SheetRow]:
            for read in table.rows():
                row, edit = read, edits.get(str(read.number), {})
                if row.is_outside or edit is None:
                    # Totals and similar rows do not belong to the copy.
                    row = _as_blank_row(row)
                elif edit or row.problems:
                    row = apply_edit(row, edit, table.headings)
                if not row.is_left_out:
                    result = RowResult(row.number, "not_sent", record_id=row.record_id or None)
                    results.append(result)
                yield row

        path = report_path(table)
        # The report requests a result after its row.
        next_results = iter(lambda: results.popleft() if results else None, None)
        write_report(path, replace(table, all_rows=list(rows())), next_results)
        rows_lost = _count_rows_above_headings(table)
        with self._drafts.open_for_change(draft.id, draft.changed_by) as now:
            later = {row: edit for row, edit in now.edits.items() if edits.get(row) != edit}
            now.edits = {str(int(row) - rows_lost): edit for row, edit in later.items()}
            if now.file != now.original:
                self._drafts.file_path(now).unlink(missing_ok=True)
            now.file, now.shift = path.name, now.shift + rows_lost
            now.options = {n: v for n, v in now.options.items() if n not in READ_OPTIONS}
        return now


def _count_rows_above_headings(table: Spreadsheet) -> int:
    """Return the number of rows above the headings that a report of the table omits."""
    # The report of a workbook keeps the row numbers; in a text they are counted.
    is_text = table.kind in ("csv", "tsv") and not table.is_report
    return table.heading_rows.first_row - 1 if is_text else 0


TO_CORRECT = frozenset(("invalid", "rejected", "conflict"))
"""Outcomes of rows that were not written and that the user can correct."""

READ_OPTIONS = ("sheet", "encoding", "delimiter", "header_row")
_PLACE_OPTIONS = (*READ_OPTIONS, "match", "content_type", "clear")


def _row_result(row: RowRecord, columns: ColumnMap) -> RowResult:
    """Convert a row of the journal to a result for the index."""
    problems = tuple(with_column(each, columns) for each in row.problems)
    code = TAKEN_BACK if row.undone_at is not None else row.code or None
    return RowResult(row.number, row.outcome, problems, code, row.record_id)


def _open_warehouse(settings: Settings) -> Warehouse:
    """Return the account's warehouse, created if missing."""
    warehouse = Warehouse(settings.folder)
    warehouse.prepare()
    return warehouse


def _store_rows_while_reading(
    table: Spreadsheet, index: RowIndex, report_rows: Callable[[int], None]
) -> Spreadsheet:
    """Return the same table, whose rows are stored in the index and counted while they are read."""

    def rows() -> Iterator[SheetRow]:
        for count, row in enumerate(index.store_rows(table.rows()), 1):
            if count % 1_000 == 0:
                report_rows(count)
            yield row

    return replace(table, all_rows=list(rows()))


def _first_rows(push_file: PushFile) -> tuple[tuple[tuple[str, ...], ...], int]:
    """Return the first rows and cells of the file as texts, and the number of the first row.

    Rows that cannot be a heading row are skipped; empty if the file cannot be opened.
    """
    for first in range(1, SHOWN_ROWS):
        try:
            table = open_push_file(replace(push_file, header_row=first))
        except ConnectorError:
            continue
        shown = [table.headings, *(row.cells for row in islice(table.rows(), SHOWN_ROWS))]
        return tuple(tuple(map(text_of, cells[:SHOWN_COLUMNS])) for cells in shown), first
    return (), 1


def apply_edit(row: SheetRow, edit: dict[str, str], headings: Sequence[str]) -> SheetRow:
    """Return the row with new texts by column index, without problems of the replaced cells."""
    cells: list[Cell] = list(row.cells)
    texts = {int(index): text for index, text in edit.items() if index != RECORD}
    changed = {index: text for index, text in texts.items() if index < len(cells)}
    for index, text in changed.items():
        cells[index] = text
    while len(cells) > len(headings) and cells[-1] == "":
        cells.pop()
    is_filled = any(index >= len(row.cells) - row.missing_cells for index in changed)
    missing = 0 if is_filled else row.missing_cells
    # A problem with the shape of a cell disappears with the cell.
    gone: set[str | None] = {headings[i] for i in changed if i < len(headings)}
    if len(cells) == len(headings) and not missing:
        gone.add(None)
    return replace(
        row,
        cells=tuple(cells),
        problems=tuple(each for each in row.problems if each.column not in gone),
        flaws={index: flaw for index, flaw in row.flaws.items() if index not in changed},
        missing_cells=missing,
        record_id=edit.get(RECORD, row.record_id),
    )


def _as_blank_row(row: SheetRow) -> SheetRow:
    """Return the row as a blank row of the table, without problems."""
    return replace(
        row, cells=("",) * len(row.cells), problems=(), flaws={}, missing_cells=0, is_outside=False
    )
