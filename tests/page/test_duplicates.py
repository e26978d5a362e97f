"""Rows of a file that are the same record: both are shown, and a person chooses one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import pytest

from connector.sandbox.server import Sandbox
from tests.page.serving import PageUser, signed_in

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
    """An API with nobody in it."""
    with Sandbox() as opened:
        yield opened


def begun(person: PageUser) -> str:
    """An import whose rows 4 and 6 are duplicates of row 2, and row 5 of row 3; its path."""
    path = person.begin("people.csv", "\n".join((HEADINGS, *LINES)).encode())
    person.post(f"{path}/columns", COLUMNS)
    return path


def text_of(page: str) -> str:
    """The text of a page, without its tags."""
    return " ".join(unescape(re.sub("<[^>]+>", " ", page)).split())


def cities(sandbox: Sandbox) -> list[str]:
    """Everybody's city."""
    return sorted(each["city"] for each in sandbox.store.records("candidates").values())


def sent(person: PageUser, path: str) -> None:
    """Send what is left."""
    person.post(f"{path}/rows", {"go": "on"})
    person.see(f"{path}/look")
    person.post(f"{path}/send")
    person.see(f"{path}/progress")


def test_rows_that_are_the_same_record_are_shown_and_chosen(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    with signed_in(sandbox, tmp_path) as (_, ann):
        path = begun(ann)
        assert ann.shown.url.path.endswith("/rows")
        shown = text_of(ann.shown.text)
        assert "Email: bo@example.com Row to import Email City" in shown
        for row in ("Row 2 bo@example.com Bath", "Row 4 BO@example.com Leeds", "Row 6"):
            assert row in shown
        assert "All cells of these rows are the same." in shown
        kind = {"kind": "problem~duplicate_in_file~Email"}
        ann.post(f"{path}/twins", {**kind, "keep:2": "4", "keep:3": ""})
        ann.post(f"{path}/rows", {"go": "on"})
        shown = text_of(ann.see(f"{path}/look").text)
    assert "City Leeds" in shown
    assert "City Bath" not in shown
    assert "Create 2 candidates" in shown


@pytest.mark.slow
@pytest.mark.parametrize(
    ("every", "imported"),
    [("first", ["Bath", "Ely", "York"]), ("last", ["Derby", "Ely", "York"]), ("none", ["Ely"])],
)
def test_one_answer_counts_for_all_duplicates(
    sandbox: Sandbox, tmp_path: Path, every: str, imported: list[str]
) -> None:
    with signed_in(sandbox, tmp_path) as (_, ann):
        path = begun(ann)
        ann.post(f"{path}/twins", {"kind": "problem~duplicate_in_file~Email", "every": every})
        sent(ann, path)
    assert imported == cities(sandbox)


@pytest.mark.slow
def test_nobody_chooses_and_the_first_row_is_imported(sandbox: Sandbox, tmp_path: Path) -> None:
    with signed_in(sandbox, tmp_path) as (_, ann):
        path = begun(ann)
        sent(ann, path)
        shown = text_of(ann.see(f"{path}/result?show=duplicate").text)
        assert "The same record as row 2." in shown
        assert "The API has" not in shown
    assert ["Bath", "Ely", "York"] == cities(sandbox)
