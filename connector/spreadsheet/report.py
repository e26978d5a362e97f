"""Reports: the input's own columns, and behind them what became of each row.

A report is made to be corrected and pushed again. So it opens as a table whose cells are exactly
those of the input, whatever they hold. No cell in it runs as a formula. It has one line for each of
the input's rows, in order, blank ones too: a row without a result, or with two, is an error and no
report.
"""

from __future__ import annotations

import csv
import errno
import io
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import IO, Any

from connector import atomic_files
from connector.errors import DiskFull, NotASpreadsheet, ReportRefused, SpreadsheetError, closed
from connector.ledger.push_plan import Problem
from connector.ledger.push_states import PreviewOutcome
from connector.spreadsheet.columns import REPORT_HEADINGS
from connector.spreadsheet.problems import UNSENT, Cell, SheetRow, fix_of, text_of
from connector.spreadsheet.table import TEXT_SUFFIXES, WORKBOOK_SUFFIX, Spreadsheet
from connector.spreadsheet.texts import EMPTY, MISSING, NOT_CALCULATED, escape_cell

# -- Report words ----------------------------------------------------------------------------------
# Words of a report: its headings, its sheets, and what became of each row.
#
# A report is written in the language of its reader. It is recognized by its headings in any of
# the languages, so that it can be imported again.


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


# -- Report ----------------------------------------------------------------------------------------


# -- Results ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RowResult:
    """Result of one row, reached or previewed.

    `code` says why, and `record_id` is the id of its record, where known. `changes` are a previewed
    update's fields, each with its value as it is and as it would be. `warnings` are what a person
    should know of a row that is sent.
    """

    number: int
    outcome: PreviewOutcome
    problems: tuple[Problem, ...] = ()
    code: str | None = None
    record_id: str | None = None
    changes: tuple[tuple[str, Any, Any], ...] = ()
    warnings: tuple[Problem, ...] = ()


REMEMBERED_MAX = 100
"""As many rows with problems as are remembered one by one."""


@dataclass(slots=True)
class ProblemGroup:
    """Problems of one kind in one column, counted, with the first few rows."""

    problem: Problem
    count: int = 0
    examples: list[tuple[int, Problem]] = field(default_factory=list)

    def add(self, number: int, problem: Problem) -> None:
        """Take in one more."""
        self.count += 1
        if len(self.examples) < _EXAMPLES_MAX:
            self.examples.append((number, problem))

    @property
    def rows(self) -> str:
        """The numbers of the first rows, for example "rows 2, 5, 9 and 4 more"."""
        return PLAIN_WORDS.rows(self.numbers, self.more)

    @property
    def numbers(self) -> list[int]:
        """The numbers of the first rows."""
        return [number for number, _ in self.examples]

    @property
    def more(self) -> int:
        """Number of rows behind the first ones."""
        return self.count - len(self.examples)

    @property
    def lines(self) -> list[str]:
        """Text of the problems, in the words of the command."""
        return self._lines(PLAIN_WORDS.rows, lambda problem: problem.text)

    def describe(self, words: ReportWords) -> list[str]:
        """Describe the problems in these words."""
        if words is PLAIN_WORDS:
            return self.lines
        return self._lines(words.rows, words.text)

    def _lines(
        self, rows: Callable[[Sequence[int], int], str], text: Callable[[Problem], str]
    ) -> list[str]:
        """One sentence if it is the same in all rows, else one for each row."""
        texts = {text(problem) for _, problem in self.examples}
        if len(texts) == 1:
            return [f"{rows(self.numbers, self.more)}: {texts.pop()}"]
        lines = [f"{rows([number], 0)}: {text(problem)}" for number, problem in self.examples]
        return [*lines, rows([], self.more)] if self.more else lines

    def describe_fix(self, words: ReportWords) -> str:
        """Describe the action in these words."""
        return self.fix or "" if words is PLAIN_WORDS else words.fix(self.problem)

    @property
    def fix(self) -> str | None:
        """The action, if it is the same in all rows; else the general action."""
        fixes = {problem.fix for _, problem in self.examples}
        return fixes.pop() if len(fixes) == 1 else fix_of(self.problem.code) or self.problem.fix


_EXAMPLES_MAX = 3
_GROUPS_MAX = 500
GroupKey = tuple[str, str | None]
"""A problem's code and its column."""


