"""The pages on versions: they have the numbers that the files have, and the form that they name."""

from __future__ import annotations

import re
from pathlib import Path

from connector.ledger.ledger_schema import LATEST
from connector.operations.backup_file import FORMAT
from connector.warehouse.duckdb_file import STORAGE_VERSION
from connector.warehouse.schema import SCHEMA_VERSION

DOCS = Path(__file__).parents[2] / "docs"
KINDS = ["Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"]
"""The kinds of change of Keep a Changelog, in its order."""


def test_the_changelog_has_the_form_that_it_names() -> None:
    text = (DOCS / "CHANGELOG.md").read_text(encoding="utf-8")
    _, *versions = re.split(r"^## ", text, flags=re.MULTILINE)

    assert versions[0].startswith("[Unreleased]\n")
    for version in versions:
        title, _, body = version.partition("\n")
        kinds = re.findall(r"^### (.+)$", body, re.MULTILINE)
        assert re.fullmatch(r"\[Unreleased\]|\[\d+\.\d+\.\d+\] - \d{4}-\d{2}-\d{2}", title), title
        assert sorted(kinds, key=KINDS.index) == kinds
        assert len(set(kinds)) == len(kinds), "one kind of change stands twice: join them"
        assert len(kinds) == len(re.findall(r"^### .+\n- ", body, re.MULTILINE))


def test_the_files_have_the_numbers_that_the_page_says() -> None:
    text = (DOCS / "VERSIONS.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `?([\w.]+|backups)\b[^|]*\| (.+?) \|", text, re.MULTILINE))

    assert rows["work.duckdb"].startswith(f"{SCHEMA_VERSION}, ")
    assert f"stored as DuckDB {STORAGE_VERSION}" in rows["work.duckdb"]
    assert f"opens 1 to {SCHEMA_VERSION}, and brings them to {SCHEMA_VERSION} " in text
    assert rows["ledger.sqlite"].startswith(f"{LATEST}, ")
    assert rows["backups"].startswith(f"{FORMAT}, ")
