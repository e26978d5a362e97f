"""API and local copy of one stream, as the pull expects them (`pull.Api` and `pull.Copy`).

The work file is queried in a thread, so that requests in progress do not wait for the disk.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Collection, Coroutine, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import Any, TypeVar

from connector.catalog.resource import Order, Page, Resource
from connector.errors import (
    AnswerTooLarge,
    Forbidden,
    NoAnswer,
    NotFound,
    ServerFailed,
    Stopped,
    UnexpectedStatus,
    UnreadableAnswer,
    UnusableId,
    WarehouseError,
)
from connector.log import shorten_name
from connector.pulls.outcome import Progress, ResourceTally
from connector.pulls.run_context import RunContext
from connector.warehouse.queries import StreamQueries
from connector.warehouse.stream import (
    BATCH_SECONDS_MAX,
    UNREAD_AMONG,
    UNREAD_MAX,
    Commit,
    DeletionProof,
    FoundDetail,
    LandedRow,
    Outcome,
    Purpose,
    Stream,
    UnreadableDetail,
)

T = TypeVar("T")

_UNREAD = (ServerFailed, NoAnswer, UnreadableAnswer, AnswerTooLarge, UnexpectedStatus)
"""Errors of one detail that do not affect other records."""

LOOK_SECONDS = 0.2
"""Seconds between two checks during a wait whether another process requests the work file."""


class StreamApi:
    """Reads one stream over HTTP. Committed details go to `copy` even if the reading fails."""

    def __init__(self, context: RunContext, stream: Stream, copy: StreamCopy) -> None:
        self._context, self._stream, self._copy = context, stream, copy
        # Whether each of the last details failed, in this batch or before. A batch ends by time, so
        # it could be too short to give up on details that fail slowly.
        self._failed: deque[bool] = deque(maxlen=UNREAD_AMONG)

    @property
    def purpose(self) -> Purpose:
        """What the requests are counted as."""
        return self._context.tally.purpose

    @purpose.setter
    def purpose(self, purpose: Purpose) -> None:
        self._context.tally.purpose = purpose

    async def page(self, number: int, sort: str | None, order: Order) -> Page[Resource]:
        """Request one page of the list; without the server's time, items get the local time."""
        listing = self._context.client.page(
            self._stream.resource.name,
            self._stream.parent,
            page=number,
            sort=sort,
            order=order if sort else None,
        )
        answer = await self._release_file_during(listing)
        self._context.tally.readable += 1
        listed = replace(answer, received_at=self._context.now())
        for item in listed.items:
            item.served_at = listed.timestamp
        return listed

    async def details(self, ids: Sequence[str]) -> dict[str, Outcome]:
        """Read details in parallel until the batch's time is over; return the outcomes by id."""
        return await self._release_file_during(self._read_details(ids))

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

    async def _read_details(self, ids: Sequence[str]) -> dict[str, Outcome]:
        """Read details in parallel. If an error ends the reading, those read so far are loaded."""
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
                await self._copy.commit(Commit(records=found))
            raise
        return outcomes

    async def _read_detail(self, id: str) -> Outcome:
        """Return the detail, a proof of deletion, or the reason why it is unreadable.

        Raises errors that affect other records too, and the error after too many unreadable
        details. A missing scope is a matter of the list: 403 to one detail concerns that record.
        """
        try:
            record = await self._context.client.detail(
                self._stream.resource.name, id, self._stream.parent
            )
        except NotFound as error:
            # Only the API's own error body proves that a record is deleted; a proxy's page does
            # not.
            if error.is_api_error:
                self._context.tally.readable += 1
                return DeletionProof(error.served_at or self._context.now())
            raise
        except UnusableId as error:
            # The id comes from the API, and no request was sent.
            return UnreadableDetail(error.code, str(error))
        except Forbidden:
            return UnreadableDetail("record_forbidden", "the API answered 403 for this record")
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


class StreamCopy:
    """Rows and queue of one stream in the work file. Commits are counted in `tally`."""

    def __init__(
        self, context: RunContext, stream: Stream, tally: ResourceTally | None = None
    ) -> None:
        self._context, self._stream = context, stream
        self._tally = tally or ResourceTally()

    async def _query(self, query: Callable[[StreamQueries], T]) -> T:
        """Answer a query from the work file."""
        return await asyncio.to_thread(self._context.warehouse.query, self._stream, query)

    async def commit(self, commit: Commit) -> None:
        """Write the commit to the work file, and report the progress."""
        context, name, tally = self._context, self._stream.resource.name, self._tally
        counts = await asyncio.to_thread(
            context.warehouse.commit, self._stream, commit, context.run.run_id, context.now()
        )
        tally.add_commit(commit, counts)
        context.watch(Progress(name, tally.read, tally.pending, context.tally.requests_of(name)))

    async def rows_of(self, items: Collection[Resource]) -> dict[str, LandedRow]:
        """Return the rows of these list items, by id."""
        ids, created = [item.id for item in items], [item.created_at for item in items]
        return await self._query(lambda rows: rows.landed(ids, created)) if items else {}

    async def rows_by_id(self, ids: Sequence[str]) -> dict[str, LandedRow]:
        """Return the rows with these ids, by id."""
        return await self._query(lambda rows: rows.landed(ids)) if ids else {}

    async def differing(self, records: Collection[Resource]) -> dict[str, tuple[str, ...]]:
        """Return the fields in which responses differ from the loaded details, by id."""
        return await self._query(lambda rows: rows.differing(records)) if records else {}

    async def live(self, after: datetime | None, before: datetime | None) -> frozenset[str]:
        """Return live ids created strictly between two times (None: no bound)."""
        return await self._query(lambda rows: rows.created_between(after, before))

    async def updated(self, after: datetime, before: datetime) -> frozenset[str]:
        """Return live ids, not queued, whose `updated_at` is strictly between two times."""
        return await self._query(lambda rows: rows.updated_between(after, before))

    async def undated(self, after: datetime) -> tuple[str, ...]:
        """Return live ids whose detail has no `updated_at`, or one after this time."""
        return await self._query(lambda rows: rows.undated(after))

    async def oldest(self, count: int) -> tuple[str, ...]:
        """Return the live ids whose details were read longest ago."""
        return await self._query(lambda rows: rows.least_recently_read(count))

    async def count(self, before: datetime | None = None) -> int:
        """Return the number of live rows, optionally of those created before a time."""
        return await self._query(lambda rows: rows.count_live(before))

    async def queued(self, count: int, skip: frozenset[str]) -> tuple[str, ...]:
        """Return at most `count` queued ids, newest first, except `skip`."""
        return await self._query(lambda rows: rows.queued(count, skip))
