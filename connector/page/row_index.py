"""Rows of a file with what was found of each, to be shown by pages."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from connector.engine.push_plan import Problem
from connector.spreadsheet.packed_rows import packed_pair, unpacked_pair
from connector.spreadsheet.problems import SheetRow, text_of
from connector.spreadsheet.report import RowResult
from connector.system.spill_file import SpillFile

PAGE_ROWS = 25
"""Rows on one page of a list."""

DISTINCT_MAX = 200
"""Different cells of one problem in one column that are remembered."""

TAKEN_BACK = "undone"
"""Code of a row that was undone, which is its outcome then."""

Kind = tuple[str, str, str | None]
"""What rows are listed by: ("outcome" or "code", its name, None), or ("problem" or "warning", code,
column).
"""


@dataclass(frozen=True, slots=True)
class IndexedRow:
    """One row as it is shown: as it was read, and its result."""

    row: SheetRow
    result: RowResult

    @property
    def number(self) -> int:
        """Its number in the file."""
        return self.result.number

    @property
    def cells(self) -> tuple[str, ...]:
        """Its cells as texts."""
        return tuple(map(text_of, self.row.cells))


class RowIndex:
    """Every row of a file by what was found of it.

    `kinds` are the places of the rows of each kind, in order; `words` the different cells of each
    problem, with how often each comes. `patched` are rows that were checked again since. `twins`
    are, by kind, the numbers of the rows that are duplicates of an earlier row, by its number.
    """

    def __init__(self, folder: Path) -> None:
        self._rows: SpillFile[IndexedRow] = SpillFile(folder, _packed, _unpacked)
        self._places: dict[int, int] = {}
        self.kinds: dict[Kind, array[int]] = {}
        self.words: dict[tuple[str, str], Counter[str]] = {}
        self.problems: dict[Kind, Problem] = {}
        self.patched: dict[int, IndexedRow] = {}
        self.twins: dict[Kind, dict[int, list[int]]] = {}
        self._had: dict[int, set[Kind]] = {}

    def fill(
        self,
        rows: Iterable[SheetRow],
        results: Collection[RowResult],
        headings: Sequence[str],
        tell: Callable[[int], None],
    ) -> None:
        """Take in the rows with their results; `tell` is given how many there are so far."""
        left, columns = iter(results), {name: index for index, name in enumerate(headings)}
        for row in rows:
            if row.is_left_out:
                continue
            result = next(left)
            assert result.number == row.number, "the results are not the file's"
            self.add(IndexedRow(row, result), columns)
            if len(self) % 1_000 == 0:
                tell(len(self))

    def add(self, row: IndexedRow, columns: dict[str, int]) -> None:
        """Take in one row."""
        place, result = self._rows.add(row), row.result
        self._places[row.number] = place
        outcome = TAKEN_BACK if result.code == TAKEN_BACK else result.outcome
        self._note(("outcome", outcome, None), place)
        self._note(("code", result.code or "", None), place)
        for kind, problem in _problems_of(result):
            self.problems.setdefault(kind, problem)
            if problem.code == "duplicate_in_file" and problem.found:
                twins = self.twins.setdefault(kind, {})
                twins.setdefault(int(problem.found), []).append(row.number)
            heading = problem.column or ""
            if self._note(kind, place) and (index := columns.get(heading)) is not None:
                words = self.words.setdefault((problem.code, heading), Counter())
                cells = row.row.cells
                word = text_of(cells[index]).strip() if index < len(cells) else ""
                if word in words or len(words) < DISTINCT_MAX:
                    words[word] += 1

    def patch(self, row: IndexedRow) -> None:
        """Take in a row that was checked again. It stays listed under the kinds that it had."""
        self.patched[row.number] = row
        place, now = self._places[row.number], kinds_of(row)
        had = self._had.setdefault(row.number, kinds_of(self._rows.at(place)))
        for kind in now - had:
            self.kinds.setdefault(kind, array("Q")).append(place)
        for kind, problem in _problems_of(row.result):
            self.problems.setdefault(kind, problem)
        had |= now

    def fixed(self, skipped: Collection[int] = ()) -> Counter[Kind]:
        """By kind, the number of its rows that have no such problem any more, or are skipped."""
        found: Counter[Kind] = Counter()
        for number in {*self._had, *skipped}:
            if (row := self.row(number)) is not None:
                now = set() if number in skipped else kinds_of(self.patched.get(number, row))
                found.update(self._had.get(number, kinds_of(row)) - now)
        return found

    def _note(self, kind: Kind, place: int) -> bool:
        """Note the row's place under the kind, once."""
        places = self.kinds.setdefault(kind, array("Q"))
        is_new = not places or places[-1] != place
        if is_new:
            places.append(place)
        return is_new

    def __len__(self) -> int:
        return len(self._rows)

    def count(self, kind: Kind) -> int:
        """How many rows are of the kind."""
        return len(self.kinds.get(kind, ()))

    def page(self, kind: Kind, number: int) -> list[IndexedRow]:
        """The rows of one page, counted from 1, as they were last checked."""
        start = (max(1, number) - 1) * PAGE_ROWS
        places = self.kinds.get(kind, array("Q"))[start : start + PAGE_ROWS]
        return [self._rows.at(place) for place in places]

    def rows(self, kind: Kind | None = None) -> Iterator[IndexedRow]:
        """Yield the rows as last checked. With a kind, only rows that still have its problem."""
        places = range(len(self)) if kind is None else self.kinds.get(kind, ())
        for place in places:
            row = self._rows.at(place)
            row = self.patched.get(row.number, row)
            if kind is None or kind in kinds_of(row):
                yield row

    def row(self, number: int) -> IndexedRow | None:
        """One row by its number; None where there is none."""
        place = self._places.get(number)
        return None if place is None else self._rows.at(place)


def _problems_of(result: RowResult) -> Iterator[tuple[Kind, Problem]]:
    for sort, found in (("problem", result.problems), ("warning", result.warnings)):
        for each in found:
            yield (sort, each.code, each.column), each


def kinds_of(row: IndexedRow) -> set[Kind]:
    """The kinds of the row's problems and warnings."""
    return {kind for kind, _ in _problems_of(row.result)}


def _packed(indexed: IndexedRow) -> str:
    return packed_pair((indexed.row, indexed.result))


def _unpacked(text: str) -> IndexedRow:
    return IndexedRow(*unpacked_pair(text))
