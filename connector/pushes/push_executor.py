"""Drivers of rows: they perform the commands of several engines at once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Generic, TypeVar

from connector.catalog import declaration
from connector.client.request import (
    Request,
    build_convert_request,
    build_create_request,
    build_update_request,
)
from connector.client.response import served_at
from connector.client.response_parsing import read_written
from connector.errors import ConnectorError, Misused
from connector.ledger.journal_reads import PendingRow, RowKey
from connector.ledger.journal_records import Attempt, Transition
from connector.ledger.push_plan import BlockedRow, Problem, QueuedRow, RowQueue
from connector.pushes.push_commands import (
    Accepted,
    Answer,
    ClaimedRecords,
    InvalidBody,
    ListNewest,
    NewestBefore,
    OpenCreates,
    PushCommand,
    PushSteps,
    ReadOne,
    RecordAttempt,
    Send,
    WaitUntil,
    answer_of,
)
from connector.pushes.push_session import PushSession, PushStopped

Sleep = Callable[[float], Coroutine[Any, Any, None]]
GoOn = Callable[[], Coroutine[Any, Any, bool | datetime]]

W = TypeVar("W", bound=QueuedRow)

WAIT_SECONDS_MAX = 30.0
"""A wait for rows to settle is cut into waits no longer than this, so that those who watch know."""


ROWS_A_CONNECTION = 3
"""Rows that are begun for each connection: one is sent while the next ones wait for its place."""


@dataclass(slots=True)
class RowExecutor:
    """Executor of one row: its steps, and its state while it waits."""

    row: PendingRow
    steps: PushSteps[bool]
    session: PushSession
    wanted: PushCommand | None = None
    request: Request | None = field(default=None, repr=False)
    has_looked: bool = False

    async def run(self) -> bool | datetime:
        """Perform command after command. Ends with whether the row is open once its engine
        is done, or with the time before which it cannot go on.

        Raises `PushStopped`, and errors that every further row would meet as well.
        """
        async with self.session.places:
            try:
                wanted = self.wanted or next(self.steps)
                while True:
                    if isinstance(wanted, WaitUntil) and self.session.now() < wanted.moment:
                        if self.has_looked or not self.session.is_eager:
                            self.wanted = wanted
                            return wanted.moment
                        self.has_looked = True
                    wanted = self.steps.send(await self._perform(wanted))
            except StopIteration as ended:
                self.session.on_row_end()
                return bool(ended.value)
            except BaseException:
                self.steps.close()
                raise

    async def _perform(self, wanted: PushCommand) -> Any:
        session, task, key = self.session, self.row.task, self.row.key
        answer: Any = None
        match wanted:
            case RecordAttempt():
                answer = await self._record_attempt(wanted)
            case Send():
                answer = await self._send()
            case Transition():
                await session.move(self.row, wanted)
            case ListNewest(page):
                answer = await session.list_newest(task, page)
            case NewestBefore():
                answer = await session.newest_before(task)
            case ReadOne(id):
                answer = await session.read(task, id)
            case ClaimedRecords(ids):
                answer = await asyncio.to_thread(session.journal.claimed_records, key, ids)
            case OpenCreates():
                answer = await asyncio.to_thread(session.journal.open_creates, key)
        return answer

    async def _record_attempt(self, wanted: RecordAttempt) -> Attempt | InvalidBody:
        self.session.check_can_send(is_write=True)
        task = self.row.task
        resource, fields, id = declaration(task.resource), wanted.fields or {}, wanted.record_id
        try:
            match wanted.operation:
                case "create":
                    request = build_create_request(resource, fields, task.parent)
                case "update":
                    request = build_update_request(resource, id or "", fields, task.parent)
                case "convert":
                    request = build_convert_request(resource, id or "")
        except Misused as error:
            return InvalidBody(str(error))
        self.request = request
        session, before, sent_after = self.session, wanted.before, self.session.served_at
        return await asyncio.to_thread(
            session.journal.record_attempt,
            self.row.key,
            request,
            before=before,
            sent_after=sent_after,
        )

    async def _send(self) -> Answer:
        """Send what was intended, once: a request leaves no second time."""
        request, self.request = self.request, None
        assert request is not None, "nothing was intended"
        try:
            answer = await self.session.context.client.send(request)
            raw, _ = read_written(request, answer)
        except ConnectorError as error:
            self.session.record_write_end(error)
            return answer_of(error)
        self.session.record_write_end(None)
        told = served_at(answer)
        self.session.record_server_time(told)
        return Accepted(declaration(self.row.task.resource).record(raw, served_at=told))


class BatchExecutor(Generic[W]):
    """Driver of all rows of one run, begun in their order.

    At most `connections` of them are under way at once, and those that must settle come last;
    without a `sleep` they stay in doubt.
    `begin` gives what brings a row further, each time that it is called: it ends as
    `RowDriver.go_on` does.
    """

    def __init__(
        self,
        session: PushSession,
        order: RowQueue[W],
        begin: Callable[[W], GoOn],
        sleep: Sleep | None,
    ) -> None:
        self._session, self._order, self._begin, self._sleep = session, order, begin, sleep
        self._connections = session.context.connections
        self._active: dict[asyncio.Task[bool | datetime], tuple[W, GoOn]] = {}
        self._settling: list[tuple[datetime, W, GoOn]] = []

    async def run_rows(self) -> None:
        """Bring each row as far as it comes; the session keeps what ends the run."""
        try:
            while True:
                await self._start_rows()
                if not self._active and self._settling and self._session.error is None:
                    if self._sleep is None:
                        return
                    await self._resume_due_rows(self._sleep)
                if not self._active:
                    return
                done, _ = await asyncio.wait(self._active, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    self._end_row(task, *self._active.pop(task))
        finally:
            for task in self._active:
                task.cancel()
            await asyncio.gather(*self._active, return_exceptions=True)

    async def _start_rows(self) -> None:
        """Begin rows: as many as there are connections, and as many that wait for a place."""
        rows_max = ROWS_A_CONNECTION * self._connections
        is_more = True
        while is_more and self._session.error is None:
            free = rows_max - len(self._active)
            if free < self._connections:
                return
            # It may have to read the next rows.
            begun = await asyncio.to_thread(self._next_rows, free)
            for each in begun:
                if each is None:
                    self._session.on_row_end()
                else:
                    self._run_row(*each)
            is_more = len(begun) == free

    def _next_rows(self, count: int) -> list[tuple[W, GoOn] | None]:
        """The next rows, at most so many; None for a row that may not begin."""
        found: list[tuple[W, GoOn] | None] = []
        while len(found) < count:
            match self._order.next():
                case None:
                    break
                case BlockedRow(row, by):
                    self._session.journal.mark_blocked(row.key, *_blocked(by))
                    found.append(None)
                case row:
                    found.append((row, self._begin(row)))
        return found

    def _run_row(self, row: W, go_on: GoOn) -> None:
        self._active[asyncio.ensure_future(go_on())] = row, go_on

    def _end_row(self, task: asyncio.Task[bool | datetime], row: W, go_on: GoOn) -> None:
        """Take note of a row that can go no further now."""
        try:
            ended = task.result()
        except PushStopped:
            return
        except ConnectorError as error:
            self._session.stop(error)
            return
        if isinstance(ended, datetime):
            self._settling.append((ended, row, go_on))
            return
        self._order.end_row(row, is_open=ended)

    async def _resume_due_rows(self, sleep: Sleep) -> None:
        """Wait for the first row that must settle, and go on with all that have."""
        self._settling.sort(key=lambda each: (each[0], each[1].key))
        until = self._settling[0][0]
        while (left := (until - self._session.now()).total_seconds()) > 0:
            self._session.on_wait(until, len(self._settling))
            await sleep(min(left, WAIT_SECONDS_MAX))
        while self._settling and len(self._active) < self._connections:
            if self._settling[0][0] > self._session.now():
                return
            self._run_row(*self._settling.pop(0)[1:])


def _blocked(by: RowKey) -> tuple[Transition, RowKey]:
    batch, number = by
    problem = Problem(
        "in_doubt_elsewhere",
        f"row {number} of the batch {batch} is for the same record and is unconfirmed",
        fix="Resolve that row with 'connector resolve', then push this row again.",
    )
    return Transition("kept", problem.code, (problem,)), by
