"""Texts of one line, lost letters, and escapes of other programs."""

from __future__ import annotations

from typing import Any

import pytest

from connector.catalog import CATALOG
from connector.catalog.content import ContentTypeField
from connector.spreadsheet.check import CheckedRow
from connector.spreadsheet.target_columns import target_columns
from tests.spreadsheet.meaning.sheet import (
    CANDIDATE,
    check_table,
    list_problems,
    list_warnings,
    make_table,
    make_target,
)

BREAKS = ("\n", "\r\n", "\r", "\t", "\v", "\f", "\x1c", "\x85", "\u2028", " \n ", "_x000D_\n")


def check_cell(column: str, cell: str) -> CheckedRow:
    """Check a valid candidate with this cell in the column, and return the row."""
    (row,) = check_table(make_table({**CANDIDATE, column: cell}), make_target())
    return row


def get_value(row: CheckedRow, column: str) -> Any:
    """Return the value that the row sends for the column's field. The row must be valid."""
    assert row.task is not None, row.problems
    return row.task.fields[column]


@pytest.mark.parametrize("column", ["first_name", "city", "current_company", "current_job_title"])
@pytest.mark.parametrize("sign", BREAKS)
def test_a_line_break_in_a_one_line_text_becomes_a_space_with_a_warning(
    column: str, sign: str
) -> None:
    row = check_cell(column, f"York{sign}UK")

    assert "York UK" == get_value(row, column)
    assert ["line_break"] == list_warnings(row)


def test_a_line_break_at_the_end_of_a_cell_is_removed() -> None:
    for end in ("\r\n", "\n", "_x000D_\n", "_x000d_"):
        assert "York" == get_value(check_cell("city", f"York{end}"), "city")
        assert "ann@people.example" == get_value(
            check_cell("email", f"ann@people.example{end}"), "email"
        )


def test_long_texts_keep_their_line_breaks() -> None:
    for column in ("notes", "skills"):
        assert "one\r\ntwo" == get_value(check_cell(column, "one\r\ntwo"), column)
    assert "one\r\ntwo" == get_value(check_cell("notes", "one_x000D_\ntwo"), "notes")


@pytest.mark.parametrize("column", ["email", "mobile", "postal_code", "portfolio_url"])
def test_a_line_break_in_a_formatted_value_is_rejected(column: str) -> None:
    row = check_cell(column, "+44 7700\n900123")

    assert [(2, column, "hidden_character")] == list_problems([row])


def test_declared_one_line_fields_are_the_expected_ones() -> None:
    def list_one_line_fields(resource: str) -> set[str]:
        return {each.name for each in CATALOG[resource].fields.values() if each.is_one_line}

    assert {
        "first_name",
        "city",
        "current_company",
        "postal_code",
        "email",
    } <= list_one_line_fields("candidates")
    assert list_one_line_fields("candidates").isdisjoint({"notes", "skills"})
    assert "title" in list_one_line_fields("bookings")
    assert list_one_line_fields("leads").isdisjoint({"billing_address", "tags"})


@pytest.mark.parametrize(
    ("kind", "is_one_line"), [("text", True), ("textarea", False), ("rich_text", False)]
)
def test_content_fields_are_one_line_according_to_their_type(kind: str, is_one_line: bool) -> None:
    declared = ContentTypeField(
        {"id": "f", "name": "Place", "field_key": "place", "field_type": kind, "is_required": False}
    )
    column = target_columns(CATALOG["content_items"], "create", [declared])[-1]

    assert is_one_line == column.field.is_one_line


@pytest.mark.parametrize("name", ["?ric", "Beyonc?", "Ren?e", "Zo? Poe", "Poe-?mile", "Ren\ufffde"])
def test_a_lost_letter_in_a_name_gives_a_warning(name: str) -> None:
    row = check_cell("first_name", name)

    assert name == get_value(row, "first_name")
    assert ["odd_letters"] == list_warnings(row)


def test_a_question_mark_in_a_sentence_gives_no_warning() -> None:
    for text in ("Is she free?", "Who? Ann", "Why ?", "? no"):
        assert [] == list_warnings(check_cell("notes", text))


@pytest.mark.parametrize(
    ("column", "cell", "text"),
    [
        ("city", "York\\, UK", "York, UK"),
        ("current_company", "O\\'Hara \\& Sons", "O'Hara & Sons"),
        ("notes", "call 1\\:30pm\\; then mail", "call 1:30pm; then mail"),
        ("notes", 'say \\"yes\\"', 'say "yes"'),
    ],
)
def test_escapes_of_other_programs_are_removed_with_a_warning(
    column: str, cell: str, text: str
) -> None:
    row = check_cell(column, cell)

    assert text == get_value(row, column)
    assert ["escaped_signs"] == list_warnings(row)


def test_other_backslashes_are_kept() -> None:
    for text in ("C:\\Users\\Ann", "AC\\DC", "\\\\server\\share", "CORP\\ann"):
        assert text == get_value(check_cell("notes", text), "notes")
        assert [] == list_warnings(check_cell("notes", text))
    row = check_cell("portfolio_url", "http\\://x.example")
    assert [(2, "portfolio_url", "url_format")] == list_problems([row])
