"""Completion and manual pages, made from the commands.

Both are made from the commands themselves, so that neither can say anything else than `--help`.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import click
from click.shell_completion import get_completion_class

from connector.cli import main
from connector.cli.session import Command, Session
from connector.errors import naming
from connector.system.atomic_files import replacing

_PROGRAM = "connector"
_SHELLS = ("bash", "zsh", "fish")
_EXIT_STATUSES = (
    "0 done; 1 failed; 2 wrong usage or settings; 3 done in part; 4 stopped at a limit, run it"
    " again to continue; 130 interrupted."
)


@click.command(
    cls=Command,
    is_for_account=False,
    examples=(
        "connector completion bash > ~/.connector-completion",
        "connector completion fish | source",
    ),
)
@click.argument("shell", type=click.Choice(_SHELLS))
def completion(session: Session, *, shell: str) -> int:
    """Print what makes a shell complete commands and options.

    Let the shell's start-up file read what is printed: 'source ~/.connector-completion'.
    """
    kind = get_completion_class(shell)
    assert kind is not None
    source = kind(main, {}, _PROGRAM, f"_{_PROGRAM.upper()}_COMPLETE").source()
    session.terminal.print_object({"shell": shell, "script": source})
    for line in source.splitlines():
        session.terminal.print_line(line)
    return 0


@click.command(cls=Command, is_for_account=False, examples=("connector manual",))
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="FOLDER",
    help="Where to write them (default: share/man/man1 beside the program, where man looks).",
)
def manual(session: Session, *, out: Path | None) -> int:
    """Write a manual page for each command, for 'man connector-pull' and its like."""
    folder = (out or Path(sys.prefix) / "share" / "man" / "man1").absolute()
    written = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for context in _contexts(click.Context(main, info_name=_PROGRAM)):
            path = folder / f"{context.command_path.replace(' ', '-')}.1"
            with replacing(path) as file:
                file.write(page_of(context).encode())
            # Manuals are for everybody on the machine.
            path.chmod(0o644)
            written.append(path)
    except OSError as error:
        raise naming(folder, error) from error
    session.terminal.print_object({"files": written})
    session.terminal.print_line(f"{len(written)} pages in {folder}")
    return 0


def _contexts(context: click.Context) -> Iterator[click.Context]:
    """The context of the command, and of all below it."""
    yield context
    if isinstance(context.command, click.Group):
        for name in context.command.list_commands(context):
            below = context.command.get_command(context, name)
            assert below is not None
            yield from _contexts(click.Context(below, info_name=name, parent=context))


def page_of(context: click.Context) -> str:
    """The manual page of a command, in the language of `man`."""
    command, path = context.command, context.command_path
    title, release = path.replace(" ", "-"), version("recruitment-connector")
    usage = " ".join(command.collect_usage_pieces(context))
    lines = [f'.TH "{title.upper()}" 1 "" "{release}" "Recruitment Connector"', ".SH NAME"]
    lines += [_text(f"{title} - {command.get_short_help_str(200)}"), ".SH SYNOPSIS"]
    lines += [f".B {_text(path)}", _text(usage), ".SH DESCRIPTION"]
    for paragraph in inspect.cleandoc(command.help or "").split("\n\n"):
        lines += [_text(" ".join(paragraph.split())), ".PP"]
    records = [each.get_help_record(context) for each in command.get_params(context)]
    lines += [".SH OPTIONS"]
    for names, about in filter(None, records):
        lines += [".TP", f".B {_text(names)}", *filter(None, [_text(about)])]
    if isinstance(command, click.Group):
        lines += [".SH COMMANDS"]
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            about = "" if below is None else below.get_short_help_str(200)
            lines += [".TP", f".B {_text(f'{title}-{name}')}(1)", _text(about)]
    if isinstance(command, Command):
        lines += [".SH EXAMPLES", ".nf", *map(_text, command.examples), ".fi"]
    return "\n".join([*lines, ".SH EXIT STATUS", _text(_EXIT_STATUSES)]) + "\n"


def _text(text: str) -> str:
    """Text as `man` shows it as it is: nothing in it is a request or an escape."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-")
    lines = escaped.split("\n")
    return "\n".join(f"\\&{each}" if each.startswith((".", "'")) else each for each in lines)
