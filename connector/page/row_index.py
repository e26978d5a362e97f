"""Index of a file's rows by the results of the check, for lists on screens."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from connector.ledger.push_plan import Problem, RowResult
from connector.pushes.spill_file import (
    SpillFile,
    result_from_json,
    result_to_json,
    row_from_json,
    row_to_json,
)
from connector.spreadsheet.problems import SheetRow, text_of

PAGE_ROWS = 25
"""Number of rows on one page of a list."""

DISTINCT_MAX = 200
"""Maximum number of different cells that are stored for one problem in one column."""

TAKEN_BACK = "undone"
"""Code of a row that was undone, which is then its outcome."""

Kind = tuple[str, str, str | None]
"""Key of a list of rows: ("outcome" or "code", its name, None), or ("problem" or "warning", code,
column).
"""


@dataclass(frozen=True, slots=True)
class IndexedRow:
    """Row of a file with its result."""

    row: SheetRow
    result: RowResult

    @property
    def number(self) -> int:
        """Row number in the file."""
        return self.result.number

    @property
    def cells(self) -> tuple[str, ...]:
        """Cells as texts."""
        return tuple(map(text_of, self.row.cells))


class RowIndex:
    """Rows of a file with their results, listed by kind of result. Stored on disk.

    Rows are stored while they are checked, and get their results afterwards. A place is the
    position of a row among the stored rows, counted from 0.

    Attributes:
        kinds: Places of the rows of each kind, in order.
        cell_counts: By problem code and heading, the different cells with their number.
        problems: First problem of each kind.
        rechecked: Rows that were checked again, by row number.
        duplicates: By kind and number of the first row, the numbers of its later duplicates.
        record_choices: By heading and cell, the ids of several records with that name.
    """

    def __init__(self, folder: Path) -> None:
        self._rows: SpillFile[SheetRow] = SpillFile(folder, row_to_json, row_from_json)
        self._results: SpillFile[RowResult] = SpillFile(folder, result_to_json, result_from_json)
        self._row_offsets, self._result_offsets = array("Q"), array("Q")
        self._places: dict[int, int] = {}
        self._last = 0
        self.kinds: dict[Kind, array[int]] = {}
        self.cell_counts: dict[tuple[str, str], Counter[str]] = {}
        self.problems: dict[Kind, Problem] = {}
        self.rechecked: dict[int, IndexedRow] = {}
        self.duplicates: dict[Kind, dict[int, list[int]]] = {}
        self.record_choices: dict[tuple[str, str], tuple[str, ...]] = {}
        self._kinds_before_recheck: dict[int, set[Kind]] = {}

    def store_rows(self, rows: Iterable[SheetRow]) -> Iterator[SheetRow]:
        """Yield the rows, and store each new row."""
        for row in rows:
            if row.number > self._last:
                self._last = row.number
                if not row.is_left_out:
                    self._places[row.number] = len(self._row_offsets)
                    self._row_offsets.append(self._rows.add(row))
            yield row

    def add_results(self, results: Iterable[RowResult], headings: Sequence[str]) -> None:
        """Store the results of the stored rows, in the same order, and list the rows by kind."""
        columns = {name: index for index, name in enumerate(headings)}
        for result, number in zip(results, self._places, strict=True):
            assert result.number == number, "the results are not the file's"
            self._add_result(result, columns)

    def _add_result(self, result: RowResult, columns: dict[str, int]) -> None:
        """Store one result and list its row. `columns` has the index of each heading."""
        place = len(self._result_offsets)
        self._result_offsets.append(self._results.add(result))
        outcome = TAKEN_BACK if result.code == TAKEN_BACK else result.outcome
        self._list_place(("outcome", outcome, None), place)
        self._list_place(("code", result.code or "", None), place)
        for kind, problem in _problems_by_kind(result):
            self.problems.setdefault(kind, problem)
            if problem.code == "duplicate_in_file" and problem.found:
                twins = self.duplicates.setdefault(kind, {})
                twins.setdefault(int(problem.found), []).append(result.number)
            heading = problem.column or ""
            if self._list_place(kind, place) and (index := columns.get(heading)) is not None:
                words = self.cell_counts.setdefault((problem.code, heading), Counter())
                cells = self._rows.value_at(self._row_offsets[place]).cells
                word = text_of(cells[index]).strip() if index < len(cells) else ""
                if word in words or len(words) < DISTINCT_MAX:
                    words[word] += 1
                    if problem.code == "reference_ambiguous" and problem.found:
                        self.record_choices[heading, word] = tuple(problem.found.split())

    def replace_checked_row(self, row: IndexedRow) -> None:
        """Replace a row that was checked again. It stays listed under its previous kinds."""
        self.rechecked[row.number] = row
        place, now = self._places[row.number], kinds_of(row)
        had = self._kinds_before_recheck.setdefault(row.number, kinds_of(self._read_row(place)))
        for kind in now - had:
            self.kinds.setdefault(kind, array("Q")).append(place)
        for kind, problem in _problems_by_kind(row.result):
            self.problems.setdefault(kind, problem)
        had |= now

    def count_fixed(self, skipped: Collection[int] = ()) -> Counter[Kind]:
        """Count the rows of each kind that no longer have its problem, or are skipped."""
        found: Counter[Kind] = Counter()
        for number in {*self._kinds_before_recheck, *skipped}:
            if (row := self.row(number)) is not None:
                now = set() if number in skipped else kinds_of(self.rechecked.get(number, row))
                found.update(self._kinds_before_recheck.get(number, kinds_of(row)) - now)
        return found

    def _list_place(self, kind: Kind, place: int) -> bool:
        """List a place under a kind; return False if it was listed already."""
        places = self.kinds.setdefault(kind, array("Q"))
        is_new = not places or places[-1] != place
        if is_new:
            places.append(place)
        return is_new

    def __len__(self) -> int:
        return len(self._result_offsets)

    def _read_row(self, place: int) -> IndexedRow:
        """Return the stored row at a place with its result, as of its first check."""
        row = self._rows.value_at(self._row_offsets[place])
        return IndexedRow(row, self._results.value_at(self._result_offsets[place]))

    def count_rows(self, kind: Kind) -> int:
        """Return the number of rows of the kind."""
        return len(self.kinds.get(kind, ()))

    def page(self, kind: Kind, number: int) -> list[IndexedRow]:
        """Return the rows of one page of a list, counted from 1, as of their first check."""
        start = (max(1, number) - 1) * PAGE_ROWS
        places = self.kinds.get(kind, array("Q"))[start : start + PAGE_ROWS]
        return [self._read_row(place) for place in places]

    def rows(self, kind: Kind | None = None) -> Iterator[IndexedRow]:
        """Yield the rows as of their latest check. With a kind, only rows that still have it."""
        places = range(len(self)) if kind is None else self.kinds.get(kind, ())
        for place in places:
            row = self._read_row(place)
            row = self.rechecked.get(row.number, row)
            if kind is None or kind in kinds_of(row):
                yield row

    def row(self, number: int) -> IndexedRow | None:
        """Return a row by its number as of its first check; None if it does not exist."""
        place = self._places.get(number)
        return None if place is None else self._read_row(place)


def _problems_by_kind(result: RowResult) -> Iterator[tuple[Kind, Problem]]:
    """Yield the problems and warnings of a result, each with its kind."""
    for sort, found in (("problem", result.problems), ("warning", result.warnings)):
        for each in found:
            yield (sort, each.code, each.column), each


def kinds_of(row: IndexedRow) -> set[Kind]:
    """Return the kinds of the row's problems and warnings."""
    return {kind for kind, _ in _problems_by_kind(row.result)}
