"""What the API refused of a row, put to the columns that it came from.

Field names in a 422 are the API's own and may be any (API 7.1): what belongs to no column is
said of the row, so that nothing is lost.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from connector.spreadsheet.mapping import ColumnMap
from connector.spreadsheet.row import Problem
from connector.spreadsheet.slots import CONTENT


def refusal(
    errors: Mapping[str, Iterable[str]], columns: ColumnMap, *, message: str | None = None
) -> tuple[Problem, ...]:
    """A problem for each message about each field; one for the row where there is none.

    `message` is the API's own summary. A content type's field may be named with `fields.` before
    it or without.
    """
    keys = {each.slot.key for each in columns.columns}
    problems = []
    for name, texts in errors.items():
        key = name if name in keys else f"{CONTENT}.{name}"
        column = columns.column_of(key)
        for text in texts or ("is refused",):
            said = f"The API says: {name} {text}"
            problems.append(Problem("refused_by_api", said, column, fix=_fix(column)))
    if not problems:
        said = f"The API says: {message}" if message else "The API refused it and did not say why."
        problems.append(Problem("refused_by_api", said, fix=_fix(None)))
    return tuple(problems)


def _fix(column: str | None) -> str:
    return "Correct the cell and push again." if column else "Correct the row and push again."
