"""What pushing a file would do, row by row and in all."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any, get_args

from connector.catalog.content import ContentTypeField
from connector.engine.push_plan import Plan, RowProblem, Verdict, fingerprint, packed, unpacked
from connector.engine.push_states import LandedRecord, Mode, Operation, Task
from connector.engine.quota import Month
from connector.errors import Misused
from connector.ledger.erasures import Erasures
from connector.ledger.journal import Journal
from connector.ledger.ledger import Ledger, terms_of
from connector.settings.model import Settings
from connector.spreadsheet.check import BATCH_ROWS, CheckedRow, check
from connector.spreadsheet.mapping import ColumnMap, map_headings
from connector.spreadsheet.mapping_file import SavedMap
from connector.spreadsheet.matching import ClaimedKeys, comparable
from connector.spreadsheet.problems import COLUMN_MISSING, Problem
from connector.spreadsheet.report import REMEMBERED_MAX, RowResult, Summary
from connector.spreadsheet.table import Spreadsheet, open_table
from connector.spreadsheet.target_columns import Lookups, PushTarget, folded, push_target
from connector.spreadsheet.template_sheet import template_columns, write_template
from connector.suppression.listed import Suppressed
from connector.system.spill_file import Mapped, SpillFile
from connector.warehouse.duckdb_file import make_folder
from connector.warehouse.lookups import WarehouseLookups
from connector.warehouse.warehouse import Warehouse

# -- Asked -----------------------------------------------------------------------------------------
# One file to be pushed, and how it is to be read.


@dataclass(frozen=True, slots=True)
class Asked:
    """One file to be pushed, and how it is to be read.

    `match` are the fields by which rows find their records; `saved` is what a person decided
    about the columns; `clear` is the text that empties a field; `parent` is the content type of
    content items. `sheet`, `encoding` and `delimiter` are as `open_table` takes them.
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


# -- Problems --------------------------------------------------------------------------------------
# A row's problems between those who find them and the journal, which keeps them.


def as_kept(problem: Problem) -> RowProblem:
    """A problem of a row as the journal keeps it."""
    return RowProblem(
        problem.code,
        problem.message,
        column=problem.column,
        received=problem.received,
        allowed=problem.allowed,
        fix=problem.fix,
    )


def as_told(problem: RowProblem, columns: ColumnMap) -> Problem:
    """A problem of the journal as a report tells it, at the column of its field."""
    column = problem.column or (columns.column_of(problem.field) if problem.field else None)
    found = f" The API has: {problem.found}." if problem.found is not None else ""
    return Problem(
        problem.code,
        problem.message + found,
        column or problem.field,
        problem.received,
        problem.allowed,
        problem.fix,
    )


# -- Earlier files ---------------------------------------------------------------------------------
# The landing as it will be once the earlier files of a push are applied.
#
# Files that depend on each other are foreseen together: a job names a company that only the file
# before it would create. Such a record has no id yet, so that its row stands for it; a task with
# one in it is foreseen and never sent, since each file is checked anew when its turn comes.


_ROW = "row {number} of {file}"


@dataclass(frozen=True, slots=True)
class PreviewedFile:
    """Creates that one file would send; `parent` is the content type as given."""

    resource: str
    parent: str | None
    file: str
    tasks: Collection[Task]

    def id_of(self, number: int) -> str:
        """Stand-in for the id of the record that a row creates. No id has a blank."""
        return _ROW.format(number=number, file=self.file)


class Ahead:
    """Lookups into the landing, with the records that earlier files would create."""

    def __init__(self, landing: Lookups, earlier: Sequence[PreviewedFile]) -> None:
        self._landing, self._earlier = landing, earlier
        self._indexes: dict[tuple[int, tuple[str, ...]], _RowIndex] = {}

    def ids(
        self,
        resource: str,
        fields: Sequence[str],
        values: Sequence[tuple[Any, ...]],
        parent: str | None = None,
    ) -> Sequence[tuple[str, ...]]:
        """As the landing has them, and the rows that would create such a record."""
        found = list(self._landing.ids(resource, fields, values, parent))
        for place, each in enumerate(self._earlier):
            if each.resource != resource or each.parent != parent or "id" in fields:
                continue
            index = self._index(place, tuple(fields))
            for at, wanted in enumerate(values):
                found[at] += tuple(each.id_of(number) for number in index.rows(wanted))
        return found

    def landed(self, resource: str, ids: Collection[str]) -> Mapping[str, LandedRecord]:
        """What is landed under these ids, and what rows would create."""
        planned = {id for id in ids if is_planned(id)}
        found = dict(self._landing.landed(resource, [id for id in ids if id not in planned]))
        for each in self._earlier:
            if planned and each.resource == resource:
                for task in each.tasks:
                    id = each.id_of(task.number)
                    if id in planned:
                        found[id] = LandedRecord({**task.fields, **task.afterwards})
        return found

    def holds(self, resource: str) -> bool:
        """Whether any record of the resource was ever landed, or would be created."""
        is_planned = any(each.resource == resource and each.tasks for each in self._earlier)
        return is_planned or self._landing.holds(resource)

    def content_fields(self, content_type: str) -> Sequence[ContentTypeField] | None:
        """As the landing has them: no file makes any."""
        return self._landing.content_fields(content_type)

    def _index(self, place: int, fields: tuple[str, ...]) -> _RowIndex:
        known = self._indexes.get((place, fields))
        if known is None:
            known = self._indexes[place, fields] = _RowIndex(fields, self._earlier[place].tasks)
        return known


