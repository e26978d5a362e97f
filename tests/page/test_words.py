"""Texts of the page: errors, changed values, and no options of the command."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from connector.errors import ConnectorError, DamagedSpreadsheet, SpreadsheetError
from connector.errors_api import LeaseHeld, NoAnswer, QuotaSpent, Unauthorized
from connector.ledger.push_plan import Problem
from connector.page.problem_words import SENT
from connector.page.words import ACTIONS, ERRORS, TEXTS, PageError
from connector.spreadsheet.problems import PROBLEMS, WARNINGS


def find_error_classes() -> Iterator[type[ConnectorError]]:
    """Yield every class of errors that the page did not raise itself."""
    left: list[type[ConnectorError]] = [ConnectorError]
    while left:
        error = left.pop()
        left += error.__subclasses__()
        if not issubclass(error, PageError):
            yield error


@pytest.mark.parametrize(
    ("kind", "error"),
    [
        ("failed", ConnectorError("told x")),
        ("try_again", NoAnswer("x", "y")),
        ("quota_spent", QuotaSpent("month x")),
        ("lease_held", LeaseHeld("held x")),
        ("unauthorized", Unauthorized("x", status=401)),
    ],
)
def test_errors_are_shown_in_words_of_the_page(kind: str, error: ConnectorError) -> None:
    message, action = TEXTS.describe_error(error)

    assert str(error) not in message
    assert ERRORS[kind][1:] in message
    assert action in ACTIONS.values()


@pytest.mark.parametrize(
    "error",
    [DamagedSpreadsheet("book x"), SpreadsheetError("book x", code="unsafe_workbook")],
    ids=["damaged", "unsafe"],
)
def test_errors_of_a_file_keep_their_sentence(error: ConnectorError) -> None:
    message, action = TEXTS.describe_error(error)

    assert "book x." == message
    assert action in ACTIONS.values()


def test_no_text_names_a_command_line_option() -> None:
    for kind in find_error_classes():
        error = kind.__new__(kind)
        ConnectorError.__init__(error, "POST /api was not sent", action="Try --ask-anyway.")
        assert "--" not in " ".join(TEXTS.describe_error(error)), kind.code
    codes = {*PROBLEMS, *WARNINGS, *SENT, *(each.code for each in find_error_classes())}
    for code in sorted(codes):
        for values in ({"column": "Ort"}, {"field": "city"}, {"field": "city", "found": "Lyon"}):
            own = PROBLEMS.get(code, WARNINGS.get(code, "told")).partition(": ")[0]
            problem = Problem(code, own, fix="Run it with --mode update.", **values)
            text = f"{TEXTS.describe_problem(problem)} {TEXTS.fix_text(problem)}"
            assert "--" not in text, (code, text)
            assert "connector " not in text, (code, text)


def test_old_and_new_values_are_shown_as_words_numbers_and_days() -> None:
    changes = (
        ("willing_to_relocate", False, True),
        ("expected_salary", 122625.0, 38000),
        ("available_from", None, "2026-12-01"),
    )

    shown = TEXTS.format_changes(changes, "candidates")

    assert [
        ["willing_to_relocate", "no", "yes"],
        ["expected_salary", "122,625", "38,000"],
        ["available_from", "empty", "1 December 2026"],
    ] == shown
    # An undo has the same values by field.
    by_field = {name: values for name, *values in changes}
    assert shown == TEXTS.format_changes(by_field, "candidates")


def test_the_differing_end_of_long_texts_is_shown() -> None:
    before = "Called on Monday. " * 10

    ((_, now, then),) = TEXTS.format_changes({"notes": (before, f"{before}\n\nMet.")}, "candidates")

    assert now.startswith("…")
    assert then.endswith("Met.")
