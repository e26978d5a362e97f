"""The page in English, German and French: each catalogue has every text of the page."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from babel.messages.extract import DEFAULT_KEYWORDS, extract_from_dir

import connector.page
from connector.catalog import CATALOG
from connector.errors import ConnectorError, DamagedSpreadsheet, SpreadsheetError
from connector.errors_api import LeaseHeld, NoAnswer, QuotaSpent, Unauthorized
from connector.page.access import AccessDenied, LoginsTooMany
from connector.page.drafts import DraftChanged, DraftUnknown
from connector.page.words import (
    ACTIONS,
    ERRORS,
    LANGUAGES,
    PageError,
    choose_language,
    field_name_in_english,
    importable_resources,
    load_language,
)
from connector.sandbox.server import Sandbox
from connector.spreadsheet.problems import PROBLEMS, WARNINGS
from connector.spreadsheet.targets import target_columns
from tests.page.serving import make_csv, serve_and_sign_in

FOLDER = Path(connector.page.__file__).parent
OTHERS = LANGUAGES[1:]
PLACES = re.compile(r"%\(\w+\)s|%s")
REFUSALS = (PageError, AccessDenied, LoginsTooMany, DraftChanged, DraftUnknown)


def find_rejection_texts() -> Iterator[str]:
    """Yield the messages and actions of errors that the page raises."""
    names = {each.__name__ for each in REFUSALS}
    for path in FOLDER.glob("*.py"):
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(call, ast.Call) and getattr(call.func, "id", None) in names:
                action = (each.value for each in call.keywords if each.arg == "action")
                for argument in (*call.args, *action):
                    assert isinstance(argument, ast.Constant), ast.unparse(call)
                    yield str(argument.value)


def find_page_texts() -> list[str | tuple[str, ...]]:
    """Return the texts in the code and in the templates."""
    methods = [("**.html", "jinja2.ext.babel_extract"), ("**.py", "python")]
    keywords = {**DEFAULT_KEYWORDS, "N_": None, "N_PLURAL": (1, 2)}
    found = extract_from_dir(str(FOLDER), method_map=methods, keywords=keywords)
    return [*(message for _, _, message, _, _ in found if message != "."), *find_rejection_texts()]


def find_check_texts() -> Iterator[str]:
    """Yield the messages and actions for invalid rows."""
    for code, text in {**PROBLEMS, **WARNINGS}.items():
        wrong, _, cure = text.partition(": ")
        yield f"{wrong}."
        yield ACTIONS.get(code, cure[:1].upper() + cure[1:])


def find_catalog_names() -> Iterator[str]:
    """Yield the display names of resources, fields and values."""
    yield from ("Full name", "yes", "no")
    for resource in importable_resources():
        yield field_name_in_english(resource)
        for mode in ("create", "update", "upsert", "convert"):
            for column in target_columns(CATALOG[resource], mode):
                yield field_name_in_english(column.name)
                yield from (
                    e.replace("_", " ") for e in column.accepted_values(mode) if e[0].isalpha()
                )


@pytest.mark.parametrize("code", OTHERS)
@pytest.mark.parametrize(
    ("kind", "error"),
    [
        ("failed", ConnectorError("told x")),
        ("damaged_spreadsheet", DamagedSpreadsheet("book x")),
        ("unsafe_workbook", SpreadsheetError("book x", code="unsafe_workbook")),
        ("try_again", NoAnswer("x", "y")),
        ("quota_spent", QuotaSpent("month x")),
        ("lease_held", LeaseHeld("held x")),
        ("unauthorized", Unauthorized("x", status=401)),
    ],
)
def test_errors_are_shown_in_the_users_language(
    code: str, kind: str, error: ConnectorError
) -> None:
    message, action = load_language(code).describe_error(error)
    assert str(error) not in message
    assert load_language(code).gettext(ERRORS[kind])[1:] in message
    assert action in {load_language(code).gettext(each) for each in ACTIONS.values()}
    assert action not in ACTIONS.values()


def test_old_and_new_values_are_shown_in_the_users_language() -> None:
    changes = (
        ("willing_to_relocate", False, True),
        ("expected_salary", 122625.0, 38000),
        ("available_from", None, "2026-12-01"),
    )
    shown = load_language("fr").format_changes(changes, "candidates")
    assert [
        ["willing_to_relocate", "non", "oui"],
        ["expected_salary", "122 625", "38 000"],
        ["available_from", "vide", "1 décembre 2026"],
    ] == [[" ".join(each.split()) for each in change] for change in shown]
    # An undo has the same values by field.
    by_field = {name: values for name, *values in changes}
    assert shown == load_language("fr").format_changes(by_field, "candidates")


def test_the_differing_end_of_long_texts_is_shown() -> None:
    before = "Called on Monday. " * 10
    ((_, now, then),) = load_language("en").format_changes(
        {"notes": (before, f"{before}\n\nMet.")}, "candidates"
    )
    assert now.startswith("…")
    assert then.endswith("Met.")


def test_the_language_follows_the_browser(tmp_path: Path) -> None:
    assert ["de", "fr", "en", "en"] == [
        choose_language(each).code for each in ("de-AT,de;q=0.9", "nl;q=0.1,fr-CH", "nl", ";;q=x")
    ]
    with Sandbox() as sandbox, serve_and_sign_in(sandbox, tmp_path) as (_, ann):
        ann.client.headers["Accept-Language"] = "de"
        ann.upload("leute.csv", make_csv("Bo,Li,bo,permanent"))
        assert '<html lang="de">' in ann.shown.text
        assert "Spalten den Feldern zuordnen" in ann.shown.text
        assert "Vorname" in ann.shown.text
        assert "Für das, was in der Datei steht" not in ann.shown.text
        ann.post("/imports", {"resource": "candidates", "mode": "convert", "pasted": "a,b"})
        assert "Nur Leads können umgewandelt werden." in ann.shown.text
