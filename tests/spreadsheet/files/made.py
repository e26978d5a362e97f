"""Valid and invalid files in the formats of other programs: CSV files and zips of XML."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from pathlib import Path
from xml.sax.saxutils import escape

from connector.spreadsheet.problems import Cell
from connector.spreadsheet.table import Spreadsheet

MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
RELATED = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006/relationships"


def write_file(folder: Path, content: bytes, name: str = "rows.csv") -> Path:
    """Write a file to the folder, and return its path."""
    path = folder / name
    path.write_bytes(content)
    return path


def list_cells(table: Spreadsheet) -> list[tuple[Cell, ...]]:
    """Return the cells of each row."""
    return [row.cells for row in table.rows()]


def make_text_row(number: int, *texts: str) -> str:
    """Return the XML of a row with this number and these texts."""
    cells = "".join(f'<c t="inlineStr"><is><t>{escape(each)}</t></is></c>' for each in texts)
    return f'<row r="{number}">{cells}</row>'


def make_zip(members: Mapping[str, str | bytes]) -> bytes:
    """Return a zip file with these members."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return made.getvalue()


def write_workbook_file(folder: Path, *rows: str) -> Path:
    """Write an XLSX file of one sheet with these rows of XML, and return its path."""
    related = (
        f'<Relationships xmlns="{_PACKAGE}"><Relationship Id="r1" Type="{RELATED}/{{}}"'
        ' Target="{}"/></Relationships>'
    )
    parts = {
        "[Content_Types].xml": (
            '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
            '<Override PartName="/xl/workbook.xml" ContentType="application/vnd.openxmlformats-'
            'officedocument.spreadsheetml.sheet.main+xml"/></Types>'
        ),
        "_rels/.rels": related.format("officeDocument", "xl/workbook.xml"),
        "xl/workbook.xml": (
            f'<workbook xmlns="{MAIN}" xmlns:r="{RELATED}"><sheets>'
            '<sheet name="People" sheetId="1" r:id="r1"/></sheets></workbook>'
        ),
        "xl/_rels/workbook.xml.rels": related.format("worksheet", "worksheets/s1.xml"),
        "xl/worksheets/s1.xml": (
            f'<worksheet xmlns="{MAIN}"><sheetData>{"".join(rows)}</sheetData></worksheet>'
        ),
    }
    return write_file(folder, make_zip(parts), "rows.xlsx")
