"""Files as other programs make them, and as nobody should: csv, zips of XML."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from connector.spreadsheet.problems import Cell
from connector.spreadsheet.table import Spreadsheet, open_table

MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
RELATED = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006/relationships"


def write_file(folder: Path, content: bytes, name: str = "rows.csv") -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


def list_cells(table: Spreadsheet) -> list[tuple[Cell, ...]]:
    return [row.cells for row in table.rows()]


def open_text(
    folder: Path, content: bytes, **options: Any
) -> tuple[Spreadsheet, list[tuple[Cell, ...]]]:
    """Return the table of these bytes and its cells."""
    table = open_table(write_file(folder, content), **options)
    return table, list_cells(table)


def make_relationship(identity: str, kind: str, target: str, *, is_outside: bool = False) -> str:
    """Return one relationship as XML."""
    mode = ' TargetMode="External"' if is_outside else ""
    return f'<Relationship Id="{identity}" Type="{RELATED}/{kind}" Target="{target}"{mode}/>'


def make_relationships_part(*each: str) -> str:
    """Return a part with relationships."""
    return f'<Relationships xmlns="{_PACKAGE}">{"".join(each)}</Relationships>'


def make_sheet_part(*rows: str, claim: str = "") -> str:
    dimension = f'<dimension ref="{claim}"/>' if claim else ""
    return (
        f'<worksheet xmlns="{MAIN}">{dimension}<sheetData>{"".join(rows)}</sheetData></worksheet>'
    )


def make_text_row(number: int, *texts: str) -> str:
    cells = "".join(f'<c t="inlineStr"><is><t>{escape(each)}</t></is></c>' for each in texts)
    return f'<row r="{number}">{cells}</row>'


def make_workbook_parts(
    sheets: Mapping[str, str], states: Mapping[str, str] | None = None, more: Sequence[str] = ()
) -> dict[str, str]:
    """Return the parts of a workbook with these sheets and additional relationships."""
    sheet_list = "".join(
        f'<sheet name="{name}" sheetId="{i}" r:id="r{i}"'
        f' state="{(states or {}).get(name, "visible")}"/>'
        for i, name in enumerate(sheets, 1)
    )
    targets = [f"worksheets/s{i}.xml" for i in range(1, len(sheets) + 1)]
    related = [
        make_relationship(f"r{i}", "worksheet", target) for i, target in enumerate(targets, 1)
    ]
    names = f'xmlns="{MAIN}" xmlns:r="{RELATED}"'
    return {
        "[Content_Types].xml": "<Types/>",
        "_rels/.rels": make_relationships_part(
            make_relationship("r1", "officeDocument", "xl/workbook.xml")
        ),
        "xl/workbook.xml": f"<workbook {names}><sheets>{sheet_list}</sheets></workbook>",
        "xl/_rels/workbook.xml.rels": make_relationships_part(*related, *more),
        **{f"xl/worksheets/s{i}.xml": xml for i, xml in enumerate(sheets.values(), 1)},
    }


def make_zip(members: Mapping[str, str | bytes]) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return made.getvalue()


def write_workbook_file(folder: Path, *rows: str, claim: str = "", name: str = "rows.xlsx") -> Path:
    """Write a workbook of one sheet with these rows of XML."""
    path = folder / name
    path.write_bytes(make_zip(make_workbook_parts({"People": make_sheet_part(*rows, claim=claim)})))
    return path
