"""Driving one row: perform what its engine asks, over the client and the journal.

Nothing is decided here about what to write. The journal is asked in a thread, so that requests
under way are not held up by the disk.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from connector.catalog import declaration
from connector.catalog.page import Page
from connector.catalog.resource import Resource
from connector.client.answer import served_at
from connector.client.client import Client
from connector.client.endpoint import Endpoint
from connector.client.envelope import read_written
from connector.client.request import Request, convert_request, create_request, update_request
from connector.engine.commands import Found, Gone, Outcome, Unread
from connector.engine.push import push
from connector.engine.push_commands import (
    Accepted,
    Answer,
    Attempt,
    Claim,
    Claimant,
    Intend,
    ListNewest,
    Lost,
    Move,
    Newest,
    OfOthers,
    OpenCreates,
    PushCommand,
    PushSteps,
    ReadOne,
    Send,
    Unfit,
    Unsent,
    WaitUntil,
    answer_of,
)
from connector.engine.push_plan import Blocked, Order, RowProblem, marker_of
from connector.errors import ConnectorError, Misused
from connector.errors_api import NoAnswer, NotFound, ServerFailed, UnreadableAnswer
from connector.lakehouse.push_claims import PushClaims
from connector.ledger.journal import Journal
from connector.ledger.journal_reads import BatchRecord, Key, Left, Work
from connector.pulls.outcome import RequestTally
from connector.pushes.batch_report import BatchWatch
from connector.pushes.landed import Landing

IN_A_ROW_MAX = 5
"""Writes without an answer, one after another, after which nothing more is sent."""

LIMITED_MAX = 3
"""Writes refused for their speed, one after another, the client's own repeats not counted."""


class Halted(Exception):
    """Nothing more may be sent in this run; the row stays as the journal has it."""


@dataclass(slots=True)
class Scene:
    """What the rows of a run act on together. `error` is why nothing more may be sent; `ahead` is
    how far the server's clock is ahead of ours, as last told. `claims` is the journal that folders
    share, if they do. `newest` is the page listed before the first create, by parent.
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

    async def move(self, row: Work, move: Move) -> None:
        """Record a transition, land what it showed, and note in the claims how the row ended."""
        state = await asyncio.to_thread(self.journal.move, row.key, move)
        await self.landing.add(row.task, move)
        if self.claims is not None and row.task.operation == "create":
            await asyncio.to_thread(self.claims.moved, row.task, row.key, move, state)

    def halt(self, error: ConnectorError) -> None:
        """Let nothing more leave. The first reason is the one that counts."""
        self.error = self.error or error

    def heard(self, told: datetime | None) -> None:
        """Take note of the server's clock."""
        if told is not None:
            self.ahead = told - self.now()

    def silent(self, error: ConnectorError) -> None:
        """One more that was not answered: too many in a row, and the server is left alone."""
        self.lost_in_a_row += 1
        if self.lost_in_a_row >= IN_A_ROW_MAX:
            self.halt(error)

    def write_ended(self, error: ConnectorError | None) -> None:
        """Take note of how a write ended, and whether others would end so as well."""
        match None if error is None else answer_of(error):
            case Lost():
                assert error is not None
                self.silent(error)
            case Unsent(_, True):
                assert error is not None
                self.limited_in_a_row += 1
                if self.limited_in_a_row >= LIMITED_MAX:
                    self.halt(error)
            case Unsent():
                assert error is not None
                self.halt(error)
            case _:
                self.lost_in_a_row = self.limited_in_a_row = 0


