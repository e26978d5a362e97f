"""Files without a table or with unclear columns are refused, with the place."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from connector.errors import DamagedSpreadsheet, SpreadsheetError
from connector.spreadsheet import delimited as encoding
from connector.spreadsheet.table import open_table
from tests.spreadsheet.files.made import open_text, write_file
from tests.support.errors import has_code


@pytest.mark.parametrize(
    ("headings", "third_heading"),
    [
        ("email,name,email", "email (column C)"),
        ("Email,name,eMAIL", "eMAIL (column C)"),
        ("first name,x,First\u00a0 Name ", "First\u00a0 Name  (column C)"),
        ("caf\u00e9,x,cafe\u0301", "cafe\u0301 (column C)"),
        ("name,x,na\u200bme", "na\u200bme (column C)"),
        ("ＩＤ,x,id", "id (column C)"),  # noqa: RUF001 # full width
        ("b,a,", "(column C)"),
        ("b,a, \u200b ", "(column C)"),
    ],
    ids=["same", "case", "blanks", "composed", "invisible", "width", "empty", "blank"],
)
def test_equal_or_empty_headings_become_unique_names(
    tmp_path: Path, headings: str, third_heading: str
) -> None:
    table = open_table(write_file(tmp_path, f"{headings}\n1,2,3\n".encode()))

    assert third_heading == table.headings[2]
    assert 3 == len(set(table.headings))


def test_headings_keep_their_spaces_and_invisible_characters(tmp_path: Path) -> None:
    table, _ = open_text(tmp_path, " name ,\u200bcity\n1,2\n".encode())

    assert (" name ", "\u200bcity") == table.headings


@pytest.mark.parametrize(
    ("content", "code", "message_part"),
    [
        (b"", "not_a_spreadsheet", "is empty"),
        (b"\xef\xbb\xbf", "headings_refused", "row 1 is blank"),
        (b"\n\na,b\n1,2\n", "headings_refused", "row 1 is blank"),
        (b"a,b\n", "no_rows", "but no rows"),
        (b"a,b\n,\n\n , \n", "no_rows", "but no rows"),
        (b"%PDF-1.7\n", "not_a_spreadsheet", "is a PDF, but has the file name of another type"),
    ],
    ids=["empty", "mark", "late", "headings", "blank", "pdf"],
)
def test_files_without_a_table_are_rejected_with_an_action(
    tmp_path: Path, content: bytes, code: str, message_part: str
) -> None:
    with pytest.raises(SpreadsheetError, check=has_code(code)) as refused:
        open_table(write_file(tmp_path, content))

    assert message_part in str(refused.value)
    assert "rows.csv" in str(refused.value)
    assert refused.value.action.endswith(".")


def test_a_line_that_is_too_long_is_rejected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(encoding, "LINE_CHARACTERS_MAX", 1_000_000)
    with pytest.raises(DamagedSpreadsheet, match="line 2 is longer than 1,000,000 characters"):
        open_table(write_file(tmp_path, b"a,b\n" + b"x" * 3_000_000))


@pytest.mark.parametrize("name", ["rows.numbers", "rows.docx", "rows"])
def test_other_file_types_are_rejected_with_an_action(tmp_path: Path, name: str) -> None:
    with pytest.raises(
        SpreadsheetError,
        match="a table is a csv, tsv, txt, xlsx, xls or ods",
        check=has_code("not_a_spreadsheet"),
    ) as refused:
        open_table(write_file(tmp_path, b"a,b\n1,2\n", name))

    assert "Save the table as xlsx or as csv in UTF-8" in refused.value.action


def test_missing_files_folders_pipes_and_devices_are_rejected(tmp_path: Path) -> None:
    (tmp_path / "folder.csv").mkdir()
    os.mkfifo(tmp_path / "pipe.csv")
    (tmp_path / "device.csv").symlink_to("/dev/null")
    messages = {}
    for name in ("none", "folder", "pipe", "device"):
        with pytest.raises(SpreadsheetError, check=has_code("not_a_spreadsheet")) as refused:
            open_table(tmp_path / f"{name}.csv")
        messages[name] = str(refused.value).removeprefix(str(tmp_path))

    assert {
        "none": "/none.csv does not exist",
        "folder": "/folder.csv is a folder, not a file with a table",
        "pipe": "/pipe.csv is a pipe, not a file with a table",
        "device": "/device.csv is a device, not a file with a table",
    } == messages


def test_a_file_without_read_permission_is_rejected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_file(tmp_path, b"a\n1\n")

    def deny_open(path: Path, mode: str) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    monkeypatch.setattr(Path, "open", deny_open)
    with pytest.raises(SpreadsheetError, match=r"rows\.csv cannot be read: Permission denied"):
        open_table(path)
