"""Night of an operator with fifty accounts: `python -m benchmarks night`.

Each account has a server of its own, in this process, and a few changes since the night before. The
night is done twice: by `connector pull --all` on one machine, and by Dask with two workers, started
as docs/DISTRIBUTED.md says. Then once more each with an account whose server answers nothing, and
with Dask's scheduler killed in the middle, after which the same job is run again. Printed is how
long each took, and how many accounts were exact afterwards.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from benchmarks.distributed import COUNTS, configure
from connector.sandbox.faults import Latency
from connector.sandbox.server import Sandbox
from tests.distributed.documented import documented
from tests.pulls.landed import differences

ACCOUNTS = int(os.environ.get("ACCOUNTS", "50"))
CHANGES = 5
ADDRESS = "tcp://127.0.0.1:18786"
BIN = Path(sys.executable).parent
ONE_MACHINE = (BIN / "connector", "pull", "--all")
JOB = ("job", "execute", "-m", "pipelines.everywhere", "-j", "intraday_everywhere")
EVERYWHERE = (BIN / "dagster", *JOB)
_HOME = """
telemetry: {enabled: false}
compute_logs:
  module: dagster._core.storage.noop_compute_log_manager
  class: NoOpComputeLogManager
"""


def main() -> int:
    """Print the figures; 0 if every account is exact in the end."""
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        boxes = [
            stack.enter_context(Sandbox(counts=COUNTS, seed=number, keys={f"key-{number}": ("*",)}))
            for number in range(ACCOUNTS)
        ]
        configure(folder, boxes)
        (folder / "dagster.yaml").write_text(_HOME, encoding="utf-8")
        night("first load, one machine", folder, boxes, ONE_MACHINE)
        night("a night, one machine", folder, boxes, ONE_MACHINE)
        with scheduler_and_workers(folder):
            night("a night, two workers", folder, boxes, EVERYWHERE)
        stuck = boxes[ACCOUNTS // 2]
        stuck.faults.add(Latency(3_600), times=None)
        night("one account stuck, one machine", folder, boxes, ONE_MACHINE)
        with scheduler_and_workers(folder):
            night("one account stuck, two workers", folder, boxes, EVERYWHERE)
        stuck.faults.clear()
        with scheduler_and_workers(folder) as scheduler:
            night("scheduler killed, two workers", folder, boxes, EVERYWHERE, kills=scheduler)
        with scheduler_and_workers(folder):
            exact = night("the same job again", folder, boxes, EVERYWHERE)
    return 0 if exact == ACCOUNTS else 1


def night(
    title: str,
    folder: Path,
    boxes: list[Sandbox],
    command: tuple[str | Path, ...],
    kills: subprocess.Popen[bytes] | None = None,
) -> int:
    """Change some records of each account, run the command, and print what came of it.

    `kills` is a process that is killed once a third of the accounts are exact. Returns how many are
    exact in the end.
    """
    for box in boxes:
        for id in list(box.store.records("candidates"))[:CHANGES]:
            box.store.update("candidates", id, {"city": title})
    before = sum(len(box.log) for box in boxes)
    began = time.monotonic()
    running = subprocess.Popen(  # noqa: S603  # our own
        command, cwd=folder, env=environment(folder), stdout=subprocess.DEVNULL, stderr=sys.stderr
    )
    while kills is not None and exact(folder, boxes) < ACCOUNTS // 3:
        time.sleep(1)
    if kills is not None:
        kills.send_signal(signal.SIGKILL)
        print(f"{title}: killed after {time.monotonic() - began:.0f} s", flush=True)
    status = running.wait()
    seconds, count = time.monotonic() - began, exact(folder, boxes)
    requests = sum(len(box.log) for box in boxes) - before
    print(
        f"{title}: {seconds:.0f} s, {count} of {ACCOUNTS} accounts exact, {requests} requests,"
        f" exit status {status}",
        flush=True,
    )
    return count


def exact(folder: Path, boxes: list[Sandbox]) -> int:
    """How many accounts' published files are as their servers are."""
    files = (folder / "data" / f"a{number}" / "recruitment.duckdb" for number in range(ACCOUNTS))
    return sum(
        file.exists() and not differences(box, file) for box, file in zip(boxes, files, strict=True)
    )


def environment(folder: Path) -> dict[str, str]:
    """The variables of every process."""
    ours = {
        "CONNECTOR_CONFIG": str(folder / "connector.toml"),
        "DAGSTER_HOME": str(folder),
        "DASK_SCHEDULER_ADDRESS": ADDRESS,
        "PYTHONPATH": str(Path(__file__).parents[1]),
    }
    return {**os.environ, **documented(), **ours}


@contextmanager
def scheduler_and_workers(folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Dask as the page starts it; gives the scheduler's process."""
    workers = ("--nworkers", "2", "--nthreads", "1", "--preload", "pipelines.everywhere")
    address = ("--host", "127.0.0.1", "--port", ADDRESS.rpartition(":")[2], "--no-dashboard")

    def started(*words: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(  # noqa: S603  # our own
            [BIN / "dask", *words], cwd=folder, env=environment(folder), stderr=subprocess.DEVNULL
        )

    scheduler = started("scheduler", *address)
    worker = started("worker", ADDRESS, *workers, "--no-dashboard")
    try:
        yield scheduler
    finally:
        for each in (worker, scheduler):
            each.terminate()
        worker.wait()
        scheduler.wait()


if __name__ == "__main__":
    sys.exit(main())