@dataclass(slots=True)
class Course:
    """One row under way: its engine, and what it waits with."""

    row: Work
    steps: PushSteps[bool]
    scene: Scene
    wanted: PushCommand | None = None
    request: Request | None = field(default=None, repr=False)

    async def go_on(self) -> bool | datetime:
        """Perform ask after ask. Ends with whether the row is open once its engine is done, or
        with the moment before which it cannot go on.

        Raises `Halted`, and errors that every further row would meet as well.
        """
        try:
            wanted = self.wanted or next(self.steps)
            while True:
                if isinstance(wanted, WaitUntil) and self.scene.now() < wanted.moment:
                    self.wanted = wanted
                    return wanted.moment
                wanted = self.steps.send(await self._perform(wanted))
        except StopIteration as ended:
            return bool(ended.value)
        except BaseException:
            self.steps.close()
            raise

    async def _perform(self, wanted: PushCommand) -> Any:
        answer: Any = None
        match wanted:
            case Intend():
                answer = await self._intend(wanted)
            case Send():
                answer = await self._send()
            case Move():
                await self.scene.move(self.row, wanted)
            case ListNewest(page):
                answer = await self._list(page)
            case Newest():
                answer = await self._newest()
            case Claim():
                answer = await self._claim()
            case ReadOne(id):
                answer = await self._read(id)
            case OfOthers(ids):
                answer = await asyncio.to_thread(self.scene.journal.of_others, self.row.key, ids)
            case OpenCreates():
                answer = await asyncio.to_thread(self.scene.journal.open_creates, self.row.key)
        return answer

    def _may_leave(self) -> None:
        if self.scene.error is not None:
            raise Halted

    @property
    def _endpoint(self) -> Endpoint[Resource]:
        task = self.row.task
        return Endpoint(self.scene.client, declaration(task.resource).record, task.parent)

    # -- writes -----------------------------------------------------------------------------------

    async def _intend(self, wanted: Intend) -> Attempt | Unfit:
        self._may_leave()
        try:
            request = self._request(wanted)
        except Misused as error:
            return Unfit(str(error))
        attempt = await asyncio.to_thread(
            self.scene.journal.intend,
            self.row.key,
            request,
            before=wanted.before,
            sent_after=self.scene.now() + self.scene.ahead,
        )
        self.request = request
        return attempt

    def _request(self, wanted: Intend) -> Request:
        task = self.row.task
        resource, fields, id = declaration(task.resource), wanted.fields or {}, wanted.record_id
        match wanted.operation:
            case "create":
                return create_request(resource, fields, task.parent)
            case "update":
                return update_request(resource, id or "", fields, task.parent)
            case "convert":
                return convert_request(resource, id or "")

    async def _send(self) -> Answer:
        """Send what was intended, once: a request leaves no second time."""
        request, self.request = self.request, None
        assert request is not None, "nothing was intended"
        try:
            answer = await self.scene.client.send(request)
            raw, _ = read_written(request, answer)
        except ConnectorError as error:
            self.scene.write_ended(error)
            return answer_of(error)
        self.scene.write_ended(None)
        told = served_at(answer)
        self.scene.heard(told)
        record = declaration(self.row.task.resource).record
        return Accepted(record(raw, served_at=told))

    async def _claim(self) -> Claimant | None:
        self._may_leave()
        if self.scene.claims is None:
            return None
        may_take = partial(self.scene.journal.may_take, self.row.key)
        return await asyncio.to_thread(
            self.scene.claims.claim, self.row.task, self.row.key, may_take
        )

    # -- reads ------------------------------------------------------------------------------------

    async def _newest(self) -> Page[Resource] | Unread:
        """The first page of the list as it was before the first create; rows wait for one read."""
        parent = self.row.task.parent
        async with self.scene.looking:
            if parent in self.scene.newest:
                return self.scene.newest[parent]
            page = await self._list(1)
            if isinstance(page, Page):
                self.scene.newest[parent] = page
            return page

    async def _list(self, number: int) -> Page[Resource] | Unread:
        self._may_leave()
        try:
            page = await self._endpoint.list(page=number, sort="created_at", order="desc")
        except (ServerFailed, NoAnswer, UnreadableAnswer) as error:
            self.scene.silent(error)
            return Unread(error.code)
        except ConnectorError as error:
            self.scene.halt(error)
            raise
        self.scene.heard(page.served_at)
        return replace(page, heard_at=self.scene.now())

    async def _read(self, id: str) -> Outcome:
        self._may_leave()
        try:
            record = await self._endpoint.get(id)
        except NotFound as error:
            # Only the API's own words prove that a record is gone; a proxy's page proves nothing.
            if error.is_api_error:
                return Gone(error.served_at or self.scene.now())
            self.scene.halt(error)
            raise
        except (ServerFailed, NoAnswer, UnreadableAnswer) as error:
            self.scene.silent(error)
            return Unread(error.code)
        except ConnectorError as error:
            self.scene.halt(error)
            raise
        self.scene.heard(record.served_at)
        return Found(record, record.served_at or self.scene.now())


