"""`kill -9` after every request, and after every commit."""

from __future__ import annotations

import os
import shutil
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from connector.sandbox.server import Sandbox
from connector.sandbox.store import Store
from tests.faults.killable_pull import BATCH_REQUESTS, PullForkServer, pull_order
from tests.seeds import SEED
from tests.support.agency import differences, published, set_address
from tests.support.clock import Time, pulled
from tests.support.kill_points import SHARES, sample_points
from tests.support.processes import ChildResult
from tests.tiers import first_fast

COUNTS = {"candidates": 110, "jobs": 185}
RESOURCES = ("jobs", "candidates")


@pytest.fixture(scope="module")
def fork_server() -> Iterator[PullForkServer]:
    """A process that forks the pulls of all tests."""
    with PullForkServer() as opened:
        yield opened


@dataclass(frozen=True)
class PreparedAccount:
    """Folder before any kill, with its server's data.

    `clean` is the number of requests of a pull without a kill, `most` the maximum with one.
    """

    folder: Path
    clean: int
    most: int

    @contextmanager
    def open_copy(self, folder: Path) -> Iterator[Sandbox]:
        """Open a copy of the server, ten minutes after the last change."""
        shutil.copy(self.folder / "platform", folder / "platform")
        time = Time()
        time.pass_minutes(10)
        with Sandbox(data=folder / "platform", clock=make_clock(time)) as sandbox:
            yield sandbox

    def restore(self, folder: Path, sandbox: Sandbox) -> None:
        """Restore the folder to the state before any kill."""
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(self.folder / "base", folder)
        set_address(folder / "data", sandbox.base_url)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> PreparedAccount:
    """Prepared account, shared by all tests that kill at requests and commits."""
    folder, time = tmp_path_factory.mktemp("killed"), Time()
    with Sandbox(counts=COUNTS, data=folder / "platform", clock=make_clock(time)) as sandbox:
        return PreparedAccount(folder, *prepare_account(sandbox, time, folder / "base"))


def make_clock(time: Time) -> Callable[[], datetime]:
    """Return a clock that shows the real time until a test advances it."""
    return lambda: datetime.now(UTC) + timedelta(seconds=time.seconds)


def prepare_account(sandbox: Sandbox, time: Time, base: Path) -> tuple[int, int]:
    """Load a folder, change most of its records, and leave a resource unloaded.

    Returns the requests of a pull that is not killed, and the maximum for one that is killed once.
    """
    pulled(sandbox, base, "candidates")
    ids = sorted(sandbox.store.records("candidates"))
    for id in ids[:104]:
        sandbox.store.update("candidates", id, {"city": "Bern"})
    for id in ids[-3:]:
        sandbox.store.delete("candidates", id)
    # Later changes would be read twice, because writes may become visible late.
    time.pass_minutes(10)
    clean = base.with_name("clean")
    shutil.copytree(base, clean)
    report, quiet = pulled(sandbox, clean, *RESOURCES), pulled(sandbox, clean, *RESOURCES)
    assert "done" == report.outcome == quiet.outcome, report.as_json()
    assert 270 <= report.requests <= 330
    # A continued pull reads one batch again, scans twice and searches deletions once more.
    return report.requests, report.requests + BATCH_REQUESTS + 2 + 5 * quiet.requests


def finish_pull(sandbox: Sandbox, folder: Path, point: str) -> int:
    """Pull, check that the copy is exact, and return the requests that the server ever received."""
    report = pulled(sandbox, folder, *RESOURCES)
    assert "done" == report.outcome, (point, report.as_json())
    assert [] == differences(sandbox, published(folder)), point
    return len(sandbox.log)


def print_cost(what: str, extra: dict[int, int]) -> None:
    """Print the extra requests after each kill; `what` names the kind of kill point."""
    worst = max(extra, key=lambda n: extra[n])
    print(  # noqa: T201  # the figures are the point of trying every one
        f"{len(extra)} kills, each at another {what}: exact; extra requests "
        f"{sum(extra.values()) / len(extra):.1f} in the mean, {extra[worst]} at most, at {worst}"
    )


@pytest.mark.slow
@pytest.mark.parametrize("share", range(SHARES))
def test_a_pull_killed_after_any_request_continues_to_an_exact_copy(
    tmp_path: Path, fork_server: PullForkServer, prepared: PreparedAccount, share: int
) -> None:
    clean, most = prepared.clean, prepared.most
    with prepared.open_copy(tmp_path) as sandbox:
        extra = {}
        for request in sample_points(range(1, clean), 2, share):
            point = f"killed after request {request}, seed {SEED}"
            folder = tmp_path / "killed"
            before = len(sandbox.log)
            prepared.restore(folder, sandbox)
            assert kill_pull_at(sandbox, fork_server, folder, request).is_killed, point
            extra[request] = finish_pull(sandbox, folder, point) - before - clean
        print_cost("request", extra)
        assert {n: e for n, e in extra.items() if clean + e > most} == {}


@pytest.mark.parametrize("share", first_fast(range(SHARES)))
def test_a_pull_killed_after_any_commit_continues_to_an_exact_copy(
    tmp_path: Path, fork_server: PullForkServer, prepared: PreparedAccount, share: int
) -> None:
    clean, most = prepared.clean, prepared.most
    with prepared.open_copy(tmp_path) as sandbox:
        commits = count_commits(sandbox, fork_server, prepared, tmp_path)
        extra = {}
        for commit in sample_points(range(1, commits + 1), 2, share):
            point = f"killed after commit {commit}, seed {SEED}"
            folder = tmp_path / "killed"
            before = len(sandbox.log)
            prepared.restore(folder, sandbox)
            ended = fork_server.run(
                pull_order(sandbox, folder, *RESOURCES, dies_after_commit=commit)
            )
            assert ended.is_killed, (point, ended)
            extra[commit] = finish_pull(sandbox, folder, point) - before - clean
        print_cost("commit", extra)
        assert {n: e for n, e in extra.items() if clean + e > most} == {}


def count_commits(
    sandbox: Sandbox, fork_server: PullForkServer, prepared: PreparedAccount, tmp_path: Path
) -> int:
    """Return the number of transactions of a pull that is not killed."""
    folder = tmp_path / "counted"
    prepared.restore(folder, sandbox)
    ended = fork_server.run(pull_order(sandbox, folder, *RESOURCES, counts_commits=True))
    assert 0 == ended.status, ended
    return int(ended.output.splitlines()[-1])


def kill_pull_at(
    sandbox: Sandbox, fork_server: PullForkServer, folder: Path, request: int, seconds: float = 0.0
) -> ChildResult:
    """Start a pull and kill it after this many requests: at the next one, or `seconds` later."""
    served = 0
    pid = 0
    is_started = threading.Event()
    killers: list[threading.Timer] = []

    def kill() -> None:
        assert is_started.wait(60)
        os.kill(pid, signal.SIGKILL)

    def count_request(_: Store) -> None:
        nonlocal served
        served += 1
        if served == request and seconds > 0:
            killers.append(threading.Timer(seconds, kill))
            killers[0].start()
        elif served == request:
            kill()

    sandbox.between = count_request
    (pid,) = fork_server.start(pull_order(sandbox, folder, *RESOURCES))
    is_started.set()
    # The child cannot be reaped before it is waited for, so its id stays its own.
    (ended,) = fork_server.wait()
    sandbox.between = None
    for each in killers:
        each.join()
    return ended
