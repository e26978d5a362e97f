"""Arguments and options that several commands take."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any] | click.Command)


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

accept_deletes = click.option(
    "--accept-deletes",
    "accepts_deletes",
    is_flag=True,
    help="Accept all deletions, even a suspiciously large number.",
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


def apply_option(about: str) -> Callable[[F], F]:
    """Return the option `--apply` with this help text, for a command that previews by default."""
    return click.option("--apply", "applies", is_flag=True, help=about)


def file_option(*names: str, about: str) -> Callable[[F], F]:
    """Return an option whose value is the path of a file."""
    path = click.Path(path_type=Path, dir_okay=False)
    return click.option(*names, type=path, metavar="FILE", help=about)
