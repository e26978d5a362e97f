"""`connector erase`: take a person out of everything, and let them in again.

Parses, calls, prints. What is erased, and how, is `connector/erasure`.
"""

from __future__ import annotations

import click

from connector.cli.session import Command, Session
from connector.cli.terminal import Terminal
from connector.cli.whereis import print_found
from connector.erasure import Erased
from connector.erasure import erase as run_erase
from connector.erasure import release as run_release
from connector.errors import Misused
from connector.words import counted


@click.command(
    cls=Command,
    examples=(
        "connector erase anna@example.com",
        "connector erase anna@example.com --apply",
        "connector erase --release anna@example.com",
    ),
    if_interrupted="Run 'connector erase --apply' to bring to its end what was begun.",
)
@click.argument("person", metavar="[EMAIL_OR_ID]", required=False)
@click.option("--apply", "applies", is_flag=True, help="Do it. Without: say what would be removed.")
@click.option(
    "--release",
    metavar="EMAIL_OR_ID",
    help="Let a person in again who was erased: from then on they are landed and pushed as others.",
)
def erase(session: Session, *, person: str | None, applies: bool, release: str | None) -> int:
    """Erase a person from the account's folder, and keep the rows as counts of nobody.

    Names, addresses, numbers, pay and texts of the person go from the work file with its history,
    the journal of pushes, reports, the inbox and the published file; the files are written anew, so
    that the bytes go too. A keyed hash stays, by which a pull lands the person's records without
    what tells of them, and a push refuses their rows. A receipt is printed and kept in receipts/.

    The platform is not asked and keeps what it has: erase the person there as well. An erasure that
    was cut off goes on first; without EMAIL_OR_ID, 'connector erase --apply' does that alone.
    """
    terminal = session.terminal
    if release is not None:
        if person is not None or applies:
            raise Misused(
                "--release is given with something to erase",
                action="Give --release EMAIL_OR_ID alone.",
            )
        released = run_release(session.load(), release)
        if terminal.is_json:
            terminal.print_object({"released": released})
        hashes = counted(released, "hash", "hashes")
        terminal.say(f"Released: {hashes} taken off the list.")
        return 0
    if person is None and not applies:
        raise Misused(
            "nobody was named to be erased",
            action="Give an email address or a record's id, or --apply to go on with what was"
            " begun.",
        )
    done = run_erase(session.load(), person, applies=applies)
    if terminal.is_json:
        terminal.print_object(done.as_json())
    if not applies and done.found is not None:
        print_found(terminal, done.found)
        if not done.found.is_nothing:
            terminal.say("Nothing was changed. Run it again with --apply to erase the person.")
    if done.unended:
        terminal.warn("an erasure was cut off: 'connector erase --apply' brings it to its end")
    if applies:
        print_erased(terminal, done)
    return done.exit_status


def print_erased(terminal: Terminal, done: Erased) -> None:
    """Print the receipts, and say where they are kept."""
    if not done.receipts:
        terminal.say("Nothing in the account's folder holds this person: nothing was erased.")
    for receipt, path in zip(done.receipts, done.kept, strict=True):
        for line in receipt.as_text().splitlines():
            terminal.print_line(line)
        if not receipt.is_clean:
            terminal.warn("something is left for a person to do: see the receipt")
        terminal.say(f"The receipt is kept in {path}.")
