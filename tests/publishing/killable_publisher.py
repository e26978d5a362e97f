"""Publishers and readers in processes of their own.

Publishers are forked from one process that has everything imported, and told at which of their
steps to kill themselves; the test talks to that process in lines of JSON. Run as a module with a
file's name this is a reader, which tells what it saw when its input ends.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import FrameType
from typing import Any, Self

ROOT = Path(__file__).parents[2]
_SERVE = "from tests.publishing.killable_publisher import serve; serve()"

LOOKS = 3
"""How often a reader looks when it is told to: for about as long as a publication takes."""

QUERY = "SELECT (SELECT max(id) FROM landing.jobs), (SELECT max(detail) FROM sync.events)"
"""Two tables that are always changed together."""


class PublisherForkServer:
    """Starts publishers one at a time, while its `with` block lasts."""

    def __enter__(self) -> Self:
        self._process = _python("-c", _SERVE)
        return self

    def __exit__(self, *exception: object) -> None:
        _end(self._process)

    def publish(
        self, environ: Mapping[str, str], dies_at: int | None = None, project: Path | None = None
    ) -> tuple[int, int]:
        """Publish, or die at a step; the exit status (or the negative signal), and the steps that
        were counted where it did not die. `project` has the models, if not those that are shipped.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(
            json.dumps([dict(environ), dies_at, project and str(project)]) + "\n"
        )
        self._process.stdin.flush()
        status, steps = json.loads(self._process.stdout.readline())
        return status, steps


class Reader:
    """Reads the file in a process of its own, while its `with` block lasts: some times over at each
    `look`, which does not wait for it. One that `stays` opens the file once.
    """

    def __init__(self, file: Path, *, stays: bool) -> None:
        self._arguments = (str(file), "stays" if stays else "comes")
        self.seen: list[list[str]] = []

    def __enter__(self) -> Self:
        self._process = _python("-m", "tests.publishing.killable_publisher", *self._arguments)
        assert self._process.stdout is not None
        assert "ready" == self._process.stdout.readline().strip()
        return self

    def __exit__(self, *exception: object) -> None:
        out, _ = self._process.communicate(timeout=60)
        self.seen = json.loads(out)

    def look(self) -> None:
        """Begin to look."""
        assert self._process.stdin is not None
        self._process.stdin.write("look\n")
        self._process.stdin.flush()


def _python(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )


def _end(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.close()
    process.wait(60)
    process.stdout.close()


# -- within the process that forks ----------------------------------------------------------------


def serve() -> None:
    """Fork a publisher for each line that comes, and tell how it ended."""
    # Imported before the first fork.
    import connector.publishing.project_loader  # noqa: PLC0415
    import connector.publishing.publication  # noqa: F401, PLC0415

    for line in sys.stdin:
        environ, dies_at, project = json.loads(line)
        ours, theirs = os.pipe()
        pid = os.fork()
        if pid == 0:
            _live(environ, dies_at, project, theirs)
        os.close(theirs)
        with os.fdopen(ours) as told:
            steps = int(told.read() or 0)
        _, ended = os.waitpid(pid, 0)
        sys.stdout.write(json.dumps([os.waitstatus_to_exitcode(ended), steps]) + "\n")
        sys.stdout.flush()


def _live(environ: Mapping[str, str], dies_at: int | None, project: str | None, told: int) -> None:
    """Be the publisher, to its end. Steps are calls out of Python: of DuckDB and of the system."""
    from connector.publishing import publication as publishing  # noqa: PLC0415
    from connector.publishing.project_loader import load_project  # noqa: PLC0415
    from connector.publishing.publication import publish  # noqa: PLC0415
    from connector.settings.model import load_settings  # noqa: PLC0415

    status, steps = 70, 0

    def count(_: FrameType, event: str, argument: Any) -> None:
        nonlocal steps
        if event == "c_call" and str(argument.__module__) in ("posix", "_duckdb", "fcntl"):
            steps += 1
            if steps == dies_at:
                os.kill(os.getpid(), signal.SIGKILL)

    try:
        settings = load_settings({}, environ, ROOT)
        if project is not None:
            vars(publishing)["project_of"] = lambda _: load_project(Path(project))
        sys.setprofile(count)
        publish(settings)
        sys.setprofile(None)
        os.write(told, str(steps).encode())
        status = 0
    finally:
        os._exit(status)


# -- the reader -----------------------------------------------------------------------------------


def _read_on(file: Path, *, stays: bool) -> None:
    """Read at each line of the input, and print what was seen, without repetitions."""
    import duckdb  # noqa: PLC0415

    seen: list[list[str]] = []
    held = duckdb.connect(str(file), read_only=True) if stays else None
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    for _ in sys.stdin:
        for _ in range(LOOKS):
            if held is not None:
                found = held.execute(QUERY).fetchall()
            else:
                with duckdb.connect(str(file), read_only=True) as connection:
                    found = connection.execute(QUERY).fetchall()
            state = [str(each) for each in found[0]]
            if not seen or seen[-1] != state:
                seen.append(state)
    sys.stdout.write(json.dumps(seen))


if __name__ == "__main__":
    _read_on(Path(sys.argv[1]), stays=sys.argv[2] == "stays")
