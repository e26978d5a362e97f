"""`connector doctor`: tell what could keep a pull from working, and what to do about it.

Parses, calls, prints.
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import click

from connector.cli import session as options
from connector.cli.session import Command, Session
from connector.cli.terminal import Terminal
from connector.engine.quota import shown
from connector.errors import ConnectorError
from connector.operations.backup import Made, make_backup
from connector.operations.backup_file import check_backup
from connector.operations.doctor import Examination, examine
from connector.operations.restore import Manner, Restored
from connector.operations.restore import restore as run_restore
from connector.pulls.advice import explain
from connector.settings.accounts import UNNAMED, configured_accounts
from connector.settings.model import Settings


@click.command(
    cls=Command,
    examples=(
        "connector doctor",
        "connector doctor --account acme --json",
        "connector doctor --all",
        "connector doctor --repair",
    ),
)
@click.option(
    "--repair",
    "repairs",
    is_flag=True,
    help="Set a damaged log of the work file aside, and keep it.",
)
@options.all_accounts
def doctor(session: Session, *, repairs: bool, is_for_all: bool) -> int:
    """Check settings, data folder, address, key, scopes, clock and limits, and what keeps it well.

    Among the latter are the age of the last backup, permissions, room on the disk, erasures that
    were cut off, and whether somebody listens where alerts go. It spends one request for each
    scope, and shows the key as "set" and in no other way. It changes nothing, unless --repair asks
    for it. With --all it has a line for each account and each thing that is not well.
    """
    if is_for_all:
        return _doctor_all(session, repairs)
    settings = session.load()
    with session.terminal.progress("examine"):
        found = asyncio.run(examine(settings, repairs=repairs))
    print_examination(session.terminal, found)
    return found.exit_status


def _doctor_all(session: Session, repairs: bool) -> int:
    """Every account, one after another; the exit status is the greatest of all."""
    terminal, status = session.terminal, 0
    rows: list[tuple[str, str, str, str]] = []
    told: list[dict[str, object]] = []
    for each in configured_accounts(os.environ, Path.cwd()):
        name = each.title
        try:
            settings = each.required()
        except ConnectorError as error:
            rows.append((name, "settings", "failed", explain(error)))
            told.append({"account": each.name, "error": error.as_json()})
            status = max(status, error.exit_status)
            continue
        with terminal.progress(f"examine {name}"):
            found = asyncio.run(examine(settings, repairs=repairs))
        status = max(status, found.exit_status)
        told.append({"account": each.name, **found.as_json()})
        rows += [(name, c.name, c.state, c.found) for c in found.checks if c.state != "ok"] or [
            (name, "all", "ok", f"{len(found.checks)} checks")
        ]
        for check in found.checks:
            if check.state != "ok" and check.action is not None:
                terminal.say(f"{name}, {check.name}: {check.action}")
    if terminal.is_json:
        terminal.print_object({"accounts": told, "exit_status": status})
    terminal.print_table(("account", "check", "state", "found"), rows)
    return status


def print_examination(terminal: Terminal, found: Examination) -> None:
    """The settings with their origins, the checks, and a sentence on what to do first."""
    if terminal.is_json:
        terminal.print_object(found.as_json())
    terminal.print_table(("setting", "value", "origin"), found.settings)
    terminal.print_line("")
    terminal.print_table(
        ("check", "state", "found"), [(c.name, c.state, c.found) for c in found.checks]
    )
    for check in found.checks:
        if check.action is not None:
            terminal.say(f"{check.name}: {check.action}")
    failed = [check.name for check in found.checks if check.state == "failed"]
    if failed:
        terminal.say(f"Not well: {', '.join(failed)}.")
    else:
        terminal.say(f"Well: 'connector pull' can work ({found.requests} requests were spent).")


# -- Backup ----------------------------------------------------------------------------------------
# `connector backup`: copy an account's folder to one file, while everything goes on.
#
# Parses, calls, prints.


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


# -- Restore ---------------------------------------------------------------------------------------
# `connector restore`: put an account's folder back from a backup.
#
# Parses, calls, prints. What stays and what is lost is decided in `connector/operations`.


@click.command(
    cls=Command,
    examples=(
        "connector restore /mnt/backups/connector-unnamed-20261121T030000Z.tar --check",
        "connector restore /mnt/backups/connector-unnamed-20261121T030000Z.tar",
        "connector restore connector-acme-20261121T030000Z.tar --account acme --replace",
    ),
    if_interrupted="Run it again: what was moved aside is in the folder replaced-... of the data"
    " folder.",
)
@click.argument("source", type=click.Path(path_type=Path, dir_okay=False), metavar="FROM")
@click.option(
    "--check", "checks", is_flag=True, help="Only read the backup, and say if it is whole."
)
@click.option(
    "--replace",
    "replaces",
    is_flag=True,
    help="Although there are files here already; they are moved aside, and not deleted.",
)
@click.option(
    "--with-ledger",
    "takes_ledger",
    is_flag=True,
    help="Take the backup's ledger, although the one that is here can be read and knows more.",
)
@click.option(
    "--receipts",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    metavar="FOLDER",
    help="Receipts of erasures that are kept elsewhere: whoever they are about is erased again.",
)
def restore(
    session: Session,
    *,
    source: Path,
    checks: bool,
    replaces: bool,
    takes_ledger: bool,
    receipts: Path | None,
) -> int:
    """Put the account's folder back as it was when the backup FROM was made.

    The backup is read and checked before anything is touched, and nothing is done while a pull or a
    push is under way. The ledger that is here stays where it can: it knows what was pushed, spent
    and erased since. Whoever was erased since is erased again before analysts see the file. Then
    run 'connector pull': it makes the copy exact again.
    """
    terminal = session.terminal
    if checks:
        found = check_backup(source)
        if terminal.is_json:
            terminal.print_object({"whole": True, **found.as_json()})
        whose = found.account or "the unnamed account"
        terminal.print_line(
            f"Whole: {len(found.entries)} files of {whose}, as of {shown(found.made_at)},"
            f" by version {found.version}."
        )
        return 0
    settings = session.load()
    with terminal.progress("restore"):
        done = run_restore(settings, source, Manner(replaces, takes_ledger, receipts))
    if terminal.is_json:
        terminal.print_object(done.as_json())
    _print(terminal, done)
    return done.exit_status


def _print(terminal: Terminal, done: Restored) -> None:
    ledger = "the ledger that was here stays" if done.ledger.keeps_live else "with its ledger"
    made_at = shown(done.manifest.made_at)
    terminal.print_line(f"Restored: {len(done.manifest.entries)} files as of {made_at}, {ledger}.")
    for sentence in done.lost:
        terminal.warn(sentence)
    if done.receipts:
        terminal.say(
            "People who were erased after the backup were in it, and were erased again:"
            f" {len(done.receipts)} receipts are in receipts/."
        )
    for path in done.waiting:
        terminal.warn(f"{path} waited in the inbox then: put it back if it is still to be pushed")
    if done.aside is not None:
        terminal.say(f"What was here is in {done.aside}; remove it when nobody needs it.")
    if done.error is None:
        terminal.say("Run 'connector pull': it makes the copy exact again.")
        return
    terminal.warn(f"it was not brought to its end: {done.error} [{done.error.code}]")
    terminal.say(
        f"  {done.error.action} Then run 'connector erase --apply', which goes on with whoever is"
        " to be erased, and 'connector publish'."
    )
