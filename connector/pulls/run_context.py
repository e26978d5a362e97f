"""Run context: what a run opens before its first request and closes at its end.

A lease so that two runs do not meet, the ledger that every request is paid from, the files, and a
client of the account's address and key.
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
from connector.engine.bookmark import Bookmark, Stream
from connector.engine.commands import Event
from connector.engine.quota import Month
from connector.errors import Misused, count_noun
from connector.ledger.erasures import Erasures
from connector.ledger.ledger import Ledger, Spender, allowance_of
from connector.ledger.request_budget import LeaseHolder
from connector.pulls.outcome import Progress, RequestTally, Watch
from connector.settings.accounts import refuse_renamed
from connector.settings.model import Settings
from connector.system.log import new_id
from connector.warehouse.duckdb_file import make_folder
from connector.warehouse.runs import Run
from connector.warehouse.warehouse import Warehouse

PULL_LEASE = "pull"
"""What there is one of at a time, for each account: whatever writes to the landing."""

PLAN_LEASE = "plan"
"""Plans write nothing, so that they may be made while a pull runs."""


@dataclass(frozen=True, slots=True)
class RunContext:
    """Run of an account: what it acts on, its lease and budget, its record.

    `tally` counts its requests, `watch` is told how it goes. `notices` are sentences on files that
    were lost and made again since the last pull.
    """

    client: Client
    connections: int
    warehouse: Warehouse
    turn: LeaseHolder
    run: Run
    tally: RequestTally
    watch: Watch
    now: Callable[[], datetime]
    lateness_seconds: float
    notices: tuple[str, ...] = ()

    async def bookmark(self, stream: Stream) -> Bookmark:
        """The stream's bookmark, with at least the lateness that is set."""
        bookmark = await asyncio.to_thread(self.warehouse.bookmark, stream)
        lateness = self.lateness_seconds
        if bookmark != Bookmark():
            # What was once allowed for is not taken back: R was proven with it.
            lateness = max(bookmark.lateness_seconds, lateness)
        return replace(bookmark, lateness_seconds=lateness)

    async def streams(self, resource: Declaration) -> tuple[Stream, ...]:
        """Streams of a resource: itself, or one for each landed record of its parent."""
        if resource.parent is None:
            return (Stream(resource),)
        parents = Stream(declaration(resource.parent))
        ids = await asyncio.to_thread(self.warehouse.live_ids, parents)
        return tuple(Stream(resource, id) for id in ids)

    async def month(self) -> Month:
        """What the month has come to, once this run's own requests are written down."""
        ledger, meter, terms = self.turn.ledger, self.turn.budget, self.turn.spender.terms
        meter.limit_per_minute = self.client.pace.limit
        await meter.settle()
        return await asyncio.to_thread(ledger.month, terms, meter.today)


def select(resources: Sequence[str]) -> tuple[str, ...]:
    """The resources asked for, each once, in the API's order. Raises `UnknownName`."""
    asked = {declaration(name).name for name in resources} or set(CATALOG)
    return tuple(name for name in CATALOG if name in asked)


def unwatched(progress: Progress) -> None:
    """Watches nothing."""


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
    an account that may have another name now, `LeaseHeld` while another run has the lease, and
    `WarehouseError` where the files cannot be used.
    """
    if budget is not None and budget < 1:
        raise Misused(f"the budget is {budget} requests", action="Give it at least 1.")
    # A missing address or key is told before anything is made.
    connection, warehouse = settings.connection(), _warehouse_of(settings)
    await asyncio.to_thread(make_folder, settings.folder)
    started_at = now()
    run = Run(new_id(started_at), command, started_at, budget=budget)
    spender = Spender(run.run_id, command, allowance_of(settings), asks_anyway=asks_anyway)
    with Ledger(settings.folder) as ledger:
        async with LeaseHolder(ledger, lease, spender, budget=budget, now=now) as turn:
            tally, told = RequestTally(), watch or unwatched
            tally.tell_wait = lambda seconds: told(
                Progress("", waits_until=now() + timedelta(seconds=seconds))
            )
            connections, reserve = settings.connections.value, settings.reserve_requests.value
            options = {"connections": connections, "reserve": reserve, **connection.route()}
            client = connect(
                connection.base_url, connection.api_key, observer=tally, meter=turn, **options
            )
            context = RunContext(
                client=client,
                connections=connections,
                warehouse=warehouse,
                turn=turn,
                run=run,
                tally=tally,
                watch=told,
                now=now,
                lateness_seconds=float(settings.lateness_seconds.value),
            )
            async with client:
                with warehouse.keeping():
                    await asyncio.to_thread(warehouse.prepare)
                    if lease == PULL_LEASE:
                        notices = await asyncio.to_thread(_notices, ledger, warehouse, run)
                        context = replace(context, notices=notices)
                    else:
                        warehouse.release()  # Others may wait long before they come back to it.
                    yield context


def _warehouse_of(settings: Settings) -> Warehouse:
    """The account's files. Raises `SettingsError` where they may have another name's."""
    warehouse = Warehouse(settings.folder)
    if not warehouse.exists:
        refuse_renamed(settings)
    return warehouse


def _notices(ledger: Ledger, warehouse: Warehouse, run: Run) -> tuple[str, ...]:
    """What was lost and made again, by the files, and no pull has reported."""
    relisted = []
    for at, hashes in Erasures(ledger).relisted():
        detail = (
            f"{count_noun(hashes, 'hash', 'hashes')} of people who were erased were missing in"
            f" {ledger.path.name}, and were taken from the receipts"
        )
        relisted.append((Event("erased_relisted", detail), at))
    return warehouse.notices(run.run_id, relisted)
