"""Session: settings in, a sentence and an exit status out, for every command.

A command receives a `Session` and returns its exit status. Whatever goes wrong becomes a sentence
here; a traceback is shown to nobody but those who ask for it with `--debug`, and never with the
key in it. No command's own work is done here.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import click

from connector.atomic_files import wide
from connector.cli.stopping import describe_interrupt
from connector.cli.terminal import ProgressMeter, Terminal
from connector.errors import ConnectorError, Misused, count_noun
from connector.log import Masked
from connector.settings.accounts import ConfiguredAccount, configured_accounts, require_account
from connector.settings.model import Settings, load_for_alerts, load_settings
from connector.settings.values import Age, read_age

if TYPE_CHECKING:
    from connector.publishing.project import CheckResult, ModelBuilt
    from connector.pulls.outcome import Progress
    from connector.warehouse.runs import ResourceRun

_LOGGER = logging.getLogger(__name__)

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any] | click.Command)


@dataclass(frozen=True, slots=True)
class Session:
    """One call of a command: its terminal, and how its settings are read."""

    terminal: Terminal
    is_debug: bool
    load: Callable[[], Settings]

    def accounts(self, *, is_for_all: bool) -> tuple[ConfiguredAccount, ...]:
        """The account that is meant, or all that are configured."""
        if is_for_all:
            return configured_accounts(os.environ, Path.cwd())
        settings = self.load()
        return (ConfiguredAccount(settings.account.value, settings),)

    def for_each(
        self, do: Callable[[Settings], T], *, is_for_all: bool
    ) -> Iterator[tuple[ConfiguredAccount, T | ConnectorError]]:
        """Call `do` for the chosen account, or for each configured one.

        Of all accounts, one that cannot be looked at gives its error; the one that is meant raises
        it.
        """
        for each in self.accounts(is_for_all=is_for_all):
            try:
                yield each, do(each.required())
            except ConnectorError as error:
                if not is_for_all:
                    raise
                yield each, error


class Command(click.Command):
    """A command with `--account`, `--quiet`, `--json` and `--debug`, that ends with a sentence.

    Its callback is given a `Session` first, and its own parameters; it returns an exit status.
    `examples` are lines to type, shown by `--help`; `if_interrupted` is what Ctrl-C leaves;
    `is_for_account` says whether the command works on a configured account, `checks_alerts`
    whether what it has done may be a reason for alerts. A command that `begins_accounts` has
    `--create` for an account that has no files yet; one that `makes_folders` needs no such option.
    """

    def __init__(
        self,
        *args: Any,
        examples: tuple[str, ...],
        if_interrupted: str = "",
        is_for_account: bool = True,
        checks_alerts: bool = False,
        begins_accounts: bool = False,
        makes_folders: bool = False,
        **options: Any,
    ) -> None:
        super().__init__(*args, **options)
        self.examples, self.if_interrupted = examples, if_interrupted
        self.checks_alerts, self.makes_folders = checks_alerts, makes_folders
        if is_for_account:
            about = "Name of the account. Required if the configuration has named accounts."
            self.params.append(click.Option(["--account"], metavar="NAME", help=about))
        if begins_accounts:
            about = "Create the account's folder if the account is new and not configured."
            self.params.append(click.Option(["--create", "creates"], is_flag=True, help=about))
        about = "Print only warnings and errors, for cron."
        self.params.append(click.Option(["--quiet", "is_quiet"], is_flag=True, help=about))
        about = "Print one JSON object on stdout."
        self.params.append(click.Option(["--json", "is_json"], is_flag=True, help=about))
        about = "Show the log on stderr."
        self.params.append(click.Option(["--debug", "is_debug"], is_flag=True, help=about))

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write what the command does, and the examples below it as they stand."""
        super().format_help_text(ctx, formatter)
        with formatter.section("Examples" if len(self.examples) > 1 else "Example"):
            for each in self.examples:
                formatter.write(f"{'':>{formatter.current_indent}}{each}\n")

    def invoke(self, ctx: click.Context) -> NoReturn:
        """Call the command, and leave with its exit status."""
        account = ctx.params.pop("account", None)
        creates = ctx.params.pop("creates", False) or self.makes_folders
        is_json, is_debug = ctx.params.pop("is_json"), ctx.params.pop("is_debug")
        is_quiet = ctx.params.pop("is_quiet")
        terminal = Terminal(sys.stdout, sys.stderr, os.environ, is_json=is_json, is_quiet=is_quiet)
        if account is not None and ctx.params.get("is_for_all"):
            error = Misused("--account and --all are both given", action="Give one of them.")
            raise SystemExit(terminal.fail(error))
        loaded: list[Settings] = []

        def load() -> Settings:
            loaded.append(_load(terminal, account, is_debug, creates=creates))
            return loaded[-1]

        session = Session(terminal, is_debug, load)
        assert self.callback is not None
        call = partial(self.callback, session, **ctx.params)
        status, is_interrupted = _perform(terminal, call, self.if_interrupted)
        if self.checks_alerts and not is_interrupted:
            flags = {"account": account}
            settings = loaded[-1] if loaded else load_for_alerts(flags, os.environ, Path.cwd())
            if settings is not None:
                _check_alerts(terminal, settings)
        raise SystemExit(status)


