"""The command line: commands, their help and examples, and how errors are printed."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys

import click
import pytest

from connector.cli import COMMANDS, main
from connector.cli.session import Command, Session
from tests.repository import ROOT
from tests.support.command import call


def load_command(name: str) -> click.Command:
    """Return a command by its name; the name of a command in a group is GROUP COMMAND."""
    found: click.Command = main
    for word in name.split():
        assert isinstance(found, click.Group)
        below = found.get_command(click.Context(found), word)
        assert below is not None
        found = below
    return found


def list_command_names() -> list[str]:
    """Return the names of all commands; groups are replaced by their commands."""
    names = []
    for name in COMMANDS:
        found = load_command(name)
        below = list(found.commands) if isinstance(found, click.Group) else []
        names += [f"{name} {each}" for each in below] or [name]
    return names


def test_help_lists_every_command_without_importing_any() -> None:
    program = (
        "import sys; from connector.cli import main\n"
        "try: main(['--help'], prog_name='connector')\n"
        "finally: print(sorted(m for m in sys.modules if m.startswith('connector.')"
        " or m in ('duckdb', 'httpx', 'dagster', 'rich', 'openpyxl', 'numpy')))"
    )
    shown = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout

    assert list(COMMANDS) == [
        line.split()[0]
        for line in shown.splitlines()
        if re.match(r"  \w", line) and line.split()[0] in COMMANDS
    ]
    light = ("cli", "cli.stopping", "errors")
    assert str([f"connector.{each}" for each in light]) == shown.splitlines()[-1]


@pytest.mark.parametrize("name", list_command_names())
def test_every_command_has_help_with_an_example(name: str) -> None:
    words = name.split()
    called = call([*words, "--help"], {})

    assert 0 == called.status
    assert len(words) > 1 or COMMANDS[name].rstrip(".").split()[0] in called.out
    assert f"connector {name}" in called.out
    found = load_command(name)
    if isinstance(found, Command):
        for example in found.examples:
            typed = shlex.split(re.split(r" [|>]", example)[0])
            assert ["connector", *words] == typed[: 1 + len(words)]
            found.make_context(name, typed[1 + len(words) :])


@pytest.mark.parametrize("name", [name for name in list_command_names() if name != "sandbox"])
def test_every_command_has_the_options_json_and_debug(name: str) -> None:
    options = {option for each in load_command(name).params for option in each.opts}

    assert {"--json", "--debug"} <= options
    assert (name != "demo") == ("--account" in options)


@pytest.mark.parametrize("arguments", [["pul"], ["pull", "--jsno"], ["status", "jobs"]])
def test_wrong_usage_exits_with_status_2(arguments: list[str]) -> None:
    called = call(arguments, {})

    assert (2, "") == (called.status, called.out)
    assert arguments[-1] in called.err


def test_an_unexpected_exception_is_printed_as_one_sentence(
    capsys: pytest.CaptureFixture[str],
) -> None:
    @click.command(cls=Command, examples=())
    def broken_command(session: Session) -> int:
        raise ZeroDivisionError("jane@example.com")

    with pytest.raises(SystemExit) as ended:
        broken_command.main([], standalone_mode=False)
    shown = capsys.readouterr()

    assert 1 == ended.value.code
    assert "an unexpected error: ZeroDivisionError in test_command.py, line " in shown.err
    assert "jane@example.com" not in shown.err
    assert "Traceback" not in shown.err
