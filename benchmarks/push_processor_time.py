"""Processor time of a push beside a naive script's: `python -m benchmarks push_processor_time`.

2,000 candidates are created from a csv, by `connector push --apply --no-pull` and by
`benchmarks/naive_push.py`, which keeps an intent on the disk for each row as well. Each is a whole
process, with its imports, whose user and system time is measured; the sandbox is another process,
whose time is not counted. Both take turns, and the least of each counts.
"""

from __future__ import annotations

import csv
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from connector.sandbox.server import KEY_DEFAULT

ROWS = 2_000
TURNS = 2
RATIO_MAX = 2.0
HEADINGS = ("first_name", "last_name", "email", "phone", "current_company", "employment_type")
_ROOT = Path(__file__).parents[1]
_COMMAND = [str(Path(sys.executable).with_name("connector"))]


def write(path: Path) -> None:
    """A csv of so many candidates."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(HEADINGS)
        for number in range(ROWS):
            name = ("Zoë", f"N{number}", f"p{number}@people.example", f"+44 7700 {number:06d}")
            writer.writerow((*name, "Wren & Co", "permanent"))


def processor_seconds(command: list[str], environ: Mapping[str, str]) -> tuple[float, bytes]:
    """User and system time of a whole process, and what it printed."""
    with tempfile.TemporaryFile() as printed:
        # Everything is our own.
        started = subprocess.Popen(command, cwd=_ROOT, env=environ, stdout=printed)  # noqa: S603
        _, status, used = os.wait4(started.pid, 0)
        started.returncode = os.waitstatus_to_exitcode(status)
        printed.seek(0)
        text = printed.read()
    assert started.returncode == 0, text.decode()
    return used.ru_utime + used.ru_stime, text


def measure(is_naive: bool) -> float:
    """Push the file once, to a sandbox without candidates."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write(folder / "people.csv")
        serve = [*_COMMAND, "sandbox", "--port", "0", "--candidates", "0", "--jobs", "1"]
        piped = subprocess.PIPE
        with subprocess.Popen(serve, cwd=_ROOT, stdout=piped, text=True) as sandbox:  # noqa: S603
            try:
                assert sandbox.stdout is not None
                base_url = sandbox.stdout.readline().split()[-1]
                return _push(folder, base_url, is_naive=is_naive)
            finally:
                sandbox.terminate()


def _push(folder: Path, base_url: str, *, is_naive: bool) -> float:
    file = str(folder / "people.csv")
    if is_naive:
        script = [sys.executable, "-m", "benchmarks.naive_push", file]
        given = [str(folder / "journal.sqlite"), base_url, KEY_DEFAULT]
        seconds, text = processor_seconds([*script, *given], os.environ)
        assert text.split() == [str(ROWS).encode()], text
        return seconds
    environ = {
        **os.environ,
        "CONNECTOR_BASE_URL": base_url,
        "CONNECTOR_API_KEY": KEY_DEFAULT,
        "CONNECTOR_DATA_DIR": str(folder / "data"),
        "CONNECTOR_MODELS": "off",
    }
    push = [*_COMMAND, "push", "candidates", file, "--mode", "create", "--apply", "--no-pull"]
    seconds, text = processor_seconds([*push, "--json"], environ)
    assert f'"created": {ROWS}'.encode() in text, text
    return seconds


def main() -> int:
    """Print both figures and their ratio; 0 if it is at most the target."""
    taken: dict[bool, list[float]] = {True: [], False: []}
    for _ in range(TURNS):
        for is_naive, seconds in taken.items():
            seconds.append(measure(is_naive))
    naive, ours = min(taken[True]), min(taken[False])
    ratio = ours / naive
    print(f"naive script    {naive:5.2f} s of the processor for {ROWS:,} creates")
    print(f"connector push  {ours:5.2f} s of the processor for {ROWS:,} creates")
    is_met = ratio <= RATIO_MAX
    print(f"ratio {ratio:.2f} (at most {RATIO_MAX:.2f}) {'ok' if is_met else 'MISSED'}")
    return 0 if is_met else 1


if __name__ == "__main__":
    sys.exit(main())
