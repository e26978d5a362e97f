"""How commands talk: data on standard output, talk on standard error, nothing unsafe on either.

Text that came from the API or from a file is neutralised before it is shown, so that no name of a
candidate can move the cursor, change a colour or forge a line. This file knows no command, no
resource and no setting.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, Literal, Protocol, TextIO

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from connector.errors import ConnectorError
from connector.system.log import Form, as_line

LOG_VARIABLE = "CONNECTOR_LOG"
"""The variable of the setting `log`, which counts before the settings are read as well."""

_TAB_STOP = 8
_EMPTY = "-"

# Marks that reorder what is displayed: a name could be made to read as something else.
_REORDERING = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
# Control characters, line and paragraph separators, and halves of a character.
_UNSAFE_CATEGORIES = frozenset(("Cc", "Zl", "Zp", "Cs"))


def neutralise(text: str) -> str:
    r"""The text with all that a terminal would obey, or a log would break at, made visible.

    An escape becomes `\x1b` in letters, a line feed `\n`. All other characters stay, so that
    names in any script are shown as they are.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(_visible(character) for character in text)


def _visible(character: str) -> str:
    unsafe = unicodedata.category(character) in _UNSAFE_CATEGORIES or character in _REORDERING
    return character.encode("unicode_escape").decode("ascii") if unsafe else character


def to_json(value: object, *, is_ascii: bool = False) -> str:
    """One JSON object, in which what a terminal would obey is escaped and nothing is lost.

    With `is_ascii` all letters beyond ASCII are escaped as well.
    """
    text = json.dumps(value, ensure_ascii=is_ascii, indent=2, default=str)
    return "".join(f"\\u{ord(c):04x}" if c != "\n" and _visible(c) != c else c for c in text)


class Meter(Protocol):
    """What a command tells about its progress."""

    def advance(self, steps: int = 1) -> None:
        """So many more steps are done."""

    def expect(self, steps: int) -> None:
        """So many steps are expected in all, as far as is known now."""

    def tell(self, doing: str) -> None:
        """What is being done now, in a few words."""


class _Silent:
    """A meter that nobody watches."""

    def advance(self, steps: int = 1) -> None:
        """Nothing is shown."""

    def expect(self, steps: int) -> None:
        """Nothing is shown."""

    def tell(self, doing: str) -> None:
        """Nothing is shown."""


class _Bar:
    """A meter drawn by rich, on standard error."""

    def __init__(self, progress: Progress, doing: str, total: int | None) -> None:
        self._progress = progress
        self._task = progress.add_task(neutralise(doing), total=total)

    def advance(self, steps: int = 1) -> None:
        """Move the bar."""
        self._progress.advance(self._task, steps)

    def expect(self, steps: int) -> None:
        """Set the bar's full length."""
        self._progress.update(self._task, total=steps)

    def tell(self, doing: str) -> None:
        """Change the words before the bar."""
        self._progress.update(self._task, description=neutralise(doing))


_TABLE_COLUMNS_MAX = 10_000


