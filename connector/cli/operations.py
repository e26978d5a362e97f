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
from connector.errors import ConnectorError, Misused, count_noun
from connector.operations import backup as backups
from connector.operations.doctor import Examination, confirm_move, diagnose
from connector.pulls.report import explain
from connector.settings import UNNAMED, ConfiguredAccount, Settings
from connector.state.quota import format_moment


@click.command(
    cls=Command,
    has_create_option=True,
    examples=(
        "connector doctor",
        "connector doctor --account acme --json",
        "connector doctor --all --strict",
        "connector doctor --send-test",
        "connector doctor --accept-move",
    ),
)
@click.option("--send-test", "sends_test", is_flag=True, help="Send a test message to notify_urls.")
@click.option(
    "--accept-move",
    "accepts_move",
    is_flag=True,
    help="Accept that the workspace of the loaded records has moved to the configured base_url.",
)
@click.option(
    "--strict", "is_strict", is_flag=True, help="Exit with status 3 if a check has a warning."
)
@options.all_accounts
def doctor(
    session: Session, *, sends_test: bool, accepts_move: bool, is_strict: bool, is_for_all: bool
) -> int:
    """Check settings, data folder, API key, limits, backups and notifications.

    Sends one request per scope, and up to three more to find a loaded record in the workspace.
    Shows the API key only as "set". Repairs nothing: each problem has the command or the step that
    repairs it. With --all, it prints one line per account, and one per problem.
    """
    if accepts_move:
        if is_for_all:
            raise Misused("--accept-move and --all are both given", action="Choose --account.")
        session.terminal.say(f"{asyncio.run(confirm_move(session.load()))}.")

    def examined(settings: Settings) -> Examination:
        with session.terminal.progress(f"examine {settings.account or ''}".rstrip()):
            return asyncio.run(diagnose(settings, sends_test=sends_test))

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
    for account, found in examined:
        name, status = account.title, max(status, found.exit_status)
        if isinstance(found, ConnectorError):
            rows.append((name, "settings", "failed", explain(found)))
            objects.append({"account": account.name, "error": found.as_json()})
            continue
        objects.append({"account": account.name, **found.as_json()})
        wrong = [check for check in found.checks if check.state != "ok"]
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

    Contains the work file with its history, state, published file, seeds, inbox and report. Does
    not contain the API key. It waits up to 60 seconds for a pull or a push. The backup is read
    again and checked before it gets its name. Only its owner can read it. It contains personal
    data, also of people who are purged later.
    """
    terminal, status, objects = session.terminal, 0, list[dict[str, Any]]()

    def back_up(settings: Settings) -> dict[str, Any]:
        with terminal.progress("back up"):
            made = backups.make_backup(settings, to, keep=keep)
        shown = made.as_json()
        name = settings.account or UNNAMED
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
        terminal.print_object({"whole": True, **found.as_json()})
        terminal.print_line(
            f"The backup of {found.account or 'the unnamed account'} is complete:"
            f" {len(found.files)} files, made at {format_moment(found.made_at)} by version"
            f" {found.version}."
        )
        return 0
    with terminal.progress("restore"):
        done = backups.restore(settings, source, former)
    terminal.print_object(done.as_json())
    made_at = format_moment(done.manifest.made_at)
    files = count_noun(len(done.manifest.files), "file")
    terminal.print_line(f"Restored {files} of the backup made at {made_at}.")
    terminal.warn(
        f"changes and pushes after {made_at} are missing in the history, and requests after it are"
        " not counted. People purged after it are in the files again"
    )
    for path in done.waiting:
        terminal.warn(f"{path} was in the inbox. To push it, copy it to the inbox again")
    if not done.is_published:
        terminal.warn("the published file has columns that the settings mask, and was left out")
    terminal.say("Run 'connector pull' to bring the copy up to date.")
    if done.purges:
        terminal.say("Then run 'connector person purge --apply' to repeat later purges.")
    return 3 if done.waiting or done.purges else 0
