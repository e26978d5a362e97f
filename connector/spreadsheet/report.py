"""Reports: the columns of the input, followed by the result of each row.

A report can be corrected and pushed again, so its cells equal those of the input, and no cell runs
as a formula. It has the rows of the input that are not blank, in order.
"""

from __future__ import annotations

import csv
import errno
import io
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import IO, Any

from connector import atomic_files
from connector.errors import ReportRefused, SpreadsheetError, WarehouseError, end_sentence
from connector.spreadsheet.headings import REPORT_HEADINGS
from connector.spreadsheet.problems import ANSWERED, UNSENT, SheetRow, fix_of, is_blank, text_of
from connector.spreadsheet.table import TEXT_SUFFIXES, WORKBOOK_SUFFIX, Spreadsheet
from connector.spreadsheet.texts import NOT_CALCULATED, escape_cell
from connector.state.row import Outcome, Problem, Row

# -- Summary ---------------------------------------------------------------------------------------

_EXAMPLES_MAX, _ANSWERS_MAX = 3, 20
_CELLS_CHARACTERS_MAX = 10_000
GroupKey = tuple[str, str | None]
"""Code and column of a problem."""


@dataclass(slots=True)
class ProblemGroup:
    """Problems of one code in one column: their number, the first few, and the different cells."""

    problem: Problem
    count: int = 0
    examples: list[tuple[int, Problem]] = field(default_factory=list)
    values: Counter[str] = field(default_factory=Counter)

    def add(self, number: int, problem: Problem) -> None:
        """Count a problem of row `number`."""
        self.count += 1
        self.values[problem.received or ""] += 1
        if len(self.examples) < _EXAMPLES_MAX:
            self.examples.append((number, problem))

    @property
    def is_answered_by_value(self) -> bool:
        """Return True if the user gives one answer for each of a few different cells."""
        is_few = self.count > 1 and len(self.values) <= _ANSWERS_MAX
        code, column = self.problem.code, self.problem.column
        # An unknown record is imported first; users and lead statuses are chosen.
        is_choice = code != "reference_unknown" or self.problem.allowed is not None
        return code in ANSWERED and column is not None and is_few and is_choice

    def describe(self) -> list[str]:
        """Return one sentence if the text is the same in all rows, else one for each row."""
        more = self.count - len(self.examples)
        texts = {problem.text for _, problem in self.examples}
        if len(texts) == 1:
            numbers = list(dict.fromkeys(number for number, _ in self.examples))
            return [f"{_format_rows(numbers, more)}: {texts.pop()}"]
        lines = [
            f"{_format_rows([number], 0)}: {each.text}{_proposal(each)}"
            for number, each in self.examples
        ]
        return [*lines, f"{more:,} more row{'s' * (more > 1)}"] if more else lines

    @property
    def fix(self) -> str | None:
        """Suggested action if the first rows have the same one; else that of the code."""
        fixes = {problem.fix for _, problem in self.examples}
        return fixes.pop() if len(fixes) == 1 else fix_of(self.problem.code) or self.problem.fix


def _proposal(problem: Problem) -> str:
    """Return the proposed value as a question; empty if the problem has none."""
    fix = problem.fix or ""
    return f" {fix.partition('? ')[0]}?" if fix.startswith("Did you mean") else ""


def _format_rows(numbers: Sequence[int], more: int) -> str:
    noun = "row" if len(numbers) + more == 1 else "rows"
    return f"{noun} {', '.join(map(str, numbers))}{f' and {more:,} more' if more else ''}"


@dataclass(slots=True)
class Summary:
    """Counts of a file's rows by outcome, of their problems by code, and groups of problems."""

    counts: Counter[Outcome] = field(default_factory=Counter)
    codes: Counter[str] = field(default_factory=Counter)
    rows_with_problems: int = 0
    rows_with_warnings: int = 0
    problems: dict[GroupKey, ProblemGroup] = field(default_factory=dict)
    warnings: dict[GroupKey, ProblemGroup] = field(default_factory=dict)

    @classmethod
    def of(cls, results: Iterable[Row]) -> Summary:
        """Return the summary of these rows."""
        summary = cls()
        for each in results:
            summary.add(each)
        return summary

    @property
    def rows(self) -> int:
        """Number of rows."""
        return self.counts.total()

    def add(self, result: Row) -> None:
        """Count a row by its outcome, and its problems."""
        self.counts[result.outcome] += 1
        # Warnings only matter for rows that are sent.
        warnings = () if result.outcome in UNSENT else result.warnings
        self.rows_with_warnings += bool(warnings)
        self.rows_with_problems += bool(result.problems)
        self.codes.update(each.code for each in result.problems)
        for groups, found in ((self.warnings, warnings), (self.problems, result.problems)):
            for each in found:
                group = groups.setdefault((each.code, each.column), ProblemGroup(each))
                group.add(result.number, each)


# -- Cells -----------------------------------------------------------------------------------------


