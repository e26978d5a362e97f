"""`connector doctor`, `backup`, `restore`, `account`: keep an account well.

Parses, calls, prints. What is looked at, stays or is lost is decided in `connector/operations`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click

from connector.cli import session as options
from connector.cli.session import Command, Session
from connector.cli.terminal import Terminal
from connector.engine.quota import shown
from connector.errors import ConnectorError, Misused
from connector.operations.backup import make_backup
from connector.operations.backup_file import check_backup, newest_backup
from connector.operations.doctor import FOLDERS, Check, Examination, diagnose
from connector.operations.restore import Restored, RestoreOptions
from connector.operations.restore import restore as run_restore
from connector.pulls.advice import explain
from connector.settings.accounts import UNNAMED, Configured
from connector.settings.model import Settings


@click.command(
    cls=Command,
    begins_accounts=True,
    examples=(
        "connector doctor",
        "connector doctor --account acme --json",
        "connector doctor --all",
        "connector doctor --repair",
        "connector doctor --new-ledger",
        "connector doctor --moved-to https://acme-london.example",
    ),
)
@click.option(
    "--repair",
    "repairs",
    is_flag=True,
    help="Set a damaged log of the work file aside, and keep it.",
)
@click.option(
    "--new-ledger",
    "renews_ledger",
    is_flag=True,
    help="Replace a lost or damaged ledger, and list what is forgotten.",
)
@click.option(
    "--moved-to",
    metavar="ADDRESS",
    help="New address of the workspace whose records are in the data folder.",
)
@options.all_accounts
def doctor(
    session: Session, *, repairs: bool, renews_ledger: bool, moved_to: str | None, is_for_all: bool
) -> int:
    """Check settings, data folder, address, key, scopes, clock, limits, upkeep.

    Among the latter are the age of the last backup, permissions, room on the disk, erasures that
    were cut off, and whether somebody listens where alerts go. It spends one request for each
    scope, one to three to find a record of the data folder in the workspace, and shows the key as
    "set" and in no other way. It changes nothing unless --repair, --new-ledger or --moved-to asks
    for it. With --all it has a line for each account and each thing that is not well.
    """

    def examined(settings: Settings) -> Examination:
        with session.terminal.progress(f"examine {settings.account.value or ''}".rstrip()):
            return asyncio.run(
                diagnose(settings, repairs=repairs, renews_ledger=renews_ledger, moved_to=moved_to)
            )

    if is_for_all and (renews_ledger or moved_to is not None):
        raise Misused(
            "--new-ledger and --moved-to are for one account", action="Choose it with --account."
        )

    if is_for_all:
        return _print_all(session.terminal, session.for_each(examined, is_for_all=True))
    found = examined(session.load())
    _print_examination(session.terminal, found)
    return found.exit_status


def _print_examination(terminal: Terminal, found: Examination) -> None:
    """The settings with their origins, the checks, and a sentence on what to do first."""
    terminal.print_object(found.as_json())
    terminal.print_table(("setting", "value", "origin"), found.settings)
    terminal.print_line()
    rows = [(check.name, check.state, check.found) for check in found.checks]
    terminal.print_table(("check", "state", "found"), rows)
    for check in found.checks:
        if check.action is not None:
            terminal.say(f"{check.name}: {check.action}")
    failed = [check.name for check in found.checks if check.state == "failed"]
    if failed:
        terminal.say(f"Not well: {', '.join(failed)}.")
    else:
        terminal.say(f"Well: 'connector pull' can work ({found.requests} requests were spent).")


def _print_all(
    terminal: Terminal, examined: Iterable[tuple[Configured, Examination | ConnectorError]]
) -> int:
    """A line for each thing that is not well; the exit status is the greatest of all."""
    rows, told, status = list[tuple[str, str, str, str]](), list[dict[str, object]](), 0
    shared = list[Check]()
    for account, found in examined:
        name, status = account.title, max(status, found.exit_status)
        if isinstance(found, ConnectorError):
            rows.append((name, "settings", "failed", explain(found)))
            told.append({"account": account.name, "error": found.as_json()})
            continue
        told.append({"account": account.name, **found.as_json()})
        wrong = [check for check in found.checks if check.state != "ok"]
        # What is so of the data folder is so for all of them.
        wrong = [check for check in wrong if check not in shared]
        shared += [check for check in wrong if check.name == FOLDERS]
        rows += [(name, each.name, each.state, each.found) for each in wrong] or [
            (name, "all", "ok", f"{len(found.checks)} checks")
        ]
        for each in wrong:
            if each.action is not None:
                terminal.say(f"{name}, {each.name}: {each.action}")
    terminal.print_object({"accounts": told, "exit_status": status})
    terminal.print_table(("account", "check", "state", "found"), rows)
    return status


# -- Backup ----------------------------------------------------------------------------------------


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
    terminal, status, told = session.terminal, 0, list[dict[str, Any]]()

    def back_up(settings: Settings) -> dict[str, Any]:
        with terminal.progress("back up"):
            made = make_backup(settings, to, keep=keep)
        shown = made.as_json()
        name = settings.account.value or UNNAMED
        terminal.print_line(
            f"{name}: {made.file} ({shown['bytes']:,} bytes, {shown['files']} files)"
        )
        for each in made.removed:
            terminal.say(f"Removed: {each}")
        return shown

    for account, made in session.for_each(back_up, is_for_all=is_for_all):
        if isinstance(made, ConnectorError):
            terminal.warn(f"{account.title}: {explain(made)}")
            told.append({"account": account.name, "error": made.as_json()})
            status = max(status, made.exit_status)
        else:
            told.append({**made, "error": None} if is_for_all else made)
    terminal.print_object({"accounts": told} if is_for_all else told[0])
    return status


# -- Restore ---------------------------------------------------------------------------------------


@click.command(
    cls=Command,
    makes_folders=True,
    examples=(
        "connector restore /mnt/backups/connector-unnamed-20261121T030000Z.tar --check",
        "connector restore /mnt/backups/connector-unnamed-20261121T030000Z.tar",
        "connector restore connector-acme-20261121T030000Z.tar --account acme --replace",
    ),
    if_interrupted="Run it again: what was moved aside is in the folder replaced-... of the data"
    " folder.",
)
@click.argument("source", type=click.Path(path_type=Path), metavar="FROM")
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

    If FROM is a folder, its newest backup of the account is used.

    The backup is read and checked before anything is touched, and nothing is done while a pull or a
    push is under way. The ledger that is here stays where it can: it knows what was pushed, spent
    and erased since. Whoever was erased since is erased again before analysts see the file. Then
    run 'connector pull': it makes the copy exact again.
    """
    terminal = session.terminal
    if checks:
        found = check_backup(
            newest_backup(source, session.load().account.value) if source.is_dir() else source
        )
        terminal.print_object({"whole": True, **found.as_json()})
        whose = found.account or "the unnamed account"
        terminal.print_line(
            f"Whole: {len(found.entries)} files of {whose}, as of {shown(found.made_at)},"
            f" by version {found.version}."
        )
        return 0
    settings = session.load()
    source = newest_backup(source, settings.account.value)
    with terminal.progress("restore"):
        done = run_restore(settings, source, RestoreOptions(replaces, takes_ledger, receipts))
    terminal.print_object(done.as_json())
    _print_restored(terminal, done)
    return done.exit_status


def _print_restored(terminal: Terminal, done: Restored) -> None:
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
