"""`connector whereis`, `erase` and `retention`: find people here, take them out.

Parses, calls, prints. What is found and erased, and how, is `connector/privacy`.
"""

from __future__ import annotations

import click

from connector.cli import session as options
from connector.cli.session import Command, Session
from connector.cli.terminal import Terminal
from connector.errors import Misused, count_noun
from connector.privacy.erase import Erased
from connector.privacy.erase import erase as run_erase
from connector.privacy.erase import release as run_release
from connector.privacy.receipt import Whereabouts
from connector.privacy.retention import retain
from connector.privacy.whereis import whereis as run_whereis

# -- Whereis ---------------------------------------------------------------------------------------


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
    session.terminal.print_object(found.as_json())
    _print_found(session.terminal, found)
    return 0


def _print_found(terminal: Terminal, found: Whereabouts) -> None:
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
            f"{count_noun(found.shared, 'address, number or name')} of the person somebody else has"
            " as well: it is left where it is theirs"
        )
    if found.in_doubt:
        terminal.warn(
            f"{count_noun(found.in_doubt, 'row')} of pushes about the person may have been applied"
            " or not: settle them with 'connector resolve' first"
        )
    for each in found.by_hand:
        terminal.warn(each)
    if found.not_searched:
        terminal.say(f"Not searched: {', '.join(found.not_searched)}.")


# -- Erase -----------------------------------------------------------------------------------------


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
@options.applies("Do it. Without: say what would be removed.")
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
        terminal.print_object({"released": released})
        hashes = count_noun(released, "hash", "hashes")
        terminal.say(f"Released: {hashes} taken off the list.")
        return 0
    if person is None and not applies:
        raise Misused(
            "nobody was named to be erased",
            action="Give an email address or a record's id, or --apply to go on with what was"
            " begun.",
        )
    done = run_erase(session.load(), person, applies=applies)
    terminal.print_object(done.as_json())
    if not applies and done.found is not None:
        _print_found(terminal, done.found)
        if not done.found.is_nothing:
            terminal.say("Nothing was changed. Run it again with --apply to erase the person.")
    if done.unended:
        terminal.warn("an erasure was cut off: 'connector erase --apply' brings it to its end")
    if applies:
        _print_erased(terminal, done)
    return done.exit_status


def _print_erased(terminal: Terminal, done: Erased) -> None:
    """Print the receipts, and say where they are kept."""
    if not done.receipts:
        terminal.say("Nothing in the account's folder holds this person: nothing was erased.")
    for receipt, path in zip(done.receipts, done.kept, strict=True):
        for line in receipt.as_text().splitlines():
            terminal.print_line(line)
        if not receipt.is_clean:
            terminal.warn("something is left for a person to do: see the receipt")
        terminal.say(f"The receipt is kept in {path}.")


# -- Retention -------------------------------------------------------------------------------------


@click.command(
    cls=Command,
    examples=("connector retention", "connector retention --apply --most 100"),
    if_interrupted="Run 'connector erase --apply' to bring to its end what was begun.",
)
@options.applies("Erase those who are due. Without: count.")
@click.option(
    "--most",
    type=click.IntRange(min=1),
    metavar="N",
    help="Erase at most N people; the next run goes on.",
)
def retention(session: Session, *, applies: bool, most: int | None) -> int:
    """Erase those whose time is over by the rules under [retention].

    Without --apply it says how many are due by each rule, and changes nothing. Who is placed is
    excepted. Erasing is what 'connector erase' does, with one receipt for all.
    """
    done = retain(session.load(), applies=applies, most=most)
    terminal = session.terminal
    terminal.print_object(done.as_json())
    rows = [
        (each.rule.resource, str(each.rule), len(each.ids), each.excepted, each.undated)
        for each in done.dues
    ]
    terminal.print_table(("resource", "rule", "due", "placed", "undated"), rows)
    if done.erased is not None:
        _print_erased(terminal, done.erased)
    elif any(each.ids for each in done.dues):
        terminal.say("Nothing was changed. Run it again with --apply to erase those who are due.")
    return done.exit_status
