"""Session of a push: sends, reads and saves for its rows, and loads what the API showed.

An error that every other row would meet as well stops the run. The records of the answers are
written to the local copy together, as if a pull had read them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import Any

from connector.catalog import declaration
from connector.catalog.resource import Page, Resource
from connector.client.messages import Request, Response, check_deleted, read_record, served_at
from connector.errors import ConnectorError, NotFound, WarehouseError, count_noun
from connector.pulls.account import RunContext
from connector.pulls.report import Progress
from connector.pushes.row import Answer, PushStopped, fate_of
from connector.state.journal import Batch, Journal
from connector.state.row import Row
from connector.warehouse.queries import find_by_slug_or_id
from connector.warehouse.stream import Commit, DeletionProof, FoundDetail, Stream

_LOGGER = logging.getLogger(__name__)

UNANSWERED_MAX = 5
"""Maximum number of requests without an answer, one after another."""

LOADED_TOGETHER = 500
"""Number of answers that are written to the local copy together."""

QUEUED_AS = "pushed"
"""Reason in the queue for a record that a push has written."""

Sleep = Callable[[float], Coroutine[Any, Any, None]]


class Postponed(Exception):
    """The row continues in this run, but no earlier than `until` of our own clock."""

    def __init__(self, until: datetime) -> None:
        self.until = until


class Session:
    """What the rows of one run share. It is the `Port` of each row.

    Args:
        context: Open run, with the lock of the account.
        sleep: Waits until lost rows can be looked up again; None leaves them unconfirmed.

    Attributes:
        error: Error after which nothing more may be sent.
    """

    def __init__(self, context: RunContext, sleep: Sleep | None) -> None:
        self.context, self._sleep = context, sleep
        self.stored = Journal(context.database, now=context.now)
        self.error: ConnectorError | None = None
        self.progress = Progress("")
        self._unanswered = 0
        self._pages: dict[str | None, Page[Resource]] = {}
        self._page_lock, self._load_lock = asyncio.Lock(), asyncio.Lock()
        # By resource and parent, then by id; None if the next pull has to read the record.
        self._shown: dict[
            tuple[str, str | None], dict[str, FoundDetail | DeletionProof | None]
        ] = {}

    # -- limits and progress ----------------------------------------------------------------------

    def stop(self, error: ConnectorError) -> None:
        """Let nothing more be sent in this run. The first error is kept."""
        self.error = self.error or error

    def check_can_send(self) -> None:
        """Raise `PushStopped` if no request may be sent."""
        if self.error is not None:
            raise PushStopped

    def begin_batch(self, batch: Batch, rows: int) -> None:
        """Report the number of unfinished rows."""
        self.progress = Progress(batch.resource, pending=rows, batch=batch.batch)
        self.context.watch(self.progress)

    def end_row(self) -> None:
        """Report that one row less is pending: it has ended, or cannot continue in this run."""
        now, requests = self.progress, self.context.tally.requests
        self.progress = replace(now, read=now.read + 1, pending=now.pending - 1, requests=requests)
        self.context.watch(self.progress)

    def times(self) -> tuple[datetime, datetime]:
        """Return the time of our own clock, and the estimated time of the server's."""
        now = self.context.now()
        return now, now + self.context.quota.server_ahead

    def _count_failure(self, error: ConnectorError) -> None:
        """Stop the run if other requests would fail as well."""
        self._unanswered += 1
        if fate_of(error) in ("limited", "unsent") or self._unanswered >= UNANSWERED_MAX:
            self.stop(error)

    # -- the API of a row -------------------------------------------------------------------------

    async def send(self, row: Row, request: Request) -> Answer:
        """Send a request that the journal has, once."""
        try:
            record = await self.context.client.send(request, _read)
        except ConnectorError as error:
            if fate_of(error) == "refused":
                self._unanswered = 0
            else:
                self._count_failure(error)
            return error
        self._unanswered = 0
        return record

    async def read(self, row: Row, id: str) -> FoundDetail | DeletionProof:
        """Return the complete record as it is now; a proof if it is deleted."""
        self.check_can_send()
        try:
            record = await self.context.client.detail(row.resource, id, row.parent)
        except ConnectorError as error:
            # Only the API's own words prove that a record is gone; a proxy's page proves nothing.
            if isinstance(error, NotFound) and error.is_api_error:
                return DeletionProof(error.served_at or self.context.now())
            self._count_failure(error)
            raise PushStopped from error
        return FoundDetail(record, record.served_at or self.context.now())

    async def newest(self, row: Row, page: int) -> Page[Resource]:
        """Return a page of the list, the last created first."""
        self.check_can_send()
        try:
            found = await self.context.client.page(
                row.resource, row.parent, page=page, sort="created_at", order="desc"
            )
        except ConnectorError as error:
            self._count_failure(error)
            raise PushStopped from error
        return replace(found, received_at=self.context.now())

    async def newest_before(self, row: Row) -> Page[Resource]:
        """Return the first page as it was before the run's first write. It is read once."""
        async with self._page_lock:
            if row.parent not in self._pages:
                self._pages[row.parent] = await self.newest(row, 1)
            return self._pages[row.parent]

    async def wait_until(self, row: Row, moment: datetime) -> None:
        """Raise `Postponed` until then, so that other rows are sent; `PushStopped` without waiting.

        The next step of the row begins with its state in the journal.
        """
        if self._sleep is None:
            raise PushStopped
        if self.context.now() < moment:
            raise Postponed(moment)

    async def sleep_until(self, until: datetime, rows: int) -> None:
        """Sleep until postponed rows may continue, and report it."""
        assert self._sleep is not None
        _LOGGER.warning(
            "%s unconfirmed, because the answers were lost. The push searches for the records "
            "again at %s UTC (--no-wait skips the search)",
            count_noun(rows, "row"),
            f"{until:%H:%M:%S}",
        )
        self.context.watch(replace(self.progress, pending=rows, until=until))
        await self._sleep(max(0.0, (until - self.context.now()).total_seconds()))

    # -- the journal and the local copy -----------------------------------------------------------

    async def save(self, row: Row, shown: Resource | None = None) -> None:
        """Save the row on the disk, and load the record that the API showed."""
        self.stored.save(row)
        await self.load(row, shown)

    async def load(self, row: Row, shown: Resource | DeletionProof | None) -> None:
        """Load a record with others: complete if the answer has all fields, else by the next pull.

        A written record that the API did not show completely is read by the next pull.
        """
        found: FoundDetail | DeletionProof | None = None
        names = {each.name for each in declaration(row.resource).detail_fields}
        if isinstance(shown, DeletionProof):
            found = shown
        elif shown is not None and names <= shown.raw.keys():
            found = FoundDetail(shown, shown.served_at or self.context.now())
        is_written = row.outcome in ("created", "updated", "converted", "not_applied")
        if row.record_id is not None and (found is not None or is_written):
            waiting = self._shown.setdefault((row.resource, row.parent), {})
            waiting[row.record_id] = found
            if len(waiting) >= LOADED_TOGETHER:
                await self.load_rest()

    async def load_rest(self) -> None:
        """Write all answers to the local copy. If that fails, the next pull loads their records."""
        async with self._load_lock:
            waiting, self._shown = self._shown, {}
            for (resource, parent), shown in waiting.items():
                if (stream := self.stream_of(resource, parent)) is None:
                    continue
                commit = Commit(
                    records=tuple(e for e in shown.values() if isinstance(e, FoundDetail)),
                    gone={id: e for id, e in shown.items() if isinstance(e, DeletionProof)},
                    enqueue={id: QUEUED_AS for id, e in shown.items() if e is None},
                )
                now, run_id = self.context.now(), self.context.run.run_id
                with suppress(WarehouseError):
                    await asyncio.to_thread(
                        self.context.warehouse.commit, stream, commit, run_id, now
                    )

    def stream_of(self, resource: str, parent: str | None) -> Stream | None:
        """Return the stream of a resource; None if the parent is not loaded."""
        declared = declaration(resource)
        if declared.parent is None:
            return Stream(declared)
        assert parent is not None
        found = self.context.warehouse.read(find_by_slug_or_id, declared.parent, parent)
        return Stream(declared, found[0]) if len(found) == 1 else None


def _read(request: Request, response: Response) -> Resource:
    """Return the record in the response to a write; of a deleted record only the id."""
    if request.operation != "delete":
        return read_record(request, response)
    check_deleted(request, response)
    declared = declaration(request.resource)
    return declared.record({"id": request.record_id}, served_at=served_at(response))
