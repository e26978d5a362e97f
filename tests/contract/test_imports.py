"""The contract tests know nothing of the connector's modules, so that a rewrite can use them."""

from __future__ import annotations

import ast
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


def test_every_public_name_can_be_imported_and_is_declared_for_type_checkers() -> None:
    declared = {
        f"{module}.{name}"
        for module, names in imports_of(Path(connector.__file__))
        for name in names
        if module.startswith("connector.")
    }
    found = {f"{module_of(name)}.{name}" for name in dir(connector)}

    assert declared == found
    assert [] == [name for name in dir(connector) if getattr(connector, name, None) is None]


def module_of(name: str) -> str:
    """Return the module from which the front door takes a public name."""
    table: dict[str, str] = vars(connector)["_MODULES"]
    return f"connector.{table[name]}"


def test_contract_tests_import_public_names_only() -> None:
    public = {*dir(connector)}
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
