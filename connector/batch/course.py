"""Driving one row: perform what its engine asks, over the client and the journal.

Nothing is decided here about what to write. The journal is asked in a thread, so that requests
under way are not held up by the disk.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from connector.batch.landing import Landing
from connector.catalog import declaration
from connector.client import Client
from connector.endpoint import Endpoint
from connector.engine.ask import PER_PAGE, Found, Gone, Outcome, PageSeen, Unread
from connector.engine.push_asks import (
    Accepted,
    Answer,
    Ask,
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
    ReadOne,
    Send,
    Steps,
    Unfit,
    Unsent,
    WaitUntil,
    answer_of,
)
from connector.errors import (
    ConnectorError,
    Misused,
    NoAnswer,
    NotFound,
    ServerFailed,
    UnreadableAnswer,
)
from connector.lakehouse.push_claims import Claims
from connector.ledger.journal import Journal
from connector.ledger.push_reads import Work
from connector.resource import Resource
from connector.wire import (
    Request,
    convert_request,
    create_request,
    read_written,
    served_at,
    update_request,
)

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
    claims: Claims | None = None
    error: ConnectorError | None = None
    lost_in_a_row: int = 0
    limited_in_a_row: int = 0
    newest: dict[str | None, PageSeen] = field(default_factory=dict)
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
    steps: Steps[bool]
    scene: Scene
    wanted: Ask | None = None
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

    async def _perform(self, wanted: Ask) -> Any:
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
            exchange = await self.scene.client.send(request)
            raw, _ = read_written(request, exchange.answer)
        except ConnectorError as error:
            self.scene.write_ended(error)
            return answer_of(error)
        self.scene.write_ended(None)
        told = served_at(exchange.answer)
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

    async def _newest(self) -> PageSeen | Unread:
        """The first page of the list as it was before the first create; rows wait for one read."""
        parent = self.row.task.parent
        async with self.scene.looking:
            if parent in self.scene.newest:
                return self.scene.newest[parent]
            page = await self._list(1)
            if isinstance(page, PageSeen):
                self.scene.newest[parent] = page
            return page

    async def _list(self, number: int) -> PageSeen | Unread:
        self._may_leave()
        try:
            page = await self._endpoint.list(
                page=number, per_page=PER_PAGE, sort="created_at", order="desc"
            )
        except (ServerFailed, NoAnswer, UnreadableAnswer) as error:
            self.scene.silent(error)
            return Unread(error.code)
        except ConnectorError as error:
            self.scene.halt(error)
            raise
        self.scene.heard(page.served_at)
        return PageSeen(
            items=page.items,
            page=page.page,
            per_page=page.per_page,
            total=page.total,
            served_at=page.served_at or self.scene.now(),
            round_trip_seconds=page.round_trip_seconds,
            is_server_clock=page.served_at is not None,
            heard_at=self.scene.now(),
        )

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