def _perform(terminal: Terminal, call: Callable[[], int], if_interrupted: str) -> tuple[int, bool]:
    """Return the exit status of the call, and whether it was interrupted."""
    try:
        return call(), False
    except ConnectorError as error:
        _LOGGER.debug("the command failed", exc_info=True)
        return terminal.fail(error), False
    except KeyboardInterrupt:
        what, status = describe_interrupt()
        said = f"{what} {if_interrupted}".rstrip()
        told = {"code": "interrupted", "message": said, "exit_status": status}
        terminal.print_object({"error": told})
        terminal.say(said)
        return status, True
    except BrokenPipeError:
        # Whoever read the output has left, as `head` does. Nothing more can be said to them.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1, False
    except Exception as error:  # a mistake of ours is told in a sentence as well
        _LOGGER.debug("the command failed", exc_info=True)
        return terminal.fail(ConnectorError(f"an unexpected error: {error_place(error)}")), False


def _load(terminal: Terminal, account: str | None, is_debug: bool, *, creates: bool) -> Settings:
    """Read the settings, print their warnings, and begin to log if that was requested."""
    settings = require_account(load_settings({"account": account}), creates=creates)
    terminal.form, terminal.name_places = settings.log.value, settings.name_places
    terminal.fields["account"] = settings.account.value
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
    """Send the alerts that are due; the command's own end stays as it is."""
    if settings.alert_webhook.value is None and settings.alert_email_host.value is None:
        return
    # Who has no alerts set need not wait for what sends them.
    from connector.operations.alert_check import check_alerts  # noqa: PLC0415

    try:
        for failure in check_alerts(settings, met=terminal.failure).failures:
            terminal.warn(
                f"{failure}. 'connector alerts' lists the alerts; the next run sends them again."
            )
    except ConnectorError as error:
        terminal.warn(f"alerts could not be checked: {error}. {error.action}")
    except KeyboardInterrupt:
        terminal.warn("the check of alerts was stopped. The next check continues.")
    except Exception as error:
        _LOGGER.debug("checking alerts failed", exc_info=True)
        terminal.warn(f"alerts could not be checked: an unexpected error: {error_place(error)}")


