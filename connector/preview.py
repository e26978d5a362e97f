"""What a spreadsheet would do, before anything is sent: every row read, mapped, checked and priced.

It costs no request: rows are compared with what is landed, and with what earlier pushes have
applied. Whoever needs the landing to be current pulls first.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from connector.engine.push_plan import Plan, RowProblem, Verdict, fingerprint
from connector.engine.quota import Month
from connector.engine.task import Mode, Operation, Task
from connector.errors import Misused
from connector.ledger import Ledger, terms_of
from connector.ledger.journal import Journal
from connector.ledger.push_reads import RowRecord
from connector.settings import Settings
from connector.spreadsheet.aim import Aim, aim
from connector.spreadsheet.check import Checked, check
from connector.spreadsheet.identity import folded
from connector.spreadsheet.mapping import ColumnMap, map_headings
from connector.spreadsheet.mapping_file import SavedMap
from connector.spreadsheet.result import RowResult
from connector.spreadsheet.row import Problem
from connector.spreadsheet.table import Table, open_table
from connector.warehouse import Warehouse
from connector.warehouse.file import make_folder
from connector.warehouse.lookups import Lookups

REQUESTS: Mapping[Operation, int] = {"create": 1, "update": 2, "convert": 2}
"""What one row costs: an update and a conversion look at the record first."""

APPLIED = frozenset(("created", "updated", "converted"))
"""Outcomes of rows whose write was applied as it was meant."""

PUSHED = "already_pushed"
"""The code of a row whose very write an earlier push has applied."""


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


@dataclass(frozen=True, slots=True)
class Preview:
    """What pushing a file would do.

    `results` has an entry for every row, by number: what is foreseen, why, and the record's id.
    `changes` are old and new values by field, of the rows that would update. `pulled_at` is what
    the rows were compared with: the moment up to which the landing is proven, None if it never
    was.
    """

    asked: Asked
    table: Table
    columns: ColumnMap
    plan: Plan
    results: Mapping[int, RowResult]
    changes: Mapping[int, Mapping[str, tuple[Any, Any]]]
    pulled_at: str | None
    month: Month | None = None
    limit_per_minute: int | None = None

    @property
    def requests(self) -> int:
        """Requests that it takes, if all goes well."""
        return sum(map(requests_of, self.plan.tasks))

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
    def is_clean(self) -> bool:
        """Whether no row needs a person's hand."""
        return not any(each.outcome in ("invalid", "duplicate") for each in self.results.values())

    @property
    def is_pushed(self) -> bool:
        """Whether an earlier push has applied every row, so that nothing is left to be done."""
        return all(each.code == PUSHED for each in self.results.values())

    @property
    def resources(self) -> frozenset[str]:
        """The resources that its rows are compared with: its own, and those it refers to."""
        slots = [each.slot for each in self.columns.columns]
        referred = {each.reference.resource for each in slots if each.reference is not None}
        return frozenset(referred | {self.asked.resource})

    def ordered(self) -> Iterator[RowResult]:
        """What is foreseen, row by row in the file's order."""
        return (self.results[number] for number in sorted(self.results))


def requests_of(task: Task) -> int:
    """What a row costs, if all goes well: what follows a create looks at the record first."""
    return REQUESTS[task.operation] + (REQUESTS["update"] if task.afterwards else 0)


async def preview(settings: Settings, asked: Asked, *, again: bool = False) -> Preview:
    """Read the file and foresee what pushing it would do. Sends nothing.

    `again` writes even what an earlier push has applied. Raises a `SpreadsheetError`, `Misused` or
    `UnknownName` for what cannot be meant, and `WarehouseError` where the files cannot be read.
    """
    return await asyncio.to_thread(_preview, settings, asked, again)


def _preview(settings: Settings, asked: Asked, again: bool) -> Preview:
    table = open_table(
        asked.path, sheet=asked.sheet, encoding=asked.encoding, delimiter=asked.delimiter
    )
    make_folder(settings.folder)
    warehouse = Warehouse(settings.folder)
    warehouse.prepare()
    with Lookups(warehouse, folded) as lookups:
        target = aim(
            asked.resource,
            asked.mode,
            lookups,
            match=asked.match,
            clear=asked.clear,
            parent=asked.parent,
        )
        columns = map_headings(table.headings, target, saved=asked.saved, ignored=asked.ignored)
        _refuse_unmapped(columns, target, table)
        checked = list(check(table, columns, target, lookups))
    standing = warehouse.standing_of(asked.resource)
    with Ledger(settings.folder) as ledger:
        pushed = {} if again else _pushed(Journal(ledger), checked)
        month = ledger.month(terms_of(settings), datetime.now(UTC).date())
        limit = ledger.server().limit_per_minute
    results, tasks, verdicts = _foresee(checked, pushed)
    return Preview(
        asked=asked,
        table=table,
        columns=columns,
        plan=Plan(
            asked.resource, asked.mode, asked.path.name, table.digest, tuple(tasks), tuple(verdicts)
        ),
        results=results,
        changes={each.row.number: each.changes for each in checked if each.changes and each.task},
        pulled_at=standing.proven_at.isoformat() if standing.proven_at else None,
        month=month,
        limit_per_minute=limit,
    )


def _refuse_unmapped(columns: ColumnMap, target: Aim, table: Table) -> None:
    """A file of which no column is known would be a file of blank rows."""
    if not columns.columns:
        allowed = ", ".join(slot.column for slot in target.slots)
        raise Misused(
            f"{table.path}: no heading is a field of {target.resource.name}: "
            + ", ".join(table.headings),
            action=f"Name the fields with --map FILE, or head the columns: {allowed}.",
        )


def _pushed(journal: Journal, checked: list[Checked]) -> dict[int, RowRecord]:
    """The rows whose very write an earlier push has applied, or has open, by number."""
    prints = {each.row.number: fingerprint(each.task) for each in checked if each.task is not None}
    found = journal.pushed(prints.values())
    return {number: found[print] for number, print in prints.items() if print in found}


def _foresee(
    checked: list[Checked], pushed: Mapping[int, RowRecord]
) -> tuple[dict[int, RowResult], list[Task], list[Verdict]]:
    """What is foreseen of each row, and the plan's two halves."""
    results: dict[int, RowResult] = {}
    tasks: list[Task] = []
    verdicts: list[Verdict] = []
    for each in checked:
        number, earlier = each.row.number, pushed.get(each.row.number)
        if earlier is not None and earlier.outcome in APPLIED:
            verdict = Verdict(number, "unchanged", PUSHED, (), earlier.record_id)
        elif each.outcome is None:
            assert each.task is not None
            tasks.append(each.task)
            results[number] = RowResult(number, each.task.operation, record_id=each.record_id)
            continue
        else:
            verdict = _verdict(each)
        verdicts.append(verdict)
        problems = () if verdict.code == PUSHED else each.problems
        results[number] = RowResult(
            number, verdict.outcome, problems, verdict.code or None, verdict.record_id
        )
    return results, tasks, verdicts


def _verdict(checked: Checked) -> Verdict:
    outcome = checked.outcome
    assert outcome in ("invalid", "duplicate", "unchanged"), outcome
    final: Literal["invalid", "duplicate", "unchanged"] = outcome
    code = checked.problems[0].code if checked.problems else ""
    problems = tuple(map(as_kept, checked.problems))
    return Verdict(checked.row.number, final, code, problems, checked.record_id)


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
