"""Texts of one line, letters that were lost, and escapes of other programs."""

from __future__ import annotations

from typing import Any

import pytest

from connector.catalog import CATALOG
from connector.catalog.content import ContentTypeField
from connector.spreadsheet.check import CheckedRow
from connector.spreadsheet.target_columns import target_columns
from tests.spreadsheet.meaning.sheet import CANDIDATE, aimed, checked, problems, table

BREAKS = ("\n", "\r\n", "\r", "\t", "\v", "\f", "\x1c", "\x85", "\u2028", " \n ", "_x000D_\n")


def checked_cell(column: str, cell: str) -> CheckedRow:
    """A candidate with this cell after the check."""
    (row,) = checked(table({**CANDIDATE, column: cell}), aimed())
    return row


def sent(row: CheckedRow, column: str) -> Any:
    """Return the value that the row would send for the field."""
    assert row.task is not None, row.problems
    return row.task.fields[column]


def notes(row: CheckedRow) -> list[str]:
    """The codes of the row's warnings."""
    return [each.code for each in row.warnings]


@pytest.mark.parametrize("column", ["first_name", "city", "current_company", "current_job_title"])
@pytest.mark.parametrize("sign", BREAKS)
def test_a_line_break_in_a_text_of_one_line_is_a_blank_with_a_note(column: str, sign: str) -> None:
    row = checked_cell(column, f"York{sign}UK")

    assert "York UK" == sent(row, column)
    assert ["line_break"] == notes(row)


def test_a_line_break_at_the_end_is_no_part_of_the_text() -> None:
    for end in ("\r\n", "\n", "_x000D_\n", "_x000d_"):
        assert "York" == sent(checked_cell("city", f"York{end}"), "city")
        assert "ann@people.example" == sent(
            checked_cell("email", f"ann@people.example{end}"), "email"
        )


def test_prose_keeps_its_lines() -> None:
    for column in ("notes", "skills"):
        assert "one\r\ntwo" == sent(checked_cell(column, "one\r\ntwo"), column)
    assert "one\r\ntwo" == sent(checked_cell("notes", "one_x000D_\ntwo"), "notes")


@pytest.mark.parametrize("column", ["email", "mobile", "postal_code", "portfolio_url"])
def test_a_line_break_in_a_value_with_a_form_is_refused(column: str) -> None:
    row = checked_cell(column, "+44 7700\n900123")

    assert [(2, column, "hidden_character")] == problems([row])


def test_the_declaration_says_which_values_have_one_line() -> None:
    def names(resource: str) -> set[str]:
        return {each.name for each in CATALOG[resource].fields.values() if each.is_one_line}

    assert {"first_name", "city", "current_company", "postal_code", "email"} <= names("candidates")
    assert names("candidates").isdisjoint({"notes", "skills"})
    assert "title" in names("bookings")
    assert names("leads").isdisjoint({"billing_address", "tags"})


@pytest.mark.parametrize(
    ("kind", "is_one_line"), [("text", True), ("textarea", False), ("rich_text", False)]
)
def test_a_field_of_a_content_type_has_the_lines_of_its_type(kind: str, is_one_line: bool) -> None:
    declared = ContentTypeField(
        {"id": "f", "name": "Place", "field_key": "place", "field_type": kind, "is_required": False}
    )
    column = target_columns(CATALOG["content_items"], "create", [declared])[-1]

    assert is_one_line == column.field.is_one_line


@pytest.mark.parametrize("name", ["?ric", "Beyonc?", "Ren?e", "Zo? Poe", "Poe-?mile", "Ren\ufffde"])
def test_a_lost_letter_is_noted(name: str) -> None:
    row = checked_cell("first_name", name)

    assert name == sent(row, "first_name")
    assert ["odd_letters"] == notes(row)


def test_a_question_is_no_lost_letter() -> None:
    for text in ("Is she free?", "Who? Ann", "Why ?", "? no"):
        assert [] == notes(checked_cell("notes", text))


@pytest.mark.parametrize(
    ("column", "cell", "text"),
    [
        ("city", "York\\, UK", "York, UK"),
        ("current_company", "O\\'Hara \\& Sons", "O'Hara & Sons"),
        ("notes", "call 1\\:30pm\\; then mail", "call 1:30pm; then mail"),
        ("notes", 'say \\"yes\\"', 'say "yes"'),
    ],
)
def test_escapes_of_another_program_are_removed_with_a_note(
    column: str, cell: str, text: str
) -> None:
    row = checked_cell(column, cell)

    assert text == sent(row, column)
    assert ["escaped_signs"] == notes(row)


def test_other_backslashes_stay() -> None:
    for text in ("C:\\Users\\Ann", "AC\\DC", "\\\\server\\share", "CORP\\ann"):
        assert text == sent(checked_cell("notes", text), "notes")
        assert [] == notes(checked_cell("notes", text))
    row = checked_cell("portfolio_url", "http\\://x.example")
    assert [(2, "portfolio_url", "url_format")] == problems([row])
