"""Commands that kill themselves at a step, in separate processes."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

from tests.support.processes import ForkServer, kill_this_process, serve_forks


class CommandForkServer(ForkServer):
    """Fork server for commands that can kill themselves at a step."""

    def __init__(self) -> None:
        super().__init__(__name__)

    def call(
        self,
        arguments: Sequence[str | Path],
        environ: Mapping[str, str],
        dies_at: int | None = None,
    ) -> tuple[int, int]:
        """Call `connector` with these arguments, in a child that dies at a step.

        Returns:
            The exit status (negative if killed by a signal) and the number of steps (0 if killed).
        """
        result = self.run([[*map(str, arguments)], dict(environ), dies_at])
        return result.status, 0 if result.is_killed else int(result.output.splitlines()[-1])


def serve() -> None:
    """Fork a child for each order that is read from the input."""
    # Imported before the first fork, with the modules that commands import late.
    import connector.cli.operations  # noqa: PLC0415
    import connector.cli.person  # noqa: F401, PLC0415

    serve_forks(_call_and_count_steps)


def _call_and_count_steps(order: tuple[Sequence[str], Mapping[str, str], int | None]) -> int:
    """Call the command, and print the number of steps: calls of the databases and of the operating
    system.
    """
    from connector.cli import main  # noqa: PLC0415

    arguments, environ, dies_at = order
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

    os.environ.update(environ)
    threading.setprofile(count)
    sys.setprofile(count)
    try:
        main([*arguments], prog_name="connector")
    finally:
        sys.setprofile(None)
        sys.stdout.write(f"{steps}\n")
    return 0
