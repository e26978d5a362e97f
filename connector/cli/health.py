"""`connector health`: one line and an exit status, for whatever asks every minute.

Parses, asks, prints. It looks at the account's own files and sends no request.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import click

from connector.cli import session as options
from connector.cli import status_all
from connector.cli.session import Command, Session
from connector.engine.quota import shown
from connector.pulls.advice import explain
from connector.settings.accounts import UNNAMED, Configured, configured_accounts
from connector.settings.values import Age


@click.command(
    cls=Command,
    examples=(
        "connector health",
        "connector health --all --max-age 26h",
        "connector health --json",
    ),
)
@click.option(
    "--max-age",
    type=options.AgeText(),
    metavar="AGE",
    help="How old the last proof may be (default: alert_max_age).",
)
@options.all_accounts
def health(session: Session, *, max_age: Age | None, is_for_all: bool) -> int:
    """End with 0 if the files are in order and what is pulled was proven lately, and say so.

    In one line; else it ends with 1. It opens the ledger and the work file for a moment, changes
    nothing and sends nothing, so that a container may ask every minute. Where nothing was ever
    pulled all is well: 'connector status --max-age' is the watchdog that says otherwise.
    """
    now = datetime.now(UTC)
    if is_for_all:
        accounts = configured_accounts(os.environ, Path.cwd())
    else:
        settings = session.load()
        accounts = (Configured(settings.account.value, settings),)
    found = [(each.name, tuple(_wrong(each, now, max_age))) for each in accounts]
    is_well = not any(wrong for _, wrong in found)
    if session.terminal.is_json:
        told = [{"account": name, "well": not wrong, "wrong": list(wrong)} for name, wrong in found]
        session.terminal.print_object({"well": is_well, "at": shown(now), "accounts": told})
    for name, wrong in found:
        said = "; ".join(wrong) or "well"
        session.terminal.print_line(f"{name or UNNAMED}: {said}")
    return 0 if is_well else 1


def _wrong(account: Configured, now: datetime, max_age: Age | None) -> Iterator[str]:
    """What is not well with an account, in sentences."""
    line = status_all.look(account, now, max_age)
    if line.error is not None:
        yield explain(line.error)
    elif line.last is not None and line.proof is not None and line.proof.sentence is not None:
        yield line.proof.sentence
    if line.watched is not None:
        yield from line.watched.failures
