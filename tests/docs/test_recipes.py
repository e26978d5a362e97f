"""The recipes name files and functions that exist."""

from __future__ import annotations

import re

from tests.repository import ROOT


def test_recipes_name_existing_files_and_functions() -> None:
    for line in (ROOT / "docs" / "RECIPES.md").read_text(encoding="utf-8").splitlines():
        names = re.findall(r"`([\w/]+/\w+\.py)`", line)
        files = [next(f for f in (ROOT / n, ROOT / "connector" / n) if f.exists()) for n in names]
        text = "".join(file.read_text(encoding="utf-8") for file in files)
        cell = line.split("|")[-2] if line.startswith("| ") else ""
        functions = re.findall(r"`([a-z_]+)`", cell)
        assert [] == [each for each in functions if f"def {each}(" not in text], line
