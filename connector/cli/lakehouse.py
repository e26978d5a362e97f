"""`connector lakehouse`: publishes to the shared lakehouse and looks after it.

Parses, calls, prints. What goes there, and how, is `connector/lakehouse`.
"""

from __future__ import annotations

import click

from connector.cli import session as options
from connector.cli.session import Command, Session
from connector.engine.quota import shown
from connector.errors import ConnectorError, Misused, count_noun
from connector.lakehouse.connect import LakehouseAccount
from connector.lakehouse.forget import remove as run_remove
from connector.lakehouse.lake_status import maintain as run_maintain
from connector.lakehouse.lake_status import read_status
from connector.lakehouse.publish import LakePublication, publish_and_record
from connector.pulls.advice import explain
from connector.settings.model import Settings

SENT_COLUMNS = ("account", "outcome", "snapshot", "tables", "inserted", "removed", "seconds")
STANDING_COLUMNS = ("account", "published", "true of", "personal", "tables", "rows")
_MEGABYTE = 1_000_000
_UNCHANGED = "Nothing was changed. Run it again with --apply to"


@click.group()
def lakehouse() -> None:
    """Publish to the shared lakehouse, where many accounts meet, and look after it.

    Every publication goes there by itself, where CONNECTOR_LAKEHOUSE_FILE and
    CONNECTOR_LAKEHOUSE_DATA are set. docs/LAKEHOUSE.md shows how analysts open it.
    """


@lakehouse.command(
    cls=Command,
    checks_alerts=True,
    examples=("connector lakehouse publish --account acme", "connector lakehouse publish --all"),
    if_interrupted="The lakehouse is as it was.",
)
@options.all_accounts
@click.option("--anew", is_flag=True, help="Write every row again, whether or not it has changed.")
def publish(session: Session, *, is_for_all: bool, anew: bool) -> int:
    """Bring the file that is published to the lakehouse, in one transaction.

    What is there already is not written again, so that doing it twice changes nothing. The exit
    status is 1 where it could not be done; with --all, the other accounts are brought all the same.
    """

    def send(settings: Settings) -> LakePublication | None:
        is_meant = not is_for_all or settings.lakehouse.value is not None
        return publish_and_record(settings, anew=anew) if is_meant else None

    terminal, status, done = session.terminal, 0, list[LakePublication]()
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
    """Show the lakehouse's accounts, their rows, and the states to be asked for."""
    terminal = session.terminal
    found = read_status(session.load())
    terminal.print_object(found.as_json())
    rows = []
    for each in found.entries:
        tables = found.rows.get(each.account, {})
        true_of = None if each.true_of is None else shown(each.true_of)
        counts = (len(tables), sum(tables.values()))
        rows.append((each.account, shown(each.published_at), true_of, each.personal, *counts))
    terminal.print_table(STANDING_COLUMNS, rows)
    first, last = found.snapshots[0], found.snapshots[-1]
    terminal.say(
        f"{found.data}: {count_noun(found.files, 'file')}, {found.bytes / _MEGABYTE:,.1f} MB;"
        f" snapshots {first[0]} ({shown(first[1])}) to {last[0]} ({shown(last[1])})."
    )
    return 0


@lakehouse.command(
    cls=Command,
    examples=("connector lakehouse maintain", "connector lakehouse maintain --keep-days 7 --apply"),
    if_interrupted="Run it again to go on.",
)
@click.option(
    "--keep-days",
    type=click.IntRange(min=0, max=36_500),
    metavar="N",
    help="Keep what was so at any moment of the last N days. Default: the setting"
    " lakehouse_keep_days.",
)
@options.applies("Do it. Without: say what there is to do.")
def maintain(session: Session, *, keep_days: int | None, applies: bool) -> int:
    """Let earlier states expire, join small files, remove those nothing needs.

    It is for the whole lakehouse, and changes nothing of what a reader sees now. A file that
    nothing needs any more is removed an hour later, by the next call: somebody may be reading it.
    """
    settings, terminal = session.load(), session.terminal
    days = settings.lakehouse_keep_days.value if keep_days is None else keep_days
    with terminal.progress("maintain"):
        done = run_maintain(settings, days, applies=applies)
    terminal.print_object({"applied": applies, **done.as_json()})
    states, files = (
        count_noun(done.expired, "earlier state"),
        count_noun(done.removed_files, "file"),
    )
    if applies:
        terminal.say(
            f"{states} expired, {done.kept:,} kept; {files} removed; {done.rewritten:,} rewritten"
            f" and {done.joined:,} joined."
        )
    else:
        terminal.say(f"{states} would expire, {done.kept:,} kept; {files} to be removed.")
        terminal.say(f"{_UNCHANGED} do it.")
    return 0


@lakehouse.command(
    cls=Command,
    examples=("connector lakehouse remove --account acme --apply",),
    if_interrupted="Run it again to go on.",
)
@options.applies("Do it. Without: say what is there.")
def remove(session: Session, *, applies: bool) -> int:
    """Take the account out of the lakehouse, with all that it ever published.

    Earlier states end for all accounts, since a state is one of the whole lakehouse. The account's
    own folder stays as it is; while the settings name the lakehouse, its next publication puts it
    there again.
    """
    settings, terminal = session.load(), session.terminal
    account = LakehouseAccount.required(settings).account
    if not applies:
        rows = read_status(settings).rows.get(account, {})
        terminal.print_object({"applied": False, "account": account, "rows": rows})
        count = count_noun(sum(rows.values()), "row")
        terminal.say(f"{account}: {count} in {len(rows)} tables.")
        terminal.say(f"{_UNCHANGED} take them out.")
        return 0
    done = run_remove(settings)
    terminal.print_object({"applied": True, **done.as_json()})
    removed = count_noun(done.removed, "row")
    terminal.say(f"{account}: {removed} taken out; earlier states have ended.")
    return 0
