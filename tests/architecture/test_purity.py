"""The steps of pulls and pushes decide from their arguments alone.

Import-linter forbids the modules of the clock, chance, files and network; this test forbids the
calls that need no such import.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator

import pytest

from tests.repository import ROOT, TextFile

CONTRACT = "The steps of pulls and pushes import no clock, chance, file or network"
CLOCK = re.compile(r"(?:^|\.)(?:datetime|date)\.(?:now|utcnow|today)$")
BUILTINS = frozenset(("open", "print", "input"))


def find_impure_calls(file: TextFile) -> Iterator[str]:
    """Yield an error for each call that reads a clock, a file or a terminal."""
    for node in ast.walk(file.syntax):
        if isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            if called in BUILTINS or CLOCK.search(called):
                yield f"{file.path}:{node.lineno}: take the result of {called}() as an argument"


def test_steps_call_no_clock_file_or_terminal() -> None:
    tools = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]
    (pure,) = (
        each["source_modules"]
        for each in tools["importlinter"]["contracts"]
        if each["name"] == CONTRACT
    )
    paths = [f"{module.replace('.', '/')}.py" for module in pure]
    files = [TextFile(path, (ROOT / path).read_text("utf-8")) for path in paths]

    assert "connector/pulls/pull.py" in paths
    assert [] == [call for file in files for call in find_impure_calls(file)]


@pytest.mark.parametrize(
    "call", ["datetime.now(UTC)", "datetime.datetime.now()", "date.today()", "open('x')"]
)
def test_the_check_finds_each_impure_call(call: str) -> None:
    assert [f"a.py:2: take the result of {call.split('(', maxsplit=1)[0]}() as an argument"] == [
        *find_impure_calls(
            TextFile("a.py", f"\nx = {call}\ny = datetime.fromisoformat('2026-01-01')")
        )
    ]