@dataclass(slots=True)
class Summary:
    """Counts of a file's rows by outcome.

    `codes` counts problems by code, `troubled` the rows that have any, of which `first` are the
    first few, and `warned` the rows that are sent with warnings. `problems` and `warnings` are
    groups of them, by kind and column.
    """

    counts: Counter[PreviewOutcome] = field(default_factory=Counter)
    codes: Counter[str] = field(default_factory=Counter)
    troubled: int = 0
    warned: int = 0
    first: list[RowResult] = field(default_factory=list)
    problems: dict[GroupKey, ProblemGroup] = field(default_factory=dict)
    warnings: dict[GroupKey, ProblemGroup] = field(default_factory=dict)

    @classmethod
    def of(cls, results: Iterable[RowResult]) -> Summary:
        """The summary of these rows."""
        made = cls()
        for each in results:
            made.add(each)
        return made

    @property
    def rows(self) -> int:
        """Number of rows."""
        return self.counts.total()

    def add(self, result: RowResult) -> None:
        """Take in one row more."""
        self.counts[result.outcome] += 1
        # A row that is not sent needs no consent.
        if result.warnings and result.outcome not in UNSENT:
            self.warned += 1
            _group(self.warnings, result.number, result.warnings)
        if result.problems:
            self.troubled += 1
            self.codes.update(problem.code for problem in result.problems)
            _group(self.problems, result.number, result.problems)
            if len(self.first) < REMEMBERED_MAX:
                self.first.append(result)


def _group(groups: dict[GroupKey, ProblemGroup], number: int, problems: Iterable[Problem]) -> None:
    for each in problems:
        group = groups.get((each.code, each.column))
        if group is None:
            if len(groups) == _GROUPS_MAX:
                continue
            group = groups[each.code, each.column] = ProblemGroup(each)
        group.add(number, each)


def report_cells(
    result: RowResult, words: ReportWords = PLAIN_WORDS
) -> tuple[int, str, str, str, str, str]:
    """The report's own cells of a row, in their order."""
    found = (*result.problems, *result.warnings)
    codes = dict.fromkeys([result.code, *(each.code for each in found)])
    fixes = dict.fromkeys(map(words.fix, found))
    changes = [words.change(*each) for each in result.changes]
    return (
        result.number,
        words.outcome(result.outcome),
        ", ".join(code for code in codes if code),
        "\n".join(_in_one_line(each, words) for each in found),
        "\n".join([*(closed(fix) for fix in fixes if fix), *changes]),
        result.record_id or "",
    )


def _in_one_line(problem: Problem, words: ReportWords) -> str:
    """The problem in one line: its column, what is wrong, and what is allowed."""
    place = words.place(problem)
    return f"{place}: {words.text(problem)}" if place else words.text(problem)


def placeholder(row: SheetRow, index: int, width: int) -> str | None:
    """The text that stands for a cell that is not there, or has nothing to show."""
    if index >= len(row.cells) - row.missing:
        return MISSING
    kind, formula = row.flaws.get(index, ("", ""))
    if kind == "not_calculated":
        return NOT_CALCULATED + formula
    return EMPTY if index >= width and row.cells[index] == "" else None


Pairs = Iterator[tuple[SheetRow, RowResult]] | Iterator[tuple[SheetRow, RowResult | None]]
"""Each row with its result, None for a blank one."""

# -- Writing ---------------------------------------------------------------------------------------


_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@contextmanager
def new_table(path: Path, what: str) -> Iterator[IO[bytes]]:
    """A table's file to write, which takes its name at the end.

    It is there whole or not at all, and for its owner alone.

    Raises `NotASpreadsheet` for a name of another kind, `DiskFull`, `SpreadsheetError`.
    """
    if path.suffix.lower() not in (*TEXT_SUFFIXES, WORKBOOK_SUFFIX):
        raise NotASpreadsheet(
            f"{path}: {what} is a csv, tsv, txt or xlsx", action="Choose a name with this ending."
        )
    try:
        with atomic_files.replacing(path) as file:
            yield file
    except OSError as error:
        if error.errno in _FULL:
            raise DiskFull(f"the disk is full: {path} cannot be written") from error
        raise SpreadsheetError(f"{path} cannot be written: {error.strerror or error}") from error


def write_rows(file: IO[bytes], delimiter: str, rows: Iterable[Sequence[Any]]) -> None:
    """Write text with delimiters, in UTF-8 with a mark for spreadsheet programs."""
    text = io.TextIOWrapper(file, encoding="utf-8-sig", newline="")
    csv.writer(text, delimiter=delimiter, lineterminator="\r\n").writerows(rows)
    text.flush()
    text.detach()


