"""What pushing a file would do, row by row and in all."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args

from connector.engine.push_plan import Plan, Verdict, packed, unpacked
from connector.engine.quota import Month
from connector.engine.task import Operation, Task
from connector.kept import Kept, Mapped
from connector.preview.asked import Asked
from connector.preview.planned import Planned, is_planned
from connector.preview.problems import as_kept
from connector.spreadsheet.check import Checked
from connector.spreadsheet.mapping import ColumnMap
from connector.spreadsheet.problems import COLUMN_MISSING
from connector.spreadsheet.result import TOLD_MAX, RowResult, Summary
from connector.spreadsheet.row import Problem
from connector.spreadsheet.table import Table

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


class Foreseen:
    """What is foreseen of a file's rows, in their order. The rows are on the disk, and what they
    come to is counted as they are added.

    `changes` are old and new values by field, of the first rows that would update; `changing`
    counts all of them. `tasks` are the writes of the rows that would be sent, kept only if
    `keeps_tasks`.
    """

    def __init__(self, folder: Path, *, keeps_tasks: bool) -> None:
        self.summary = Summary()
        self.results: Kept[RowResult] = Kept(folder, _packed_result, _unpacked_result)
        self.tasks: Kept[Task] = Kept(folder, packed, unpacked)
        self.changes: dict[int, Mapping[str, tuple[Any, Any]]] = {}
        self.changing = self.requests = self.pushed = 0
        self.keeps_tasks, self._looks = keeps_tasks, False

    def add(self, checked: Checked, pushed_as: str | None = None, *, is_pushed: bool) -> None:
        """Take in a row: as it was checked, or, where an earlier push has applied its very write,
        as unchanged, with the record `pushed_as`.
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
            if len(self.changes) < TOLD_MAX:
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
    table: Table
    columns: ColumnMap
    rows: Foreseen = field(repr=False)
    pulled_at: str | None = None
    month: Month | None = None
    limit_per_minute: int | None = None

    @property
    def results(self) -> Collection[RowResult]:
        """An entry for every row, in the file's order: what is foreseen, why, the record's id."""
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
        """How many rows would make records, in a file without a column that creating needs: the
        file lacks it, and not each row.
        """
        return self.summary.codes[COLUMN_MISSING]

    @property
    def is_clean(self) -> bool:
        """Whether no row needs a person's hand."""
        return not (self.summary.counts["invalid"] or self.summary.counts["duplicate"])

    @property
    def is_pushed(self) -> bool:
        """Whether an earlier push has applied every row, so that nothing is left to be done."""
        return self.rows.pushed == self.summary.rows

    @property
    def resources(self) -> frozenset[str]:
        """The resources that its rows are compared with: its own, and those it refers to."""
        slots = [each.slot for each in self.columns.columns]
        referred = {each.reference.resource for each in slots if each.reference is not None}
        return frozenset(referred | {self.asked.resource})

    @property
    def planned(self) -> Planned:
        """The records that it would create, for the files that are pushed after it."""
        asked, creates = self.asked, self.rows.tasks
        return Planned(asked.resource, asked.parent, asked.path.name, creates)

    def plan(self) -> Plan:
        """All rows as the journal takes them, read from the disk: those to be sent, and the
        verdicts on the others.
        """
        assert len(self.rows.tasks) == self.sent, "the tasks were not kept"
        asked = self.asked
        return Plan(
            *(asked.resource, asked.mode, asked.path.name, self.table.digest),
            self.rows.tasks,
            Mapped(self.results, _verdict, self.summary.rows - self.sent),
        )


def requests_of(task: Task) -> int:
    """What a row costs, if all goes well: what follows a create looks at the record first."""
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
