"""Position of a table in a file: its headings, and rows that do not belong to it.

Above the headings there may be a title, notes, or a second row that groups them. Below the headings
there may be repeated headings, totals, or another table. The row with the most known headings, in
the languages of the catalog, is the heading row. If no heading is known, it is the first row that
is as wide as the table.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache

from connector.catalog import CATALOG
from connector.spreadsheet.columns import (
    HINTS,
    appearance_key,
    has_report_headings,
    normalized_heading,
)
from connector.spreadsheet.problems import Cell, SheetRow
from connector.spreadsheet.word_lists import TOTALS, TOTALS_INITIALS

LOOKED_AT = 40
"""Number of rows at the start of a file in which the headings are searched."""

_KNOWN_MIN = 2
_FIGURE = re.compile(r"[\d\s.,:/+€£$%()'-]*\d[\d\s.,:/+€£$%()'-]*").fullmatch


@dataclass(frozen=True, slots=True)
class HeadingRows:
    """Headings of a table, the index of their first row, and their number of rows (`depth`).

    `known_count` is the number of headings that a field of the catalog has.
    """

    headings: tuple[str, ...]
    index: int = 0
    depth: int = 1
    known_count: int = 0

    @property
    def first_row(self) -> int:
        """Index of the first row below the headings."""
        return self.index + self.depth

    @property
    def is_first(self) -> bool:
        """Return True if the headings are only the first row of the file."""
        return self.first_row == 1


@cache
def _known_headings() -> frozenset[str]:
    """Return the normalized headings of all fields and references."""
    names = {normalized_heading(each) for each in HINTS}
    for declared in CATALOG.values():
        names |= {normalized_heading(each) for each in declared.fields}
        names |= {normalized_heading(each) for group in declared.aliases.values() for each in group}
        for by, group in declared.found_by.items():
            names |= {
                normalized_heading(f"{declared.singular}_{by}"),
                *map(normalized_heading, group),
            }
    return frozenset(names)


def is_known_heading(heading: str) -> bool:
    """Return True if a resource has a field with this heading."""
    return normalized_heading(heading) in _known_headings()


@cache
def one_line_headings() -> frozenset[str]:
    """Return the normalized headings of fields that are written in one line."""
    words: dict[str, bool] = {}
    for declared in CATALOG.values():
        for name, declared_field in declared.fields.items():
            for each in map(normalized_heading, (name, *declared.aliases.get(name, ()))):
                words[each] = words.get(each, True) and declared_field.is_one_line
    return frozenset(word for word, is_one_line in words.items() if is_one_line)


@cache
def email_headings() -> frozenset[str]:
    """Return the normalized headings of fields with an email address."""
    return frozenset(
        normalized_heading(word)
        for declared in CATALOG.values()
        for name, declared_field in declared.fields.items()
        if declared_field.format == "email"
        for word in (name, *declared.aliases.get(name, ()))
    )


def _count_known_headings(cells: Iterable[str]) -> int:
    """Return the number of different known headings among the cells."""
    return len(
        {normalized_heading(each) for each in cells if each.strip() and is_known_heading(each)}
    )


def find_headings(rows: Sequence[Sequence[str]], header_row: int | None = None) -> HeadingRows:
    """Return the headings among a file's first rows; `header_row` is the user's choice, from 1."""
    if header_row is not None:
        cells = rows[header_row - 1] if header_row <= len(rows) else ()
        return HeadingRows(tuple(cells), header_row - 1, known_count=_count_known_headings(cells))
    if not rows:
        return HeadingRows(())
    if has_report_headings(rows[0]):
        return HeadingRows(tuple(rows[0]))
    single_rows = [
        HeadingRows(tuple(r), i, 1, _count_known_headings(r)) for i, r in enumerate(rows)
    ]
    for best in sorted(single_rows, key=lambda each: -each.known_count):
        if best.known_count < _KNOWN_MIN:
            break
        if _can_be_headings(single_rows, best):
            doubles = (_two_row_headings(rows, best.index + shift) for shift in (0, -1))
            better = [
                each for each in doubles if each is not None and each.known_count > best.known_count
            ]
            return max(better, key=lambda each: each.known_count) if better else best
    return _headings_by_width(single_rows)


def _can_be_headings(single_rows: Sequence[HeadingRows], headings: HeadingRows) -> bool:
    """Return True if the rows above are no table: they are narrower, or group the columns.

    `single_rows` are all rows, each as if it had the headings.
    """
    above = single_rows[: headings.index]
    wide = [each for each in above if _count_filled_cells(each) >= _count_filled_cells(headings)]
    is_grouped = (
        wide == [above[-1]] and headings.known_count * 2 > _count_filled_cells(headings)
        if wide
        else True
    )
    return is_grouped and not any(map(_FIGURE, filter(str.strip, headings.headings)))


def _count_filled_cells(headings: HeadingRows) -> int:
    """Return the number of headings that are not blank."""
    return sum(1 for each in headings.headings if each.strip())


def _headings_by_width(single_rows: Sequence[HeadingRows]) -> HeadingRows:
    """Return the first row, or the first one as wide as the table if the first row is a title."""
    widths = list(map(_count_filled_cells, single_rows))
    filled = [width for width in widths if width]
    if not filled or widths[0] > 1 or max(filled) < _KNOWN_MIN + 1:
        return single_rows[0]
    for each, width in zip(single_rows, widths, strict=True):
        if width == max(filled) and not any(map(_FIGURE, filter(str.strip, each.headings))):
            return each
    return single_rows[0]


def _two_row_headings(rows: Sequence[Sequence[str]], index: int) -> HeadingRows | None:
    """Return the row at `index` and the next one, joined; None if they cannot be headings."""
    if index < 0 or index + 1 >= len(rows):
        return None
    upper, lower = rows[index], rows[index + 1]
    if any(map(_FIGURE, filter(str.strip, lower))) or any("@" in cell for cell in lower):
        return None
    width = max(len(upper), len(lower))
    group, joined = "", []
    for above, below in zip(_padded(upper, width), _padded(lower, width), strict=True):
        group = above.strip() or (group if below.strip() else "")
        texts = [each for each in (group, below.strip()) if each]
        # A title above a column that has its own name is redundant.
        choices = [" ".join(texts), " ".join(reversed(texts)), below.strip()]
        joined.append(
            next((each for each in choices if each and is_known_heading(each)), choices[0])
        )
    return HeadingRows(tuple(joined), index, 2, _count_known_headings(joined))


def _padded(cells: Sequence[str], width: int) -> list[str]:
    """Return the cells with empty cells added up to this number of cells."""
    return [*cells, *[""] * (width - len(cells))]


_TOLD_MAX = 5


@dataclass(slots=True)
class LeftOutRows:
    """Rows of a file that do not belong to its table, once its rows have been read.

    `second_table_row` is the number of the row at which another table begins. `rows` has the first
    text of the first few other rows, by number. `last` is the number of the last one.
    """

    second_table_row: int | None = None
    rows: dict[int, str] = field(default_factory=dict)
    last: int = 0

    def add(self, number: int, text: str) -> None:
        """Add a row with its first text. Adding it again has no effect."""
        self.last = max(self.last, number)
        if len(self.rows) < _TOLD_MAX:
            self.rows[number] = text

    def notices(self) -> Iterator[str]:
        """Yield a sentence on the rows that were left out, if there are any."""
        if self.rows:
            shown = ", ".join(f"{number} ({text})" for number, text in self.rows.items())
            more = "" if self.last in self.rows else f", … and {self.last}"
            yield f"Rows with totals or repeated headings are not imported: {shown}{more}."


class NonTableRowMarker:
    """Marks rows below the headings that do not belong to the table; used for one reading.

    The rows are also added to `found`.
    """

    def __init__(self, headings: Sequence[str], found: LeftOutRows) -> None:
        self._headings = tuple(map(appearance_key, headings))
        self._found, self._is_in_second = found, False
        self._first = next((each for each in self._headings if each), "")
        self._is_after_blank = False
        self._initials = frozenset((*TOTALS_INITIALS, self._first[:1]))
        self._other_initials: set[str] = set()

    def mark(self, row: SheetRow) -> SheetRow:
        """Return the row, with `is_outside` set if it does not belong to the table."""
        if self._is_in_second:
            return replace(row, is_outside=True, problems=())
        first: Cell = row.cells[0]
        # Most rows begin with another letter: there may be a million of them.
        is_text = isinstance(first, str)
        if not self._is_after_blank and is_text and str(first)[:1] in self._other_initials:
            return row
        if first == "":
            first = next((cell for cell in row.cells if cell != ""), "")
        if first == "":
            self._is_after_blank = True
            return row
        is_after_blank, self._is_after_blank = self._is_after_blank, False
        if not isinstance(first, str):
            return row
        if first.lstrip()[:1].casefold() not in self._initials and not is_after_blank:
            if not first[0].isspace():
                self._other_initials.add(first[0])
            return row
        word = first.strip()
        is_outside = bool(TOTALS(word)) and self._is_total(row.cells)
        if word[:1].casefold() == self._first[:1]:
            is_outside = is_outside or self._repeats_headings(row.cells)
        if is_after_blank and not is_outside and self._begins_another_table(row.cells):
            self._found.second_table_row = row.number
            self._is_in_second = is_outside = True
        elif is_outside:
            self._found.add(row.number, word)
        return replace(row, is_outside=True, problems=()) if is_outside else row

    def _is_total(self, cells: Sequence[Cell]) -> bool:
        """Return True if all texts after the first filled cell are numbers, and some cells are
        empty.
        """
        filled = [each for each in cells if str(each).strip()]
        texts = [each for each in filled[1:] if isinstance(each, str)]
        is_short = len(filled) < len(self._headings)
        return is_short and all(_FIGURE(each) and "+" not in each for each in texts)

    def _repeats_headings(self, cells: Sequence[Cell]) -> bool:
        """Return True if the cells look like the headings of the table."""
        if appearance_key(str(cells[0])) != self._headings[0]:
            return False
        looks = tuple(appearance_key(str(each)) for each in cells)
        width = len(self._headings)
        return looks[:width] == self._headings and not any(looks[width:])

    def _begins_another_table(self, cells: Sequence[Cell]) -> bool:
        """Return True if more than half of the texts are known headings."""
        texts = [str(each) for each in cells if str(each).strip()]
        known = _count_known_headings(texts)
        return known >= _KNOWN_MIN and known * 2 > len(texts)
