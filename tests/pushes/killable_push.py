"""Pushes and undos in separate processes that can be killed.

A child process numbers its kill points: each commit of the journal or the warehouse, once it is on
disk, and each network call, before and after. It can be killed at any of them.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp

from connector.sandbox.server import Sandbox
from tests.support.command import variables
from tests.support.processes import ChildResult, ForkServer, kill_this_process, serve_forks

STEPS = (
    *("connection_create_start", "connection_create_end", "connection_reuseconn"),
    *("request_headers_sent", "request_chunk_sent", "request_end", "response_chunk_received"),
)
"""Steps of a request, as aiohttp names them."""


@dataclass(frozen=True, slots=True)
class Point:
    """A place at which a push can be killed: its number, its kind, and the writes begun before."""

    number: int
    kind: str
    writes: int


class PushForkServer(ForkServer):
    """Fork server of pushes and undos."""

    def __init__(self) -> None:
        super().__init__(__name__)


PushOrder = Mapping[str, Any]


def make_push_order(
    sandbox: Sandbox,
    folder: Path,
    rows: int,
    *,
    connections: int,
    dies_at: int | None = None,
    undoes: str | None = None,
) -> PushOrder:
    """Return the order to push a file with so many rows, or to undo a batch."""
    environ = variables(sandbox.base_url, folder / "data", sandbox.key)
    environ["CONNECTOR_CONNECTIONS"] = str(connections)
    return {"environ": environ, "rows": rows, "dies_at": dies_at, "undoes": undoes}


def parse_points(result: ChildResult) -> list[Point]:
    """Parse the kill points from the output of a push that was not killed."""
    assert 0 == result.status, result
    return [Point(**each) for each in json.loads(result.output.splitlines()[-1])]


# -- in the server process ------------------------------------------------------------------------


def serve() -> None:
    """Fork a push for each order read from the input."""
    # Imported before the first fork, or each child would import it.
    import connector.pushes.undo  # noqa: F401, PLC0415
    import tests.pushes.pushing  # noqa: F401, PLC0415

    serve_forks(_run)


def _run(order: PushOrder) -> int:
    from connector.pushes.batch import apply  # noqa: PLC0415
    from connector.pushes.undo import undo  # noqa: PLC0415
    from connector.settings.model import load_settings  # noqa: PLC0415
    from tests.pushes.pushing import make_creates, make_plan  # noqa: PLC0415

    points = count_steps(order["dies_at"])
    settings = load_settings({}, order["environ"], Path())
    if order["undoes"] is not None:
        status = asyncio.run(undo(settings, order["undoes"], applies=True)).exit_status
    else:
        plan = make_plan(make_creates(order["rows"]))
        status = asyncio.run(apply(settings, plan, sleep=end_at_first_wait)).exit_status
    sys.stdout.write(json.dumps(points) + "\n")
    return status


async def end_at_first_wait(seconds: float) -> None:
    """Print no points and end the process: a waiting push has no further kill point."""
    sys.stdout.write("[]\n")
    sys.stdout.flush()
    kill_this_process()


def count_steps(dies_at: int | None) -> list[dict[str, Any]]:
    """Number the steps in the returned list, and kill the process at the given step."""
    from connector.client import connection  # noqa: PLC0415
    from connector.ledger import ledger  # noqa: PLC0415
    from connector.warehouse import warehouse  # noqa: PLC0415

    passed: list[dict[str, Any]] = []
    begun = [0]

    def pass_step(kind: str) -> None:
        passed.append({"number": len(passed) + 1, "kind": kind, "writes": begun[0]})
        if len(passed) == dies_at:
            kill_this_process()

    def count_calls(whole: Any, kind: str) -> Any:
        @contextmanager
        def transaction(*arguments: Any) -> Iterator[Any]:
            is_joined = getattr(arguments[0], "in_transaction", False)
            with whole(*arguments) as opened:
                yield opened
            if not is_joined:
                pass_step(kind)

        return transaction

    class Tracing(aiohttp.TraceConfig):
        """Trace configuration that counts each step reported by aiohttp."""

        def __init__(self) -> None:
            super().__init__()
            for step in STEPS:
                getattr(self, f"on_{step}").append(partial(self._trace, step))

        async def _trace(self, step: str, session: Any, context: Any, parameters: Any) -> None:
            if step == "request_headers_sent":
                begun[0] += parameters.method != "GET"
            pass_step(step)

    closing = connection.StreamedResponse.close

    def close(self: Any) -> None:
        closing(self)
        pass_step("answer_read")

    vars(ledger)["transaction"] = count_calls(vars(ledger)["transaction"], "journal")
    vars(warehouse)["transaction"] = count_calls(vars(warehouse)["transaction"], "warehouse")
    setattr(connection.StreamedResponse, "close", close)  # noqa: B010
    vars(aiohttp)["TraceConfig"] = Tracing
    return passed
