"""Run context: the resources that a run opens before its first request and closes at its end.

It holds the lock of the account, so that runs do not overlap, and has the state, which counts each
request, the work file, and a client with the account's address and key.
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
from connector.errors import Misused
from connector.log import new_id
from connector.pulls.outcome import Progress, RequestTally, Watch
from connector.pulls.workspace import claim_folder
from connector.settings import Settings
from connector.state.database import Database
from connector.state.lock import WAIT_SECONDS, hold
from connector.state.quota import MonthUse, Quota
from connector.state.runs import read_identity
from connector.warehouse.duckdb_file import make_folder
from connector.warehouse.queries import find_deleted_parents, read_live_ids
from connector.warehouse.runs import Run
from connector.warehouse.state import read_bookmark, report_notices
from connector.warehouse.stream import Bookmark, Stream
from connector.warehouse.warehouse import Warehouse


@dataclass(frozen=True, slots=True)
class RunContext:
    """Open resources of one run: client, work file, state and request count.

    Attributes:
        tally: Counts of the run's requests.
        watch: Called with the progress.
        notices: Sentences on files that were lost and created again since the last pull.
    """

    client: Client
    connections: int
    settings: Settings
    warehouse: Warehouse
    database: Database
    quota: Quota
    run: Run
    tally: RequestTally
    watch: Watch
    now: Callable[[], datetime]
    lateness_seconds: float
    notices: tuple[str, ...] = ()

    async def bookmark(self, stream: Stream) -> Bookmark:
        """Return the stream's bookmark, with at least the configured lateness."""
        bookmark = await asyncio.to_thread(self.warehouse.read, read_bookmark, stream)
        lateness = self.lateness_seconds
        if bookmark != Bookmark():
            # The lateness never falls, because R was verified with it.
            lateness = max(bookmark.lateness_seconds, lateness)
        return replace(bookmark, lateness_seconds=lateness)

    async def streams(self, resource: Declaration) -> tuple[Stream, ...]:
        """Return the streams of a resource: itself, or one for each loaded record of its parent."""
        if resource.parent is None:
            return (Stream(resource),)
        ids = await asyncio.to_thread(self.warehouse.read, read_live_ids, resource.parent)
        return tuple(Stream(resource, id) for id in ids)

    async def streams_of_deleted_parents(self, resource: Declaration) -> tuple[Stream, ...]:
        """Return streams whose parent is deleted and whose records are still live."""
        if resource.parent is None:
            return ()
        ids = await asyncio.to_thread(self.warehouse.read, find_deleted_parents, resource)
        return tuple(Stream(resource, id) for id in ids)

    async def read_month(self) -> MonthUse:
        """Note the rate limit, and return the requests of the month."""
        self.quota.record_limit(self.client.limiter.limit)
        return self.quota.month()


def select_resources(resources: Sequence[str]) -> tuple[str, ...]:
    """Return distinct resource names in the API's order. Raises `UnknownName`."""
    requested = {declaration(name).name for name in resources} or set(CATALOG)
    return tuple(name for name in CATALOG if name in requested)


@asynccontextmanager
async def open_run(
    settings: Settings,
    command: str,
    *,
    budget: int | None = None,
    ignores_quota: bool = False,
    wait_seconds: float | None = WAIT_SECONDS,
    watch: Watch | None = None,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
    connect: Callable[..., Client] = Client,
) -> AsyncIterator[RunContext]:
    """Lock the account, check its files, and open them and a client; close all at the end.

    Raises:
        Misused: The budget is 0.
        SettingsError: The address or the key is missing, or the account may have been renamed.
        SettingsError: The folder has the records of another workspace.
        AccountBusy: Another process uses the account, and has not ended after `wait_seconds`.
        WarehouseError: The files cannot be used.
    """
    if budget is not None and budget < 1:
        raise Misused(f"--max-requests is {budget}", action="Give 1 or more.")
    # A missing address or key is an error before any file is created.
    connection, warehouse = settings.connection(), Warehouse(settings.folder)
    await asyncio.to_thread(make_folder, settings.folder)
    started_at = now()
    run = Run(new_id(started_at), command, started_at, budget=budget)
    tally, follow = RequestTally(), watch or (lambda _: None)
    tally.report_wait = lambda seconds: follow(
        Progress("", waits_until=now() + timedelta(seconds=seconds))
    )
    async with hold(settings.folder, command, wait_seconds=wait_seconds):
        with Database(settings.folder) as database, warehouse.keep_open():
            identity = await asyncio.to_thread(read_identity, database)
            await asyncio.to_thread(warehouse.prepare, identity)
            await asyncio.to_thread(claim_folder, database, warehouse, connection.base_url)
            quota = Quota(
                database, settings, command, budget=budget, ignores_quota=ignores_quota, now=now
            )
            client = connect(
                connection.base_url,
                connection.api_key,
                observer=tally,
                meter=quota,
                connections=settings.connections,
                reserve=settings.reserve_requests,
                **connection.client_options(),
            )
            async with client:
                yield RunContext(
                    client=client,
                    connections=settings.connections,
                    settings=settings,
                    warehouse=warehouse,
                    database=database,
                    quota=quota,
                    run=run,
                    tally=tally,
                    watch=follow,
                    now=now,
                    lateness_seconds=float(settings.lateness_seconds),
                    notices=await asyncio.to_thread(warehouse.write, report_notices, run.run_id),
                )
