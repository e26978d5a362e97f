"""Every kind of event that a pull may note is explained, and so is every way in which a command
may end.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import click
import pytest

from connector.cli import COMMANDS, INTERRUPTED, main
from connector.errors import ConnectorError
from tests.catalog.document import quoted, read_tables
from tests.house.test_errors import classes
from tests.house.tree import ROOT, Source, Tree

NOTES = ("Event", "Oddity")
"""What is called with an event's kind first."""


def kinds(source: Source) -> Iterator[str]:
    """The kinds of event that a file of the code notes, as they stand in it."""
    named: dict[str, list[str]] = {}
    for node in ast.walk(source.syntax):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            texts = [n.value for n in ast.walk(node.value) if isinstance(n, ast.Constant)]
            named.setdefault(node.targets[0].id, []).extend(t for t in texts if isinstance(t, str))
    for node in ast.walk(source.syntax):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.args:
            first = node.args[0]
            if node.func.id in NOTES and isinstance(first, ast.Constant):
                yield str(first.value)
            elif node.func.id in NOTES and isinstance(first, ast.Name):
                yield from named[first.id]


def page(name: str) -> str:
    """A page of the documents."""
    return (ROOT / "docs" / name).read_text(encoding="utf-8")


def test_every_kind_of_event_is_explained() -> None:
    """docs/PULL.md has one row for each kind, with what it means and what to do, and no other."""
    noted = {
        kind
        for source in Tree(ROOT).select(".py", inside="connector/")
        for kind in kinds(source)
        if not source.path.startswith(("connector/sandbox/", "connector/publishing/"))
    }
    table = next(t for t in read_tables(page("PULL.md")) if t.header[0] == "Kind")
    explained = [quoted(row["Kind"])[0] for row in table.records()]

    assert sorted(noted) == sorted(explained)
    assert {"deleted", "unknown_field", "unknown_value", "suppressed"} <= noted
    for row in table.records():
        assert row["What was noticed"].endswith(".")
        assert len(row["What to do"]) > 10


def test_operations_recover_from_every_exit_status() -> None:
    """docs/OPERATIONS.md says what to do after every exit status that a command may have."""
    table = next(t for t in read_tables(page("OPERATIONS.md")) if t.header[0] == "Exit status")
    told = [int(row["Exit status"]) for row in table.records()]
    declared = {each.exit_status for each in classes()} | {0, 3, INTERRUPTED}

    assert sorted(declared) == told
    assert all(row["What to do"] for row in table.records())


def test_operations_recover_from_every_error() -> None:
    """Every error's code stands once in the page's table of what to do beyond the error's own
    sentence, or under the sentence that says that this is enough.
    """
    table = next(t for t in read_tables(page("OPERATIONS.md")) if t.header[0] == "Codes")
    told = [code for row in table.records() for code in quoted(row["Codes"])]
    codes = [each.code for each in classes() if each is not ConnectorError]

    assert sorted(codes) == sorted(told)


def calls() -> list[str]:
    """Every call of the command in the consoles of the page."""
    blocks = re.findall(r"```(?:console|sh)\n(.*?)```", page("OPERATIONS.md"), re.DOTALL)
    lines = [line.removeprefix("$ ").strip() for b in blocks for line in b.split("\n")]
    return [line for line in lines if line.startswith("connector ") and line.split()[1][0] != "-"]


@pytest.mark.parametrize("line", calls())
def test_every_call_of_the_page_can_be_given_so(line: str) -> None:
    """Each command on the page is one that there is, with these very options."""
    words = line.split()[1:]
    group = click.Context(main)
    command = main.get_command(group, words[0])

    assert command is not None, line
    command.make_context(words[0], words[1:], parent=group)


def test_every_command_is_on_a_page() -> None:
    """Each command is shown on a page that people read."""
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    text = "\n".join(path.read_text(encoding="utf-8") for path in pages)

    assert [] == [name for name in COMMANDS if f"connector {name}" not in text]
