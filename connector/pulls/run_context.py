"""Run context: what a run opens before its first request and closes at its end.

It has a lease, so that two runs of an account do not meet; the ledger, which counts each request;
the files; and a client of the account's address and key.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from connector.catalog import CATALOG, declaration
from connector.catalog.resource import Declaration
from connector.client.client import Client
from connector.errors import Misused, count_noun
from connector.ledger.erasures import Erasures
from connector.ledger.ledger import Ledger, RequestSpender, allowance_of
from connector.ledger.quota import MonthUse
from connector.ledger.request_budget import LeaseHolder
from connector.log import new_id
from connector.pulls.outcome import Progress, RequestTally, Watch
from connector.pulls.workspace import claim_folder
from connector.settings.model import Settings
from connector.warehouse.bookmark import Bookmark, Stream
from connector.warehouse.duckdb_file import make_folder
from connector.warehouse.pull_commands import Event
from connector.warehouse.queries import live_ids, vanished_parents
from connector.warehouse.runs import Run
from connector.warehouse.state import read_bookmark, take_notices
from connector.warehouse.warehouse import Warehouse

PULL_LEASE = "pull"
"""Lease of everything that writes to the landing: one at a time for each account."""

PLAN_LEASE = "plan"
"""Lease of a plan, which writes nothing, so that it may run beside a pull."""


@dataclass(frozen=True, slots=True)
class RunContext:
    """Run of an account: its client and files, its lease and budget, its record.

    `tally` counts its requests, and `watch` is called with its progress. `notices` are sentences
    about files that were lost and made again since the last pull.
    """

    client: Client
    connections: int
    warehouse: Warehouse
    lease: LeaseHolder
    run: Run
    tally: RequestTally
    watch: Watch
    now: Callable[[], datetime]
    lateness_seconds: float
    notices: tuple[str, ...] = ()

    async def bookmark(self, stream: Stream) -> Bookmark:
        """The stream's bookmark, with at least the lateness that is set."""
        bookmark = await asyncio.to_thread(self.warehouse.read, read_bookmark, stream)
        lateness = self.lateness_seconds
        if bookmark != Bookmark():
            # The lateness never falls, since R was proven with it.
            lateness = max(bookmark.lateness_seconds, lateness)
        return replace(bookmark, lateness_seconds=lateness)

    async def streams(self, resource: Declaration) -> tuple[Stream, ...]:
        """Streams of a resource: itself, or one for each landed record of its parent."""
        if resource.parent is None:
            return (Stream(resource),)
        ids = await asyncio.to_thread(self.warehouse.read, live_ids, resource.parent)
        return tuple(Stream(resource, id) for id in ids)

    async def streams_of_deleted_parents(self, resource: Declaration) -> tuple[Stream, ...]:
        """Streams whose parent is deleted and whose records are still live."""
        if resource.parent is None:
            return ()
        ids = await asyncio.to_thread(self.warehouse.read, vanished_parents, resource)
        return tuple(Stream(resource, id) for id in ids)

    async def read_month(self) -> MonthUse:
        """Requests of the month, after this run's own are written down."""
        lease, budget = self.lease, self.lease.budget
        budget.limit_per_minute = self.client.limiter.limit
        await budget.settle()
        return await asyncio.to_thread(
            lease.ledger.read_month, lease.spender.allowance, budget.today
        )


def select_resources(resources: Sequence[str]) -> tuple[str, ...]:
    """Names of the resources, each once, in the API's order. Raises `UnknownName`."""
    asked = {declaration(name).name for name in resources} or set(CATALOG)
    return tuple(name for name in CATALOG if name in asked)


def ignore_progress(progress: Progress) -> None:
    """Ignore the progress."""


@asynccontextmanager
async def open_run(
    settings: Settings,
    command: str,
    *,
    lease: str = PULL_LEASE,
    budget: int | None = None,
    asks_anyway: bool = False,
    watch: Watch | None = None,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
    connect: Callable[..., Client] = Client,
) -> AsyncIterator[RunContext]:
    """Enter with the lease, files and a client open; all are closed after.

    Raises `Misused` for a budget of nothing, `SettingsError` for a missing address or key and for
    an account that may have another name now, `OtherWorkspace` for a folder with the records of
    another workspace, `LeaseHeld` while another run has the lease, and `WarehouseError` where the
    files cannot be used.
    """
    if budget is not None and budget < 1:
        raise Misused(f"--max-requests is {budget}", action="Give 1 or more.")
    # A missing address or key is an error before any file is made.
    connection, warehouse = settings.connection(), Warehouse(settings.folder)
    await asyncio.to_thread(make_folder, settings.folder)
    started_at = now()
    run = Run(new_id(started_at), command, started_at, budget=budget)
    spender = RequestSpender(run.run_id, command, allowance_of(settings), asks_anyway=asks_anyway)
    with Ledger(settings.folder) as ledger:
        async with LeaseHolder(ledger, lease, spender, budget=budget, now=now) as holder:
            tally, follow = RequestTally(), watch or ignore_progress
            tally.tell_wait = lambda seconds: follow(
                Progress("", waits_until=now() + timedelta(seconds=seconds))
            )
            connections, reserve = settings.connections.value, settings.reserve_requests.value
            options = {"connections": connections, "reserve": reserve, **connection.route()}
            client = connect(
                connection.base_url, connection.api_key, observer=tally, meter=holder, **options
            )
            context = RunContext(
                client=client,
                connections=connections,
                warehouse=warehouse,
                lease=holder,
                run=run,
                tally=tally,
                watch=follow,
                now=now,
                lateness_seconds=float(settings.lateness_seconds.value),
            )
            async with client:
                with warehouse.keep_open():
                    identity = await asyncio.to_thread(ledger.identity)
                    await asyncio.to_thread(warehouse.prepare, identity)
                    await asyncio.to_thread(claim_folder, ledger, warehouse, connection.base_url)
                    if lease == PULL_LEASE:
                        notices = await asyncio.to_thread(_notices, ledger, warehouse, run)
                        context = replace(context, notices=notices)
                    else:
                        warehouse.release()  # A plan may wait long before it needs the file again.
                    yield context


def _notices(ledger: Ledger, warehouse: Warehouse, run: Run) -> tuple[str, ...]:
    """Sentences about files that were lost and made again, unless reported before."""
    relisted = []
    for at, hashes in Erasures(ledger).relisted():
        detail = (
            f"{count_noun(hashes, 'hash', 'hashes')} of erased people were missing in "
            f"{ledger.path.name} and were restored from the receipts"
        )
        relisted.append((Event("erased_relisted", detail), at))
    return warehouse.write(take_notices, run.run_id, relisted)
