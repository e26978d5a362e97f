"""Arguments and options that several commands take, and short forms of click's decorators.

`names` are the flags of an option, and the name of its parameter if it differs from the flag.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any] | click.Command)


class Decorator(Protocol):
    """Adds an argument or option to a command."""

    def __call__(self, command: F, /) -> F:
        """Return the command."""


def option(names: str, about: str, **more: Any) -> Decorator:
    """Return an option with a value."""
    return click.option(*names.split(), help=about, **more)


def flag(names: str, about: str) -> Decorator:
    """Return an option without a value."""
    return option(names, about, is_flag=True)


def number(names: str, about: str, *, least: int = 1, **more: Any) -> Decorator:
    """Return an option whose value is a number."""
    return option(names, about, type=click.IntRange(min=least), metavar="N", **more)


def file(names: str, about: str) -> Decorator:
    """Return an option whose value is the path of a file."""
    path = click.Path(path_type=Path, dir_okay=False)
    return option(names, about, type=path, metavar="FILE")


def path_argument(name: str, metavar: str, **more: Any) -> Decorator:
    """Return an argument that is a path."""
    return click.argument(name, type=click.Path(path_type=Path, **more), metavar=metavar)


def comma_separated(text: str) -> tuple[str, ...]:
    """Split text at commas and strip blanks; empty parts are left out. Used as an option type."""
    return tuple(each.strip() for each in text.split(",") if each.strip())


resources = click.argument("resources", nargs=-1, metavar="[RESOURCE]...")
budget = number(
    "--max-requests budget",
    "Maximum number of API requests, including retries. Exits with status 4 when reached.",
)
all_accounts = flag("--all is_for_all", "Run for all configured accounts, one after another.")
ignore_quota = flag(
    "--ignore-quota ignores_quota",
    "Send requests even if the API reported that the monthly quota is used up, for example after a"
    " plan upgrade.",
)
