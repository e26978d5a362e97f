"""Workbooks: types of cells, the choice of the sheet, and cells without a value."""

from __future__ import annotations

import datetime as d
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from openpyxl import Workbook, load_workbook
from openpyxl.worksheet.worksheet import Worksheet

from connector.errors import (
    ConnectorError,
    DamagedSpreadsheet,
    Misused,
    SheetUnknown,
    SpreadsheetError,
)
from connector.spreadsheet import workbook
from connector.spreadsheet.source_file import open_source
from connector.spreadsheet.table import open_table
from tests.spreadsheet.files.made import (
    list_cells,
    make_sheet_part,
    make_text_row,
    make_workbook_parts,
    make_zip,
    write_workbook_file,
)
from tests.support.errors import has_code


def save_workbook(folder: Path, *rows: list[object]) -> Path:
    """Save a workbook with the headings a, b, c and these rows with openpyxl."""
    book = Workbook()
    sheet = book.active
    assert isinstance(sheet, Worksheet)
    sheet.append([chr(ord("a") + i) for i in range(max(map(len, rows)))])
    for row in rows:
        sheet.append(row)
    path = folder / "rows.xlsx"
    book.save(path)
    return path


def test_cells_keep_their_types(tmp_path: Path) -> None:
    typed = ["00123", "NA", "TRUE", 5, 5.0, 0.1, True, d.date(2025, 3, 4), d.time(9, 30)]
    table = open_table(save_workbook(tmp_path, [*typed, d.datetime(2025, 3, 4, 10, 11, 12)]))
    ((*cells, moment),) = list_cells(table)

    assert typed == cells
    assert [type(each) for each in [*typed[:4], 5, *typed[5:]]] == [type(each) for each in cells]
    assert d.datetime(2025, 3, 4, 10, 11, 12) == moment
    assert ("xlsx", "Sheet", None, None) == (
        table.kind, table.sheet, table.encoding, table.delimiter
    )  # fmt: skip


def test_durations_and_very_large_numbers_are_read_as_text(tmp_path: Path) -> None:
    path = save_workbook(tmp_path, [d.timedelta(hours=30, minutes=5), 2_000_000_000_000_000])

    assert ["30:05:00", "2000000000000000.0"] == [
        str(each) for each in list_cells(open_table(path))[0]
    ]


def test_rows_have_the_numbers_shown_by_spreadsheet_programs(tmp_path: Path) -> None:
    path = write_workbook_file(
        tmp_path,
        make_text_row(1, "a", "b"),
        '<row r="4"><c r="B4"><v>1</v></c></row>',
        '<row r="7"><c r="A7"><v>2</v></c></row>',
    )
    table = open_table(path)

    assert [("", ""), ("", ""), ("", 1), ("", ""), ("", ""), (2, "")] == list_cells(table)
    assert [4, 7] == [row.number for row in table.rows() if not row.is_left_out]


def test_columns_without_a_heading_are_named_by_their_letter(tmp_path: Path) -> None:
    low = write_workbook_file(tmp_path, make_text_row(3, "a"), make_text_row(4, "1"))
    with pytest.raises(
        SpreadsheetError, match="row 1 is blank", check=has_code("headings_refused")
    ):
        open_table(low)
    right = write_workbook_file(
        tmp_path,
        '<row r="1"><c r="B1"><v>1</v></c></row>',
        '<row r="2"><c r="A2"><v>1</v></c></row>',
    )
    assert ("(column A)", "1") == open_table(right).headings
    filled = write_workbook_file(tmp_path, make_text_row(1, "a"), make_text_row(2, "1", "", "x"))
    assert ("a", "(column B)", "(column C)") == open_table(filled).headings
    assert [("1", "", "x")] == list_cells(open_table(filled))
    bare = write_workbook_file(
        tmp_path, make_text_row(1, "a", "", ""), make_text_row(2, "1", "", "")
    )
    assert [("1",)] == list_cells(open_table(bare))


def test_formulas_have_their_saved_value_or_a_problem(tmp_path: Path) -> None:
    path = write_workbook_file(
        tmp_path,
        make_text_row(1, "a", "b", "c"),
        '<row r="2"><c r="A2"><f>1+1</f><v>2</v></c><c r="B2" t="str"><f>B1</f><v></v></c></row>',
        '<row r="3"><c r="A3" t="e"><f>X()</f><v>#N/A</v></c><c t="e"><v>#REF!</v></c></row>',
        '<row r="4"><c r="A4"><f>A2&amp;B2</f><v></v></c><c r="C4"><f>SUM(A:A)</f></c></row>',
        '<row r="5"><c r="B5"><f>A5</f><v/></c></row>',
        make_text_row(6, "#N/A", "=A1"),
    )
    table = open_table(path)
    rows = {row.number: row for row in table.rows()}

    assert [(2, "", ""), ("#N/A", "#REF!", ""), ("=A2&B2", "", "=SUM(A:A)")] == [
        rows[number].cells for number in (2, 3, 4)
    ]
    assert [
        (3, "spreadsheet_error", "a", "#N/A"),
        (3, "spreadsheet_error", "b", "#REF!"),
        (4, "formula_without_value", "a", "=A2&B2"),
        (4, "formula_without_value", "c", "=SUM(A:A)"),
        (5, "formula_without_value", "b", "=A5"),
    ] == [
        (row.number, each.code, each.column, each.received)
        for row in rows.values()
        for each in row.problems
    ]
    assert not rows[5].is_left_out
    assert ("#N/A", "=A1", "") == rows[6].cells


