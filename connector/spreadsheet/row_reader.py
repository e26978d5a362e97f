"""Reading whole rows: each cell as its column's field, all problems at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from types import MappingProxyType
from typing import Any, Protocol

from connector.catalog.value import MARK, VALUE_ERASED, is_redacted
from connector.engine.push_states import Operation
from connector.spreadsheet.cells import reader
from connector.spreadsheet.mapping import ColumnMap, MappedColumn
from connector.spreadsheet.row import Problem, ReadText, ReadTyped, SheetRow, Unreadable, shown
from connector.spreadsheet.target_columns import LandedState, PushTarget

_NONE: frozenset[str] = frozenset()
_NOTHING: Mapping[str, Any] = MappingProxyType({})


class Sheet(Protocol):
    """A table as it was read from a file."""

    @property
    def headings(self) -> tuple[str, ...]:
        """The headings, in order."""

    def rows(self) -> Iterator[SheetRow]:
        """The rows below the headings, each time from the first."""


class RowDraft:
    """A row on its way through the checks.

    `values` are JSON values by the keys of columns; null empties a field. `failed` are the keys
    whose cells could not be read, so that they are not called missing as well. `identity` is the
    natural key of a row that makes a record. `is_misshapen` says that the row's cells cannot be
    told apart by column, so that nothing more is to be said of them.
    """

    __slots__ = (
        "failed",
        "identity",
        "is_misshapen",
        "landed",
        "operation",
        "problems",
        "record_id",
        "row",
        "values",
    )

    def __init__(self, row: SheetRow, values: dict[str, Any]) -> None:
        self.row = row
        self.values = values
        self.problems: tuple[Problem, ...] = ()
        self.is_misshapen = False
        self.failed: Set[str] = _NONE
        self.operation: Operation | None = None
        self.record_id: str | None = None
        self.landed: LandedState | None = None
        self.identity: Mapping[str, Any] = _NOTHING

    def add(self, problem: Problem) -> None:
        """Note a problem of the row."""
        self.problems = (*self.problems, problem)

    def fail(self, key: str, problem: Problem) -> None:
        """Note that the field's cell is wrong."""
        self.add(problem)
        self.failed = self.failed | {key}
        self.values.pop(key, None)


def _redacted() -> Unreadable:
    return Unreadable(
        VALUE_ERASED,
        f"The cell holds {MARK}, which stands for what an erasure removed and is never sent.",
        fix="Write the whole value, or clear the cell.",
    )


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
        """The row's values and problems; one whose form is wrong is not read any further, since
        its cells may belong to other columns.
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
                        raise _redacted()
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
        """Take over what is wrong with the row's form; True where nothing else can be said of it.

        What is wrong with the cell of a column that fills nothing does no harm.
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
        if column.target.can_be_cleared:
            # A record that does not exist yet has nothing to be emptied.
            if not self._drops_cleared:
                draft.values[column.target.key] = None
            return
        draft.fail(
            column.target.key,
            Problem(
                "cannot_clear",
                f"The field {column.target.key} must have a value.",
                column.heading,
                shown(self._clear or ""),
                fix="Leave the cell blank, or write a value.",
            ),
        )
