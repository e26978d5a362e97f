"""Executor of a stream: performs the commands of a pull's steps.

The steps decide what to read. The warehouse is queried in a thread, so that requests in progress do
not wait for the disk.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import replace
from typing import Any, TypeVar

from connector.catalog.resource import Order, Page, Resource
from connector.client.client import RecordEndpoint
from connector.errors import ConnectorError, UnusableId, WarehouseError
from connector.errors_api import (
    AnswerTooLarge,
    NoAnswer,
    NotFound,
    ServerFailed,
    Stopped,
    UnexpectedStatus,
    UnreadableAnswer,
)
from connector.log import shorten_name
from connector.pulls.outcome import Progress, ResourceTally
from connector.pulls.run_context import RunContext
from connector.warehouse.pull_commands import (
    BATCH_SECONDS_MAX,
    UNREAD_AMONG,
    UNREAD_MAX,
    Commit,
    DeletionProof,
    FoundDetail,
    ListPage,
    Outcome,
    PullCommand,
    Query,
    ReadRecords,
    SetPurpose,
    Steps,
    Stream,
    UnreadableDetail,
)

T = TypeVar("T")

_UNREAD = (ServerFailed, NoAnswer, UnreadableAnswer, AnswerTooLarge, UnexpectedStatus)
"""Errors of one detail that do not affect other records."""

LOOK_SECONDS = 0.2
"""Seconds between two checks during a wait whether another process requests the work file."""


class PullExecutor:
    """Performs the steps of one stream: requests, queries and commits. Counts them in `tally`."""

    def __init__(
        self, context: RunContext, stream: Stream, tally: ResourceTally | None = None
    ) -> None:
        self._context, self._stream = context, stream
        self._tally = tally or ResourceTally()
        self._endpoint: RecordEndpoint[Resource] = RecordEndpoint(
            context.client, stream.resource.record, stream.parent
        )
        # Whether each of the last details failed, in this batch or before. A batch ends by time, so
        # it could be too short to give up on details that fail slowly.
        self._failed: deque[bool] = deque(maxlen=UNREAD_AMONG)

    async def run(self, steps: Steps[T]) -> T:
        """Perform the commands of `steps` and return their result. Errors are raised in `steps`."""
        self._context.tally.purpose = "pull"
        try:
            command = next(steps)
            while True:
                try:
                    answer = await self._execute(command)
                except ConnectorError as error:
                    command = steps.throw(error)
                else:
                    command = steps.send(answer)
        except StopIteration as ended:
            result: T = ended.value
            return result
        finally:
            steps.close()

    async def _execute(self, command: PullCommand[Any]) -> Any:
        """Perform one command and return its answer."""
        match command:
            case ListPage(page, sort, order):
                return await self._release_file_during(self._list_page(page, sort, order))
            case ReadRecords(ids):
                return await self._release_file_during(self._read_details(ids))
            case Commit():
                return await self._commit(command)
            case SetPurpose(purpose):
                self._context.tally.purpose = purpose
                return None
            case _:
                assert isinstance(command, Query), command
                warehouse = self._context.warehouse
                return await asyncio.to_thread(warehouse.query, self._stream, command)

    async def _release_file_during(self, requests: Coroutine[Any, Any, T]) -> T:
        """Await the requests. Release the work file if another process requests it."""
        warehouse, waiting = self._context.warehouse, asyncio.ensure_future(requests)
        try:
            while not waiting.done():
                await asyncio.wait((waiting,), timeout=LOOK_SECONDS)
                await asyncio.to_thread(warehouse.release_if_requested)
            return await waiting
        finally:
            if not waiting.done():
                waiting.cancel()
                await asyncio.gather(waiting, return_exceptions=True)

    async def _commit(self, commit: Commit) -> None:
        """Write the commit to the work file, and report the progress."""
        context, name, tally = self._context, self._stream.resource.name, self._tally
        counts = await asyncio.to_thread(
            context.warehouse.commit, self._stream, commit, context.run.run_id, context.now()
        )
        tally.add_commit(commit, counts)
        context.watch(Progress(name, tally.read, tally.pending, context.tally.requests_of(name)))

    async def _list_page(self, page: int, sort: str | None, order: Order) -> Page[Resource]:
        """Request a page of the list; without the server's time, items get the local time."""
        answer = await self._endpoint.list(page=page, sort=sort, order=order if sort else None)
        self._context.tally.readable += 1
        listed = replace(answer, received_at=self._context.now())
        for item in listed.items:
            # Without the server clock, items have the local time of their arrival, not of the
            # commit.
            item.served_at = listed.timestamp
        return listed

    async def _read_details(self, ids: tuple[str, ...]) -> dict[str, Outcome]:
        """Read details in parallel until the batch's time is over; return the results by id.

        If an error ends the reading, the details read so far are committed.
        """
        outcomes: dict[str, Outcome] = {}
        waiting = iter(ids)
        until = time.monotonic() + BATCH_SECONDS_MAX

        async def work() -> None:
            for id in waiting:
                outcomes[id] = await self._read_detail(id)
                if time.monotonic() > until:
                    break

        workers = [asyncio.ensure_future(work()) for _ in range(self._context.connections)]
        try:
            await asyncio.gather(*workers)
        except BaseException as ended:
            if not isinstance(ended, Stopped):
                for each in workers:
                    each.cancel()
            # At a limit no more requests are sent, but requests in progress are already counted.
            await asyncio.gather(*workers, return_exceptions=True)
            # Requests are counted, so their details are loaded whatever ended the run.
            found = tuple(each for each in outcomes.values() if isinstance(each, FoundDetail))
            with suppress(WarehouseError):
                await self._commit(Commit(records=found))
            raise
        return outcomes

    async def _read_detail(self, id: str) -> Outcome:
        """Return the detail, a proof of deletion, or the reason why it is unreadable.

        Raises errors that affect other records too, and the error after too many unreadable
        details.
        """
        try:
            record = await self._endpoint.get(id)
        except NotFound as error:
            # Only the API's own error body proves that a record is deleted; a proxy's page does
            # not. `pulls/deletion_guard.py` decides whether many deletions are accepted.
            if error.is_api_error:
                self._context.tally.readable += 1
                return DeletionProof(error.served_at or self._context.now())
            raise
        except UnusableId as error:
            # The id comes from the API, and no request was sent.
            return UnreadableDetail(error.code, str(error))
        except _UNREAD as error:
            self._failed.append(True)
            if sum(self._failed) > UNREAD_MAX:
                raise
            # Many records that fail for the same reason are counted together, without their ids.
            answer = error.answer.replace(f" of the record {shorten_name(id)}", "")
            return UnreadableDetail(error.code, answer)
        self._failed.append(False)
        self._context.tally.readable += 1
        return FoundDetail(record, record.served_at or self._context.now())
