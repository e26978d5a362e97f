"""Words of the page's reports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from connector.ledger.push_plan import Problem
from connector.page.words import TEXTS
from connector.spreadsheet.report import ReportWords

ROW_OUTCOMES: Mapping[str, str] = {
    "create": "To create",
    "update": "To update",
    "convert": "To convert",
    "created": "Record created",
    "updated": "Record updated",
    "converted": "Lead converted",
    "unchanged": "Nothing changed",
    "duplicate": "Duplicate",
    "invalid": "Row not imported",
    "rejected": "Row rejected",
    "not_applied": "Saved with other values",
    "conflict": "Changed by others",
    "held": "Row unconfirmed",
    "not_sent": "Row not sent",
}
"""Words for the result of a row, by outcome."""

_SHEETS = ("Summary", "Report")
_SUMMARY = ("Rows", "Result", "Column", "Problem", "Solution")
_KINDS = ("Error", "Warning")


def report_words(resource: str) -> ReportWords:
    """Return the texts of a report about a resource."""

    def text(problem: Problem) -> str:
        parts = [TEXTS.problem_text(problem)]
        if problem.code == "duplicate_in_file" and problem.found:
            parts = [f"The same record as row {problem.found}."]
        if problem.received:
            parts.append(f"Value: “{problem.received}”.")
        if problem.allowed:
            parts.append(f"Allowed: {problem.allowed}.")
        return " ".join(parts)

    def change(name: str, now: Any, then: Any) -> str:
        ((_, before, after),) = TEXTS.format_changes([(name, now, then)], resource)
        return f"{TEXTS.field_label(name)}: {before} → {after}"

    def rows(numbers: Sequence[int], more: int) -> str:
        listed = ", ".join(map(str, numbers))
        if not numbers:
            return f"{more} more row{'s' * (more != 1)}"
        if more:
            return f"Rows {listed} and {more} more"
        return f"Row{'s' * (len(numbers) != 1)} {listed}"

    return ReportWords(
        _SHEETS,
        _SUMMARY,
        _KINDS,
        lambda outcome: ROW_OUTCOMES[outcome],
        TEXTS.problem_column,
        text,
        TEXTS.fix_text,
        change,
        rows,
    )
