"""Being alone in an account: neither a pull nor a push works while somebody is erased."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime

from connector.errors import ConnectorError
from connector.ledger import Ledger, Owner
from connector.ledger.journal import PUSH_LEASE
from connector.ledger.turn import BEAT_SECONDS
from connector.visit import PULL_LEASE

_NAMES = (PULL_LEASE, PUSH_LEASE)


@contextmanager
def alone(ledger: Ledger, run_id: str, command: str, now: Callable[[], datetime]) -> Iterator[None]:
    """Hold the leases of pulls and of pushes, and renew them, until this is left.

    Raises `LeaseHeld`, which says who is at work, or a `WarehouseError`. A process that dies leaves
    leases that the next one takes over at once.
    """
    owner = Owner.of_this_process(run_id, command)
    over = threading.Event()

    def beat() -> None:
        while not over.wait(BEAT_SECONDS):
            for name in _NAMES:
                # A ledger that cannot be written to at the moment is tried again at the next beat.
                with suppress(ConnectorError):
                    ledger.renew_lease(name, run_id, now())

    beating = threading.Thread(target=beat, name="leases", daemon=True)
    try:
        for name in _NAMES:
            ledger.take_lease(name, owner, now())
        beating.start()
        yield
    finally:
        over.set()
        if beating.ident is not None:
            beating.join()
        for name in _NAMES:
            with suppress(ConnectorError):
                ledger.release_lease(name, run_id)