def test_escaped_rich_and_spaced_texts_are_read_as_written(tmp_path: Path) -> None:
    cell = '<c t="inlineStr"><is>{}</is></c>'
    path = write_workbook_file(
        tmp_path,
        make_text_row(1, "a", "b", "c"),
        '<row r="2">'
        + cell.format("<t>x_x000D_y_x005F_x0041_</t>")
        + cell.format("<r><t>bold</t></r><r><t>plain</t></r><rPh><t>said</t></rPh>")
        + cell.format('<t xml:space="preserve"> both </t>')
        + "</row>",
    )

    assert [("x\ry_x0041_", "boldplain", " both ")] == list_cells(open_table(path))


@pytest.mark.parametrize(
    ("rows", "message_part"),
    [
        (('<row r="1"><c r="A1"><v>1</v></c><c r="A1"><v>2</v></c></row>',), "A1 occurs twice"),
        ((make_text_row(2, "a"), make_text_row(1, "b")), "row 1 occurs twice or out of order"),
        (('<row r="1"><c r="B2"><v>1</v></c></row>',), "B2 occurs twice or out of order"),
        (('<row r="1"><c r="?"><v>1</v></c></row>',), "'?' is not a cell reference"),
        (('<row r="1"><c r="A1"><v>1</v></row>',), "contains damaged XML"),
    ],
    ids=["cell twice", "row order", "other row", "no place", "not closed"],
)
def test_ambiguous_sheets_are_refused(
    tmp_path: Path, rows: tuple[str, ...], message_part: str
) -> None:
    with pytest.raises(DamagedSpreadsheet) as refused:
        open_table(write_workbook_file(tmp_path, *rows))

    assert message_part in str(refused.value)
    assert "rows.xlsx" in str(refused.value)


def save_four_sheets(folder: Path) -> Path:
    """Save a workbook of four sheets: two with rows, one without, and a hidden one."""
    table = make_sheet_part(make_text_row(1, "a"), make_text_row(2, "1"))
    other = make_sheet_part(make_text_row(1, "b"), make_text_row(2, "2"))
    sheets = {
        "People": table,
        "Empty": make_sheet_part('<row r="1"><c s="1"/></row>'),
        "Lists": other,
    }
    path = folder / "rows.xlsx"
    path.write_bytes(
        make_zip(make_workbook_parts({**sheets, "Jobs": other}, {"Lists": "veryHidden"}))
    )
    return path


def test_the_only_sheet_with_rows_is_read_unless_another_is_named(tmp_path: Path) -> None:
    path = save_four_sheets(tmp_path)
    with pytest.raises(SheetUnknown, match="has 2 sheets with rows") as refused:
        open_table(path)
    assert "Choose one with --sheet: 'People' (a); 'Jobs' (b)." == refused.value.action

    assert ("a",) == open_table(path, sheet="people ").headings
    assert ("Lists", ("b",)) == (
        open_table(path, sheet="Lists").sheet, open_table(path, sheet="Lists").headings
    )  # fmt: skip
    with pytest.raises(SheetUnknown, match="has no sheet 'Persons'") as unknown:
        open_table(path, sheet="Persons")
    assert "'People', 'Empty', 'Lists', 'Jobs'" in unknown.value.action


def test_text_options_are_rejected_for_a_workbook(tmp_path: Path) -> None:
    path = write_workbook_file(tmp_path, make_text_row(1, "a"), make_text_row(2, "1"))
    with pytest.raises(Misused, match="is a workbook, so --encoding"):
        open_table(path, encoding="utf-8")
    with pytest.raises(Misused, match="is a workbook, so --delimiter"):
        open_table(path, delimiter="comma")


@pytest.mark.parametrize(
    "rows",
    [(), (make_text_row(1, "a"),), (make_text_row(1, "a"), make_text_row(2, ""))],
    ids=["nothing", "headings", "blank"],
)
def test_workbooks_without_rows_are_rejected(tmp_path: Path, rows: tuple[str, ...]) -> None:
    with pytest.raises(SpreadsheetError, match=r"rows\.xlsx", check=has_code("no_rows")):
        open_table(write_workbook_file(tmp_path, *rows))


