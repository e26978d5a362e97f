"""The page of every command and option, `docs/COMMANDS.md`, from the commands themselves."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator

import click

from connector.cli import main
from generate.files import COMMAND, Texts
from generate.json_fields import JSON_FIELDS

_HEAD = f"""# Commands

For everyone who uses the terminal. Look up here each command and option, as `--help` shows them.
`{COMMAND}` writes this page from the code. [Errors](ERRORS.md) explains the exit statuses.
"""


def command_reference() -> Texts:
    """The page."""
    parts = [
        _HEAD,
        *(part for name, each in _named(main, "connector") for part in _told(name, each)),
    ]
    return {"docs/COMMANDS.md": "\n".join(parts)}


def _named(command: click.Command, name: str) -> Iterator[tuple[str, click.Command]]:
    """A command and those below it; a group that does nothing itself is left out."""
    if not isinstance(command, click.Group):
        yield name, command
        return
    context = click.Context(command, info_name=name)
    if command.invoke_without_command:
        yield name, command
    for below in command.list_commands(context):
        found = command.get_command(context, below)
        if found is not None and not found.hidden:
            yield from _named(found, f"{name} {below}")


def _told(name: str, command: click.Command) -> Iterator[str]:
    context = click.Context(command, info_name=name)
    usage = " ".join(command.collect_usage_pieces(context))
    yield f"## {name}\n\n```\n{name} {usage}\n```\n"
    for paragraph in inspect.cleandoc(command.help or "").split("\n\n"):
        words = paragraph.replace("\f", "").strip("\n")
        if words.startswith("\b"):
            yield f"```\n{words.removeprefix(chr(8)).strip(chr(10))}\n```\n"
        elif words:
            yield f"{_escaped(' '.join(words.split()))}\n"
    rows = [each.get_help_record(context) for each in command.get_params(context)]
    told = [each for each in rows if each is not None and "--help" not in each[0]]
    if told:
        lines = [
            f"| `{option.replace('|', chr(92) + '|')}` | {_escaped(help)} |"
            for option, help in told
        ]
        yield "\n".join(("| Option | Meaning |", "|---|---|", *lines)) + "\n"
    for option, fields in JSON_FIELDS.get(name.removeprefix("connector "), {}).items():
        listed = ", ".join(
            f"`{field.removesuffix('?')}`{' (if any)' if field.endswith('?') else ''}"
            for field in fields.split()
        )
        yield f"Fields of `--json`{f' with {option}' if option else ''}: {listed}.\n"


def _escaped(words: str) -> str:
    """Words of help as Markdown: they mean what they say."""
    return re.sub(r"([|<*_])", r"\\\1", " ".join(words.split()))