class _RowIndex:
    """The rows of a file by the values that they give some fields: a digest for each."""

    def __init__(self, fields: tuple[str, ...], tasks: Collection[Task]) -> None:
        self._first = ClaimedKeys()
        self._others: dict[int, list[int]] = {}
        for task in tasks:
            values = [task.fields.get(name) for name in fields]
            if None in values:
                continue
            first = self._first.claim(comparable(values), task.number)
            if first is not None:
                self._others.setdefault(first, []).append(task.number)

    def rows(self, values: Sequence[Any]) -> tuple[int, ...]:
        """The numbers of the rows that give these values."""
        first = self._first.first(comparable(values))
        return () if first is None else (first, *self._others.get(first, ()))


def is_planned(id: str) -> bool:
    """Whether this stands for the id of a record that does not exist yet."""
    return " " in id


# -- Preview ---------------------------------------------------------------------------------------


REQUESTS: Mapping[Operation, int] = {"create": 1, "update": 2, "convert": 2}
"""What one row costs: an update and a conversion look at the record first. The creates of a file
look at the newest records with one request for all of them.
"""

OPERATIONS = frozenset(get_args(Operation))

ADD_COLUMNS = (
    "Add the columns, or name them with --map FILE, which can also give every row one value."
)
"""What to do about a file that lacks what creating needs."""

PUSHED = "already_pushed"
"""The code of a row whose very write an earlier push has applied."""


class PreviewRows:
    """What is foreseen of a file's rows, in their order.
    The rows are on the disk, and what they come to is counted as they are added.

    `changes` are old and new values by field, of the first rows that would update; `changing`
    counts all of them. `tasks` are the writes of the rows that would be sent, kept only if
    `keeps_tasks`.
    """

    def __init__(self, folder: Path, *, keeps_tasks: bool) -> None:
        self.summary = Summary()
        self.results: SpillFile[RowResult] = SpillFile(folder, _packed_result, _unpacked_result)
        self.tasks: SpillFile[Task] = SpillFile(folder, packed, unpacked)
        self.changes: dict[int, Mapping[str, tuple[Any, Any]]] = {}
        self.changing = self.requests = self.pushed = 0
        self.keeps_tasks, self._looks = keeps_tasks, False

    def add(self, checked: CheckedRow, pushed_as: str | None = None, *, is_pushed: bool) -> None:
        """Take in a row: as it was checked, or, where an earlier push has applied its very
        write, as unchanged, with the record `pushed_as`.
        """
        number = checked.row.number
        if is_pushed:
            self.pushed += 1
            self._take(RowResult(number, "unchanged", (), PUSHED, pushed_as))
            return
        id = checked.record_id
        shown = None if id is None or is_planned(id) else id
        if checked.outcome is not None:
            code = checked.problems[0].code if checked.problems else None
            self._take(RowResult(number, checked.outcome, checked.problems, code, shown))
            return
        assert checked.task is not None
        changes = tuple((n, _text(now), _text(then)) for n, (now, then) in checked.changes.items())
        self._take(RowResult(number, checked.task.operation, record_id=shown, changes=changes))
        self.requests += requests_of(checked.task)
        if not self._looks and checked.task.operation == "create" and checked.task.identity:
            self.requests, self._looks = self.requests + 1, True
        if self.keeps_tasks:
            self.tasks.add(checked.task)
        if checked.changes:
            self.changing += 1
            if len(self.changes) < REMEMBERED_MAX:
                self.changes[number] = checked.changes

    def _take(self, result: RowResult) -> None:
        self.summary.add(result)
        self.results.add(result)


