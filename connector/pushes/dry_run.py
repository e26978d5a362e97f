"""Preview of a push: the outcome of each row, and totals. Sends nothing."""

from __future__ import annotations

import gc
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any, get_args

from connector.errors import ConnectorError, Misused
from connector.ledger.journal import Journal
from connector.ledger.ledger import Ledger, allowance_of
from connector.ledger.push_plan import (
    Problem,
    PushPlan,
    RowResult,
    fingerprint,
    task_from_json,
    task_to_json,
)
from connector.ledger.push_states import Mode, Operation, Task
from connector.ledger.quota import MonthUse, format_moment
from connector.pulls.workspace import check_files
from connector.pushes.file_warnings import (
    LostColumns,
    ask_about_warnings,
    ask_for_values,
    load_remembered_mapping,
)
from connector.pushes.spill_file import (
    SpillFile,
    SpillMap,
    pair_from_json,
    pair_to_json,
    result_from_json,
    result_to_json,
)
from connector.settings import Settings
from connector.spreadsheet.check import BATCH_ROWS, CheckedRow, check_rows
from connector.spreadsheet.mapping import ColumnMap, map_headings
from connector.spreadsheet.mapping_file import SavedMap, with_region
from connector.spreadsheet.problems import COLUMN_MISSING, FileQuestion, SheetRow
from connector.spreadsheet.report import REMEMBERED_MAX, Summary
from connector.spreadsheet.row_reader import ColumnMeanings
from connector.spreadsheet.table import Spreadsheet, open_table
from connector.spreadsheet.targets import Lookups, PushTarget, comparison_text, push_target
from connector.spreadsheet.template import template_columns, write_template
from connector.spreadsheet.words import DEFAULT_REGION
from connector.warehouse.duckdb_file import make_folder
from connector.warehouse.lookups import WarehouseLookups
from connector.warehouse.state import find_push
from connector.warehouse.warehouse import Warehouse


@dataclass(frozen=True, slots=True)
class PushFile:
    """File to push, and how to read it.

    Attributes:
        match: Fields that identify the record of a row.
        saved: Column mapping; None to map the columns by their headings.
        ignored: Headings of columns that are not imported.
        clear: Text in a cell that empties its field.
        parent: Slug of the content type, for content items.
        sheet: Name of the sheet; None if only one has rows. For `encoding`, `delimiter` and
            `header_row`, None means that they are detected.
        accepts_warnings: Whether rows with warnings may be sent.
        remembers: Whether to use the last mapping for the same headings if none is given.
    """

    resource: str
    path: Path
    mode: Mode
    match: tuple[str, ...] = ()
    saved: SavedMap | None = None
    ignored: tuple[str, ...] = ()
    clear: str | None = None
    parent: str | None = None
    sheet: str | None = None
    encoding: str | None = None
    delimiter: str | None = None
    header_row: int | None = None
    accepts_warnings: bool = False
    remembers: bool = True


def with_column(problem: Problem, columns: ColumnMap) -> Problem:
    """Return a problem from the journal for the report, with its column and the API's value."""
    column = problem.column or (columns.heading_of(problem.field) if problem.field else None)
    is_shown = problem.found is not None and problem.code not in _FOUND_HERE
    found = f" The API has: {problem.found}." if is_shown else ""
    return replace(problem, message=problem.message + found, column=column or problem.field)


_FOUND_HERE = frozenset(("record_ambiguous", "reference_ambiguous", "duplicate_in_file"))
"""Codes of problems whose `found` are records of the warehouse or rows of the file."""


# -- Preview ---------------------------------------------------------------------------------------


REQUESTS: Mapping[Operation, int] = {"create": 1, "update": 2, "convert": 2}
"""Requests of one row. An update and a conversion read the record first. All creates of a file need
one more request together, to read the newest records.
"""

OPERATIONS = frozenset(get_args(Operation))

ADD_COLUMNS = "Add the columns, or give all rows the same value (--set FIELD=VALUE)."
"""Advice for a file without a required column."""

PUSHED = "already_pushed"
"""Code of a row that an earlier push has applied."""


CREATES_REMEMBERED = 10
"""Maximum number of creates whose values a preview shows."""


