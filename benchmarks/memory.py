"""Memory: the peak of a pull at 20,000 candidates beside that at 2,000: `python -m benchmarks
memory`; `python -m benchmarks.memory 200000` takes the full size, and minutes.

Each size is pulled three times, each in a process of its own: a first load, a pull that finds
nothing new, and one that finds a hundred records changed, from all over the table. The answers are
computed by the same process and never kept, so that what grows with the records is the connector's
own. The peak is the resident set's.
"""

from __future__ import annotations

import asyncio
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from connector.pulls.run import pull
from connector.settings.model import load_settings
from tests.pull.arithmetic import serving

SMALL, LARGE = 2_000, 20_000
CHANGED = 100
CASES = ("first load", "nothing changed", "some changed")
RATIO_MAX = 1.2
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
    began = time.monotonic()
    report = asyncio.run(pull(settings, ("candidates",), connect=serving(count, changed)))
    done = report.resources["candidates"]
    assert report.outcome == "done", report.as_json()
    assert (done.proven, done.live, done.changed) == (True, count, len(changed)), done
    seconds = time.monotonic() - began
    return {"bytes": peak_bytes(), "seconds": seconds, "requests": report.requests}


def measure(count: int, folder: Path, case: str) -> dict[str, float]:
    """Pull so many candidates in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.memory", "--here", str(count), str(folder), case]
    printed = subprocess.check_output(command, cwd=_ROOT, text=True)  # noqa: S603  # our own
    measured: dict[str, float] = json.loads(printed)
    return measured


def compare(large: int) -> int:
    """Print both sizes; 0 if the ratio of the peaks is within its bound, for every pull."""
    peaks: dict[str, list[float]] = {case: [] for case in CASES}
    for count in (SMALL, large):
        with tempfile.TemporaryDirectory() as name:
            for case, measured_peaks in peaks.items():
                measured = measure(count, Path(name), case)
                measured_peaks.append(measured["bytes"])
                megabytes = measured["bytes"] / 1024 / 1024
                print(
                    f"{case:<16} {count:>9,} candidates {measured['requests']:>9,.0f} requests "
                    f"{measured['seconds']:>8.1f} s {megabytes:>8.1f} MiB",
                    flush=True,
                )
    is_met = True
    for case, (small_bytes, large_bytes) in peaks.items():
        ratio = large_bytes / small_bytes
        is_met &= ratio <= RATIO_MAX
        print(f"{case:<16} {ratio:.2f} times (at most {RATIO_MAX})")
    return 0 if is_met else 1


def main() -> int:
    """Compare the default sizes."""
    return compare(LARGE)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--here"]:
        print(json.dumps(measure_here(int(sys.argv[2]), Path(sys.argv[3]), sys.argv[4])))
    else:
        sys.exit(compare(int(sys.argv[1]) if sys.argv[1:] else LARGE))
