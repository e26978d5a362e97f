"""`connector lakehouse`: publish to the shared lakehouse, say how it stands, look after it.

Parses, calls, prints. What goes there, and how, is `connector/lakehouse`.
"""

from __future__ import annotations

import os
from pathlib import Path

import click

from connector.cli import session as options
from connector.cli.session import Command, Session
from connector.engine.quota import shown
from connector.errors import ConnectorError, Misused, count_noun
from connector.lakehouse.attaching import Place
from connector.lakehouse.forget import remove as run_remove
from connector.lakehouse.lake_status import standing as run_standing
from connector.lakehouse.maintenance import maintain as run_maintain
from connector.lakehouse.share import Sent, send_and_record
from connector.pulls.advice import explain
from connector.settings.accounts import configured_accounts
from connector.settings.model import Settings

SENT_COLUMNS = ("account", "outcome", "snapshot", "tables", "inserted", "removed", "seconds")
STANDING_COLUMNS = ("account", "published", "true of", "personal", "tables", "rows")
_MEGABYTE = 1_000_000


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
    terminal, done = session.terminal, list[Sent]()
    accounts, status = _accounts(session, is_for_all=is_for_all)
    for settings in accounts:
        sent = send_and_record(settings, anew=anew)
        done.append(sent)
        if sent.error is not None:
            if not is_for_all:
                raise sent.error
            terminal.warn(f"{sent.account}: {explain(sent.error)}")
    if terminal.is_json:
        terminal.print_object({"accounts": [each.as_json() for each in done]})
    rows = [[getattr(each, name) for name in SENT_COLUMNS[:-1]] for each in done]
    terminal.print_table(
        SENT_COLUMNS, [[*row, f"{e.seconds:.1f}"] for row, e in zip(rows, done, strict=True)]
    )
    failed = sum(each.error is not None for each in done)
    terminal.say(f"{count_noun(len(done) - failed, 'account')} in the lakehouse.")
    return max(status, 1 if failed else 0)


@lakehouse.command(
    cls=Command,
    examples=("connector lakehouse status", "connector lakehouse status --json"),
)
def status(session: Session) -> int:
    """Show the accounts of the lakehouse, with their rows, and the states that can be asked for."""
    terminal = session.terminal
    found = run_standing(session.load())
    if terminal.is_json:
        terminal.print_object(found.as_json())
    rows = [
        (
            *(each.account, shown(each.published_at)),
            None if each.true_of is None else shown(each.true_of),
            each.personal,
            len(found.rows.get(each.account, {})),
            sum(found.rows.get(each.account, {}).values()),
        )
        for each in found.entries
    ]
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
@click.option("--apply", "applies", is_flag=True, help="Do it. Without: say what there is to do.")
def maintain(session: Session, *, keep_days: int | None, applies: bool) -> int:
    """Let earlier states expire, join small files, and remove those that nothing needs.

    It is for the whole lakehouse, and changes nothing of what a reader sees now. A file that
    nothing needs any more is removed an hour later, by the next call: somebody may be reading it.
    """
    settings = session.load()
    days = settings.lakehouse_keep_days.value if keep_days is None else keep_days
    with session.terminal.progress("maintain"):
        done = run_maintain(settings, days, applies=applies)
    if session.terminal.is_json:
        session.terminal.print_object({"applied": applies, **done.as_json()})
    verb = "expired" if applies else "would expire"
    said = (
        f"{count_noun(done.expired, 'earlier state')} {verb}, {done.kept:,} kept;"
        f" {count_noun(done.removed_files, 'file')} {'removed' if applies else 'to be removed'}"
    )
    if applies:
        said += f"; {done.rewritten:,} rewritten and {done.joined:,} joined"
    session.terminal.say(f"{said}.")
    if not applies:
        session.terminal.say("Nothing was changed. Run it again with --apply to do it.")
    return 0


@lakehouse.command(
    cls=Command,
    examples=("connector lakehouse remove --account acme --apply",),
    if_interrupted="Run it again to go on.",
)
@click.option("--apply", "applies", is_flag=True, help="Do it. Without: say what is there.")
def remove(session: Session, *, applies: bool) -> int:
    """Take the account out of the lakehouse, with everything that it ever published there.

    Earlier states end for all accounts, since a state is one of the whole lakehouse. The account's
    own folder stays as it is; while the settings name the lakehouse, its next publication puts it
    there again.
    """
    settings = session.load()
    terminal = session.terminal
    account = Place.asked_of(settings).account
    if not applies:
        rows = run_standing(settings).rows.get(account, {})
        if terminal.is_json:
            terminal.print_object({"applied": False, "account": account, "rows": rows})
        terminal.say(f"{account}: {count_noun(sum(rows.values()), 'row')} in {len(rows)} tables.")
        terminal.say("Nothing was changed. Run it again with --apply to take them out.")
        return 0
    done = run_remove(settings)
    if terminal.is_json:
        terminal.print_object({"applied": True, **done.as_json()})
    terminal.say(
        f"{account}: {count_noun(done.removed, 'row')} taken out; earlier states have ended."
    )
    return 0


def _accounts(session: Session, *, is_for_all: bool) -> tuple[list[Settings], int]:
    """The account that is meant, or each that is configured and has a lakehouse; and the exit
    status of those whose settings are wrong.
    """
    if not is_for_all:
        return [session.load()], 0
    found, status = list[Settings](), 0
    for each in configured_accounts(os.environ, Path.cwd()):
        try:
            settings = each.required()
        except ConnectorError as error:
            session.terminal.warn(f"{each.title}: {explain(error)}")
            status = max(status, error.exit_status)
            continue
        if settings.lakehouse.value is not None:
            found.append(settings)
    if not found and not status:
        raise Misused(
            "no configured account has a lakehouse",
            action="Set CONNECTOR_LAKEHOUSE_FILE and CONNECTOR_LAKEHOUSE_DATA;"
            " docs/LAKEHOUSE.md shows how.",
        )
    return found, status
