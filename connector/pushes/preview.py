"""Preview of a push: every problem and every change of every row. Sends nothing.

The rows are checked against the local copy and against earlier pushes. Questions about the whole
file, such as columns whose values would be lost, have to be answered before anything is sent. A row
with a warning is held back until the user accepts the warning.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from connector.errors import Misused, count_noun
from connector.pushes.options import PushFile
from connector.settings import Settings
from connector.settings.folders import MAPS_FOLDER
from connector.spreadsheet.check import check_rows
from connector.spreadsheet.headings import normalized_heading
from connector.spreadsheet.mapping import EVERY_COLUMN, ColumnMap, map_headings, to_saved_map
from connector.spreadsheet.mapping_file import (
    SavedMap,
    load_map,
    save_map,
    with_options,
    with_region,
)
from connector.spreadsheet.problems import FileQuestion, SheetRow
from connector.spreadsheet.report import Summary
from connector.spreadsheet.row_reader import CheckedRow, ColumnMeanings, describe_remarks
from connector.spreadsheet.table import Spreadsheet
from connector.spreadsheet.targets import comparison_text
from connector.spreadsheet.template import template_columns, write_template
from connector.spreadsheet.words import DEFAULT_REGION, means_nothing
from connector.state.database import Database
from connector.state.journal import HELD_BACK, Journal, Plan
from connector.state.quota import MonthUse, quota_status
from connector.state.row import Operation, Row, fingerprint
from connector.warehouse.file import make_folder
from connector.warehouse.lookups import WarehouseLookups
from connector.warehouse.warehouse import Warehouse

REQUESTS: Mapping[Operation, int] = {"create": 1, "update": 2, "convert": 2}
"""Requests of one row. An update and a conversion read the record first. All creates of a file need
one more request together, to read the newest records.
"""

ADD_COLUMNS = "Add the columns, or give all rows the same value (--set FIELD=VALUE)."
"""Advice for a file without a required column."""


@dataclass(frozen=True, slots=True)
class Preview:
    """Result of a push of a file if it were sent now.

    Attributes:
        rows: Rows of the file that are not blank, in order; a row to send has its operation as its
            outcome.
        cells: The same rows, as the file has them.
        pulled_at: Time up to which the local copy is verified, in ISO 8601; None if it never was.
        month: Requests of the billing cycle.
        notices: Sentences for users on how the file was read.
        questions: Questions about the file for the user.
    """

    push_file: PushFile
    table: Spreadsheet
    columns: ColumnMap
    rows: Sequence[Row] = field(repr=False)
    cells: Sequence[SheetRow] = field(repr=False)
    summary: Summary = field(repr=False)
    pulled_at: str | None
    month: MonthUse
    limit_per_minute: int | None
    notices: tuple[str, ...] = ()
    questions: tuple[FileQuestion, ...] = ()

    @property
    def blocking_questions(self) -> tuple[FileQuestion, ...]:
        """Questions that the user has to answer before anything is sent."""
        return tuple(each for each in self.questions if each.stops)

    @property
    def to_send(self) -> list[Row]:
        """Rows that would be sent, without those that are held back."""
        return [row for row in self.rows if row.state == "planned" and not self.is_held_back(row)]

    def is_held_back(self, row: Row) -> bool:
        """Return True if a row has warnings that the user has not accepted."""
        codes = {each.code for each in row.warnings} if row.state == "planned" else set()
        return not all(map(self.push_file.accepts, codes))

    @property
    def requests(self) -> int:
        """Number of requests that the push needs if no request is repeated."""
        rows = self.to_send
        # An update after a create reads the record first.
        count = sum(REQUESTS[row.operation] for row in rows if row.operation is not None)
        count += sum(REQUESTS["update"] for row in rows if row.then)
        return count + any(row.operation == "create" and row.identity for row in rows)

    @property
    def minutes(self) -> float | None:
        """Minutes for the requests at the last known rate limit; None if the limit is unknown."""
        return self.requests / self.limit_per_minute if self.limit_per_minute else None

    @property
    def is_clean(self) -> bool:
        """Return True if neither a row nor the file needs a correction or a consent."""
        is_bad = any(row.outcome in ("invalid", "duplicate") for row in self.rows)
        return not (is_bad or self.blocking_questions or any(map(self.is_held_back, self.rows)))

    @property
    def resources(self) -> frozenset[str]:
        """Resources that the rows are compared with: their own, and the ones in references."""
        targets = [each.target for each in self.columns.columns]
        referred = {each.referred_resource for each in targets if each.referred_resource}
        return frozenset(referred | {self.push_file.resource})

    def plan(self) -> Plan:
        """Return all rows as a plan for the journal. Values of rows that are not sent stay here."""
        asked = self.push_file
        rows = [self._planned(row) for row in self.rows]
        return Plan(asked.resource, asked.options.mode, asked.path.name, self.table.digest, rows)

    def _planned(self, row: Row) -> Row:
        """Return a row for the journal."""
        if row.state == "planned" and not self.is_held_back(row):
            return replace(row, warnings=())
        kept = Row(row.number, row.resource, record_id=row.record_id, warnings=row.warnings)
        kept.end(row.state, row.outcome, row.code, *row.problems)
        if row.state == "planned":
            kept.end("refused", "not_sent", HELD_BACK)
        return kept


def preview(
    settings: Settings,
    push_file: PushFile,
    *,
    compares_as_seen: bool = False,
    table: Spreadsheet | None = None,
    only_rows: Iterable[SheetRow] | None = None,
) -> Preview:
    """Read and check the file, and return what a push of it would do. Sends nothing.

    Args:
        settings: Settings of the account.
        push_file: The file.
        compares_as_seen: Compare updates with the records at the time of the user's last preview,
            so that a later change by others is a conflict.
        table: The file, if it is open already.
        only_rows: Rows to check instead of all.

    Raises:
        SpreadsheetError: The file cannot be read.
        Misused: An option cannot apply; `UnknownName` likewise.
        WarehouseError: A file of the data folder cannot be read.
    """
    table = table or push_file.open()
    make_folder(settings.folder)
    warehouse = Warehouse(settings.folder)
    warehouse.prepare()
    with Database(settings.folder) as database:
        journal, resource = Journal(database), push_file.resource
        seen_at = journal.previewed_at(table.digest, resource) if compares_as_seen else None
        with WarehouseLookups(warehouse, comparison_text, seen_at) as lookups:
            target = push_file.target(lookups)
            saved, notice = push_file.saved, None
            if push_file.remembers:
                saved, notice = load_remembered(settings.folder, resource, table.headings, saved)
            if settings.region != DEFAULT_REGION:
                saved = with_region(saved, settings.region)
            ignored = push_file.options.ignore
            columns = map_headings(table.headings, target, saved=saved, ignored=ignored)
            # Fingerprints cost a quarter of the time, and only rows pushed before need them.
            looks_back = not push_file.options.resend and journal.has_batch(resource)
            meanings = ColumnMeanings(table.rows, columns.columns)
            given = table.rows() if only_rows is None else only_rows
            checked = list(check_rows(given, columns, target, lookups, meanings=meanings))
            proven_at = lookups.proven_at(resource)
        rows = [_row(each, resource) for each in checked]
        if looks_back:
            _end_pushed(rows, journal)
        quota = quota_status(database, settings, datetime.now(UTC))
    summary = Summary.of(rows)
    lost = ask_about_lost_columns(table, columns)
    asked = (*table.questions, *lost, *ask_for_hours(summary), *ask_for_values(summary))
    doubts = (*meanings.mixed_dates(), *ask_about_file(table, columns))
    asked = (*asked, *(each for each in doubts if not push_file.accepts(each.code)))
    notices = (*table.notices, *filter(None, [notice]), *meanings.notices)
    return Preview(
        push_file,
        table,
        columns,
        rows,
        [each.row for each in checked],
        summary,
        pulled_at=proven_at.isoformat() if proven_at else None,
        month=quota.month,
        limit_per_minute=quota.limit_per_minute,
        notices=(*notices, *describe_remarks(checked)),
        questions=asked,
    )


def _row(checked: CheckedRow, resource: str) -> Row:
    """Return a checked row as a row for the journal."""
    row = checked.task or Row(checked.row.number, resource)
    row.record_id, row.warnings = checked.record_id or row.record_id, checked.warnings
    if checked.outcome is not None:
        code = checked.problems[0].code if checked.problems else ""
        is_unchanged = checked.outcome == "unchanged"
        row.end("done" if is_unchanged else "refused", checked.outcome, code, *checked.problems)
    elif row.operation is not None:
        row.outcome = row.operation
    return row


def _end_pushed(rows: Sequence[Row], journal: Journal) -> None:
    """End rows that an earlier push has applied."""
    prints = {str(fingerprint(row)): row for row in rows if row.operation is not None}
    for print_, earlier in journal.earlier(prints).items():
        if earlier.outcome in ("created", "updated", "converted") and not earlier.is_open:
            row = prints[print_]
            row.end("done", "unchanged", "already_pushed")
            row.record_id, row.warnings = earlier.record_id, ()


# -- Questions about the file ----------------------------------------------------------------------


def ask_about_file(table: Spreadsheet, columns: ColumnMap) -> Iterator[FileQuestion]:
    """Yield a question for unlikely headings and for merged cells."""
    filling = {each.heading for each in columns.columns}
    if any("@" in each or _IS_DATE(each) for each in table.headings):
        yield FileQuestion(
            "headings",
            f"row {table.heading_rows.index + 1} is used as the headings, but looks like data",
            "Add a row of headings, or give the number of their row with --header-row. To use the "
            "row as headings, add --accept-warnings.",
        )
    if covered := [r for r, heading in table.merged_ranges.items() if heading in filling]:
        yield FileQuestion(
            "merged_cells",
            f"merged cells cover several rows, which all get the value: {', '.join(covered)}",
            "Unmerge the cells if only the first row has the value. Otherwise add "
            "--accept-warnings.",
        )


def ask_for_hours(summary: Summary) -> Iterator[FileQuestion]:
    """Yield the question when days without a time begin and end, once for the file."""
    found = [each for (code, _), each in summary.problems.items() if code == "time_missing"]
    for group in found[:1]:
        problem = group.problem
        yield FileQuestion(
            "day_hours",
            f"column {problem.column!r} has days without a time, for example {problem.received!r}",
            "Choose with --day-hours all-day, or with two times such as --day-hours 09:00-17:30.",
            stops=False,
            column=problem.column,
        )


def ask_for_values(summary: Summary) -> Iterator[FileQuestion]:
    """Yield the question which values the cells mean that no field accepts.

    It has one answer for all equal cells of a column.
    """
    columns: dict[str, list[str]] = {}
    for (_, column), group in summary.problems.items():
        if group.is_answered_by_value:
            cells = (f'"{text}" ({count:,})' for text, count in group.values.most_common())
            columns.setdefault(column or "", []).extend(cells)
    if columns:
        names = ", ".join(map(repr, columns))
        yield FileQuestion(
            "values",
            f"cells that repeat in {count_noun(len(columns), 'column')} need a value: {names}",
            "Choose a value for each in the column mapping, and run again with --mapping FILE.",
            stops=False,
            choices=tuple((each, ", ".join(cells)) for each, cells in columns.items()),
        )


def unanswered_values(summary: Summary) -> dict[str, tuple[list[str], str]]:
    """Return the cells that need a value, and what is allowed, by column for a mapping file."""
    found: dict[str, tuple[list[str], str]] = {}
    for (_, column), group in summary.problems.items():
        if group.is_answered_by_value:
            allowed = group.problem.allowed
            text = f"Allowed: {allowed}" if allowed else group.problem.fix or ""
            found.setdefault(column or "", ([], text))[0].extend(group.values)
    return found


_IS_DATE = re.compile(r"[0-9]{1,4}[-./][0-9]{1,2}[-./][0-9]{1,4}").fullmatch


def ask_about_lost_columns(table: Spreadsheet, columns: ColumnMap) -> Iterator[FileQuestion]:
    """Yield a question if columns have values and fill no field."""
    indexes = {each.heading: table.headings.index(each.heading) for each in columns.unmapped}
    rows = [row.cells for row in table.rows() if not row.is_outside] if indexes else []
    lost = []
    for heading, i in indexes.items():
        texts = (str(cells[i]).strip() for cells in rows if i < len(cells))
        if any(text and not means_nothing(text) for text in texts):
            lost.append(heading)
    if lost:
        yield FileQuestion(
            "columns_lost",
            f"{count_noun(len(lost), 'column')} with values would not be imported: "
            f"{', '.join(map(repr, lost))}",
            f"Map the columns with --mapping FILE, or ignore them with --ignore '{lost[0]}'"
            f" (--ignore '{EVERY_COLUMN}' for all).",
        )


# -- Remembered mappings ---------------------------------------------------------------------------
# A mapping is saved in the data folder if the user chose any of it.


def load_remembered(
    folder: Path, resource: str, headings: Sequence[str], given: SavedMap
) -> tuple[SavedMap, str | None]:
    """Return the mapping for a file's columns: the given one, or that of the last file.

    The last file with the same headings counts if the given mapping maps no columns. Then the
    second value is a notice for users; otherwise it is None.
    """
    is_given = given.columns or given.ignored
    path = _path(folder, resource, headings)
    if is_given or not path.exists():
        return given, None
    remembered = load_map(path)
    constants = {**remembered.constants, **given.constants}
    return with_options(replace(remembered, constants=constants), given.options), (
        f"The columns are matched as in the last file with the same headings (column mapping: "
        f"{path}). Use --mapping none to ignore this mapping."
    )


def remember(folder: Path, headings: Sequence[str], columns: ColumnMap, given: SavedMap) -> None:
    """Save the column mapping for the next file with these headings, if the user chose any of it.

    Raises a `WarehouseError`.
    """
    is_decided = any(each.match_kind == "given" for each in columns.columns)
    if is_decided or columns.ignored or columns.constants:
        path = _path(folder, columns.resource, headings)
        make_folder(path.parent)
        save_map(path, replace(to_saved_map(columns), comments=(), options=given.options))


def _path(folder: Path, resource: str, headings: Sequence[str]) -> Path:
    """Return the file that remembers the mapping for a resource and these headings."""
    layout = "\n".join(map(normalized_heading, headings)).encode()
    return folder / MAPS_FOLDER / f"{resource}-{hashlib.sha256(layout).hexdigest()[:16]}.toml"


# -- Template --------------------------------------------------------------------------------------


def create_template(settings: Settings, file: PushFile) -> int:
    """Write an empty spreadsheet with headings for a push, and return its number of columns.

    The file type, csv or xlsx, depends on the name. The content type of content items must have
    been pulled. Raises `Misused` if the file exists, `UnknownName`, `SpreadsheetError` and
    `WarehouseError`.
    """
    if file.path.exists():
        raise Misused(
            f"{file.path} already exists and may contain your rows",
            action="Choose another file with --out.",
        )
    warehouse = Warehouse(settings.folder)
    if file.options.content_type is not None:
        warehouse.prepare()
    with WarehouseLookups(warehouse, comparison_text) as lookups:
        columns = template_columns(file.target(lookups))
    write_template(file.path, columns)
    return len(columns)
