"""Tables of the published file as Excel sheets: types are kept, and losses are reported."""

from __future__ import annotations

import gc
import resource
import tempfile
from datetime import datetime
from pathlib import Path

import duckdb
import openpyxl
import pytest
from openpyxl.utils.escape import unescape
from openpyxl.worksheet.worksheet import Worksheet

from connector.errors import Misused, UnknownName, WarehouseError
from connector.models import exports
from connector.models.exports import write_workbook
from tests.support.command import call

LONG, EMOJI = "x" * 40_000, "\N{GRINNING FACE}" * 20_000
TABLES = f"""
CREATE SCHEMA marts; CREATE SCHEMA staging;
CREATE TABLE marts.kinds AS SELECT
    1 AS n, 12.50::DECIMAL(18, 2) AS fee, 0.1::DOUBLE AS share, true AS is_open,
    DATE '2026-03-04' AS day, TIMESTAMPTZ '2026-03-04 05:06:07+01:00' AS at,
    12345678901234567890::HUGEINT AS big, DATE '1820-01-02' AS old_day, 'nan'::DOUBLE AS odd,
    NULL AS nothing, '=1+1' AS formula, '00123' AS zip, e'a\\x01b\\r\\n c ' AS control,
    ['a', 'b'] AS list, '{{"a": 1}}'::JSON AS json, '_x0041_' AS like_escape;
CREATE TABLE marts.long_texts AS SELECT '{LONG}' AS note UNION ALL SELECT '{EMOJI}'
    UNION ALL SELECT repeat(chr(1), 30000);
CREATE VIEW staging.kinds AS FROM marts.kinds;
CREATE TABLE marts."history" AS SELECT 1 AS "a*b";
CREATE TABLE marts.own_table_with_a_name_that_is_far_too_long AS SELECT 1 AS n WHERE false;
"""


@pytest.fixture(scope="module")
def published_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Published file with a table that has a value of each type."""
    file = tmp_path_factory.mktemp("excel") / "recruitment.duckdb"
    with duckdb.connect(str(file)) as connection:
        connection.execute(f"SET TimeZone = 'UTC'; {TABLES}")
    return file


def read_sheet(path: Path, name: str) -> Worksheet:
    """Read a worksheet with openpyxl."""
    found = openpyxl.load_workbook(path)[name]
    assert isinstance(found, Worksheet)
    return found


def test_cells_keep_the_types_of_their_values(published_file: Path, tmp_path: Path) -> None:
    path = tmp_path / "kinds.xlsx"
    assert {"kinds": 1} == write_workbook(published_file, path, ["marts.kinds"])

    read = read_sheet(path, "kinds")
    cells = {str(head.value): cell for head, cell in zip(read[1], read[2], strict=True)}
    values = {name: cell.value for name, cell in cells.items()}
    assert values == {
        "n": 1,
        "fee": 12.5,
        "share": 0.1,
        "is_open": True,
        "day": datetime(2026, 3, 4),
        "at": datetime(2026, 3, 4, 4, 6, 7),
        "big": "12345678901234567890",
        "old_day": "1820-01-02",
        "odd": "nan",
        "nothing": None,
        "formula": "=1+1",
        "zip": "00123",
        "control": "a_x0001_b_x000D_\n c ",
        "list": "[a, b]",
        "json": '{"a": 1}',
        "like_escape": "_x005F_x0041_",
    }
    assert {"s", "inlineStr"} >= {cells[name].data_type for name in ("formula", "big", "zip")}
    assert cells["formula"].quotePrefix
    assert ("yyyy-mm-dd", "yyyy-mm-dd h:mm:ss") == tuple(
        cells[name].number_format for name in ("day", "at")
    )
    assert ("A2", "A1:P2") == (read.freeze_panes, read.auto_filter.ref)
    assert read["A1"].font.bold
    assert 0o600 == path.stat().st_mode & 0o777
    # Excel turns characters that are written by number back.
    headings, row = ([cell.value for cell in cells] for cells in read_sheet(path, "kinds"))
    texts = dict(zip(headings, (unescape(str(value)) for value in row), strict=True))
    assert ("a\x01b\r\n c ", "_x0041_") == (texts["control"], texts["like_escape"])


def test_texts_over_the_limit_of_excel_are_shortened_and_say_so(
    published_file: Path, tmp_path: Path
) -> None:
    write_workbook(published_file, tmp_path / "long.xlsx", ["marts.long_texts"])

    _, *cells = (str(row[0].value) for row in read_sheet(tmp_path / "long.xlsx", "long_texts"))
    counts = ("40,000", "20,000", "30,000")
    for text, count in zip(cells, counts, strict=True):
        assert text.endswith(f" [shortened: {count} characters]")
        assert 4_000 <= len(text.encode("utf-16-le")) // 2 <= 32_767


def test_sheet_names_are_unique_and_valid_in_excel(published_file: Path, tmp_path: Path) -> None:
    path = tmp_path / "names.xlsx"
    path.write_text("an earlier file")
    tables = [
        "marts.kinds",
        "staging.kinds",
        "marts.history",
        "marts.own_table_with_a_name_that_is_far_too_long",
        "marts.kinds",
    ]
    names = [*write_workbook(published_file, path, tables)]

    assert (
        ["kinds", "kinds (2)", "history (3)", "own_table_with_a_name_that_is_f"]
        == names
        == openpyxl.load_workbook(path).sheetnames
    )
    assert ["a*b"] == [cell.value for cell in read_sheet(path, "history (3)")[1]]


def test_a_table_with_too_many_rows_is_rejected_and_no_file_is_written(
    published_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exports, "ROWS_MAX", 2)

    with pytest.raises(Misused, match=r"marts.long_texts has 3 rows, and a sheet has at most 2"):
        write_workbook(published_file, tmp_path / "x.xlsx", ["marts.kinds", "marts.long_texts"])
    with pytest.raises(UnknownName, match=r"Did you mean 'marts.kinds'\?"):
        write_workbook(published_file, tmp_path / "x.xlsx", ["marts.kind"])
    assert [] == [*tmp_path.iterdir()]


@pytest.mark.parametrize(
    "options",
    [
        ("--xlsx", "a.xlsx"),
        ("--table", "marts.fct_jobs"),
        ("--xlsx", "a.xls", "--table", "marts.fct_jobs"),
        ("--xlsx", "no/folder/a.xlsx", "--table", "marts.fct_jobs"),
    ],
)
def test_invalid_xlsx_options_are_rejected_before_publishing(
    options: tuple[str, ...], tmp_path: Path
) -> None:
    called = call(["publish", *options], {"CONNECTOR_DATA_DIR": str(tmp_path)})

    assert 2 == called.status
    assert "--xlsx" in called.err


def test_a_full_disk_leaves_no_workbook_and_no_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "recruitment.duckdb"
    with duckdb.connect(str(file)) as connection:
        connection.execute("CREATE SCHEMA marts")
        connection.execute("CREATE TABLE marts.t AS SELECT range, 'a text' FROM range(20000)")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, before[1]))
    try:
        with pytest.raises(WarehouseError, match=r"the disk is full: .*/out\.xlsx"):
            write_workbook(file, tmp_path / "out.xlsx", ["marts.t"])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    gc.collect()  # A sheet that is still open complains when Python removes it.
    assert [file] == [*tmp_path.iterdir()]
