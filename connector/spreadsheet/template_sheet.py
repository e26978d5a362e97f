"""Templates: an empty table of every column that is taken, to be filled in.

A csv has the headings and an example row. A workbook also explains each column at its heading,
offers the allowed values as a list to choose from, and has all columns formatted as text, so that
`00123` and `+44...` stay what was typed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
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
from connector.spreadsheet.columns import read_headings
from connector.spreadsheet.report import new_table, write_rows
from connector.spreadsheet.table import WORKBOOK_SUFFIX
from connector.spreadsheet.target_columns import PushTarget, TargetColumn

_LISTS_SHEET = "Allowed values"
_AUTHOR = "connector"
_INLINE_CHARACTERS_MAX = 255
_LAST_ROW = 1_048_576
_WIDTH = 24
_MESSAGE_CHARACTERS_MAX = 225
_REQUIRED = PatternFill("solid", fgColor="F8CBAD")
_OPTIONAL = PatternFill("solid", fgColor="EDEDED")


@dataclass(frozen=True, slots=True)
class TemplateColumn:
    """A column of a template.

    `rule` says in sentences what the field is and what is expected of a cell. `allowed` are the
    only values, none where any will do. `example` is a cell of the example row, empty where that
    row has none.
    """

    heading: str
    rule: str
    allowed: tuple[str, ...]
    example: str
    is_required: bool


def write_template(path: Path, columns: Sequence[TemplateColumn]) -> None:
    """Write the template, csv or xlsx by its name, whole or not at all.

    Raises `HeadingsRefused` where the headings do not tell the columns apart, and as `new_table`
    does.
    """
    headings = [column.heading for column in columns]
    read_headings(path, headings)
    with new_table(path, "a template") as file:
        if path.suffix.lower() == WORKBOOK_SUFFIX:
            _write_workbook(file, columns)
        else:
            delimiter = "\t" if path.suffix.lower() == ".tsv" else ","
            write_rows(file, delimiter, [headings, [column.example for column in columns]])


def _write_workbook(file: IO[bytes], columns: Sequence[TemplateColumn]) -> None:
    book = Workbook()
    book.properties.creator = _AUTHOR
    sheet = book.active
    assert isinstance(sheet, Worksheet)
    sheet.title = "Rows"
    sheet.freeze_panes = "A2"
    lists = book.create_sheet(_LISTS_SHEET)
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
    if lists["A1"].value is None:
        book.remove(lists)
    book.save(file)


def _write_heading(sheet: Worksheet, index: int, column: TemplateColumn) -> None:
    cell = _write_text_cell(sheet, 1, index, column.heading)
    cell.font = Font(bold=True)
    cell.fill = _REQUIRED if column.is_required else _OPTIONAL
    parts = ["Required." if column.is_required else "Optional.", column.rule]
    if column.allowed:
        parts.append(f"Allowed: {', '.join(column.allowed)}.")
    cell.comment = Comment("\n".join(filter(None, parts)), _AUTHOR, 160, 320)


def _write_text_cell(sheet: Worksheet, row: int, column: int, text: str) -> Cell:
    cell = sheet.cell(row, column)
    assert isinstance(cell, Cell)
    cell.value = text
    # An example such as =x or #N/A would be taken for something else than text.
    cell.data_type = "s"
    cell.number_format = "@"
    return cell


def _offer(sheet: Worksheet, lists: Worksheet, letters: str, column: TemplateColumn) -> None:
    """Offer a list to choose from, in every row of the column."""
    inline = ",".join(column.allowed)
    formula = f'"{inline}"'
    if len(inline) > _INLINE_CHARACTERS_MAX or any(set(v) & set(',"\n') for v in column.allowed):
        place = lists.max_column + (lists["A1"].value is not None)
        for row, value in enumerate(column.allowed, 1):
            _write_text_cell(lists, row, place, value)
        home = get_column_letter(place)
        formula = f"{quote_sheetname(_LISTS_SHEET)}!${home}$1:${home}${len(column.allowed)}"
    choice = DataValidation(
        type="list",
        formula1=formula,
        allow_blank=True,
        showErrorMessage=True,
        errorTitle="Not one of the list",
        error=f"{column.heading}: choose one of the list."[:_MESSAGE_CHARACTERS_MAX],
    )
    choice.add(f"{letters}2:{letters}{_LAST_ROW}")
    sheet.add_data_validation(choice)


# -- Columns of a push target ----------------------------------------------------------------------
# One column for each field: where a field can be named in several ways, the one that people know
# best, with the others named. A file made of these headings maps by name alone.


def template_columns(target: PushTarget) -> tuple[TemplateColumn, ...]:
    """Every column that the target's mode takes, in the declaration's order."""
    by_key: dict[str, list[TargetColumn]] = {}
    for column in target.columns:
        by_key.setdefault(column.key, []).append(column)
    return tuple(_template_column(target, group) for group in by_key.values())


def _template_column(target: PushTarget, group: list[TargetColumn]) -> TemplateColumn:
    # The second way to name a record is the one that people know best; the first is its id.
    column = group[1] if len(group) > 1 else group[0]
    others = [each.name for each in group if each is not column]
    rule = [column.field.about, *_sentences(target, column)]
    if others:
        rule.append(f"Or, instead, the column {' or '.join(others)}.")
    return TemplateColumn(
        heading=column.name,
        rule=" ".join(rule),
        allowed=column.accepts(target.mode),
        example=_example(column, target),
        is_required=_is_required(target, column),
    )


def _is_required(target: PushTarget, column: TargetColumn) -> bool:
    match target.mode:
        case "create" | "upsert":
            return column.create.required or column.key in target.match
        case "update":
            return column.key in (target.match or ("id",))
        case "convert":
            return column.key == "id"


def _sentences(target: PushTarget, column: TargetColumn) -> Iterator[str]:
    if target.mode == "convert":
        yield "Give one of id and email."
    elif _is_required(target, column):
        yield "Required."
    if column.reference is not None and column.reference.by is not None:
        yield f"The {column.reference.by.replace('_', ' ')} of one that exists."
    elif column.field.format is not None:
        yield _FORMATS[column.field.format]
    elif column.field.values:
        yield "Several of the values, with semicolons between." if column.many else "A value."
    else:
        yield _KINDS[column.field.kind]
    for rule in target.resource.rules:
        match rule:
            case RequiredWhen(fields, on, values) if column.key in fields and _creates(target):
                yield f"Required when {on} is {' or '.join(values)}."
            case AtLeastOneOf(fields) if column.key in fields and _creates(target):
                yield f"At least one of {', '.join(fields)} is required."
            case AcceptedWhen(field, on, values) if field == column.key:
                yield f"Only when {on} is {', '.join(values)}."


def _creates(target: PushTarget) -> bool:
    return target.mode in ("create", "upsert")


_KINDS: Mapping[Kind, str] = {
    Kind.STRING: "Text.",
    Kind.UUID: "An id.",
    Kind.NUMBER: "A number, with a dot before a fraction.",
    Kind.INTEGER: "A whole number.",
    Kind.BOOL: "yes or no.",
    Kind.DATE: "A date as 2025-04-03.",
    Kind.DATETIME: "A date and time as 2025-04-03T09:30:00Z.",
}
_FORMATS: Mapping[str, str] = {
    "email": "One email address.",
    "url": "A web address with https:// or http://.",
    "currency": "A currency code of three letters.",
    "timezone": "The name of a time zone, as Europe/London.",
    "json": "JSON.",
}

_ID = "00000000-0000-4000-8000-000000000000"
_EXAMPLES: Mapping[str, str] = {
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
"""Cells of the example row by a field's name, or the last word of it."""