def report_cells(row: SheetRow, result: Row) -> tuple[int, str, str, str, str, str]:
    """Return the cells for the report's own columns: row, outcome, code, problem, fix and id.

    The problem of a row of another shape has its cells, because the report has no columns for them.
    """
    found = (*result.problems, *result.warnings)
    codes = dict.fromkeys([result.code, *(each.code for each in found)])
    fixes = dict.fromkeys(each.fix for each in found)
    texts = [f"{e.column}: {problem_text(e)}" if e.column else problem_text(e) for e in found]
    if row.is_misshapen and not is_blank(row.cells):
        own = row.cells[: len(row.cells) - row.missing_cells]
        texts.append(f"Cells of the row: {' | '.join(map(text_of, own))[:_CELLS_CHARACTERS_MAX]}")
    changes = (
        f"{name}: {' -> '.join('(empty)' if each is None else str(each) for each in values)}"
        for name, *values in result.changes
    )
    return (
        result.number,
        result.outcome,
        ", ".join(code for code in codes if code),
        "\n".join(texts),
        "\n".join([*(end_sentence(fix) for fix in fixes if fix), *changes]),
        result.record_id or "",
    )


def problem_text(problem: Problem) -> str:
    """Return the message of a problem and the allowed values, in sentences."""
    allowed = f" Allowed: {problem.allowed}." if problem.allowed else ""
    return f"{end_sentence(problem.text)}{allowed}"


def not_calculated(row: SheetRow, index: int) -> str | None:
    """Return the text that marks a formula without a value; None for other cells."""
    kind, formula = row.flaws.get(index, ("", ""))
    return NOT_CALCULATED + formula if kind == "formula_without_value" else None


RowWithResult = tuple[SheetRow, Row]

# -- Writing ---------------------------------------------------------------------------------------

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@contextmanager
def open_new_file(path: Path, description: str) -> Iterator[IO[bytes]]:
    """Open a table file for writing. The file appears under its name when it is complete.

    Only the owner can read it. `description` names it in errors. Raises `SpreadsheetError`, also
    for an unsupported suffix, or `WarehouseError` if the disk is full.
    """
    if path.suffix.lower() not in (*TEXT_SUFFIXES, WORKBOOK_SUFFIX):
        raise SpreadsheetError(
            f"{path}: {description} must be a csv, tsv, txt or xlsx file",
            action="Choose a file name with one of these endings.",
            code="not_a_spreadsheet",
        )
    try:
        with atomic_files.write_atomically(path) as file:
            yield file
    except OSError as error:
        if error.errno in _FULL:
            raise WarehouseError(
                f"the disk is full: {path} cannot be written", code="disk_full"
            ) from error
        raise SpreadsheetError(f"{path} cannot be written: {error.strerror or error}") from error


def write_delimited(file: IO[bytes], delimiter: str, rows: Iterable[Sequence[Any]]) -> None:
    """Write rows as delimited text in UTF-8, with a byte order mark for spreadsheet programs."""
    text = io.TextIOWrapper(file, encoding="utf-8-sig", newline="")
    csv.writer(text, delimiter=delimiter, lineterminator="\r\n").writerows(rows)
    text.flush()
    text.detach()


def report_suffix(path: Path) -> str:
    """Return the suffix for the report of this file: its own for a text, .xlsx for any workbook."""
    return path.suffix if path.suffix.lower() in TEXT_SUFFIXES else WORKBOOK_SUFFIX


def report_path(table: Spreadsheet) -> Path:
    """Return a new file name for the table's report, next to the table.

    An earlier report may contain corrections and is never overwritten.
    """
    stem = table.path.stem
    if table.is_report:
        stem = re.sub(r"\.report(-?[0-9]+)?\Z", "", stem)
    suffix = report_suffix(table.path)
    names = (f"{stem}.report{f'-{n}' if n > 1 else ''}{suffix}" for n in count(1))
    return next(path for path in map(table.path.with_name, names) if not path.exists())


def pair_rows(table: Spreadsheet, results: Iterable[Row]) -> Iterator[RowWithResult]:
    """Yield each row of the table that is not blank, with its result.

    Raises `ValueError` if their numbers differ.
    """
    rows = (row for row in table.rows() if not row.is_left_out)
    return zip(rows, results, strict=True)


def write_report(path: Path, table: Spreadsheet, rows: Iterable[RowWithResult]) -> None:
    """Write the report with these rows of the table, as csv or xlsx by its name.

    A csv has the delimiter of the input. Only the owner can read the file, which appears when it is
    complete. Raises `ReportRefused` for the input file, and the errors of `open_new_file`.
    """
    if path.exists() and path.samefile(table.path):
        raise ReportRefused(
            f"{path} is the input file, which is never overwritten",
            action="Choose another name for the report.",
        )
    suffix = path.suffix.lower()
    with open_new_file(path, "a report") as file:
        if suffix == WORKBOOK_SUFFIX:
            # Importing the library takes time, and a csv does not need it.
            from connector.spreadsheet.workbook_writer import write_report_workbook  # noqa: PLC0415

            write_report_workbook(file, path, table.headings, rows)
        else:
            delimiter = "\t" if suffix == ".tsv" else table.delimiter or ","
            write_delimited(file, delimiter, _delimited_rows(table.headings, rows))


def _delimited_rows(
    headings: tuple[str, ...], rows: Iterable[RowWithResult]
) -> Iterator[Sequence[Any]]:
    yield [*map(escape_cell, headings), *REPORT_HEADINGS]
    for row, result in rows:
        # A number cannot be mistaken for a formula.
        texts = (escape_cell(c) if isinstance(c, str) else text_of(c) for c in row.cells)
        own = [not_calculated(row, index) or text for index, text in enumerate(texts)]
        number, *rest = report_cells(row, result)
        own = [""] * len(headings) if row.is_misshapen else own
        yield [*own, number, *map(escape_cell, rest)]
