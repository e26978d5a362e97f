"""The website's reference, which is made from the code."""

from __future__ import annotations

from pathlib import Path

from generate.__main__ import REFERENCE, write_pages
from generate.files import ROOT


def test_the_website_has_every_page_and_adds_a_reference_to_some(tmp_path: Path) -> None:
    write_pages(tmp_path / "site")
    written = {each.name: each.read_text() for each in (tmp_path / "site").glob("*.md")}
    pages = {each.name: each.read_text() for each in (ROOT / "docs").glob("*.md")}

    assert pages.keys() <= written.keys()
    assert len(REFERENCE) == sum(text != pages.get(name) for name, text in written.items())
    for name, text in written.items():
        assert text.startswith(pages.get(name, ""))
        if text != pages.get(name):
            added = text.removeprefix(pages.get(name, "")).splitlines()
            assert len([line for line in added if line.startswith("| `")]) > 10, name
