"""The website's page of every command and option, from the commands themselves."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator

import click

from connector.cli import main
from generate.files import Texts
from generate.json_fields import JSON_FIELDS

_HEAD = """# Commands

For everyone who uses the terminal. Look up here each command and option, as `--help` shows them.
[Errors](ERRORS.md) explains the exit statuses.
"""


def command_reference() -> Texts:
    """Return the page."""
    parts = [
        _HEAD,
        *(
            part
            for name, each in _visible_commands(main, "connector")
            for part in _command_section(name, each)
        ),
    ]
    return {"docs/COMMANDS.md": "\n".join(parts)}


def _visible_commands(command: click.Command, name: str) -> Iterator[tuple[str, click.Command]]:
    """Yield each command and its subcommands with full names, without hidden ones.

    A group is included only if it can run without a subcommand.
    """
    if not isinstance(command, click.Group):
        yield name, command
        return
    context = click.Context(command, info_name=name)
    if command.invoke_without_command:
        yield name, command
    for below in command.list_commands(context):
        found = command.get_command(context, below)
        if found is not None and not found.hidden:
            yield from _visible_commands(found, f"{name} {below}")


def _command_section(name: str, command: click.Command) -> Iterator[str]:
    """Yield a command's heading, help, options and `--json` fields as Markdown blocks."""
    context = click.Context(command, info_name=name)
    usage = " ".join(command.collect_usage_pieces(context))
    yield f"## {name}\n\n```\n{name} {usage}\n```\n"
    for paragraph in inspect.cleandoc(command.help or "").split("\n\n"):
        words = paragraph.replace("\f", "").strip("\n")
        if words.startswith("\b"):
            yield f"```\n{words.removeprefix(chr(8)).strip(chr(10))}\n```\n"
        elif words:
            yield f"{_escape_markdown(' '.join(words.split()))}\n"
    rows = [each.get_help_record(context) for each in command.get_params(context)]
    told = [each for each in rows if each is not None and "--help" not in each[0]]
    if told:
        lines = [
            f"| `{option.replace('|', chr(92) + '|')}` | {_escape_markdown(help)} |"
            for option, help in told
        ]
        yield "\n".join(("| Option | Meaning |", "|---|---|", *lines)) + "\n"
    for option, fields in JSON_FIELDS.get(name.removeprefix("connector "), {}).items():
        listed = ", ".join(
            f"`{field.removesuffix('?')}`{' (if any)' if field.endswith('?') else ''}"
            for field in fields.split()
        )
        yield f"Fields of `--json`{f' with {option}' if option else ''}: {listed}.\n"


def _escape_markdown(words: str) -> str:
    """Return the text on one line, with characters escaped that have a meaning in Markdown."""
    return re.sub(r"([|<*_])", r"\\\1", " ".join(words.split()))
