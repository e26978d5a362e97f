"""Columns of a table: letters, distinct headings, and the columns that a report adds."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from connector.errors import SpreadsheetError
from connector.spreadsheet.texts import unescape_cell
from connector.spreadsheet.word_lists import without_accents

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