def error_place(error: Exception) -> str:
    """The error's kind and line, without its text, which may hold anything."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    kind = type(error).__name__
    if trace is None:
        return kind
    return f"{kind} in {Path(trace.tb_frame.f_code.co_filename).name}, line {trace.tb_lineno}"


class _TerminalHandler(logging.Handler):
    """Log handler that says each line on the terminal, which neutralises it."""

    def __init__(self, terminal: Terminal) -> None:
        super().__init__()
        self._terminal = terminal

    def emit(self, record: logging.LogRecord) -> None:
        """Say the record."""
        self._terminal.log(self.format(record))


def show_log(terminal: Terminal, *secrets: str) -> None:
    """Show the log on standard error from here on, with the secrets masked.

    The libraries' own logs stay as they are: they would show addresses with what they ask for.
    """
    speaker = _TerminalHandler(terminal)
    speaker.setFormatter(Masked(secrets, terminal.form))
    logger = logging.getLogger("connector")
    logger.handlers = [speaker]
    logger.setLevel(logging.DEBUG)
    logger.propagate = False


# -- Progress --------------------------------------------------------------------------------------
# Who a meter is moved by: what reads records, goes through rows and builds models.


class RunProgress:
    """Meter of a run: moves with records, rows and models, remembers what has ended."""

    def __init__(self, meter: ProgressMeter) -> None:
        self._meter = meter
        self._resource, self._read = "", 0
        self.resources: list[ResourceRun] = []
        self.models: list[ModelBuilt] = []
        self.checks: list[CheckResult] = []

    def __call__(self, progress: Progress) -> None:
        """Show how many records are read, or rows ended, of those known of so far."""
        name, read, pending = progress.batch or progress.resource, progress.read, progress.pending
        if progress.waits_until is not None:
            self._meter.show(f"{self._resource}, waiting until {progress.waits_until:%H:%M:%S} UTC")
        elif progress.until is not None:
            in_doubt = count_noun(pending, "row")
            self._meter.show(
                f"{in_doubt} unconfirmed, searching again at {progress.until:%H:%M:%S} UTC"
            )
        elif progress.ended is not None:
            _LOGGER.debug(f"{name}: {progress.ended.outcome}, {progress.requests} requests")
            self.resources.append(progress.ended)
        elif name != self._resource:
            self._resource, self._read = name, 0
            self._meter.begin(name)
        else:
            _LOGGER.debug(f"{name}: {read} read, {pending} pending, {progress.requests} requests")
            total, steps = read + pending, read - self._read
            self._meter.show(f"{name}, {progress.requests} requests", total=total, steps=steps)
            self._read = read

    def on_plan(self, models: int, checks: int) -> None:
        """Begin the bar of models and checks."""
        self._meter.begin("build models", models + checks)

    def on_model_start(self, name: str) -> None:
        """The model's turn has come."""
        self._meter.show(f"build {name}")

    def on_model_end(self, model: ModelBuilt) -> None:
        """The model stands."""
        self._meter.show(steps=1)
        self.models.append(model)

    def on_check_end(self, check: CheckResult) -> None:
        """A check has ended."""
        self._meter.show(f"check {check.name}", steps=1)
        self.checks.append(check)


# -- Options ---------------------------------------------------------------------------------------
# The arguments and options that several commands take, each described once.


def comma_separated(text: str) -> tuple[str, ...]:
    """Names parted by commas, without blanks: the type of an option."""
    return tuple(each.strip() for each in text.split(",") if each.strip())


def length_of_time(text: str) -> Age:
    """A length of time, such as 26h: the type of an option."""
    try:
        return read_age(text)
    except ValueError as error:
        raise click.BadParameter(f"{text!r} is not {error}") from None


resources = click.argument("resources", nargs=-1, metavar="[RESOURCE]...")
"""The resources that a command is about; none are all of them."""

budget = click.option(
    "--max-requests",
    "budget",
    type=click.IntRange(min=1),
    metavar="N",
    help="Maximum number of API requests, including retries. Exits with status 4 when reached.",
)
"""`--max-requests N`: maximum number of requests that a command sends."""

accept_deletes = click.option(
    "--accept-deletes",
    "accepts_deletes",
    is_flag=True,
    help="Accept all deletions, even a suspiciously large number.",
)
"""`--accept-deletes`: accept a suspiciously large number of deletions."""

all_accounts = click.option(
    "--all", "is_for_all", is_flag=True, help="Run for all configured accounts, one after another."
)
"""`--all`: all configured accounts."""

ask_anyway = click.option(
    "--ignore-quota",
    "asks_anyway",
    is_flag=True,
    help="Send requests even if the API reported that the monthly quota is used up, for example"
    " after a plan upgrade.",
)
"""`--ignore-quota`: send requests although the quota is reported as used up."""


def max_age_option(about: str) -> Callable[[F], F]:
    """`--max-age AGE`: how old the last proof may be."""
    return click.option("--max-age", type=length_of_time, metavar="AGE", help=about)


def apply_option(about: str) -> Callable[[F], F]:
    """`--apply`: do it, and do not only say what would be done."""
    return click.option("--apply", "applies", is_flag=True, help=about)


def file_option(*names: str, about: str) -> Callable[[F], F]:
    """An option that names a file."""
    path = click.Path(path_type=Path, dir_okay=False)
    return click.option(*names, type=path, metavar="FILE", help=about)
