"""Find and replace in a column, and one answer for a group of cells."""

from __future__ import annotations

from pathlib import Path

from connector.sandbox.server import Sandbox
from tests.page.serving import COLUMNS, PageUser, make_csv, serve_and_sign_in

LINES = (
    *("Bo,Li,bo(at)example.com,permanent", "Cy,Lo,cy(at)example.com,permanent"),
    *("Di,My,di@example.com,permanent", "Ed,Wu,ed(at)example.com,permanent"),
)
KIND = "problem~email_format~Email"


def start_import(user: PageUser) -> str:
    """Start an import with three invalid email addresses up to its rows. Returns its path."""
    path = user.upload("people.csv", make_csv(*LINES))
    user.post(f"{path}/columns", COLUMNS)
    return path


def test_find_and_replace_changes_every_cell_of_a_column(sandbox: Sandbox, tmp_path: Path) -> None:
    with serve_and_sign_in(sandbox, tmp_path) as (_, ann):
        path = start_import(ann)
        ann.post(f"{path}/rows", {"seen:5": "on", "out:5": "on"})
        form = {"kind": KIND, "column": "2", "find": "(at)", "replacement": "@"}
        ann.post(f"{path}/replace", form)
        # Columns without errors can be corrected as well, and rows that are skipped stay so.
        assert "2 cells were changed." in ann.shown.text
        assert "No errors." in ann.shown.text
        ann.post(f"{path}/replace", {"column": "1", "find": "My", "replacement": "May"})
        assert "1 cell was changed." in ann.shown.text
        shown = ann.open(f"{path}/look").text
        assert "Create 3 candidates" in shown
        assert "May" in shown


def test_an_empty_answer_for_a_group_of_cells_changes_nothing(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    with serve_and_sign_in(sandbox, tmp_path) as (page, ann):
        path = start_import(ann)
        assert 400 == ann.post(f"{path}/replace", {"column": "2", "find": ""}).status_code
        ann.open(f"{path}/rows")
        ann.post(f"{path}/group", {"kind": KIND, "fill": " "})
        (draft,) = page.drafts.load_all()
        assert {} == draft.edits
        assert draft.file == draft.original
