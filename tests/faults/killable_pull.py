"""Pulls in child processes that can be killed or given a full disk."""

from __future__ import annotations

import os
import resource
import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb

from connector.sandbox.server import Sandbox
from tests.support.command import variables
from tests.support.processes import ForkServer, kill_this_process, serve_forks

BATCH_REQUESTS = 100
"""Records that a child reads between two commits."""

PullOrder = Mapping[str, Any]


class PullForkServer(ForkServer):
    """Server process that forks a pull for each order."""

    def __init__(self) -> None:
        super().__init__(__name__)


def pull_order(
    sandbox: Sandbox,
    folder: Path,
    *resources: str,
    dies_after_commit: int | None = None,
    counts_commits: bool = False,
    file_bytes_max: int | None = None,
) -> PullOrder:
    """Return the order for a pull into `folder / "data"`.

    After `dies_after_commit` commits, the child kills itself. `counts_commits` prints the number
    of commits as the last line. The child cannot write a file beyond `file_bytes_max`.
    """
    return {
        "environ": variables(sandbox.base_url, folder / "data", sandbox.key),
        "arguments": ["pull", *resources],
        "dies_after_commit": dies_after_commit,
        "counts_commits": counts_commits,
        "file_bytes_max": file_bytes_max,
    }


# -- in the server process ------------------------------------------------------------------------


def serve() -> None:
    """Fork a pull for each order."""
    # Imported before the first fork, with the modules that commands import late.
    import connector.cli.operations  # noqa: PLC0415
    import connector.cli.pull  # noqa: F401, PLC0415
    from connector.pulls import pull  # noqa: PLC0415

    # Small batches, so that a short load has several.
    vars(pull)["BATCH_RECORDS_MAX"] = BATCH_REQUESTS

    serve_forks(_run_pull)


def _run_pull(order: PullOrder) -> int:
    """Run the pull of an order in this process. The command raises its status as `SystemExit`."""
    from connector.cli import main  # noqa: PLC0415

    os.environ.update(order["environ"])
    commits = _count_commits(order["dies_after_commit"])
    if (size := order["file_bytes_max"]) is not None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
    try:
        main(order["arguments"], prog_name="connector")
    finally:
        if order["counts_commits"]:
            sys.stderr.write(f"{commits[0]}\n")
    return 0


def _count_commits(dies_after: int | None) -> list[int]:
    """Count commits in the only item of the result, and kill this process after `dies_after`."""
    from connector.warehouse import warehouse  # noqa: PLC0415

    transaction: Any = vars(warehouse)["transaction"]
    commits = [0]

    @contextmanager
    def counted(connection: duckdb.DuckDBPyConnection) -> Iterator[None]:
        with transaction(connection):
            yield
        commits[0] += 1
        if commits[0] == dies_after:
            kill_this_process()

    vars(warehouse)["transaction"] = counted
    return commits
