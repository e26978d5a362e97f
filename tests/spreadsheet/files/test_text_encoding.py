"""Texts of any encoding, line ending and delimiter are read correctly or refused.

Errors name the file and the place. No row is lost.
"""

from __future__ import annotations

import csv
import io
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from connector.errors import (
    EncodingUnknown,
    Misused,
    SpreadsheetChanged,
    SpreadsheetError,
    UnknownName,
)
from connector.spreadsheet.delimited import DELIMITERS
from connector.spreadsheet.table import CELL_CHARACTERS_MAX, open_table
from tests.spreadsheet.files.made import list_cells, open_text, write_file
from tests.support.errors import has_code

TEXT = "name,city\nJörg,Köln\nZoë,Łódź\n"
CELLS = [("Jörg", "Köln"), ("Zoë", "Łódź")]


@pytest.mark.parametrize(
    ("content", "encoding"),
    [
        (TEXT.encode(), "utf-8"),
        (TEXT.encode("utf-8-sig"), "utf-8"),
        (b"\xff\xfe" + TEXT.encode("utf-16-le"), "utf-16"),
        (b"\xfe\xff" + TEXT.encode("utf-16-be"), "utf-16"),
        (TEXT.encode("utf-16-le"), "utf-16-le"),
        (TEXT.encode("utf-16-be"), "utf-16-be"),
        (TEXT.encode("utf-32"), "utf-32"),
    ],
    ids=["utf-8", "bom", "utf-16-le bom", "utf-16-be bom", "utf-16-le", "utf-16-be", "utf-32"],
)
def test_certain_encodings_are_detected(tmp_path: Path, content: bytes, encoding: str) -> None:
    table, cells = open_text(tmp_path, content)

    assert CELLS == cells
    assert ("name", "city") == table.headings
    assert encoding == table.encoding


def test_a_single_fitting_legacy_encoding_is_used_and_two_raise_a_question(tmp_path: Path) -> None:
    content = "name,city\nJörg,Köln\nZoë,Zürich\n".encode("cp1252")
    table, cells = open_text(tmp_path, content)
    assert [("Jörg", "Köln"), ("Zoë", "Zürich")] == cells
    assert ("cp1252", ()) == (table.encoding, table.questions)
    assert "is read as cp1252: Jörg, Köln, Zoë" in table.notices[0]

    content = "name,city\nSøren,Nîmes\n".encode("cp1252")
    (question,) = open_table(write_file(tmp_path, content)).questions
    assert question.stops
    assert "Søren (--encoding cp1252); Sřren (--encoding cp1250)" in question.message
    table, cells = open_text(tmp_path, content, encoding="Windows-1252")
    assert ([("Søren", "Nîmes")], ()) == (cells, table.questions)


def test_an_encoding_without_a_character_for_a_byte_is_not_offered(tmp_path: Path) -> None:
    content = "name,city\nБилл,Любляна\n".encode("cp866")
    for each in (content, "a,b\nJörg,\0\n".encode("cp1252")):
        with pytest.raises(EncodingUnknown) as refused:
            open_table(write_file(tmp_path, each))
        assert refused.value.offered is None

    assert [("Билл", "Любляна")] == open_text(tmp_path, content, encoding="cp866")[1]


def test_utf_16_text_without_a_mark_is_detected_and_offered(tmp_path: Path) -> None:
    rows = [("Билл", "Любляна")] * 10
    content = "".join(f"{a},{b}\n" for a, b in [("имя", "город"), *rows]).encode("utf-16-be")
    with pytest.raises(EncodingUnknown, match="its NUL bytes show that it is UTF-16") as refused:
        open_table(write_file(tmp_path, content))

    assert ("utf-16-be", ("имя", "город", "Билл")) == (
        refused.value.offered, refused.value.samples
    )  # fmt: skip
    assert rows == open_text(tmp_path, content, encoding="utf-16-be")[1]


@pytest.mark.parametrize(
    ("content", "encoding", "message_part"),
    [
        (TEXT.encode("utf-8-sig"), "cp1252", "begins with the byte order mark of utf-8"),
        (b"a,b\nc,\xe9\n", "utf-8", "byte 0xE9 in line 2, character 3, is not valid utf-8"),
        (
            b"\xef\xbb\xbfa,b\nc,\xe9\n",
            None,
            "byte 0xE9 in line 2, character 3, is not valid utf-8",
        ),
        (b"\xff\xfea\0,\0b\0\n\0c\0,\0\0\xd8", None, "line 2, character 3, is not valid utf-16"),
    ],
    ids=["mark against option", "said wrongly", "marked wrongly", "half a character"],
)
def test_a_given_encoding_that_does_not_fit_is_rejected(
    tmp_path: Path, content: bytes, encoding: str | None, message_part: str
) -> None:
    with pytest.raises(EncodingUnknown) as refused:
        open_table(write_file(tmp_path, content), encoding=encoding)

    assert message_part in str(refused.value)


