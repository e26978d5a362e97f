"""Session of a run that writes to the API: requests, journal, reason to end.

Nothing is decided here about what to write. The journal is asked in a thread, so that requests
under way are not held up by the disk.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Self

from connector.catalog import declaration
from connector.catalog.page import Page
from connector.catalog.resource import Resource
from connector.client.endpoint import RecordEndpoint
from connector.errors import ConnectorError
from connector.errors_api import NoAnswer, NotFound, ServerFailed, UnreadableAnswer
from connector.ledger.journal import Journal
from connector.ledger.journal_reads import BatchRecord, PendingRow
from connector.ledger.journal_records import Transition
from connector.ledger.push_states import Task
from connector.pulls.outcome import Progress
from connector.pulls.run_context import RunContext
from connector.pushes.landed_writes import WriteLanding
from connector.pushes.push_commands import Lost, Unsent, answer_of
from connector.warehouse.pull_commands import Found, Gone, Outcome, Unread

IN_A_ROW_MAX = 5
"""Writes without an answer, one after another, after which nothing more is sent."""

LIMITED_MAX = 3
"""Writes refused for their speed, one after another, the client's own repeats not counted."""


class PushStopped(Exception):
    """Nothing more may be sent in this run; the row stays as the journal has it."""


@dataclass(slots=True)
class PushSession:
    """Shared state of the rows of a run. `error` is why nothing more may be sent.

    `ahead` is how far the server's clock is ahead of ours, as last heard. A run that only `reads`
    sends no write; one that `is_eager` looks for rows in doubt once before they have settled.
    `newest` is the page listed before the first create, by parent. `places` bounds the rows that
    are under way, and so the intents without an outcome, which a kill puts in doubt. `progress` is
    what those who watch were told last.
    """

    context: RunContext
    journal: Journal
    landing: WriteLanding
    ahead: timedelta
    reads: bool = False
    is_eager: bool = False
    progress: Progress | None = None
    error: ConnectorError | None = None
    lost_in_a_row: int = 0
    limited_in_a_row: int = 0
    newest: dict[str | None, Page[Resource]] = field(default_factory=dict)
    looking: asyncio.Lock = field(default_factory=asyncio.Lock)
    places: asyncio.Semaphore = field(init=False)

    def __post_init__(self) -> None:
        self.places = asyncio.Semaphore(self.context.connections)

    @classmethod
    def of(cls, context: RunContext) -> Self:
        """The session of a run that has the lease of pushes."""
        ledger, run_id, now = context.lease.ledger, context.run.run_id, context.now
        journal = Journal(ledger, run_id, now=now)
        landing = WriteLanding(context.warehouse, run_id, now)
        ahead = timedelta(seconds=ledger.read_server_state().offset_seconds)
        return cls(context, journal, landing, ahead)

    def now(self) -> datetime:
        """Our own time."""
        return self.context.now()

    @property
    def served_at(self) -> datetime:
        """The server's time, as far as it is known."""
        return self.now() + self.ahead

    def endpoint(self, task: Task) -> RecordEndpoint[Resource]:
        """RecordEndpoint of the task's resource. Raises `PushStopped` as `check_can_send` does."""
        self.check_can_send()
        return RecordEndpoint(self.context.client, declaration(task.resource).record, task.parent)

    async def move(self, row: PendingRow, move: Transition) -> None:
        """Record a transition, and load the record that it returned."""
        await asyncio.to_thread(self.journal.record_transition, row.key, move)
        await self.landing.add(row.task, move)

    # -- Progress ---------------------------------------------------------------------------------

    def on_batch_start(self, batch: BatchRecord, rows: int) -> None:
        """The work begins: so many rows of the batch have not ended yet."""
        self.progress = Progress(batch.resource, pending=rows, batch=batch.batch)
        self.context.watch(self.progress)

    def on_row_end(self) -> None:
        """One more row has come as far as it can for now."""
        assert self.progress is not None, "no batch was begun"
        read, pending = self.progress.read + 1, self.progress.pending - 1
        requests = self.context.tally.requests
        self.progress = replace(self.progress, read=read, pending=pending, requests=requests)
        self.context.watch(self.progress)

    def on_wait(self, until: datetime, rows: int) -> None:
        """Only rows in doubt are left, and nothing can be said of them before that time."""
        assert self.progress is not None, "no batch was begun"
        self.context.watch(replace(self.progress, pending=rows, until=until))

    # -- Limits -----------------------------------------------------------------------------------

    def check_can_send(self, *, is_write: bool = False) -> None:
        """Raise `PushStopped` once nothing more may be sent."""
        if self.error is not None or (is_write and self.reads):
            raise PushStopped

    def stop(self, error: ConnectorError) -> None:
        """Let nothing more leave. The first reason is the one that counts."""
        self.error = self.error or error

    def record_server_time(self, told: datetime | None) -> None:
        """Take note of the server's clock."""
        if told is not None:
            self.ahead = told - self.now()

    def record_write_end(self, error: ConnectorError | None) -> None:
        """Take note of how a write ended, and whether others would end so as well."""
        if error is None:
            self.lost_in_a_row = self.limited_in_a_row = 0
            return
        match answer_of(error):
            case Lost():
                self._count_unanswered(error)
            case Unsent(is_limited=True):
                self.limited_in_a_row += 1
                if self.limited_in_a_row >= LIMITED_MAX:
                    self.stop(error)
            case Unsent():
                self.stop(error)
            case _:
                self.lost_in_a_row = self.limited_in_a_row = 0

    def _count_unanswered(self, error: ConnectorError) -> None:
        """One more that was not answered: too many in a row, and the server is left alone."""
        self.lost_in_a_row += 1
        if self.lost_in_a_row >= IN_A_ROW_MAX:
            self.stop(error)

    # -- Reads ------------------------------------------------------------------------------------
    # They raise `PushStopped` for what every further request would meet as well.

    async def read(self, task: Task, id: str) -> Outcome:
        """The record as it is now."""
        try:
            record = await self.endpoint(task).get(id)
        except ConnectorError as error:
            # Only the API's own words prove that a record is gone; a proxy's page proves nothing.
            if isinstance(error, NotFound) and error.is_api_error:
                return Gone(error.served_at or self.now())
            return self._unread(error)
        self.record_server_time(record.served_at)
        return Found(record, record.served_at or self.now())

    async def list_newest(self, task: Task, number: int) -> Page[Resource] | Unread:
        """A page of the list, last created first."""
        try:
            page = await self.endpoint(task).list(page=number, sort="created_at", order="desc")
        except ConnectorError as error:
            return self._unread(error)
        self.record_server_time(page.served_at)
        return replace(page, heard_at=self.now())

    async def newest_before(self, task: Task) -> Page[Resource] | Unread:
        """The first page as it was before the first create; rows wait for one read."""
        async with self.looking:
            if task.parent in self.newest:
                return self.newest[task.parent]
            page = await self.list_newest(task, 1)
            if isinstance(page, Page):
                self.newest[task.parent] = page
            return page

    def _unread(self, error: ConnectorError) -> Unread:
        if not isinstance(error, ServerFailed | NoAnswer | UnreadableAnswer):
            self.stop(error)
            raise PushStopped from None
        self._count_unanswered(error)
        return Unread(error.code)
