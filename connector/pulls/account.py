"""Opening of an account's folder for a run, in one place for every command that writes.

A run holds the account's lock, counts its requests in the state before they are sent, and has the
work file and a client with the account's address and key. The first run of a folder makes a random
name and writes it, with the address of the workspace, to the work file and to the state. Every
later run compares both before its first request, so that two workspaces are never mixed, and a lost
file is noticed before a file of rows is pushed a second time.
"""

from __future__ import annotations

import asyncio
import secrets
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import astuple, dataclass, field, replace
from datetime import UTC, datetime, timedelta

from connector.catalog import CATALOG, declaration
from connector.catalog.resource import Declaration
from connector.client.client import Client, Observer
from connector.client.messages import Request
from connector.errors import Misused, SettingsError, WarehouseError
from connector.log import new_id
from connector.pulls.ports import Purpose
from connector.pulls.report import Progress, Watch
from connector.settings import Settings
from connector.state.database import Database
from connector.state.lock import hold
from connector.state.quota import Quota
from connector.state.runs import Identity, Run, Runs
from connector.version import program_version
from connector.warehouse import queries
from connector.warehouse.file import make_folder
from connector.warehouse.landing import read_bookmark
from connector.warehouse.stream import Bookmark, Stream
from connector.warehouse.warehouse import Warehouse

STARTED_BY_USERS = ("push", "undo", "resolve")
"""Commands that may use the reserve of the monthly quota."""

WAIT_TOLD_SECONDS_MIN = 1.0
"""Shortest wait that is reported, in seconds."""


@dataclass(slots=True)
class RequestTally(Observer):
    """Observer of the client that counts requests and waiting time.

    Attributes:
        by_kind: Number of requests by resource and operation.
        by_purpose: Number of requests by resource and purpose.
        purpose: Purpose of the next requests.
        readable: Number of responses that could be read.
    """

    requests: int = 0
    rate_limited: int = 0
    waited_seconds: float = 0.0
    by_kind: Counter[tuple[str, str]] = field(default_factory=Counter)
    by_purpose: Counter[tuple[str, str]] = field(default_factory=Counter)
    purpose: Purpose = "pull"
    readable: int = 0
    report_wait: Callable[[float], None] | None = None

    def before_send(self, request: Request) -> None:
        """Count a request."""
        self.requests += 1
        self.by_kind[request.resource, request.operation] += 1
        self.by_purpose[request.resource, self.purpose] += 1

    def on_response(self, request: Request, status: int | None) -> None:
        """Count the response if its status is 429."""
        self.rate_limited += status == 429

    def on_wait(self, seconds: float) -> None:
        """Add a wait for the rate limit, and report it if it takes a second or more."""
        self.waited_seconds += seconds
        if self.report_wait is not None and seconds >= WAIT_TOLD_SECONDS_MIN:
            self.report_wait(seconds)

    def requests_of(self, resource: str) -> int:
        """Return the number of requests sent for the resource."""
        return sum(count for (name, _), count in self.by_kind.items() if name == resource)


@dataclass(frozen=True, slots=True)
class RunContext:
    """Open resources of one run. `watch` is called with the progress."""

    client: Client
    connections: int
    warehouse: Warehouse
    database: Database
    runs: Runs
    quota: Quota
    run: Run
    tally: RequestTally
    watch: Watch
    now: Callable[[], datetime]
    lateness_seconds: float

    async def bookmark(self, stream: Stream) -> Bookmark:
        """Return the stream's bookmark, with at least the configured lateness."""
        mark = await asyncio.to_thread(self.warehouse.read, read_bookmark, stream)
        lateness = self.lateness_seconds
        if mark != Bookmark():  # The lateness never falls, because R was verified with it.
            lateness = max(mark.lateness_seconds, lateness)
        return replace(mark, lateness_seconds=lateness)

    async def streams(self, resource: Declaration) -> tuple[Stream, ...]:
        """Return the streams of a resource: itself, or one for each loaded record of its parent."""
        if resource.parent is None:
            return (Stream(resource),)
        ids = await asyncio.to_thread(self.warehouse.read, queries.live_ids, resource.parent)
        return tuple(Stream(resource, id) for id in ids)

    async def ended_streams(self, resource: Declaration) -> tuple[Stream, ...]:
        """Return streams whose parent is deleted and whose records are still live."""
        if resource.parent is None:
            return ()
        ids = await asyncio.to_thread(self.warehouse.read, queries.deleted_parents, resource)
        return tuple(Stream(resource, id) for id in ids)


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
    loads_again: bool = False,
    watch: Watch | None = None,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
    connect: Callable[..., Client] = Client,
) -> AsyncIterator[RunContext]:
    """Lock the account's folder, open its files and a client; close them at the end.

    Args:
        settings: Settings of the account.
        command: Command in the record of the run and in the lock.
        budget: Maximum number of requests.
        ignores_quota: Send requests even if the API reported that the month is used up.
        loads_again: Make a new work file if it is lost.
        watch: Called with the progress.
        now: Clock.
        connect: Creates the client.

    Raises:
        Misused: The budget is 0.
        SettingsError: The address or the key is missing, or the folder has the records of another
            address.
        AccountBusy: Another process still holds the lock.
        WarehouseError: The files cannot be used, or do not belong together.
    """
    if budget is not None and budget < 1:
        raise Misused(f"--max-requests is {budget}", action="Give 1 or more.")
    # A missing address or key is an error before any file is created.
    (base_url, api_key), warehouse = settings.connection(), Warehouse(settings.folder)
    await asyncio.to_thread(make_folder, settings.folder)
    async with hold(settings.folder, command):
        started_at, tally, follow = now(), RequestTally(), watch or (lambda _: None)
        tally.report_wait = lambda seconds: follow(
            Progress("", waits_until=now() + timedelta(seconds=seconds))
        )
        with Database(settings.folder) as database, warehouse.keep_open():
            await asyncio.to_thread(
                claim_folder, database, warehouse, base_url, loads_again=loads_again
            )
            quota = Quota(
                database, settings, command, budget=budget, ignores_quota=ignores_quota, now=now,
                keeps_reserve=command not in STARTED_BY_USERS,
            )  # fmt: skip
            client = connect(
                base_url,
                api_key,
                observer=tally,
                meter=quota,
                connections=settings.connections,
                ca_file=settings.ca_file,
                proxy=settings.proxy,
            )
            async with client:
                yield RunContext(
                    client=client,
                    connections=settings.connections,
                    warehouse=warehouse,
                    database=database,
                    runs=Runs(database),
                    quota=quota,
                    run=Run(new_id(started_at), command, started_at, budget=budget),
                    tally=tally,
                    watch=follow,
                    now=now,
                    lateness_seconds=float(settings.lateness_seconds),
                )
                quota.record_limit(client.limiter.limit)


