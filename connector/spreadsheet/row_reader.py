"""Reading whole rows: each cell as its column's field, all problems at once."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from typing import Any

from connector.catalog.value import VALUE_ERASED, is_redacted
from connector.engine.push_states import Operation
from connector.spreadsheet.cells import reader
from connector.spreadsheet.mapping import ColumnMap, MappedColumn
from connector.spreadsheet.problems import (
    Problem,
    ReadText,
    ReadTyped,
    SheetRow,
    Unreadable,
    problem_of,
)
from connector.spreadsheet.target_columns import LandedState, PushTarget


@dataclass(slots=True)
class RowDraft:
    """A row on its way through the checks.

    `values` are JSON values by the keys of target columns; null empties a field. `failed` are the
    keys whose cells could not be read, so that they are not called missing as well. `identity` is
    the natural key of a row that makes a record. `is_misshapen` says that the row's cells cannot
    be matched to columns, so that no other problem is reported.
    """

    row: SheetRow
    values: dict[str, Any]
    problems: tuple[Problem, ...] = ()
    failed: Set[str] = frozenset()
    is_misshapen: bool = False
    operation: Operation | None = None
    record_id: str | None = None
    landed: LandedState | None = None
    identity: Mapping[str, Any] = field(default_factory=dict)

    def add(self, problem: Problem) -> None:
        """Note a problem of the row."""
        self.problems = (*self.problems, problem)

    def fail(self, key: str, problem: Problem) -> None:
        """Note that the field's cell is wrong."""
        self.add(problem)
        self.failed = self.failed | {key}
        self.values.pop(key, None)


class RowReader:
    """Reads the rows of one file, with a reader for each column made once."""

    def __init__(self, target: PushTarget, columns: ColumnMap) -> None:
        self._clear = target.clear
        self._drops_cleared = target.mode == "create"
        self._columns: list[tuple[int, str, ReadText, ReadTyped, MappedColumn]] = []
        for each in columns.columns:
            made = reader(each.target, target.mode, each.options)
            self._columns.append((each.index, each.target.key, made.text, made.typed, each))
        self._constants = {
            column.key: value for column, _, value in columns.constants if value is not None
        }

    def read(self, row: SheetRow) -> RowDraft:
        """The row's values and problems.

        A row whose form is wrong is not read any further, since its cells may belong to other
        columns.
        """
        values = self._constants.copy()
        draft = RowDraft(row, values)
        if row.problems and self._take_form(draft):
            return draft
        cells, clear, skipped = row.cells, self._clear, draft.failed
        for index, key, read_text, read_typed, column in self._columns:
            cell = cells[index]
            if skipped and key in skipped:
                continue
            try:
                if cell.__class__ is str:
                    text = cell.strip()
                    if not text:
                        continue
                    if is_redacted(text):
                        raise Unreadable(VALUE_ERASED)
                    if text == clear:
                        self._empty(draft, column)
                        continue
                    value = read_text(text)
                else:
                    value = read_typed(cell)
            except Unreadable as error:
                draft.fail(key, error.problem(column.heading, cell))
                continue
            # A value that is mapped to nothing leaves the field alone.
            if value is not None:
                values[key] = value
        return draft

    def _take_form(self, draft: RowDraft) -> bool:
        """Take over the problems of the row's form; True where it is misshapen.

        A problem with the cell of a column that fills nothing does no harm.
        """
        mapped = {column.heading: key for _, key, _, _, column in self._columns}
        for problem in draft.row.problems:
            if problem.column is None:
                draft.is_misshapen = True
                draft.add(problem)
            elif problem.column in mapped:
                draft.fail(mapped[problem.column], problem)
        return draft.is_misshapen

    def _empty(self, draft: RowDraft, column: MappedColumn) -> None:
        key = column.target.key
        if not column.target.can_be_cleared:
            message = f"The field {key} must have a value."
            draft.fail(
                key, problem_of("cannot_clear", message, column.heading, received=self._clear)
            )
        elif not self._drops_cleared:
            # A record that does not exist yet has nothing to be emptied.
            draft.values[key] = None
