"""The arguments and options that several commands take, each described once."""

from __future__ import annotations

import click

resources = click.argument("resources", nargs=-1, metavar="[RESOURCE]...")
"""The resources that a command is about; none are all of them."""

budget = click.option(
    "--budget",
    type=click.IntRange(min=1),
    metavar="N",
    help="Send at most N requests, retries among them, and end with 4 if that is not enough.",
)
"""`--budget N`: the most requests that a command may send."""

accept_deletes = click.option(
    "--accept-deletes",
    "accepts_deletes",
    is_flag=True,
    help="Believe all deletions, however many: you have looked, and they are meant.",
)
"""`--accept-deletes`: a person's word where very many records are gone."""
