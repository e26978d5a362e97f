"""A run's turn at an account: it holds the lease for as long as the run lasts, and pays for it.

The lease is renewed in the background. Should that have failed for too long, no request leaves
before it is renewed, or known to be lost.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Self

from connector.errors import ConnectorError, LeaseLost, QuotaSpent
from connector.ledger.erasures import Erasures
from connector.ledger.leases import LEASE_SECONDS
from connector.ledger.ledger import Ledger, Spender
from connector.ledger.owner import Owner
from connector.ledger.purse import Purse
from connector.wire import Request

BEAT_SECONDS = LEASE_SECONDS / 4
"""How often the lease is renewed."""

_MARGIN = timedelta(seconds=LEASE_SECONDS / 4)


class Turn:
    """One run's turn, from entering to leaving; `name` is what there is one of at a time.

    Entering raises `LeaseHeld`, with who has it, `ErasuresUnknown` where nobody can say who was
    erased, or another `WarehouseError`. It is a client's toll.
    """

    def __init__(
        self,
        ledger: Ledger,
        name: str,
        spender: Spender,
        *,
        budget: int | None = None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self.ledger, self.spender = ledger, spender
        self.purse = Purse(ledger, spender, budget=budget, now=now)
        self._name, self._now = name, now
        self._expires_at: datetime | None = None
        self._lost: LeaseLost | None = None
        self._beating: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        owner = Owner.of_this_process(self.spender.run_id, self.spender.command)
        # Nobody who was erased comes back by a list that has lost them.
        await asyncio.to_thread(Erasures(self.ledger).list_receipted)
        lease = await asyncio.to_thread(self.ledger.take_lease, self._name, owner, self._now())
        self._expires_at = lease.expires_at
        self._beating = asyncio.ensure_future(self._beat())
        return self

    async def __aexit__(self, *exception: object) -> None:
        assert self._beating is not None
        self._beating.cancel()
        with suppress(asyncio.CancelledError):
            await self._beating
        # What cannot be written down any more stays counted, and the lease runs out.
        with suppress(ConnectorError):
            await self.purse.settle()
        with suppress(ConnectorError):
            await asyncio.to_thread(self.ledger.release_lease, self._name, self.spender.run_id)

    async def pay(self, request: Request) -> None:
        """Count one request, as `Purse.pay` does. Raises `LeaseLost` where the turn is over."""
        assert self._expires_at is not None, "the turn has not begun"
        if self._lost is None and self._now() >= self._expires_at - _MARGIN:
            await self._renew()
        if self._lost is not None:
            raise self._lost
        await self.purse.pay(request)

    def heard(self, status: int, served_at: datetime | None) -> None:
        """As `Purse.heard`."""
        self.purse.heard(status, served_at)

    def spent(self, request: Request, resets_at: float | None) -> QuotaSpent:
        """As `Purse.spent`."""
        return self.purse.spent(request, resets_at)

    async def _beat(self) -> None:
        while self._lost is None:
            await asyncio.sleep(BEAT_SECONDS)
            # A file that cannot be written to at the moment is tried again at the next beat.
            with suppress(ConnectorError):
                await self._renew()

    async def _renew(self) -> None:
        try:
            self._expires_at = await asyncio.to_thread(
                self.ledger.renew_lease, self._name, self.spender.run_id, self._now()
            )
        except LeaseLost as lost:
            self._lost = lost
