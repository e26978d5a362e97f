"""`connector sweep`: a pull that compares every page of the lists as well.

Parses, calls, prints, as `connector pull` does.
"""

from __future__ import annotations

import click

from connector.cli import options
from connector.cli.pull import pull_and_print
from connector.cli.session import Command, Session
from connector.engine.pull import Manner


@click.command(
    cls=Command,
    checks_alerts=True,
    examples=("connector sweep", "connector sweep candidates --accept-deletes"),
    if_interrupted="What has landed is kept; run the same command again to continue.",
)
@options.resources
@options.budget
@options.accept_deletes
def sweep(
    session: Session, *, resources: tuple[str, ...], budget: int | None, accepts_deletes: bool
) -> int:
    """Pull, and compare every page of the lists with what is landed.

    A pull looks for deletions where the counts differ; a sweep looks everywhere, for one request
    per hundred records, and finds what cancels out in a count. What differs is read again; only
    what the API itself says is gone is marked as deleted.
    """
    manner = Manner(sweeps=True, accepts_deletes=accepts_deletes)
    return pull_and_print(session, resources, command="sweep", manner=manner, budget=budget)
