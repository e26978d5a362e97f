"""The columns of a table: letters, headings that tell them apart, and those that a report adds."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from connector.errors import HeadingsRefused
from connector.spreadsheet.texts import unmark

REPORT_HEADINGS = ("_row", "_outcome", "_code", "_problem", "_fix", "_id")
"""What a report has behind the input's own columns, in this order."""

_SHOWN_CHARACTERS = 60
_LISTED_PAIRS = 5


@dataclass(frozen=True, slots=True)
class Columns:
    """A table's own headings as they stand in the file, and whether it is a report of ours.

    Behind the own columns a report has its six; they are not among `headings`.
    """

    headings: tuple[str, ...]
    is_report: bool

    @property
    def count(self) -> int:
        """How many columns of the file have a heading, a report's own six among them."""
        return len(self.headings) + (len(REPORT_HEADINGS) if self.is_report else 0)


def letter(index: int) -> str:
    """The letters that a spreadsheet shows above the column: 0 is A, 26 is AA."""
    letters = ""
    index += 1
    while index:
        index, rest = divmod(index - 1, 26)
        letters = chr(ord("A") + rest) + letters
    return letters


def look_of(heading: str) -> str:
    """The look of a heading, the same for headings that a person would read as the same.

    Case, width and composition of letters, invisible characters, and how many blanks there are
    make no difference.
    """
    compatible = unicodedata.normalize("NFKC", heading)
    visible = "".join(
        c for c in compatible if unicodedata.category(c) not in ("Cf", "Cc") or c in "\t\r\n"
    )
    return unicodedata.normalize("NFKC", re.sub(r"\s+", " ", visible).strip().casefold())


def read_headings(path: Path, first_row: Sequence[str]) -> Columns:
    """The columns of the table whose first row this is, without empty cells at its end.

    Raises `HeadingsRefused`, naming columns by letter and text: none at all, an empty one, two
    that are the same, or columns of a report that are not its last six.
    """
    cells = _filled(first_row)
    if not cells:
        raise HeadingsRefused(f"{path}: row 1 is blank, and the headings must be there")
    is_report = is_of_report(cells)
    if is_report:
        cells = [unmark(cell) for cell in cells[: -len(REPORT_HEADINGS)]]
    _refuse_empty(path, cells)
    _refuse_twins(path, cells)
    strays = [i for i, cell in enumerate(cells) if look_of(cell) in REPORT_HEADINGS]
    if strays:
        named = ", ".join(_named(i, cells[i]) for i in strays)
        raise HeadingsRefused(
            f"{path}: {named}: a report's own columns must be its last six, in their order",
            action=f"Put them back to the end ({' '.join(REPORT_HEADINGS)}), or delete them all.",
        )
    if not cells:
        raise HeadingsRefused(f"{path}: there are a report's own columns and no others")
    return Columns(tuple(cells), is_report)


def is_of_report(first_row: Sequence[str]) -> bool:
    """Whether the row has the headings of a report."""
    return tuple(_filled(first_row)[-len(REPORT_HEADINGS) :]) == REPORT_HEADINGS


def _filled(cells: Sequence[str]) -> list[str]:
    """The cells up to the last that shows anything."""
    filled = list(cells)
    while filled and not look_of(filled[-1]):
        filled.pop()
    return filled


def _refuse_empty(path: Path, cells: Sequence[str]) -> None:
    empty = [i for i, cell in enumerate(cells) if not look_of(cell)]
    if not empty:
        return
    letters = ", ".join(letter(i) for i in empty[:_LISTED_PAIRS])
    before = next((f", behind {_named(i - 1, cells[i - 1])}" for i in empty[:1] if i), "")
    plural = "columns" if len(empty) > 1 else "column"
    raise HeadingsRefused(f"{path}: {plural} {letters}{before}: the heading is empty")


def _refuse_twins(path: Path, cells: Sequence[str]) -> None:
    first: dict[str, int] = {}
    pairs = []
    for i, cell in enumerate(cells):
        before = first.setdefault(look_of(cell), i)
        if before != i:
            pairs.append(f"{_named(before, cells[before])} and {_named(i, cell)}")
    if pairs:
        raise HeadingsRefused(
            f"{path}: two columns have the same heading: {'; '.join(pairs[:_LISTED_PAIRS])}"
        )


