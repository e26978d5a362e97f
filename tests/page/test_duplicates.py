"""Duplicate rows in a file: the page shows them, and the user chooses one."""

from __future__ import annotations

from pathlib import Path

import pytest

from connector.sandbox.server import Sandbox
from tests.page.serving import COLUMNS as FIRST_COLUMNS
from tests.page.serving import PageUser, serve_and_sign_in, strip_tags

HEADINGS = "First name,Last name,Email,Employment type,City"
COLUMNS = {**FIRST_COLUMNS, "c:4": "city"}
LINES = (
    *("Bo,Li,bo@example.com,permanent,Bath", "Cy,Lo,cy@example.com,permanent,York"),
    *("Bo,Li,BO@example.com,permanent,Leeds", "Cy,Lo,cy@example.com,permanent,York"),
    *("Bo,Li,bo@example.com,permanent,Derby", "Di,My,di@example.com,permanent,Ely"),
)


def start_import(user: PageUser) -> str:
    """Start an import whose rows 4 and 6 duplicate row 2, and row 5 row 3. Returns its path."""
    path = user.upload("people.csv", "\n".join((HEADINGS, *LINES)).encode())
    user.post(f"{path}/columns", COLUMNS)
    return path


def read_cities(sandbox: Sandbox) -> list[str]:
    """Return the cities of all candidates."""
    return sorted(each["city"] for each in sandbox.store.records("candidates").values())


def send_import(user: PageUser, path: str) -> None:
    """Continue an import from its rows, and send it."""
    user.post(f"{path}/rows", {"go": "on"})
    user.open(f"{path}/look")
    user.post(f"{path}/send")
    user.open(f"{path}/progress")


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
