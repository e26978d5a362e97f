"""Drivers of rows: they perform the commands of several engines at once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any

from connector.catalog import declaration
from connector.client.answer import served_at
from connector.client.envelope import read_written
from connector.client.request import Request, convert_request, create_request, update_request
from connector.engine.push import push
from connector.engine.push_commands import (
    Accepted,
    Answer,
    Attempt,
    Claim,
    Claimant,
    Intend,
    ListNewest,
    Move,
    Newest,
    OfOthers,
    OpenCreates,
    PushCommand,
    PushSteps,
    ReadOne,
    Send,
    Unfit,
    WaitUntil,
    answer_of,
)
from connector.engine.push_plan import Blocked, Order, RowProblem, marker_of
from connector.engine.push_states import RowEvent
from connector.errors import ConnectorError, Misused
from connector.ledger.journal_reads import BatchRecord, Key, Pending, PendingRow
from connector.ledger.journal_writes import JournalChange
from connector.pulls.outcome import RequestTally
from connector.pushes.batch_report import BatchWatch
from connector.pushes.push_session import Halted, PushSession

Sleep = Callable[[float], Coroutine[Any, Any, None]]

WAIT_SECONDS_MAX = 30.0
"""A wait for rows to settle is cut into waits no longer than this, so that those who watch know."""


ROWS_A_CONNECTION = 3
"""Rows that are begun for each connection: one is sent while the next ones wait for its place."""


_ENDS: frozenset[RowEvent] = frozenset(("accepted", "altered", "refused"))
"""Transitions after an answer with which a row has ended: nothing more is sent for it."""


@dataclass(slots=True)
class RowDriver:
    """Driver of one row: its engine, and what it waits with."""

    row: PendingRow
    steps: PushSteps[bool]
    session: PushSession
    wanted: PushCommand | None = None
    request: Request | None = field(default=None, repr=False)
    has_place: bool = False

    async def go_on(self) -> bool | datetime:
        """Perform command after command. Ends with whether the row is open once its engine
        is done, or with the moment before which it cannot go on.

        Raises `Halted`, and errors that every further row would meet as well.
        """
        await self.session.places.acquire()
        self.has_place = True
        try:
            wanted = self.wanted or next(self.steps)
            while True:
                if isinstance(wanted, WaitUntil) and self.session.now() < wanted.moment:
                    self.wanted = wanted
                    return wanted.moment
                wanted = self.steps.send(await self._perform(wanted))
        except StopIteration as ended:
            return bool(ended.value)
        except BaseException:
            self.steps.close()
            raise
        finally:
            self._leave_place()

    async def _perform(self, wanted: PushCommand) -> Any:
        session, task, key = self.session, self.row.task, self.row.key
        answer: Any = None
        match wanted:
            case Intend():
                answer = await self._intend(wanted)
            case Send():
                answer = await self._send()
            case Move():
                if wanted.event in _ENDS and session.claims is None:
                    # The next row's intent is written behind this outcome, in one commit. With
                    # claims it would come too late for that, and each row ends by itself.
                    self._leave_place()
                await session.move(self.row, wanted)
            case ListNewest(page):
                answer = await session.list_newest(task, page)
            case Newest():
                answer = await session.newest_before(task)
            case Claim():
                answer = await self._claim()
            case ReadOne(id):
                answer = await session.read(task, id)
            case OfOthers(ids):
                answer = await asyncio.to_thread(session.journal.of_others, key, ids)
            case OpenCreates():
                answer = await asyncio.to_thread(session.journal.open_creates, key)
        return answer

    async def _intend(self, wanted: Intend) -> Attempt | Unfit:
        self.session.may_leave()
        task = self.row.task
        resource, fields, id = declaration(task.resource), wanted.fields or {}, wanted.record_id
        try:
            match wanted.operation:
                case "create":
                    request = create_request(resource, fields, task.parent)
                case "update":
                    request = update_request(resource, id or "", fields, task.parent)
                case "convert":
                    request = convert_request(resource, id or "")
        except Misused as error:
            return Unfit(str(error))
        key, before, sent_after = self.row.key, wanted.before, self.session.served_at

        def intend(change: JournalChange) -> Attempt:
            return change.intend(key, request, before, sent_after)

        attempt = await self.session.queue.write(intend)
        self.request = request
        return attempt

    def _leave_place(self) -> None:
        if self.has_place:
            self.has_place = False
            self.session.places.release()

    async def _send(self) -> Answer:
        """Send what was intended, once: a request leaves no second time."""
        request, self.request = self.request, None
        assert request is not None, "nothing was intended"
        try:
            with self.session.queue.awaits_answer():
                answer = await self.session.client.send(request)
            raw, _ = read_written(request, answer)
        except ConnectorError as error:
            self.session.write_ended(error)
            return answer_of(error)
        self.session.write_ended(None)
        told = served_at(answer)
        self.session.heard(told)
        return Accepted(declaration(self.row.task.resource).record(raw, served_at=told))

    async def _claim(self) -> Claimant | None:
        self.session.may_leave()
        if self.session.claims is None:
            return None
        may_take = partial(self.session.journal.may_take, self.row.key)
        return await asyncio.to_thread(
            self.session.claims.claim, self.row.task, self.row.key, may_take
        )


class BatchDriver:
    """Driver of all rows of one run, `connections` of which may be under way at once:
    begun in order, and those that must settle last. `pending` is how many they are, and which
    are open.
    """

    def __init__(
        self,
        session: PushSession,
        rows: Iterable[PendingRow],
        pending: Pending,
        *,
        connections: int,
        watch: BatchWatch | None,
        tally: RequestTally,
        sleep: Sleep,
    ) -> None:
        self._session, self._rows, self._pending = session, rows, pending
        self._connections = connections
        self._watch, self._tally, self._sleep = watch, tally, sleep
        self._active: dict[asyncio.Task[bool | datetime], RowDriver] = {}
        self._settling: list[tuple[datetime, RowDriver]] = []
        self._batches: dict[str, BatchRecord] = {}
        self._ended = 0

    async def to_their_ends(self) -> None:
        """Bring each row as far as it comes; the session keeps what ends the run."""
        open_about = await asyncio.to_thread(self._session.journal.open_subjects)
        order = Order(self._rows, open_about, self._pending.open)
        try:
            while True:
                await self._start(order)
                if not self._active and self._settling and self._session.error is None:
                    await self._wake()
                if not self._active:
                    return
                done, _ = await asyncio.wait(self._active, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    self._finish(task, self._active.pop(task), order)
        finally:
            for task in self._active:
                task.cancel()
            await asyncio.gather(*self._active, return_exceptions=True)
            await self._session.queue.finish()

    async def _start(self, order: Order[PendingRow]) -> None:
        """Begin rows: as many as there are connections, and as many that wait for a place."""
        rows_max = ROWS_A_CONNECTION * self._connections
        is_more = True
        while is_more and self._session.error is None:
            free = rows_max - len(self._active)
            if free < self._connections:
                return
            # It may have to read the next rows.
            drivers = await asyncio.to_thread(self._next, order, free)
            for driver in drivers:
                if driver is None:
                    self._count()
                else:
                    self._go_on(driver)
            is_more = len(drivers) == free

    def _next(self, order: Order[PendingRow], count: int) -> list[RowDriver | None]:
        """Drivers of the next rows, at most so many; None for a row that may not begin."""
        found: list[RowDriver | None] = []
        while len(found) < count:
            match order.next():
                case None:
                    break
                case Blocked(row, by):
                    self._session.journal.block(row.key, *_blocked(by))
                    found.append(None)
                case row:
                    found.append(RowDriver(row, self._steps(row), self._session))
        return found

    def _go_on(self, driver: RowDriver) -> None:
        self._active[asyncio.ensure_future(driver.go_on())] = driver

    def _steps(self, row: PendingRow) -> PushSteps[bool]:
        batch = row.key[0]
        if batch not in self._batches:
            self._batches[batch] = self._session.journal.batch(batch)
        begun = self._batches[batch]
        marker = marker_of(begun.terms, begun.digest, row.key[1])
        return push(declaration(row.task.resource), row.task, begun.terms, marker, row.standing)

    def _finish(
        self, task: asyncio.Task[bool | datetime], driver: RowDriver, order: Order[PendingRow]
    ) -> None:
        """Take note of a row that can go no further now."""
        try:
            ended = task.result()
        except Halted:
            return
        except ConnectorError as error:
            self._session.halt(error)
            return
        if isinstance(ended, datetime):
            self._settling.append((ended, driver))
            return
        order.ended(driver.row, is_open=ended)
        self._count()

    def _count(self) -> None:
        self._ended += 1
        if self._watch is not None:
            self._watch.moved(self._ended, self._pending.rows, self._tally.requests)

    async def _wake(self) -> None:
        """Wait for the first row that must settle, and go on with all that have."""
        self._settling.sort(key=lambda each: (each[0], each[1].row.key))
        until = self._settling[0][0]
        while (left := (until - self._session.now()).total_seconds()) > 0:
            if self._watch is not None:
                self._watch.waiting(until, len(self._settling))
            await self._sleep(min(left, WAIT_SECONDS_MAX))
        while self._settling and len(self._active) < self._connections:
            if self._settling[0][0] > self._session.now():
                return
            self._go_on(self._settling.pop(0)[1])


def _blocked(by: Key) -> tuple[Move, Key]:
    batch, number = by
    problem = RowProblem(
        "in_doubt_elsewhere",
        f"row {number} of the batch {batch} is about the same thing, and its fate is unknown",
        fix="Settle that row with 'connector resolve', then push this one again.",
    )
    return Move("kept", problem.code, (problem,)), by
