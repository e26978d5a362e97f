"""Pushes, and undos of them, in processes of their own, to be killed: forked from one that has
everything imported.

A child numbers what it passes: each commit of the journal or the warehouse, once it is on the disk,
and each step of a request on the network, before and after. It can die at any of them.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp

from connector.sandbox.server import Sandbox
from tests.faults import killable_pull
from tests.faults.fork_server import fork_for_each_line
from tests.faults.killable_pull import Ended

STEPS = (
    *("connection_create_start", "connection_create_end", "connection_reuseconn"),
    *("request_headers_sent", "request_chunk_sent", "request_end", "response_chunk_received"),
)
"""Steps of a request, as aiohttp names them."""


@dataclass(frozen=True, slots=True)
class Child:
    """A push to be, of the file with so many rows, or the undo of a batch. It dies at the point of
    that number.
    """

    environ: Mapping[str, str]
    rows: int
    dies_at: int | None = None
    undoes: str | None = None

    @classmethod
    def of(
        cls,
        sandbox: Sandbox,
        folder: Path,
        rows: int,
        *,
        connections: int,
        dies_at: int | None = None,
        undoes: str | None = None,
    ) -> Child:
        """A push to the sandbox from the folder, or an undo."""
        environ = {
            "CONNECTOR_BASE_URL": sandbox.base_url,
            "CONNECTOR_API_KEY": sandbox.key,
            "CONNECTOR_DATA_DIR": str(folder / "data"),
            "CONNECTOR_MODELS": "off",
            "CONNECTOR_CONNECTIONS": str(connections),
        }
        return cls(environ, rows, dies_at, undoes)


@dataclass(frozen=True, slots=True)
class Point:
    """A place at which a push may die: its number, what it is, and how many writes had begun."""

    number: int
    kind: str
    writes: int


class PushForkServer(killable_pull.PullForkServer):
    """Starts children one at a time, while its `with` block lasts."""

    def __init__(self) -> None:
        super().__init__("tests.pushes.killable_push")

    def run(self, child: Any) -> Ended:
        """Start it and wait for its end."""
        self.start(child)
        return self.wait()


def ended_at(ended: Ended) -> list[Point]:
    """The points that a push has passed that nobody killed."""
    assert 0 == ended.status, ended
    return [Point(**each) for each in json.loads(ended.said.splitlines()[-1])]


# -- within the process that forks ----------------------------------------------------------------


def serve() -> None:
    """Fork a child for each line that comes, and tell its id and how it ended."""
    # Imported before the first fork, or each child would import it.
    import connector.pushes.undo  # noqa: F401, PLC0415
    import tests.pushes.pushing  # noqa: F401, PLC0415

    fork_for_each_line(_live)


def _live(given: dict[str, Any], prints_to: int) -> None:
    """Be the child, to its end."""
    from connector.pushes.batch import apply  # noqa: PLC0415
    from connector.pushes.undo import undo  # noqa: PLC0415
    from connector.settings.model import load_settings  # noqa: PLC0415
    from tests.pushes.pushing import creates, file_of  # noqa: PLC0415

    status = 70
    try:
        for stream in (1, 2):
            os.dup2(prints_to, stream)
        passed = _count(given["dies_at"])
        settings = load_settings({}, given["environ"], Path())
        if given["undoes"] is not None:
            status = asyncio.run(undo(settings, given["undoes"], applies=True)).exit_status
        else:
            plan = file_of(creates(given["rows"]))
            status = asyncio.run(apply(settings, plan, sleep=_no_wait)).exit_status
        sys.stdout.write(json.dumps(passed) + "\n")
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


async def _no_wait(seconds: float) -> None:
    """A child that has only to wait has nothing left to die of."""
    sys.stdout.write("[]\n")
    sys.stdout.flush()
    os.kill(os.getpid(), signal.SIGKILL)


def _count(dies_at: int | None) -> list[dict[str, Any]]:
    """Number what is passed, in the list returned, and die at the one of that number."""
    from connector.client import transport  # noqa: PLC0415
    from connector.ledger import ledger  # noqa: PLC0415
    from connector.warehouse import warehouse  # noqa: PLC0415

    passed: list[dict[str, Any]] = []
    begun = [0]

    def passes(kind: str) -> None:
        passed.append({"number": len(passed) + 1, "kind": kind, "writes": begun[0]})
        if len(passed) == dies_at:
            os.kill(os.getpid(), signal.SIGKILL)

    def counted(whole: Any, kind: str) -> Any:
        @contextmanager
        def transaction(*arguments: Any) -> Iterator[Any]:
            is_joined = getattr(arguments[0], "in_transaction", False)
            with whole(*arguments) as opened:
                yield opened
            if not is_joined:
                passes(kind)

        return transaction

    class Tracing(aiohttp.TraceConfig):
        """Passes at each step that aiohttp tells of."""

        def __init__(self) -> None:
            super().__init__()
            for step in STEPS:
                getattr(self, f"on_{step}").append(partial(self._step, step))

        async def _step(self, step: str, session: Any, context: Any, told: Any) -> None:
            if step == "request_headers_sent":
                begun[0] += told.method != "GET"
            passes(step)

    closing = transport._Body.aclose

    async def close(self: Any) -> None:
        await closing(self)
        passes("answer_read")

    vars(ledger)["transaction"] = counted(vars(ledger)["transaction"], "journal")
    vars(warehouse)["transaction"] = counted(vars(warehouse)["transaction"], "warehouse")
    setattr(transport._Body, "aclose", close)  # noqa: B010
    vars(aiohttp)["TraceConfig"] = Tracing
    return passed
