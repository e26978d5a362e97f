"""Visiting an account: what any run needs before its first request and gives back after its last.

A lease so that two runs do not meet, the ledger that every request is paid from, the files, and a
client of the account's address and key.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

from connector.catalog import CATALOG, declaration
from connector.client.client import Client
from connector.engine.commands import Event
from connector.errors import Misused, count_noun
from connector.ledger.erasures import Erasures
from connector.ledger.ledger import Ledger, Spender, terms_of
from connector.ledger.request_budget import Turn
from connector.pulls.driver import World
from connector.pulls.outcome import Tally, Unwatched, Watch
from connector.settings.model import Connection, Settings
from connector.system.log import new_id
from connector.warehouse.duckdb_file import make_folder
from connector.warehouse.runs import Run
from connector.warehouse.warehouse import Warehouse

PULL_LEASE = "pull"
"""What there is one of at a time, for each account: whatever writes to the landing."""

PLAN_LEASE = "plan"
"""Plans write nothing, so that they may be made while a pull runs."""


@dataclass(frozen=True, slots=True)
class Visit:
    """One run at an account: what it acts on, its turn, and how it is recorded. `notices` are
    sentences on files that were lost and made again since the last pull.
    """

    world: World
    turn: Turn
    run: Run
    notices: tuple[str, ...] = ()


def select(resources: Sequence[str]) -> tuple[str, ...]:
    """The resources asked for, each once, in the API's order. Raises `UnknownName`."""
    asked = {declaration(name).name for name in resources} or set(CATALOG)
    return tuple(name for name in CATALOG if name in asked)


@asynccontextmanager
async def visiting(
    settings: Settings,
    command: str,
    *,
    lease: str = PULL_LEASE,
    budget: int | None = None,
    asks_anyway: bool = False,
    watch: Watch | None = None,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
    connect: Callable[..., Client] = Client,
) -> AsyncIterator[Visit]:
    """Enter with the lease, the files prepared and a client open; everything is given back after.

    Raises `Misused` for a budget of nothing, `SettingsError` for a missing address or key,
    `LeaseHeld` while another run has the lease, and `WarehouseError` where the files cannot be
    used.
    """
    if budget is not None and budget < 1:
        raise Misused(f"the budget is {budget} requests", action="Give it at least 1.")
    # A missing address or key is told before anything is made.
    connection = settings.connection()
    await asyncio.to_thread(make_folder, settings.folder)
    started_at = now()
    run = Run(
        run_id=new_id(started_at),
        command=command,
        started_at=started_at,
        budget=budget,
    )
    spender = Spender(run.run_id, command, terms_of(settings), asks_anyway=asks_anyway)
    with Ledger(settings.folder) as ledger:
        async with Turn(ledger, lease, spender, budget=budget, now=now) as turn:
            warehouse, tally = Warehouse(settings.folder), Tally()
            client = _client(settings, connection, connect, tally, turn)
            world = World(
                client=client,
                connections=settings.connections.value,
                warehouse=warehouse,
                run_id=run.run_id,
                tally=tally,
                watch=watch or Unwatched(),
                now=now,
                lateness_seconds=float(settings.lateness_seconds.value),
            )
            async with client:
                with warehouse.keeping():
                    await asyncio.to_thread(warehouse.prepare)
                    notices: tuple[str, ...] = ()
                    if lease == PULL_LEASE:
                        notices = await asyncio.to_thread(_notices, ledger, warehouse, run)
                    else:
                        warehouse.release()  # Others may wait long before they come back to it.
                    yield Visit(world, turn, run, notices)


def _notices(ledger: Ledger, warehouse: Warehouse, run: Run) -> tuple[str, ...]:
    """What was lost and made again, by the files, and no pull has reported."""
    relisted = [
        (
            Event(
                "erased_relisted",
                f"{count_noun(hashes, 'hash', 'hashes')} of people who were erased were missing in"
                f" {ledger.path.name}, and were taken from the receipts",
            ),
            at,
        )
        for at, hashes in Erasures(ledger).relisted()
    ]
    return warehouse.notices(run.run_id, relisted)


def _client(
    settings: Settings,
    connection: Connection,
    connect: Callable[..., Client],
    tally: Tally,
    turn: Turn,
) -> Client:
    """A client of the account's address and key, as its settings say."""
    return connect(
        connection.base_url,
        connection.api_key,
        connections=settings.connections.value,
        reserve=settings.reserve_requests.value,
        observer=tally,
        toll=turn,
        **connection.route(),
    )
