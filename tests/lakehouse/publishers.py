"""Publishers in processes of their own, forked from one that has everything imported."""

from __future__ import annotations

import json
import os
import signal
import sys
import traceback
from collections.abc import Mapping, Sequence
from typing import Any

from tests.faults.fork_server import ROOT, ForkServer, tell

DIES = "dies"
"""A step at which a publisher kills itself: everything is written, and nothing committed."""


class Publishers(ForkServer):
    """Starts rounds of publishers, while its `with` block lasts."""

    def __init__(self) -> None:
        super().__init__("tests.lakehouse.publishers")

    def begin(self, turns: Sequence[Sequence[Mapping[str, str]]]) -> None:
        """Start one process for each of these, which publishes its accounts, one after another."""
        self.say([[dict(e) for e in turn] for turn in turns])

    def end(self) -> list[int]:
        """Wait for them; the exit status, or the negative signal, of each."""
        found: list[int] = self.heard()
        return found


# -- within the process that forks ----------------------------------------------------------------


def serve() -> None:
    """Fork the publishers of each line that comes, and tell how they ended."""
    # Imported before the first fork.
    import connector.publishing.lakehouse_erasure  # noqa: PLC0415
    import connector.publishing.publication  # noqa: F401, PLC0415

    for line in sys.stdin:
        pids = []
        for turn in json.loads(line):
            pid = os.fork()
            if pid == 0:
                _live(turn)
            pids.append(pid)
        ended = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]
        tell(ended)


def _live(turn: Sequence[Mapping[str, str]]) -> None:
    """Publish each account, local file and lake, and end with 0 if all of it was done."""
    from connector.publishing import lakehouse_connection  # noqa: PLC0415
    from connector.publishing import lakehouse_publication as lake_publish  # noqa: PLC0415
    from connector.publishing.publication import publish  # noqa: PLC0415
    from connector.settings.model import load_settings  # noqa: PLC0415
    from tests.lakehouse.pool import Pool  # noqa: PLC0415

    lakehouse_connection.connect_with_extensions = Pool().extended  # type: ignore[assignment]
    status = 70
    # DuckDB shows how far a long statement is, where it takes this for somebody's session.
    os.dup2(2, 1)

    def die(*_: Any) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    try:
        for environ in turn:
            if DIES in environ:
                setattr(lake_publish._ENTRIES, "insert", die)  # noqa: B010 # it is no such function
            given = {name: value for name, value in environ.items() if name != DIES}
            done = publish(load_settings({}, given, ROOT))
            if done.shared is None or done.shared.outcome != "published":
                raise RuntimeError(str(done.unshared))
        status = 0
    except Exception:
        traceback.print_exc()
    finally:
        os._exit(status)