_EXAMPLES_OF: Mapping[str, str] = {
    Kind.NUMBER: "45000",
    Kind.INTEGER: "3",
    Kind.BOOL: "yes",
    Kind.DATE: "2025-04-03",
    Kind.DATETIME: "2025-04-03T09:30:00Z",
    "email": "anna.berg@example.com",
    "url": "https://www.example.com/anna",
    "currency": "GBP",
    "timezone": "Europe/London",
    "json": "{}",
}
"""Cells of the example row by a field's kind or form."""


def _example(column: TargetColumn, target: PushTarget) -> str:
    field = column.field
    if column.reference is not None and column.reference.by is not None:
        return _EXAMPLES_OF.get(column.reference.by) or _EXAMPLES[column.reference.by]
    if field.kind is Kind.UUID:
        # Ids differ from one workspace to the next: one is shown where no row can do without.
        return _ID if _is_required(target, column) else ""
    allowed = column.accepts(target.mode)
    if allowed:
        return allowed[0]
    if any(isinstance(r, AcceptedWhen) and r.field == column.key for r in target.resource.rules):
        return ""
    known = _EXAMPLES.get(field.name) or _EXAMPLES_OF.get(field.kind)
    known = known or _EXAMPLES_OF.get(field.format or "")
    return known or _EXAMPLES.get(field.name.rsplit("_", 1)[-1], "Text")
