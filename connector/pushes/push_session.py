"""Session of a run that writes to the API: requests, journal, reason to end.

Nothing is decided here about what to write. The journal is asked in a thread, so that requests
under way are not held up by the disk.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Self, TypeVar

from connector.catalog import declaration
from connector.catalog.page import Page
from connector.catalog.resource import Resource
from connector.client.client import Client
from connector.client.endpoint import Endpoint
from connector.engine.commands import Found, Gone, Outcome, Unread
from connector.engine.push_commands import Lost, Move, Unsent, answer_of
from connector.engine.push_states import State, Task
from connector.errors import ConnectorError
from connector.errors_api import NoAnswer, NotFound, ServerFailed, UnreadableAnswer
from connector.lakehouse.push_claims import PushClaims
from connector.ledger.journal import Journal
from connector.ledger.journal_reads import Key, PendingRow
from connector.ledger.journal_writes import JournalChange
from connector.pulls.run_context import RunContext
from connector.pushes.landed import Landing

IN_A_ROW_MAX = 5
"""Writes without an answer, one after another, after which nothing more is sent."""

LIMITED_MAX = 3
"""Writes refused for their speed, one after another, the client's own repeats not counted."""


TURNS_TO_JOIN = 3
"""Turns of the event loop that a row needs from its place to its intent."""

GROUP_SECONDS = 0.02
"""How long a change of the journal waits at most for answers that are still under way."""

T = TypeVar("T")


class Halted(Exception):
    """Nothing more may be sent in this run; the row stays as the journal has it."""


class JournalQueue:
    """Changes of the journal that rows make at the same time, written in one transaction.

    They are written in the order in which they came, so that none is on the disk before one that
    came earlier. A change waits for the answers that are under way, but not for long: the outcome
    of one row and the intent of the next are then one commit, and the disk is waited for once.
    """

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._waiting: list[tuple[Callable[[JournalChange], Any], asyncio.Future[Any]]] = []
        self._writing: asyncio.Task[None] | None = None
        self._sending = 0
        self._is_idle = asyncio.Event()

    async def write(self, change: Callable[[JournalChange], T]) -> T:
        """Make a change; it is on the disk when this returns.

        It is made even if the caller is cancelled meanwhile. Raises what the journal raises.
        """
        done: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._waiting.append((change, done))
        if self._writing is None:
            self._writing = asyncio.ensure_future(self._write())
        return await done

    @contextmanager
    def awaits_answer(self) -> Iterator[None]:
        """While a request is under way, whose answer will be written down as well."""
        self._sending += 1
        self._is_idle.clear()
        try:
            yield
        finally:
            self._sending -= 1
            if not self._sending:
                self._is_idle.set()

    async def finish(self) -> None:
        """Wait until everything is written that can be."""
        if self._writing is not None:
            await self._writing

    async def _write(self) -> None:
        while self._waiting:
            if self._sending:
                with suppress(TimeoutError):
                    async with asyncio.timeout(GROUP_SECONDS):
                        await self._is_idle.wait()
            # Rows that wait for the place of one that has its answer come after its outcome.
            for _ in range(TURNS_TO_JOIN):
                await asyncio.sleep(0)
            waiting, self._waiting = self._waiting, []
            changes = [change for change, _ in waiting]
            try:
                made = await asyncio.to_thread(self._journal.together, changes)
            except Exception as error:  # Each row raises it where it waits.
                for _, done in waiting:
                    if not done.done():
                        done.set_exception(error)
            else:
                for (_, done), result in zip(waiting, made, strict=True):
                    if not done.done():
                        done.set_result(result)
        self._writing = None


