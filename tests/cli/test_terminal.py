"""The terminal: separate streams for data and messages, bars and colours, escaped text."""

from __future__ import annotations

import io
import json
import os
import pty
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

import pytest

from connector.cli.terminal import Terminal
from connector.errors import ConnectorError, UnknownName
from connector.log import escape_control_characters
from tests.support.command import RUN

ESCAPE = "\x1b[2J\x1b]0;owned\x07"


class CapturedTerminal:
    """Terminal whose output is captured in memory."""

    def __init__(self, *, is_json: bool = False, encoding: str = "utf-8") -> None:
        self._out, self._err = io.BytesIO(), io.BytesIO()
        self._encoding = encoding
        out = io.TextIOWrapper(self._out, encoding, write_through=True)
        err = io.TextIOWrapper(self._err, encoding, write_through=True)
        self.terminal = Terminal(out, err, {}, is_json=is_json)

    @property
    def out(self) -> str:
        """Text written to standard output."""
        return self._out.getvalue().decode(self._encoding)

    @property
    def err(self) -> str:
        """Text written to standard error."""
        return self._err.getvalue().decode(self._encoding)


@contextmanager
def open_pseudo_terminal() -> Iterator[tuple[TextIO, int]]:
    """Open a pseudo-terminal. Yields the stream to write to and the descriptor of its screen."""
    reader, writer = pty.openpty()
    with os.fdopen(writer, "w", encoding="utf-8") as stream:
        yield stream, reader
    os.close(reader)


def read_screen(descriptor: int) -> str:
    """Return the text that was written to the pseudo-terminal so far."""
    os.set_blocking(descriptor, False)
    chunks = []
    try:
        while chunk := os.read(descriptor, 65_536):
            chunks.append(chunk)
    except BlockingIOError:
        pass
    return b"".join(chunks).decode("utf-8").replace("\r\n", "\n")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Anna", "Anna"),
        ("\x1b[31mAnna", "\\x1b[31mAnna"),
        ("a\nb\tc\rd", "a\\nb\\tc\\rd"),
        ("\x9b31m", "\\x9b31m"),
        ("\x7f\x00", "\\x7f\\x00"),
        ("a\u2028b", "a\\u2028b"),
        ("\u202eevil", "\\u202eevil"),
        ("\ud800", "\\ud800"),
        ("Łukasz 山田 é 👩\u200d💻 سلام", "Łukasz 山田 é 👩\u200d💻 سلام"),
    ],
)
def test_unsafe_characters_are_shown_as_escapes(text: str, shown: str) -> None:
    assert shown == escape_control_characters(text)


def test_a_piped_table_separates_columns_with_tabs_and_keeps_empty_cells() -> None:
    streams = CapturedTerminal()

    streams.terminal.print_table(
        ["name", "n", "is open"], [["candidates", 3, True], ["jobs", None, False], ["", 10, ""]]
    )

    assert [
        "name\tn\tis open",
        "candidates\t3\tyes",
        "jobs\t-\tno",
        "-\t10\t-",
    ] == streams.out.splitlines()
    assert "" == streams.err


def test_control_characters_in_a_table_are_escaped_on_terminals_and_in_pipes() -> None:
    row = [f"{ESCAPE}Anna", "[red]x[/red] :smile:", "a\nb"]
    plain = CapturedTerminal()
    plain.terminal.print_table(["a", "b", "c"], [row])
    with open_pseudo_terminal() as (stream, reader):
        Terminal(stream, stream, {"NO_COLOR": "1", "COLUMNS": "100"}).print_table("abc", [row])
        screen = read_screen(reader)

    assert 2 == len(plain.out.splitlines())
    for text in (plain.out, screen):
        assert "\\x1b[2J\\x1b]0;owned\\x07Anna" in text
        assert "[red]x[/red] :smile:" in text
        assert "a\\nb" in text
        assert "\x1b[2J" not in text
        assert "\x1b]" not in text


def test_a_table_on_a_terminal_is_drawn_in_colour_unless_no_color_is_set() -> None:
    def draw(environ: dict[str, str]) -> str:
        with open_pseudo_terminal() as (stream, reader):
            Terminal(stream, stream, {"COLUMNS": "60", **environ}).warn("careful")
            Terminal(stream, stream, {"COLUMNS": "60", **environ}).print_table(["a"], [["1"]])
            return read_screen(reader)

    coloured = draw({"TERM": "xterm-256color"})
    plain = draw({"TERM": "xterm-256color", "NO_COLOR": "1"})
    empty = draw({"TERM": "xterm-256color", "NO_COLOR": ""})
    dumb = draw({"TERM": "dumb"})

    assert "\x1b[33mWarning:" in coloured
    assert coloured == empty
    assert "\x1b[33m" not in plain
    assert "─" in plain
    assert "Warning: careful.\na\n1\n" == dumb


