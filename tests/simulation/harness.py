"""Code that the simulators of pull and push share.

A run follows from the name of its scenario and its seed. A run of a tiny world follows from its
shape and a tape, the sequence of its choices; `play_all_tapes` plays every tape. Each result names
the command that replays it.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Generator, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

BLOCK = 20
"""Seeds that one worker runs before it reports."""

SHOWN_MAX = 5
"""Wrong runs of a scenario or shape that are printed."""

START = datetime(2026, 1, 5, 8, 0, tzinfo=UTC)

Trace = Callable[[str], None]


@dataclass(frozen=True)
class Perform:
    """Lets a coroutine ask its simulator for a command's result: `await Perform(command)`.

    A simulator drives a coroutine as it drives a generator that yields commands: by `send`.
    """

    command: Any

    def __await__(self) -> Generator[Any, Any, Any]:
        """Yield the command to the simulator, and return its result."""
        return (yield self.command)


Steps = Generator[Any, Any, Any] | Coroutine[Any, Any, Any]
"""A process of the program that a simulator drives, command by command."""


class BrokenPromise(Exception):
    """A promise is broken: its name, and what is wrong."""

    def __init__(self, promise: str, what: str) -> None:
        super().__init__(f"{promise}: {what}")


class TooManySteps(Exception):
    """A process took more steps or requests than a process that ends ever takes."""


@dataclass
class Verdict:
    """Result of a run: the broken promises, and figures that are summed over all runs."""

    simulator: str
    scenario: str
    seed: int
    wrong: list[str] = field(default_factory=list)
    figures: Counter[str] = field(default_factory=Counter)
    reason: str | None = None
    """Why the last pull could not be verified."""

    @property
    def promises(self) -> set[str]:
        """Names of the broken promises."""
        return {each.split(":")[0] for each in self.wrong}

    def __str__(self) -> str:
        reason = f" [{self.reason}]" if self.reason else ""
        replay = f"python -m {self.simulator} --scenario {self.scenario} --seed {self.seed} --trace"
        return f"{'; '.join(self.wrong) or 'right'}{reason} (replay: {replay})"


@contextmanager
def collect_failures(wrong: list[str]) -> Iterator[None]:
    """Append a broken promise, an endless process or a failed assertion to the list."""
    try:
        yield
    except BrokenPromise as broken:
        wrong.append(str(broken))
    except TooManySteps as error:
        wrong.append(f"termination: {error}")
    except AssertionError as error:
        wrong.append(f"assertion: {error}")


class WorldClock:
    """The true time of a simulated world (`now`), and the server's and the connector's clocks."""

    def __init__(self, own_clock_ahead: float) -> None:
        self.now = START
        self._step = timedelta(0)
        self._own_ahead = timedelta(seconds=own_clock_ahead)

    def server_now(self) -> datetime:
        """Return the time of the server's clock, which may step."""
        return self.now + self._step

    def connector_now(self) -> datetime:
        """Return the time of the connector's clock, which may be wrong."""
        return self.now + self._own_ahead


@dataclass(frozen=True)
class LateWrite:
    """A write that the server performs at `due`, after the request has ended."""

    due: datetime
    id: str
    commit: Callable[[], object]


# -- every run of a tiny world --------------------------------------------------------------------


class Chooser:
    """Makes the choices of a run: those of the tape first, then always 0. `choices` records each
    with the number of alternatives.
    """

    def __init__(self, tape: Sequence[int] = ()) -> None:
        self._tape = tuple(tape)
        self.choices: list[tuple[int, int]] = []

    def pick(self, count: int) -> int:
        """Make the next choice: a number from 0 to `count` - 1."""
        place = len(self.choices)
        choice = self._tape[place] if place < len(self._tape) else 0
        self.choices.append((choice, count))
        return choice

    def next_tape(self) -> tuple[int, ...] | None:
        """Return the tape of the next run in depth-first order; None after the last."""
        for place in range(len(self.choices) - 1, -1, -1):
            choice, count = self.choices[place]
            if choice + 1 < count:
                return (*(each for each, _ in self.choices[:place]), choice + 1)
        return None

    def __str__(self) -> str:
        """Format the tape without its zeros at the end, as `--tape` takes it."""
        numbers = [each for each, _ in self.choices]
        while numbers and numbers[-1] == 0:
            numbers.pop()
        return ".".join(map(str, numbers)) or "0"


