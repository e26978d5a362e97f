"""Words for an empty value are read as empty with a warning, and not as a required value."""

from __future__ import annotations

import pytest

from connector.spreadsheet.cells import CellOptions
from connector.spreadsheet.mapping_file import SavedMap
from connector.spreadsheet.problems import Cell
from tests.spreadsheet.meaning.sheet import CANDIDATE, check_table, make_table, make_target

WORDS = (
    *("\\N", "undefined", "[object Object]", "(blank)", "(empty)", "(missing)", "(none)", "<null>"),
    *("NULL", "None", "nil", "NaN", "NaT", "False", "[]", "{}", "()", "< >", "Invalid date"),
    *("#N/A", "#N/A N/A", "#NAME?", "#ERROR!", "#SPILL!", "#REF!", "#DIV/0!", "#WERT!", "#NV"),
    *("0000-00-00", "0000-00-00 00:00:00", "00/00/0000", "0001-01-01", "0001-01-01T00:00:00"),
    *("01/01/0001", "1.1.0001", "01/01/0001 00:00:00", "1900-01-00", "1899-12-30", "00/01/1900"),
)
COLUMNS = (
    *("city", "current_company", "notes", "postal_code", "mobile", "portfolio_url"),
    *("available_from", "expected_salary", "notice_period_days", "salary_currency"),
    *("employment_status", "assigned_to"),
)


@pytest.mark.parametrize("column", COLUMNS)
def test_words_like_none_are_read_as_empty_with_a_warning(column: str) -> None:
    for word in WORDS:
        (row,) = check_table(make_table({**CANDIDATE, column: word}), make_target())

        assert row.task is not None, word
        assert column not in row.task.fields, word
        assert [("says_nothing", column, word)] == [
            (each.code, each.column, each.received) for each in row.warnings
        ]


def test_false_is_a_value_in_a_boolean_column() -> None:
    (row,) = check_table(make_table({**CANDIDATE, "willing_to_relocate": "False"}), make_target())

    assert row.task is not None
    assert row.task.fields["willing_to_relocate"] is False


@pytest.mark.parametrize("column", ["last_name", "email"])
def test_a_word_like_none_in_a_required_column_is_a_problem(column: str) -> None:
    for word in WORDS:
        (row,) = check_table(make_table({**CANDIDATE, column: word}), make_target())
        (problem,) = row.problems

        assert ("word_for_nothing", column) == (problem.code, problem.column)
        assert f'"{word}" is read as empty' in problem.text


def test_a_mapping_can_keep_a_word_like_null_as_a_value() -> None:
    kept = CellOptions(values={"Null": "Null"})
    saved = SavedMap("candidates", {"last_name": ("last_name", kept)})
    (row,) = check_table(make_table({**CANDIDATE, "last_name": "Null"}), make_target(), saved=saved)

    assert row.task is not None
    assert "Null" == row.task.fields["last_name"]
    assert () == row.warnings


@pytest.mark.parametrize(
    "cell",
    [
        *("Blank", "Empty", "Nat", "#1 Agency", "#hash", "C#", "N", "[x]", "(Acme)", "1899-12-29"),
        *("{name}", "01/01/1901", "Falseworth", "<b>", "2001-01-01", "TRUE", "0"),
    ],
)
def test_other_words_are_kept(cell: Cell) -> None:
    (row,) = check_table(make_table({**CANDIDATE, "current_company": cell}), make_target())

    assert row.task is not None
    assert cell == row.task.fields["current_company"]
    assert () == row.warnings
