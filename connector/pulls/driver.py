"""Driving one stream: perform what its engine asks, over the client and the warehouse.

Nothing is decided here about what to read. The warehouse is asked in a thread, so that requests
under way are not held up by the disk.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, TypeVar

from connector.catalog import declaration
from connector.catalog.resource import Declaration, Resource
from connector.client.client import Client
from connector.client.endpoint import Endpoint
from connector.engine import commands
from connector.engine.bookmark import Bookmark, Stream
from connector.engine.commands import Commit, Found, Gone, Outcome, PageSeen, Unread
from connector.errors import ConnectorError, WarehouseError
from connector.errors_api import NoAnswer, NotFound, ServerFailed, Stopped, UnreadableAnswer
from connector.pulls.outcome import Progress, Tally, Watch
from connector.warehouse.warehouse import Warehouse

T = TypeVar("T")

MOMENT_SECONDS = 0.05
"""What an answer may take while the file stays open, about what closing and opening it takes."""

UNREAD_MAX = 5
"""Details of one batch that may fail before the resource is given up for this run."""


@dataclass(frozen=True, slots=True)
class World:
    """What a run acts on: the API through `client`, the files, our own clock, and who is told."""

    client: Client
    connections: int
    warehouse: Warehouse
    run_id: str
    tally: Tally
    watch: Watch
    now: Callable[[], datetime]
    lateness_seconds: float

    async def bookmark(self, stream: Stream) -> Bookmark:
        """The stream's bookmark, with at least the lateness that is set."""
        bookmark = await self.warehouse.apart(self.warehouse.bookmark, stream)
        lateness = self.lateness_seconds
        if bookmark != Bookmark():
            # What was once allowed for is not taken back: R was proven with it.
            lateness = max(bookmark.lateness_seconds, lateness)
        return replace(bookmark, lateness_seconds=lateness)

    async def streams(self, resource: Declaration) -> tuple[Stream, ...]:
        """The landed streams of a resource: itself, or one per landed record of its parent."""
        if resource.parent is None:
            return (Stream(resource),)
        parents = Stream(declaration(resource.parent))
        ids = await self.warehouse.apart(self.warehouse.live_ids, parents)
        return tuple(Stream(resource, id) for id in ids)


class Drive:
    """One stream's pull under way; `progress` counts what it does."""

    def __init__(self, world: World, stream: Stream, progress: Progress) -> None:
        self._world, self._stream, self._progress = world, stream, progress
        self._endpoint: Endpoint[Resource] = Endpoint(
            world.client, stream.resource.record, stream.parent
        )

    async def to_its_end(self, steps: commands.Steps[T]) -> T:
        """Perform ask after ask until the engine is done. Every error is raised as it comes."""
        self._world.tally.purpose = "pull"
        try:
            wanted = next(steps)
            while True:
                wanted = steps.send(await self._perform(wanted))
        except StopIteration as ended:
            result: T = ended.value
            return result
        finally:
            steps.close()

    async def _perform(self, wanted: commands.PullCommand) -> Any:
        match wanted:
            case commands.ListPage(page, sort, order):
                return await self._lending(self._list(page, sort, order))
            case commands.ReadRecords(ids):
                return await self._lending(self._read(ids))
            case Commit():
                return await self._commit(wanted)
            case commands.TurnTo(purpose):
                self._world.tally.purpose = purpose
                return None
            case _:
                warehouse = self._world.warehouse
                return await warehouse.apart(warehouse.look, self._stream, wanted)

    async def _lending(self, asking: Coroutine[Any, Any, T]) -> T:
        """Wait for the network, and let others have the file if that is longer than a moment:
        closing and opening it takes longer than many an answer.
        """
        warehouse, asked = self._world.warehouse, asyncio.ensure_future(asking)
        try:
            is_long = warehouse.is_held_long
            done, _ = await asyncio.wait((asked,), timeout=0.0 if is_long else MOMENT_SECONDS)
            if is_long or not done:
                await warehouse.apart(warehouse.release)
            return await asked
        finally:
            if not asked.done():
                asked.cancel()
                await asyncio.gather(asked, return_exceptions=True)

    async def _commit(self, what: Commit) -> None:
        world = self._world
        fates = await world.warehouse.apart(
            world.warehouse.commit, self._stream, what, world.run_id, world.now()
        )
        self._progress.commit(what, fates)
        name = self._stream.resource.name
        read, pending = self._progress.read, self._progress.pending
        world.watch.moved(name, read, pending, world.tally.of(name))

    async def _list(self, page: int, sort: str | None, order: commands.Order) -> PageSeen:
        listed = await self._endpoint.list(
            page=page, per_page=commands.PER_PAGE, sort=sort, order=order if sort else None
        )
        served_at = listed.served_at or self._world.now()
        for item in listed.items:
            # Where no clock dates the page, it is of now, and not of the moment of its commit.
            item.served_at = served_at
        return PageSeen(
            items=listed.items,
            page=listed.page,
            per_page=listed.per_page,
            total=listed.total,
            served_at=served_at,
            round_trip_seconds=listed.round_trip_seconds,
            is_server_clock=listed.served_at is not None,
            heard_at=self._world.now(),
        )

    async def _read(self, ids: tuple[str, ...]) -> dict[str, Outcome]:
        """Read details with as many workers as connections."""
        outcomes: dict[str, Outcome] = {}
        waiting = iter(ids)
        failures: list[ConnectorError] = []

        async def work() -> None:
            for id in waiting:
                outcomes[id] = await self._read_one(id, failures)
                if len(failures) > UNREAD_MAX:
                    raise failures[-1]

        workers = [asyncio.ensure_future(work()) for _ in range(self._world.connections)]
        try:
            await asyncio.gather(*workers)
        except BaseException as ended:
            if not isinstance(ended, Stopped):
                for each in workers:
                    each.cancel()
            # At a limit nothing more leaves, and what is under way was paid for.
            await asyncio.gather(*workers, return_exceptions=True)
            # These answers were paid for, whatever ended the run.
            found = tuple(each for each in outcomes.values() if isinstance(each, Found))
            with suppress(WarehouseError):
                await self._commit(Commit(records=found))
            raise
        return outcomes

    async def _read_one(self, id: str, failures: list[ConnectorError]) -> Outcome:
        try:
            record = await self._endpoint.get(id)
        except NotFound as error:
            # Only the API's own words prove that a record is gone; a proxy's page proves nothing.
            if error.is_api_error:
                return Gone(error.served_at or self._world.now())
            raise
        except (ServerFailed, NoAnswer, UnreadableAnswer) as error:
            failures.append(error)
            return Unread(error.code)
        return Found(record, record.served_at or self._world.now())
