"""Terminal: prints data on standard output and messages on standard error.

Control characters are escaped, because text from the API or from a file could otherwise move the
cursor, change colours or forge lines.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any, TextIO

from connector.errors import ConnectorError, Stopped, count_noun, end_sentence
from connector.log import UNSAFE, Form, escape_control_characters, json_log_line

if TYPE_CHECKING:
    # rich is imported where it is used, because most calls print plain text.
    from rich.console import Console
    from rich.progress import Progress as Bars

    from connector.models.runner import BuiltModel, CheckResult
    from connector.pulls.report import Progress
    from connector.state.runs import ResourceRun

LOG_VARIABLE = "CONNECTOR_LOG"
"""Environment variable of the setting `log`, which is used before the settings are read."""

_LOGGER = logging.getLogger(__name__)
_WIDTH = 100
_STDERR = 2

_COLOURS = {"error": "red", "warning": "yellow"}

_PRIORITIES = {"critical": "<2>", "error": "<3>", "warning": "<4>"}
"""Beginnings of lines for systemd's journal, which shows errors with `journalctl -p err`."""


class ProgressBar:
    """Progress bar of one command; shows nothing if `bars` is None.

    It follows a run and a build, and collects the completed resources, models and checks.
    """

    def __init__(self, bars: Bars | None = None, doing: str = "", total: int | None = None) -> None:
        self._bars = bars
        self._resource, self._read = "", 0
        self.resources: list[ResourceRun] = []
        self.models: list[BuiltModel] = []
        self.checks: list[CheckResult] = []
        if bars is not None:
            self._task = bars.add_task(escape_control_characters(doing), total=total)

    def begin(self, doing: str, total: int | None = None) -> None:
        """Restart the bar at 0 for the next phase, with this description and number of steps."""
        if self._bars is not None:
            text = escape_control_characters(doing)
            self._bars.reset(self._task, total=total, description=text)

    def update(self, doing: str, *, total: int | None = None, steps: int | None = None) -> None:
        """Change the description and the total number of steps, and advance by `steps`."""
        if self._bars is not None:
            text = escape_control_characters(doing)
            self._bars.update(self._task, description=text, total=total, advance=steps)

    def __call__(self, progress: Progress) -> None:
        """Show the number of records read, or of rows finished."""
        name, read, pending = progress.batch or progress.resource, progress.read, progress.pending
        if progress.waits_until is not None:
            self.update(f"{self._resource}, waiting until {progress.waits_until:%H:%M:%S} UTC")
        elif progress.until is not None:
            rows = f"{count_noun(pending, 'row')} unconfirmed"
            self.update(f"{rows}, searching again at {progress.until:%H:%M:%S} UTC")
        elif progress.ended is not None:
            text = f"{name}: {progress.ended.outcome}, {progress.requests} requests"
            _LOGGER.debug(text, extra={"event": "resource_ended"})
            self.resources.append(progress.ended)
        elif name != self._resource:
            self._resource, self._read = name, 0
            self.begin(name)
        else:
            text = f"{name}: {read} read, {pending} pending, {progress.requests} requests"
            _LOGGER.debug(text, extra={"event": "resource_progress"})
            steps, self._read = read - self._read, read
            text = f"{name}, {progress.requests} requests"
            self.update(text, total=read + pending, steps=steps)

    def on_build(self, done: BuiltModel | CheckResult, steps: int) -> None:
        """Advance the bar of models and checks, and keep the model or the result."""
        from connector.models.runner import CheckResult  # noqa: PLC0415 # most commands build nothing

        if not self.models and not self.checks:
            self.begin("build models", steps)
        if isinstance(done, CheckResult):
            self.checks.append(done)
            self.update(f"check {done.check.name}", steps=1)
        else:
            self.models.append(done)
            self.update(f"build {done.name}", steps=1)


