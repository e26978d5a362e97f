"""Spill file: a sequence of values on the disk, so that a million values need little memory.

The first values stay in memory. The file has no name, only its owner can read it, and it disappears
with the process, because a spreadsheet contains personal data.
"""

from __future__ import annotations

import json
import weakref
from collections.abc import Callable, Collection, Iterator
from dataclasses import astuple
from datetime import date, datetime, time
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import Any, Generic, TypeVar

from connector.errors import convert_file_errors
from connector.ledger.push_plan import Problem, RowResult
from connector.spreadsheet.problems import Amount, Cell, PartlyVisibleCell, SheetRow

MEMORY_BYTES = 1_000_000
"""Size up to which the values stay in memory."""

_LINES_AT_ONCE = 500
_READ_BYTES = 64 * 1024

T = TypeVar("T")
U = TypeVar("U")


class SpillFile(Collection[T], Generic[T]):
    """Values on the disk, in the order in which they were added. They can be read any number of
    times.

    Adding and reading raise a `WarehouseError` with the folder if the disk fails.

    Args:
        folder: Folder of the file.
        pack: Converts a value to one line of ASCII.
        unpack: Converts the line to the value.
    """

    def __init__(self, folder: Path, pack: Callable[[T], str], unpack: Callable[[str], T]) -> None:
        self._folder, self._pack, self._unpack = folder, pack, unpack
        self._file = SpooledTemporaryFile(  # noqa: SIM115 # it stays open as long as this
            MEMORY_BYTES, dir=str(folder)
        )
        weakref.finalize(self, self._file.close)
        self._lines: list[str] = []
        self._count = self._bytes = 0

    def add(self, value: T) -> int:
        """Append a value, and return its byte position for `value_at`."""
        line, place = self._pack(value), self._bytes
        self._lines.append(line)
        self._count += 1
        self._bytes += len(line) + 1
        if len(self._lines) >= _LINES_AT_ONCE:
            self._flush()
        return place

    def value_at(self, position: int) -> T:
        """Return the value at a byte position that `add` returned."""
        self._flush()
        with convert_file_errors(self._folder):
            self._file.seek(position)
            return self._unpack(self._file.readline().decode("ascii").rstrip("\n"))

    def __len__(self) -> int:
        return self._count

    def __contains__(self, value: object) -> bool:
        return any(each == value for each in self)

    def __iter__(self) -> Iterator[T]:
        self._flush()
        place, unpack = 0, self._unpack
        while lines := self._read_lines(place):
            # Another reading may move the file's position in the meantime.
            place += sum(map(len, lines))
            for line in lines:
                yield unpack(line.decode("ascii"))

    def _flush(self) -> None:
        """Write the values in memory to the end of the file."""
        if not self._lines:
            return
        text, self._lines = "".join(f"{line}\n" for line in self._lines), []
        with convert_file_errors(self._folder):
            self._file.seek(0, 2)
            self._file.write(text.encode("ascii"))

    def _read_lines(self, position: int) -> list[bytes]:
        """Return the lines after a byte position, about `_READ_BYTES` of them."""
        with convert_file_errors(self._folder):
            self._file.seek(position)
            return list(self._file.readlines(_READ_BYTES))


class SpillMap(Collection[U], Generic[T, U]):
    """Collection of the values that `make` returns for the values of another collection.

    They are made each time they are read. None is left out; `count` is the number of the others.
    """

    def __init__(self, values: Collection[T], make: Callable[[T], U | None], count: int) -> None:
        self._values, self._make, self._count = values, make, count

    def __len__(self) -> int:
        return self._count

    def __contains__(self, value: object) -> bool:
        return any(each == value for each in self)

    def __iter__(self) -> Iterator[U]:
        return (made for value in self._values if (made := self._make(value)) is not None)


# -- Rows and results as lines of JSON -------------------------------------------------------------


_PLAIN_PARTS = 4


def result_to_json(result: RowResult) -> str:
    """Return a row's result as one line of JSON."""
    if not (result.problems or result.warnings or result.changes):
        # True for most rows; there may be a million of them.
        if result.code is result.record_id is None:
            return f'[{result.number}, "{result.outcome}", null, null]'
        return json.dumps([result.number, result.outcome, result.code, result.record_id])
    problems = [astuple(each) for each in result.problems]
    warnings = [astuple(each) for each in result.warnings]
    found = (result.outcome, problems, result.code, result.record_id, result.changes, warnings)
    return json.dumps([result.number, *found])


def result_from_json(text: str) -> RowResult:
    """Return the result from a line of `result_to_json`."""
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


def pair_to_json(pair: tuple[SheetRow, RowResult]) -> str:
    """Return a row and its result as one line of JSON."""
    row, result = pair
    return json.dumps([result_to_json(result), row_to_json(row)])


def pair_from_json(text: str) -> tuple[SheetRow, RowResult]:
    """Return the row and the result from a line of `pair_to_json`."""
    result, row = json.loads(text)
    return row_from_json(row), result_from_json(result)


def row_to_json(row: SheetRow) -> str:
    """Return a row of a spreadsheet as one line of JSON."""
    form = [list(map(_cell_to_json, row.cells)), list(map(astuple, row.problems)), dict(row.flaws)]
    marks = (row.is_hidden, row.may_be_split, row.record_id)
    return json.dumps([row.number, row.missing_cells, marks, *form])


def row_from_json(text: str) -> SheetRow:
    """Return the row from a line of `row_to_json`."""
    number, missing, (is_hidden, may_be_split, record), cells, problems, flaws = json.loads(text)
    return SheetRow(
        number,
        tuple(map(_cell_from_json, cells)),
        tuple(Problem(*each) for each in problems),
        {int(index): (kind, what) for index, (kind, what) in flaws.items()},
        missing,
        is_hidden=is_hidden,
        may_be_split=may_be_split,
        record_id=record,
    )


def _cell_to_json(cell: Cell) -> Any:
    """Return a cell as a JSON value from which its type can be restored."""
    match cell:
        case datetime():
            return {"datetime": cell.isoformat()}
        case date():
            return {"date": cell.isoformat()}
        case time():
            return {"time": cell.isoformat()}
        case Amount():
            return {"amount": [cell.value, cell.unit, cell.number_format, cell.shown]}
        case PartlyVisibleCell():
            return {"partly": [_cell_to_json(cell.value), cell.shown, cell.number_format]}
    return cell


_TYPES: dict[str, Callable[[str], date | time]] = {
    "datetime": datetime.fromisoformat,
    "date": date.fromisoformat,
    "time": time.fromisoformat,
}


def _cell_from_json(plain: Any) -> Cell:
    """Return the cell from a value of `_cell_to_json`."""
    if not isinstance(plain, dict):
        cell: Cell = plain
        return cell
    ((kind, value),) = plain.items()
    if kind == "partly":
        return PartlyVisibleCell(_cell_from_json(value[0]), *value[1:])  # type: ignore[arg-type]
    return Amount(*value) if kind == "amount" else _TYPES[kind](value)
