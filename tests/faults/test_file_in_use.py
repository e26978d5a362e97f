"""Another process holds the connector's own file."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from connector.errors import WarehouseBusy
from connector.sandbox.server import Sandbox
from connector.warehouse import duckdb_file as file
from tests.support.agency import differences, published
from tests.support.clock import pulled

HOLD = (
    "import duckdb, sys; held = duckdb.connect(sys.argv[1], read_only=True); "
    "print('held', flush=True); sys.stdin.readline(); held.close(); print('free', flush=True)"
)


class FakeTime:
    """Seconds that pass while the connector waits for the file; `act` is done at the third wait."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.waits = 0
        self.act = self.nothing

    def nothing(self) -> None:
        """Let it wait."""

    def monotonic(self) -> float:
        return self.seconds

    def sleep(self, seconds: float) -> None:
        """Let that much time pass, at once."""
        assert seconds > 0
        self.seconds += seconds
        self.waits += 1
        if self.waits == 3:
            self.act()


@contextmanager
def reader_of(path: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that has the file open for reading until a line is written to it."""
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


def let_go(reader: subprocess.Popen[str]) -> None:
    """Make it close the file, and wait until it has."""
    assert reader.stdin is not None
    assert reader.stdout is not None
    reader.stdin.write("\n")
    reader.stdin.flush()
    assert "free\n" == reader.stdout.readline()


def test_a_file_that_stays_held_is_named_with_its_holder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Sandbox(counts={"jobs": 8}) as sandbox:
        pulled(sandbox, tmp_path)
        work = tmp_path / "data" / "work.duckdb"
        before, spent = work.read_bytes(), len(sandbox.log)
        fake_time = FakeTime()
        with reader_of(work) as reader, monkeypatch.context() as patched:
            patched.setattr(file, "time", fake_time)
            with pytest.raises(WarehouseBusy, match=f"process {reader.pid}"):
                pulled(sandbox, tmp_path)
            assert file.LOCK_WAIT_SECONDS <= fake_time.seconds < file.LOCK_WAIT_SECONDS + 1
        assert before == work.read_bytes()
        assert spent == len(sandbox.log)

        sandbox.store.update("jobs", min(sandbox.store.records("jobs")), {"title": "Renamed"})
        assert "done" == pulled(sandbox, tmp_path).outcome
        assert [] == differences(sandbox, published(tmp_path))


def test_a_file_that_is_let_go_in_time_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Sandbox(counts={"jobs": 8}) as sandbox:
        pulled(sandbox, tmp_path)
        fake_time = FakeTime()
        with reader_of(tmp_path / "data" / "work.duckdb") as reader:
            fake_time.act = lambda: let_go(reader)
            with monkeypatch.context() as patched:
                patched.setattr(file, "time", fake_time)
                report = pulled(sandbox, tmp_path)

        assert "done" == report.outcome, report.as_json()
        assert 3 == fake_time.waits
        assert [] == differences(sandbox, published(tmp_path))
