"""Terminal: prints data on standard output and messages on standard error.

Control characters are escaped, because text from the API or from a file could otherwise move the
cursor, change colours or forge lines.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TextIO

from connector.catalog.resource import PER_PAGE_MAX
from connector.errors import ConnectorError, Stopped, count_noun, end_sentence
from connector.ledger.quota import estimate_remaining_requests
from connector.log import UNSAFE, Form, escape_control_characters, json_log_line

if TYPE_CHECKING:
    # rich is imported where it is used, because most calls print plain text.
    from rich.console import Console
    from rich.progress import Progress

LOG_VARIABLE = "CONNECTOR_LOG"
"""Environment variable of the setting `log`, which is used before the settings are read."""

_EMPTY = "-"
_WIDTH = 100
_STDERR = 2


def to_json(value: object, *, is_ascii: bool = False) -> str:
    """Return the value as indented JSON.

    Dates become ISO 8601, dataclasses become objects, and other types become text. Control
    characters are escaped; with `is_ascii` all characters beyond ASCII are escaped too.
    """
    text = json.dumps(value, ensure_ascii=is_ascii, indent=2, default=_json_default)
    return UNSAFE.sub(lambda c: c[0] if c[0] == "\n" else f"\\u{ord(c[0]):04x}", text)


def _json_default(value: Any) -> object:
    """Convert a value that JSON lacks: a date to ISO 8601, a dataclass to an object, others to
    text.
    """
    if isinstance(value, date):
        return value.isoformat()
    if is_dataclass(value):
        return {each.name: getattr(value, each.name) for each in fields(value)}
    return str(value)


class ProgressMeter:
    """Progress bar of one command. Shows nothing if `progress` is None."""

    def __init__(self, progress: Progress | None, doing: str, total: int | None) -> None:
        self._progress = progress
        if progress is not None:
            self._task = progress.add_task(escape_control_characters(doing), total=total)

    def begin(self, doing: str, total: int | None = None) -> None:
        """Restart the bar at 0 for the next phase, with this description and number of steps."""
        if self._progress is not None:
            self._progress.reset(
                self._task, total=total, description=escape_control_characters(doing)
            )

    def update(
        self, doing: str | None = None, *, total: int | None = None, steps: int | None = None
    ) -> None:
        """Change the description or the total number of steps, and advance by `steps`."""
        if self._progress is not None:
            description = None if doing is None else escape_control_characters(doing)
            self._progress.update(self._task, description=description, total=total, advance=steps)


class Terminal:
    """Standard output and standard error of a command.

    Tables, bars and colours are drawn only on an interactive terminal; `NO_COLOR` turns colours
    off. With the `form` "json" every line on standard error is a JSON object.

    Args:
        is_json: Print one JSON object on standard output and no tables.
        is_quiet: Print only warnings, errors and the JSON object.
    """

    def __init__(
        self,
        out: TextIO,
        err: TextIO,
        environ: Mapping[str, str],
        *,
        is_json: bool = False,
        is_quiet: bool = False,
    ) -> None:
        self.is_json, self.is_quiet = is_json, is_quiet
        # Fields of every JSON line on standard error: the account and the run.
        self.fields: dict[str, object] = {}
        # Used until the settings are read, which also refuse a wrong value.
        self.form: Form = "json" if environ.get(LOG_VARIABLE) == "json" else "text"
        # Adds to an action the places where the settings that it names can be set.
        self.name_places: Callable[[str], str] = str
        self._environ = environ
        self._out, self._err = out, err
        self.has_watcher = _is_interactive(err, environ) and not is_quiet
        self._has_rich_tables = _is_interactive(out, environ)

    @property
    def columns(self) -> int:
        """Width of the terminal in characters; 100 in a pipe."""
        if not self._has_rich_tables:
            return _WIDTH
        return self._create_console(self._out).width

    def _create_console(self, stream: TextIO) -> Console:
        """Return a rich console that writes to the stream."""
        from rich.console import Console  # noqa: PLC0415

        return Console(
            file=stream,
            # An empty NO_COLOR counts as unset: that is the convention's own rule.
            no_color=bool(self._environ.get("NO_COLOR")),
            markup=False,
            emoji=False,
            highlight=False,
            _environ=self._environ,
        )

    # -- Standard output ---------------------------------------------------------------------------

    def print_object(self, value: object) -> None:
        """Print the object of `--json` on standard output; without `is_json` print nothing."""
        if self.is_json:
            text = to_json(value, is_ascii=not _is_unicode(self._out))
            self._write(self._out, f"{text}\n")

    def print_table(self, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        """Print a table on standard output; with `is_json` print nothing.

        In a pipe the columns are separated by tabs, and an empty cell is `-`.
        """
        if self.is_json or self.is_quiet:
            return
        cells = [[escape_control_characters(_cell_text(value)) for value in row] for row in rows]
        if self._has_rich_tables:
            self._draw_table(columns, cells)
        else:
            lines = ("\t".join(row) for row in (list(columns), *cells))
            self._write(self._out, "".join(f"{line}\n" for line in lines))

    def _draw_table(self, columns: Sequence[str], cells: list[list[str]]) -> None:
        """Draw the table, divided into several tables if it is wider than the terminal.

        Each part repeats the first column. No cell is cut.
        """
        from rich.box import SIMPLE_HEAD  # noqa: PLC0415
        from rich.cells import cell_len  # noqa: PLC0415
        from rich.table import Table  # noqa: PLC0415
        from rich.text import Text  # noqa: PLC0415

        console = self._create_console(self._out)
        # A column is as wide as its widest cell, with a blank on each side.
        widths = [max(map(cell_len, each)) + 2 for each in zip(columns, *cells, strict=True)]
        for part in _split_columns(widths, console.width):
            # Few lines and no frame, which leaves the most room for cells.
            table = Table(header_style="bold", box=SIMPLE_HEAD, pad_edge=False)
            for number in part:
                is_figures = bool(cells) and all(_is_number(row[number]) for row in cells)
                justify: Literal["left", "right"] = "right" if is_figures else "left"
                table.add_column(Text(columns[number]), justify=justify, overflow="fold")
            for row in cells:
                table.add_row(*(Text(row[number]) for number in part))
            console.print(table)

    def print_line(self, text: str = "") -> None:
        """Print one line of data on standard output; with `is_json` print nothing."""
        if not (self.is_json or self.is_quiet):
            self._write(self._out, f"{escape_control_characters(text)}\n")

    # -- Standard error ----------------------------------------------------------------------------

    def say(self, text: str, **more: object) -> None:
        """Print one line on standard error, unless `is_quiet`. `more` are additional fields of a
        JSON line.
        """
        text = self.name_places(text)
        if self.is_quiet:
            return
        if self.form == "json":
            self._write_json_line("info", text, more)
        else:
            self._write(self._err, f"{escape_control_characters(text)}\n")

    def warn(self, text: str, **more: object) -> None:
        """Print a warning on standard error. `more` are additional fields of a JSON line."""
        text = end_sentence(self.name_places(text))
        if self.form == "json":
            self._write_json_line("warning", text, more)
        else:
            self._write_styled_line("Warning:", "yellow", text)

    def print_child_line(self, account: str, line: str) -> None:
        """Print a line from standard error of an account's process, with the account's name."""
        if self.form != "json":
            self._write(self._err, f"{account}: {escape_control_characters(line)}\n")
        elif line.startswith("{"):
            self._write(self._err, f"{escape_control_characters(line)}\n")
        else:
            self._write_json_line("error", line, {"account": account})

    def print_log_record(
        self, level: str, logger: str, text: str, trace: str, fields: Mapping[str, object]
    ) -> None:
        """Print a log record on standard error. `trace` is the traceback of its error, or empty."""
        if self.form == "json":
            more = {"traceback": trace} if trace else {}
            self._write_json_line(level, text, {**fields, **more}, logger)
            return
        at = datetime.now(UTC).isoformat(" ", "milliseconds")
        for line in (f"{at} {level.upper()} {logger}: {text}", *trace.splitlines()):
            self._write(self._err, f"{escape_control_characters(line)}\n")

    def log_end(self, command: str, status: int, seconds: float) -> None:
        """Print the last JSON line of a command on standard error."""
        if self.form == "json" and not self.is_quiet:
            text = f"{command} ended with exit status {status}"
            fields = {"event": "command_ended", "command": command, "exit_status": status}
            self._write_json_line("info", text, {**fields, "seconds": round(seconds, 3)})

    def print_failure(self, error: ConnectorError) -> int:
        """Print the error and its action, and return its exit status.

        With `is_json` the error is also printed as an object on standard output.
        """
        action = self.name_places(error.action)
        values = {**error.as_json(), "action": action, "exit_status": error.exit_status}
        self.print_object({"error": values})
        if self.form == "json":
            del values["message"]
            self._write_json_line("error", str(error), values)
        else:
            self._write_styled_line("Error:", "red", f"{error} [{error.code}]")
            self._write(self._err, f"  {escape_control_characters(action)}\n")
        return error.exit_status

    def print_errors(
        self, error: ConnectorError | None, *, publishing_error: ConnectorError | None = None
    ) -> None:
        """Print the error that ended a command, and errors of publishing.

        With `is_json` the report's object contains these errors, so no second object is printed.
        """
        if isinstance(error, Stopped):
            self.warn(_explain_error(error))
        elif error is not None and not self.is_json:
            self.print_failure(error)
        if publishing_error is not None and publishing_error is not error:
            self.warn(_explain_error(publishing_error))

    @contextmanager
    def progress(self, doing: str, total: int | None = None) -> Iterator[ProgressMeter]:
        """Show a progress bar until the block ends."""
        if not self.has_watcher or self.form == "json":
            yield ProgressMeter(None, doing, total)
            return
        from rich import progress  # noqa: PLC0415

        with progress.Progress(
            progress.TextColumn("{task.description}", markup=False),
            progress.BarColumn(),
            progress.MofNCompleteColumn(),
            progress.TimeElapsedColumn(),
            console=self._create_console(self._err),
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        ) as bars:
            yield ProgressMeter(bars, doing, total)

    def _write_json_line(
        self, level: str, text: str, more: Mapping[str, object], logger: str = "connector.cli"
    ) -> None:
        """Write a log line as JSON on standard error, with the account, the run and `more`."""
        line = json_log_line(level, logger, text, {**self.fields, **more}, datetime.now(UTC))
        self._write(self._err, f"{line}\n")

    def _write_styled_line(self, prefix: str, style: str, text: str) -> None:
        """Write "PREFIX TEXT" on standard error, with a coloured prefix on a terminal."""
        if not self.has_watcher:
            self._write(self._err, f"{prefix} {escape_control_characters(text)}\n")
            return
        from rich.text import Text  # noqa: PLC0415

        line = Text.assemble((prefix, style), " ", escape_control_characters(text))
        self._create_console(self._err).print(line, soft_wrap=True)

    def _write(self, stream: TextIO, text: str) -> None:
        """Write the text; characters that the encoding lacks become escapes.

        Messages that standard error cannot take are lost, and the command continues.

        Raises:
            ConnectorError: Standard output cannot be written, for example because its disk is full.
        """
        # A character that the stream's encoding lacks is shown as its number.
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


def _explain_error(error: ConnectorError) -> str:
    """Return the error and its action as sentences."""
    return f"{str(error).rstrip().removesuffix('.')}. {error.action}"


def _is_interactive(stream: TextIO, environ: Mapping[str, str]) -> bool:
    """Return True if rich can draw tables and bars: a Unicode terminal with control sequences."""
    # rich needs a terminal with control sequences and Unicode.
    return stream.isatty() and _is_unicode(stream) and environ.get("TERM") != "dumb"


def _is_unicode(stream: TextIO) -> bool:
    """Return True if the stream can encode any character."""
    # A stream without an encoding, such as a StringIO, takes any character.
    return (stream.encoding or "utf-8").lower().startswith("utf")


def _cell_text(value: object) -> str:
    """Return the text of a table cell: "-" if empty, "yes" or "no" for booleans."""
    if value is None or value == "":
        return _EMPTY
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)


def _split_columns(widths: Sequence[int], width: int) -> Iterator[list[int]]:
    """Yield the column numbers of each table that fits in the width; column 0 is in every table."""
    part = [0]
    for number in range(1, len(widths)):
        if len(part) > 1 and sum(widths[each] + 1 for each in (*part, number)) > width:
            yield part
            part = [0]
        part.append(number)
    yield part


def _is_number(cell: str) -> bool:
    """Return True if the cell is empty or contains only digits, commas and a decimal point."""
    return not cell or cell.replace(",", "").replace(".", "", 1).isdigit()


def shorten(value: object, letters_max: int) -> str:
    """Return a value as text of at most `letters_max` characters; None is "(empty)"."""
    text = "(empty)" if value is None else str(value)
    return text if len(text) <= letters_max else text[: letters_max - 1] + "…"


# -- Sentences ------------------------------------------------------------------------------------
# Sentences that several commands print.


def describe_cost(requests: int, seconds: float) -> str:
    """Return the cost of a run, as in "5 requests in 1.2 s"."""
    return f"{count_noun(requests, 'request')} in {seconds:,.1f} s"


def describe_age(age: timedelta) -> str:
    """Return a length of time in its largest unit, as in "3 h"."""
    seconds = max(0.0, age.total_seconds())
    for unit_seconds, unit in ((86_400, "d"), (3600, "h"), (60, "min")):
        if seconds >= unit_seconds:
            return f"{seconds / unit_seconds:.0f} {unit}"
    return f"{seconds:.0f} s"


class UnreadCounts(NamedTuple):
    """Number of a resource's pending and live records, and True if its first load is complete."""

    pending: int
    live: int
    is_loaded: bool


