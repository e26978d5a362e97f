"""Csv files with one damaged quote, delimiter or line end, and what a preview makes of each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from connector.errors import SpreadsheetError
from connector.pushes.file_warnings import LostColumns, ask_about_warnings
from connector.spreadsheet.check import check
from connector.spreadsheet.mapping import map_headings
from connector.spreadsheet.row_reader import ColumnMeanings
from connector.spreadsheet.table import open_table
from tests.spreadsheet.meaning.sheet import DeclaredLanding, make_target

TEXT = """First Name,Last Name,Email,Employment Type,City,Salary Currency,Current Company
Ann,Poe,ann@x.example,permanent,"York, UK",GBP,Wren
Bob,Ray,bob@x.example,interim,Leeds,,"The ""Old"" Inn"
Cid,Orr,cid@x.example,contractor,Bath,EUR,
Dee,Fay,dee@x.example,permanent,Bonn,GBP,Acme
"""
"""A table with quoted cells, an empty one, and a last line that ends."""

STRUCTURAL = frozenset('",\n')


@dataclass(frozen=True)
class Damage:
    """One damaged copy of the table.

    Attributes:
        kind: What was done at the place.
        position: Index of the damaged character in the text.
        text: The damaged text.
        rows: Numbers of the rows that may be refused. Row 1 is the headings: if they are damaged,
            every row may be refused, or the file.
    """

    kind: str
    position: int
    text: str
    rows: range

    @property
    def is_of_headings(self) -> bool:
        """True if the headings are damaged."""
        return self.rows.start == 1

    def __str__(self) -> str:
        return f"{self.kind} at {self.position}"


def insert_sign(sign: str) -> Callable[[str, int], str]:
    return lambda text, at: text[:at] + sign + text[at:]


def replace_sign(sign: str) -> Callable[[str, int], str]:
    return lambda text, at: text[:at] + sign + text[at + 1 :]


KINDS: Mapping[str, Callable[[str, int], str]] = {
    "a quote inserted": insert_sign('"'),
    "two quotes inserted": insert_sign('""'),
    "a delimiter inserted": insert_sign(","),
    "a line feed inserted": insert_sign("\n"),
    "a carriage return inserted": insert_sign("\r"),
    "a line end inserted": insert_sign("\r\n"),
    "replaced by a quote": replace_sign('"'),
    "replaced by a delimiter": replace_sign(","),
    "replaced by a line feed": replace_sign("\n"),
    "removed": replace_sign(""),
}
"""Ten kinds of damage, each at one position."""


def iterate_damages() -> Iterator[Damage]:
    """Yield damage of every kind at every quote, delimiter or line end.

    Additional or missing delimiters within quotes and lost letters are excluded, because no reader
    can detect them.
    """
    quoted = find_quoted(TEXT)
    for kind, damage in KINDS.items():
        for at, character in enumerate(TEXT):
            text = damage(TEXT, at)
            is_of_text = quoted[at] and (
                (kind == "a delimiter inserted" and quoted[max(0, at - 1)])
                or (kind == "replaced by a delimiter" and character != '"')
                or (kind == "removed" and character == ",")
            )
            is_lost = kind == "removed" and character not in STRUCTURAL
            # Beside a line end or a quote, a line feed in the place of a letter is a blank.
            is_lost |= kind == "replaced by a line feed" and _is_at_an_edge(at, quoted)
            if text != TEXT and not is_of_text and not is_lost:
                yield Damage(kind, at, text, find_affected_rows(kind, at))


def _is_at_an_edge(at: int, quoted: list[bool]) -> bool:
    edges = '\n"' if quoted[at] else "\n"
    return TEXT[at] not in STRUCTURAL and bool({*TEXT[at - 1], *TEXT[at + 1]} & {*edges})


def find_quoted(text: str) -> list[bool]:
    """Return for each character whether it is within quotes or a quote itself."""
    is_open, found = False, []
    for character in text:
        is_open ^= character == '"'
        found.append(is_open or character == '"')
    return found


def find_affected_rows(kind: str, at: int) -> range:
    """Return the damaged row and the rows that the damage may join to it.

    An unclosed quote reaches to the next quote; a lost line end reaches into the next row.
    """
    first = TEXT[:at].count("\n") + 1
    last = first + 1 if TEXT[at] == "\n" else first
    if "quote" in kind or (TEXT[at] == '"' and not kind.endswith("inserted")):
        after = TEXT.find('"', at + 1)
        last = max(last, TEXT[:after].count("\n") + 1 if after >= 0 else first)
    return range(first, last + 1)


@dataclass(frozen=True)
class PreviewResult:
    """What a preview makes of a file.

    Attributes:
        sent: Fields of the rows that would be sent without a problem or a warning.
        noted: Emails of the rows that would be sent with a warning.
        questions: Codes of questions that keep the whole file from being sent.
        error: Code of the error that keeps the file from being read.
    """

    sent: tuple[Mapping[str, Any], ...] = ()
    noted: tuple[str, ...] = ()
    questions: tuple[str, ...] = ()
    error: str | None = None


def preview_text(path: Path, text: str) -> PreviewResult:
    """Write the file and preview it as a push does, without a warehouse."""
    path.write_bytes(text.encode())
    try:
        table = open_table(path)
        target = make_target()
        columns = map_headings(table.headings, target)
        lost = LostColumns(table, columns)
        meanings = ColumnMeanings(table.rows, columns.columns)
        rows = list(check(lost.yield_rows(), columns, target, DeclaredLanding(), meanings=meanings))
    except SpreadsheetError as error:
        return PreviewResult(error=error.code)
    tasks = [(each, each.task.fields) for each in rows if each.task and each.outcome is None]
    questions = (*table.questions, *lost.questions(), *ask_about_warnings(0, table, columns))
    return PreviewResult(
        tuple(fields for row, fields in tasks if not row.warnings),
        tuple(str(fields.get("email")) for row, fields in tasks if row.warnings),
        tuple(each.code for each in questions if each.stops),
    )


def find_faults(damage: Damage, damaged: PreviewResult, undamaged: PreviewResult) -> Iterator[str]:
    """Return the faults in the preview of a damaged file."""
    is_stopped = damaged.error is not None or damaged.questions
    if not is_stopped:
        for fields in damaged.sent:
            if fields not in undamaged.sent:
                yield f"sent without a word: {dict(fields)}"
    if damage.is_of_headings:
        return
    if is_stopped:
        yield f"the file is refused: {damaged.error or damaged.questions}"
        return
    known = {str(fields["email"]) for fields in damaged.sent} | {*damaged.noted}
    for number, fields in enumerate(undamaged.sent, 2):
        if number not in damage.rows and str(fields["email"]) not in known:
            yield f"row {number} is refused"
