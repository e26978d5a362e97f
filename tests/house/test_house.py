"""The project keeps its own rules."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

import connector
from connector import errors, errors_api
from connector.errors import ConnectorError
from tests.house import layers, ratchets, style
from tests.house.trace import passed_by_a_pull, passed_by_a_push
from tests.house.tree import ROOT, Tree

PULL_FILES_MAX = 57
PUSH_FILES_MAX = 94
"""Files that a pull of one changed record and one created row pass today; the aim is 30 and 45."""

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
    """Every name that a checker is shown is there when it is asked for, every error among them."""
    text = (ROOT / "connector" / "__init__.py").read_text(encoding="utf-8")
    shown = re.findall(r"^    from \S+ import \w+ as (\w+)$", text, re.MULTILINE)
    raised = [
        name
        for home in (errors, errors_api)
        for name, each in vars(home).items()
        if isinstance(each, type) and issubclass(each, ConnectorError) and not name.startswith("_")
    ]

    assert {*shown, *raised} == {*connector.__all__}
    assert [] == [name for name in shown if not hasattr(connector, name)]


def test_figures_only_fall() -> None:
    """No figure of the house is above its limit, and no limit is left far above its figure."""
    assert "" == "\n".join(ratchets.too_high(ratchets.measured(TREE), ratchets.MOST))


def test_a_figure_that_rises_is_noticed() -> None:
    """A limit below its figure is an offence, and so is one far above it; an exact one is not."""
    (rises,) = ratchets.too_high({"lines": 1_000}, {"lines": 999})
    (falls,) = ratchets.too_high({"lines": 1_000}, {"lines": 1_100})

    assert [] == ratchets.too_high({"lines": 1_000}, {"lines": 1_000})
    assert "take some away" in rises
    assert "lower 1100" in falls


@pytest.mark.parametrize(
    ("trace", "most"), [(passed_by_a_pull, PULL_FILES_MAX), (passed_by_a_push, PUSH_FILES_MAX)]
)
def test_a_change_passes_few_files(
    trace: Callable[[Path], set[str]], most: int, tmp_path: Path
) -> None:
    """A pull of one changed record, and one created row, pass through no more of our files."""
    passed = trace(tmp_path)

    assert len(passed) <= most, sorted(passed)
    assert {"engine/walk.py", "warehouse/landing.py"} <= passed