# -- Identity --------------------------------------------------------------------------------------

LOST_WITH_STATE = (
    "the journal of pushes (undo, and the protection against pushing a file twice), the month's"
    " request count and the record of runs"
)


def claim_folder(
    database: Database, warehouse: Warehouse, address: str, *, loads_again: bool = False
) -> Identity:
    """Prepare the work file, and return the folder's identity; a new folder gets one.

    Raises:
        WarehouseError: A file is lost, or the files belong to different folders.
        SettingsError: The folder has the records of another address.
    """
    found = check_folder(database, warehouse, loads_again=loads_again)
    if found is None:
        found = Identity(secrets.token_hex(8), address, "")
    elif _is_unused(database, warehouse):
        found = replace(found, address=address)  # The first address was wrong.
    check_address(found, address, warehouse)
    warehouse.prepare(loads_again=loads_again)
    return write_identity(database, warehouse, found)


def _is_unused(database: Database, warehouse: Warehouse) -> bool:
    """Return True if the folder has no bookmark and no push, so that it can get another address."""
    is_loaded = warehouse.exists and warehouse.read(queries.has_bookmarks)
    return not is_loaded and not database.rows("SELECT 1 FROM batches LIMIT 1")


def check_folder(
    database: Database, warehouse: Warehouse, *, loads_again: bool = False
) -> Identity | None:
    """Return the identity in the folder's files; None if no run has used the folder yet.

    Creates no file. Raises `WarehouseError` if a file is lost or the files do not belong together.
    """
    landed = warehouse.read(queries.read_identity) if warehouse.exists else None
    known = database.fact_as(Identity, "identity") if database.exists else None
    if landed is not None and known is None:
        raise WarehouseError(
            f"{database.path} is missing or empty, so nothing is pulled or pushed. Lost with it: "
            f"{LOST_WITH_STATE}",
            code="state_lost",
        )
    # A first run may end after it has written the identity to the state only.
    is_begun = warehouse.exists and not warehouse.published.exists()
    is_lost = warehouse.is_lost or (known is not None and landed is None and not is_begun)
    if is_lost and not loads_again:
        raise WarehouseError(
            f"{warehouse.work} is missing, and the history is in it", code="work_lost"
        )
    if known is not None and landed is not None and known.folder != landed[0]:
        origins = f"the state to one of {known.address}, the records to one of {landed[1]}"
        if known.address == landed[1]:
            origins = f"both are of {known.address}, but one was copied from another folder"
        raise WarehouseError(
            f"{database.path} and {warehouse.work} belong to different data folders: {origins}",
            code="folder_mixed",
        )
    return known


def write_identity(database: Database, warehouse: Warehouse, identity: Identity) -> Identity:
    """Write the identity, with the connector's current version, to both files and return it."""
    current = replace(identity, written_by=program_version())
    # The state first: a state with an identity and a new work file is no loss.
    if database.fact_as(Identity, "identity") != current:
        database.note("identity", current)
    if warehouse.exists and warehouse.read(queries.read_identity) != astuple(current):
        warehouse.write(queries.write_identity, astuple(current))
    return current


def check_files(settings: Settings) -> None:
    """Raise `WarehouseError` if a file is lost or the files do not belong together.

    Creates no file. Other errors of the files are raised as well.
    """
    with Database(settings.folder) as database:
        check_folder(database, Warehouse(settings.folder))


def check_account(settings: Settings) -> None:
    """Raise an error unless the folder's files belong together and to the configured address."""
    warehouse = Warehouse(settings.folder)
    with Database(settings.folder) as database:
        identity = check_folder(database, warehouse)
    if identity is not None and settings.base_url is not None:
        check_address(identity, settings.base_url, warehouse)


def check_address(identity: Identity, address: str, warehouse: Warehouse) -> None:
    """Raise `SettingsError` if the folder has the records of another address."""
    if identity.address == address:
        return
    raise SettingsError(
        f"{warehouse.folder} contains the records of {identity.address}, but base_url is "
        f"{address}. Nothing was read, because records of two workspaces must not be mixed",
        action="If base_url is wrong, correct it. For another workspace, set CONNECTOR_DATA_DIR to"
        " an empty folder.",
        code="other_workspace",
    )
