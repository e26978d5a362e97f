"""`connector lakehouse`: publish to the shared lakehouse and show its status."""

from __future__ import annotations

import click

from connector.cli import options
from connector.cli.session import Command, Session
from connector.errors import ConnectorError, Misused, count_noun
from connector.ledger.quota import format_moment
from connector.publishing.lakehouse_connection import LakehouseAccount
from connector.publishing.lakehouse_erasure import remove_account as run_remove
from connector.publishing.lakehouse_publication import LakehouseResult, publish_and_record
from connector.publishing.lakehouse_status import read_status
from connector.pulls.outcome import explain
from connector.settings.model import Settings

SENT_COLUMNS = ("account", "outcome", "snapshot", "tables", "inserted", "removed", "seconds")
STANDING_COLUMNS = ("account", "published", "data as of", "personal", "tables", "rows")
_MEGABYTE = 1_000_000


@click.group()
def lakehouse() -> None:
    """Publish to the shared lakehouse of many accounts, and show its status.

    Every publication also goes to the lakehouse if CONNECTOR_LAKEHOUSE_FILE and
    CONNECTOR_LAKEHOUSE_DATA are set. docs/LAKEHOUSE.md shows how analysts open it.
    """


@lakehouse.command(
    cls=Command,
    checks_alerts=True,
    examples=("connector lakehouse publish --account acme", "connector lakehouse publish --all"),
    if_interrupted="The lakehouse is unchanged.",
)
@options.all_accounts
@click.option(
    "--force",
    is_flag=True,
    help="Publish again, even if the lakehouse already contains this version of the file.",
)
def publish(session: Session, *, is_for_all: bool, force: bool) -> int:
    """Replace the account's rows in the lakehouse by its published file, in one transaction.

    Changes nothing if the lakehouse already has the file. The exit status is 1 if an account could
    not be published; --all publishes the other accounts anyway.
    """

    def send(settings: Settings) -> LakehouseResult | None:
        is_meant = not is_for_all or settings.lakehouse.value is not None
        return publish_and_record(settings, force=force) if is_meant else None

    terminal, status, done = session.terminal, 0, list[LakehouseResult]()
    for account, sent in session.for_each(send, is_for_all=is_for_all):
        if sent is None:
            continue
        error = sent if isinstance(sent, ConnectorError) else sent.error
        if error is not None and not is_for_all:
            raise error
        if error is not None:
            terminal.warn(f"{account.title}: {explain(error)}")
        if isinstance(sent, ConnectorError):
            status = max(status, sent.exit_status)
        else:
            done.append(sent)
    if not done and not status:
        raise Misused(
            "no configured account has a lakehouse",
            action="Set CONNECTOR_LAKEHOUSE_FILE and CONNECTOR_LAKEHOUSE_DATA;"
            " docs/LAKEHOUSE.md shows how.",
        )
    terminal.print_object({"accounts": [each.as_json() for each in done]})
    rows = [
        (*(getattr(each, name) for name in SENT_COLUMNS[:-1]), f"{each.seconds:.1f}")
        for each in done
    ]
    terminal.print_table(SENT_COLUMNS, rows)
    failed = sum(each.error is not None for each in done)
    terminal.say(f"{count_noun(len(done) - failed, 'account')} in the lakehouse.")
    return max(status, 1 if failed else 0)


@lakehouse.command(
    cls=Command, examples=("connector lakehouse status", "connector lakehouse status --json")
)
def status(session: Session) -> int:
    """Show the accounts of the lakehouse, their rows, and the states that can be read."""
    terminal = session.terminal
    found = read_status(session.load())
    terminal.print_object(found.as_json())
    rows = []
    for each in found.entries:
        true_of = None if each.true_of is None else format_moment(each.true_of)
        published = (each.account, format_moment(each.published_at), true_of, each.personal)
        rows.append((*published, each.tables, each.rows))
    terminal.print_table(STANDING_COLUMNS, rows)
    first, last = found.snapshots[0], found.snapshots[-1]
    terminal.say(
        f"{found.data}: {count_noun(found.files, 'file')}, {found.bytes / _MEGABYTE:,.1f} MB;"
        f" snapshots {first[0]} ({format_moment(first[1])}) to"
        f" {last[0]} ({format_moment(last[1])})."
    )
    return 0


@lakehouse.command(
    cls=Command,
    examples=("connector lakehouse remove --account acme --apply",),
    if_interrupted="Run the command again to continue.",
)
@options.apply_option(
    "Remove the account's rows from the lakehouse. Default: only show their number."
)
def remove(session: Session, *, applies: bool) -> int:
    """Remove the account from the lakehouse, with everything that it ever published.

    Earlier states end for all accounts, since a state is one of the whole lakehouse. The account's
    own folder does not change. Its next publication adds the account again unless you remove the
    lakehouse from its settings.
    """
    settings, terminal = session.load(), session.terminal
    account = LakehouseAccount.require(settings).account
    if not applies:
        held = {each.account: each.rows for each in read_status(settings).entries}
        rows = held.get(account, 0)
        terminal.print_object({"applied": False, "account": account, "rows": rows})
        terminal.say(f"{account}: {count_noun(rows, 'row')}.")
        terminal.say("Nothing was changed. Run the command with --apply to remove these rows.")
        return 0
    done = run_remove(settings)
    terminal.print_object({"applied": True, **done.as_json()})
    terminal.say(
        f"{account}: {count_noun(done.removed, 'row')} removed. Earlier snapshots can no "
        "longer be read."
    )
    return 0
