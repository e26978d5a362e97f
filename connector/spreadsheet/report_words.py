"""Words of a report: its headings, its sheets, and what became of each row.

A report is written in the language of its reader. It is recognized by its headings in any of
the languages, so that it can be imported again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from connector.errors import closed
from connector.ledger.push_plan import Problem
from connector.spreadsheet.columns import REPORT_HEADINGS


def _text(problem: Problem) -> str:
    """Text of a problem, with the allowed values."""
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
    """Words of a report in one language; those of the command without arguments.

    Args:
        headings: The report's own headings, as `columns.HEADINGS_OF_REPORTS` has them.
        sheets: Names of the sheet that sums up and of the sheet with the rows.
        summary: Headings of the sheet that sums up.
        kinds: What a problem and a warning are called there.
        outcome: Word for an outcome.
        place: Column of a problem, or empty.
        text: What is wrong, in one line without its column.
        fix: What to do, or empty.
        change: One field of an update: its name, its value now and then.
        rows: Numbers of rows, and of how many more.
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