def _named(index: int, heading: str) -> str:
    return f"column {letter(index)} {heading[:_SHOWN_CHARACTERS]!r}"


# -- Names of columns ------------------------------------------------------------------------------


_NOT_WORD = re.compile(r"[^a-z0-9]+")


def words(heading: str) -> tuple[str, ...]:
    """The heading's words: letter case, accents and punctuation aside.

    A heading in letters that have no Latin base keeps them, so that two of them stay two.
    """
    plain = unicodedata.normalize("NFKD", heading).casefold()
    plain = "".join(c for c in plain if not unicodedata.combining(c))
    if not plain.isascii():
        return tuple(re.findall(r"\w+", plain.replace("_", " ")))
    return tuple(each for each in _NOT_WORD.split(plain) if each)


def plain(heading: str) -> str:
    """The heading without case, blanks, underscores, punctuation and accents: "Mobile No." is
    "mobileno".
    """
    return "".join(words(heading))


# -- Hints -----------------------------------------------------------------------------------------
# Headings that could be several columns. They are suggested with their reason, and never used by
# themselves; those that are certain enough to be used stand with the fields, in the catalog.


HINTS: Mapping[str, tuple[tuple[str, ...], str]] = {
    "name": (
        ("first_name", "last_name", "company_name"),
        "a whole name cannot be split without guessing: give each part a column of its own",
    ),
    "fullname": (
        ("first_name", "last_name"),
        "a whole name cannot be split without guessing: give each part a column of its own",
    ),
    "company": (("current_company", "limited_company_name"), "it can be either"),
    "salary": (
        ("expected_salary", "current_salary", "salary_min", "salary_max", "annual_salary"),
        "it can be any of them",
    ),
    "rate": (
        ("expected_day_rate", "current_day_rate", "day_rate_min", "day_rate_max", "day_rate"),
        "it can be any of them",
    ),
    "dayrate": (
        ("expected_day_rate", "current_day_rate", "day_rate_min", "day_rate_max"),
        "it can be any of them",
    ),
    "currency": (("salary_currency", "rate_currency"), "it can be either"),
    "notice": (("notice_period_days",), "that field is in days, and people give weeks or months"),
    "noticeperiod": (
        ("notice_period_days",),
        "that field is in days, and people give weeks or months",
    ),
    "experience": (
        ("years_of_experience", "experience_level"),
        "it can be years or a text",
    ),
    "type": (
        ("employment_type", "booking_type", "customer_type", "contract_type"),
        "it is often called so",
    ),
    "contract": (("employment_type", "contract_type"), "it is often called so"),
    "contracttype": (("employment_type",), "it is often called so"),
    "jobtype": (("employment_type",), "it is often called so"),
    "date": (("start_datetime", "start_date", "available_from"), "it can be any of them"),
    "start": (("start_datetime", "start_date", "available_from"), "it can be any of them"),
    "startdate": (("start_datetime", "available_from"), "a time may be needed as well"),
    "end": (("end_datetime", "contract_end_date"), "it can be any of them"),
    "enddate": (("end_datetime", "contract_end_date"), "a time may be needed as well"),
    "available": (("available_from",), "that field is a date"),
    "availability": (("available_from",), "that field is a date"),
    "contact": (("contact_name", "primary_contact_name"), "it can be a name or an address"),
    "job": (("job_reference_code", "job_title", "current_job_title"), "it can be any of them"),
    "role": (("current_job_title", "title"), "it is often called so"),
    "owner": (("assigned_to", "account_manager_id"), "that field is an id: map names to ids"),
    "recruiter": (("assigned_to", "account_manager_id"), "that field is an id: map names to ids"),
    "consultant": (("assigned_to", "account_manager_id"), "that field is an id: map names to ids"),
    "state": (("status", "county", "state_province"), "it can be a place or a status"),
    "url": (("website", "network_url", "portfolio_url"), "it can be any of them"),
    "cv": ((), "files cannot be sent: the API takes none"),
    "resume": ((), "files cannot be sent: the API takes none"),
}
"""By a plain heading, the columns that it may stand for and why it is not used by itself."""
