"""Test 31: what the API says of a row reaches the cell that it is about, and none of it is lost."""

from __future__ import annotations

import pytest

from connector.spreadsheet.mapping import map_headings
from connector.spreadsheet.problems import DUPLICATES, PROBLEMS
from connector.spreadsheet.refusal import refusal
from tests.spreadsheet.meaning.sheet import Said, aimed
from tests.spreadsheet.meaning.test_content import FIELDS

COLUMNS = map_headings(["E-mail", "Surname"], aimed())


@pytest.mark.parametrize(
    ("errors", "expected"),
    [
        ({"email": ("is taken",)}, [("E-mail", "email is taken")]),
        (
            {"email": ("is taken", "is odd"), "last_name": ("is short",)},
            [("E-mail", "email is taken"), ("E-mail", "is odd"), ("Surname", "is short")],
        ),
        ({"first_name": ("is required",)}, [(None, "first_name is required")]),
        ({"base": ("no",), "": ("x",)}, [(None, "base no"), (None, "x")]),
        ({"email": ()}, [("E-mail", "email is refused")]),
        ({}, [(None, "The row is wrong")]),
    ],
)
def test_31_every_message_reaches_its_column_or_the_row(
    errors: dict[str, tuple[str, ...]], expected: list[tuple[str | None, str]]
) -> None:
    """Known fields go to their column, all else to the row, and an empty list is still told."""
    found = refusal(errors, COLUMNS, message="The row is wrong")

    assert [column for column, _ in expected] == [each.column for each in found]
    for each, (_, text) in zip(found, expected, strict=True):
        assert text in each.message
        assert "refused_by_api" == each.code


def test_31_refusal_without_any_word_is_still_a_problem() -> None:
    """Where the API says nothing at all, the row says that."""
    (found,) = refusal({}, COLUMNS)

    assert "did not say why" in found.message


def test_31_content_fields_are_found_with_and_without_their_path() -> None:
    """A content type's field may be named either way."""
    wanted = aimed("content_items", said=Said(fields=FIELDS), parent="posts")
    columns = map_headings(["Title", "Short summary"], wanted)

    for name in ("fields.summary", "summary"):
        (found,) = refusal({name: ("is required",)}, columns)
        assert "Short summary" == found.column


def test_every_code_is_documented_once() -> None:
    """Each code has a sentence on what it means and what to do."""
    assert set(PROBLEMS) >= DUPLICATES
    for code, text in PROBLEMS.items():
        assert code == code.lower().replace(" ", "_")
        assert text.endswith(".")
        assert ":" in text
    assert len(set(PROBLEMS.values())) == len(PROBLEMS)
