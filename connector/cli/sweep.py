"""`connector sweep`: a pull that compares every page of the lists as well.

Parses, calls, prints, as `connector pull` does.
"""

from __future__ import annotations

import asyncio

import click

from connector.cli.pull import Follower, print_report
from connector.cli.session import Command, Session
from connector.engine.pull import Manner
from connector.run import pull as run_pull


@click.command(
    cls=Command,
    examples=("connector sweep", "connector sweep candidates --accept-deletes"),
    if_interrupted="What has landed is kept; run the same command again to continue.",
)
@click.argument("resources", nargs=-1, metavar="[RESOURCE]...")
@click.option(
    "--budget",
    type=click.IntRange(min=1),
    metavar="N",
    help="Send at most N requests, and end with 4 if that is not enough.",
)
@click.option(
    "--accept-deletes",
    "accepts_deletes",
    is_flag=True,
    help="Believe all deletions, however many: you have looked, and they are meant.",
)
def sweep(
    session: Session, *, resources: tuple[str, ...], budget: int | None, accepts_deletes: bool
) -> int:
    """Pull, and compare every page of the lists with what is landed.

    A pull looks for deletions where the counts differ; a sweep looks everywhere, for one request
    per hundred records, and finds what cancels out in a count. What differs is read again; only
    what the API itself says is gone is marked as deleted.
    """
    settings = session.load()
    terminal = session.terminal
    manner = Manner(sweeps=True, accepts_deletes=accepts_deletes)
    with terminal.progress("sweep") as meter:
        report = asyncio.run(
            run_pull(
                settings,
                resources,
                manner=manner,
                budget=budget,
                command="sweep",
                watch=Follower(meter),
            )
        )
    print_report(terminal, report)
    return report.exit_status
