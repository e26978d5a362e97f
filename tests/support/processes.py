"""Processes that a test starts, sends orders to and kills.

A fork server imports everything once and forks one child for each order, so that a child starts in
milliseconds. Test and server exchange lines of JSON.
"""

from __future__ import annotations

import itertools
import json
import os
import signal
import socket
import subprocess
import sys
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NoReturn, Self

from connector.state import lock
from tests.repository import ROOT

if TYPE_CHECKING:
    import pytest

FAILED = 70
"""Exit status of a child that ended with an exception."""


def start_python(
    *arguments: str, environ: Mapping[str, str] | None = None, stderr: int | None = None
) -> subprocess.Popen[str]:
    """Start Python with pipes for its input and output, and only these settings of the connector.

    `stderr` is where error output goes; None means the test's own.
    """
    kept = {name: v for name, v in os.environ.items() if not name.startswith("CONNECTOR_")}
    return subprocess.Popen(
        [sys.executable, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=stderr,
        text=True,
        cwd=ROOT,
        env={**kept, **(environ or {})},
    )


def kill_this_process(*_: Any) -> NoReturn:
    """Kill the process that calls, as `kill -9` does."""
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError


@dataclass(frozen=True, slots=True)
class ChildResult:
    """Exit status of a child (negative: the signal that ended it) and its combined output."""

    status: int
    output: str

    @property
    def is_killed(self) -> bool:
        """True if the child was killed before it ended."""
        return self.status == -signal.SIGKILL


class ForkServer:
    """Server process that runs `serve` of a module for as long as the `with` block lasts."""

    def __init__(self, module: str) -> None:
        self._code = f"from {module} import serve; serve()"

    def __enter__(self) -> Self:
        self._process = start_python("-c", self._code)
        return self

    def __exit__(self, *exception: object) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(60)
        self._process.stdout.close()

    def start(self, *orders: Any) -> list[int]:
        """Start a child for each order; returns their process ids."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(orders) + "\n")
        self._process.stdin.flush()
        pids: list[int] = self._receive()
        return pids

    def wait(self) -> list[ChildResult]:
        """Wait for the children of the last `start`."""
        return [ChildResult(*each) for each in self._receive()]

    def run(self, order: Any) -> ChildResult:
        """Start a child and wait for it."""
        self.start(order)
        (result,) = self.wait()
        return result

    def _receive(self) -> Any:
        """Return the next line of the server, parsed as JSON."""
        assert self._process.stdout is not None
        return json.loads(self._process.stdout.readline())


# -- in the server process ------------------------------------------------------------------------


def serve_forks(run: Callable[[Any], int]) -> None:
    """Fork a child for each order on the standard input, and report how each of them ended.

    `run` performs an order in the child, and returns the exit status.
    """
    for line in sys.stdin:
        children = [_fork(run, order) for order in json.loads(line)]
        _send([pid for pid, _ in children])
        results = []
        for pid, pipe in children:
            with os.fdopen(pipe, encoding="utf-8") as file:
                output = file.read()
            _, status = os.waitpid(pid, 0)
            results.append([os.waitstatus_to_exitcode(status), output])
        _send(results)


def _send(value: Any) -> None:
    """Write the value as a line of JSON."""
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


def _fork(run: Callable[[Any], int], order: Any) -> tuple[int, int]:
    """Fork a child for the order, and return its process id and the pipe with its output."""
    # A pipe instead of a file: the output must arrive even if the disk is full.
    ours, theirs = os.pipe()
    pid = os.fork()
    if pid == 0:
        _run_child(run, order, theirs)
    os.close(theirs)
    return pid, ours


def _run_child(run: Callable[[Any], int], order: Any, output: int) -> NoReturn:
    """Perform the order with the output redirected to the pipe, and end the process."""
    status = FAILED
    try:
        for stream in (1, 2):
            os.dup2(output, stream)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        status = run(order)
    except SystemExit as exit_:
        status = int(exit_.code or 0)
    except Exception:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def find_free_port() -> int:
    """Return a local port that no process uses."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


_HOLD = """
import sys
from pathlib import Path
from connector.state.lock import hold
with hold(Path(sys.argv[1]), sys.argv[2]):
    print("held", flush=True)
    sys.stdin.read()
"""


class OtherProcess:
    """Another process that holds the lock of an account's folder until it is killed."""

    def __init__(self, folder: Path, name: str = "pull") -> None:
        self.process = start_python("-c", _HOLD, str(folder), name)
        assert self.process.stdout is not None
        assert "held\n" == self.process.stdout.readline()

    def kill(self) -> None:
        """Kill the process, which releases nothing by itself."""
        self.process.kill()
        self.process.communicate(timeout=30)


def shorten_wait(patch: pytest.MonkeyPatch) -> None:
    """Let a process that waits for the account give up at its second attempt."""
    patch.setattr(lock, "time", SimpleNamespace(monotonic=itertools.count(0.0, 61.0).__next__))
