"""Publishers that can be killed, and readers of the published file, in separate processes.

Run as a module with a file's name, this is a reader. It prints the states that it saw when its
input ends.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from types import FrameType
from typing import Any, Self

from tests.repository import ROOT
from tests.support.processes import ForkServer, kill_this_process, serve_forks, start_python

LOOKS = 3
"""Number of reads per request; they take about as long as a publication."""

QUERY = "SELECT (SELECT max(id) FROM landing.jobs), (SELECT max(id) FROM landing.companies)"
"""Two values that are always changed together."""


class PublisherForkServer(ForkServer):
    """Fork server for publishers that can kill themselves at a step."""

    def __init__(self) -> None:
        super().__init__(__name__)

    def publish(
        self, environ: Mapping[str, str], dies_at: int | None = None, project: Path | None = None
    ) -> tuple[int, int]:
        """Publish an account in a child process, which kills itself at step `dies_at`.

        Returns:
            The exit status (negative if killed by a signal) and the number of steps (0 if killed).
        """
        result = self.run([dict(environ), dies_at, project and str(project)])
        return result.status, 0 if result.is_killed else int(result.output)


class PublishedFileReader:
    """Process that reads the published file during its `with` block and fills `seen` at the end.

    With `stays`, the process keeps the file open. Otherwise, it opens the file for each read.
    """

    def __init__(self, file: Path, *, stays: bool) -> None:
        self._arguments = (str(file), "stays" if stays else "comes")
        self.seen: list[list[str]] = []

    def __enter__(self) -> Self:
        self._process = start_python("-m", __name__, *self._arguments)
        assert self._process.stdout is not None
        assert "ready" == self._process.stdout.readline().strip()
        return self

    def __exit__(self, *exception: object) -> None:
        out, _ = self._process.communicate(timeout=60)
        self.seen = json.loads(out)

    def start_reads(self) -> None:
        """Let the process read the file `LOOKS` times, without waiting for it."""
        assert self._process.stdin is not None
        self._process.stdin.write("look\n")
        self._process.stdin.flush()


# -- in the server process ------------------------------------------------------------------------


def serve() -> None:
    """Fork a publisher for each order that is read from the input."""
    # Imported before the first fork.
    import connector.models.publish  # noqa: F401, PLC0415

    serve_forks(_publish_and_count_steps)


def _publish_and_count_steps(order: tuple[Mapping[str, str], int | None, str | None]) -> int:
    """Publish, and print the number of steps: calls of DuckDB and of the operating system."""
    from connector.models import publish as publishing  # noqa: PLC0415
    from connector.models.project import load_project  # noqa: PLC0415
    from connector.models.publish import publish  # noqa: PLC0415
    from connector.settings import load_settings  # noqa: PLC0415

    environ, dies_at, project = order
    steps = 0

    def count(_: FrameType, event: str, argument: Any) -> None:
        nonlocal steps
        if event == "c_call" and str(argument.__module__) in ("posix", "_duckdb", "fcntl"):
            steps += 1
            if steps == dies_at:
                kill_this_process()

    settings = load_settings({}, environ, ROOT)
    if project is not None:
        vars(publishing)["load_account_project"] = lambda _: load_project(Path(project))
    sys.setprofile(count)
    publish(settings)
    sys.setprofile(None)
    sys.stdout.write(f"{steps}\n")
    return 0


# -- the reader -----------------------------------------------------------------------------------


def read_on_request(file: Path, *, stays: bool) -> None:
    """Read the file `LOOKS` times per input line. Finally, print the states without repetitions."""
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
    read_on_request(Path(sys.argv[1]), stays=sys.argv[2] == "stays")
