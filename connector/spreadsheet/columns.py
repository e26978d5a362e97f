"""Headings and columns of a table: its heading row, column letters, and the columns of a report."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

from connector.catalog import CATALOG
from connector.errors import SpreadsheetError
from connector.spreadsheet.problems import Cell, SheetRow
from connector.spreadsheet.texts import unescape_cell
from connector.spreadsheet.word_lists import TOTALS, TOTALS_INITIALS, without_accents

REPORT_HEADINGS = ("_row", "_outcome", "_code", "_problem", "_fix", "_id")
"""Headings that a report adds after the columns of the input, in this order."""

HEADINGS_OF_REPORTS: Mapping[str, tuple[str, ...]] = {
    "en": REPORT_HEADINGS,
    "de": ("_zeile", "_ergebnis", "_code", "_problem", "_korrektur", "_id"),
    "fr": ("_ligne", "_résultat", "_code", "_problème", "_correction", "_id"),
}
"""The same headings by language. Reports in all of these languages are accepted."""

_HEADINGS = frozenset(HEADINGS_OF_REPORTS.values())
_EVERY_HEADING = frozenset(heading for some in _HEADINGS for heading in some)
_SHOWN_CHARACTERS = 60


@dataclass(frozen=True, slots=True)
class Columns:
    """Headings of a table, and whether the table is a report of this program.

    A report has six more columns at the end, which are not in `headings`.
    """

    headings: tuple[str, ...]
    is_report: bool

    @property
    def count(self) -> int:
        """Return the number of columns with a heading, including the six of a report."""
        return len(self.headings) + (len(REPORT_HEADINGS) if self.is_report else 0)


def column_letter(index: int) -> str:
    """Return the letters of a spreadsheet column: 0 is A, 26 is AA."""
    letters = ""
    index += 1
    while index:
        index, rest = divmod(index - 1, 26)
        letters = chr(ord("A") + rest) + letters
    return letters


def appearance_key(heading: str) -> str:
    """Return a form of the heading that is equal for headings that look the same.

    Letter case, width and composition of letters, invisible characters and the number of blanks
    are ignored.
    """
    compatible = unicodedata.normalize("NFKC", heading)
    visible = "".join(
        c for c in compatible if unicodedata.category(c) not in ("Cf", "Cc") or c in "\t\r\n"
    )
    return unicodedata.normalize("NFKC", re.sub(r"\s+", " ", visible).strip().casefold())


def read_headings(path: Path, first_row: Sequence[str], filled_count: int = 0) -> Columns:
    """Return the columns of the table with these headings, without empty cells at the end.

    A column without a heading, and the second of two headings that look the same, are named by
    their letters. The first `filled_count` columns have cells. Raises `SpreadsheetError` if all
    headings are empty or if the columns of a report are not the last six.
    """
    cells = _without_empty_end(first_row)
    if not cells:
        raise SpreadsheetError(
            f"{path}: row 1 is blank, but must have the headings", code="headings_refused"
        )
    is_report = has_report_headings(cells)
    if is_report:
        cells = [unescape_cell(cell) for cell in cells[: -len(REPORT_HEADINGS)]]
    else:
        cells += [""] * (filled_count - len(cells))
    strays = [i for i, cell in enumerate(cells) if appearance_key(cell) in _EVERY_HEADING]
    if strays:
        named = ", ".join(
            f"column {column_letter(i)} {cells[i][:_SHOWN_CHARACTERS]!r}" for i in strays
        )
        raise SpreadsheetError(
            f"{path}: {named}: a report's own columns must be its last six, in their order",
            action=f"Move them back to the end ({' '.join(REPORT_HEADINGS)}), or delete them all.",
            code="headings_refused",
        )
    if not cells:
        raise SpreadsheetError(
            f"{path}: the file has only the columns that a report adds", code="headings_refused"
        )
    return Columns(tuple(_distinct_headings(cells)), is_report)


def _distinct_headings(cells: Sequence[str]) -> Iterator[str]:
    """Yield the headings, with column letters added to headings that are not distinct."""
    before: set[str] = set()
    for index, cell in enumerate(cells):
        appearance, position = appearance_key(cell), f"(column {column_letter(index)})"
        yield position if not appearance else f"{cell} {position}" if appearance in before else cell
        before.add(appearance)


def has_report_headings(first_row: Sequence[str]) -> bool:
    """Return True if the last cells that are not empty are the headings that a report adds."""
    return tuple(_without_empty_end(first_row)[-len(REPORT_HEADINGS) :]) in _HEADINGS


def _without_empty_end(cells: Sequence[str]) -> list[str]:
    """Return the cells without the empty or invisible ones at the end."""
    filled = list(cells)
    while filled and not appearance_key(filled[-1]):
        filled.pop()
    return filled


# -- Names of columns ------------------------------------------------------------------------------


_NOT_WORD = re.compile(r"[^a-z0-9]+")


def heading_words(heading: str) -> tuple[str, ...]:
    """Return the words of the heading without letter case, accents and punctuation.

    Letters that have no Latin base are kept, so that different headings stay different.
    """
    normalized = without_accents(heading)
    if not normalized.isascii():
        return tuple(re.findall(r"\w+", normalized.replace("_", " ")))
    return tuple(each for each in _NOT_WORD.split(normalized) if each)


def normalized_heading(heading: str) -> str:
    """Return the heading without case, blanks, punctuation and accents.

    "Mobile No." is "mobileno".
    """
    return "".join(heading_words(heading))


# -- Hints -----------------------------------------------------------------------------------------
# Headings that could belong to several columns. They are suggested with a reason and never used
# automatically. Headings that are certain are in the catalog.


_WHOLE_NAME = "first and last name need separate columns"
_ANY = "the heading fits several fields"
_EITHER = "the heading fits both fields"
_OFTEN = "this heading is often used for the field"
_IN_DAYS = "the field is in days, but the heading may mean weeks or months"
_WITH_TIME = "the field may need a time, too"
_AN_ID = "the field is an ID: translate the names to IDs in a column mapping"
_NO_FILES = "the API does not accept files"
_RATES = ("expected_day_rate", "current_day_rate", "day_rate_min", "day_rate_max")
_SALARIES = ("expected_salary", "current_salary", "salary_min", "salary_max", "annual_salary")
_TYPES = ("employment_type", "booking_type", "customer_type", "contract_type")
_STARTS = ("start_datetime", "start_date", "available_from")
_ENDS = ("end_datetime", "contract_end_date")
_OWNERS = ("assigned_to", "account_manager_id")

HINTS: Mapping[str, tuple[tuple[str, ...], str]] = {
    "name": (("first_name", "last_name", "company_name"), _WHOLE_NAME),
    "fullname": (("first_name", "last_name"), _WHOLE_NAME),
    "company": (("current_company", "limited_company_name"), _EITHER),
    "salary": (_SALARIES, _ANY),
    "rate": ((*_RATES, "day_rate"), _ANY),
    "dayrate": (_RATES, _ANY),
    "currency": (("salary_currency", "rate_currency"), _EITHER),
    "notice": (("notice_period_days",), _IN_DAYS),
    "noticeperiod": (("notice_period_days",), _IN_DAYS),
    "experience": (
        ("years_of_experience", "experience_level"),
        "the column can be a number or a text",
    ),
    "type": (_TYPES, _OFTEN),
    "contract": (("employment_type", "contract_type"), _OFTEN),
    "contracttype": (("employment_type",), _OFTEN),
    "jobtype": (("employment_type",), _OFTEN),
    "date": (_STARTS, _ANY),
    "start": (_STARTS, _ANY),
    "startdate": (("start_datetime", "available_from"), _WITH_TIME),
    "end": (_ENDS, _ANY),
    "enddate": (_ENDS, _WITH_TIME),
    "available": (("available_from",), "the field is a date"),
    "availability": (("available_from",), "the field is a date"),
    "contact": (
        ("contact_name", "primary_contact_name"),
        "the column can hold names or email addresses",
    ),
    "job": (("job_reference_code", "job_title", "current_job_title"), _ANY),
    "role": (("current_job_title", "title"), _OFTEN),
    **dict.fromkeys(("owner", "recruiter", "consultant"), (_OWNERS, _AN_ID)),
    "state": (("status", "county", "state_province"), "the column can be a place or a status"),
    "title": (("current_job_title",), "the column can be a job title or a form of address"),
    "url": (("network_url", "website", "portfolio_url"), _ANY),
    "cv": ((), _NO_FILES),
    "resume": ((), _NO_FILES),
}
"""By normalized heading, the possible columns and the reason why it is not used automatically."""


# -- Table headings -------------------------------------------------------------------------------
# Position of a table in a file: its headings, and rows that do not belong to it.
#
# Above the headings there may be a title, notes, or a second row that groups them. Below the
# headings there may be repeated headings, totals, or another table. The row with the most known
# headings, in the languages of the catalog, is the heading row. If no heading is known, it is the
# first row that is as wide as the table.


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
