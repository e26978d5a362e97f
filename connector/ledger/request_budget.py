"""Request budget of a run: requests are counted in advance, in blocks.

So the ledger never counts fewer requests than were sent, even if the process is killed, and one
write to the disk is enough for many requests.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from typing import Self

from connector.client.messages import Request
from connector.errors import ConnectorError, LeaseLost, Stopped, quota_spent
from connector.ledger.ledger import (
    LEASE_SECONDS,
    BlockUsage,
    LeaseOwner,
    Ledger,
    QuotaExhaustion,
    RequestBlock,
    RequestSpender,
    ServerState,
)
from connector.ledger.quota import billing_period, blocked_until, format_moment, utc_day

TOO_FAST = 429


class RequestBudget:
    """Counts a run's requests, and refuses more than `budget` or than the month has left.

    Attributes:
        requests: Number of requests counted.
        limit_per_minute: Rate limit by the last answer.
    """

    def __init__(
        self,
        ledger: Ledger,
        spender: RequestSpender,
        *,
        budget: int | None = None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        assert budget is None or budget > 0, budget
        self.requests = 0
        self.limit_per_minute: int | None = None
        self._ledger, self._spender, self._budget, self._now = ledger, spender, budget, now
        self._block: RequestBlock | None = None
        self._used: Counter[str] = Counter()
        self._taking: asyncio.Task[RequestBlock] | None = None
        self._recording = BlockUsage()
        self._lock = asyncio.Lock()
        self._ahead: timedelta | None = None
        self._exhaustion: QuotaExhaustion | None = None
        self._is_month_open = False

    @property
    def today(self) -> date:
        """Day of the server's clock in UTC, estimated from the last answer."""
        return utc_day(self._now() + (self._ahead or timedelta()))

    async def count_attempt(self, request: Request) -> None:
        """Count one request on the disk. It may be sent afterwards.

        Raises `Stopped` or `WarehouseError`, and then nothing is counted.
        """
        while True:
            self._check_budget()
            if self._has_request_left():
                break
            async with self._lock:
                # Another request may have used the last one of the block while this one waited.
                self._check_budget()
                if not self._has_request_left():
                    await self._take_block()
        self._used[request.operation] += 1
        self.requests += 1

    def record_response(self, status: int, served_at: datetime | None) -> None:
        """Note the server's clock and whether the month is open, to be recorded with the next
        block.
        """
        if served_at is not None:
            self._ahead = served_at - self._now()
        self._is_month_open |= status != TOO_FAST

    def quota_error(self, request: Request, resets_at: float | None) -> Stopped:
        """Note that the API reported a used-up month, and return the error for it."""
        now, told_end = self._now(), _from_unix_time(resets_at)
        period = billing_period(self.today, self._spender.allowance.billing_day)
        until = blocked_until(now, told_end, period)
        is_told = until == told_end
        self._exhaustion = QuotaExhaustion(now, until, is_told)
        untold = "" if is_told else f"; by billing_day, it resets on {period.ends}"
        return quota_spent(
            f"{request.method_and_path} was not sent: the monthly quota is used up{untold}",
            resets_at=(format_moment(until) if is_told else str(period.ends)),
        )

    async def return_unused(self) -> None:
        """Record the use of the current block, and return its unused requests to the month."""
        if self._taking is not None:
            # A run that was cancelled while it waited for a block still gets the block.
            with suppress(ConnectorError):
                await self._await_block(self._taking)
        what = self._block_usage()
        if what != BlockUsage():
            await asyncio.to_thread(self._ledger.return_block, self._spender, what)
            self._drop_recorded(what)

    def _check_budget(self) -> None:
        """Raise `Stopped` if the run has counted its maximum number of requests."""
        if self._budget is not None and self.requests >= self._budget:
            raise Stopped(f"the limit of {self._budget:,} requests is reached", code="budget_spent")

    def _has_request_left(self) -> bool:
        """Return True if the current block has an unused request for today."""
        block = self._block
        # The rest of yesterday's block belongs to yesterday's cycle.
        return block is not None and self._used.total() < block.requests and block.day == self.today

    async def _take_block(self) -> None:
        """Take the next block from the ledger, or wait for the block that is being taken."""
        if self._taking is None:
            if self._ahead is None:
                server = await asyncio.to_thread(self._ledger.read_server_state)
                self._ahead = self._ahead or timedelta(seconds=server.offset_seconds)
            self._recording = self._block_usage()
            taking = asyncio.to_thread(
                self._ledger.take_block,
                self._spender,
                self._now(),
                self.today,
                requests_max=None if self._budget is None else self._budget - self.requests,
                last_usage=self._recording,
            )
            self._taking = asyncio.ensure_future(taking)
        await self._await_block(self._taking)

    async def _await_block(self, taking: asyncio.Task[RequestBlock]) -> None:
        """Make the taken block the current one. If the caller is cancelled, taking it continues."""
        try:
            block = await asyncio.shield(taking)
        except Exception:
            self._taking = None
            raise
        self._taking = None
        self._drop_recorded(self._recording)
        self._block = block

    def _block_usage(self) -> BlockUsage:
        """Return what is to be recorded of the current block."""
        server = None
        if self._ahead is not None and self._block is not None:
            server = ServerState(self._ahead.total_seconds(), self.limit_per_minute)
        return BlockUsage(
            self._block,
            dict(self._used),
            server,
            self._exhaustion,
            is_month_open=self._is_month_open and self._spender.ignores_quota,
        )

    def _drop_recorded(self, recorded: BlockUsage) -> None:
        """Forget the usage that was recorded, and keep what was noted since."""
        self._block, self._used = None, Counter()
        if self._exhaustion is recorded.exhaustion:
            self._exhaustion = None
        if recorded.is_month_open:
            self._is_month_open = False