@pytest.mark.parametrize("name", ["klingon", "rot13", "base64", "punycode", ""])
def test_unknown_encoding_names_are_rejected(tmp_path: Path, name: str) -> None:
    with pytest.raises(UnknownName, match="is not a encoding") as refused:
        open_table(write_file(tmp_path, TEXT.encode()), encoding=name)

    assert "cp1252" in refused.value.action


@pytest.mark.parametrize("ending", ["\n", "\r", "\r\n", "mixed"])
@pytest.mark.parametrize("has_final_ending", [True, False], ids=["ended", "not ended"])
def test_every_line_ending_separates_rows_but_not_within_quotes(
    tmp_path: Path, ending: str, has_final_ending: bool
) -> None:
    lines = ["a,b", '1,"x\ny"', '2,"x\r\ny"', "", '3,"x\ry"', "4,"]
    ends = ["\r", "\n", "\r\n"] * 2 if ending == "mixed" else [ending] * 6
    if not has_final_ending:
        ends[-1] = ""
    content = "".join(line + end for line, end in zip(lines, ends, strict=True))
    table, cells = open_text(tmp_path, content.encode())

    assert [("1", "x\ny"), ("2", "x\r\ny"), ("", ""), ("3", "x\ry"), ("4", "")] == cells
    assert [2, 3, 4, 5, 6] == [row.number for row in table.rows()]
    assert [False, False, True, False, False] == [row.is_left_out for row in table.rows()]


@pytest.mark.parametrize("delimiter", DELIMITERS.values(), ids=DELIMITERS)
def test_each_delimiter_is_detected_although_cells_contain_the_others(
    tmp_path: Path, delimiter: str
) -> None:
    others = "".join(each for each in DELIMITERS.values() if each != delimiter)
    content = f"a{delimiter}b{delimiter}c\n" + f"{others}{delimiter}{others * 3}{delimiter}z\n" * 2
    table, cells = open_text(tmp_path, content.encode())

    assert [(others, others * 3, "z")] * 2 == cells
    assert delimiter == table.delimiter
    assert ("tsv" if delimiter == "\t" else "csv") == table.kind


@pytest.mark.parametrize("content", ["email\na@b.c\n\nd@e.f\n", "note\na;b|c\n\nd, e\n"])
def test_a_file_of_one_column_is_read_with_its_blank_rows(tmp_path: Path, content: str) -> None:
    lines = content.split("\n")[1:-1]

    assert [(line,) for line in lines] == open_text(tmp_path, content.encode())[1]


@pytest.mark.parametrize(
    ("content", "message_part"),
    [
        ("a,b;c\n1,2;3\n", "more than one delimiter fits the rows: comma gives 2 columns"),
        ("a,b\n1\n2\n3,4\n", "comma gives 2 columns and fits 1 of 3 rows (row 2, line 2, has 1)"),
        ("note, all\nx\ny\n", "comma gives 2 columns and fits 0 of 2 rows"),
    ],
    ids=["tie", "misfits", "one column with a comma"],
)
def test_an_uncertain_delimiter_is_rejected_unless_the_user_names_it(
    tmp_path: Path, content: str, message_part: str
) -> None:
    with pytest.raises(SpreadsheetError, check=has_code("delimiter_unknown")) as refused:
        open_table(write_file(tmp_path, content.encode()))

    assert message_part in str(refused.value)
    table = open_table(write_file(tmp_path, content.encode()), delimiter="comma")
    assert content.count("\n") - 1 == len(list_cells(table))


def test_the_extension_tsv_decides_between_possible_delimiters(tmp_path: Path) -> None:
    table = open_table(write_file(tmp_path, b"a,b\tc\n1,2\t3\n", "rows.tsv"))

    assert [("1,2", "3")] == list_cells(table)


def test_a_delimiter_option_is_applied_and_unknown_options_are_rejected(tmp_path: Path) -> None:
    path = write_file(tmp_path, b"a;b\n1;2\n")

    assert ("a", "b") == open_table(path, delimiter=";").headings
    assert ("a;b",) == open_table(path, delimiter="tab").headings
    with pytest.raises(UnknownName, match="'#' is not a delimiter"):
        open_table(path, delimiter="#")
    with pytest.raises(Misused, match="is text, so --sheet cannot be used"):
        open_table(path, sheet="People")


