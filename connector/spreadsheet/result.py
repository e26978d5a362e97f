"""How a row ended, and the words in which a report says so."""

from __future__ import annotations

from dataclasses import dataclass

from connector.engine.task import Foreseen
from connector.spreadsheet.row import Problem


@dataclass(frozen=True, slots=True)
class RowResult:
    """How one row ended, or would: `code` says why, and `record_id` is the id of its record,
    where known.
    """

    number: int
    outcome: Foreseen
    problems: tuple[Problem, ...] = ()
    code: str | None = None
    record_id: str | None = None


def told(result: RowResult) -> tuple[int, str, str, str, str, str]:
    """What the report's own columns say, in their order."""
    codes = dict.fromkeys([result.code, *(each.code for each in result.problems)])
    fixes = dict.fromkeys(each.fix for each in result.problems)
    return (
        result.number,
        result.outcome,
        ", ".join(code for code in codes if code),
        "\n".join(_said(each) for each in result.problems),
        "\n".join(fix for fix in fixes if fix),
        result.record_id or "",
    )


def _said(problem: Problem) -> str:
    """A problem in one line: where, what, what was received and what is allowed."""
    parts = [f"{problem.column}: {problem.message}" if problem.column else problem.message]
    if problem.received:
        parts.append(f"Received: {problem.received}.")
    if problem.allowed:
        parts.append(f"Allowed: {problem.allowed}.")
    return " ".join(parts)
