"""Every link from one document to another leads to a file and a heading that exist."""

from __future__ import annotations

import re
from pathlib import Path

from tests.repository import ROOT, Repository, TextFile


def find_anchors(page: str) -> set[str]:
    """Return the anchors of a page's headings."""
    headings = re.findall(r"^#+ (.+)$", page, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", h.lower()).strip().replace(" ", "-") for h in headings}


def find_broken_links(page: TextFile, root: Path) -> list[str]:
    """Return the relative links of a page whose target is missing."""
    broken = []
    text = re.sub(r"```.*?```", "", page.text, flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        file = (root / page.path).parent / path if path else root / page.path
        if not file.exists():
            broken.append(f"{page.path}: {target}: there is no such file")
        elif anchor and anchor not in find_anchors(file.read_text(encoding="utf-8")):
            broken.append(f"{page.path}: {target}: there is no such heading")
    return broken


def test_every_relative_link_has_a_target() -> None:
    assert [] == [
        each
        for document in Repository(ROOT).select(".md")
        for each in find_broken_links(document, ROOT)
    ]


def test_broken_links_are_found(tmp_path: Path) -> None:
    page = (
        "# A page, of *mine*\n[a](b.md) [b](#a-page-of-mine) [c](#gone) [d](https://acme.example)"
        "\n```\n[e](f.md)\n```\n[g](a.md#gone) [h](a.md)\n"
    )
    (tmp_path / "a.md").write_text(page, encoding="utf-8")

    assert [
        "a.md: b.md: there is no such file",
        "a.md: #gone: there is no such heading",
        "a.md: a.md#gone: there is no such heading",
    ] == find_broken_links(TextFile("a.md", page), tmp_path)
