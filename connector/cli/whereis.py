"""`connector whereis`: every table, file and batch that holds a person, in counts.

Parses, calls, prints. What is found, and how, is `connector/erasure`.
"""

from __future__ import annotations

import click

from connector.cli.session import Command, Session
from connector.cli.terminal import Terminal
from connector.erasure import Found
from connector.erasure import whereis as run_whereis
from connector.words import counted


@click.command(
    cls=Command,
    examples=("connector whereis anna@example.com", "connector whereis anna@example.com --json"),
    if_interrupted="Nothing was changed.",
)
@click.argument("person", metavar="EMAIL_OR_ID")
def whereis(session: Session, *, person: str) -> int:
    """Say where a person is: tables, files and pushes that hold them, in counts.

    A person is an email address, in whatever letter case, or the id of a candidate, a lead, a
    company or a booking. Nothing is asked of the API and nothing is changed, and nothing of the
    person is shown.
    """
    found = run_whereis(session.load(), person)
    if session.terminal.is_json:
        session.terminal.print_object(found.as_json())
    print_found(session.terminal, found)
    return 0


def print_found(terminal: Terminal, found: Found) -> None:
    """Show where somebody is, and what is to be known besides."""
    if found.is_nothing:
        terminal.say("Nothing in the account's folder holds this person.")
    if found.places:
        rows = [(each.file, each.table or "", each.rows) for each in found.places]
        terminal.print_table(("file", "table", "rows"), rows)
    if found.batches:
        terminal.say(f"Pushes: {', '.join(found.batches)}.")
    if found.shared:
        terminal.warn(
            f"{counted(found.shared, 'address, number or name')} of the person somebody else has"
            " as well: it is left where it is theirs"
        )
    if found.in_doubt:
        terminal.warn(
            f"{counted(found.in_doubt, 'row')} of pushes about the person may have been applied or"
            " not: settle them with 'connector resolve' first"
        )
    for each in found.by_hand:
        terminal.warn(each)
    if found.not_searched:
        terminal.say(f"Not searched: {', '.join(found.not_searched)}.")