@dataclass(frozen=True, slots=True)
class Backlog:
    """Records that are still to be read, and what reading them needs.

    Args:
        records: Number of records.
        requests: Estimated number of requests.
        per_minute: Requests per minute; None if unknown.
        month_share: Share of the month's quota; None if no quota is set.
        is_known: False while a list is being read, so that there may be more records.
    """

    records: int
    requests: int
    per_minute: float | None
    month_share: float | None
    is_known: bool

    @classmethod
    def of_resources(
        cls,
        waiting: Collection[UnreadCounts],
        *,
        month_limit: int | None,
        is_known: bool,
        per_minute: float | None = None,
    ) -> Backlog | None:
        """Estimate the requests for these resources; None if the collection is empty."""
        if not waiting:
            return None
        requests = sum(
            estimate_remaining_requests(
                pending_records=each.pending,
                live_records=each.live,
                is_loaded=each.is_loaded,
                per_page=PER_PAGE_MAX,
            )
            for each in waiting
        )
        share = requests / month_limit if month_limit else None
        records = sum(each.pending for each in waiting)
        return cls(records, requests, per_minute, share, is_known)

    @property
    def minutes(self) -> float | None:
        """Minutes that the requests take."""
        return self.requests / self.per_minute if self.per_minute else None

    def __str__(self) -> str:
        about = "about" if self.is_known else "at least"
        records = count_noun(self.records, "record")
        text = f"Left to read: {records}, with {about} {count_noun(self.requests, 'request')}"
        if self.month_share is not None:
            text += f" ({self.month_share:.1%} of the month's quota)"
        if self.minutes is not None:
            minutes = self.minutes
            time = f"about {minutes:,.0f} min" if minutes < 90 else f"about {minutes / 60:,.1f} h"
            time = time if minutes >= 1 else "less than a minute"
            text += f", {time} at {self.per_minute:,.0f} requests a minute"
        return f"{text}."