def _from_unix_time(unix: float | None) -> datetime | None:
    """Return the time of a Unix timestamp; None if it is outside the calendar."""
    try:
        return None if unix is None else datetime.fromtimestamp(unix, UTC)
    except (OverflowError, ValueError, OSError):
        return None


# -- Lease holder ----------------------------------------------------------------------------------
# The lease is renewed in the background. If that has failed for too long, the next request first
# renews the lease, and is not sent if the lease is lost.


RENEWAL_SECONDS = LEASE_SECONDS / 4
"""Seconds between two renewals of the lease."""

_MARGIN = timedelta(seconds=LEASE_SECONDS / 4)


class LeaseHolder:
    """Asynchronous context manager that holds and renews a run's lease and counts its requests.

    A client uses it as its request meter. Entering raises `LeaseHeld` if another run has the lease,
    and `WarehouseError` if the ledger cannot be used.
    """

    def __init__(
        self,
        ledger: Ledger,
        name: str,
        spender: RequestSpender,
        *,
        budget: int | None = None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self.ledger, self.spender = ledger, spender
        self.budget = RequestBudget(ledger, spender, budget=budget, now=now)
        self.record_response = self.budget.record_response
        self.quota_error = self.budget.quota_error
        self._name, self._now = name, now
        self._expires_at: datetime | None = None
        self._lost: LeaseLost | None = None
        self._beating: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        owner = LeaseOwner.of_this_process(self.spender.run_id, self.spender.command)
        lease = await asyncio.to_thread(self.ledger.take_lease, self._name, owner, self._now())
        self._expires_at = lease.expires_at
        self._beating = asyncio.ensure_future(self._renew_periodically())
        return self

    async def __aexit__(self, *exception: object) -> None:
        assert self._beating is not None
        self._beating.cancel()
        with suppress(asyncio.CancelledError):
            await self._beating
        # Requests that cannot be recorded stay counted, and the lease expires.
        with suppress(ConnectorError):
            await self.budget.return_unused()
        with suppress(ConnectorError):
            await asyncio.to_thread(self.ledger.release_lease, self._name, self.spender.run_id)

    async def count_attempt(self, request: Request) -> None:
        """Count one request. Raises `LeaseLost`, or as `RequestBudget.count_attempt` does."""
        assert self._expires_at is not None, "the lease was not taken"
        if self._lost is None and self._now() >= self._expires_at - _MARGIN:
            await self._renew_lease()
        if self._lost is not None:
            raise self._lost
        await self.budget.count_attempt(request)

    async def _renew_periodically(self) -> None:
        """Renew the lease every `RENEWAL_SECONDS` until it is lost. Failures are tried again."""
        while self._lost is None:
            await asyncio.sleep(RENEWAL_SECONDS)
            # If the file cannot be written now, the next renewal tries again.
            with suppress(ConnectorError):
                await self._renew_lease()

    async def _renew_lease(self) -> None:
        """Renew the lease, or keep the error that it is lost for the next request."""
        try:
            self._expires_at = await asyncio.to_thread(
                self.ledger.renew_lease, self._name, self.spender.run_id, self._now()
            )
        except LeaseLost as lost:
            self._lost = lost