def test_a_progress_bar_is_drawn_on_terminals_only() -> None:
    streams = CapturedTerminal()
    with streams.terminal.progress("jobs", 2) as meter:
        meter.update("companies", total=3, steps=1)
    with open_pseudo_terminal() as (stream, reader):
        out = io.StringIO()
        terminal = Terminal(out, stream, {"TERM": "xterm", "COLUMNS": "80"})
        with terminal.progress(f"jobs{ESCAPE}", 2) as meter:
            meter.update("companies[bold]", total=3, steps=2)
        screen = read_screen(reader)

    assert ("", "") == (streams.out, streams.err)
    assert "" == out.getvalue()
    assert "companies[bold]" in screen
    assert "2/3" in screen
    assert "\x1b]0;owned" not in screen


def test_messages_go_to_standard_error() -> None:
    streams = CapturedTerminal()

    streams.terminal.say(f"pulling {ESCAPE}")
    streams.terminal.warn("half\nopen")
    streams.terminal.print_line("data\x1b")

    assert "data\\x1b\n" == streams.out
    assert "pulling \\x1b[2J\\x1b]0;owned\\x07\nWarning: half\\nopen.\n" == streams.err


def test_json_output_is_exactly_one_object() -> None:
    streams = CapturedTerminal(is_json=True)

    streams.terminal.print_table(["a"], [[1]])
    streams.terminal.print_line("b")
    streams.terminal.print_object({"rows": 1, "name": f"é{ESCAPE}\x9b\u202e\u2028\ud800"})

    assert {"rows": 1, "name": f"é{ESCAPE}\x9b\u202e\u2028\ud800"} == json.loads(streams.out)
    assert "é" in streams.out
    assert not [c for c in streams.out if escape_control_characters(c) != c and c != "\n"]


def test_an_error_is_printed_with_its_cause_and_action() -> None:
    streams = CapturedTerminal()
    error = UnknownName("resource", f"job{ESCAPE}", ["jobs", "leads"])

    status = streams.terminal.print_failure(error)

    assert 2 == status
    assert "" == streams.out
    first, second = streams.err.splitlines()
    assert first.startswith("Error: 'job\\x1b[2J")
    assert first.endswith("is not a resource. [unknown_name]")
    assert "  Use one of: jobs, leads." == second


@pytest.mark.parametrize("form", ["text", "json"])
def test_errors_have_their_priority_in_the_journal_of_systemd(tmp_path: Path, form: str) -> None:
    path = tmp_path / "journal"
    with path.open("w", encoding="utf-8") as journal:
        there = os.fstat(journal.fileno())
        environ = {"JOURNAL_STREAM": f"{there.st_dev}:{there.st_ino}", "CONNECTOR_LOG": form}
        terminal = Terminal(io.StringIO(), journal, environ)
        terminal.print_failure(ConnectorError("it failed"))
        terminal.warn("careful")
        terminal.say("done")
        child = '{"level": "error"}' if form == "json" else "Error: it failed"
        terminal.print_child_line("acme", child)
    lines = path.read_text(encoding="utf-8").splitlines()

    errors = 1 if form == "json" else 2
    assert [*["<3>"] * errors, "<4>", "", "<3>"] == [
        line[:3] if line.startswith("<") else "" for line in lines
    ]


def test_a_stream_with_a_small_encoding_prints_codes_of_other_characters() -> None:
    streams, told = (
        CapturedTerminal(encoding="ascii"),
        CapturedTerminal(encoding="ascii", is_json=True),
    )

    streams.terminal.print_table(["name"], [["Łukasz"]])
    streams.terminal.say("Zoë")
    told.terminal.print_object({"name": "Łukasz é 👩"})

    assert "name\n\\u0141ukasz\n" == streams.out
    assert "Zo\\xeb\n" == streams.err
    assert {"name": "Łukasz é 👩"} == json.loads(told.out)


@pytest.mark.parametrize("is_json", [True, False])
def test_a_full_disk_for_standard_output_is_an_error_with_an_action(*, is_json: bool) -> None:
    with open("/dev/full", "w", encoding="utf-8") as full:
        err = io.StringIO()
        terminal = Terminal(full, err, {}, is_json=is_json)
        with pytest.raises(ConnectorError, match="standard output cannot be written") as raised:
            terminal.print_object({}) if is_json else terminal.print_line("text")
        assert 1 == terminal.print_failure(raised.value)

    assert "Free space where the output is written" in err.getvalue()


def test_messages_that_standard_error_cannot_take_do_not_stop_the_command() -> None:
    out = io.StringIO()
    with open("/dev/full", "w", encoding="utf-8") as full:
        terminal = Terminal(out, full, {})
        terminal.say("a message")
        terminal.print_line("data")

    assert "data\n" == out.getvalue()


@pytest.mark.parametrize("closed", ["1>&-", "2>&-", "1>&- 2>&-"])
def test_a_command_runs_with_closed_streams(tmp_path: Path, closed: str) -> None:
    command = f"{shlex.quote(sys.executable)} -c {shlex.quote(RUN)} status {closed}"
    ran = subprocess.run(
        ["/bin/sh", "-c", command], check=False, env={"CONNECTOR_DATA_DIR": str(tmp_path)}
    )

    assert 0 == ran.returncode
