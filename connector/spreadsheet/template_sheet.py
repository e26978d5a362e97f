"""Templates: an empty table with every column that is taken, for somebody to fill in.

A csv has the headings and an example row. A workbook also tells each column's rule at its
heading, offers the allowed values as a list to choose from, and has all columns formatted as text,
so that `00123` and `+44...` stay what was typed.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from openpyxl import Workbook
from openpyxl.cell import Cell
from openpyxl.comments import Comment
from openpyxl.styles import Font, PatternFill
from openpyxl.utils import get_column_letter, quote_sheetname
from openpyxl.worksheet.datavalidation import DataValidation
from openpyxl.worksheet.worksheet import Worksheet

from connector.catalog.field import AcceptedWhen, AtLeastOneOf, RequiredWhen
from connector.catalog.value import Kind
from connector.errors import NotASpreadsheet
from connector.spreadsheet.columns import read_headings
from connector.spreadsheet.report import replacing
from connector.spreadsheet.row import joined
from connector.spreadsheet.table import TEXT_SUFFIXES, WORKBOOK_SUFFIX
from connector.spreadsheet.target_columns import PushTarget, TargetColumn

SHEET = "Rows"
LISTS_SHEET = "Allowed values"

_AUTHOR = "connector"
_INLINE_CHARACTERS_MAX = 255
_LAST_ROW = 1_048_576
_WIDTH = 24
_MESSAGE_CHARACTERS_MAX = 225
_TITLE = "Not one of the list"
_REQUIRED = PatternFill("solid", fgColor="F8CBAD")
_OPTIONAL = PatternFill("solid", fgColor="EDEDED")


@dataclass(frozen=True, slots=True)
class TemplateColumn:
    """One column: its heading, its rule in a sentence or two, the values allowed (none: any), an
    example that follows the rule, and whether a row must fill it in.
    """

    heading: str
    rule: str
    allowed: tuple[str, ...]
    example: str
    is_required: bool


def write_template(path: Path, columns: Sequence[TemplateColumn]) -> None:
    """Write the template, csv or xlsx by its name; whole or not at all, for its owner alone.

    Raises `HeadingsRefused` where the headings do not tell the columns apart, `NotASpreadsheet` for
    another name, `SpreadsheetError`, `DiskFull`.
    """
    suffix = path.suffix.lower()
    if suffix not in (*TEXT_SUFFIXES, WORKBOOK_SUFFIX):
        raise NotASpreadsheet(
            f"{path}: a template is a csv, tsv, txt or xlsx", action="Give a name that ends so."
        )
    read_headings(path, [column.heading for column in columns])
    with replacing(path) as file:
        if suffix == WORKBOOK_SUFFIX:
            _write_workbook(file, columns)
        else:
            _write_text(file, "\t" if suffix == ".tsv" else ",", columns)


def _write_text(file: IO[bytes], delimiter: str, columns: Sequence[TemplateColumn]) -> None:
    # The mark tells spreadsheet programs that it is UTF-8.
    text = io.TextIOWrapper(file, encoding="utf-8-sig", newline="")
    writer = csv.writer(text, delimiter=delimiter, lineterminator="\r\n")
    writer.writerow([column.heading for column in columns])
    writer.writerow([column.example for column in columns])
    text.flush()
    text.detach()


def _write_workbook(file: IO[bytes], columns: Sequence[TemplateColumn]) -> None:
    book = Workbook()
    book.properties.creator = _AUTHOR
    sheet = book.active
    assert isinstance(sheet, Worksheet)
    sheet.title = SHEET
    sheet.freeze_panes = "A2"
    lists = book.create_sheet(LISTS_SHEET)
    # Hidden, so that the sheet with the rows is the only one to be read.
    lists.sheet_state = "hidden"
    for index, column in enumerate(columns, 1):
        letters = get_column_letter(index)
        dimension = sheet.column_dimensions[letters]
        dimension.width = max(_WIDTH, len(column.heading) + 2)
        # The format of cells that are not there yet; those below have their own.
        dimension.number_format = "@"
        _write_heading(sheet, index, column)
        _write_text_cell(sheet, 2, index, column.example).font = Font(italic=True, color="7F7F7F")
        if column.allowed:
            _offer(sheet, lists, letters, column)
    if lists.max_column == 1 and lists["A1"].value is None:
        book.remove(lists)
    book.save(file)


def _write_heading(sheet: Worksheet, index: int, column: TemplateColumn) -> None:
    cell = _write_text_cell(sheet, 1, index, column.heading)
    cell.font = Font(bold=True)
    cell.fill = _REQUIRED if column.is_required else _OPTIONAL
    parts = ["Required." if column.is_required else "Optional.", column.rule]
    if column.allowed:
        parts.append(f"Allowed: {', '.join(column.allowed)}.")
    cell.comment = Comment("\n".join(part for part in parts if part), _AUTHOR, 160, 320)


def _write_text_cell(sheet: Worksheet, row: int, column: int, text: str) -> Cell:
    cell = sheet.cell(row, column)
    assert isinstance(cell, Cell)
    cell.value = text
    # An example such as =x or #N/A would be taken for something else than text.
    cell.data_type = "s"
    cell.number_format = "@"
    return cell


def _offer(sheet: Worksheet, lists: Worksheet, letters: str, column: TemplateColumn) -> None:
    """A list to choose from, in every row of the column."""
    inline = ",".join(column.allowed)
    if (
        len(inline) <= _INLINE_CHARACTERS_MAX
        and not any(c in inline for c in '"\n')
        and (inline.count(",") == len(column.allowed) - 1)
    ):
        formula = f'"{inline}"'
    else:
        place = lists.max_column + (lists["A1"].value is not None)
        for row, value in enumerate(column.allowed, 1):
            _write_text_cell(lists, row, place, value)
        home = get_column_letter(place)
        formula = f"{quote_sheetname(LISTS_SHEET)}!${home}$1:${home}${len(column.allowed)}"
    choice = DataValidation(
        type="list",
        formula1=formula,
        allow_blank=True,
        showErrorMessage=True,
        errorTitle=_TITLE,
        error=f"{column.heading}: choose one of the list."[:_MESSAGE_CHARACTERS_MAX],
    )
    choice.add(f"{letters}2:{letters}{_LAST_ROW}")
    sheet.add_data_validation(choice)


# -- Accepted --------------------------------------------------------------------------------------
# The columns that a file may have, for templates: rule, allowed values and an example of each.
#
# One column for each field: where a field can be said in several ways, the one that people know
# best, with the others named. A file made of these headings maps by name alone.


@dataclass(frozen=True, slots=True)
class Accepted:
    """A column of a template.

    `about` is one sentence on the field, `rule` says what is expected of a cell. `allowed` are
    the only values, none where any will do. `instead` are other headings for the same field, of
    which a file may have one. `example` is a cell of the example row, empty where that row has
    none.
    """

    heading: str
    about: str
    is_required: bool
    rule: str
    allowed: tuple[str, ...]
    instead: tuple[str, ...]
    example: str
    kind: Kind


def accepted_columns(target: PushTarget) -> tuple[Accepted, ...]:
    """Every column that the target's mode takes, in the declaration's order."""
    by_key: dict[str, list[TargetColumn]] = {}
    for column in target.columns:
        by_key.setdefault(column.key, []).append(column)
    return tuple(_accepted(target, group) for group in by_key.values())


def _accepted(target: PushTarget, group: list[TargetColumn]) -> Accepted:
    # The second way to name a record is the one that people know best; the first is its id.
    column = group[1] if len(group) > 1 else group[0]
    others = tuple(each.name for each in group if each is not column)
    required = _is_required(target, column)
    return Accepted(
        heading=column.name,
        about=column.field.about,
        is_required=required,
        rule=" ".join(_sentences(target, column, required, others)),
        allowed=column.accepts(target.mode),
        instead=others,
        example=_example(column, target),
        kind=Kind.STRING if column is not group[0] else column.field.kind,
    )


def _is_required(target: PushTarget, column: TargetColumn) -> bool:
    match target.mode:
        case "create" | "upsert":
            return column.create.required or column.key in target.match
        case "update":
            return column.key in (target.match or ("id",))
        case "convert":
            return column.key == "id"


def _sentences(
    target: PushTarget, column: TargetColumn, required: bool, others: tuple[str, ...]
) -> list[str]:
    said = [_WHAT[column.field.kind]]
    if column.reference is not None and column.reference.by is not None:
        said = [f"The {column.reference.by.replace('_', ' ')} of one that exists."]
    elif column.field.format is not None:
        said = [_FORMS[column.field.format]]
    elif column.field.values:
        said = ["Several of the values, with semicolons between." if column.many else "A value."]
    if target.mode == "convert":
        said.insert(0, "Give one of id and email.")
    elif required:
        said.insert(0, "Required.")
    if target.mode in ("create", "upsert"):
        said += _conditions(target, column.key)
    for rule in target.resource.rules:
        if isinstance(rule, AcceptedWhen) and rule.field == column.key:
            said.append(f"Only when {rule.on} is {joined(rule.values)}.")
    if others:
        said.append(f"Or, instead, the column {' or '.join(others)}.")
    return said


def _conditions(target: PushTarget, key: str) -> list[str]:
    said = []
    for rule in target.resource.rules:
        match rule:
            case RequiredWhen(fields, on, values) if key in fields:
                said.append(f"Required when {on} is {' or '.join(values)}.")
            case AtLeastOneOf(fields) if key in fields:
                said.append(f"At least one of {joined(fields)} is required.")
    return said


_WHAT: Mapping[Kind, str] = {
    Kind.STRING: "Text.",
    Kind.UUID: "An id.",
    Kind.NUMBER: "A number, with a dot before a fraction.",
    Kind.INTEGER: "A whole number.",
    Kind.BOOL: "yes or no.",
    Kind.DATE: "A date as 2025-04-03.",
    Kind.DATETIME: "A date and time as 2025-04-03T09:30:00Z.",
}
_FORMS: Mapping[str, str] = {
    "email": "One email address.",
    "url": "A web address with https:// or http://.",
    "currency": "A currency code of three letters.",
    "timezone": "The name of a time zone, as Europe/London.",
    "json": "JSON.",
}

_ID = "00000000-0000-4000-8000-000000000000"
_BY_FORM: Mapping[str, str] = {
    "email": "anna.berg@example.com",
    "url": "https://www.example.com/anna",
    "currency": "GBP",
    "timezone": "Europe/London",
    "json": "{}",
}
_BY_KIND: Mapping[Kind, str] = {
    Kind.NUMBER: "45000",
    Kind.INTEGER: "3",
    Kind.BOOL: "yes",
    Kind.DATE: "2025-04-03",
    Kind.DATETIME: "2025-04-03T09:30:00Z",
}
_BY_NAME: Mapping[str, str] = {
    "first_name": "Anna",
    "last_name": "Berg",
    "phone": "+44 20 7946 0123",
    "mobile": "+44 7700 900123",
    "country": "United Kingdom",
    "city": "Leeds",
    "title": "Data Engineer",
    "name": "Wren & Co",
    "reference_code": "00123",
    "rating": "4",
    "fee_percentage": "17.5",
    "founded_year": "1998",
    "end_datetime": "2025-04-03T10:30:00Z",
}
"""Cells of the example row, where the field's kind alone says little."""


def _example(column: TargetColumn, target: PushTarget) -> str:
    if column.reference is not None and column.reference.by is not None:
        return _BY_FORM.get(column.reference.by) or _BY_NAME[column.reference.by]
    if column.field.kind is Kind.UUID:
        # Ids differ from one workspace to the next: one is shown where no row can do without.
        return _ID if _is_required(target, column) else ""
    allowed = column.accepts(target.mode)
    if allowed:
        return allowed[0]
    if any(isinstance(r, AcceptedWhen) and r.field == column.key for r in target.resource.rules):
        return ""
    name = column.field.name
    known = _BY_NAME.get(name) or _BY_KIND.get(column.field.kind)
    return known or _BY_FORM.get(column.field.format or "") or _by_last_word(name)


def _by_last_word(name: str) -> str:
    """The example of a text: that of its name's last word, `contact_phone` as `phone`."""
    return _BY_NAME.get(name.rsplit("_", 1)[-1], "Text")
