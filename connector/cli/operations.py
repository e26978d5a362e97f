"""`connector doctor`, `backup` and `restore`: check, back up and restore an account."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click

from connector.cli import options
from connector.cli.session import Command, Session
from connector.cli.terminal import Terminal
from connector.errors import ConnectorError, Misused
from connector.ledger.quota import format_moment
from connector.operations.backup import make_backup
from connector.operations.backup_file import check_backup, newest_backup
from connector.operations.doctor import FOLDERS, DoctorCheck, Examination, diagnose
from connector.operations.restore import RestoreOptions, RestoreResult
from connector.operations.restore import restore as run_restore
from connector.pulls.outcome import explain
from connector.settings.model import UNNAMED, ConfiguredAccount, Settings


@click.command(
    cls=Command,
    has_create_option=True,
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
    help="Move a damaged write-ahead log (work.duckdb.wal) to another file, and write missing "
    "receipts of erasures again.",
)
@click.option(
    "--new-ledger",
    "renews_ledger",
    is_flag=True,
    help="Replace a lost or damaged ledger, and list the information that is lost.",
)
@click.option(
    "--moved-to",
    metavar="ADDRESS",
    help="New address of the workspace whose records are in the data folder.",
)
@click.option(
    "--strict", "is_strict", is_flag=True, help="Exit with status 3 if a check has a warning."
)
@options.all_accounts
def doctor(
    session: Session,
    *,
    repairs: bool,
    renews_ledger: bool,
    moved_to: str | None,
    is_strict: bool,
    is_for_all: bool,
) -> int:
    """Check settings, data folder, API key, limits and alerts.

    Also checks the age of the last backup, file permissions, disk space and interrupted erasures.
    Sends one request per scope, and up to three more to find a loaded record in the workspace.
    Shows the API key only as "set". Changes nothing without --repair, --new-ledger or --moved-to.
    With --all, it prints one line per account, and one per problem.
    """

    def examined(settings: Settings) -> Examination:
        with session.terminal.progress(f"examine {settings.account.value or ''}".rstrip()):
            return asyncio.run(
                diagnose(settings, repairs=repairs, renews_ledger=renews_ledger, moved_to=moved_to)
            )

    if is_for_all and (renews_ledger or moved_to is not None):
        raise Misused(
            "--new-ledger and --moved-to cannot be combined with --all",
            action="Choose one account with --account.",
        )

    if is_for_all:
        every = list(session.for_each(examined, is_for_all=True))
        status = _print_examinations(session.terminal, every)
        warns = any(isinstance(each, Examination) and each.has_warnings for _, each in every)
        return 3 if not status and is_strict and warns else status
    found = examined(session.load())
    _print_examination(session.terminal, found)
    return 3 if not found.exit_status and is_strict and found.has_warnings else found.exit_status


def _print_examination(terminal: Terminal, found: Examination) -> None:
    """Print the settings with their origins, the checks and the next step."""
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
        terminal.say(f"Failed checks: {', '.join(failed)}.")
    else:
        terminal.say(f"OK: 'connector pull' can run ({found.requests} requests used).")


def _print_examinations(
    terminal: Terminal, examined: Iterable[tuple[ConfiguredAccount, Examination | ConnectorError]]
) -> int:
    """Print a line for each problem, and return the highest exit status."""
    rows, objects, status = list[tuple[str, str, str, str]](), list[dict[str, object]](), 0
    shared = list[DoctorCheck]()
    for account, found in examined:
        name, status = account.title, max(status, found.exit_status)
        if isinstance(found, ConnectorError):
            rows.append((name, "settings", "failed", explain(found)))
            objects.append({"account": account.name, "error": found.as_json()})
            continue
        objects.append({"account": account.name, **found.as_json()})
        wrong = [check for check in found.checks if check.state != "ok"]
        # A problem of the shared data folder is printed once.
        wrong = [check for check in wrong if check not in shared]
        shared += [check for check in wrong if check.name == FOLDERS]
        rows += [(name, each.name, each.state, each.found) for each in wrong] or [
            (name, "all", "ok", f"{len(found.checks)} checks")
        ]
        for each in wrong:
            if each.action is not None:
                terminal.say(f"{name}, {each.name}: {each.action}")
    terminal.print_object({"accounts": objects, "exit_status": status})
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
    if_interrupted="No backup was made. The next backup removes the incomplete file.",
)
@click.argument("to", type=click.Path(path_type=Path, file_okay=False), metavar="TO")
@click.option(
    "--keep",
    type=click.IntRange(min=1),
    metavar="N",
    help="Number of backups to keep. Older backups of the account in TO are deleted.",
)
@options.all_accounts
def backup(session: Session, *, to: Path, keep: int | None, is_for_all: bool) -> int:
    """Back up an account's folder to one file in the folder TO.

    Contains the work file with its history, ledger, published file, seeds, receipts, inbox and
    reports. Does not contain the API key. You can run it during a pull or a push. The backup is
    read again and checked before it gets its name. Only its owner can read it. It contains personal
    data, also of people who are erased later.
    """
    terminal, status, objects = session.terminal, 0, list[dict[str, Any]]()

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
            objects.append({"account": account.name, "error": made.as_json()})
            status = max(status, made.exit_status)
        else:
            objects.append({**made, "error": None} if is_for_all else made)
    terminal.print_object({"accounts": objects} if is_for_all else objects[0])
    return status


# -- Restore ---------------------------------------------------------------------------------------


@click.command(
    cls=Command,
    creates_folders=True,
    examples=(
        "connector restore /mnt/backups/connector-unnamed-20261121T030000Z.tar --check",
        "connector restore /mnt/backups/connector-unnamed-20261121T030000Z.tar",
        "connector restore connector-acme-20261121T030000Z.tar --account acme --replace",
    ),
    if_interrupted="Run the command again. Files that were moved aside are in the folder"
    " replaced-... of"
    " the data folder.",
)
@click.argument("source", type=click.Path(path_type=Path), metavar="FROM")
@click.option("--check", "checks", is_flag=True, help="Only check that the backup is complete.")
@click.option(
    "--replace",
    "replaces",
    is_flag=True,
    help="Replace existing files. The old files are moved to another folder, not deleted.",
)
@click.option(
    "--with-ledger",
    "takes_ledger",
    is_flag=True,
    help="Use the ledger of the backup even if the existing ledger is readable and newer.",
)
@click.option(
    "--receipts",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    metavar="FOLDER",
    help="Additional folder with receipts of erasures. These erasures are repeated.",
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
    """Restore an account's folder from the backup FROM.

    If FROM is a folder, its newest backup of the account is used.

    Checks the backup before it changes anything. Refuses to run during a pull or a push. Keeps the
    newer ledger, because it holds the pushes, requests and erasures since the backup. People who
    were erased since are erased again before the file is published. Then run 'connector pull' to
    update the copy.
    """
    terminal = session.terminal
    if checks:
        found = check_backup(
            newest_backup(source, session.load().account.value) if source.is_dir() else source
        )
        terminal.print_object({"whole": True, **found.as_json()})
        whose = found.account or "the unnamed account"
        terminal.print_line(
            f"The backup of {whose} is complete: {len(found.entries)} files, made at "
            f"{format_moment(found.made_at)} by version {found.version}."
        )
        return 0
    settings = session.load()
    source = newest_backup(source, settings.account.value)
    with terminal.progress("restore"):
        done = run_restore(settings, source, RestoreOptions(replaces, takes_ledger, receipts))
    terminal.print_object(done.as_json())
    _print_restored(terminal, done)
    return done.exit_status


def _print_restored(terminal: Terminal, done: RestoreResult) -> None:
    """Print the number of restored files, lost data and the next steps."""
    ledger = "the existing ledger was kept" if done.keeps_ledger else "the ledger was restored"
    made_at = format_moment(done.manifest.made_at)
    terminal.print_line(
        f"Restored {len(done.manifest.entries)} files of the backup made at {made_at}; {ledger}."
    )
    for sentence in done.lost:
        terminal.warn(sentence)
    if done.receipts:
        terminal.say(
            "The backup contained people who were erased after it was made. They were erased again "
            f"({len(done.receipts)} receipts in receipts/)."
        )
    for path in done.waiting:
        terminal.warn(
            f"{path} was in the inbox when the backup was made. To push it, copy it to the inbox "
            f"again"
        )
    if done.aside is not None:
        terminal.say(
            f"The replaced files are in {done.aside}. Delete the folder when you no longer need it."
        )
    if done.error is None:
        terminal.say("Run 'connector pull' to bring the copy up to date.")
        return
    terminal.warn(
        f"not all erasures were repeated in the restored files: {done.error} [{done.error.code}]"
    )
    terminal.say(
        f"  {done.error.action} Then run 'connector erase --apply' to complete them, and "
        "'connector publish'."
    )
