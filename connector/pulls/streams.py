"""One stream over HTTP and in the work file.

The work file is queried in a thread, so that requests in progress do not wait for the disk.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Concatenate, ParamSpec, TypeVar

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
from connector.pulls.account import RunContext
from connector.pulls.ports import Purpose
from connector.warehouse.landing import Counts
from connector.warehouse.queries import StreamQueries
from connector.warehouse.stream import (
    Commit,
    DeletionProof,
    FoundDetail,
    Outcome,
    Stream,
    UnreadableDetail,
)

P = ParamSpec("P")
T = TypeVar("T")

OnCommit = Callable[[Commit, Counts], None]

BATCH_SECONDS_MAX = 3.0
"""Seconds after which the details read so far are committed."""

UNREAD_MAX, UNREAD_AMONG = 5, 100
"""A resource fails for the run if more than 5 of its last 100 details failed."""

_UNREAD = (ServerFailed, NoAnswer, UnreadableAnswer, AnswerTooLarge, UnexpectedStatus)
"""Errors of one detail that do not affect other records."""


class StreamApi:
    """Reads one stream over HTTP. Details go to `copy`, if given, even if the reading fails."""

    def __init__(self, context: RunContext, stream: Stream, copy: StreamCopy | None) -> None:
        self._context, self._stream, self._copy = context, stream, copy
        # A batch ends by time, so it could be too short to give up on details that fail slowly.
        self._failed: deque[bool] = deque(maxlen=UNREAD_AMONG)

    @property
    def purpose(self) -> Purpose:
        """What the requests are counted as."""
        return self._context.tally.purpose

    @purpose.setter
    def purpose(self, purpose: Purpose) -> None:
        self._context.tally.purpose = purpose

    async def page(self, number: int, sort: str | None, order: Order) -> Page[Resource]:
        """Request one page of the list."""
        answer = await self._context.client.page(
            self._stream.resource.name,
            self._stream.parent,
            page=number,
            sort=sort,
            order=order if sort else None,
        )
        self._context.tally.readable += 1
        return replace(answer, received_at=self._context.now())

    async def details(self, ids: Sequence[str]) -> dict[str, Outcome]:
        """Read details in parallel until the batch's time is over; return the outcomes by id.

        If an error ends the reading, those read so far are loaded: their requests are counted.
        """
        outcomes: dict[str, Outcome] = {}
        waiting, until = iter(ids), time.monotonic() + BATCH_SECONDS_MAX

        async def work() -> None:
            for id in waiting:
                outcomes[id] = await self._read_detail(id)
                if time.monotonic() > until:
                    break

        workers = [asyncio.ensure_future(work()) for _ in range(self._context.connections)]
        try:
            await asyncio.gather(*workers)
        except BaseException as ended:
            if not isinstance(ended, Stopped):  # At a limit, requests in progress are counted.
                for each in workers:
                    each.cancel()
            await asyncio.gather(*workers, return_exceptions=True)
            if self._copy is not None:
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
        tally, now = self._context.tally, self._context.now
        try:
            record = await self._context.client.detail(
                self._stream.resource.name, id, self._stream.parent
            )
        except NotFound as error:
            # Only the API's own error body proves a deletion; a proxy's page does not.
            if not error.is_api_error:
                raise
            tally.readable += 1
            return DeletionProof(error.served_at or now())
        except UnusableId as error:  # The id comes from the API, and no request was sent.
            return UnreadableDetail(error.code, str(error))
        except Forbidden:
            return UnreadableDetail("record_forbidden", "the API answered 403 for this record")
        except _UNREAD as error:
            self._failed.append(True)
            if sum(self._failed) > UNREAD_MAX:
                raise
            return UnreadableDetail(error.code, error.answer)
        self._failed.append(False)
        tally.readable += 1
        return FoundDetail(record, record.served_at or now())


def _in_thread(
    query: Callable[Concatenate[StreamQueries, P], T],
) -> Callable[Concatenate[StreamCopy, P], Coroutine[Any, Any, T]]:
    """Return a method that answers a query from the work file."""

    async def answer(copy: StreamCopy, /, *args: P.args, **options: P.kwargs) -> T:
        def ask(rows: StreamQueries) -> T:
            return query(rows, *args, **options)

        return await asyncio.to_thread(copy.context.warehouse.query, copy.stream, ask)

    return answer


class StreamCopy:
    """Rows and queue of one stream in the work file. `on_commit` receives each commit."""

    def __init__(self, context: RunContext, stream: Stream, on_commit: OnCommit) -> None:
        self.context, self.stream, self._on_commit = context, stream, on_commit

    async def commit(self, commit: Commit) -> None:
        """Write the commit to the work file, and its events to the state."""
        context, stream, at = self.context, self.stream, self.context.now()
        run_id, name = context.run.run_id, stream.resource.name
        counts, events = await asyncio.to_thread(
            context.warehouse.commit, stream, commit, run_id, at
        )
        if events:
            context.runs.add_events(events, at, run_id=run_id, resource=name, parent=stream.parent)
        self._on_commit(commit, counts)

    rows_of = _in_thread(StreamQueries.rows_of)
    differing = _in_thread(StreamQueries.differing)
    live = _in_thread(StreamQueries.live)
    updated = _in_thread(StreamQueries.updated)
    undated = _in_thread(StreamQueries.undated)
    oldest = _in_thread(StreamQueries.oldest)
    count = _in_thread(StreamQueries.count)
    queued = _in_thread(StreamQueries.queued)
