"""Publishers in separate processes that can be killed."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from types import FrameType
from typing import Any

from tests.repository import ROOT
from tests.support.processes import ForkServer, kill_this_process, serve_forks


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