class PreviewRows:
    """Results of the previewed rows of a file, on the disk and in their order, with counts.

    Attributes:
        reported: Rows with problems, warnings or changes, for the report.
        tasks: Rows that would be sent; empty unless `keeps_tasks`.
        changes: Current and new values of the first updates, by row number and field.
        update_count: Number of updates that change a value.
        creates: Values of the first creates, by row number and field.
        pushed_count: Number of rows that an earlier push has applied.
    """

    def __init__(self, folder: Path, *, keeps_tasks: bool) -> None:
        self.summary = Summary()
        self.results: SpillFile[RowResult] = SpillFile(folder, result_to_json, result_from_json)
        self.reported: SpillFile[tuple[SheetRow, RowResult]] = SpillFile(
            folder, pair_to_json, pair_from_json
        )
        self.tasks: SpillFile[Task] = SpillFile(folder, task_to_json, task_from_json)
        self.changes: dict[int, Mapping[str, tuple[Any, Any]]] = {}
        self.creates: dict[int, Mapping[str, Any]] = {}
        self.update_count = self.requests = self.pushed_count = 0
        self.keeps_tasks, self._looks = keeps_tasks, False

    def add_row(
        self, checked: CheckedRow, pushed_record_id: str | None = None, *, is_pushed: bool
    ) -> None:
        """Add the result of a checked row.

        If `is_pushed`, an earlier push has applied the row: it is unchanged, and its record is
        `pushed_record_id`.
        """
        number = checked.row.number
        if is_pushed:
            self.pushed_count += 1
            self._add_result(
                checked.row, RowResult(number, "unchanged", (), PUSHED, pushed_record_id)
            )
            return
        if checked.outcome is not None:
            code = checked.problems[0].code if checked.problems else None
            warnings = checked.warnings
            ended = RowResult(
                number, checked.outcome, checked.problems, code, checked.record_id, (), warnings
            )
            self._add_result(checked.row, ended)
            return
        assert checked.task is not None
        changes = tuple((name, now, then) for name, (now, then) in checked.changes.items())
        operation, warnings = checked.task.operation, checked.warnings
        sent = RowResult(number, operation, (), None, checked.record_id, changes, warnings)
        self._add_result(checked.row, sent)
        # An update after a create reads the record first.
        afterwards = REQUESTS["update"] if checked.task.afterwards else 0
        self.requests += REQUESTS[operation] + afterwards
        if not self._looks and checked.task.operation == "create" and checked.task.identity:
            self.requests, self._looks = self.requests + 1, True
        if self.keeps_tasks:
            self.tasks.add(checked.task)
        if operation == "create" and len(self.creates) < CREATES_REMEMBERED:
            self.creates[number] = _flatten_body({**checked.task.fields, **checked.task.afterwards})
        if checked.changes:
            self.update_count += 1
            if len(self.changes) < REMEMBERED_MAX:
                self.changes[number] = checked.changes

    def _add_result(self, row: SheetRow, result: RowResult) -> None:
        """Store a result, count it, and keep its row for the report if it needs to be shown."""
        self.summary.add(result)
        self.results.add(result)
        if result.problems or result.warnings or result.changes:
            self.reported.add((row, result))


@dataclass(frozen=True, slots=True)
class Preview:
    """Result of a push of a file if it were sent now.

    Attributes:
        pulled_at: Time up to which the warehouse is verified, in ISO 8601; None if it never was.
        month: Requests of the billing cycle.
        notices: Sentences for users on how the file was read.
        questions: Questions about the file for the user.
    """

    push_file: PushFile
    table: Spreadsheet
    columns: ColumnMap
    rows: PreviewRows = field(repr=False)
    pulled_at: str | None = None
    month: MonthUse | None = None
    limit_per_minute: int | None = None
    notices: tuple[str, ...] = ()
    questions: tuple[FileQuestion, ...] = ()

    @property
    def blocking_questions(self) -> tuple[FileQuestion, ...]:
        """Questions that the user has to answer before anything is sent."""
        return tuple(each for each in self.questions if each.stops)

    @property
    def results(self) -> Collection[RowResult]:
        """Result of every row, in the order of the file."""
        return self.rows.results

    @property
    def summary(self) -> Summary:
        """Counts of the rows by outcome."""
        return self.rows.summary

    @property
    def rows_to_send(self) -> int:
        """Number of rows that would be sent."""
        return sum(n for name, n in self.summary.counts.items() if name in OPERATIONS)

    @property
    def requests(self) -> int:
        """Number of requests that the push needs if no request is repeated."""
        return self.rows.requests

    @property
    def minutes(self) -> float | None:
        """Minutes for the requests at the last known rate limit; None if the limit is unknown."""
        return self.requests / self.limit_per_minute if self.limit_per_minute else None

    @property
    def month_share(self) -> float | None:
        """Requests of the push divided by the monthly quota; None if the quota is unknown."""
        limit = self.month.limit if self.month is not None else None
        return self.requests / limit if limit else None

    @property
    def uncreatable(self) -> int:
        """Number of rows that cannot create a record, because the file has no column for a required
        field.
        """
        return self.summary.codes[COLUMN_MISSING]

    @property
    def is_clean(self) -> bool:
        """Return True if neither a row nor the file needs a correction."""
        counts = self.summary.counts
        return not (counts["invalid"] or counts["duplicate"] or self.blocking_questions)

    @property
    def is_pushed(self) -> bool:
        """Return True if an earlier push has applied every row. False if no row was checked."""
        return self.rows.pushed_count == self.summary.rows > 0

    @property
    def resources(self) -> frozenset[str]:
        """Resources that the rows are compared with: their own, and the ones in references."""
        targets = [each.target for each in self.columns.columns]
        referred = {each.referred_resource for each in targets if each.referred_resource}
        return frozenset(referred | {self.push_file.resource})

    def plan(self) -> PushPlan:
        """Return all rows as a plan for the journal. The tasks must have been kept."""
        assert len(self.rows.tasks) == self.rows_to_send, "the tasks were not kept"
        asked = self.push_file
        return PushPlan(
            *(asked.resource, asked.mode, asked.path.name, self.table.digest),
            self.rows.tasks,
            SpillMap(
                self.results,
                lambda result: None if result.outcome in OPERATIONS else result,
                self.summary.rows - self.rows_to_send,
            ),
        )


