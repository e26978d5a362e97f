"""Another process holds the connector's work file open."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from connector.errors import WarehouseError
from connector.sandbox.server import Sandbox
from connector.state.lock import WAIT_SECONDS
from connector.warehouse import file
from tests.support.agency import differences, published
from tests.support.clock import pulled
from tests.support.errors import has_code

HOLD = (
    "import duckdb, sys; held = duckdb.connect(sys.argv[1], read_only=True); "
    "print('held', flush=True); sys.stdin.readline(); held.close(); print('free', flush=True)"
)


class FakeTime:
    """Replacement of the `time` module while the connector waits; the third wait calls `act`."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.waits = 0
        self.act = self.do_nothing

    def do_nothing(self) -> None:
        """Do nothing: the default of `act`."""

    def monotonic(self) -> float:
        """Return the simulated seconds."""
        return self.seconds

    def sleep(self, seconds: float) -> None:
        """Advance the time without waiting, and call `act` at the third wait."""
        assert seconds > 0
        self.seconds += seconds
        self.waits += 1
        if self.waits == 3:
            self.act()


@contextmanager
def hold_file_open(path: Path) -> Iterator[subprocess.Popen[str]]:
    """Start a process that holds the file open for reading."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as reader:
        assert reader.stdout is not None
        assert "held\n" == reader.stdout.readline()
        try:
            yield reader
        finally:
            reader.kill()


def release_file(reader: subprocess.Popen[str]) -> None:
    """Make the process close the file, and wait until it has done so."""
    assert reader.stdin is not None
    assert reader.stdout is not None
    reader.stdin.write("\n")
    reader.stdin.flush()
    assert "free\n" == reader.stdout.readline()


def test_a_file_that_stays_in_use_is_reported_with_the_process_id(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Sandbox(counts={"jobs": 8}) as sandbox:
        pulled(sandbox, tmp_path)
        work = tmp_path / "data" / "work.duckdb"
        before, spent = work.read_bytes(), len(sandbox.log)
        fake_time = FakeTime()
        with hold_file_open(work) as reader, monkeypatch.context() as patched:
            patched.setattr(file, "time", fake_time)
            with pytest.raises(
                WarehouseError, match=f"process {reader.pid}", check=has_code("warehouse_busy")
            ):
                pulled(sandbox, tmp_path)
            assert WAIT_SECONDS <= fake_time.seconds < WAIT_SECONDS + 1
        assert before == work.read_bytes()
        assert spent == len(sandbox.log)

        sandbox.store.update("jobs", min(sandbox.store.records("jobs")), {"title": "Renamed"})
        assert "done" == pulled(sandbox, tmp_path).outcome
        assert [] == differences(sandbox, published(tmp_path))


def test_a_pull_waits_for_a_file_that_is_released_in_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Sandbox(counts={"jobs": 8}) as sandbox:
        pulled(sandbox, tmp_path)
        fake_time = FakeTime()
        with hold_file_open(tmp_path / "data" / "work.duckdb") as reader:
            fake_time.act = lambda: release_file(reader)
            with monkeypatch.context() as patched:
                patched.setattr(file, "time", fake_time)
                report = pulled(sandbox, tmp_path)

        assert "done" == report.outcome, report.as_json()
        assert 3 == fake_time.waits
        assert [] == differences(sandbox, published(tmp_path))
