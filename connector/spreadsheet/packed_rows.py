"""Rows and results as single lines of JSON, for spill files."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import astuple
from datetime import date, datetime, time
from typing import Any

from connector.ledger.push_plan import Problem
from connector.spreadsheet.problems import Amount, Cell, PartlyShown, SheetRow
from connector.spreadsheet.report import RowResult

_PLAIN_PARTS = 4


def packed_result(result: RowResult) -> str:
    """Return the result as one line."""
    if not (result.problems or result.warnings or result.changes):
        # True for most rows; there may be a million of them.
        if result.code is result.record_id is None:
            return f'[{result.number}, "{result.outcome}", null, null]'
        return json.dumps([result.number, result.outcome, result.code, result.record_id])
    problems = [astuple(each) for each in result.problems]
    warnings = [astuple(each) for each in result.warnings]
    found = (result.outcome, problems, result.code, result.record_id, result.changes, warnings)
    return json.dumps([result.number, *found])


def unpacked_result(text: str) -> RowResult:
    """Return the result of a line."""
    found = json.loads(text)
    if len(found) == _PLAIN_PARTS:
        number, outcome, code, record_id = found
        return RowResult(number, outcome, (), code, record_id)
    number, outcome, problems, code, record_id, changes, warnings = found
    return RowResult(
        number,
        outcome,
        tuple(Problem(*each) for each in problems),
        code,
        record_id,
        tuple((name, now, then) for name, now, then in changes),
        tuple(Problem(*each) for each in warnings),
    )


def packed_pair(pair: tuple[SheetRow, RowResult]) -> str:
    """Return a row and its result as one line."""
    row, result = pair
    return json.dumps([packed_result(result), packed_row(row)])


def unpacked_pair(text: str) -> tuple[SheetRow, RowResult]:
    """Return the row and the result of a line."""
    result, row = json.loads(text)
    return unpacked_row(row), unpacked_result(result)


def packed_row(row: SheetRow) -> str:
    """Return a row as one line."""
    form = [list(map(_plain_cell, row.cells)), list(map(astuple, row.problems)), dict(row.flaws)]
    marks = (row.is_hidden, row.may_be_split, row.record)
    return json.dumps([row.number, row.missing, marks, *form])


def unpacked_row(text: str) -> SheetRow:
    """Return the row of a line."""
    number, missing, (is_hidden, may_be_split, record), cells, problems, flaws = json.loads(text)
    return SheetRow(
        number,
        tuple(map(_cell, cells)),
        tuple(Problem(*each) for each in problems),
        {int(index): (kind, what) for index, (kind, what) in flaws.items()},
        missing,
        is_hidden=is_hidden,
        may_be_split=may_be_split,
        record=record,
    )


def _plain_cell(cell: Cell) -> Any:
    """Return the cell as a JSON value that keeps its type."""
    match cell:
        case datetime():
            return {"datetime": cell.isoformat()}
        case date():
            return {"date": cell.isoformat()}
        case time():
            return {"time": cell.isoformat()}
        case Amount():
            return {"amount": [cell.value, cell.unit, cell.form, cell.shown]}
        case PartlyShown():
            return {"partly": [_plain_cell(cell.value), cell.shown, cell.form]}
    return cell


_TYPES: dict[str, Callable[[str], date | time]] = {
    "datetime": datetime.fromisoformat,
    "date": date.fromisoformat,
    "time": time.fromisoformat,
}


def _cell(plain: Any) -> Cell:
    if not isinstance(plain, dict):
        cell: Cell = plain
        return cell
    ((kind, value),) = plain.items()
    if kind == "partly":
        return PartlyShown(_cell(value[0]), *value[1:])  # type: ignore[arg-type]
    return Amount(*value) if kind == "amount" else _TYPES[kind](value)
