"""`connector person`: find a text in the account's folder, and purge deleted people."""

from __future__ import annotations

import asyncio
import csv
import sys
from datetime import UTC, datetime

import click

from connector import privacy
from connector.cli import options
from connector.cli.session import Command, Session
from connector.cli.terminal import Terminal
from connector.errors import Misused, count_noun


@click.group()
def person() -> None:
    """Find a person in the account's folder, and purge people deleted on the platform."""


@person.command(
    cls=Command,
    examples=(
        "connector person find anna@example.com",
        'connector person find "Anna Lee"',
        "connector person find 07700900123 --json",
    ),
    if_interrupted="Nothing was changed.",
)
@click.argument("text")
def find(session: Session, *, text: str) -> int:
    """List every row and file in the account's folder that contains TEXT.

    Searches all tables, imported files and reports, also texts of other records. Ignores letter
    case and punctuation. Finds a telephone number in any format. Changes nothing.
    """
    found = privacy.find(session.load(), text)
    session.terminal.print_object(found.as_json())
    _print_places(session.terminal, found.places, found.not_searched)
    if not found.places:
        session.terminal.say("The text was not found.")
    return 0


@person.command(
    cls=Command,
    examples=(
        "connector person purge 7c9e6679-7425-40de-944b-e07fc1f90ae7",
        "connector person purge 7c9e6679-7425-40de-944b-e07fc1f90ae7 --apply",
        "connector person purge --deleted-before 24m --apply",
    ),
    if_interrupted="Run the same command again to complete the purge.",
)
@click.argument("ids", metavar="[ID]...", nargs=-1)
@click.option(
    "--deleted-before",
    "age",
    metavar="AGE",
    help="Purge the people whom the platform deleted longer ago, for example 90d, 24m or 2y.",
)
@click.option(
    "--csv", "writes_csv", is_flag=True, help="Print the removed values as csv on standard output."
)
@options.apply_option("Purge the people. Default: only report what would be removed.")
def purge(
    session: Session, *, ids: tuple[str, ...], age: str | None, writes_csv: bool, applies: bool
) -> int:
    """Remove all personal data of candidates or leads that were deleted on the platform.

    Empties every version of their records, pushed rows about them and their past bookings, and
    publishes again. Removes imported files that hold only these people. Lists the places that still
    name them, such as texts of other records, and the backups that contain them. Refuses a record
    that the platform still has: delete it there and pull first. Completes an interrupted purge;
    without ID, 'connector person purge --apply' does only that.
    """
    if ids and age is not None:
        raise Misused("ids and --deleted-before are both given", action="Give one of them.")
    settings, terminal = session.load(), session.terminal
    if age is not None:
        ids = privacy.deleted_before(settings, age, datetime.now(UTC))
    with terminal.progress("purge"):
        done = asyncio.run(privacy.purge(settings, ids, applies=applies))
    terminal.print_object(done.as_json())
    if writes_csv:
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerows([("table", "record", "field", "value"), *done.removed])
    else:
        _print_purged(terminal, done, is_by_age=age is not None)
    return done.exit_status


def _print_purged(terminal: Terminal, done: privacy.PurgeReport, *, is_by_age: bool) -> None:
    """Print what was or would be removed, and what is left."""
    terminal.print_table(("table", "rows"), sorted((+done.counts).items()))
    for name in done.files:
        terminal.say(f"{'Removed' if done.is_applied else 'Would be removed'}: {name}.")
    people = count_noun(len(done.ids), "person", "people")
    if not done.ids:
        action = (
            "Give the ids of deleted people, or --deleted-before AGE. 'connector person find TEXT'"
        )
        reason = "The platform deleted no person before that time."
        terminal.say(f"Nothing to purge. {reason if is_by_age else f'{action} lists ids.'}")
        return
    if not done.is_applied:
        terminal.say(f"Nothing was changed. Run the command with --apply to purge {people}.")
        return
    terminal.say(f"Purged {people}.")
    _print_places(terminal, done.places, done.not_searched)
    if done.places:
        terminal.warn(
            "these places still contain a name, an address or a number of the people. Edit records"
            " on the platform, then pull; edit or delete the files"
        )
    for path in done.backups:
        terminal.warn(f"{path} still contains the people")


def _print_places(
    terminal: Terminal, places: tuple[privacy.Place, ...], not_searched: tuple[str, ...]
) -> None:
    """Print the places as a table."""
    if places:
        rows = [(each.file, each.table, each.row, ", ".join(each.columns)) for each in places]
        terminal.print_table(("file", "table", "row", "columns"), rows)
    if not_searched:
        terminal.say(f"Not searched: {', '.join(not_searched)}.")
