"""Workbooks that are written row by row, for reports and for exports of tables."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import BytesIO
from typing import IO, Any

from openpyxl import Workbook
from openpyxl.utils.exceptions import WorkbookAlreadySaved

TEXT_CHARACTERS_MAX = 32_767
"""Maximum length of a text in a cell, in units of UTF-16: a character has one or two."""

AUTHOR = "connector"

BY_NUMBER = re.compile("[\0-\x08\x0b-\x1f\ufffe\uffff]|_(?=x[0-9A-Fa-f]{4}_)")
"""Characters that XML cannot contain or changes when it is read. They are written by number, as
workbooks do, and so is text that looks like such a number.
"""


def write_by_number(text: str) -> str:
    """Return the text with characters that XML cannot contain as numbers, such as _x0001_."""
    # Readers of XML would drop a text of blanks.
    pattern = re.compile("(?s).") if text and not text.strip() else BY_NUMBER
    return pattern.sub(lambda found: f"_x{ord(found[0]):04X}_", text)


def is_too_long(written: str) -> bool:
    """Return True if a cell cannot contain the text, as `write_by_number` returns it."""
    return len(written.encode("utf-16-le")) // 2 > TEXT_CHARACTERS_MAX


@contextmanager
def create_workbook(file: IO[bytes]) -> Iterator[Any]:
    """Create a workbook whose sheets take rows one by one, and write it to the file at the end.

    After an error nothing is written. The sheets are then closed, because Python prints an error
    for each open one, and their temporary files, which have the rows, are deleted.
    """
    book = Workbook(write_only=True)
    book.properties.creator = AUTHOR
    made = BytesIO()
    try:
        yield book
        # In memory first: Python prints an error for an archive that could not be completed.
        book.save(made)
    except BaseException:
        sheet: Any
        for sheet in book.worksheets:
            with suppress(OSError, ValueError, WorkbookAlreadySaved):
                sheet.close()
            with suppress(OSError, ValueError, AttributeError):
                sheet._writer.cleanup()
        raise
    file.write(made.getbuffer())
