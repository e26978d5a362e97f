"""Play as many pushes as asked, over every core: `python -m tests.simulation.push --runs 10000`.

One play is replayed with --scenario and --seed, and told step by step with --trace; every play of a
tiny file with --tiny, one of them with --tape. Exit status 1 if any play was wrong.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor

from tests.simulation.push.run import Verdict, run
from tests.simulation.push.scenario import SCENARIOS
from tests.simulation.push.tiny import SHAPES, Shape, explore, play
from tests.simulation.tiny import Chooser

BLOCK = 25
"""Seeds that one worker plays before it reports."""

SHOWN_MAX = 5
"""Wrong plays of one scenario that are shown with their commands."""


def block(name: str, seeds: range) -> list[Verdict]:
    """Play the seeds of one scenario."""
    return [run(name, seed) for seed in seeds]


def main() -> int:
    """Play as the command line says."""
    asked = _asked()
    if asked.tiny:
        return _tiny(asked)
    names = asked.scenario.split(",") if asked.scenario else list(SCENARIOS)
    unknown = [name for name in names if name not in SCENARIOS]
    if unknown:
        sys.exit(f"There is no scenario {unknown[0]!r}; there are {', '.join(SCENARIOS)}.")
    if asked.seed is not None and asked.runs is None:
        return _replay(names, asked.seed, is_traced=asked.trace)
    each, first = -(-(asked.runs or 1000) // len(names)), asked.seed or 0
    work = [
        (name, range(start, min(start + BLOCK, first + each)))
        for start in range(first, first + each, BLOCK)
        for name in names
    ]
    return _play(names, work, asked.workers)


def _asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.push", description=__doc__)
    parser.add_argument("--runs", type=int, help="plays in all, dealt to the scenarios")
    parser.add_argument("--scenario", default="", help="one name, or several (a,b)")
    parser.add_argument("--seed", type=int, help="this seed alone; with --runs, the first")
    parser.add_argument("--trace", action="store_true", help="tell every step")
    parser.add_argument("--tiny", default="", help="every tiny file, or those of one shape")
    parser.add_argument("--tape", help="the one play of a tiny file that this replays")
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    return parser.parse_args()


def _play(names: list[str], work: list[tuple[str, range]], workers: int) -> int:
    wrong: dict[str, list[Verdict]] = {name: [] for name in names}
    outcomes: dict[str, Counter[str]] = {name: Counter() for name in names}
    plays: Counter[str] = Counter()
    figures: Counter[str] = Counter()
    began = time.monotonic()
    with ProcessPoolExecutor(workers) as pool:
        for verdicts in pool.map(block, *zip(*work, strict=True)):
            for verdict in verdicts:
                plays[verdict.scenario] += 1
                outcomes[verdict.scenario].update(verdict.outcomes)
                figures["writes"] += verdict.writes
                figures["reads"] += verdict.reads
                figures["deaths"] += verdict.crashes
                if verdict.wrong:
                    wrong[verdict.scenario].append(verdict)
    for name in names:
        told = ", ".join(f"{count} {outcome}" for outcome, count in outcomes[name].most_common())
        _say(f"{name}: {plays[name]} plays, {len(wrong[name])} wrong; rows: {told}")
        for verdict in wrong[name][:SHOWN_MAX]:
            _say(f"  seed {verdict.seed}: {verdict}")
    seconds = time.monotonic() - began
    found = sum(len(each) for each in wrong.values())
    told = ", ".join(f"{count:,} {what}" for what, count in figures.items())
    _say(f"{plays.total():,} plays in {seconds:.0f} s, {told}: {found} wrong")
    return int(found > 0)


def _replay(names: list[str], seed: int, *, is_traced: bool) -> int:
    verdicts = [run(name, seed, trace=_say if is_traced else None) for name in names]
    for each in verdicts:
        _say(f"{each.scenario}, seed {seed}: {each}")
    return int(any(each.wrong for each in verdicts))


def _tiny(asked: argparse.Namespace) -> int:
    """Every play of every tiny file, or of one shape; or one play, told."""
    shapes = SHAPES if asked.tiny == "all" else (Shape.read(asked.tiny),)
    if asked.tape:
        tape = [int(each) for each in asked.tape.split(".")]
        told = play(shapes[0], Chooser(tape), trace=_say)
        _say(told or "right")
        return int(told is not None)
    wrong = plays = 0
    with ProcessPoolExecutor(asked.workers) as pool:
        for shape, (count, found) in zip(shapes, pool.map(_explored, shapes), strict=True):
            plays, wrong = plays + count, wrong + len(found)
            _say(f"{shape}: {count} plays, {len(found)} wrong")
            for line in found[:SHOWN_MAX]:
                _say(f"  {line}")
    _say(f"{plays:,} plays, {wrong} wrong")
    return int(wrong > 0)


def _explored(shape: Shape) -> tuple[int, list[str]]:
    count, found = 0, []
    for command, wrong in explore(shape):
        count += 1
        if wrong:
            found.append(f"{wrong} (replay: {command})")
    return count, found


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
