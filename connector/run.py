"""One run: bring resources up to date, one after another, and publish what landed.

It names how each resource ended and lets one resource's failure harm no other. What to read is
the engine's decision (`engine/pull.py`), and doing it is `stream.py`'s.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from connector.catalog import CATALOG, declaration
from connector.client import Client
from connector.engine.ask import Bookmark, Stream
from connector.engine.pull import Pulled
from connector.errors import (
    ConnectorError,
    Forbidden,
    NotTheApi,
    Stopped,
    Unauthorized,
    Unreachable,
    WarehouseError,
)
from connector.outcome import (
    Progress,
    PullReport,
    ResourceOutcome,
    RunOutcome,
    Tally,
    Unwatched,
    Watch,
)
from connector.resource import Declaration
from connector.settings import Settings
from connector.stream import Drive, World
from connector.warehouse import ResourceRun, Run, StreamState, Warehouse

# Errors that every further request would meet as well.
_FATAL = (Unauthorized, Stopped, Unreachable, WarehouseError, NotTheApi)


async def pull(
    settings: Settings,
    resources: Sequence[str] = (),
    *,
    watch: Watch | None = None,
    command: str = "pull",
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> PullReport:
    """Bring the landing of the resources (default: all) up to date and publish it.

    Raises `UnknownName` for a resource that does not exist, `SettingsError` for a missing address
    or key, and `WarehouseError` where nothing could be recorded; every other end is in the
    report.
    """
    names = select(resources)
    connection = settings.connection()
    warehouse = Warehouse(settings.folder)
    await asyncio.to_thread(warehouse.prepare)
    tally = Tally()
    client = Client(
        connection.base_url,
        connection.api_key,
        connections=settings.connections.value,
        reserve=settings.reserve_requests.value,
        observer=tally,
    )
    started_at = now()
    run = Run(
        run_id=f"{started_at:%Y%m%dT%H%M%SZ}-{secrets.token_hex(3)}",
        command=command,
        started_at=started_at,
    )
    world = World(
        client=client,
        connections=settings.connections.value,
        warehouse=warehouse,
        run_id=run.run_id,
        tally=tally,
        watch=watch or Unwatched(),
        now=now,
    )
    async with client:
        with warehouse.keeping():
            return await _Pull(world, run, float(settings.lateness_seconds.value)).through(names)


def select(resources: Sequence[str]) -> tuple[str, ...]:
    """The resources asked for, each once, in the API's order. Raises `UnknownName`."""
    asked = {declaration(name).name for name in resources} or set(CATALOG)
    return tuple(name for name in CATALOG if name in asked)


