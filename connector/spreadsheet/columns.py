"""The columns of a table: letters, headings that tell them apart, and those that a report adds."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from connector.errors.spreadsheet import HeadingsRefused
from connector.spreadsheet.formula import unmark

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


def folded(heading: str) -> str:
    """What is the same for headings that a person would read as the same.

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
    strays = [i for i, cell in enumerate(cells) if folded(cell) in REPORT_HEADINGS]
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
    while filled and not folded(filled[-1]):
        filled.pop()
    return filled


def _refuse_empty(path: Path, cells: Sequence[str]) -> None:
    empty = [i for i, cell in enumerate(cells) if not folded(cell)]
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
        before = first.setdefault(folded(cell), i)
        if before != i:
            pairs.append(f"{_named(before, cells[before])} and {_named(i, cell)}")
    if pairs:
        raise HeadingsRefused(
            f"{path}: two columns have the same heading: {'; '.join(pairs[:_LISTED_PAIRS])}"
        )


def _named(index: int, heading: str) -> str:
    return f"column {letter(index)} {heading[:_SHOWN_CHARACTERS]!r}"