@dataclass(frozen=True, slots=True)
class Preview:
    """What pushing a file would do.

    `rows` are what is foreseen of each row, and what they come to. `pulled_at` is what the rows
    were compared with: the moment up to which the landing is proven, None if it never was.
    """

    asked: Asked
    table: Spreadsheet
    columns: ColumnMap
    rows: PreviewRows = field(repr=False)
    pulled_at: str | None = None
    month: Month | None = None
    limit_per_minute: int | None = None

    @property
    def results(self) -> Collection[RowResult]:
        """One entry for every row, in the order of the file."""
        return self.rows.results

    @property
    def summary(self) -> Summary:
        """What the rows come to."""
        return self.rows.summary

    @property
    def sent(self) -> int:
        """How many rows would be sent."""
        return sum(n for name, n in self.summary.counts.items() if name in OPERATIONS)

    @property
    def requests(self) -> int:
        """Requests that it takes, if all goes well."""
        return self.rows.requests

    @property
    def minutes(self) -> float | None:
        """How long that takes at the limit that was last seen, if one was."""
        return self.requests / self.limit_per_minute if self.limit_per_minute else None

    @property
    def month_share(self) -> float | None:
        """The requests as a part of the month's, if the plan's figure is known."""
        limit = self.month.limit if self.month is not None else None
        return self.requests / limit if limit else None

    @property
    def uncreatable(self) -> int:
        """Rows that would make records, in a file without a column that creating needs."""
        return self.summary.codes[COLUMN_MISSING]

    @property
    def is_clean(self) -> bool:
        """Whether no row needs a person's hand."""
        return not (self.summary.counts["invalid"] or self.summary.counts["duplicate"])

    @property
    def is_pushed(self) -> bool:
        """Whether an earlier push has applied every row."""
        return self.rows.pushed == self.summary.rows

    @property
    def resources(self) -> frozenset[str]:
        """The resources that its rows are compared with: its own, and those it refers to."""
        targets = [each.target for each in self.columns.columns]
        referred = {each.reference.resource for each in targets if each.reference is not None}
        return frozenset(referred | {self.asked.resource})

    @property
    def planned(self) -> PreviewedFile:
        """The records that it would create, for the files that are pushed after it."""
        asked, creates = self.asked, self.rows.tasks
        return PreviewedFile(asked.resource, asked.parent, asked.path.name, creates)

    def plan(self) -> Plan:
        """All rows as the journal takes them: those to send, and verdicts on the others."""
        assert len(self.rows.tasks) == self.sent, "the tasks were not kept"
        asked = self.asked
        return Plan(
            *(asked.resource, asked.mode, asked.path.name, self.table.digest),
            self.rows.tasks,
            Mapped(self.results, _verdict, self.summary.rows - self.sent),
        )


def requests_of(task: Task) -> int:
    """Requests of a row; what follows a create reads the record first."""
    return REQUESTS[task.operation] + (REQUESTS["update"] if task.afterwards else 0)


def _verdict(result: RowResult) -> Verdict | None:
    """Why a row is not to be sent; None for one that is."""
    match result.outcome:
        case "invalid" | "duplicate" | "unchanged":
            problems = tuple(map(as_kept, result.problems))
            code = result.code or ""
            return Verdict(result.number, result.outcome, code, problems, result.record_id)
        case _:
            assert result.outcome in OPERATIONS, result.outcome
            return None


def _text(value: Any) -> str:
    return "(empty)" if value is None else str(value)


def _packed_result(result: RowResult) -> str:
    problems = [
        (each.code, each.message, each.column, each.received, each.allowed, each.fix)
        for each in result.problems
    ]
    told = [result.number, result.outcome, problems, result.code, result.record_id, result.changes]
    return json.dumps(told)


def _unpacked_result(text: str) -> RowResult:
    number, outcome, problems, code, record_id, changes = json.loads(text)
    return RowResult(
        number,
        outcome,
        tuple(Problem(*each) for each in problems),
        code,
        record_id,
        tuple((name, now, then) for name, now, then in changes),
    )


# -- Foresee ---------------------------------------------------------------------------------------
# Foreseeing a file: read, mapped, checked, and held against what earlier pushes have applied.


APPLIED = frozenset(("created", "updated", "converted"))
"""Outcomes of rows whose write was applied as it was meant."""


