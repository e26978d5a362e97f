"""Every page of the documentation says for whom it is, stays short, and is in the navigation."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.repository import ROOT

DOCS = ROOT / "docs"
PAGES = sorted(DOCS.glob("*.md"))
LINES_MAX = 300
LONG = ("API.md", "COMMANDS.md", "DATA.md", "QUESTIONS.md")
"""Pages that may be longer: references that are generated or compared with the code."""

WORDS_MAX = 30
"""Words in the glossary."""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_page_starts_with_its_audience_and_is_short(page: Path) -> None:
    lines = page.read_text(encoding="utf-8").splitlines()

    assert lines[0].startswith("# ")
    assert lines[2].startswith("For "), lines[2]
    assert page.name in LONG or len(lines) <= LINES_MAX


def test_every_page_is_in_the_navigation_exactly_once() -> None:
    navigation = re.findall(r": (\w+)\.md$", (ROOT / "mkdocs.yml").read_text("utf-8"), re.MULTILINE)
    assert sorted(navigation) == sorted(set(navigation))
    assert {page.stem for page in PAGES} == set(navigation)


def test_the_glossary_is_short_and_sorted() -> None:
    text = (DOCS / "GLOSSARY.md").read_text(encoding="utf-8")
    words = re.findall(r"^\| ([a-z-][\w -]*) \|", text, re.MULTILINE)

    assert len(words) <= WORDS_MAX
    assert sorted(words) == words
