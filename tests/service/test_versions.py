"""Version numbers in the changelog and the documents match the code."""

from __future__ import annotations

import re
import tomllib

from connector.operations.backup import FORMAT
from connector.state.database import VERSION
from connector.warehouse.file import STORAGE_VERSION
from connector.warehouse.schema import SCHEMA_VERSION
from tests.repository import ROOT


def test_the_changelog_starts_with_the_package_version() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")

    assert [project["version"]] == re.findall(r"^## (\S+)", changelog, re.MULTILINE)[:1]


def test_documented_schema_versions_match_the_files() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `?([\w.]+|backups)\b[^|]*\| (.+?) \|", text, re.MULTILINE))

    assert rows["work.duckdb"].startswith(f"{SCHEMA_VERSION}, ")
    assert f"stored as DuckDB {STORAGE_VERSION}" in rows["work.duckdb"]
    assert f"this version opens {SCHEMA_VERSION}, " in text
    assert rows["state.sqlite"].startswith(f"{VERSION}, ")
    assert rows["backups"].startswith(f"{FORMAT}, ")
