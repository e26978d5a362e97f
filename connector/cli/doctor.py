"""`connector doctor`: tell what could keep a pull from working, and what to do about it.

Parses, calls, prints.
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import click

from connector.accounts import configured_accounts
from connector.advice import explain
from connector.cli import options
from connector.cli.session import Command, Session
from connector.cli.terminal import Terminal
from connector.doctor import Examination, examine
from connector.errors import ConnectorError


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
