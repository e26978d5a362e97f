"""docs/PULL.md explains every kind of event that a pull records."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.catalog.document import list_quoted_words, parse_tables
from tests.repository import ROOT, Repository, TextFile

NOTES = ("Event",)
"""What is called with an event's kind first."""


def find_event_kinds(file: TextFile) -> Iterator[str]:
    """Return the kinds of events that a source file records."""
    named: dict[str, list[str]] = {}
    for node in ast.walk(file.syntax):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            texts = [n.value for n in ast.walk(node.value) if isinstance(n, ast.Constant)]
            named.setdefault(node.targets[0].id, []).extend(t for t in texts if isinstance(t, str))
    for node in ast.walk(file.syntax):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.args:
            first = node.args[0]
            if node.func.id in NOTES and isinstance(first, ast.Constant):
                yield str(first.value)
            elif node.func.id in NOTES and isinstance(first, ast.Name):
                yield from named[first.id]


def test_every_kind_of_event_is_documented() -> None:
    page = (ROOT / "docs" / "PULL.md").read_text(encoding="utf-8")
    noted = {
        kind
        for file in Repository(ROOT).select(".py", inside="connector/")
        for kind in find_event_kinds(file)
        if not file.path.startswith("connector/sandbox/")
    }
    table = next(t for t in parse_tables(page) if t.header[0] == "Kind")
    explained = [list_quoted_words(row["Kind"])[0] for row in table.rows_as_dicts()]

    assert sorted(noted) == sorted(explained)
    assert {"deleted", "unknown_field", "unknown_value"} <= noted
    for row in table.rows_as_dicts():
        assert row["What was found"].endswith(".")
        assert len(row["What to do"]) > 10
