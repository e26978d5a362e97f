"""Counters of problems and warnings."""

from __future__ import annotations

import re
from pathlib import Path

from connector.sandbox.server import Sandbox
from tests.page.serving import COLUMNS as FIRST_COLUMNS
from tests.page.serving import serve_and_sign_in, strip_tags

LINES = (
    "First name,Last name,Email,Employment type,Date of birth",
    "Bo,Li,bo@example.com,permanent,2090-01-02",
    "Cy,Lo,cy,permanent,2091-01-02",
    "Di,My,di,permanent,1991-31-02",
    "Bo,Li,bo@example.com,permanent,2092-01-02",
)
COLUMNS = {**FIRST_COLUMNS, "c:4": "date_of_birth"}


def read_problem_kinds(page: str) -> list[str]:
    """Return each kind of problem that the page lists, with its count."""
    found = re.findall(r'<li><a href="\?kind=.*?</li>', page, re.DOTALL)
    return [strip_tags(each) for each in found]


def test_counters_of_problems_decrease_with_corrections(sandbox: Sandbox, tmp_path: Path) -> None:
    with serve_and_sign_in(sandbox, tmp_path) as (_, ann):
        path = ann.upload("people.csv", "\n".join(LINES).encode())
        ann.post(f"{path}/columns", COLUMNS)
        wrong, date, twin, warned = read_problem_kinds(ann.open(f"{path}/rows").text)
        assert ("2", "1", "1") == (wrong[-1], date[-1], twin[-1])
        # Rows that are wrong, and duplicates, have their warnings as well.
        assert warned.endswith("Warning 3")
        kind = {"kind": "problem~email_format~Email", "seen:4": "on"}
        ann.post(f"{path}/rows", {**kind, "e:4:2": "di@example.com"}, headers={"X-Part": "rows"})
        wrong, date, *_ = read_problem_kinds(ann.shown.text)
        assert ("1", "1") == (wrong[-1], date[-1])
        # The row is not right yet, and shows the cell that is wrong.
        assert 'name="e:4:4"' in ann.shown.text
        assert "Still has errors" in ann.shown.text
        ann.open(f"{path}/rows")
        ann.post(f"{path}/rows", {**kind, "e:4:4": "1991-02-03"}, headers={"X-Part": "rows"})
        wrong, date, *_ = read_problem_kinds(ann.shown.text)
        assert ("1", "✓") == (wrong[-1], date[-1])