def report_suffix(path: Path) -> str:
    """Ending of a file's report: other workbooks are read, and not written."""
    return path.suffix if path.suffix.lower() in TEXT_SUFFIXES else WORKBOOK_SUFFIX


def report_path(table: Spreadsheet) -> Path:
    """A name for the table's report, next to it, that no file has yet.

    An earlier report may have corrections in it, which are never written over.
    """
    stem = table.path.stem
    if table.is_report:
        stem = re.sub(r"\.report(-?[0-9]+)?\Z", "", stem)
    suffix = report_suffix(table.path)
    names = (f"{stem}.report{f'-{n}' if n > 1 else ''}{suffix}" for n in count(1))
    return next(path for path in map(table.path.with_name, names) if not path.exists())


def write_report(
    path: Path, table: Spreadsheet, results: Iterable[RowResult], words: ReportWords = PLAIN_WORDS
) -> None:
    """Write the report with every row of the table, csv or xlsx by its name.

    `results` come in the order of the rows, one for each that is not blank. A csv has the
    input's delimiter. The file is there whole or not at all, and only its owner may read it.
    Raises `ReportRefused` where results and rows do not match, `SpreadsheetChanged`, and as
    `new_table` does.
    """
    _write(path, table, _pairs(table, results), None, words)


def write_some_rows(
    path: Path,
    table: Spreadsheet,
    rows: Iterable[tuple[SheetRow, RowResult]],
    summary: Summary,
    words: ReportWords = PLAIN_WORDS,
) -> None:
    """Write a report with these rows of the table alone, without reading the table.

    Args:
        path: The new file, csv or xlsx by its name.
        table: The table that the rows are of.
        rows: Each row with its result.
        summary: Counts of all rows of the table, for the first sheet of a workbook.
        words: Words of the report.

    Raises:
        ReportRefused: The path is the input itself.
        DiskFull: The disk is full.
    """
    _write(path, table, iter(rows), summary, words)


def _write(
    path: Path, table: Spreadsheet, pairs: Pairs, summary: Summary | None, words: ReportWords
) -> None:
    if path.exists() and path.samefile(table.path):
        raise ReportRefused(
            f"{path} is the input file, which is never overwritten",
            action="Choose another name for the report.",
        )
    suffix = path.suffix.lower()
    try:
        with new_table(path, "a report") as file:
            if suffix == WORKBOOK_SUFFIX:
                # The library for it takes a while to be imported, and a csv needs none.
                from connector.spreadsheet.workbook_writer import write_sheet  # noqa: PLC0415

                write_sheet(file, path, table, pairs, words=words, summary=summary)
            else:
                delimiter = "\t" if suffix == ".tsv" else table.delimiter or ","
                write_rows(file, delimiter, _text_rows(table.headings, pairs, words))
    finally:
        # The report is the last that reads the table.
        table.release()


def _pairs(table: Spreadsheet, results: Iterable[RowResult]) -> Pairs:
    """Each row with its result; refuses results that do not match the rows."""
    given = iter(results)
    for row in table.rows():
        if row.is_left_out:
            yield row, None
            continue
        result = next(given, None)
        if result is None or result.number != row.number:
            found = "none" if result is None else f"that of row {result.number}"
            raise ReportRefused(
                f"{table.path}: the next result should be that of row {row.number}, and is {found}"
            )
        yield row, result
    if (result := next(given, None)) is not None:
        raise ReportRefused(
            f"{table.path}: row {result.number} has a result and is not there, or has two"
        )


def _text_rows(
    headings: tuple[str, ...], pairs: Pairs, words: ReportWords
) -> Iterator[Sequence[Any]]:
    width = len(headings)
    yield [*map(escape_cell, headings), *words.headings]
    for row, result in pairs:
        if result is None:
            own = list(map(_text_cell, row.cells)) if row.is_outside else [""] * width
            yield [*own[:width], *[""] * len(words.headings), *own[width:]]
            continue
        if row.flaws or row.missing or len(row.cells) != width:
            own = [placeholder(row, i, width) or _text_cell(c) for i, c in enumerate(row.cells)]
        else:
            # The plain case needs to be fast: there may be a million of them.
            own = list(map(_text_cell, row.cells))
        number, *rest = report_cells(result, words)
        # Cells that no heading stands above come behind everything else, as they did.
        yield [*own[:width], number, *map(escape_cell, rest), *own[width:]]


def _text_cell(cell: Cell) -> str:
    # A number is no text that could be mistaken for a formula.
    return escape_cell(cell) if isinstance(cell, str) else text_of(cell)
