"""The project keeps its own rules."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import connector
from tests.house import layers, style
from tests.house.tree import ROOT, Tree

Rule = Callable[[Tree], list[str]]

TREE = Tree(ROOT)


@pytest.mark.parametrize("rule", [*style.RULES, *layers.RULES], ids=lambda rule: rule.__name__)
def test_project_keeps_the_rule(rule: Rule) -> None:
    """No file of the project offends against the rule; each offence says what to do instead."""
    offences = rule(TREE)

    assert "" == "\n".join(offences)


def test_tree_is_the_whole_project() -> None:
    """The rules read the project itself: its code, tests and documents, and no other's."""
    paths = {each.path for each in TREE.sources}

    assert {"pyproject.toml", "connector/catalog/resource.py", "docs/API.md", ".ci/run"} <= paths
    assert "tests/house/test_house.py" in paths
    assert [] == [path for path in paths if path.startswith((".venv/", ".git/"))]


def test_the_front_door_opens() -> None:
    """Every name that a checker is shown is there when it is asked for."""
    text = (ROOT / "connector" / "__init__.py").read_text(encoding="utf-8")
    shown = [line.split()[-1] for line in text.splitlines() if line.startswith("    from ")]

    assert shown == connector.__all__
    assert [] == [name for name in shown if not hasattr(connector, name)]
