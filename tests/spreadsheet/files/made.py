"""Valid and invalid files in the formats of other programs: CSV files and zips of XML."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping, Sequence
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


def make_relationship(identity: str, kind: str, target: str, *, is_outside: bool = False) -> str:
    """Return the XML of a relationship between parts of a workbook, or to a target outside."""
    mode = ' TargetMode="External"' if is_outside else ""
    return f'<Relationship Id="{identity}" Type="{RELATED}/{kind}" Target="{target}"{mode}/>'


def make_relationships_part(*relationships: str) -> str:
    """Return the part of a workbook with these relationships."""
    return f'<Relationships xmlns="{_PACKAGE}">{"".join(relationships)}</Relationships>'


def make_sheet_part(*rows: str, used_range: str = "") -> str:
    """Return the part with a sheet of these rows of XML. `used_range` is what it declares."""
    dimension = f'<dimension ref="{used_range}"/>' if used_range else ""
    return (
        f'<worksheet xmlns="{MAIN}">{dimension}<sheetData>{"".join(rows)}</sheetData></worksheet>'
    )


def make_text_row(number: int, *texts: str) -> str:
    """Return the XML of a row with this number and these texts."""
    cells = "".join(f'<c t="inlineStr"><is><t>{escape(each)}</t></is></c>' for each in texts)
    return f'<row r="{number}">{cells}</row>'


def make_workbook_parts(
    sheets: Mapping[str, str], states: Mapping[str, str] | None = None, more: Sequence[str] = ()
) -> dict[str, str]:
    """Return the parts of a workbook: XML by name. `states` are visible or hidden, by sheet."""
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
        "[Content_Types].xml": (
            '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
            '<Override PartName="/xl/workbook.xml" ContentType="application/vnd.openxmlformats-'
            'officedocument.spreadsheetml.sheet.main+xml"/></Types>'
        ),
        "_rels/.rels": make_relationships_part(
            make_relationship("r1", "officeDocument", "xl/workbook.xml")
        ),
        "xl/workbook.xml": f"<workbook {names}><sheets>{sheet_list}</sheets></workbook>",
        "xl/_rels/workbook.xml.rels": make_relationships_part(*related, *more),
        **{f"xl/worksheets/s{i}.xml": xml for i, xml in enumerate(sheets.values(), 1)},
    }


def make_zip(members: Mapping[str, str | bytes]) -> bytes:
    """Return a zip file with these members."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return made.getvalue()


def write_workbook_file(
    folder: Path, *rows: str, used_range: str = "", name: str = "rows.xlsx"
) -> Path:
    """Write an XLSX file of one sheet with these rows of XML, and return its path."""
    path = folder / name
    path.write_bytes(
        make_zip(make_workbook_parts({"People": make_sheet_part(*rows, used_range=used_range)}))
    )
    return path
