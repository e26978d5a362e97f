"""Runs commands, and compares their cost with a bound: the common parts of the benchmarks."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

ROOT = Path(__file__).parents[1]
KEY = "sandbox-key"
ROUNDS, ROUNDS_AT_LARGEST = 5, 3

Unit = Literal["s", "s (wall)", "ms", "MB"]


@dataclass(frozen=True)
class Cost:
    """Processor and wall time in seconds, and output, of a command and its child processes.

    `memory` is the peak resident size of the largest process, in megabytes.
    """

    processor: float
    wall: float
    memory: float
    output: str


@dataclass(frozen=True)
class Bound:
    """Largest allowed value of a figure, or of its ratio to the reference, depending on `of`.

    `reason` explains why the bound is missed. The table shows it only in that case.
    """

    value: float
    of: Literal["ratio", "figure"] = "figure"
    reason: str = ""


@dataclass(frozen=True)
class Line:
    """One line of the table: medians of all rounds, and the median of the ratios of each round.

    `figure` and `reference` have the `unit`.
    """

    what: str
    size: str
    figure: float
    unit: Unit = "s"
    reference: float | None = None
    reference_name: str = ""
    ratio: float | None = None
    bound: Bound | None = None

    @property
    def is_met(self) -> bool:
        """True if the line is within its bound, or has none."""
        if self.bound is None:
            return True
        value = self.ratio if self.bound.of == "ratio" else self.figure
        return value is not None and value <= self.bound.value

    def cells(self) -> tuple[str, ...]:
        """Return the line as texts, in the order of `HEADINGS`."""
        ratio = "" if self.ratio is None else f"{self.ratio:.2f}"
        reference = ""
        if self.reference is not None:
            reference = f"{self._format(self.reference)}: {self.reference_name}"
        bound = met = ""
        if self.bound is not None:
            is_ratio = self.bound.of == "ratio"
            bound = f"{self.bound.value:.1f} times" if is_ratio else self._format(self.bound.value)
            met = "yes" if self.is_met else "**no**"
        return ratio, self.what, self.size, self._format(self.figure), reference, bound, met

    def _format(self, value: float) -> str:
        """Format a value with the unit of the line."""
        digits = 0 if self.unit == "MB" else 2 if value < 10 else 1
        return f"{value:,.{digits}f} {self.unit}"


HEADINGS = ("Ratio", "Measured", "Size", "Figure", "Reference", "Bound", "Met")


def measured_line(
    what: str,
    size: str,
    figures: Sequence[float],
    references: Sequence[float] = (),
    reference_name: str = "",
    *,
    bound: Bound | None = None,
    unit: Unit = "s",
) -> Line:
    """Return the line of the table for these measurements.

    `references` are the measurements of a tool to compare with, one for each of `figures`.
    """
    reference = ratio = None
    if references:
        pairs = zip(figures, references, strict=True)
        reference = statistics.median(references)
        ratio = statistics.median(figure / other for figure, other in pairs)
    figure = statistics.median(figures)
    return Line(what, size, figure, unit, reference, reference_name, ratio, bound)


def measured_rounds(size: int, sizes: Sequence[int]) -> range:
    """Return the numbers of the rounds: five, or three at the largest of several sizes."""
    return range(ROUNDS_AT_LARGEST if size == max(sizes) > min(sizes) else ROUNDS)


def run(command: Sequence[str], environ: Mapping[str, str] | None = None) -> Cost:
    """Run a command and return its cost.

    Raises:
        RuntimeError: The command failed.
    """
    began = time.monotonic()
    with subprocess.Popen(  # noqa: S603  # the commands are our own
        command,
        cwd=ROOT,
        env={**os.environ, **(environ or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        assert process.stdout is not None
        output = process.stdout.read()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    wall = time.monotonic() - began
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)} exited with {process.returncode}: {output}")
    kilobytes = used.ru_maxrss / (1024 if sys.platform == "darwin" else 1)
    return Cost(used.ru_utime + used.ru_stime, wall, kilobytes * 1024 / 1e6, output)


def module_command(module: str, *arguments: object) -> list[str]:
    """Return the command line that runs a module of this folder."""
    return [sys.executable, "-m", f"benchmarks.{module}", *(str(each) for each in arguments)]


def connector_command(*arguments: object) -> list[str]:
    """Return the command line of a `connector` command."""
    start = "from connector.cli import main; main(prog_name='connector')"
    return [sys.executable, "-c", start, *(str(each) for each in arguments)]


def account_environ(
    data: Path, base_url: str = "http://127.0.0.1:9", models: str = "off"
) -> dict[str, str]:
    """Return the environment variables for an account whose folder is `data`."""
    return {
        "CONNECTOR_BASE_URL": base_url,
        "CONNECTOR_API_KEY": KEY,
        "CONNECTOR_DATA_DIR": str(data),
        "CONNECTOR_MODELS": models,
    }


@contextmanager
def serve_sandbox(folder: Path, *options: object) -> Iterator[str]:
    """Serve a sandbox from a separate process, and yield its address."""
    command = connector_command("sandbox", "--port", 0, "--data", folder / "sandbox.db", *options)
    with subprocess.Popen(  # noqa: S603  # the command is our own
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().split()[-1]
        finally:
            process.terminate()


Benchmark = Callable[[bool], Iterator[Line]]
"""Measures the lines of one topic; only the smallest size if the argument is true."""
