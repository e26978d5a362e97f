"""`connector retention`: erase those whose time is over by the rules.

Parses, calls, prints. What rules mean is `connector/erasure`.
"""

from __future__ import annotations

import click

from connector.cli.erase import print_erased
from connector.cli.session import Command, Session
from connector.erasure import retain


@click.command(
    cls=Command,
    examples=("connector retention", "connector retention --apply --most 100"),
    if_interrupted="Run 'connector erase --apply' to bring to its end what was begun.",
)
@click.option("--apply", "applies", is_flag=True, help="Erase those who are due. Without: count.")
@click.option(
    "--most",
    type=click.IntRange(min=1),
    metavar="N",
    help="Erase at most N people; the next run goes on.",
)
def retention(session: Session, *, applies: bool, most: int | None) -> int:
    """Erase those whose time is over by the rules in connector.toml, under [retention].

    Without --apply it says how many are due by each rule, and changes nothing. Who is placed is
    excepted. Erasing is what 'connector erase' does, with one receipt for all.
    """
    done = retain(session.load(), applies=applies, most=most)
    terminal = session.terminal
    if terminal.is_json:
        terminal.print_object(done.as_json())
    rows = [
        (each.rule.resource, str(each.rule), len(each.ids), each.excepted, each.undated)
        for each in done.dues
    ]
    terminal.print_table(("resource", "rule", "due", "placed", "undated"), rows)
    if done.erased is not None:
        print_erased(terminal, done.erased)
    elif any(each.ids for each in done.dues):
        terminal.say("Nothing was changed. Run it again with --apply to erase those who are due.")
    return done.exit_status