TinyPlay = Callable[[str, Chooser, Trace | None], str | None]


def play_all_tapes(play: TinyPlay, shape: str) -> Iterator[tuple[str, str | None]]:
    """Play every tape of a shape. Yields each tape, and what is wrong with its run or None."""
    tape: tuple[int, ...] | None = ()
    while tape is not None:
        chooser = Chooser(tape)
        wrong = play(shape, chooser, None)
        yield str(chooser), wrong
        tape = chooser.next_tape()


def find_wrong_tapes(play: TinyPlay, shape: str) -> tuple[int, list[str]]:
    """Play every tape of a shape. Return the number of runs, and a line for each wrong one."""
    results = list(play_all_tapes(play, shape))
    return len(results), [f"{shape}, --tape {tape}: {wrong}" for tape, wrong in results if wrong]


# -- the command ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Simulator:
    """A simulator that `python -m` runs. `scenarios` maps names to descriptions.

    `columns` are the figures of a verdict that the table shows. `shapes` name the tiny worlds, and
    `play` plays a tape of one. A scenario's name may end with `suffix`.
    """

    module: str
    scenarios: Mapping[str, str]
    run: Callable[..., Verdict]
    columns: Sequence[str]
    shapes: Sequence[str]
    play: TinyPlay
    suffix: str = "-none"

    def parse_scenarios(self, text: str) -> list[str]:
        """Parse comma-separated names; all scenarios if empty. Exits if a name is unknown."""
        names = [each for each in text.split(",") if each] or list(self.scenarios)
        for name in names:
            if name.removesuffix(self.suffix) not in self.scenarios:
                sys.exit(f"Unknown scenario {name!r}. Scenarios: {', '.join(self.scenarios)}.")
        return names


@dataclass
class ScenarioSummary:
    """Results of all runs of one scenario."""

    runs: int = 0
    wrong: int = 0
    figures: Counter[str] = field(default_factory=Counter)
    promises: Counter[str] = field(default_factory=Counter)
    shown: list[Verdict] = field(default_factory=list)

    def add_run(self, verdict: Verdict) -> None:
        """Add the result of a run."""
        self.runs += 1
        self.figures.update(verdict.figures)
        if verdict.wrong:
            self.wrong += 1
            self.promises.update(verdict.promises)
            self.shown = sorted([*self.shown, verdict], key=lambda each: each.seed)[:SHOWN_MAX]


def make_parser(module: str, description: str | None) -> argparse.ArgumentParser:
    """Return a parser with the options that both simulators have."""
    parser = argparse.ArgumentParser(prog=f"python -m {module}", description=description)
    parser.add_argument("--runs", type=int, help="number of runs, over all scenarios")
    parser.add_argument("--scenario", default="", help="name of the scenario, or several (A,B)")
    parser.add_argument("--seed", type=int, help="seed of the only run; with --runs, of the first")
    parser.add_argument("--trace", action="store_true", help="print every step")
    parser.add_argument("--tiny", default="", help="shape of a tiny world, or 'all'")
    parser.add_argument("--tape", help="choices of the only run of a tiny world")
    parser.add_argument("--workers", type=int, default=os.cpu_count(), help="processes to use")
    return parser


