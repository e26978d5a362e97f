"""`connector whereis`, `erase` and `retention`: find people, and erase their data."""

from __future__ import annotations

import click

from connector.cli import options
from connector.cli.session import Command, Session
from connector.cli.terminal import Terminal
from connector.errors import Misused, count_noun
from connector.privacy.erase import ErasureResult
from connector.privacy.erase import erase as run_erase
from connector.privacy.erase import remove_suppression as run_release
from connector.privacy.person_locations import locate_person as run_whereis
from connector.privacy.receipt import PersonLocations
from connector.privacy.retention import apply_retention

# -- Whereis ---------------------------------------------------------------------------------------


@click.command(
    cls=Command,
    examples=(
        "connector whereis anna@example.com",
        'connector whereis "Anna Lee"',
        "connector whereis anna@example.com --json",
    ),
    if_interrupted="Nothing was changed.",
)
@click.argument("person", metavar="NAME_OR_EMAIL")
def whereis(session: Session, *, person: str) -> int:
    """List every place in the account's folder that contains data of a person.

    Accepts an email address, an id of a candidate, a lead, a company or a booking, or a name. Lists
    records, rows of files, and texts of other records that mention the person, with record and
    field. Makes no API requests and changes nothing.
    """
    found = run_whereis(session.load(), person)
    session.terminal.print_object(found.as_json())
    _print_locations(session.terminal, found)
    return 0


def _print_locations(terminal: Terminal, found: PersonLocations) -> None:
    """Print the places of a person, and notes on them."""
    if found.is_empty:
        terminal.say("The account's folder contains no data of this person.")
    if found.records:
        records = [(each.resource, each.id, ", ".join(each.fields)) for each in found.records]
        terminal.print_table(("resource", "id", "fields"), records)
    if found.places:
        rows = [(each.file, each.table or "", each.rows) for each in found.places]
        terminal.print_table(("file", "table", "rows"), rows)
    if found.mentions:
        mentions = [(each.where, each.row, each.field) for each in found.mentions]
        terminal.print_table(("mentioned in", "row", "field"), mentions)
    if found.batches:
        terminal.say(f"Pushes: {', '.join(found.batches)}.")
    for name in found.whole_files:
        terminal.warn(f"{name} contains rows of the person. An erasure deletes the whole workbook")
    if found.shared_identifiers:
        shared = count_noun(found.shared_identifiers, "identifier")
        terminal.warn(
            f"found in the record of another person, too: {shared} of this person. An erasure does "
            "not change the other record"
        )
    if found.rows_in_doubt:
        terminal.warn(
            f"this person has {count_noun(found.rows_in_doubt, 'unconfirmed row')} in pushes."
            " Resolve them with 'connector resolve' first"
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
    if_interrupted="Run 'connector erase --apply' to complete the interrupted erasure.",
)
@click.argument("person", metavar="[EMAIL_OR_ID]", required=False)
@options.apply_option("Erase the person. Default: preview only.")
@click.option(
    "--release",
    metavar="EMAIL_OR_ID",
    help=(
        "Remove an erased person from the list of erasures. Pulls and pushes then process new data "
        "of this person again."
    ),
)
def erase(session: Session, *, person: str | None, applies: bool, release: str | None) -> int:
    """Erase a person's data and keep anonymous rows for statistics.

    Erases every version of the person's own records, and the person's rows in files and pushes.
    Also erases the exact id, email address, telephone number and profile address in fields of other
    records. Texts of other records that mention the person are listed, not changed: edit them on
    the platform. Prints a receipt and keeps it in receipts/. A later pull, restore or import does
    not bring the person back.

    Does not change the platform: erase the person there as well. Continues an interrupted erasure
    first; without EMAIL_OR_ID, 'connector erase --apply' does only that.
    """
    terminal = session.terminal
    if release is not None:
        if person is not None or applies:
            raise Misused(
                "--release cannot be combined with an erasure",
                action="Give --release EMAIL_OR_ID alone.",
            )
        released = run_release(session.load(), release)
        terminal.print_object({"released": released})
        hashes = count_noun(released, "hash", "hashes")
        terminal.say(f"Released: {hashes} removed from the list of erasures.")
        return 0
    if person is None and not applies:
        raise Misused(
            "no person was given",
            action="Give an email address or a record's id, or --apply to continue an interrupted"
            " erasure.",
        )
    done = run_erase(session.load(), person, applies=applies)
    terminal.print_object(done.as_json())
    if not applies and done.found is not None:
        _print_locations(terminal, done.found)
        if done.found.is_erasable:
            terminal.say("Nothing was changed. Run the command with --apply to erase the person.")
    if done.interrupted:
        terminal.warn("an erasure was interrupted. Run 'connector erase --apply' to complete it")
    if applies:
        _print_erased(terminal, done)
    return done.exit_status


def _print_erased(terminal: Terminal, done: ErasureResult) -> None:
    """Print the receipts and their folder."""
    if not done.receipts:
        terminal.say("The account's folder contains no data of this person: nothing was erased.")
    for receipt, path in zip(done.receipts, done.receipt_files, strict=True):
        for line in receipt.as_text().splitlines():
            terminal.print_line(line)
        if not receipt.is_clean:
            terminal.warn("some data must be erased by hand. The receipt lists it")
        terminal.say(f"Receipt: {path}.")
    if done.receipts:
        terminal.say(
            "The platform and earlier backups still contain the person. Erase the person on the"
            " platform too, and delete backups that are older than this erasure."
        )


# -- Retention -------------------------------------------------------------------------------------


@click.command(
    cls=Command,
    examples=("connector retention", "connector retention --apply --limit 100"),
    if_interrupted="Run 'connector erase --apply' to complete the interrupted erasure.",
)
@options.apply_option(
    "Erase the people whose retention period has expired. Default: only count them."
)
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    metavar="N",
    help="Maximum number of people to erase in this run.",
)
def retention(session: Session, *, applies: bool, limit: int | None) -> int:
    """Erase people whose retention period has expired.

    The rules are in the configuration under [retention]. Without --apply, it counts the people who
    are due by each rule and changes nothing. People with a placement are never due. Erases as
    'connector erase' does, with one receipt for all.
    """
    done = apply_retention(session.load(), applies=applies, limit=limit)
    terminal = session.terminal
    terminal.print_object(done.as_json())
    rows = [
        (each.rule.resource, str(each.rule), len(each.ids), each.placed, each.undated)
        for each in done.due
    ]
    terminal.print_table(("resource", "rule", "due", "placed", "undated"), rows)
    if done.erased is not None:
        _print_erased(terminal, done.erased)
    elif any(each.ids for each in done.due):
        terminal.say("Nothing was changed. Run the command with --apply to erase these people.")
    return done.exit_status