# -- Rows ------------------------------------------------------------------------------------------
# All rows of one run, several at once: begun in order, and those that must settle last.


Sleep = Callable[[float], Coroutine[Any, Any, None]]

WAIT_SECONDS_MAX = 30.0
"""A wait for rows to settle is cut into waits no longer than this, so that those who watch know."""

_Under = dict["asyncio.Task[bool | datetime]", Course]


class Rows:
    """The rows of one run, `connections` of which may be under way at once. `left` is how many they
    are, and which of them are open; they are taken one by one.
    """

    def __init__(
        self,
        scene: Scene,
        rows: Iterable[Work],
        left: Left,
        *,
        connections: int,
        watch: BatchWatch,
        tally: RequestTally,
        sleep: Sleep,
    ) -> None:
        self._scene, self._rows, self._left = scene, rows, left
        self._connections = connections
        self._watch, self._tally, self._sleep = watch, tally, sleep
        self._active: _Under = {}
        self._settling: list[tuple[datetime, Course]] = []
        self._batches: dict[str, BatchRecord] = {}
        self._ended = 0

    async def to_their_ends(self) -> None:
        """Bring each row as far as it comes. What ends the run early is the scene's error; an error
        that is nobody's but ours is raised.
        """
        open_about = await asyncio.to_thread(self._scene.journal.open_subjects)
        order = Order(self._rows, open_about, self._left.open)
        try:
            while True:
                await self._start(order)
                if not self._active and self._settling and self._scene.error is None:
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

    async def _start(self, order: Order[Work]) -> None:
        """Begin as many rows as there are connections."""
        while len(self._active) < self._connections and self._scene.error is None:
            # It may have to read the next rows.
            match await asyncio.to_thread(order.next):
                case None:
                    return
                case Blocked(row, by):
                    await asyncio.to_thread(self._scene.journal.block, row.key, *_blocked(by))
                    self._count()
                case row:
                    steps = await asyncio.to_thread(self._steps, row)
                    self._go_on(Course(row, steps, self._scene))

    def _go_on(self, course: Course) -> None:
        self._active[asyncio.ensure_future(course.go_on())] = course

    def _steps(self, row: Work) -> PushSteps[bool]:
        batch = row.key[0]
        if batch not in self._batches:
            self._batches[batch] = self._scene.journal.batch(batch)
        begun = self._batches[batch]
        marker = marker_of(begun.terms, begun.digest, row.key[1])
        return push(declaration(row.task.resource), row.task, begun.terms, marker, row.standing)

    def _finish(
        self, task: asyncio.Task[bool | datetime], course: Course, order: Order[Work]
    ) -> None:
        """Take note of a row that can go no further now."""
        try:
            ended = task.result()
        except Halted:
            return
        except ConnectorError as error:
            self._scene.halt(error)
            return
        if isinstance(ended, datetime):
            self._settling.append((ended, course))
            return
        order.ended(course.row, is_open=ended)
        self._count()

    def _count(self) -> None:
        self._ended += 1
        self._watch.moved(self._ended, self._left.rows, self._tally.requests)

    async def _wake(self) -> None:
        """Wait until the first of those that must settle has, and go on with all that have."""
        self._settling.sort(key=lambda each: (each[0], each[1].row.key))
        until = self._settling[0][0]
        while (left := (until - self._scene.now()).total_seconds()) > 0:
            self._watch.waiting(until, len(self._settling))
            await self._sleep(min(left, WAIT_SECONDS_MAX))
        while self._settling and len(self._active) < self._connections:
            if self._settling[0][0] > self._scene.now():
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
