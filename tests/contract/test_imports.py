"""The contract tests know nothing of the connector's modules, so that a rewrite can use them."""

from __future__ import annotations

import ast
import types
from collections.abc import Iterator
from pathlib import Path

import connector

ALLOWED = {"connector.sandbox.server": {"kit.py"}, "pipelines.definitions": {"test_dagster.py"}}
"""Modules that the named files may import."""


def imports_of(path: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield each imported module of our packages with the imported names."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom):
            yield node.module or ".", [each.name for each in node.names]
        elif isinstance(node, ast.Import):
            yield from ((each.name, []) for each in node.names)


def test_contract_tests_import_public_names_only() -> None:
    public = {
        name for name, each in vars(connector).items() if not isinstance(each, types.ModuleType)
    }
    wrong = []
    for path in Path(__file__).parent.glob("*.py"):
        for module, names in imports_of(path):
            top = module.partition(".")[0]
            if top in ("connector", "pipelines", "generate", "benchmarks"):
                is_public = module == "connector" and {*names} <= public
                if not is_public and path.name not in ALLOWED.get(module, ()):
                    wrong.append(f"{path.name}: {module} {names}")
            elif top in ("tests", ".") and not module.startswith("tests.contract"):
                wrong.append(f"{path.name}: {module}")
    assert [] == wrong
