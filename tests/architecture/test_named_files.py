"""Modules that docstrings and comments name in backticks exist."""

from __future__ import annotations

import re

from tests.repository import ROOT

NAMED = re.compile(r"`((?:[a-z_]+/)*[a-z_]+\.py)`")
PLACES = ("connector", "pipelines", "tests", "benchmarks", "generate")


def test_modules_named_in_comments_and_docstrings_exist() -> None:
    files = [file for place in PLACES for file in (ROOT / place).rglob("*.py")]
    paths = [f"/{file.relative_to(ROOT).as_posix()}" for file in files]
    missing = [
        f"{file.relative_to(ROOT)}: {name}"
        for file in files
        for name in NAMED.findall(file.read_text(encoding="utf-8"))
        if not any(path.endswith(f"/{name}") for path in paths)
    ]

    assert len(files) > len(PLACES)
    assert [] == missing
