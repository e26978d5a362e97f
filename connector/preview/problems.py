"""A row's problems between those who find them and the journal, which keeps them."""

from __future__ import annotations

from connector.engine.push_plan import RowProblem
from connector.spreadsheet.mapping import ColumnMap
from connector.spreadsheet.row import Problem


def as_kept(problem: Problem) -> RowProblem:
    """A problem of a row as the journal keeps it."""
    return RowProblem(
        problem.code,
        problem.message,
        column=problem.column,
        received=problem.received,
        allowed=problem.allowed,
        fix=problem.fix,
    )


def as_told(problem: RowProblem, columns: ColumnMap) -> Problem:
    """A problem of the journal as a report tells it, at the column of its field."""
    column = problem.column or (columns.column_of(problem.field) if problem.field else None)
    found = f" The API has: {problem.found}." if problem.found is not None else ""
    return Problem(
        problem.code,
        problem.message + found,
        column or problem.field,
        problem.received,
        problem.allowed,
        problem.fix,
    )
