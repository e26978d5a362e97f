"""Scale: processor time and memory of pulls at 20,000 and 60,000 candidates: `python -m benchmarks
scale`; `python -m benchmarks.scale 20000 200000 1000000` takes an hour.

Each size is pulled three times, each in a process of its own: a first load, a pull that finds
nothing new, and one that finds a hundred records changed, from all over the table. The answers are
computed by the same process and never kept, so that what grows with the records is the connector's
own; the network's part is in `processor_time.py`. The peak is the resident set's.
"""

from __future__ import annotations

import asyncio
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from connector.cli import WithoutUnused
from connector.pulls.run import pull
from connector.settings.model import load_settings
from tests.pulls.arithmetic import serving

SIZES = (20_000, 60_000)
CHANGED = 100
CASES = ("first load", "nothing changed", "some changed")
RATIO_MAX = 1.3
"""Processor time for each record of a first load, beside that at the first size."""

BYTES_MAX = 300_000_000
BYTES_MAX_BEYOND = 450_000_000
"""Peak of memory up to `FEW` records, and at more of them."""

FEW = 200_000
_ROOT = Path(__file__).parents[1]
_STATUS = Path("/proc/self/status")


def peak_bytes() -> int:
    """The most memory that this process ever had resident."""
    if _STATUS.exists():
        # What the kernel tells of a process's resources counts its parent at the fork as well.
        lines = _STATUS.read_text().splitlines()
        (told,) = (line.split()[1] for line in lines if line.startswith("VmHWM:"))
        return int(told) * 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def measure_here(count: int, folder: Path, case: str) -> dict[str, float]:
    """Pull so many candidates in this process."""
    step = count // CHANGED
    changed = range(step // 2, count, step) if case == "some changed" else ()
    environ = {
        "CONNECTOR_BASE_URL": "http://127.0.0.1:9",
        "CONNECTOR_API_KEY": "arithmetic",
        "CONNECTOR_DATA_DIR": str(folder),
        "CONNECTOR_MODELS": "off",
    }
    settings = load_settings({}, environ, folder)
    sys.meta_path.insert(0, WithoutUnused())
    began = time.process_time()
    report = asyncio.run(pull(settings, ("candidates",), connect=serving(count, changed)))
    done = report.resources["candidates"]
    assert report.outcome == "done", report.as_json()
    assert (done.proven, done.live, done.changed) == (True, count, len(changed)), done
    seconds = time.process_time() - began
    return {"bytes": peak_bytes(), "seconds": seconds, "requests": report.requests}


def measure(count: int, folder: Path, case: str) -> dict[str, float]:
    """Pull so many candidates in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.scale", "--here", str(count), str(folder), case]
    printed = subprocess.check_output(command, cwd=_ROOT, text=True)  # noqa: S603  # our own
    measured: dict[str, float] = json.loads(printed)
    return measured


def compare(sizes: Sequence[int]) -> int:
    """Print all sizes; 0 if each keeps its bounds."""
    is_met, per_record = True, []
    for count in sizes:
        with tempfile.TemporaryDirectory() as name:
            for case in CASES:
                found = measure(count, Path(name), case)
                most = BYTES_MAX if count <= FEW else BYTES_MAX_BEYOND
                is_met &= found["bytes"] <= most
                print(
                    f"{case:<16} {count:>9,} candidates {found['requests']:>9,.0f} requests "
                    f"{found['seconds']:>8.1f} s {found['bytes'] / 1e6:>6.0f} MB"
                    f" (at most {most / 1e6:.0f})",
                    flush=True,
                )
                if case == CASES[0]:
                    per_record.append(found["seconds"] / count)
    for count, seconds in zip(sizes, per_record, strict=True):
        ratio = seconds / per_record[0]
        is_met &= ratio <= RATIO_MAX
        shown = f"{seconds * 1000:.2f} ms of processor time a record"
        print(f"{count:>9,}: {shown}, {ratio:.2f} times (at most {RATIO_MAX})")
    return 0 if is_met else 1


def main() -> int:
    """Compare the default sizes."""
    return compare(SIZES)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--here"]:
        print(json.dumps(measure_here(int(sys.argv[2]), Path(sys.argv[3]), sys.argv[4])))
    else:
        sys.exit(compare([int(each) for each in sys.argv[1:]] or SIZES))
