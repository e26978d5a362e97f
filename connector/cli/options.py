"""The arguments and options that several commands take, each described once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, get_args

import click

from connector.alert_settings import Age, read_age
from connector.asking import PUSH_OPTIONS
from connector.engine.task import Mode

F = TypeVar("F", bound=Callable[..., Any])

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


def mode(*, default: Mode | None = None) -> Callable[[F], F]:
    """`--mode`: what rows become; it has to be given where there is no default."""
    # click takes None for a default like any other, and so nothing for missing.
    given: dict[str, Any] = {"required": True}
    if default is not None:
        given = {"default": default, "show_default": True}
    return click.option(
        "--mode", type=click.Choice(get_args(Mode)), help=PUSH_OPTIONS["mode"], **given
    )


class Names(click.ParamType[tuple[str, ...]]):
    """Names parted by commas."""

    name = "names"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, ...]:
        """The names, in order, without blanks."""
        return tuple(each.strip() for each in str(value).split(",") if each.strip())


class AgeText(click.ParamType[Age]):
    """A length of time such as 26h."""

    name = "age"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Age:
        """The age. Fails with what is allowed."""
        try:
            return value if isinstance(value, Age) else read_age(value)
        except ValueError as error:
            self.fail(f"{value!r} is not {error}", param, ctx)


all_accounts = click.option(
    "--all", "is_for_all", is_flag=True, help="Every configured account, one after another."
)
"""`--all`: not one account, but each."""

match = click.option(
    "--match",
    type=Names(),
    default="",
    metavar="FIELD,...",
    help=PUSH_OPTIONS["match"],
)
"""`--match`: how rows find their records."""

content_type = click.option(
    "--type",
    "content_type",
    metavar="SLUG",
    help=PUSH_OPTIONS["content_type"],
)
"""`--type`: the content type."""

ask_anyway = click.option(
    "--ask-anyway",
    "asks_anyway",
    is_flag=True,
    help="Ask the API although it said that the month is spent: the plan was enlarged, say.",
)
"""`--ask-anyway`: do not believe that the month is spent."""
