"""Processor time and memory of pulls of many candidates: `python -m benchmarks.scale 1000000`.

Each size is pulled in separate processes: a first load, a pull without changes, and a pull of 100
changes. The process computes the answers itself, without a network, so that the time and the memory
are the connector's own.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.measure import Bound, Line, account_environ, measured_line, module_command, run

SIZES = (20_000, 200_000)
CHANGED = 100
MEGABYTES_MAX = {200_000: 320, 1_000_000: 500}
RATIO_MAX = 1.2
_MEMORY = (
    "The memory limit of DuckDB is 160 MB. A limit of 100 MB did not reduce the peak, because the "
    "rest is used by Python, Arrow and replaced rows."
)
_REASON = "New list items are searched in all rows, and each checkpoint visits every row group."


def pull_in_process(size: int, folder: Path, changes: int) -> None:
    """Pull the candidates in this process, with a given number of changes since the last pull."""
    from connector.pulls.run import pull  # noqa: PLC0415
    from connector.settings import load_settings  # noqa: PLC0415
    from tests.pulls.arithmetic import make_client_factory  # noqa: PLC0415

    step = size // CHANGED
    changed = range(step // 2, size, step) if changes else ()
    settings = load_settings({}, account_environ(folder), folder)
    report = asyncio.run(
        pull(settings, ("candidates",), connect=make_client_factory(size, changed))
    )
    result = report.resources["candidates"]
    assert report.outcome == "done", report.as_json()
    assert (result.proven, result.live, result.changed) == (True, size, changes), result


def measure(is_quick: bool) -> Iterator[Line]:
    """Yield the lines for pulls without a network at each size, or only at the smallest."""
    return measure_sizes(SIZES[:1] if is_quick else SIZES)


def measure_sizes(sizes: tuple[int, ...]) -> Iterator[Line]:
    """Yield the lines for each size, with the time per record compared with the first size."""
    first = 0.0
    for size in sizes:
        shown = f"{size:,} candidates"
        with tempfile.TemporaryDirectory() as name:
            load, quiet, changed = (
                run(module_command("scale", "--here", size, name, changes))
                for changes in (0, 0, CHANGED)
            )
        per_record = load.processor / size * 1000
        first = first or per_record
        yield measured_line(
            "first load without a network: milliseconds per record",
            shown,
            [per_record],
            [first],
            f"{sizes[0]:,} candidates",
            bound=Bound(RATIO_MAX, "ratio", _REASON) if size == 1_000_000 else None,
            unit="ms",
        )
        megabytes = MEGABYTES_MAX.get(size)
        yield measured_line(
            "first load without a network: memory",
            shown,
            [load.memory],
            bound=Bound(megabytes, reason=_MEMORY) if megabytes else None,
            unit="MB",
        )
        yield measured_line("pull without changes", shown, [quiet.processor])
        yield measured_line(f"pull of {CHANGED} changes", shown, [changed.processor])


if __name__ == "__main__":
    if sys.argv[1] == "--here":
        pull_in_process(int(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4]))
    else:
        for line in measure_sizes((SIZES[0], *(int(each) for each in sys.argv[1:]))):
            print(*line.cells(), sep=" | ", flush=True)
