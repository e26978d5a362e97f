"""Duplicate rows in a file: the page shows them, and the user chooses one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import pytest

from connector.sandbox.server import Sandbox
from tests.page.serving import PageUser, serve_and_sign_in

HEADINGS = "First name,Last name,Email,Employment type,City"
COLUMNS = {
    f"c:{index}": name
    for index, name in enumerate(("first_name", "last_name", "email", "employment_type", "city"))
}
LINES = (
    *("Bo,Li,bo@example.com,permanent,Bath", "Cy,Lo,cy@example.com,permanent,York"),
    *("Bo,Li,BO@example.com,permanent,Leeds", "Cy,Lo,cy@example.com,permanent,York"),
    *("Bo,Li,bo@example.com,permanent,Derby", "Di,My,di@example.com,permanent,Ely"),
)


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    """Sandbox without candidates."""
    with Sandbox() as opened:
        yield opened


def start_import(person: PageUser) -> str:
    """Start an import whose rows 4 and 6 duplicate row 2, and row 5 row 3. Returns its path."""
    path = person.upload("people.csv", "\n".join((HEADINGS, *LINES)).encode())
    person.post(f"{path}/columns", COLUMNS)
    return path


def strip_tags(page: str) -> str:
    """Return the text of a page without its tags."""
    return " ".join(unescape(re.sub("<[^>]+>", " ", page)).split())


def read_cities(sandbox: Sandbox) -> list[str]:
    """Return the cities of all candidates."""
    return sorted(each["city"] for each in sandbox.store.records("candidates").values())


def send_import(person: PageUser, path: str) -> None:
    """Send the remaining rows."""
    person.post(f"{path}/rows", {"go": "on"})
    person.open(f"{path}/look")
    person.post(f"{path}/send")
    person.open(f"{path}/progress")


def test_duplicate_rows_are_shown_and_the_user_chooses_one(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    with serve_and_sign_in(sandbox, tmp_path) as (_, ann):
        path = start_import(ann)
        assert ann.shown.url.path.endswith("/rows")
        shown = strip_tags(ann.shown.text)
        assert "Email: bo@example.com Row to import Email City" in shown
        for row in ("Row 2 bo@example.com Bath", "Row 4 BO@example.com Leeds", "Row 6"):
            assert row in shown
        assert "All cells of these rows are the same." in shown
        kind = {"kind": "problem~duplicate_in_file~Email"}
        ann.post(f"{path}/twins", {**kind, "keep:2": "4", "keep:3": ""})
        ann.post(f"{path}/rows", {"go": "on"})
        shown = strip_tags(ann.open(f"{path}/look").text)
    assert "City Leeds" in shown
    assert "City Bath" not in shown
    assert "Create 2 candidates" in shown


@pytest.mark.slow
@pytest.mark.parametrize(
    ("every", "imported"),
    [("first", ["Bath", "Ely", "York"]), ("last", ["Derby", "Ely", "York"]), ("none", ["Ely"])],
)
def test_one_choice_can_apply_to_all_duplicates(
    sandbox: Sandbox, tmp_path: Path, every: str, imported: list[str]
) -> None:
    with serve_and_sign_in(sandbox, tmp_path) as (_, ann):
        path = start_import(ann)
        ann.post(f"{path}/twins", {"kind": "problem~duplicate_in_file~Email", "every": every})
        send_import(ann, path)
    assert imported == read_cities(sandbox)


@pytest.mark.slow
def test_the_first_duplicate_row_is_imported_by_default(sandbox: Sandbox, tmp_path: Path) -> None:
    with serve_and_sign_in(sandbox, tmp_path) as (_, ann):
        path = start_import(ann)
        send_import(ann, path)
        shown = strip_tags(ann.open(f"{path}/result?show=duplicate").text)
        assert "The same record as row 2." in shown
        assert "The API has" not in shown
    assert ["Bath", "Ely", "York"] == read_cities(sandbox)
