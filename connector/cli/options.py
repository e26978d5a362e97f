"""Options and arguments that several commands take, and types of their values."""

from __future__ import annotations

from pathlib import Path

import click

FILE = click.Path(path_type=Path, dir_okay=False)
"""Type of an option whose value is the path of a file."""


def comma_separated(text: str) -> tuple[str, ...]:
    """Split text at commas and strip blanks; empty parts are left out. Used as an option type."""
    return tuple(each.strip() for each in text.split(",") if each.strip())


resources = click.argument("resources", nargs=-1, metavar="[RESOURCE]...")
budget = click.option(
    "--max-requests",
    "budget",
    type=click.IntRange(min=1),
    metavar="N",
    help="Maximum number of API requests, including retries. Exits with status 4 when reached.",
)
all_accounts = click.option(
    "--all", "is_for_all", is_flag=True, help="Run for all configured accounts, one after another."
)
ignore_quota = click.option(
    "--ignore-quota",
    "ignores_quota",
    is_flag=True,
    help="Send requests even if the API reported that the monthly quota is used up, for example"
    " after a plan upgrade.",
)
