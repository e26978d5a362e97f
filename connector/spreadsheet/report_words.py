"""Words of a report: its headings, its sheets, and its outcomes.

A report is written in the language of its reader. It can be imported again in any language, because
all its headings are known.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from connector.errors import closed
from connector.ledger.push_plan import Problem
from connector.spreadsheet.columns import REPORT_HEADINGS


def _text(problem: Problem) -> str:
    """Return the text of a problem, with the allowed values."""
    allowed = f" Allowed: {problem.allowed}." if problem.allowed else ""
    return f"{closed(problem.text)}{allowed}"


def _change(name: str, now: Any, then: Any) -> str:
    values = ("(empty)" if each is None else str(each) for each in (now, then))
    return f"{name}: {' -> '.join(values)}"


def _rows(numbers: Sequence[int], more: int) -> str:
    if not numbers:
        return f"{more:,} more row{'s' * (more > 1)}"
    listed = ", ".join(map(str, numbers))
    noun = "row" if len(numbers) + more == 1 else "rows"
    return f"{noun} {listed}{f' and {more:,} more' if more else ''}"


@dataclass(frozen=True, slots=True)
class ReportWords:
    """Words of a report in one language; without arguments, the words of the command.

    Args:
        headings: The report's own headings, as in `columns.HEADINGS_OF_REPORTS`.
        sheets: Names of the sheet with the summary and of the sheet with the rows.
        summary: Headings of the summary.
        kinds: Words for a problem and a warning.
        outcome: Returns the word for an outcome.
        place: Returns the column of a problem, or an empty text.
        text: Returns what is wrong, in one line without the column.
        fix: Returns what to do, or an empty text.
        change: Returns a field of an update with its current and its new value.
        rows: Returns the numbers of rows, and the number of further rows.
    """

    headings: tuple[str, ...] = REPORT_HEADINGS
    sheets: tuple[str, str] = ("Summary", "Report")
    summary: tuple[str, ...] = ("Rows", "What", "Column", "Problem", "What to do")
    kinds: tuple[str, str] = ("problem", "warning")
    outcome: Callable[[str], str] = str
    place: Callable[[Problem], str] = lambda problem: problem.column or ""
    text: Callable[[Problem], str] = _text
    fix: Callable[[Problem], str] = lambda problem: problem.fix or ""
    change: Callable[[str, Any, Any], str] = _change
    rows: Callable[[Sequence[int], int], str] = _rows


PLAIN_WORDS = ReportWords()
"""Words of the command's reports."""
