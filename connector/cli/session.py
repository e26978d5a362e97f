"""How every command begins and ends: settings in, a sentence and an exit status out.

A command receives a `Session` and returns its exit status. Whatever goes wrong becomes a sentence
here; a traceback is shown to nobody but those who ask for it with `--debug`, and never with the
key in it. No command's own work is done here.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, NoReturn, TypeVar, get_args

import click

from connector.cli import INTERRUPTED
from connector.cli.terminal import Terminal
from connector.engine.push_states import Mode
from connector.errors import ConnectorError
from connector.pushes.options import PUSH_OPTIONS
from connector.settings.model import Settings, load_settings
from connector.settings.values import Age, read_age
from connector.system.atomic_files import wide
from connector.system.log import Masked

_LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Session:
    """One call of a command: its terminal, and how its settings are read."""

    terminal: Terminal
    is_debug: bool
    load: Callable[[], Settings]


class Command(click.Command):
    """A command with `--account`, `--json` and `--debug`, that ends with a sentence.

    Its callback is given a `Session` first, and its own parameters; it returns an exit status.
    `examples` are lines to type, shown by `--help`; `if_interrupted` is what Ctrl-C leaves;
    `is_for_account` says whether the command works on a configured account, `checks_alerts`
    whether what it has done may be a reason for alerts.
    """

    def __init__(
        self,
        *args: Any,
        examples: tuple[str, ...],
        if_interrupted: str = "",
        is_for_account: bool = True,
        checks_alerts: bool = False,
        **options: Any,
    ) -> None:
        super().__init__(*args, **options)
        self.examples, self.if_interrupted = examples, if_interrupted
        self.checks_alerts = checks_alerts
        account = click.Option(
            ["--account"], metavar="NAME", help="A configured account; without: the unnamed one."
        )
        self.params += [
            *([account] if is_for_account else ()),
            click.Option(
                ["--json", "is_json"], is_flag=True, help="Print one JSON object on stdout."
            ),
            click.Option(["--debug", "is_debug"], is_flag=True, help="Show the log on stderr."),
        ]

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write what the command does, and the examples below it as they stand."""
        super().format_help_text(ctx, formatter)
        write_examples(formatter, self.examples)

    def invoke(self, ctx: click.Context) -> NoReturn:
        """Call the command, and leave with its exit status."""
        account = ctx.params.pop("account", None)
        is_json, is_debug = ctx.params.pop("is_json"), ctx.params.pop("is_debug")
        terminal = Terminal(sys.stdout, sys.stderr, os.environ, is_json=is_json)
        loaded: list[Settings] = []

        def load() -> Settings:
            loaded.append(_load(terminal, account, is_debug))
            return loaded[-1]

        session = Session(terminal, is_debug, load)
        assert self.callback is not None
        call = partial(self.callback, session, **ctx.params)
        status = _perform(session, call, self.if_interrupted)
        if self.checks_alerts and loaded and status != INTERRUPTED:
            _check_alerts(terminal, loaded[-1])
        raise SystemExit(status)


def write_examples(formatter: click.HelpFormatter, examples: tuple[str, ...]) -> None:
    """Write lines to type, unwrapped."""
    with formatter.section("Examples" if len(examples) > 1 else "Example"):
        for each in examples:
            formatter.write(f"{'':>{formatter.current_indent}}{each}\n")


def _perform(session: Session, call: Callable[[], int], if_interrupted: str) -> int:
    """The exit status of the call, whatever happens in it."""
    terminal = session.terminal
    try:
        return call()
    except ConnectorError as error:
        _LOGGER.debug("the command failed", exc_info=True)
        return terminal.fail(error)
    except KeyboardInterrupt:
        return _interrupt(terminal, f"Interrupted. {if_interrupted}".rstrip())
    except BrokenPipeError:
        # Whoever read the output has left, as `head` does. Nothing more can be said to them.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Exception as error:  # a mistake of ours is told in a sentence as well
        _LOGGER.debug("the command failed", exc_info=True)
        return terminal.fail(ConnectorError(f"an unexpected error: {_place(error)}"))


def _load(terminal: Terminal, account: str | None, is_debug: bool) -> Settings:
    """Read the settings, say their warnings, and begin to log if that was asked for."""
    settings = load_settings({"account": account}, os.environ, Path.cwd())
    terminal.form = settings.log.value
    for warning in settings.warnings:
        terminal.warn(warning)
    for open_to_others in islice(wide(settings.folder), 1):
        terminal.warn(f"{open_to_others}. {open_to_others.action} 'connector doctor' shows all.")
    if is_debug:
        show_log(terminal, *settings.secrets())
        for name, value, origin in settings.rows():
            _LOGGER.debug(f"{name} is {value!r}, from {origin}")
    return settings


def _check_alerts(terminal: Terminal, settings: Settings) -> None:
    """Send the alerts that are due, where they go anywhere. The command's own end stays as it is,
    whatever comes of that.
    """
    if settings.alert_webhook.value is None and settings.alert_email_host.value is None:
        return
    # Who has no alerts set need not wait for what sends them.
    from connector.operations.alert_check import check_alerts  # noqa: PLC0415

    try:
        for failure in check_alerts(settings).failures:
            terminal.warn(f"{failure}. 'connector alerts' shows them; they are sent again.")
    except ConnectorError as error:
        terminal.warn(f"alerts could not be checked: {error}. {error.action}")
    except KeyboardInterrupt:
        terminal.warn("alerts were not checked to the end; the next check goes on.")
    except Exception as error:
        _LOGGER.debug("checking alerts failed", exc_info=True)
        terminal.warn(f"alerts could not be checked: an unexpected error: {_place(error)}")


def _interrupt(terminal: Terminal, said: str) -> int:
    if terminal.is_json:
        error = {"code": "interrupted", "message": said, "exit_status": INTERRUPTED}
        terminal.print_object({"error": error})
    terminal.say(said)
    return INTERRUPTED


def _place(error: Exception) -> str:
    """The error's kind and the line it came from, and not its text, which may hold anything."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    kind = type(error).__name__
    if trace is None:
        return kind
    return f"{kind} in {Path(trace.tb_frame.f_code.co_filename).name}, line {trace.tb_lineno}"


class _ToTerminal(logging.Handler):
    """Says each line of the log on the terminal, where everything unsafe is neutralised."""

    def __init__(self, terminal: Terminal) -> None:
        super().__init__()
        self._terminal = terminal

    def emit(self, record: logging.LogRecord) -> None:
        """Say the record."""
        self._terminal.log(self.format(record))


def show_log(terminal: Terminal, *secrets: str) -> None:
    """Show the connector's log on standard error from here on, with the secrets masked.

    The libraries' own logs stay as they are: they would show addresses with what they ask for.
    """
    speaker = _ToTerminal(terminal)
    speaker.setFormatter(Masked(secrets, terminal.form))
    logger = logging.getLogger("connector")
    logger.handlers = [speaker]
    logger.setLevel(logging.DEBUG)
    logger.propagate = False


# -- Options ---------------------------------------------------------------------------------------
# The arguments and options that several commands take, each described once.


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
