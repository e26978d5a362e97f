"""Column mappings that are saved under a name, and used for a file with other headings."""

from __future__ import annotations

from pathlib import Path

from connector.sandbox.server import Sandbox
from tests.page.serving import serve_and_sign_in

FIRST = b"Given,Family,Mail,Kind,Call\nBo,Li,bo@example.com,permanent,+44 7700 900123\n"
SECOND = b"Kind,Given,Family,Mail,Shoe size\npermanent,Cy,Li,cy@example.com,44\n"
FIELDS = ("first_name", "last_name", "email", "employment_type")
MATCHES = {f"c:{index}": name for index, name in enumerate((*FIELDS, "phone"))}


def test_a_saved_column_mapping_is_used_for_a_file_with_other_columns(tmp_path: Path) -> None:
    with Sandbox() as sandbox, serve_and_sign_in(sandbox, tmp_path) as (_, ann):
        path = ann.upload("first.csv", FIRST)
        assert "Saved matches" not in ann.open(f"{path}/columns").text
        ann.post(f"{path}/columns", {**MATCHES, "save_as": "Job fair"})

        path = ann.upload("second.csv", SECOND)
        assert "<option>Job fair</option>" in ann.open(f"{path}/columns").text
        ann.post(f"{path}/columns", {"use": "yes", "named": "Job fair"})
        shown = ann.open(f"{path}/columns").text

    chosen = [
        name
        for select in shown.split('<select name="c:')[1:]
        for name in FIELDS
        if f'<option value="{name}" selected' in select.partition("</select>")[0]
    ]
    assert ["employment_type", "first_name", "last_name", "email"] == chosen


def test_the_name_of_a_saved_mapping_cannot_point_outside_the_folder(tmp_path: Path) -> None:
    with Sandbox() as sandbox, serve_and_sign_in(sandbox, tmp_path) as (_, ann):
        path = ann.upload("first.csv", FIRST)
        ann.open(f"{path}/columns")
        refused = ann.post(f"{path}/columns", {**MATCHES, "save_as": "../secret"})
        gone = ann.post(f"{path}/columns", {"use": "yes", "named": "../secret"})

    assert "Use letters, digits, spaces and hyphens for the name." in refused.text
    assert "These saved matches no longer exist." in gone.text
    assert [] == [*tmp_path.rglob("secret*")]
