"""`connector doctor`, `backup` and `restore`: check, back up and restore an account."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Any

import click

from connector.cli import options
from connector.cli.session import Command, Session
from connector.cli.terminal import Terminal
from connector.errors import DONE, PARTIAL, ConnectorError, count_noun
from connector.operations import backup as backups
from connector.operations.doctor import STATES, DoctorCheck, Examination, diagnose
from connector.pulls.report import explain
from connector.settings import UNNAMED, Settings
from connector.state.quota import format_moment


@click.command(
    cls=Command,
    has_create_option=True,
    examples=(
        "connector doctor",
        "connector doctor --account acme --json",
        "connector doctor --all --strict",
        "connector doctor --send-test",
        "connector doctor --settings",
    ),
)
@click.option(
    "--settings", "shows_settings", is_flag=True, help="Also show each setting with its origin."
)
@click.option("--send-test", "sends_test", is_flag=True, help="Send a test message to notify_urls.")
@click.option(
    "--strict", "is_strict", is_flag=True, help="Exit with status 3 if a check has a warning."
)
@options.all_accounts
def doctor(
    session: Session, *, shows_settings: bool, sends_test: bool, is_strict: bool, is_for_all: bool
) -> int:
    """Check settings, data folder, API key, limits, backups and notifications.

    Sends one request per scope. Shows failed checks first, and the API key only as "set". Repairs
    nothing: each problem has the command or the step that repairs it. With --all, it prints one
    line per account, and one per problem.
    """
    terminal = session.terminal

    def examine(settings: Settings) -> Examination:
        with terminal.progress(f"examine {settings.account or ''}".rstrip()):
            return asyncio.run(diagnose(settings, sends_test=sends_test))

    objects, status, checks, requests = list[dict[str, Any]](), DONE, list[DoctorCheck](), 0
    rows, actions = list[tuple[str, ...]](), list[str]()
    for account, found in session.for_each(examine, is_for_all=is_for_all):
        status = max(status, found.exit_status)
        if isinstance(found, ConnectorError):
            rows.append((account.title, "settings", "failed", explain(found)))
            objects.append({"account": account.name, "error": found.as_json()})
            continue
        objects.append(found.as_json() | ({"account": account.name} if is_for_all else {}))
        requests += found.requests
        if shows_settings:
            terminal.print_table(("setting", "value", "origin"), found.settings)
            terminal.print_line()
        shown = sorted(found.checks, key=lambda each: STATES.index(each.state))
        checks += shown
        if is_for_all:
            shown = [each for each in shown if each.state != "ok"]
            if not shown:
                rows.append((account.title, "all", "ok", f"{len(found.checks)} checks"))
        rows += [(account.title, each.name, each.state, each.found) for each in shown]
        title = f"{account.title}, " if is_for_all else ""
        actions += [f"{title}{each.name}: {each.action}" for each in shown if each.action]
    terminal.print_object(
        {"accounts": objects, "exit_status": status} if is_for_all else objects[0]
    )
    columns = ("account", "check", "state", "found")
    first = 0 if is_for_all else 1
    terminal.print_table(columns[first:], [row[first:] for row in rows])
    for action in actions:
        terminal.say(action)
    if failed := [each.name for each in checks if each.state == "failed"]:
        terminal.say(f"Failed checks: {', '.join(dict.fromkeys(failed))}.")
    elif not is_for_all:
        terminal.say(f"OK: 'connector pull' can run ({requests} requests used).")
    is_warned = any(each.state == "warning" for each in checks)
    return PARTIAL if status == DONE and is_strict and is_warned else status


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

    Contains the work file with its history, state, published file, seeds, inbox and report. Does
    not contain the API key. It waits up to 60 seconds for a pull or a push. The backup is read
    again and checked before it gets its name. Only its owner can read it. It contains personal
    data, also of people who are purged later.
    """
    terminal, status, objects = session.terminal, DONE, list[dict[str, Any]]()

    def back_up(settings: Settings) -> dict[str, Any]:
        with terminal.progress("back up"):
            made, removed = backups.make_backup(settings, to, keep=keep)
        size = made.stat().st_size
        terminal.print_line(f"{settings.account or UNNAMED}: {made} ({size:,} bytes)")
        for each in removed:
            terminal.say(f"Removed: {each}")
        account = {"account": settings.account}
        return account | {"file": str(made), "bytes": size, "removed": [*map(str, removed)]}

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
        "connector restore /mnt/backups --check",
        "connector restore /mnt/backups",
        "connector restore /mnt/backups --former /var/lib/connector/old",
    ),
    if_interrupted="Run the same command again. Until then no command uses the folder.",
)
@click.argument("source", type=click.Path(path_type=Path), metavar="FROM")
@click.option("--check", "checks", is_flag=True, help="Only check that the backup is complete.")
@click.option(
    "--former",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="FOLDER",
    help="Former folder of the account. The next 'person purge' repeats its later purges.",
)
def restore(session: Session, *, source: Path, checks: bool, former: Path | None) -> int:
    """Restore an account's folder, which must be empty, from the backup FROM.

    If FROM is a folder, its newest backup of the account is used. To restore an account that has
    files, first move its folder away. Checks the backup before it changes anything. Pushes wait
    until a pull has verified the resource. Then run 'connector pull' to update the copy.
    """
    terminal, settings = session.terminal, session.load()
    source = backups.newest_backup(source, settings.account)
    if checks:
        found = backups.check_backup(source)
        terminal.print_object({"whole": True, **asdict(found)})
        terminal.print_line(
            f"The backup of {backups.name_account(found.account)} is complete:"
            f" {len(found.files)} files, made at {_made_at(found)} by version {found.version}."
        )
        return DONE
    with terminal.progress("restore"):
        done = backups.restore(settings, source, former)
    _print_restored(terminal, done)
    return PARTIAL if done.waiting or done.purges else DONE


def _print_restored(terminal: Terminal, done: backups.RestoreResult) -> None:
    """Print what was restored, what is missing, and the next steps."""
    terminal.print_object(done)
    made_at = _made_at(done.manifest)
    files = count_noun(len(done.manifest.files), "file")
    terminal.print_line(f"Restored {files} of the backup made at {made_at}.")
    terminal.warn(
        f"changes and pushes after {made_at} are missing in the history, and requests after it are"
        " not counted. People purged after it are in the files again"
    )
    for path in done.waiting:
        terminal.warn(f"{path} was in the inbox. To push it, copy it to the inbox again")
    terminal.say("Run 'connector pull' to bring the copy up to date.")
    if done.purges:
        terminal.say("Then run 'connector person purge --apply' to repeat later purges.")


def _made_at(manifest: backups.Manifest) -> str:
    """Return the time of a backup as it is shown."""
    return format_moment(datetime.fromisoformat(manifest.made_at))
