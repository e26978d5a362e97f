"""Pushes and undos in separate processes that can be killed.

A child process numbers its kill points: each commit of the journal or the warehouse, once it is on
disk, and each step of a request that httpcore reports. It can be killed at any of them.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from connector.sandbox.server import Sandbox
from tests.support.command import variables
from tests.support.processes import ChildResult, ForkServer, kill_this_process, serve_forks


@dataclass(frozen=True, slots=True)
class KillPoint:
    """Step of a push at which it can be killed; `writes` is the number of write requests begun
    before.
    """

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
    kill_at: int | None = None,
    undo_batch: str | None = None,
) -> PushOrder:
    """Return an order to push `rows` creates, or to undo the batch `undo_batch`, in a process that
    is killed at the kill point of the number `kill_at`.
    """
    environ = variables(sandbox.base_url, folder / "data", sandbox.key)
    environ["CONNECTOR_CONNECTIONS"] = str(connections)
    return {"environ": environ, "rows": rows, "kill_at": kill_at, "undo_batch": undo_batch}


def parse_kill_points(result: ChildResult) -> list[KillPoint]:
    """Return the kill points that a push printed because it was not killed."""
    assert 0 == result.status, result
    return [KillPoint(**each) for each in json.loads(result.output.splitlines()[-1])]


# -- in the server process ------------------------------------------------------------------------


def serve() -> None:
    """Run each order read from standard input in a forked process."""
    # Imported before the first fork, or each child would import it.
    import connector.pushes.undo  # noqa: F401, PLC0415
    import tests.pushes.pushing  # noqa: F401, PLC0415

    serve_forks(_run_order)


def _run_order(order: PushOrder) -> int:
    """Push or undo as ordered, print the kill points, and return the exit status."""
    from connector.pushes.batch import apply  # noqa: PLC0415
    from connector.pushes.undo import undo  # noqa: PLC0415
    from connector.settings import load_settings  # noqa: PLC0415
    from tests.pushes.pushing import make_creates, make_plan  # noqa: PLC0415

    points = record_kill_points(order["kill_at"])
    settings = load_settings({}, order["environ"], Path())
    if order["undo_batch"] is not None:
        status = asyncio.run(undo(settings, order["undo_batch"], applies=True)).exit_status
    else:
        plan = make_plan(make_creates(order["rows"]))
        status = asyncio.run(apply(settings, plan, sleep=end_at_first_wait)).exit_status
    sys.stdout.write(json.dumps(points) + "\n")
    return status


async def end_at_first_wait(seconds: float) -> None:
    """Print no kill points and end the process. Replaces the push's wait, after which it would have
    no further kill point.
    """
    sys.stdout.write("[]\n")
    sys.stdout.flush()
    kill_this_process()


def record_kill_points(kill_at: int | None) -> list[dict[str, Any]]:
    """Patch the connector so that it adds each kill point to the returned list and kills the
    process at the point of the number `kill_at`.
    """
    from connector.client import session  # noqa: PLC0415
    from connector.ledger import ledger  # noqa: PLC0415
    from connector.warehouse import warehouse  # noqa: PLC0415

    passed: list[dict[str, Any]] = []
    begun = [0]

    def pass_step(kind: str) -> None:
        passed.append({"number": len(passed) + 1, "kind": kind, "writes": begun[0]})
        if len(passed) == kill_at:
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

    tracing = session._Attempt.trace

    async def trace(self: Any, event: str, info: Mapping[str, Any]) -> None:
        await tracing(self, event, dict(info))
        if event == "http11.send_request_headers.started":
            self.is_write = info["request"].method != b"GET"
        elif event == "http11.send_request_headers.complete":
            begun[0] += self.is_write
        pass_step(event)

    vars(ledger)["transaction"] = count_calls(vars(ledger)["transaction"], "journal")
    vars(warehouse)["transaction"] = count_calls(vars(warehouse)["transaction"], "warehouse")
    setattr(session._Attempt, "trace", trace)  # noqa: B010
    return passed
