"""Base class of all commands: loads settings, prints errors and sets the exit status.

A command receives a `Session` and returns its exit status. Errors are printed as sentences; only
`--debug` shows tracebacks, with secrets masked.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from time import monotonic
from traceback import extract_tb
from typing import Any, NoReturn, TypeVar

import click

from connector.atomic_files import find_wide_permissions
from connector.cli.stopping import describe_interrupt
from connector.cli.terminal import Terminal, discard_output, open_closed_streams
from connector.errors import DONE, FAILED, ConnectorError, Misused, file_error
from connector.log import mask_secrets
from connector.settings import (
    ConfiguredAccount,
    Settings,
    configured_accounts,
    load_settings,
    require_account,
)

_LOGGER = logging.getLogger(__name__)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Session:
    """Terminal and options of one call of a command."""

    terminal: Terminal
    is_debug: bool = False
    account: str | None = None
    creates: bool = False

    def load(self, **options: object) -> Settings:
        """Load the account's settings, print their warnings, and show the log from now on."""
        terminal = self.terminal
        given = load_settings({"account": self.account, **options})
        settings = require_account(given, creates=self.creates)
        terminal.form, terminal.name_places = settings.log, settings.replace_variables_by_origins
        terminal.fields["account"] = settings.account
        for warning in settings.warnings:
            terminal.warn(warning)
        for found in islice(find_wide_permissions(settings.folder), 1):
            terminal.warn(f"{found}. {found.action} 'connector doctor' shows all.")
        show_log(terminal, *settings.secrets(), is_debug=self.is_debug)
        for name, value, origin in settings.display_rows() if self.is_debug else ():
            text = f"setting {name} is {value!r}, from {origin}"
            _LOGGER.debug(text, extra={"event": "setting_read"})
        return settings

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
        self, *args: Any, examples: tuple[str, ...], if_interrupted: str = "",
        is_for_account: bool = True, has_create_option: bool = False, creates_folders: bool = False,
        **options: Any,
    ) -> None:  # fmt: skip
        super().__init__(*args, **options)
        self.examples, self.if_interrupted = examples, if_interrupted
        self.creates_folders = creates_folders
        if is_for_account:
            about = "Name of the account. Required if the configuration has named accounts."
            self.params.append(click.Option(["--account"], metavar="NAME", help=about))
        flags = {
            "--create": "Create the account's folder if the account is new and not configured.",
            "--quiet": "Print only warnings and errors, for cron.",
            "--json": "Print one JSON object on stdout.",
            "--debug": "Show the log on stderr.",
        }
        if not has_create_option:
            del flags["--create"]
        self.params += [click.Option([name], is_flag=True, help=flags[name]) for name in flags]

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the description, and the examples without wrapping them."""
        super().format_help_text(ctx, formatter)
        with formatter.section("Examples" if len(self.examples) > 1 else "Example"):
            for each in self.examples:
                formatter.write(f"{'':>{formatter.current_indent}}{each}\n")

    def invoke(self, ctx: click.Context) -> NoReturn:
        """Call the command, and exit with its status."""
        names = ("account", "create", "json", "debug", "quiet")
        account, creates, is_json, is_debug, is_quiet = (ctx.params.pop(n, None) for n in names)
        open_closed_streams()
        terminal = Terminal(sys.stdout, sys.stderr, os.environ, is_json=is_json, is_quiet=is_quiet)
        if account is not None and ctx.params.get("is_for_all"):
            error = Misused("--account and --all are both given", action="Give one of them.")
            raise SystemExit(terminal.print_failure(error))
        session = Session(terminal, is_debug, account, bool(creates) or self.creates_folders)
        assert self.callback is not None
        call = partial(self.callback, session, **ctx.params)
        started = monotonic()
        status = _run_and_report(terminal, call, self.if_interrupted)
        terminal.log_end(ctx.command_path.partition(" ")[2], status, monotonic() - started)
        raise SystemExit(status)


def _run_and_report(terminal: Terminal, call: Callable[[], int | None], if_interrupted: str) -> int:
    """Call the command, print its error, and return the exit status."""
    try:
        return call() or DONE
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
        return FAILED
    except Exception as error:
        _LOGGER.debug("the command failed", exc_info=True, extra={"event": "command_failed"})
        if isinstance(error, OSError):
            error = file_error(Path(error.filename or "a file"), error)
        if not isinstance(error, ConnectorError):
            error = ConnectorError(f"an unexpected error: {error_location(error)}")
        return terminal.print_failure(error)


def error_location(error: Exception) -> str:
    """Return the class, file and line of an error, but not its text, which may contain secrets."""
    frames = extract_tb(error.__traceback__)
    place = f" in {Path(frames[-1].filename).name}, line {frames[-1].lineno}" if frames else ""
    return f"{type(error).__name__}{place}"


class _TerminalHandler(logging.Handler):
    """Log handler that prints each record on the terminal."""

    def __init__(self, terminal: Terminal, secrets: Iterable[str]) -> None:
        super().__init__()
        self._terminal, self._secrets = terminal, tuple(secrets)

    def emit(self, record: logging.LogRecord) -> None:
        """Print the record."""
        fields = {"event": getattr(record, "event", None), **getattr(record, "fields", {})}
        text = mask_secrets(record.getMessage(), self._secrets)
        trace = logging.Formatter().formatException(record.exc_info) if record.exc_info else ""
        trace, level = mask_secrets(trace, self._secrets), record.levelname.lower()
        if record.levelno == logging.WARNING and not trace and self._terminal.form != "json":
            self._terminal.warn(text)
        else:
            self._terminal.print_log_record(level, record.name, text, trace, fields)


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
