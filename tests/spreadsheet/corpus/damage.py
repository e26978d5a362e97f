"""CSV files with one damaged quote, delimiter or line end, and what a preview makes of each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from connector.errors import SpreadsheetError
from connector.pushes.preview import ask_about_file, ask_about_lost_columns
from connector.spreadsheet.check import check_rows
from connector.spreadsheet.mapping import map_headings
from connector.spreadsheet.row_reader import ColumnMeanings
from connector.spreadsheet.table import open_table
from tests.spreadsheet.meaning.sheet import InMemoryLanding, make_target

TEXT = """First Name,Last Name,Email,Employment Type,City,Salary Currency,Current Company
Ann,Poe,ann@x.example,permanent,"York, UK",GBP,Wren
Bob,Ray,bob@x.example,interim,Leeds,,"The ""Old"" Inn"
Cid,Orr,cid@x.example,contractor,Bath,EUR,
"""
"""A table with quoted cells, an empty cell, and a line end after the last line."""

STRUCTURAL = frozenset('",\n')


@dataclass(frozen=True)
class Damage:
    """A damaged copy of `TEXT`: what was done to the character at `position`.

    `rows` are the numbers of rows that may be refused. Row 1 is the headings: if they are damaged,
    the whole file may be refused.
    """

    kind: str
    position: int
    text: str
    rows: range

    def __str__(self) -> str:
        return f"{self.kind} at {self.position}"


def insert_text(sign: str) -> Callable[[str, int], str]:
    """Return a function that inserts `sign` into a text before an index."""
    return lambda text, at: text[:at] + sign + text[at:]


def replace_character(sign: str) -> Callable[[str, int], str]:
    """Return a function that replaces the character of a text at an index by `sign`."""
    return lambda text, at: text[:at] + sign + text[at + 1 :]


KINDS: Mapping[str, Callable[[str, int], str]] = {
    "a quote inserted": insert_text('"'),
    "two quotes inserted": insert_text('""'),
    "a delimiter inserted": insert_text(","),
    "a line feed inserted": insert_text("\n"),
    "a carriage return inserted": insert_text("\r"),
    "a line end inserted": insert_text("\r\n"),
    "replaced by a quote": replace_character('"'),
    "replaced by a delimiter": replace_character(","),
    "replaced by a line feed": replace_character("\n"),
    "removed": replace_character(""),
}
"""Function of each kind of damage: it returns a text damaged at an index."""


def iterate_damages() -> Iterator[Damage]:
    """Yield damage of every kind at every quote, delimiter or line end.

    Additional or missing delimiters within quotes and lost letters are excluded, because no reader
    can detect them.
    """
    quoted = mark_quoted(TEXT)
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
            is_lost |= kind == "replaced by a line feed" and _is_next_to_edge(at, quoted)
            if text != TEXT and not is_of_text and not is_lost:
                yield Damage(kind, at, text, find_affected_rows(kind, at))


def _is_next_to_edge(at: int, quoted: list[bool]) -> bool:
    """Return True for a letter next to a line end, or next to a quote that encloses it."""
    edges = '\n"' if quoted[at] else "\n"
    return TEXT[at] not in STRUCTURAL and bool({*TEXT[at - 1], *TEXT[at + 1]} & {*edges})


def mark_quoted(text: str) -> list[bool]:
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
    """Result of a preview: rows by how they would be sent, and codes of questions and errors.

    `sent` are fields of rows without a warning or remark, `warned` the emails of the others.
    Questions or
    an error keep the whole file from being sent.
    """

    sent: tuple[Mapping[str, Any], ...] = ()
    warned: tuple[str, ...] = ()
    questions: tuple[str, ...] = ()
    error: str | None = None


def preview_text(path: Path, text: str) -> PreviewResult:
    """Write a CSV file and preview it as a push does, without a warehouse."""
    path.write_bytes(text.encode())
    try:
        table = open_table(path)
        target = make_target()
        columns = map_headings(table.headings, target)
        meanings = ColumnMeanings(table.rows, columns.columns)
        given = table.rows()
        rows = list(check_rows(given, columns, target, InMemoryLanding(), meanings=meanings))
    except SpreadsheetError as error:
        return PreviewResult(error=error.code)
    tasks = [(each, each.task.fields) for each in rows if each.task and each.outcome is None]
    lost = ask_about_lost_columns(table, columns)
    questions = (*table.questions, *lost, *ask_about_file(table, columns))
    return PreviewResult(
        tuple(fields for row, fields in tasks if not (row.warnings or row.remarks)),
        tuple(str(fields.get("email")) for row, fields in tasks if row.warnings or row.remarks),
        tuple(each.code for each in questions if each.stops),
    )


def find_faults(damage: Damage, damaged: PreviewResult, undamaged: PreviewResult) -> Iterator[str]:
    """Yield values that are sent changed without a warning, and undamaged rows that are refused."""
    is_stopped = damaged.error is not None or damaged.questions
    if not is_stopped:
        for fields in damaged.sent:
            if fields not in undamaged.sent:
                yield f"sent without a word: {dict(fields)}"
    if damage.rows.start == 1:
        return
    if is_stopped:
        yield f"the file is refused: {damaged.error or damaged.questions}"
        return
    known = {str(fields["email"]) for fields in damaged.sent} | {*damaged.warned}
    for number, fields in enumerate(undamaged.sent, 2):
        if number not in damage.rows and str(fields["email"]) not in known:
            yield f"row {number} is refused"
