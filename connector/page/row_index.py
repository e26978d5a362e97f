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
    """Row as shown: its cells and its result."""

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
    """Index of a file's rows by kind of result.

    Rows are stored while they are checked, and get their results afterwards. The place of a row is
    its index.

    Attributes:
        kinds: Places of the rows of each kind, in order.
        words: Different cells of each problem, with the number of occurrences.
        patched: Rows that were checked again since.
        twins: By kind and row number, the numbers of later duplicates.
        found: By heading and cell, the ids of several records with that name.
    """

    def __init__(self, folder: Path) -> None:
        self._rows: SpillFile[SheetRow] = SpillFile(folder, row_to_json, row_from_json)
        self._results: SpillFile[RowResult] = SpillFile(folder, result_to_json, result_from_json)
        self._row_offsets, self._result_offsets = array("Q"), array("Q")
        self._places: dict[int, int] = {}
        self._last = 0
        self.kinds: dict[Kind, array[int]] = {}
        self.words: dict[tuple[str, str], Counter[str]] = {}
        self.problems: dict[Kind, Problem] = {}
        self.patched: dict[int, IndexedRow] = {}
        self.twins: dict[Kind, dict[int, list[int]]] = {}
        self.found: dict[tuple[str, str], tuple[str, ...]] = {}
        self._had: dict[int, set[Kind]] = {}

    def record_rows(self, rows: Iterable[SheetRow]) -> Iterator[SheetRow]:
        """Yield the rows, and store each of them once."""
        for row in rows:
            if row.number > self._last:
                self._last = row.number
                if not row.is_left_out:
                    self._places[row.number] = len(self._row_offsets)
                    self._row_offsets.append(self._rows.add(row))
            yield row

    def fill(self, results: Iterable[RowResult], headings: Sequence[str]) -> None:
        """Add the results of the stored rows, in order."""
        columns = {name: index for index, name in enumerate(headings)}
        for result, number in zip(results, self._places, strict=True):
            assert result.number == number, "the results are not the file's"
            self._add(result, columns)

    def _add(self, result: RowResult, columns: dict[str, int]) -> None:
        place = len(self._result_offsets)
        self._result_offsets.append(self._results.add(result))
        outcome = TAKEN_BACK if result.code == TAKEN_BACK else result.outcome
        self._note(("outcome", outcome, None), place)
        self._note(("code", result.code or "", None), place)
        for kind, problem in _problems_of(result):
            self.problems.setdefault(kind, problem)
            if problem.code == "duplicate_in_file" and problem.found:
                twins = self.twins.setdefault(kind, {})
                twins.setdefault(int(problem.found), []).append(result.number)
            heading = problem.column or ""
            if self._note(kind, place) and (index := columns.get(heading)) is not None:
                words = self.words.setdefault((problem.code, heading), Counter())
                cells = self._rows.value_at(self._row_offsets[place]).cells
                word = text_of(cells[index]).strip() if index < len(cells) else ""
                if word in words or len(words) < DISTINCT_MAX:
                    words[word] += 1
                    if problem.code == "reference_ambiguous" and problem.found:
                        self.found[heading, word] = tuple(problem.found.split())

    def patch(self, row: IndexedRow) -> None:
        """Replace a row that was checked again. It stays listed under its previous kinds."""
        self.patched[row.number] = row
        place, now = self._places[row.number], kinds_of(row)
        had = self._had.setdefault(row.number, kinds_of(self._read_row(place)))
        for kind in now - had:
            self.kinds.setdefault(kind, array("Q")).append(place)
        for kind, problem in _problems_of(row.result):
            self.problems.setdefault(kind, problem)
        had |= now

    def count_fixed(self, skipped: Collection[int] = ()) -> Counter[Kind]:
        """Count the corrected or skipped rows of each kind."""
        found: Counter[Kind] = Counter()
        for number in {*self._had, *skipped}:
            if (row := self.row(number)) is not None:
                now = set() if number in skipped else kinds_of(self.patched.get(number, row))
                found.update(self._had.get(number, kinds_of(row)) - now)
        return found

    def _note(self, kind: Kind, place: int) -> bool:
        """Add the row's place to the kind, once; return False if it was there."""
        places = self.kinds.setdefault(kind, array("Q"))
        is_new = not places or places[-1] != place
        if is_new:
            places.append(place)
        return is_new

    def __len__(self) -> int:
        return len(self._result_offsets)

    def _read_row(self, place: int) -> IndexedRow:
        row = self._rows.value_at(self._row_offsets[place])
        return IndexedRow(row, self._results.value_at(self._result_offsets[place]))

    def count(self, kind: Kind) -> int:
        """Return the number of rows of the kind."""
        return len(self.kinds.get(kind, ()))

    def page(self, kind: Kind, number: int) -> list[IndexedRow]:
        """Return the rows of one page, counted from 1, as of their latest check."""
        start = (max(1, number) - 1) * PAGE_ROWS
        places = self.kinds.get(kind, array("Q"))[start : start + PAGE_ROWS]
        return [self._read_row(place) for place in places]

    def rows(self, kind: Kind | None = None) -> Iterator[IndexedRow]:
        """Yield the rows as last checked. With a kind, only rows that still have its problem."""
        places = range(len(self)) if kind is None else self.kinds.get(kind, ())
        for place in places:
            row = self._read_row(place)
            row = self.patched.get(row.number, row)
            if kind is None or kind in kinds_of(row):
                yield row

    def row(self, number: int) -> IndexedRow | None:
        """Return a row by its number; None if it does not exist."""
        place = self._places.get(number)
        return None if place is None else self._read_row(place)


def _problems_of(result: RowResult) -> Iterator[tuple[Kind, Problem]]:
    for sort, found in (("problem", result.problems), ("warning", result.warnings)):
        for each in found:
            yield (sort, each.code, each.column), each


def kinds_of(row: IndexedRow) -> set[Kind]:
    """Return the kinds of the row's problems and warnings."""
    return {kind for kind, _ in _problems_of(row.result)}
