"""Find and replace in a column, and one answer for a group of cells."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from connector.sandbox.server import Sandbox
from tests.page.serving import PageUser, csv_of, signed_in

COLUMNS = {
    f"c:{index}": name
    for index, name in enumerate(("first_name", "last_name", "email", "employment_type"))
}
LINES = (
    *("Bo,Li,bo(at)example.com,permanent", "Cy,Lo,cy(at)example.com,permanent"),
    *("Di,My,di@example.com,permanent", "Ed,Wu,ed(at)example.com,permanent"),
)
KIND = "problem~email_format~Email"


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    """An API with nobody in it."""
    with Sandbox() as opened:
        yield opened


def begun(person: PageUser) -> str:
    """An import with three wrong email addresses; its path."""
    path = person.begin("people.csv", csv_of(*LINES))
    person.post(f"{path}/columns", COLUMNS)
    return path


def test_a_text_is_replaced_in_a_column(sandbox: Sandbox, tmp_path: Path) -> None:
    with signed_in(sandbox, tmp_path) as (_, ann):
        path = begun(ann)
        ann.post(f"{path}/rows", {"seen:5": "on", "out:5": "on"})
        said = {"kind": KIND, "column": "2", "find": "(at)", "replacement": "@"}
        ann.post(f"{path}/replace", said)
        # Columns without errors can be corrected as well, and rows that are skipped stay so.
        assert "2 cells were changed." in ann.shown.text
        assert "No errors." in ann.shown.text
        ann.post(f"{path}/replace", {"column": "1", "find": "My", "replacement": "May"})
        assert "1 cell was changed." in ann.shown.text
        shown = ann.see(f"{path}/look").text
        assert "Create 3 candidates" in shown
        assert "May" in shown


def test_an_answer_that_says_nothing_changes_nothing(sandbox: Sandbox, tmp_path: Path) -> None:
    with signed_in(sandbox, tmp_path) as (page, ann):
        path = begun(ann)
        assert 400 == ann.post(f"{path}/replace", {"column": "2", "find": ""}).status_code
        ann.see(f"{path}/rows")
        ann.post(f"{path}/group", {"kind": KIND, "fill": " "})
        (draft,) = page.drafts.all()
        assert {} == draft.edits
        assert draft.file == draft.original
