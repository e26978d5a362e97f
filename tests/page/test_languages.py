"""The page in other languages: screens, problems and errors contain no English words."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping
from html import unescape
from pathlib import Path
from typing import get_args

import openpyxl
import pytest
from babel.messages.pofile import read_po
from openpyxl.worksheet.worksheet import Worksheet

import connector.page
from connector.errors import ConnectorError
from connector.ledger.push_plan import Problem
from connector.ledger.push_states import Operation, RowOutcome
from connector.page.problem_words import SENT
from connector.page.report_words import ROW_OUTCOMES
from connector.page.words import COUNTED, LANGUAGES, UNDONE, PageError, load_language
from connector.pushes.push_row import DOUBTS
from connector.pushes.undo_report import _OUTCOMES_WITHOUT_READ
from connector.sandbox.server import Sandbox
from connector.spreadsheet.problems import PROBLEMS, WARNINGS, text_of
from connector.spreadsheet.table import open_table
from tests.page.serving import serve_and_sign_in

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


def find_english_words(text: str, language: str) -> set[str]:
    """Return the English words and names with underscores in a text of another language."""
    words = re.findall(r"[^\W\d]+", text.lower())
    return {w for w in words if (w in ENGLISH and w not in SHARED[language]) or "_" in w}


def find_error_classes() -> Iterator[type[ConnectorError]]:
    """Yield every error class except those of the page."""
    left = [ConnectorError]
    while left:
        error = left.pop()
        left += error.__subclasses__()
        if not issubclass(error, PageError):
            yield error


def make_problems() -> Iterator[Problem]:
    """Yield problems of every code, with English values."""
    codes = {
        *PROBLEMS,
        *WARNINGS,
        *DOUBTS,
        *SENT,
        *_OUTCOMES_WITHOUT_READ,
        *(each.code for each in find_error_classes()),
    }
    for code in sorted(codes):
        own = "" if code in {each.code for each in find_error_classes()} else "the row was not told"
        for values in ({"column": "Ort"}, {"field": "city"}, {"field": "city", "found": "Lyon"}):
            yield Problem(code, own, fix="Run it with --mode update.", **values)


@pytest.mark.parametrize("code", OTHERS)
def test_problems_of_rows_are_translated(code: str) -> None:
    spoken = load_language(code)
    for each in make_problems():
        text = f"{spoken.describe_problem(each)} {spoken.fix_text(each)}"
        assert not find_english_words(text, code), (each.code, text)
        assert "--" not in text
        assert spoken.problem_text(each), each.code


@pytest.mark.parametrize("code", OTHERS)
def test_errors_are_translated(code: str) -> None:
    spoken = load_language(code)
    for each in find_error_classes():
        error = each.__new__(each)
        ConnectorError.__init__(error, "POST /api was not sent", action="Try --ask-anyway.")
        text = " ".join(spoken.describe_error(error))
        assert not find_english_words(text, code), (each.code, text)
        assert "--" not in text


def test_english_errors_on_the_page_name_no_command_line_option() -> None:
    spoken = load_language("en")
    for each in make_problems():
        text = f"{spoken.describe_problem(each)} {spoken.fix_text(each)}"
        assert "--" not in text, (each.code, text)
        assert "connector " not in text, (each.code, text)


@pytest.mark.parametrize("code", OTHERS)
def test_every_text_of_a_catalogue_is_translated(code: str) -> None:
    spoken = load_language(code)
    for text, translation in load_catalogue(code):
        assert not find_english_words(translation, code), (text, translation)
    assert {*get_args(RowOutcome), *get_args(Operation)} == {*ROW_OUTCOMES}
    assert {spoken.gettext(each) for each in UNDONE.values()}.isdisjoint(UNDONE.values())
    assert spoken.format_record_count(2, "candidates") != COUNTED["candidates"][1] % {"num": 2}


def load_catalogue(language: str) -> Iterator[tuple[str, str]]:
    """Yield each text of a language's catalogue with each translation."""
    with (Path(connector.page.__file__).parent / "locale" / f"{language}.po").open("rb") as file:
        for each in read_po(file, locale=language):
            translations = each.string if isinstance(each.string, tuple) else (each.string,)
            for one in map(str, translations) if each.id else ():
                yield str(each.id), re.sub(r"%\(\w+\)s|connector page", "", one)


# -- Screens ---------------------------------------------------------------------------------------

ROWS = (
    "Eva,Lang,eva,permanent,45000,0171 1234567",
    "Uwe,Kurz,uwe@muster.example,vollzeit,viel,+49 171 1234567",
    "Ina,Groß,ina@muster.example,permanent,45.000,k.A.",
    "Ina,Groß,ina@muster.example,permanent,45.000,",
    "Leo,Weiß,leo@muster.example,permanent,51.500,",
)
HEADINGS = "Vorname,Nachname,E-Mail,Beschäftigungsart,Gehaltswunsch,Mobil,Merkfeld"


STEPS: Mapping[str, Mapping[str, str]] = {
    "columns": {
        f"c:{place}": name
        for place, name in enumerate(
            ("first_name", "last_name", "email", "employment_type", "expected_salary", "mobile")
        )
    },
    "values": {"decimal:4": ",", "value:3:0": "permanent", "value:5:0": ""},
    "rows": {"go": "on"},
}
"""The answers of each screen up to the last look."""


