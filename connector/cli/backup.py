"""`connector backup`: copy an account's folder to one file, while everything goes on.

Parses, calls, prints.
"""

from __future__ import annotations

import os
from pathlib import Path

import click

from connector.accounts import UNNAMED, configured_accounts
from connector.advice import explain
from connector.backup import Made, make_backup
from connector.cli import options
from connector.cli.session import Command, Session
from connector.errors import ConnectorError
from connector.settings import Settings


@click.command(
    cls=Command,
    examples=(
        "connector backup /mnt/backups",
        "connector backup /mnt/backups --keep 14",
        "connector backup /mnt/backups --all --keep 14 --json",
    ),
    if_interrupted="No backup was made; what was begun is cleared away by the next one.",
)
@click.argument("to", type=click.Path(path_type=Path, file_okay=False), metavar="TO")
@click.option(
    "--keep",
    type=click.IntRange(min=1),
    metavar="N",
    help="Remove the account's older backups in TO, but for N in all.",
)
@options.all_accounts
def backup(session: Session, *, to: Path, keep: int | None, is_for_all: bool) -> int:
    """Write everything that the API could not give again to one file in the folder TO.

    Work file with its history, ledger, published file, seeds, receipts and the inbox with its
    reports, with a manifest; no key of the API. It may be done while a pull or a push goes on, is
    read back before it has its name, and is readable by its owner alone: it holds personal data,
    of people too who are erased later.
    """
    terminal = session.terminal
    if not is_for_all:
        made = _made(session, session.load(), to, keep)
        if terminal.is_json:
            terminal.print_object(made.as_json())
        return 0
    status, told = 0, []
    for each in configured_accounts(os.environ, Path.cwd()):
        try:
            done = _made(session, each.required(), to, keep)
            told.append({**done.as_json(), "error": None})
        except ConnectorError as error:
            terminal.warn(f"{each.title}: {explain(error)}")
            told.append({"account": each.name, "error": error.as_json()})
            status = max(status, error.exit_status)
    if terminal.is_json:
        terminal.print_object({"accounts": told})
    return status


def _made(session: Session, settings: Settings, to: Path, keep: int | None) -> Made:
    terminal = session.terminal
    with terminal.progress("back up"):
        made = make_backup(settings, to, keep=keep)
    name = settings.account.value or UNNAMED
    size = made.file.stat().st_size
    terminal.print_line(f"{name}: {made.file} ({size:,} bytes, {len(made.manifest.entries)} files)")
    for each in made.removed:
        terminal.say(f"Removed: {each}")
    return made