class Terminal:
    """Two streams, and who is watching them.

    Rich tables where a person watches standard output, plain lines otherwise. Bars and colours
    only where a person watches standard error, and no colour where `NO_COLOR` is set to
    anything or the terminal is dumb. With `is_json`, standard output carries one object and no
    table. With the `form` "json" every line on standard error is an object of its own.
    """

    def __init__(
        self, out: TextIO, err: TextIO, environ: Mapping[str, str], *, is_json: bool = False
    ) -> None:
        self.is_json = is_json
        # Until the settings are read; a value that is none is refused with them.
        self.form: Form = "json" if environ.get(LOG_VARIABLE) == "json" else "text"
        self._environ = environ
        self._out, self._err = out, err
        self.has_watcher = _is_watched(err, environ)
        self._has_rich_tables = _is_watched(out, environ)
        # An empty NO_COLOR counts as unset: that is the convention's own rule.
        no_colour = bool(environ.get("NO_COLOR"))
        self._console_out = self._console(out, environ, no_colour)
        self._console_err = self._console(err, environ, no_colour)

    @staticmethod
    def _console(
        stream: TextIO, environ: Mapping[str, str], no_colour: bool, width: int | None = None
    ) -> Console:
        return Console(
            file=stream,
            width=width,
            no_color=no_colour,
            markup=False,
            emoji=False,
            highlight=False,
            _environ=environ,
        )

    def print_object(self, value: object) -> None:
        """Print the one object of `--json` on standard output."""
        text = to_json(value, is_ascii=not _is_unicode(self._out))
        self._write(self._out, f"{text}\n")

    def print_table(self, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        r"""Print a table on standard output; nothing with `is_json`, whose object has it all.

        Without a watcher the columns are parted and aligned by tabs and an empty cell is `-`, so
        that `awk -F'\t+'` finds each column in its place.
        """
        if self.is_json:
            return
        cells = [[neutralise(_cell(value)) for value in row] for row in rows]
        if not self._has_rich_tables:
            self._write(self._out, _align([list(columns), *cells]))
            return
        # Few lines and no frame: eleven columns must fit where a frame would cut the names short.
        table = Table(header_style="bold", box=SIMPLE_HEAD, pad_edge=False)
        for number, column in enumerate(columns):
            is_figures = bool(cells) and all(_is_figure(row[number]) for row in cells)
            justify: Literal["left", "right"] = "right" if is_figures else "left"
            table.add_column(Text(column), justify=justify, no_wrap=True)
        for row in cells:
            table.add_row(*(Text(cell) for cell in row))
        # A narrow terminal wraps a wide table, which loses nothing; cut cells would.
        unbounded = self._console_out.options.update(width=_TABLE_COLUMNS_MAX)
        width = self._console_out.measure(table, options=unbounded).maximum
        console = self._console_out
        if width > console.width:
            console = self._console(self._out, self._environ, console.no_color, width)
        console.print(table, crop=False)

    def print_line(self, text: str) -> None:
        """Print one line of data on standard output; nothing with `is_json`."""
        if not self.is_json:
            self._write(self._out, f"{neutralise(text)}\n")

    def say(self, text: str) -> None:
        """Say one line on standard error."""
        if self.form == "json":
            self._tell("info", text)
        else:
            self._write(self._err, f"{neutralise(text)}\n")

    def warn(self, text: str) -> None:
        """Say one line of warning on standard error."""
        if self.form == "json":
            self._tell("warning", text)
        else:
            self._mark("Warning:", "yellow", text)

    def log(self, text: str) -> None:
        """Say what the log has to say: one object, or lines for people."""
        for line in (text,) if self.form == "json" else text.splitlines():
            self._write(self._err, f"{neutralise(line)}\n")

    def fail(self, error: ConnectorError) -> int:
        """Say what happened and what to do next, and return the command's exit status.

        With `is_json` standard output gets an object with the same facts, so that a program
        always finds one.
        """
        if self.is_json:
            self.print_object({"error": describe(error)})
        if self.form == "json":
            more = {name: value for name, value in describe(error).items() if name != "message"}
            self._tell("error", str(error), **more)
        else:
            self._mark("Error:", "red", f"{error} [{error.code}]")
            self.say(f"  {error.action}")
        return error.exit_status

    @contextmanager
    def progress(self, doing: str, total: int | None = None) -> Iterator[Meter]:
        """A meter for the body's duration: a bar where a person watches, silence otherwise."""
        if not self.has_watcher or self.form == "json":
            yield _Silent()
            return
        columns = (TextColumn("{task.description}", markup=False), BarColumn())
        with Progress(
            *columns,
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=self._console_err,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        ) as progress:
            yield _Bar(progress, doing, total)

    def _tell(self, level: str, text: str, **more: object) -> None:
        line = as_line(level, "connector.cli", text, more, datetime.now(UTC))
        self._write(self._err, f"{line}\n")

    def _mark(self, mark: str, style: str, text: str) -> None:
        if self.has_watcher:
            line = Text.assemble((mark, style), " ", neutralise(text))
            self._console_err.print(line, soft_wrap=True)
        else:
            self.say(f"{mark} {text}")

    @staticmethod
    def _write(stream: TextIO, text: str) -> None:
        # A stream that cannot show a character, in a C locale say, shows its number instead.
        encoding = getattr(stream, "encoding", None) or "utf-8"
        stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
        stream.flush()


def describe(error: ConnectorError) -> dict[str, object]:
    """An error as the object that `--json` prints."""
    return {
        "code": error.code,
        "message": str(error),
        "action": error.action,
        "exit_status": error.exit_status,
    }


def _is_watched(stream: TextIO, environ: Mapping[str, str]) -> bool:
    # What rich draws needs a terminal that obeys it and that can show more than ASCII.
    return stream.isatty() and _is_unicode(stream) and environ.get("TERM") != "dumb"


def _is_unicode(stream: TextIO) -> bool:
    # A stream without an encoding of its own, such as a StringIO, takes any character.
    return (stream.encoding or "utf-8").lower().startswith("utf")


def _cell(value: object) -> str:
    if value is None or value == "":
        return _EMPTY
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)


def _is_figure(cell: str) -> bool:
    """Whether a cell is a number, or empty."""
    return not cell or cell.replace(",", "").replace(".", "", 1).isdigit()


def _align(rows: list[list[str]]) -> str:
    """Rows as lines whose columns begin at the same tab stop."""
    widths = [max(_width(cell) for cell in column) for column in zip(*rows, strict=True)]
    stops = [(width // _TAB_STOP + 1) * _TAB_STOP for width in widths]
    lines = []
    for row in rows:
        padded = [
            cell + "\t" * -(-(stop - _width(cell)) // _TAB_STOP)
            for cell, stop in zip(row[:-1], stops, strict=False)
        ]
        lines.append("".join([*padded, row[-1]]) + "\n")
    return "".join(lines)


def _width(text: str) -> int:
    return Text(text).cell_len
