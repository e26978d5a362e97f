"""Headings of a table: their row, their names, and the rows that do not belong to the table.

Above the headings there may be a title, notes, or a second row that groups them. Below them there
may be repeated headings, totals or a footer. The row with the most known headings, in the languages
of the catalog, is the heading row. If no heading is known, it is the first row that is as wide as
the table.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from itertools import zip_longest
from pathlib import Path
from typing import Any, Literal

from openpyxl.utils import get_column_letter

from connector.catalog import CATALOG
from connector.errors import SpreadsheetError
from connector.spreadsheet.problems import Cell, Flaw, SheetRow, text_of
from connector.spreadsheet.texts import unescape_cell
from connector.spreadsheet.words import OTHER_HEADINGS, begins_totals, without_accents

REPORT_HEADINGS = ("_row", "_outcome", "_code", "_problem", "_fix", "_id")
"""Headings that a report adds after the columns of the input, in this order."""

ROWS_SEARCHED = 40
"""Number of rows at the start of a file in which the headings are searched."""

_KNOWN_MIN = 2
_SHOWN_CHARACTERS = 60
_NOT_WORD = re.compile(r"[^a-z0-9]+")
_FIGURE = re.compile(r"[\d\s.,:/+€£$%()'-]*\d[\d\s.,:/+€£$%()'-]*").fullmatch

# -- Names -----------------------------------------------------------------------------------------


def appearance_key(heading: str) -> str:
    """Return a form of the heading that is equal for headings that look the same."""
    compatible = unicodedata.normalize("NFKC", heading)
    visible = "".join(
        c for c in compatible if unicodedata.category(c) not in ("Cf", "Cc") or c in "\t\r\n"
    )
    return unicodedata.normalize("NFKC", re.sub(r"\s+", " ", visible).strip().casefold())


@lru_cache(maxsize=4_000)
def heading_words(heading: str) -> tuple[str, ...]:
    """Return the words of the heading without letter case, accents and punctuation.

    Letters that have no Latin base are kept, so that different headings stay different.
    """
    normalized = without_accents(heading)
    if not normalized.isascii():
        return tuple(re.findall(r"\w+", normalized.replace("_", " ")))
    return tuple(each for each in _NOT_WORD.split(normalized) if each)


def normalized_heading(heading: str) -> str:
    """Return the heading without case, blanks, punctuation and accents: "Mobile No." is
    "mobileno".
    """
    return "".join(heading_words(heading))


@cache
def headings_of_one_line() -> Mapping[str, bool]:
    """Return the normalized headings of all fields, each with True if its texts have one line."""
    found: dict[str, bool] = {}
    for declared in CATALOG.values():
        for name, each in declared.fields.items():
            for heading in map(normalized_heading, (name, *declared.aliases.get(name, ()))):
                found[heading] = found.get(heading, True) and each.is_one_line
    return found


@cache
def known_headings() -> frozenset[str]:
    """Return the normalized headings of fields, references, and usual ones without a field."""
    found = {*headings_of_one_line(), *OTHER_HEADINGS}
    for declared in CATALOG.values():
        for by, group in declared.found_by.items():
            found.update(map(normalized_heading, (f"{declared.singular}_{by}", *group)))
    return frozenset(found)


def _count_known(cells: Iterable[str]) -> int:
    return len(
        {normalized_heading(each) for each in cells if normalized_heading(each) in known_headings()}
        - {""}
    )


# -- Heading row -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class HeadingRows:
    """Headings of a table, the index of their first row, and the number of rows they take."""

    headings: tuple[str, ...]
    index: int = 0
    depth: int = 1
    known_count: int = 0

    @property
    def first_row(self) -> int:
        """Index of the first row below the headings."""
        return self.index + self.depth

    @property
    def filled(self) -> list[str]:
        """Headings that are not blank."""
        return [each for each in self.headings if each.strip()]


def find_headings(sheet: Sequence[Sequence[Cell]], header_row: int | None = None) -> HeadingRows:
    """Return the headings among a sheet's first rows; `header_row` is the user's choice, from 1."""
    rows = [[*map(text_of, row)] for row in sheet[: header_row or ROWS_SEARCHED]]
    if header_row is not None:
        cells = rows[header_row - 1] if header_row <= len(rows) else ()
        return HeadingRows(tuple(cells), header_row - 1, known_count=_count_known(cells))
    if not rows or has_report_headings(rows[0]):
        return HeadingRows(tuple(rows[0]) if rows else ())
    single = [HeadingRows(tuple(r), i, 1, _count_known(r)) for i, r in enumerate(rows)]
    for best in sorted(single, key=lambda each: -each.known_count):
        if best.known_count < _KNOWN_MIN:
            break
        if _can_be_headings(single, best):
            doubles = [_two_row_headings(rows, best.index + shift) for shift in (0, -1)]
            better = [each for each in doubles if each and each.known_count > best.known_count]
            return max(better, key=lambda each: each.known_count) if better else best
    # The first row, or the first one as wide as the table if the first row is a title.
    widest = max(len(each.filled) for each in single)
    if len(single[0].filled) <= 1 and widest > _KNOWN_MIN:
        for each in single:
            if len(each.filled) == widest and not any(map(_FIGURE, each.filled)):
                return each
    return single[0]


def _can_be_headings(rows: Sequence[HeadingRows], headings: HeadingRows) -> bool:
    """Return True if the rows above are no table: they are narrower, or group the columns."""
    above, width = rows[: headings.index], len(headings.filled)
    wide = [each for each in above if len(each.filled) >= width]
    is_grouped = not wide or (wide == [above[-1]] and headings.known_count * 2 > width)
    return is_grouped and not any(map(_FIGURE, headings.filled))


def _two_row_headings(rows: Sequence[Sequence[str]], index: int) -> HeadingRows | None:
    """Return the row at `index` and the next one, joined; None if they cannot be headings."""
    if index < 0 or index + 1 >= len(rows):
        return None
    upper, lower = rows[index], rows[index + 1]
    if any(_FIGURE(cell) or "@" in cell for cell in lower if cell.strip()):
        return None
    group, joined = "", []
    for above, below in zip_longest(upper, lower, fillvalue=""):
        group, name = above.strip() or (group if below.strip() else ""), below.strip()
        texts = [each for each in (group, name) if each]
        # A title above a column that has its own name is redundant.
        choices = [" ".join(texts), " ".join(reversed(texts)), name]
        joined.append(next((each for each in choices if each and _count_known([each])), choices[0]))
    return HeadingRows(tuple(joined), index, 2, _count_known(joined))


QuoteDamage = tuple[Literal["quote_not_closed", "quote_in_cell"], int, int]
"""Wrong quote: its code, and the numbers of the first and the last row that it affects."""


@dataclass(slots=True)
class Sheet:
    """Rows of a text or of a workbook's sheet, in memory. Indexes count from 0.

    Attributes:
        flaws: Reasons why cells have no value, by row and column.
        merged_ranges: First row, last row, first column and last column of merged cells.
        delimiter: Delimiter of a text; None for a workbook.
        damages: Wrong quotes, by the row that they make unreliable.
    """

    name: str | None = None
    rows: list[list[Any]] = field(default_factory=list)
    headings: HeadingRows = field(default_factory=lambda: HeadingRows(()))
    flaws: dict[int, dict[int, Flaw]] = field(default_factory=dict)
    hidden_rows: set[int] = field(default_factory=set)
    merged_ranges: list[tuple[int, int, int, int]] = field(default_factory=list)
    delimiter: str | None = None
    damages: dict[int, QuoteDamage] = field(default_factory=dict)

    @property
    def below(self) -> list[list[Any]]:
        """Rows below the headings."""
        return self.rows[self.headings.first_row :]


# -- Columns ---------------------------------------------------------------------------------------


def name_columns(path: Path, first_row: Sequence[str], filled_count: int = 0) -> tuple[str, ...]:
    """Return the headings of the columns, without empty ones at the end and those of a report.

    A column without a heading, and the second of two headings that look the same, are named by
    their letters. Raises `SpreadsheetError` if the columns of a report are not the last six.
    """
    cells = _without_empty_end(first_row)
    if not cells:
        message = f"{path}: row 1 is blank, but must have the headings"
        raise SpreadsheetError(message, code="headings_refused")
    if has_report_headings(cells):
        cells = [unescape_cell(cell) for cell in cells[: -len(REPORT_HEADINGS)]]
    else:
        cells += [""] * (filled_count - len(cells))
    strays = [i for i, cell in enumerate(cells) if appearance_key(cell) in REPORT_HEADINGS]
    if strays or not cells:
        named = (
            f"column {get_column_letter(i + 1)} {cells[i][:_SHOWN_CHARACTERS]!r}" for i in strays
        )
        raise SpreadsheetError(
            f"{path}: {', '.join(named) or 'the file'}: a report's own columns must be its last"
            " six, in their order",
            action=f"Move them back to the end ({' '.join(REPORT_HEADINGS)}), or delete them all.",
            code="headings_refused",
        )
    return tuple(_distinct_headings(cells))


def _distinct_headings(cells: Sequence[str]) -> Iterator[str]:
    before: set[str] = set()
    for index, cell in enumerate(cells):
        appearance, position = appearance_key(cell), f"(column {get_column_letter(index + 1)})"
        yield position if not appearance else f"{cell} {position}" if appearance in before else cell
        before.add(appearance)


def has_report_headings(first_row: Sequence[str]) -> bool:
    """Return True if the last cells that are not empty are the headings that a report adds."""
    return tuple(_without_empty_end(first_row)[-len(REPORT_HEADINGS) :]) == REPORT_HEADINGS


def _without_empty_end(cells: Sequence[str]) -> list[str]:
    """Return the cells without the empty or invisible ones at the end."""
    filled = list(cells)
    while filled and not appearance_key(filled[-1]):
        filled.pop()
    return filled


# -- Rows outside of the table ---------------------------------------------------------------------

_SHOWN_MAX = 5


def mark_rows_outside(
    path: Path, headings: Sequence[str], rows: Iterable[SheetRow]
) -> tuple[list[SheetRow], list[str]]:
    """Return the rows, marked if they do not belong to the table, and a sentence that names these.

    Raises `SpreadsheetError` if another table begins below the table.
    """
    marked, left_out = list[SheetRow](), dict[int, str]()
    looks = tuple(map(appearance_key, headings))
    is_after_blank = is_below_totals = False
    for row in rows:
        texts = [text for cell in row.cells if (text := str(cell).strip())]
        is_outside = False
        if texts:
            is_total = bool(begins_totals(texts[0])) and _is_total(row.cells, len(looks))
            is_footer = is_below_totals and len(texts) == 1 and len(looks) > _KNOWN_MIN
            is_outside = is_total or is_footer or _repeats(row.cells, looks)
            if is_outside:
                left_out[row.number] = texts[0][:_SHOWN_CHARACTERS]
            elif is_after_blank and _begins_another_table(texts):
                message = f"{path}: row {row.number} seems to be the first row of another table"
                action = "Move the second table to its own file."
                raise SpreadsheetError(message, action=action, code="headings_refused")
            is_below_totals = (is_below_totals and is_footer) or is_total
        is_after_blank = not texts
        marked.append(replace(row, is_outside=True, problems=()) if is_outside else row)
    shown = ", ".join(f"{n} ({text})" for n, text in list(left_out.items())[:_SHOWN_MAX])
    shown += f", … and {max(left_out)}" if len(left_out) > _SHOWN_MAX else ""
    notice = f"Rows with totals, footers or repeated headings are not imported: {shown}."
    return marked, [notice] if left_out else []


def _is_total(cells: Sequence[Cell], width: int) -> bool:
    """Return True if texts after the first are numbers, and some cells are empty."""
    filled = [each for each in cells if str(each).strip()]
    texts = [each for each in filled[1:] if isinstance(each, str)]
    return len(filled) < width and all(_FIGURE(each) and "+" not in each for each in texts)


def _repeats(cells: Sequence[Cell], looks: tuple[str, ...]) -> bool:
    if appearance_key(str(cells[0])) != looks[0]:
        return False
    found = tuple(appearance_key(str(each)) for each in cells)
    return found[: len(looks)] == looks and not any(found[len(looks) :])


def _begins_another_table(texts: Sequence[str]) -> bool:
    known = _count_known(texts)
    return known >= _KNOWN_MIN and known * 2 > len(texts)