@dataclass(slots=True)
class PushSession:
    """What the rows of a run act on together. `error` is why nothing more may be sent;
    `ahead` is how far the server's clock is ahead of ours, as last told. `claims` is the
    journal that folders share, if they do. `newest` is the page listed before the first create,
    by parent. `queue` is how the journal is written to, and `places` bounds the rows that
    are under way, and so the intents without an outcome, which a kill puts in doubt.
    """

    client: Client
    journal: Journal
    landing: Landing
    now: Callable[[], datetime]
    ahead: timedelta
    claims: PushClaims | None = None
    error: ConnectorError | None = None
    lost_in_a_row: int = 0
    limited_in_a_row: int = 0
    newest: dict[str | None, Page[Resource]] = field(default_factory=dict)
    looking: asyncio.Lock = field(default_factory=asyncio.Lock)
    queue: JournalQueue = field(init=False)
    places: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(1))

    def __post_init__(self) -> None:
        self.queue = JournalQueue(self.journal)

    @classmethod
    def of(cls, context: RunContext, claims: PushClaims | None = None) -> Self:
        """The session of a run that has the lease of pushes."""
        ledger, run_id, now = context.turn.ledger, context.run.run_id, context.now
        journal = Journal(ledger, run_id, now=now)
        landing = Landing(context.warehouse, run_id, now)
        ahead = timedelta(seconds=ledger.server().offset_seconds)
        places = asyncio.Semaphore(context.connections)
        return cls(context.client, journal, landing, now, ahead, claims, places=places)

    @property
    def served_at(self) -> datetime:
        """The server's time, as far as it is known."""
        return self.now() + self.ahead

    def endpoint(self, task: Task) -> Endpoint[Resource]:
        """Endpoint of the task's resource. Raises `Halted` as `may_leave` does."""
        self.may_leave()
        return Endpoint(self.client, declaration(task.resource).record, task.parent)

    async def move(self, row: PendingRow, move: Move) -> None:
        """Record a transition, land what it showed, and note it in the claims."""
        state = await self.queue.write(partial(_moved, row.key, move))
        await self.landing.add(row.task, move)
        if self.claims is not None and row.task.operation == "create":
            await asyncio.to_thread(self.claims.moved, row.task, row.key, move, state)

    # -- Limits -----------------------------------------------------------------------------------

    def may_leave(self) -> None:
        """Raise `Halted` once nothing more may be sent."""
        if self.error is not None:
            raise Halted

    def halt(self, error: ConnectorError) -> None:
        """Let nothing more leave. The first reason is the one that counts."""
        self.error = self.error or error

    def heard(self, told: datetime | None) -> None:
        """Take note of the server's clock."""
        if told is not None:
            self.ahead = told - self.now()

    def write_ended(self, error: ConnectorError | None) -> None:
        """Take note of how a write ended, and whether others would end so as well."""
        if error is None:
            self.lost_in_a_row = self.limited_in_a_row = 0
            return
        match answer_of(error):
            case Lost():
                self._silent(error)
            case Unsent(is_limited=True):
                self.limited_in_a_row += 1
                if self.limited_in_a_row >= LIMITED_MAX:
                    self.halt(error)
            case Unsent():
                self.halt(error)
            case _:
                self.lost_in_a_row = self.limited_in_a_row = 0

    def _silent(self, error: ConnectorError) -> None:
        """One more that was not answered: too many in a row, and the server is left alone."""
        self.lost_in_a_row += 1
        if self.lost_in_a_row >= IN_A_ROW_MAX:
            self.halt(error)

    # -- Reads ------------------------------------------------------------------------------------
    # They raise `Halted` for what every further request would meet as well.

    async def read(self, task: Task, id: str) -> Outcome:
        """The record as it is now."""
        try:
            record = await self.endpoint(task).get(id)
        except ConnectorError as error:
            # Only the API's own words prove that a record is gone; a proxy's page proves nothing.
            if isinstance(error, NotFound) and error.is_api_error:
                return Gone(error.served_at or self.now())
            return self._unread(error)
        self.heard(record.served_at)
        return Found(record, record.served_at or self.now())

    async def list_newest(self, task: Task, number: int) -> Page[Resource] | Unread:
        """A page of the list, last created first."""
        try:
            page = await self.endpoint(task).list(page=number, sort="created_at", order="desc")
        except ConnectorError as error:
            return self._unread(error)
        self.heard(page.served_at)
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
            self.halt(error)
            raise Halted from None
        self._silent(error)
        return Unread(error.code)


def _moved(key: Key, move: Move, change: JournalChange) -> State:
    return change.move(key, move)
