"""Rows about people who were erased: refused, and nothing of them is told again."""

from __future__ import annotations

from collections.abc import Sequence

from connector.spreadsheet.reading import Draft
from connector.spreadsheet.row import Problem
from connector.suppression import Suppressed

PERSON_ERASED = Problem(
    "person_erased",
    "The row is about a person who was erased.",
    fix="Take the row out; 'connector erase --release' lets the person in again.",
)
"""It shows no cell: problems are kept in the journal."""


def refuse_erased(resource: str, drafts: Sequence[Draft], suppressed: Suppressed | None) -> None:
    """Refuse the rows that have an id, an address or a number of somebody who was erased, whatever
    else is wrong with them. What was told of such a row before is taken back.
    """
    if suppressed is None:
        return
    for draft in drafts:
        if _is_about(resource, draft, suppressed):
            draft.problems = (PERSON_ERASED,)
            # Nothing more is to be said of it, as if its cells could not be told apart.
            draft.is_misshapen = True


def _is_about(resource: str, draft: Draft, suppressed: Suppressed) -> bool:
    values = draft.values
    if draft.record_id is not None:
        values = {**values, "id": draft.record_id}
    if suppressed.met_in(resource, values):
        return True
    # A telephone number that was typed as a number is one all the same.
    texts = (str(cell) for cell in draft.row.cells if isinstance(cell, str | int) and cell)
    return any(suppressed.named_in(each) for each in texts)
