"""Base class of all commands: loads settings, prints errors and sets the exit status.

A command receives a `Session` and returns its exit status. Errors are printed as sentences; only
`--debug` shows tracebacks, with secrets masked.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import click

from connector.atomic_files import find_wide_permissions
from connector.cli.stopping import describe_interrupt
from connector.cli.terminal import ProgressMeter, Terminal, discard_output, open_closed_streams
from connector.errors import ConnectorError, Misused, count_noun
from connector.log import mask_secrets
from connector.settings import (
    ConfiguredAccount,
    Settings,
    configured_accounts,
    load_settings,
    require_account,
)

if TYPE_CHECKING:
    from connector.models.runner import BuiltModel, CheckResult
    from connector.pulls.report import Progress
    from connector.state.runs import ResourceRun

_LOGGER = logging.getLogger(__name__)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Session:
    """Terminal and settings of one call of a command."""

    terminal: Terminal
    is_debug: bool
    load: Callable[..., Settings]

    def accounts(self, *, is_for_all: bool) -> tuple[ConfiguredAccount, ...]:
        """Return the chosen account, or all configured accounts."""
        if is_for_all:
            return configured_accounts(os.environ, Path.cwd())
        settings = self.load()
        return (ConfiguredAccount(settings.account, settings),)

    def for_each(
        self, do: Callable[[Settings], T], *, is_for_all: bool
    ) -> Iterator[tuple[ConfiguredAccount, T | ConnectorError]]:
        """Call `do` for the chosen account or for all accounts, and yield account and result.

        With `is_for_all` the error of an account is its result, instead of being raised.
        """
        for each in self.accounts(is_for_all=is_for_all):
            try:
                yield each, do(each.require_settings())
            except ConnectorError as error:
                if not is_for_all:
                    raise
                yield each, error


class Command(click.Command):
    """Command with the options `--account`, `--quiet`, `--json` and `--debug`.

    The callback takes a `Session` and its own parameters, and returns the exit status.

    Args:
        examples: Command lines for `--help`.
        if_interrupted: Sentences to print after Ctrl-C.
        is_for_account: Add `--account`.
        has_create_option: Add `--create`, which creates the folder of a new account.
        creates_folders: Create the folder of a new account without `--create`.
    """

    def __init__(
        self,
        *args: Any,
        examples: tuple[str, ...],
        if_interrupted: str = "",
        is_for_account: bool = True,
        has_create_option: bool = False,
        creates_folders: bool = False,
        **options: Any,
    ) -> None:
        super().__init__(*args, **options)
        self.examples, self.if_interrupted = examples, if_interrupted
        self.creates_folders = creates_folders
        if is_for_account:
            about = "Name of the account. Required if the configuration has named accounts."
            self.params.append(click.Option(["--account"], metavar="NAME", help=about))
        flags = {
            "--quiet": ("is_quiet", "Print only warnings and errors, for cron."),
            "--json": ("is_json", "Print one JSON object on stdout."),
            "--debug": ("is_debug", "Show the log on stderr."),
        }
        if has_create_option:
            about = "Create the account's folder if the account is new and not configured."
            flags = {"--create": ("creates", about), **flags}
        for flag, (name, about) in flags.items():
            self.params.append(click.Option([flag, name], is_flag=True, help=about))

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the description, and the examples without wrapping them."""
        super().format_help_text(ctx, formatter)
        with formatter.section("Examples" if len(self.examples) > 1 else "Example"):
            for each in self.examples:
                formatter.write(f"{'':>{formatter.current_indent}}{each}\n")

    def invoke(self, ctx: click.Context) -> NoReturn:
        """Call the command, and exit with its status."""
        account = ctx.params.pop("account", None)
        creates = ctx.params.pop("creates", False) or self.creates_folders
        is_json, is_debug = ctx.params.pop("is_json"), ctx.params.pop("is_debug")
        is_quiet = ctx.params.pop("is_quiet")
        open_closed_streams()
        terminal = Terminal(sys.stdout, sys.stderr, os.environ, is_json=is_json, is_quiet=is_quiet)
        if account is not None and ctx.params.get("is_for_all"):
            error = Misused("--account and --all are both given", action="Give one of them.")
            raise SystemExit(terminal.print_failure(error))

        def load(**options: object) -> Settings:
            given = {"account": account, **options}
            return _load_settings(terminal, given, is_debug, creates=creates)

        session = Session(terminal, is_debug, load)
        assert self.callback is not None
        call = partial(self.callback, session, **ctx.params)
        started = monotonic()
        status = _run_and_report(terminal, call, self.if_interrupted)
        terminal.log_end(ctx.command_path.partition(" ")[2], status, monotonic() - started)
        raise SystemExit(status)


def _run_and_report(terminal: Terminal, call: Callable[[], int], if_interrupted: str) -> int:
    """Call the command, print its error, and return the exit status."""
    try:
        return call()
    except ConnectorError as error:
        _LOGGER.debug("the command failed", exc_info=True, extra={"event": "command_failed"})
        return terminal.print_failure(error)
    except KeyboardInterrupt:
        reason, status = describe_interrupt()
        message = f"{reason} {if_interrupted}".rstrip()
        error_json = {"code": "interrupted", "message": message, "exit_status": status}
        terminal.print_object({"error": error_json})
        terminal.say(message)
        return status
    except BrokenPipeError:
        # The reader closed the pipe, as `head` does: print nothing more.
        discard_output(sys.stdout)
        return 1
    except Exception as error:
        _LOGGER.debug("the command failed", exc_info=True, extra={"event": "command_failed"})
        return terminal.print_failure(
            ConnectorError(f"an unexpected error: {error_location(error)}")
        )