class Terminal:
    """Standard output and standard error of a command.

    Tables, bars and colours are drawn only on an interactive terminal; `NO_COLOR` turns colours
    off. With the `form` "json" every line on standard error is a JSON object.

    Args:
        is_json: Print one JSON object on standard output and no tables.
        is_quiet: Print only warnings, errors and the JSON object.
    """

    def __init__(
        self, out: TextIO, err: TextIO, environ: Mapping[str, str], *, is_json: bool = False,
        is_quiet: bool = False,
    ) -> None:  # fmt: skip
        self.is_json, self.is_quiet = is_json, is_quiet
        # Fields of every JSON line on standard error: the account and the run.
        self.fields: dict[str, object] = {}
        # Used until the settings are read, which also refuse a wrong value.
        self.form: Form = "json" if environ.get(LOG_VARIABLE) == "json" else "text"
        # Adds to an action the places where the settings that it names can be set.
        self.name_places: Callable[[str], str] = str
        self._environ, self._out, self._err = environ, out, err
        self.has_watcher = self._is_interactive(err) and not is_quiet
        self._priorities = _PRIORITIES if _is_journal(err, environ) else {}

    def _is_interactive(self, stream: TextIO) -> bool:
        """Return True for a terminal with control sequences and Unicode, which rich needs."""
        return stream.isatty() and _is_unicode(stream) and self._environ.get("TERM") != "dumb"

    @property
    def columns(self) -> int:
        """Width of the terminal in characters; 100 in a pipe."""
        return self._console(self._out).width if self._is_interactive(self._out) else _WIDTH

    def _console(self, stream: TextIO) -> Console:
        """Return a rich console that writes to the stream. An empty NO_COLOR counts as unset."""
        from rich.console import Console  # noqa: PLC0415

        return Console(
            file=stream, no_color=bool(self._environ.get("NO_COLOR")), markup=False, emoji=False,
            highlight=False, _environ=self._environ,
        )  # fmt: skip

    # -- Standard output ---------------------------------------------------------------------------

    def print_object(self, value: object) -> None:
        """Print the object of `--json` on standard output; without `is_json` print nothing.

        Dates become ISO 8601, dataclasses become objects, and other types become text.
        """
        if self.is_json:
            is_ascii = not _is_unicode(self._out)
            text = json.dumps(value, ensure_ascii=is_ascii, indent=2, default=_json_default)
            text = UNSAFE.sub(lambda c: c[0] if c[0] == "\n" else f"\\u{ord(c[0]):04x}", text)
            self._write(self._out, f"{text}\n")

    def print_line(self, text: str = "") -> None:
        """Print one line of data on standard output; with `is_json` print nothing."""
        if not (self.is_json or self.is_quiet):
            self._write(self._out, f"{escape_control_characters(text)}\n")

    def print_table(self, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        """Print a table on standard output; with `is_json` print nothing.

        In a pipe the columns are separated by tabs, and an empty cell is `-`.
        """
        if self.is_json or self.is_quiet:
            return
        cells = [[escape_control_characters(_cell_text(value)) for value in row] for row in rows]
        if self._is_interactive(self._out):
            self._draw_table(columns, cells)
        else:
            lines = ("\t".join(row) for row in (list(columns), *cells))
            self._write(self._out, "".join(f"{line}\n" for line in lines))

    def _draw_table(self, columns: Sequence[str], cells: list[list[str]]) -> None:
        """Draw the table with few lines and no frame, which leaves the most room for cells."""
        from rich.box import SIMPLE_HEAD  # noqa: PLC0415
        from rich.table import Table  # noqa: PLC0415
        from rich.text import Text  # noqa: PLC0415

        table = Table(header_style="bold", box=SIMPLE_HEAD, pad_edge=False)
        for n, column in enumerate(columns):
            is_figures = bool(cells) and all(_is_number(row[n]) for row in cells)
            table.add_column(
                Text(column), justify="right" if is_figures else "left", overflow="fold"
            )
        for row in cells:
            table.add_row(*map(Text, row))
        self._console(self._out).print(table)

    # -- Standard error ----------------------------------------------------------------------------

    def say(self, text: str, **more: object) -> None:
        """Print one line on standard error, unless `is_quiet`. `more` are additional fields of a
        JSON line.
        """
        if not self.is_quiet:
            self._print_message("info", self.name_places(text), more)

    def warn(self, text: str) -> None:
        """Print a warning on standard error."""
        self._print_message("warning", end_sentence(self.name_places(text)), {}, "Warning: ")

    def print_child_line(self, account: str, line: str) -> None:
        """Print a line from standard error of an account's process, with the account's name."""
        if self.form == "json" and not line.startswith("{"):
            self._print_message("error", line, {"account": account})
        elif self.form == "json":
            self._write_message(json.loads(line)["level"], line)
        else:
            level = line.partition(":")[0].lower()
            self._write_message(level, f"{account}: {escape_control_characters(line)}")

    def print_log_record(
        self, level: str, logger: str, text: str, trace: str, fields: Mapping[str, object]
    ) -> None:
        """Print a log record on standard error. `trace` is the traceback of its error, or empty."""
        if self.form == "json":
            more = {"traceback": trace} if trace else {}
            self._print_message(level, text, {**fields, **more}, logger=logger)
            return
        at = datetime.now(UTC).isoformat(" ", "milliseconds")
        for line in (f"{at} {level.upper()} {logger}: {text}", *trace.splitlines()):
            self._print_message(level, line, {})

    def log_end(self, command: str, status: int, seconds: float) -> None:
        """Print the last JSON line of a command on standard error."""
        if self.form == "json":
            fields = {"event": "command_ended", "command": command, "exit_status": status}
            text = f"{command} ended with exit status {status}"
            self.say(text, **fields, seconds=round(seconds, 3))

    def print_failure(self, error: ConnectorError) -> int:
        """Print the error and its action, and return its exit status.

        With `is_json` the error is also printed as an object on standard output.
        """
        action = self.name_places(error.action)
        values = {**error.as_json(), "action": action, "exit_status": error.exit_status}
        self.print_object({"error": values})
        if self.form == "json":
            del values["message"]
            self._print_message("error", str(error), values)
        else:
            self._print_message("error", f"{error} [{error.code}]", {}, "Error: ")
            self._print_message("error", f"  {action}", {})
        return error.exit_status

    def print_errors(
        self, error: ConnectorError | None, unpublished: ConnectorError | None = None
    ) -> None:
        """Print the error that ended a run, and the error of publishing.

        With `is_json` the report's object contains these errors, so no second object is printed.
        """
        if error is not None and not isinstance(error, Stopped) and not self.is_json:
            self.print_failure(error)
        elif isinstance(error, Stopped):
            self.warn(f"{end_sentence(str(error))} {error.action}")
        if unpublished is not None and unpublished is not error:
            self.warn(f"{end_sentence(str(unpublished))} {unpublished.action}")

    def _print_message(
        self, level: str, text: str, more: Mapping[str, object], prefix: str = "",
        logger: str = "connector.cli",
    ) -> None:  # fmt: skip
        """Print a message, or its JSON line with the account, the run and `more`.

        A terminal shows the prefix in colour.
        """
        shown = escape_control_characters(text)
        if self.form == "json":
            line = json_log_line(level, logger, text, {**self.fields, **more}, datetime.now(UTC))
            self._write_message(level, line)
        elif prefix and self.has_watcher:
            from rich.text import Text  # noqa: PLC0415

            styled = Text.assemble((prefix, _COLOURS[level]), shown)
            self._console(self._err).print(styled, soft_wrap=True)
        else:
            self._write_message(level, f"{prefix}{shown}")

    def _write_message(self, level: str, line: str) -> None:
        """Write a line on standard error, with its priority if systemd's journal reads it."""
        self._write(self._err, f"{self._priorities.get(level, '')}{line}\n")

    @contextmanager
    def progress(self, doing: str, total: int | None = None) -> Iterator[ProgressBar]:
        """Show a progress bar until the block ends."""
        if not self.has_watcher or self.form == "json":
            yield ProgressBar()
            return
        from rich import progress  # noqa: PLC0415

        columns = (
            *(progress.TextColumn("{task.description}", markup=False), progress.BarColumn()),
            *(progress.MofNCompleteColumn(), progress.TimeElapsedColumn()),
        )
        with progress.Progress(
            *columns, console=self._console(self._err), transient=True,
            redirect_stdout=False, redirect_stderr=False,
        ) as bars:  # fmt: skip
            yield ProgressBar(bars, doing, total)

    def write_data(self, text: str) -> None:
        """Write text on standard output as it is. Raises `ConnectorError`."""
        self._write(self._out, text)

    def _write(self, stream: TextIO, text: str) -> None:
        """Write the text; characters that the encoding lacks become escapes.

        Messages that standard error cannot take are lost, and the command continues.

        Raises:
            ConnectorError: Standard output cannot be written, for example because its disk is full.
        """
        encoding = getattr(stream, "encoding", None) or "utf-8"
        try:
            stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
            stream.flush()
        except BrokenPipeError:
            raise
        except OSError as error:
            # The rest of the output, which Python writes at its end, would fail in the same way.
            discard_output(stream)
            if stream is self._out:
                raise ConnectorError(
                    f"standard output cannot be written: {error.strerror}",
                    action="Free space where the output is written, or send it to another file."
                    " Then run the command again.",
                ) from error


def open_closed_streams() -> None:
    """Open the null device for each standard stream that the caller closed.

    Otherwise the next file, for example a database, would get the number of the stream.
    """
    while (number := os.open(os.devnull, os.O_RDWR)) <= _STDERR:
        pass
    os.close(number)
    sys.stdout = sys.stdout or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115


def discard_output(stream: TextIO) -> None:
    """Send the stream's buffered and later text to the null device."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, stream.fileno())
    os.close(null)


def _is_journal(stream: TextIO, environ: Mapping[str, str]) -> bool:
    """Return True if the stream goes to systemd's journal, which names it in `JOURNAL_STREAM`."""
    try:
        found = os.fstat(stream.fileno())
    except OSError:  # a stream in memory
        return False
    return environ.get("JOURNAL_STREAM") == f"{found.st_dev}:{found.st_ino}"


def _json_default(value: Any) -> object:
    """Convert a value that JSON lacks."""
    if isinstance(value, date):
        return value.isoformat()
    if is_dataclass(value):
        return {each.name: getattr(value, each.name) for each in fields(value)}
    return str(value)


def _is_unicode(stream: TextIO) -> bool:
    """Return True if the stream can encode any character, as one without an encoding can."""
    return (stream.encoding or "utf-8").lower().startswith("utf")


def _cell_text(value: object) -> str:
    """Return the text of a table cell: "-" if empty, "yes" or "no" for booleans."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "-" if value is None or value == "" else str(value)


def _is_number(cell: str) -> bool:
    """Return True if the cell is empty or contains only digits, commas and a decimal point."""
    return not cell or cell.replace(",", "").replace(".", "", 1).isdigit()


def shorten(value: object, letters_max: int) -> str:
    """Return a value as text of at most `letters_max` characters; None is "(empty)"."""
    text = "(empty)" if value is None else str(value)
    return text if len(text) <= letters_max else text[: letters_max - 1] + "…"


def describe_cost(requests: int, seconds: float) -> str:
    """Return the cost of a run, as in "5 requests in 1.2 s"."""
    return f"{count_noun(requests, 'request')} in {seconds:,.1f} s"


def describe_left(records: int, *, is_known: bool) -> str:
    """Return a sentence on the records that a pull has not read yet."""
    return f"Left to read: {'' if is_known else 'at least '}{count_noun(records, 'record')}."


def describe_age(age: timedelta) -> str:
    """Return a length of time in its largest unit, as in "3 h"."""
    seconds = max(0.0, age.total_seconds())
    for unit_seconds, unit in ((86_400, "d"), (3600, "h"), (60, "min")):
        if seconds >= unit_seconds:
            return f"{seconds / unit_seconds:.0f} {unit}"
    return f"{seconds:.0f} s"
