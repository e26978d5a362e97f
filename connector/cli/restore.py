"""`connector restore`: put an account's folder back from a backup.

Parses, calls, prints. What stays and what is lost is decided in `connector/backup`.
"""

from __future__ import annotations

from pathlib import Path

import click

from connector.backup import Manner, Restored, check_backup
from connector.backup import restore as run_restore
from connector.cli.session import Command, Session
from connector.cli.terminal import Terminal
from connector.engine.quota import shown


@click.command(
    cls=Command,
    examples=(
        "connector restore /mnt/backups/connector-unnamed-20261121T030000Z.tar --check",
        "connector restore /mnt/backups/connector-unnamed-20261121T030000Z.tar",
        "connector restore connector-acme-20261121T030000Z.tar --account acme --replace",
    ),
    if_interrupted="Run it again: what was moved aside is in the folder replaced-... of the data"
    " folder.",
)
@click.argument("source", type=click.Path(path_type=Path, dir_okay=False), metavar="FROM")
@click.option(
    "--check", "checks", is_flag=True, help="Only read the backup, and say if it is whole."
)
@click.option(
    "--replace",
    "replaces",
    is_flag=True,
    help="Although there are files here already; they are moved aside, and not deleted.",
)
@click.option(
    "--with-ledger",
    "takes_ledger",
    is_flag=True,
    help="Take the backup's ledger, although the one that is here can be read and knows more.",
)
@click.option(
    "--receipts",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    metavar="FOLDER",
    help="Receipts of erasures that are kept elsewhere: whoever they are about is erased again.",
)
def restore(
    session: Session,
    *,
    source: Path,
    checks: bool,
    replaces: bool,
    takes_ledger: bool,
    receipts: Path | None,
) -> int:
    """Put the account's folder back as it was when the backup FROM was made.

    The backup is read and checked before anything is touched, and nothing is done while a pull or a
    push is under way. The ledger that is here stays where it can: it knows what was pushed, spent
    and erased since. Whoever was erased since is erased again before analysts see the file. Then
    run 'connector pull': it makes the copy exact again.
    """
    terminal = session.terminal
    if checks:
        found = check_backup(source)
        if terminal.is_json:
            terminal.print_object({"whole": True, **found.as_json()})
        whose = found.account or "the unnamed account"
        terminal.print_line(
            f"Whole: {len(found.entries)} files of {whose}, as of {shown(found.made_at)},"
            f" by version {found.version}."
        )
        return 0
    settings = session.load()
    with terminal.progress("restore"):
        done = run_restore(settings, source, Manner(replaces, takes_ledger, receipts))
    if terminal.is_json:
        terminal.print_object(done.as_json())
    _print(terminal, done)
    return done.exit_status


def _print(terminal: Terminal, done: Restored) -> None:
    ledger = "the ledger that was here stays" if done.ledger.keeps_live else "with its ledger"
    made_at = shown(done.manifest.made_at)
    terminal.print_line(f"Restored: {len(done.manifest.entries)} files as of {made_at}, {ledger}.")
    for sentence in done.lost:
        terminal.warn(sentence)
    if done.receipts:
        terminal.say(
            "People who were erased after the backup were in it, and were erased again:"
            f" {len(done.receipts)} receipts are in receipts/."
        )
    for path in done.waiting:
        terminal.warn(f"{path} waited in the inbox then: put it back if it is still to be pushed")
    if done.aside is not None:
        terminal.say(f"What was here is in {done.aside}; remove it when nobody needs it.")
    if done.error is None:
        terminal.say("Run 'connector pull': it makes the copy exact again.")
        return
    terminal.warn(f"it was not brought to its end: {done.error} [{done.error.code}]")
    terminal.say(
        f"  {done.error.action} Then run 'connector erase --apply', which goes on with whoever is"
        " to be erased, and 'connector publish'."
    )