@pytest.mark.parametrize(
    ("content", "code", "message_part"),
    [
        (b"%PDF-1.7\n", "not_a_spreadsheet", "is a PDF, but has the file name of another type"),
        (make_zip({"content.xml": "<a/>"}), "no_rows", "has no visible sheet with rows"),
        (make_zip({"xl/workbook.bin": b"\0"}), "not_a_spreadsheet", "is an xlsb workbook"),
        (make_zip({"a.txt": b"a"}), "not_a_spreadsheet", "is a zip file, not a workbook"),
        (make_zip({"a.txt": b"a"})[:-5], "damaged_spreadsheet", "is incomplete"),
        (make_zip({"a.txt": b"a"}) + b"more", "damaged_spreadsheet", "extra data at its end"),
        (b"PK\x03\x04" + b"\0" * 10, "damaged_spreadsheet", "is incomplete"),
    ],
    ids=["text", "ods", "xlsb", "zip", "cut", "more", "short"],
)
def test_files_that_are_not_workbooks_are_rejected(
    tmp_path: Path, content: bytes, code: str, message_part: str
) -> None:
    path = tmp_path / "rows.xlsx"
    path.write_bytes(content)
    with pytest.raises(SpreadsheetError, check=has_code(code)) as refused:
        open_table(path)

    assert message_part in str(refused.value)


def test_a_workbook_with_a_damaged_part_is_rejected(tmp_path: Path) -> None:
    whole = bytearray(
        make_zip(
            make_workbook_parts(
                {"People": make_sheet_part(make_text_row(1, "a"), make_text_row(2, "1"))}
            )
        )
    )
    place = whole.index(b"xl/worksheets/s1.xml") + 60
    whole[place] ^= 0xFF
    path = tmp_path / "rows.xlsx"
    path.write_bytes(bytes(whole))
    with pytest.raises(DamagedSpreadsheet, match="is damaged"):
        open_table(path)


def test_merged_cells_are_reported_and_read_once(tmp_path: Path) -> None:
    path = save_workbook(tmp_path, ["x", "Leeds"], ["y", "lost"], ["z", "York"])
    assert () == open_table(path).merged_ranges
    book = load_workbook(path)
    book.worksheets[0].merge_cells("B2:B3")
    book.save(path)
    table = open_table(path)

    assert ("B2:B3",) == table.merged_ranges
    assert [("x", "Leeds"), ("y", ""), ("z", "York")] == list_cells(table)


def make_cell(row: int, column: str, ending: str) -> str:
    """Return the XML of a cell: its reference, then `ending`."""
    return f'<c r="{column}{row}"{ending}'


FORMS = ["/>", ' s="1" />', "><v>1</v></c>", ' s="2" t="s"><v>0</v></c>', ' t="b"><v>1</v></c>']
FORMS += [' t="inlineStr"><is><t>a &amp; b</t></is></c>', "><v>1 & 2</v></c>", "><v>\x01</v></c>"]
FORMS += [' t="e"><v>#N/A</v></c>', "><f>A1</f></c>", ' t="str"><f>A1</f><v>x</v></c>', "></c>"]
FORMS += ["><v>1</v><!-- x --></c>", "><v>1</v></c><!-- </row> -->", "><v>1</c>"]
PLACED = st.tuples(st.sampled_from(["A", "B", "C", "AA", "ZZZ"]), st.sampled_from(FORMS))


@settings(max_examples=150, suppress_health_check=[*HealthCheck])
@given(rows=st.lists(st.lists(PLACED, max_size=4), min_size=1, max_size=4), is_sparse=st.booleans())
def test_skipping_and_reading_rows_find_the_same_errors(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    rows: list[list[tuple[str, str]]],
    is_sparse: bool,
) -> None:
    numbers = [number * (1_000_000 if is_sparse else 1) for number in range(1, len(rows) + 1)]
    path = write_workbook_file(
        tmp_path,
        *(
            f'<row r="{number}">{"".join(make_cell(number, *cell) for cell in row)}</row>'
            for number, row in zip(numbers, rows, strict=True)
        ),
    )

    def read_or_refuse() -> object:
        try:
            return workbook.find_sheet(open_source(path), None).outline
        except ConnectorError as error:
            # Where XML is damaged is counted in what is left of it.
            return str(error).partition("damaged")[0]

    shortened = read_or_refuse()
    with monkeypatch.context() as patched:
        patched.setattr(workbook, "_shorten_plain_rows", lambda pieces, kept_cells: pieces)
        assert read_or_refuse() == shortened
