"""The page speaks English, German and French, and each catalogue has all that the page says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from babel.messages.extract import DEFAULT_KEYWORDS, extract_from_dir

import connector.page
from connector.page.words import ACTIONS, LANGUAGES, WRONG, language, language_of
from connector.sandbox.server import Sandbox
from connector.spreadsheet.problems import COLUMN_MISSING, PROBLEMS, WARNINGS
from tests.page.serving import csv_of, signed_in

FOLDER = Path(connector.page.__file__).parent
OTHERS = LANGUAGES[1:]
PLACES = re.compile(r"%\(\w+\)s|%s")

# Nobody meets these on the page, where no ids and no JSON are typed.
_NOT_MET = {"json_format", "id_format", COLUMN_MISSING}


def texts() -> list[str | tuple[str, ...]]:
    """What stands in the code and in the templates."""
    methods = [("**.html", "jinja2.ext.babel_extract"), ("**.py", "python")]
    keywords = {**DEFAULT_KEYWORDS, "N_": None}
    found = extract_from_dir(str(FOLDER), method_map=methods, keywords=keywords)
    return [message for _, _, message, _, _ in found if message != "."]


@pytest.mark.parametrize("code", OTHERS)
def test_catalogue_has_everything(code: str) -> None:
    """Each text has a translation with the same places in it, in both numbers."""
    known = language(code)
    missing = []
    for text in texts():
        one, many = text if isinstance(text, tuple) else (text, text)
        for count, said in ((1, one), (5, many)):
            is_counted = isinstance(text, tuple)
            told = known.ngettext(one, many, count) if is_counted else known.gettext(said)
            is_same = told == said and len(said) > 12
            if is_same or {*PLACES.findall(told)} - {*PLACES.findall(many)}:
                missing.append(said)

    assert [] == missing


@pytest.mark.parametrize("code", OTHERS)
def test_checks_are_told_in_the_language(code: str) -> None:
    """What is wrong with a row, and nearly always what to do, is said in the language by code."""
    known = language(code)
    for each, text in {**PROBLEMS, **WARNINGS}.items():
        wrong = WRONG.get(each, text.partition(": ")[0] + ".")
        if each not in _NOT_MET:
            assert wrong != known.gettext(wrong), each
            if each in ACTIONS:
                assert ACTIONS[each] != known.gettext(ACTIONS[each]), each


def test_the_browser_chooses(tmp_path: Path) -> None:
    """By what the browser asks for a screen is German or French, and English for all others."""
    assert ["de", "fr", "en", "en"] == [
        language_of(each).code for each in ("de-AT,de;q=0.9", "nl;q=0.1,fr-CH", "nl", ";;q=x")
    ]
    with Sandbox() as sandbox, signed_in(sandbox, tmp_path) as (_, ann):
        ann.client.headers["Accept-Language"] = "de"
        ann.begin("leute.csv", csv_of("Bo,Li,bo,permanent"))
        assert '<html lang="de">' in ann.shown.text
        assert "Was steht in jeder Spalte?" in ann.shown.text
        assert "Vorname" in ann.shown.text