def test_rows_with_too_few_or_many_cells_have_a_problem(tmp_path: Path) -> None:
    content = b"a,b,c\n1,2,3\n1,2\n1,2,3,4\n,,\n,,,,\n1,2,3,\n\n1,2,3\n4,5,6\n7,8,9\n"
    table = open_table(write_file(tmp_path, content))
    rows = list(table.rows())

    assert list(range(2, 12)) == [row.number for row in rows]
    assert {3: "2 cells", 4: "4 cells", 7: "4 cells"} == {
        row.number: problem.received for row in rows for problem in row.problems
    }
    assert {"row_width"} == {problem.code for row in rows for problem in row.problems}
    assert ("1", "2", "") == rows[1].cells
    assert ("1", "2", "3", "4") == rows[2].cells
    assert ("1", "2", "3", "") == rows[5].cells
    assert [5, 6, 8] == [row.number for row in rows if row.is_left_out]


@pytest.mark.parametrize(
    "content", ["a,b,\n1,2,\n3,4,\n", "a,b\n1,2,\n3,4,\n", "a,b,,\n1,2,,\n3,4\n"]
)
def test_trailing_delimiters_add_no_columns(tmp_path: Path, content: str) -> None:
    table = open_table(write_file(tmp_path, content.encode()))

    assert ("a", "b") == table.headings
    assert [("1", "2"), ("3", "4")] == list_cells(table)
    assert not any(row.problems for row in table.rows())


@pytest.mark.slow
def test_nul_characters_are_read_and_huge_cells_have_a_problem(tmp_path: Path) -> None:
    huge = "x" * 10_000_000
    table = open_table(write_file(tmp_path, f'a,b\n1,x\0y\n2,"{huge}"\n3,z\n'.encode()))
    rows = list(table.rows())

    assert ["x\0y", huge, "z"] == [row.cells[1] for row in rows]
    ((problem,),) = [row.problems for row in rows if row.problems]
    assert ("cell_too_long", "b", 80) == (problem.code, problem.column, len(problem.received or ""))
    assert f"Shorten the text to at most {CELL_CHARACTERS_MAX:,} characters." == problem.fix


def test_a_file_that_changes_while_it_is_read_raises(tmp_path: Path) -> None:
    path = write_file(tmp_path, b"a,b\n" + b"1,2\n" * 5_000)
    table = open_table(path)
    assert list_cells(table) == list_cells(table)

    rows = table.rows()
    assert ("1", "2") == next(rows).cells
    with path.open("ab") as file:
        file.write(b"3,4\n")
    for reading in (rows, table.rows()):
        with pytest.raises(SpreadsheetChanged, match=r"rows\.csv was changed while it was being r"):
            list(reading)


CELL = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\ufeff")
    | st.sampled_from('",;\t|\r\n\0'),
    max_size=6,
)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=st.lists(st.lists(CELL, min_size=1, max_size=5), min_size=1, max_size=8),
    delimiter=st.sampled_from(sorted(DELIMITERS.values())),
    ending=st.sampled_from(["\n", "\r\n", "\r"]),
    codec=st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]),
)
def test_rows_written_by_the_csv_module_are_read_back(
    tmp_path: Path, rows: list[list[str]], delimiter: str, ending: str, codec: str
) -> None:
    made = io.StringIO()
    writer = csv.writer(made, delimiter=delimiter, lineterminator=ending, quoting=csv.QUOTE_ALL)
    writer.writerows([["a", "b", "c"], *rows])
    path = write_file(tmp_path, made.getvalue().encode(codec))
    if not any(cell.strip() for row in rows for cell in row):
        with pytest.raises(SpreadsheetError, check=has_code("no_rows")):
            open_table(path, delimiter=delimiter)
        return
    table = open_table(path, delimiter=delimiter)
    found = list(table.rows())

    assert len(rows) == len(found)
    is_ended = all(len(r) == 4 and not r[3] for r in rows if any(c.strip() for c in r))
    for number, (given_cells, row) in enumerate(zip(rows, found, strict=True), 2):
        assert number == row.number
        if not any(cell.strip() for cell in given_cells):
            assert row.is_left_out
            continue
        width = 3 if is_ended else len(given_cells)
        assert tuple(given_cells[:width] + [""] * (3 - width)) == row.cells
        assert (width != 3) == bool(row.problems)


def test_reading_uses_the_memory_of_one_row(tmp_path: Path) -> None:
    path = write_file(tmp_path, b"a,b\n" + (b"1," + b"x" * 400 + b"\n") * 10_000)
    table = open_table(path)
    tracemalloc.start()
    try:
        count = sum(1 for _ in table.rows())
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert 10_000 == count
    assert peak < path.stat().st_size / 10


def test_nul_bytes_alone_are_not_detected_as_utf_16(tmp_path: Path) -> None:
    table, cells = open_text(tmp_path, b"a,b\n" + b"\0\0\0x,\0\0\0\n" * 3)

    assert [("\0\0\0x", "\0\0\0")] * 3 == cells
    assert "utf-8" == table.encoding