async def preview(
    settings: Settings,
    asked: Asked,
    *,
    again: bool = False,
    earlier: Sequence[PreviewedFile] = (),
    keeps_tasks: bool = False,
) -> Preview:
    """Read the file and foresee what pushing it would do. Sends nothing.

    `again` writes even what an earlier push has applied. `earlier` are the files that are pushed
    before it: what they would create is taken for landed. `keeps_tasks` keeps what would be sent,
    for `Preview.plan` and `Preview.planned`. Raises a `SpreadsheetError`, `Misused` or
    `UnknownName` for what cannot be meant, and `WarehouseError` where the files cannot be read.
    """
    return await asyncio.to_thread(_preview, settings, asked, again, earlier, keeps_tasks)


def _preview(
    settings: Settings,
    asked: Asked,
    again: bool,
    earlier: Sequence[PreviewedFile],
    keeps_tasks: bool,
) -> Preview:
    table = open_table(
        asked.path, sheet=asked.sheet, encoding=asked.encoding, delimiter=asked.delimiter
    )
    make_folder(settings.folder)
    with Ledger(settings.folder) as ledger:
        # First of all: whoever was erased is known before anything of theirs is read.
        Erasures(ledger).list_receipted()
    warehouse = Warehouse(settings.folder)
    warehouse.prepare()
    foreseen = PreviewRows(settings.folder, keeps_tasks=keeps_tasks)
    with WarehouseLookups(warehouse, folded) as landing, Ledger(settings.folder) as ledger:
        lookups = Ahead(landing, earlier) if earlier else landing
        target = push_target(
            asked.resource,
            asked.mode,
            lookups,
            match=asked.match,
            clear=asked.clear,
            parent=asked.parent,
        )
        columns = map_headings(table.headings, target, saved=asked.saved, ignored=asked.ignored)
        _refuse_unmapped(columns, target, table)
        journal = Journal(ledger)
        # What was never pushed needs no fingerprints, which cost a quarter of the time.
        looks_back = not again and journal.knows(asked.resource)
        checked = check(table.rows(), columns, target, lookups, Suppressed.of(settings.folder))
        _foresee(foreseen, checked, journal if looks_back else None)
        month = ledger.month(terms_of(settings), datetime.now(UTC).date())
        limit = ledger.server().limit_per_minute
        proven_at = landing.proven_at(asked.resource)
    return Preview(
        asked=asked,
        table=table,
        columns=columns,
        rows=foreseen,
        pulled_at=proven_at.isoformat() if proven_at else None,
        month=month,
        limit_per_minute=limit,
    )


def _refuse_unmapped(columns: ColumnMap, target: PushTarget, table: Spreadsheet) -> None:
    """Refuse a file of no known column, or without one that every create needs."""
    resource, found = target.resource.name, ", ".join(table.headings)
    if not columns.columns:
        allowed = ", ".join(column.name for column in target.columns)
        raise Misused(
            f"{table.path}: no heading is a field of {resource}: {found}",
            action=f"Name the fields with --map FILE, or head the columns: {allowed}.",
        )
    if columns.missing and target.mode == "create":
        raise Misused(
            f"{table.path}: creating {resource} needs {', '.join(columns.missing)}, and no heading"
            f" is that: {found}",
            action=ADD_COLUMNS,
        )


def _foresee(foreseen: PreviewRows, checked: Iterable[CheckedRow], journal: Journal | None) -> None:
    """Take in the rows, a batch at a time; `journal` knows what was pushed before."""
    rows = iter(checked)
    while batch := list(islice(rows, BATCH_ROWS)):
        prints = {}
        if journal is not None:
            prints = {each.row.number: fingerprint(each.task) for each in batch if each.task}
        pushed = journal.pushed(prints.values()) if journal is not None and prints else {}
        for each in batch:
            earlier = pushed.get(prints.get(each.row.number, ""))
            is_pushed = earlier is not None and earlier.outcome in APPLIED
            id = earlier.record_id if earlier is not None else None
            foreseen.add(each, id, is_pushed=is_pushed)


# -- Template --------------------------------------------------------------------------------------


def template(
    settings: Settings,
    resource: str,
    path: Path,
    *,
    mode: Mode = "create",
    match: tuple[str, ...] = (),
    parent: str | None = None,
) -> int:
    """Write the template, csv or xlsx by its name, and return how many columns it has.

    `parent` is the content type of content items, which must have been pulled. Raises `Misused`
    for a file that is there, `UnknownName`, `SpreadsheetError`, `WarehouseError`.
    """
    if path.exists():
        raise Misused(
            f"{path} is there already, and may be filled in", action="Name another file with --out."
        )
    warehouse = Warehouse(settings.folder)
    if parent is not None:
        warehouse.prepare()
    with WarehouseLookups(warehouse, folded) as lookups:
        target = push_target(resource, mode, lookups, match=match, parent=parent)
    columns = template_columns(target)
    write_template(path, columns)
    return len(columns)
