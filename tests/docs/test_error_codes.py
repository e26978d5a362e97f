"""Errors: codes are distinct, and the documents explain each of them."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from connector import errors
from connector.cli.stopping import INTERRUPTED
from connector.errors import (
    AccountBusy,
    Answered,
    ConnectorError,
    Forbidden,
    InDoubt,
    ModelError,
    NoAnswer,
    NotTheApi,
    PublishingRefused,
    SpreadsheetError,
    UnknownName,
    ValidationFailed,
)
from tests.catalog.document import list_quoted_words, parse_tables
from tests.repository import ROOT

PAGE = (ROOT / "docs" / "ERRORS.md").read_text(encoding="utf-8")

WHERE = "GET /jobs"
EXAMPLES: dict[type[ConnectorError], ConnectorError] = {
    UnknownName: UnknownName("resource", "job", ("jobs", "leads")),
    Forbidden: Forbidden(WHERE, status=403, scope="jobs.read"),
    ValidationFailed: ValidationFailed(WHERE, status=422, errors={"email": ("is not valid",)}),
    InDoubt: InDoubt("POST /jobs", "no answer came"),
    PublishingRefused: PublishingRefused([("unique_fct_jobs_id", 2)]),
    ModelError: ModelError("it cannot be read", path=Path("marts/fct_jobs.sql"), line=3),
}
"""One of each error whose action is composed."""


def find_error_classes() -> list[type[ConnectorError]]:
    """Return the error classes."""
    return [
        each
        for each in vars(errors).values()
        if inspect.isclass(each) and issubclass(each, ConnectorError)
    ]


def list_codes() -> Iterator[tuple[str, type[ConnectorError]]]:
    """Yield each error code with its class."""
    for each in find_error_classes():
        yield from ((code, each) for code in (each.code, *each.codes))


def test_every_error_has_its_own_code() -> None:
    inherited = [each.__name__ for each in find_error_classes() if "code" not in vars(each)]
    codes = [code for code, _ in list_codes()]

    assert [] == inherited
    assert sorted(set(codes)) == sorted(codes)
    assert [] == [code for code in codes if not re.fullmatch(r"[a-z]+(_[a-z]+)*", code)]


def test_every_code_that_is_raised_belongs_to_its_class() -> None:
    by_name = {each.__name__: each for each in find_error_classes()}
    raised = [
        (call.func.id, keyword.value.value)
        for path in (ROOT / "connector").rglob("*.py")
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name)
        if call.func.id in by_name
        for keyword in call.keywords
        if keyword.arg == "code" and isinstance(keyword.value, ast.Constant)
    ]

    assert len(raised) > 20
    assert [] == [(name, code) for name, code in raised if code not in by_name[name].codes]


def test_the_errors_page_explains_every_code() -> None:
    table = next(t for t in parse_tables(PAGE) if t.header[0] == "Code")
    stated = {row["Code"].strip("`"): row["What happened"] for row in table.rows_as_dicts()}

    assert {code for code, _ in list_codes()} == {*stated}
    assert [] == [code for code, text in stated.items() if not text]


@pytest.mark.parametrize("error", EXAMPLES.values(), ids=lambda error: error.code)
def test_every_error_has_a_message_and_an_action(error: ConnectorError) -> None:
    assert "" != str(error)
    assert "\n" not in f"{error}{error.action}"
    assert error.action.endswith(".")


def test_composed_actions_have_an_example() -> None:
    plain = (ConnectorError, AccountBusy, Answered, NoAnswer, NotTheApi, SpreadsheetError)
    composed = [e for e in find_error_classes() if "__init__" in vars(e) and e not in plain]

    assert set(EXAMPLES) == set(composed)


def test_the_errors_page_explains_every_exit_status() -> None:
    table = next(t for t in parse_tables(PAGE) if t.header[0] == "Exit status")
    statuses = [int(row["Exit status"]) for row in table.rows_as_dicts()]
    declared = {each.exit_status for each in find_error_classes()} | {0, 3, INTERRUPTED}

    assert sorted(declared) == statuses
    assert all(row["What to do"] for row in table.rows_as_dicts())


def test_every_additional_action_belongs_to_a_known_code() -> None:
    table = next(t for t in parse_tables(PAGE) if t.header[0] == "Codes")
    documented_codes = [
        code for row in table.rows_as_dicts() for code in list_quoted_words(row["Codes"])
    ]
    codes = [code for code, _ in list_codes() if code != ConnectorError.code]

    assert set(documented_codes) <= set(codes)
    assert sorted(set(documented_codes)) == sorted(documented_codes)