def print_line(line: str) -> None:
    """Print a line immediately."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def run_command(simulator: Simulator, options: argparse.Namespace) -> int:
    """Perform what the parsed options select, and return the exit status: 1 if a run was wrong."""
    if options.tiny:
        return _run_tiny_worlds(simulator, options)
    if options.seed is not None and options.runs is None:
        trace = print_line if options.trace else None
        names = simulator.parse_scenarios(options.scenario)
        verdicts = [simulator.run(name, options.seed, trace=trace) for name in names]
        for each in verdicts:
            figures = ", ".join(f"{count} {name}" for name, count in each.figures.items())
            print_line(f"{each.scenario}, seed {each.seed}, {figures}: {each}")
        return int(any(each.wrong for each in verdicts))
    summaries, _ = run_scenarios(simulator, options)
    return int(any(each.wrong for each in summaries.values()))


def run_scenarios(
    simulator: Simulator, options: argparse.Namespace
) -> tuple[dict[str, ScenarioSummary], float]:
    """Run the selected scenarios with many seeds on all cores, and print a table.

    Returns the summary of each scenario, and the seconds that all runs took.
    """
    names = simulator.parse_scenarios(options.scenario)
    runs, first = -(-(options.runs or 1000) // len(names)), options.seed or 0
    blocks = [
        (name, range(start, min(start + BLOCK, first + runs)))
        for start in range(first, first + runs, BLOCK)
        for name in names
    ]
    summaries = {name: ScenarioSummary() for name in names}
    began = time.monotonic()
    with ProcessPoolExecutor(options.workers) as pool:
        for done, verdicts in enumerate(pool.map(partial(_run_seeds, simulator), blocks), 1):
            for verdict in verdicts:
                summaries[verdict.scenario].add_run(verdict)
            if sys.stderr.isatty():
                sys.stderr.write(f"\r{done} of {len(blocks)} blocks")
    seconds = time.monotonic() - began
    _print_table(simulator, summaries, seconds)
    return summaries, seconds


def _run_seeds(simulator: Simulator, block: tuple[str, range]) -> list[Verdict]:
    """Run a scenario with each of the seeds."""
    name, seeds = block
    return [simulator.run(name, seed) for seed in seeds]


def _print_table(
    simulator: Simulator, summaries: Mapping[str, ScenarioSummary], seconds: float
) -> None:
    """Print the figures of each scenario per run, and some wrong runs of each."""
    rows = [("scenario", "runs", "wrong", *simulator.columns)]
    for name, each in summaries.items():
        figures = (
            f"{each.figures[column] / max(1, each.runs):.2f}" for column in simulator.columns
        )
        rows.append((name, str(each.runs), str(each.wrong), *figures))
    for row in rows:
        print_line("  ".join(f"{cell:>14}" for cell in row))
    runs = sum(each.runs for each in summaries.values())
    print_line(f"{runs} runs in {seconds:.0f} s, {runs / seconds:.1f} per second")
    for name, each in summaries.items():
        if each.wrong:
            print_line(f"\n{name}: {simulator.scenarios[name]}: {dict(each.promises)}")
        for verdict in each.shown:
            print_line(f"  seed {verdict.seed}: {verdict}"[:400])


def _run_tiny_worlds(simulator: Simulator, options: argparse.Namespace) -> int:
    """Run one tape, or every tape of the selected shapes. Return 1 if a run was wrong, else 0."""
    shapes = simulator.shapes if options.tiny == "all" else [options.tiny]
    if options.tape:
        tape = [int(each) for each in options.tape.split(".")]
        wrong = simulator.play(shapes[0], Chooser(tape), print_line)
        print_line(wrong or "right")
        return int(wrong is not None)
    runs = failures = 0
    with ProcessPoolExecutor(options.workers) as pool:
        results = pool.map(partial(find_wrong_tapes, simulator.play), shapes)
        for shape, (count, lines) in zip(shapes, results, strict=True):
            runs, failures = runs + count, failures + len(lines)
            print_line(
                "\n  ".join([f"{shape}: {count} runs, {len(lines)} wrong", *lines[:SHOWN_MAX]])
            )
    print_line(f"{runs} runs, {failures} wrong")
    return int(failures > 0)