def _flatten_body(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of a body by field. Content values are named `fields.KEY`."""
    values: dict[str, Any] = {}
    for name, value in body.items():
        if isinstance(value, Mapping):
            values |= {f"{name}.{key}": each for key, each in value.items()}
        else:
            values[name] = value
    return values


APPLIED = frozenset(("created", "updated", "converted"))
"""Outcomes of rows that were applied as sent."""


def preview(
    settings: Settings,
    push_file: PushFile,
    *,
    resend: bool = False,
    keeps_tasks: bool = False,
    only_if_pushed: bool = False,
    compares_as_seen: bool = False,
    table: Spreadsheet | None = None,
    only_rows: Iterable[SheetRow] | None = None,
) -> Preview:
    """Read and check the file, and return what a push of it would do. Sends nothing.

    Args:
        settings: Settings of the account.
        push_file: The file.
        resend: Send even rows that an earlier push has applied.
        keeps_tasks: Keep the rows to send, for `Preview.plan`.
        only_if_pushed: Check the rows only if this very file was pushed before. A new file is
            checked after its pull anyway.
        compares_as_seen: Compare updates with the records at the time of the user's last preview,
            so that a later change by others is a conflict.
        table: The file, if it is open already.
        only_rows: Rows to check instead of all.

    Raises:
        SpreadsheetError: The file cannot be read.
        Misused: An option cannot apply; `UnknownName` likewise.
        WarehouseError: A file of the data folder cannot be read.
    """
    table = table or open_push_file(push_file)
    make_folder(settings.folder)
    with Ledger(settings.folder) as ledger:
        journal = Journal(ledger)
        seen_at = (
            journal.previewed_at(table.digest, push_file.resource) if compares_as_seen else None
        )
    warehouse = Warehouse(settings.folder)
    warehouse.prepare()
    check_files(settings)
    if not resend:
        _check_lost_journal(settings.folder, warehouse, table, push_file.resource)
    rows = PreviewRows(settings.folder, keeps_tasks=keeps_tasks)
    with (
        WarehouseLookups(warehouse, comparison_text, seen_at) as lookups,
        Ledger(settings.folder) as ledger,
    ):
        target = push_target_of(push_file, lookups)
        saved, notice = push_file.saved, None
        if push_file.remembers:
            saved, notice = load_remembered_mapping(
                settings.folder, push_file.resource, table.headings, push_file.saved
            )
        if settings.region != DEFAULT_REGION:
            saved = with_region(saved or SavedMap(push_file.resource), settings.region)
        columns = map_headings(table.headings, target, saved=saved, ignored=push_file.ignored)
        journal = Journal(ledger)
        # Fingerprints cost a quarter of the time, and only rows pushed before need them.
        looks_back = not resend and journal.has_batch(push_file.resource)
        meanings = ColumnMeanings(table.rows, columns.columns)
        lost = LostColumns(table, columns)
        if not only_if_pushed or (
            looks_back and journal.has_batch(push_file.resource, table.digest)
        ):
            read = lost.yield_rows() if only_rows is None else only_rows
            checked = check_rows(read, columns, target, lookups, meanings=meanings)
            with _rare_garbage_collection():
                _add_rows_in_batches(rows, checked, journal if looks_back else None)
        elif columns.unmapped:
            lost.read_until_known()
        month = ledger.read_month(allowance_of(settings), datetime.now(UTC).date())
        limit = ledger.read_server_state().limit_per_minute
        proven_at = lookups.proven_at(push_file.resource)
    at = proven_at.isoformat() if proven_at else None
    warned: Iterable[FileQuestion] = ()
    if not push_file.accepts_warnings:
        warned = (
            *meanings.mixed_dates(),
            *ask_about_warnings(rows.summary.rows_with_warnings, table, columns),
        )
    asked = (*meanings.questions, *ask_for_values(rows.summary))
    questions = (*table.questions, *lost.questions(), *asked, *warned)
    notices = (*table.notices, *filter(None, [notice]), *meanings.inferred)
    notices = (*notices, *table.left_out.notices(), *meanings.remarks())
    return Preview(push_file, table, columns, rows, at, month, limit, notices, questions)


def _check_lost_journal(
    folder: Path, warehouse: Warehouse, table: Spreadsheet, resource: str
) -> None:
    """Raise `ConnectorError` if the file was pushed, and the ledger with its rows was lost.

    The copy of the journal in the work file still has the push.
    """
    with Ledger(folder) as ledger:
        if Journal(ledger).has_batch(resource, table.digest):
            return
    found = warehouse.read(find_push, table.digest, resource)
    if found is not None:
        raise ConnectorError(
            f"{table.path.name} was pushed at {format_moment(found[1])} (batch {found[0]}), but "
            f"its rows were lost with the ledger. Another push could create the rows a second time",
            action="Remove the rows that exist on the platform from the file, or send all of"
            " them with --resend.",
            code="restored_unpulled",
        )


def open_push_file(push_file: PushFile) -> Spreadsheet:
    """Open the spreadsheet of the file with its options. Raises as `open_table` does."""
    return open_table(
        push_file.path,
        sheet=push_file.sheet,
        encoding=push_file.encoding,
        delimiter=push_file.delimiter,
        header_row=push_file.header_row,
    )


def push_target_of(push_file: PushFile, lookups: Lookups) -> PushTarget:
    """Return the fields that columns of the file can fill. Raises as `push_target` does."""
    return push_target(
        push_file.resource,
        push_file.mode,
        lookups,
        match=push_file.match,
        clear=push_file.clear,
        parent=push_file.parent,
    )


_OBJECTS_MAX = 100_000


@contextmanager
def _rare_garbage_collection() -> Iterator[None]:
    """Collect garbage less often in this context: checked rows are many objects without cycles.

    With Python's own threshold, a fifth of the time is spent on looking for cycles.
    """
    before = gc.get_threshold()
    if before[0] >= _OBJECTS_MAX:
        yield
        return
    gc.set_threshold(_OBJECTS_MAX, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


def _add_rows_in_batches(
    previewed: PreviewRows, checked: Iterable[CheckedRow], journal: Journal | None
) -> None:
    """Add the checked rows to the preview. `journal` finds earlier pushes of them; None to skip
    that.
    """
    left = iter(checked)
    while batch := list(islice(left, BATCH_ROWS)):
        prints = {}
        if journal is not None:
            prints = {each.row.number: fingerprint(each.task) for each in batch if each.task}
        pushed = (
            journal.find_earlier_rows(prints.values()) if journal is not None and prints else {}
        )
        for each in batch:
            earlier = pushed.get(prints.get(each.row.number, ""))
            is_pushed = earlier is not None and earlier.outcome in APPLIED
            id = earlier.record_id if earlier is not None else None
            previewed.add_row(each, id, is_pushed=is_pushed)


# -- Template --------------------------------------------------------------------------------------


def create_template(
    settings: Settings,
    resource: str,
    path: Path,
    *,
    mode: Mode = "create",
    match: tuple[str, ...] = (),
    parent: str | None = None,
) -> int:
    """Write an empty spreadsheet with headings for a push, and return its number of columns.

    The file type, csv or xlsx, depends on the name. `parent` is the slug of the content type of
    content items, which must have been pulled. Raises `Misused` if the file exists, `UnknownName`,
    `SpreadsheetError` and `WarehouseError`.
    """
    if path.exists():
        raise Misused(
            f"{path} already exists and may contain your rows",
            action="Choose another file with --out.",
        )
    warehouse = Warehouse(settings.folder)
    if parent is not None:
        warehouse.prepare()
    with WarehouseLookups(warehouse, comparison_text) as lookups:
        target = push_target(resource, mode, lookups, match=match, parent=parent)
    columns = template_columns(target)
    write_template(path, columns)
    return len(columns)
