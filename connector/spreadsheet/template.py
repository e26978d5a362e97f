"""Templates: an empty table with every column that is taken, for somebody to fill in.

A csv has the headings and an example row. A workbook also tells each column's rule at its
heading, offers the allowed values as a list to choose from, and has all columns formatted as text,
so that `00123` and `+44...` stay what was typed.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
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

from connector.errors.spreadsheet import NotASpreadsheet
from connector.spreadsheet.columns import read_headings
from connector.spreadsheet.table import TEXT_SUFFIXES, WORKBOOK_SUFFIX
from connector.spreadsheet.writing import replacing

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
