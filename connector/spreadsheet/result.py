"""How a row ended, and the words in which a report says so."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from connector.engine.task import Foreseen
from connector.spreadsheet.row import Problem


@dataclass(frozen=True, slots=True)
class RowResult:
    """How one row ended, or would: `code` says why, and `record_id` is the id of its record,
    where known. `changes` are a foreseen update's fields, each with its text as it is and as it
    would be.
    """

    number: int
    outcome: Foreseen
    problems: tuple[Problem, ...] = ()
    code: str | None = None
    record_id: str | None = None
    changes: tuple[tuple[str, str, str], ...] = ()


TOLD_MAX = 100
"""As many rows with problems as are remembered one by one."""


@dataclass(slots=True)
class Summary:
    """What a file's rows come to. `codes` counts problems by code, `troubled` the rows that have
    any, of which `first` are the first few.
    """

    counts: Counter[Foreseen] = field(default_factory=Counter)
    codes: Counter[str] = field(default_factory=Counter)
    troubled: int = 0
    first: list[RowResult] = field(default_factory=list)

    @classmethod
    def of(cls, results: Iterable[RowResult]) -> Summary:
        """The summary of these rows."""
        made = cls()
        for each in results:
            made.add(each)
        return made

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return self.counts.total()

    def add(self, result: RowResult) -> None:
        """Take in one row more."""
        self.counts[result.outcome] += 1
        if not result.problems:
            return
        self.troubled += 1
        for problem in result.problems:
            self.codes[problem.code] += 1
        if len(self.first) < TOLD_MAX:
            self.first.append(result)


def told(result: RowResult) -> tuple[int, str, str, str, str, str]:
    """What the report's own columns say, in their order."""
    if not result.problems:
        changes = "\n".join(f"{name}: {now} -> {then}" for name, now, then in result.changes)
        return result.number, result.outcome, result.code or "", "", changes, result.record_id or ""
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
