"""Pulls in processes of their own, to be killed or starved: forked from one that has everything
imported.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import duckdb

from connector.sandbox.server import Sandbox
from tests.faults.fork_server import ForkServer, fork_for_each_line

BATCH_REQUESTS = 100
"""Records that a child reads between two commits."""


@dataclass(frozen=True, slots=True)
class Child:
    """A pull to be: it kills itself after `dies_after_commit` commits, prints in the end how many
    it made if it `counts_commits`, and can write no file beyond `file_bytes_max` bytes.
    """

    environ: Mapping[str, str]
    arguments: tuple[str, ...]
    dies_after_commit: int | None = None
    counts_commits: bool = False
    file_bytes_max: int | None = None


@dataclass(frozen=True, slots=True)
class Ended:
    """How a child ended: its exit status, or the negative signal; and what it printed."""

    status: int
    said: str

    @property
    def is_killed(self) -> bool:
        """Whether it was killed before it could end."""
        return self.status == -signal.SIGKILL


class PullForkServer(ForkServer):
    """Starts children one at a time, while its `with` block lasts."""

    def __init__(self, module: str = "tests.faults.killable_pull") -> None:
        super().__init__(module)

    def start(self, child: Child) -> int:
        """Start it; returns its process id."""
        self.say(asdict(child))
        return int(self.heard()["pid"])

    def wait(self) -> Ended:
        """Wait until the child that was started last has ended."""
        line = self.heard()
        return Ended(line["status"], line["said"])

    def run(self, child: Child) -> Ended:
        """Start it and wait for its end."""
        self.start(child)
        return self.wait()


def child(sandbox: Sandbox, folder: Path, *resources: str, **options: Any) -> Child:
    """A pull of the resources from the sandbox into the folder."""
    environ = {
        "CONNECTOR_BASE_URL": sandbox.base_url,
        "CONNECTOR_API_KEY": sandbox.key,
        "CONNECTOR_DATA_DIR": str(folder / "data"),
        "CONNECTOR_MODELS": "off",
    }
    return Child(environ, ("pull", *resources), **options)


# -- within the process that forks ----------------------------------------------------------------


def serve() -> None:
    """Fork a child for each line that comes, and tell its id and how it ended."""
    # Imported before the first fork; what a command imports late is imported here.
    import connector.cli.operations  # noqa: PLC0415
    import connector.cli.pull  # noqa: F401, PLC0415
    from connector.pulls import detail_queue, listing  # noqa: PLC0415

    # A load that is soon read has several batches all the same.
    vars(listing)["BATCH_RECORDS_MAX"] = vars(detail_queue)["BATCH_RECORDS_MAX"] = BATCH_REQUESTS

    fork_for_each_line(_live)


def _live(given: dict[str, Any], prints_to: int) -> None:
    """Be the child, to its end."""
    from connector.cli import main  # noqa: PLC0415

    status, commits = 70, [0]
    try:
        os.environ.update(given["environ"])
        for stream in (1, 2):
            os.dup2(prints_to, stream)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        commits = _count_commits(given["dies_after_commit"])
        if (size := given["file_bytes_max"]) is not None:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
        main(list(given["arguments"]), prog_name="connector")
    except SystemExit as ended:
        status = int(ended.code or 0)
        if given["counts_commits"]:
            sys.stderr.write(f"{commits[0]}\n")
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _count_commits(dies_after: int | None) -> list[int]:
    """Count the transactions that are committed, in the one item returned; die after so many."""
    from connector.warehouse import warehouse  # noqa: PLC0415

    transaction: Any = vars(warehouse)["transaction"]
    commits = [0]

    @contextmanager
    def counted(connection: duckdb.DuckDBPyConnection) -> Iterator[None]:
        with transaction(connection):
            yield
        commits[0] += 1
        if commits[0] == dies_after:
            os.kill(os.getpid(), signal.SIGKILL)

    vars(warehouse)["transaction"] = counted
    return commits
