"""Run as many simulated worlds as asked, over every core: `make simulate RUNS=10000`.

One run is replayed with SCENARIO and SEED, and told ask by ask with TRACE. Exit status 1 if any
run was wrong. With --planted, faults are planted in the engines instead, and each is shown with the
runs that it took to be seen; exit status 1 if one was not seen. With --record, both are done and
written to `docs/figures/simulation.json`, of which `docs/CORRECTNESS.md` is made.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TextIO

from tests.simulation.planted import PLANTED, RUNS_MAX, Planted
from tests.simulation.run import ACCOUNT, Verdict, run
from tests.simulation.scenario import SCENARIOS, SMALL, scenario_of
from tests.simulation.tiny import Chooser, Shape, explore, play, shapes

FIGURES = Path(__file__).parents[2] / "docs" / "figures" / "simulation.json"
BLOCK = 20
"""Seeds that one worker runs before it reports."""

RECORDED = 500
"""Runs within which every planted fault is demanded to be seen, as its test demands."""

SHOWN_MAX = 5
"""Wrong runs of one scenario that the table shows with their commands."""


@dataclass
class Sum:
    """What became of the runs of one scenario."""

    runs: int = 0
    wrong: int = 0
    unproven: int = 0
    requests: int = 0
    busy_unproven: int = 0
    promises: Counter[str] = field(default_factory=Counter)
    shown: list[Verdict] = field(default_factory=list)

    def add(self, verdict: Verdict) -> None:
        """Count a run."""
        self.runs += 1
        self.wrong += bool(verdict.wrong)
        self.unproven += verdict.reason is not None
        self.requests += verdict.requests
        self.busy_unproven += verdict.busy_unproven
        self.promises.update({each.split(":")[0] for each in verdict.wrong})
        if verdict.wrong:
            self.shown = sorted([*self.shown, verdict], key=lambda each: each.seed)[:SHOWN_MAX]


def block(name: str, seeds: range, *, lands: bool = False) -> list[Verdict]:
    """Run the seeds of one scenario; each `lands` in a real warehouse as well, if asked."""
    return [run(name, seed, lands=lands) for seed in seeds]


def blocks(names: list[str], runs: int, first: int) -> Iterator[tuple[str, range]]:
    """The runs dealt to the scenarios evenly, in blocks of seeds."""
    each = -(-runs // len(names))
    for start in range(first, first + each, BLOCK):
        for name in names:
            yield name, range(start, min(start + BLOCK, first + each))


def main() -> int:
    """Simulate as the command line says."""
    asked = _asked()
    if asked.tiny:
        return _tiny(asked)
    if asked.planted:
        return _planted(asked.runs or RUNS_MAX, asked.workers)
    names = _names(asked.scenario)
    if asked.seed is not None and asked.runs is None:
        return _replay(names, asked.seed, is_traced=asked.trace)
    sums = {name: Sum() for name in names}
    began = time.monotonic()
    work = list(blocks(names, asked.runs or 1000, asked.seed or 0))
    done, total = 0, sum(len(seeds) for _, seeds in work)
    with ProcessPoolExecutor(asked.workers) as pool:
        for verdicts in pool.map(partial(block, lands=asked.warehouse), *zip(*work, strict=True)):
            for verdict in verdicts:
                sums[verdict.scenario].add(verdict)
            done += len(verdicts)
            _progress(done, total, sums, began)
    seconds = time.monotonic() - began
    _table(sums, seconds)
    if asked.record:
        _record(sums, seconds, asked.workers)
    return int(any(each.wrong for each in sums.values()))


def _record(sums: dict[str, Sum], seconds: float, workers: int) -> None:
    """Write down the table, and how soon planted faults are seen, for docs/CORRECTNESS.md."""
    worlds = [
        {
            "scenario": name,
            "about": "a whole account" if name == ACCOUNT else scenario_of(name).about,
            **{part: getattr(each, part) for part in ("runs", "wrong", "unproven", "requests")},
        }
        for name, each in sums.items()
    ]
    planted = [
        {
            "engine": each.engine,
            "name": each.name,
            "about": (each.plant.__doc__ or "").strip().split("\n\n")[0],
            "scenario": each.scenario,
            "is_harmless": each.is_harmless,
            "seen_after": seen[0] if seen else None,
            "promise": seen[1].split(":")[0] if seen else None,
        }
        for each, seen in _seen(RECORDED, workers)
    ]
    figures = {"worlds": worlds, "planted": planted}
    written = {"seconds": round(seconds), "planted_runs": RECORDED, **figures}
    FIGURES.write_text(json.dumps(written, indent=1) + "\n", encoding="utf-8")


def _asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make simulate", description=__doc__)
    parser.add_argument("--runs", type=int, help="runs in all, dealt to the scenarios")
    parser.add_argument("--scenario", default="", help="one name, several (A,B), or a range (A-F)")
    parser.add_argument("--seed", type=int, help="this seed alone; with --runs, the first")
    parser.add_argument("--trace", action="store_true", help="tell every ask and its answer")
    parser.add_argument("--warehouse", action="store_true", help="keep each in a real one as well")
    parser.add_argument("--tiny", default="", help="every tiny world, or those of one shape")
    parser.add_argument("--depth", type=int, default=3, help="mutations of a tiny world")
    parser.add_argument("--pulls", type=int, default=1, help="pulls of a tiny world")
    parser.add_argument("--planted", action="store_true", help="how soon planted faults are seen")
    parser.add_argument("--record", action="store_true", help="write it down, with the faults")
    parser.add_argument("--tape", help="the one run of a tiny world that this replays")
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    return parser.parse_args()


def _names(asked: str) -> list[str]:
    """The scenarios asked for, by default all."""
    names: list[str] = []
    every = [*SCENARIOS, ACCOUNT]
    for part in filter(None, asked.split(",")):
        if len(part) == 3 and part[1] == "-":
            names += [each for each in SCENARIOS if part[0] <= each <= part[2] and len(each) == 1]
        elif part == ACCOUNT or part.removesuffix(SMALL) in SCENARIOS:
            names.append(part)
        else:
            sys.exit(f"There is no scenario {part!r}; there are {', '.join(every)}.")
    return names or every


def _replay(names: list[str], seed: int, *, is_traced: bool) -> int:
    verdicts = [run(name, seed, trace=_say if is_traced else None) for name in names]
    for each in verdicts:
        _say(f"{each.scenario}, seed {seed}, {each.requests} requests: {each}")
    return int(any(each.wrong for each in verdicts))


def _say(line: str, *, end: str = "\n", to: TextIO | None = None) -> None:
    (to or sys.stdout).write(line + end)
    (to or sys.stdout).flush()


def _tiny(asked: argparse.Namespace) -> int:
    """Every run of every tiny world, or of one shape; or one run, told."""
    every = [each for each in shapes((1, 2, 3, 4)) if asked.tiny in ("all", str(each))]
    if not every:
        sys.exit(
            f"There is no shape {asked.tiny!r}; there are all, {', '.join(map(str, shapes((2,))))}."
        )
    if asked.tape:
        tape = [int(each) for each in asked.tape.split(".")]
        told = play(every[0], asked.depth, Chooser(tape), pulls=asked.pulls, trace=_say)
        _say(told or "right")
        return int(told is not None)
    wrong = runs = 0
    with ProcessPoolExecutor(asked.workers) as pool:
        for shape, (count, found) in zip(
            every,
            pool.map(partial(_explored, depth=asked.depth, pulls=asked.pulls), every),
            strict=True,
        ):
            runs, wrong = runs + count, wrong + len(found)
            _say(f"{shape}: {count} runs, {len(found)} wrong")
            for line in found[:SHOWN_MAX]:
                _say(f"  {line}")
    _say(f"{runs} runs, {wrong} wrong")
    return int(wrong > 0)


def _explored(shape: Shape, *, depth: int, pulls: int) -> tuple[int, list[str]]:
    count, found = 0, []
    for command, wrong in explore(shape, depth, pulls=pulls):
        count += 1
        if wrong:
            found.append(f"{wrong} (replay: {command})")
    return count, found


def _planted(runs: int, workers: int) -> int:
    """Every planted fault, and after how many runs of its scenario it was seen."""
    is_as_it_should_be = True
    _say(f"{'engine':<7} {'planted fault':<37} {'scenario':<22} seen after")
    for each, seen in _seen(runs, workers):
        is_as_it_should_be &= (seen is None) == each.is_harmless
        told = f"{seen[0]} runs: {seen[1]}" if seen else f"not in {runs} runs"
        told += " (harmless: docs/CORRECTNESS.md)" if each.is_harmless else ""
        _say(f"{each.engine:<7} {each.name:<37} {each.scenario:<22} {told}"[:160])
    return int(not is_as_it_should_be)


def _seen(runs: int, workers: int) -> Iterator[tuple[Planted, tuple[int, str] | None]]:
    with ProcessPoolExecutor(workers) as pool:
        found = pool.map(partial(_first_seen, runs=runs), range(len(PLANTED)))
        yield from zip(PLANTED, found, strict=True)


def _first_seen(number: int, runs: int) -> tuple[int, str] | None:
    return PLANTED[number].first_seen(runs)


def _progress(done: int, total: int, sums: dict[str, Sum], began: float) -> None:
    seconds = time.monotonic() - began
    wrong = sum(each.wrong for each in sums.values())
    line = f"{done} of {total} runs, {wrong} wrong, {done / seconds:.0f} a second"
    end = "\r" if sys.stderr.isatty() and done < total else "\n"
    if sys.stderr.isatty() or done == total or done * 10 // total != (done - BLOCK) * 10 // total:
        _say(line, end=end, to=sys.stderr)


def _table(sums: dict[str, Sum], seconds: float) -> None:
    head = ("scenario", "runs", "wrong", "unproven", "busy unproven", "requests a run")
    _say("  ".join(f"{each:>14}" for each in head))
    for name, each in sums.items():
        runs = max(1, each.runs)
        row = (each.runs, each.wrong, each.unproven, f"{each.busy_unproven / runs:.2f}")
        cells = (name, *row, f"{each.requests / runs:.0f}")
        _say("  ".join(f"{cell:>14}" for cell in cells))
    runs = sum(each.runs for each in sums.values())
    _say(f"{runs} runs in {seconds:.0f} s, {runs / seconds:.1f} a second")
    for name, each in sums.items():
        if each.wrong:
            about = "a whole account" if name == ACCOUNT else scenario_of(name).about
            _say(f"\n{name}: {about}: {dict(each.promises)}")
        for verdict in each.shown:
            _say(f"  seed {verdict.seed}: {verdict}"[:400])


if __name__ == "__main__":
    sys.exit(main())
