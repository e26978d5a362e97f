"""`connector person`: find a text in the account's folder, and purge deleted people."""

from __future__ import annotations

import asyncio
import csv
import io
from dataclasses import asdict
from datetime import UTC, datetime

import click

from connector import privacy
from connector.cli.session import Command, Session
from connector.cli.terminal import Terminal
from connector.errors import DONE, PARTIAL, Misused, count_noun


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
def find(session: Session, *, text: str) -> None:
    """List every row and file in the account's folder that contains TEXT.

    Searches all tables, imported files and reports, also texts of other records. Ignores letter
    case and punctuation. Finds a telephone number in any format. Changes nothing.
    """
    terminal, found = session.terminal, privacy.find(session.load(), text)
    terminal.print_object(found)
    if found.places:
        rows = [(each.file, each.table, each.row, ", ".join(each.columns)) for each in found.places]
        terminal.print_table(("file", "table", "row", "columns"), rows)
    else:
        terminal.say("The text was not found.")
    if found.not_searched:
        terminal.say(f"Not searched: {', '.join(found.not_searched)}.")


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
@click.option(
    "--apply",
    "applies",
    is_flag=True,
    help="Purge the people. Default: only report what would be removed.",
)
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
        ids = tuple(privacy.deleted_before(settings, age, datetime.now(UTC)))
    if writes_csv:
        # Before anything is removed: if the values cannot be written, nobody is purged.
        shown, text = asyncio.run(privacy.purge(settings, ids)), io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerows([("table", "record", "field", "value"), *shown.removed])
        terminal.write_data(text.getvalue())
        if not applies:
            return DONE
    with terminal.progress("purge"):
        done = asyncio.run(privacy.purge(settings, ids, applies=applies))
    if not writes_csv:
        terminal.print_object(
            {
                "applied": applies,
                "ids": done.ids,
                "rows": dict(+done.rows),
                "files": done.files,
                "backups": done.backups,
                **asdict(done.left),
            }
        )
        terminal.print_table(("table", "rows"), sorted((+done.rows).items()))
    _print_purged(terminal, done, applies, is_by_age=age is not None)
    return PARTIAL if applies and done.left.places else DONE


def _print_purged(
    terminal: Terminal, done: privacy.PurgeReport, is_applied: bool, *, is_by_age: bool
) -> None:
    """Print what was or would be removed, and what is left."""
    for name in done.files:
        terminal.say(f"{'Removed' if is_applied else 'Would be removed'}: {name}.")
    people = count_noun(len(done.ids), "person", "people")
    if not done.ids:
        reason = "Give the ids of deleted people, or --deleted-before AGE."
        if is_by_age:
            reason = "The platform deleted no person before that time."
        terminal.say(f"Nothing to purge. {reason}")
        return
    if not is_applied:
        terminal.say(f"Nothing was changed. Run the command with --apply to purge {people}.")
        return
    terminal.say(f"Purged {people}.")
    for place in done.left.places:
        where = ", ".join(filter(None, (place.file, place.table, place.row, *place.columns)))
        terminal.warn(f"{where}: still contains a name, an address or a number of the people")
    if done.left.places:
        terminal.say("Edit records on the platform, then pull. Edit or delete the files.")
    for path in done.backups:
        terminal.warn(f"{path} still contains the people")