def read_visible_text(page: str) -> str:
    """Return the words of a page, including those for screen readers."""
    # Cells of the file's own are no words of the page.
    text = re.sub(r'<select name="region">.*?</select>', " ", page, flags=re.DOTALL)
    text = re.sub(r"<(script|code|textarea|td|q)\b.*?</\1>", " ", text, flags=re.DOTALL)
    aloud = re.findall(r'(?:aria-label|placeholder|alt|title|data-[a-z]+)="([^"]*)"', text)
    return unescape(" ".join((re.sub(r"<[^>]*>", " ", text), *aloud)))


@pytest.mark.slow
@pytest.mark.parametrize("code", OTHERS)
def test_every_screen_is_translated(code: str, tmp_path: Path) -> None:
    seen: dict[str, str] = {}
    with Sandbox() as sandbox, serve_and_sign_in(sandbox, tmp_path) as (_, ann):
        ann.client.headers["Accept-Language"] = code

        def read_screen(path: str) -> None:
            seen[path] = read_visible_text(ann.open(path).text)

        def act(path: str, **fields: str) -> None:
            seen[f"POST {path}"] = read_visible_text(ann.post(path, fields).text)

        content = "\n".join((HEADINGS, *(f"{row},x" for row in ROWS))).encode()
        path = ann.upload("leute.csv", content)
        for step in ("table", "columns"):
            read_screen(f"{path}/{step}")
        act(f"{path}/columns")
        act(f"{path}/columns", **STEPS["columns"], **{"c:6": "internal_notes"})
        read_screen(f"{path}/values")
        act(f"{path}/values", **STEPS["values"])
        for step in ("rows", "rows/2", "look"):
            read_screen(f"{path}/{step}")
        act(f"{path}/rows", **{"e:2:2": "eva@muster.example"}, go="on")
        read_screen(f"{path}/look")
        for show in ("create", "duplicate", "invalid"):
            read_screen(f"{path}/look?show={show}")
        act(f"{path}/send")
        ann.open(f"{path}/look")
        act(f"{path}/send", accept="yes")
        read_screen(f"{path}/progress")
        while "/progress" in str(ann.shown.url):
            read_screen(f"{path}/progress")
        read_screen(f"{path}/result")
        for show in ("duplicate", "invalid"):
            read_screen(f"{path}/result?show={show}")
        read_screen(f"{path}/result?show=created")
        assert 3 == len(sandbox.store.records("candidates"))
        act(f"{path}/undo")
        while "/progress" in str(ann.shown.url):
            read_screen(f"{path}/progress")
        read_screen(f"{path}/undo")
        act(f"{path}/undo", go="on")
        read_screen(f"{path}/result")
        act(f"{path}/rest")
        for place in ("/history", "/", "/nowhere"):
            read_screen(place)
        for name, file in (("x.pdf", b"%PDF"), ("x.xlsx", b"PK"), ("x.csv", b"A,B\n")):
            ann.upload(name, file)
            seen[name] = read_visible_text(ann.shown.text)
        act("/imports", resource="candidates", mode="convert", pasted="a")
    assert len(seen) > 20
    for place, text in seen.items():
        assert not find_english_words(text, code), (place, find_english_words(text, code), text)


@pytest.mark.slow
@pytest.mark.parametrize("code", LANGUAGES)
@pytest.mark.parametrize("name", ["leute.csv", "leute.xlsx"])
def test_a_translated_report_can_be_imported_again(code: str, name: str, tmp_path: Path) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    table = HEADINGS.removesuffix(",Merkfeld").split(",")
    rows = [row.split(",") for row in ROWS]
    content = "\n".join(map(",".join, (table, *rows))).encode()
    if name.endswith("xlsx"):
        book = openpyxl.Workbook()
        sheet = book.active
        assert isinstance(sheet, Worksheet)
        for cells in (table, *rows):
            sheet.append(cells)
        book.save(folder / name)
        content = (folder / name).read_bytes()
    with Sandbox() as sandbox, serve_and_sign_in(sandbox, tmp_path) as (page, ann):
        ann.client.headers["Accept-Language"] = code
        path = ann.upload(name, content)
        for step, form in STEPS.items():
            ann.open(f"{path}/{step}")
            ann.post(f"{path}/{step}", form)
        ann.open(f"{path}/look")
        ann.post(f"{path}/send", {"accept": "yes"})
        while "/progress" in str(ann.open(f"{path}/progress").url):
            pass
        report = folder / f"report{Path(name).suffix}"
        report.write_bytes(ann.client.get(f"{path}/get/report").content)
        shown = open_table(report)
        assert shown.is_report
        assert table == list(shown.headings)
        assert rows == [list(map(text_of, row.cells)) for row in shown.rows()]
        if code != "en":
            assert not find_english_words(read_report_words(report), code), read_report_words(
                report
            )
        again = ann.upload(report.name, report.read_bytes())
        checked = page.reader.check_rows(page.drafts.load(again.rpartition("/")[2])).future.result()
        assert {"unchanged": 2, "duplicate": 1, "invalid": 2} == {**checked.preview.summary.counts}


def read_report_words(path: Path) -> str:
    """Return the words of a report except the file's own cells, codes and ids."""
    if path.suffix == ".csv":
        with path.open(encoding="utf-8-sig", newline="") as file:
            cells = [line[6:] for line in csv.reader(file)]
        return " ".join(" ".join((*line[:2], *line[3:5])) for line in cells).replace("_", " ")
    book = openpyxl.load_workbook(path)
    first, second = book.worksheets
    texts = [*book.sheetnames, *(str(c.value or "") for row in first.iter_rows() for c in row)]
    for row in second.iter_rows():
        texts += [str(row[at].value or "").replace("_", " ") for at in (6, 7, 9, 10)]
        texts += [cell.comment.text for cell in row if cell.comment]
    return " ".join(texts)