class _Pull:
    """One pull under way."""

    def __init__(self, world: World, run: Run, lateness_seconds: float) -> None:
        self._world, self._warehouse, self._run = world, world.warehouse, run
        self._lateness_seconds = lateness_seconds
        self._started = time.monotonic()

    async def through(self, names: tuple[str, ...]) -> PullReport:
        """Pull the resources one after another; end, record and publish."""
        await asyncio.to_thread(self._warehouse.begin, self._run)
        done: dict[str, ResourceRun] = {}
        fatal: ConnectorError | None = None
        for name in names:
            self._world.watch.began(name)
            if fatal is None:
                done[name], fatal = await self._resource(name)
            else:
                done[name] = await self._ended(name, None, "not_started", None, Progress())
            self._world.watch.ended(done[name])
        outcome = self._outcome(done, fatal)
        if outcome != "failed":
            try:
                await asyncio.to_thread(self._warehouse.publish)
            except WarehouseError as error:
                outcome, fatal = "failed", error
        return await self._report(outcome, done, fatal)

    async def _report(
        self, outcome: RunOutcome, done: dict[str, ResourceRun], fatal: ConnectorError | None
    ) -> PullReport:
        seconds = time.monotonic() - self._started
        tally = self._world.tally
        ended = replace(
            self._run,
            ended_at=self._world.now(),
            outcome=outcome,
            seconds=seconds,
            waited_seconds=tally.waited_seconds,
            requests=tally.requests,
            rate_limited=tally.rate_limited,
            error_code=fatal.code if fatal else None,
            message=str(fatal) if fatal else None,
        )
        try:
            await asyncio.to_thread(self._warehouse.end, ended)
        except WarehouseError as error:
            # The run ended even though its end could not be written down.
            outcome, fatal = "failed", fatal or error
        return PullReport(
            outcome=outcome,
            run_id=self._run.run_id,
            seconds=seconds,
            waited_seconds=tally.waited_seconds,
            requests=tally.requests,
            rate_limited=tally.rate_limited,
            resources=done,
            error=fatal,
        )

    async def _resource(self, name: str) -> tuple[ResourceRun, ConnectorError | None]:
        """Pull one resource; the error is one that ends the run."""
        progress = Progress()
        before: datetime | None = None
        error: ConnectorError | None = None
        outcome: ResourceOutcome = "done"
        try:
            streams = await self._streams(declaration(name))
            before = await self._proven_at(streams)
            for stream in streams:
                progress.add(await self._stream(stream, progress))
        except ConnectorError as raised:
            error, outcome = raised, _named(raised)
        done = await self._ended(name, before, outcome, error, progress)
        return done, error if isinstance(error, _FATAL) else None

    async def _streams(self, resource: Declaration) -> tuple[Stream, ...]:
        """The streams of a resource: itself, or one per landed record of its parent."""
        if resource.parent is None:
            return (Stream(resource),)
        parents = Stream(declaration(resource.parent))
        if (await self._bookmark(parents)).proven_at is None:
            await self._stream(parents, Progress())
        ids = await asyncio.to_thread(self._warehouse.live_ids, parents)
        return tuple(Stream(resource, id) for id in ids)

    async def _stream(self, stream: Stream, progress: Progress) -> Pulled:
        bookmark = await self._bookmark(stream)
        return await Drive(self._world, stream, progress).to_its_end(bookmark)

    async def _bookmark(self, stream: Stream) -> Bookmark:
        bookmark = await asyncio.to_thread(self._warehouse.bookmark, stream)
        lateness = self._lateness_seconds
        if bookmark != Bookmark():
            # What was once allowed for is not taken back: R was proven with it.
            lateness = max(bookmark.lateness_seconds, lateness)
        return replace(bookmark, lateness_seconds=lateness)

    async def _proven_at(self, streams: tuple[Stream, ...]) -> datetime | None:
        """The least of the streams' bookmarks; None if one was never loaded."""
        moments = [(await self._bookmark(stream)).proven_at for stream in streams]
        known = [each for each in moments if each is not None]
        return min(known) if known and len(known) == len(moments) else None

    async def _ended(
        self,
        name: str,
        before: datetime | None,
        outcome: ResourceOutcome,
        error: ConnectorError | None,
        progress: Progress,
    ) -> ResourceRun:
        """Record how the resource ended; what cannot be recorded is told all the same."""
        fates, tally = progress.fates, self._world.tally
        done = ResourceRun(
            resource=name,
            outcome=outcome,
            proven=False,
            requests=tally.of(name),
            lists=tally.lists(name),
            details=tally.details(name),
            new=fates.new,
            changed=fates.changed,
            unchanged=fates.unchanged,
            deleted=fates.deleted,
            live=0,
            total=progress.total,
            pending=0,
            bookmark_before=before,
            bookmark_after=before,
            error_code=error.code if error else None,
            message=str(error) if error else progress.reason,
        )
        try:
            done = _with_standing(done, await asyncio.to_thread(self._warehouse.standing_of, name))
            if outcome == "done":
                done = _judged(done, progress.is_proven)
            await asyncio.to_thread(self._warehouse.end_resource, self._run.run_id, done)
        except WarehouseError:
            if error is None:
                raise
        return done

    @staticmethod
    def _outcome(done: dict[str, ResourceRun], fatal: ConnectorError | None) -> RunOutcome:
        if isinstance(fatal, Stopped):
            return "stopped"
        outcomes = {each.outcome for each in done.values()}
        if fatal is not None or not outcomes & {"done", "partial"}:
            return "failed"
        return "done" if outcomes == {"done"} else "partial"


def _named(error: ConnectorError) -> ResourceOutcome:
    """The name for a resource's end by an error."""
    if isinstance(error, Forbidden):
        return "skipped"
    return "stopped" if isinstance(error, Stopped) else "failed"


def _with_standing(done: ResourceRun, standing: StreamState) -> ResourceRun:
    return replace(
        done,
        live=standing.live,
        pending=standing.pending,
        bookmark_after=standing.proven_at,
    )


def _judged(done: ResourceRun, is_proven: bool) -> ResourceRun:
    """Done is what is proven and leaves nothing to be read; anything less is partial."""
    if is_proven and not done.pending:
        return replace(done, proven=True)
    message = done.message
    if done.pending and message is None:
        message = f"{done.pending} records could not be read and stay queued"
    return replace(done, outcome="partial", message=message)
