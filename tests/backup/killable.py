"""Backups and restores that kill themselves at a step, in separate processes."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from types import FrameType
from typing import Any

from tests.repository import ROOT
from tests.support.processes import ForkServer, kill_this_process, serve_forks


class BackupForkServer(ForkServer):
    """Fork server for backups and restores that can kill themselves at a step."""

    def __init__(self) -> None:
        super().__init__(__name__)

    def act(
        self, action: str, environ: Mapping[str, str], path: Path, dies_at: int | None = None
    ) -> tuple[int, int]:
        """Back up to a folder, or restore a file, in a child that dies at a step.

        Returns:
            The exit status (negative if killed by a signal) and the number of steps (0 if killed).
        """
        result = self.run([action, dict(environ), str(path), dies_at])
        return result.status, 0 if result.is_killed else int(result.output)


def serve() -> None:
    """Fork a child for each order that is read from the input."""
    import connector.operations.backup  # noqa: F401, PLC0415 # before the first fork

    serve_forks(_act_and_count_steps)


def _act_and_count_steps(order: tuple[str, Mapping[str, str], str, int | None]) -> int:
    """Act, and print the number of steps: calls of the databases and of the operating system."""
    from connector.operations.backup import make_backup, restore  # noqa: PLC0415
    from connector.settings import load_settings  # noqa: PLC0415

    action, environ, path, dies_at = order
    steps = 0

    def count(_: FrameType, event: str, argument: Any) -> None:
        nonlocal steps
        called = (
            getattr(argument, "__module__", None)
            or type(getattr(argument, "__self__", None)).__module__
        )
        if event == "c_call" and str(called) in ("posix", "_duckdb", "fcntl", "sqlite3", "_io"):
            steps += 1
            if steps == dies_at:
                kill_this_process()

    settings = load_settings({}, environ, ROOT)
    sys.setprofile(count)
    make_backup(settings, Path(path)) if action == "backup" else restore(settings, Path(path))
    sys.setprofile(None)
    sys.stdout.write(f"{steps}\n")
    return 0
