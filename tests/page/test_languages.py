"""No screen and no problem shows English words to people who speak another language."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from babel.messages.pofile import read_po

import connector.page
from connector.engine.push_plan import Problem
from connector.engine.push_row import DOUBTS
from connector.errors import ConnectorError
from connector.page.problem_words import SENT
from connector.page.words import COUNTED, LANGUAGES, UNDONE, PageRefusal, language
from connector.pushes.undo_report import _TOLD
from connector.spreadsheet.problems import PROBLEMS, WARNINGS

OTHERS = LANGUAGES[1:]
ENGLISH = frozenset(
    """a an and any are be because been before but by can cannot column delete does done each edit
    empty enter error failed field for found from given has have here how if import imported in is
    it its left lookup more name no not nothing of one only other others out please record records
    row rows saved see sent settle should since so somebody someone that the their them then there
    these they this those to undo unknown update value was were what when where which whoever with
    would you your""".split()  # noqa: SIM905 # a list of words
)
"""Words that occur in English sentences and in none of the other languages' own."""

SHARED = {
    "de": frozenset(("an", "die", "so", "also", "in", "her", "name", "import", "am", "was")),
    "fr": frozenset(("a", "on", "son", "comment", "note", "me", "long", "page", "import")),
}
"""Words that are spelled alike."""


def english_in(text: str, code: str) -> set[str]:
    """The English words of a text."""
    words = re.findall(r"[^\W\d]+", text.lower())
    return {w for w in words if (w in ENGLISH and w not in SHARED[code]) or "_" in w}


def errors() -> Iterator[type[ConnectorError]]:
    """Every error that there is."""
    left = [ConnectorError]
    while left:
        error = left.pop()
        left += error.__subclasses__()
        if not issubclass(error, PageRefusal):
            yield error


def problems() -> Iterator[Problem]:
    """A problem of every code, with English words of its own."""
    codes = {*PROBLEMS, *WARNINGS, *DOUBTS, *SENT, *_TOLD, *(each.code for each in errors())}
    for code in sorted(codes):
        own = "" if code in {each.code for each in errors()} else "the row was not told"
        for values in ({"column": "Ort"}, {"field": "city"}, {"field": "city", "found": "Lyon"}):
            yield Problem(code, own, fix="Run it with --mode update.", **values)


@pytest.mark.parametrize("code", OTHERS)
def test_no_problem_of_a_row_is_in_english(code: str) -> None:
    spoken = language(code)
    for each in problems():
        told = f"{spoken.told(each)} {spoken.cure(each)}"
        assert not english_in(told, code), (each.code, told)
        assert "--" not in told
        assert spoken.wrong(each), each.code


@pytest.mark.parametrize("code", OTHERS)
def test_no_error_is_in_english(code: str) -> None:
    spoken = language(code)
    for each in errors():
        error = each.__new__(each)
        ConnectorError.__init__(error, "POST /api was not sent", action="Try --ask-anyway.")
        told = " ".join(spoken.error(error))
        assert not english_in(told, code), (each.code, told)
        assert "--" not in told


def test_english_names_no_option_either() -> None:
    spoken = language("en")
    for each in problems():
        told = f"{spoken.told(each)} {spoken.cure(each)}"
        assert "--" not in told, (each.code, told)
        assert "connector " not in told, (each.code, told)


@pytest.mark.parametrize("code", OTHERS)
def test_no_text_of_a_catalogue_is_english(code: str) -> None:
    spoken = language(code)
    for text, told in catalogue(code):
        assert not english_in(told, code), (text, told)
    assert {spoken.gettext(each) for each in UNDONE.values()}.isdisjoint(UNDONE.values())
    assert spoken.counted(2, "candidates") != COUNTED["candidates"][1] % {"num": 2}


def catalogue(code: str) -> Iterator[tuple[str, str]]:
    """The texts of a catalogue, each with its translation."""
    with (Path(connector.page.__file__).parent / "locale" / f"{code}.po").open("rb") as file:
        for each in read_po(file, locale=code):
            said = each.string if isinstance(each.string, tuple) else (each.string,)
            for one in map(str, said) if each.id else ():
                yield str(each.id), re.sub(r"%\(\w+\)s|connector page", "", one)
