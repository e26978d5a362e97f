"""`connector doctor`: tell what could keep a pull from working, and what to do about it.

Parses, calls, prints.
"""

from __future__ import annotations

import asyncio

import click

from connector.cli.session import Command, Session
from connector.cli.terminal import Terminal
from connector.doctor import Examination, examine


@click.command(
    cls=Command,
    examples=(
        "connector doctor",
        "connector doctor --account acme --json",
        "connector doctor --repair",
    ),
)
@click.option(
    "--repair",
    "repairs",
    is_flag=True,
    help="Set a damaged log of the work file aside, and keep it.",
)
def doctor(session: Session, *, repairs: bool) -> int:
    """Check settings, data folder, address, key, scopes, clock and limits.

    It spends one request for each scope, and shows the key as "set" and in no other way. It
    changes nothing, unless --repair asks for it.
    """
    settings = session.load()
    with session.terminal.progress("examine"):
        found = asyncio.run(examine(settings, repairs=repairs))
    print_examination(session.terminal, found)
    return found.exit_status


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
