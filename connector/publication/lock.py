"""One publisher at a time: a lock that the system takes back from a process that dies.

*Instead of* a lease of the ledger: nothing is sent while the file is published, so that nobody
needs to know beforehand, and a publisher that was killed is out of the way at once.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from connector.errors import WarehouseBusy
from connector.warehouse.file import naming_errors

LOCK_FILE = "publishing.lock"

WAIT_SECONDS = 900.0
"""For how long one publisher waits for another: longer than any build that is well."""

_RETRY_SECONDS = 0.05


@contextmanager
def alone(folder: Path, wait_seconds: float = WAIT_SECONDS) -> Iterator[None]:
    """Publish in the folder while nobody else does; whoever waited finds what the other left.

    Raises `WarehouseBusy` after `wait_seconds`, and another `WarehouseError` where the folder
    cannot be written to.
    """
    path = folder / LOCK_FILE
    with naming_errors(path):
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        _wait(path, handle, wait_seconds)
        yield
    finally:
        os.close(handle)


def _wait(path: Path, handle: int, wait_seconds: float) -> None:
    until = time.monotonic() + wait_seconds
    while True:
        try:
            # Bound to this opening of the file and to no process, so that threads wait as well.
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= until:
                raise WarehouseBusy(
                    f"{path} has been held by another process that publishes for"
                    f" {wait_seconds:.0f} s",
                    action="Wait until it has ended, or end it, then run 'connector publish'.",
                ) from None
            time.sleep(_RETRY_SECONDS)
        else:
            return