def _load_settings(
    terminal: Terminal, options: Mapping[str, object], is_debug: bool, *, creates: bool
) -> Settings:
    """Load the settings and print their warnings. With `is_debug`, print the log from now on.

    With `creates`, the folder of an account that is not configured may be new.
    """
    settings = require_account(load_settings(options), creates=creates)
    terminal.form, terminal.name_places = settings.log, settings.replace_variables_by_origins
    terminal.fields["account"] = settings.account
    for warning in settings.warnings:
        terminal.warn(warning)
    for open_to_others in islice(find_wide_permissions(settings.folder), 1):
        terminal.warn(f"{open_to_others}. {open_to_others.action} 'connector doctor' shows all.")
    show_log(terminal, *settings.secrets(), is_debug=is_debug)
    if is_debug:
        for name, value, origin in settings.display_rows():
            _LOGGER.debug(
                f"setting {name} is {value!r}, from {origin}", extra={"event": "setting_read"}
            )
    return settings


def error_location(error: Exception) -> str:
    """Return the class, file and line of an error, but not its text, which may contain secrets."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    kind = type(error).__name__
    if trace is None:
        return kind
    return f"{kind} in {Path(trace.tb_frame.f_code.co_filename).name}, line {trace.tb_lineno}"


class _TerminalHandler(logging.Handler):
    """Log handler that prints each record on the terminal."""

    def __init__(self, terminal: Terminal, secrets: Iterable[str]) -> None:
        super().__init__()
        self._terminal, self._secrets = terminal, tuple(secrets)

    def emit(self, record: logging.LogRecord) -> None:
        """Print the record."""
        fields = {"event": getattr(record, "event", None), **getattr(record, "fields", {})}
        text = mask_secrets(record.getMessage(), self._secrets)
        trace = ""
        if record.exc_info:
            trace = mask_secrets(
                logging.Formatter().formatException(record.exc_info), self._secrets
            )
        if record.levelno == logging.WARNING and not trace and self._terminal.form != "json":
            self._terminal.warn(text)
            return
        self._terminal.print_log_record(record.levelname.lower(), record.name, text, trace, fields)


def show_log(terminal: Terminal, *secrets: str, is_debug: bool = True) -> None:
    """Show the connector's log on standard error with secrets masked.

    Without `is_debug`, JSON has the events of a run, and text has warnings only. Logs of libraries
    are not shown: they contain URLs with search terms.
    """
    level = logging.INFO if terminal.form == "json" else logging.WARNING
    logger = logging.getLogger("connector")
    logger.handlers = [_TerminalHandler(terminal, secrets)]
    logger.setLevel(logging.DEBUG if is_debug else level)
    logger.propagate = False


# -- Progress --------------------------------------------------------------------------------------


class RunProgress:
    """Progress bar of a run. It also collects the completed resources, models and checks."""

    def __init__(self, meter: ProgressMeter) -> None:
        self._meter = meter
        self._resource, self._read = "", 0
        self.resources: list[ResourceRun] = []
        self.models: list[BuiltModel] = []
        self.checks: list[CheckResult] = []

    def __call__(self, progress: Progress) -> None:
        """Show the number of records read, or of rows finished."""
        name, read, pending = progress.batch or progress.resource, progress.read, progress.pending
        if progress.waits_until is not None:
            self._meter.update(
                f"{self._resource}, waiting until {progress.waits_until:%H:%M:%S} UTC"
            )
        elif progress.until is not None:
            in_doubt = count_noun(pending, "row")
            self._meter.update(
                f"{in_doubt} unconfirmed, searching again at {progress.until:%H:%M:%S} UTC"
            )
        elif progress.ended is not None:
            _LOGGER.debug(
                f"{name}: {progress.ended.outcome}, {progress.requests} requests",
                extra={"event": "resource_ended"},
            )
            self.resources.append(progress.ended)
        elif name != self._resource:
            self._resource, self._read = name, 0
            self._meter.begin(name)
        else:
            _LOGGER.debug(
                f"{name}: {read} read, {pending} pending, {progress.requests} requests",
                extra={"event": "resource_progress"},
            )
            total, steps = read + pending, read - self._read
            self._meter.update(f"{name}, {progress.requests} requests", total=total, steps=steps)
            self._read = read

    def on_build(self, done: BuiltModel | CheckResult, steps: int) -> None:
        """Advance the bar of models and checks, and keep the model or the result."""
        if not self.models and not self.checks:
            self._meter.begin("build models", steps)
        from connector.models.runner import CheckResult  # noqa: PLC0415 # most commands build nothing

        if isinstance(done, CheckResult):
            self.checks.append(done)
            self._meter.update(f"check {done.check.name}", steps=1)
        else:
            self.models.append(done)
            self._meter.update(f"build {done.name}", steps=1)
