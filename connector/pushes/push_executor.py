"""Executors of a push: they perform the commands of several rows at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Generic, Self, TypeVar

from connector.catalog import declaration
from connector.catalog.resource import Page, Resource
from connector.client.messages import (
    Request,
    build_convert_request,
    build_create_request,
    build_update_request,
    read_record,
    served_at,
)
from connector.errors import (
    ConnectorError,
    Misused,
    NoAnswer,
    NotFound,
    ServerFailed,
    UnreadableAnswer,
)
from connector.ledger.journal_records import Attempt, BatchRecord, PendingRow, RowKey, Transition
from connector.ledger.journal_writer import JournalWriter
from connector.ledger.push_plan import BlockedRow, Problem, QueuedRow, RowQueue
from connector.ledger.push_states import Task
from connector.pulls.outcome import Progress
from connector.pulls.run_context import RunContext
from connector.pushes.landed_writes import AnswerLoader
from connector.pushes.push_row import (
    Accepted,
    Answer,
    ClaimedRecords,
    InvalidBody,
    ListNewest,
    Lost,
    NewestBefore,
    OpenCreates,
    PushCommand,
    PushSteps,
    ReadOne,
    RecordAttempt,
    Send,
    Unsent,
    WaitUntil,
    answer_from_error,
)
from connector.warehouse.stream import DeletionProof, FoundDetail, Outcome, UnreadableDetail

# -- Push session ----------------------------------------------------------------------------------
# The journal is read and written in a thread, so that running requests do not wait for the disk.


UNANSWERED_MAX = 5
"""Maximum number of writes without an answer, one after another."""

LIMITED_MAX = 3
"""Maximum number of writes that the rate limit refused, one after another, after the client's
retries.
"""


class PushStopped(Exception):
    """Nothing more may be sent in this run. The row keeps its state in the journal."""


@dataclass(slots=True)
class PushSession:
    """State that all rows of a run share.

    Attributes:
        server_ahead: Server clock minus our clock, by the last answer.
        is_read_only: Whether the run sends no writes.
        is_eager: Whether unconfirmed rows are looked up once before their waiting time is over.
        progress: Last progress that was reported.
        error: Error after which nothing more may be sent.
        newest_pages: First page of the list before the first create, by parent.
        row_slots: Limits the rows that are sent at the same time; a kill leaves them unconfirmed.
    """

    context: RunContext
    journal: JournalWriter
    loader: AnswerLoader
    server_ahead: timedelta
    is_read_only: bool = False
    is_eager: bool = False
    progress: Progress | None = None
    error: ConnectorError | None = None
    unanswered_in_a_row: int = 0
    limited_in_a_row: int = 0
    newest_pages: dict[str | None, Page[Resource]] = field(default_factory=dict)
    newest_lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    row_slots: asyncio.Semaphore = field(init=False)

    def __post_init__(self) -> None:
        self.row_slots = asyncio.Semaphore(self.context.connections)

    @classmethod
    def of(cls, context: RunContext) -> Self:
        """Return a new session for a run that has the lease of pushes."""
        ledger, run_id, now = context.lease.ledger, context.run.run_id, context.now
        journal = JournalWriter(ledger, run_id, now=now)
        landing = AnswerLoader(context.warehouse, run_id, now)
        ahead = timedelta(seconds=ledger.read_server_state().offset_seconds)
        return cls(context, journal, landing, ahead)

    def now(self) -> datetime:
        """Return the time of our own clock."""
        return self.context.now()

    @property
    def served_at(self) -> datetime:
        """Estimated time of the server's clock."""
        return self.now() + self.server_ahead

    async def record_transition(self, row: PendingRow, transition: Transition) -> None:
        """Record a transition in the journal, and load the record of its answer."""
        await asyncio.to_thread(self.journal.record_transition, row.key, transition)
        await self.loader.add_answer(row.task, transition)

    # -- Progress ---------------------------------------------------------------------------------

    def on_batch_start(self, batch: BatchRecord, rows: int) -> None:
        """Report the number of unfinished rows of the batch."""
        self.progress = Progress(batch.resource, pending=rows, batch=batch.batch)
        self.context.watch(self.progress)

    def on_row_end(self) -> None:
        """Report that one row less is pending: it has ended, or cannot continue in this run."""
        assert self.progress is not None, "no batch was begun"
        read, pending = self.progress.read + 1, self.progress.pending - 1
        requests = self.context.tally.requests
        self.progress = replace(self.progress, read=read, pending=pending, requests=requests)
        self.context.watch(self.progress)

    def on_wait(self, until: datetime, rows: int) -> None:
        """Report that only unconfirmed rows are left, and until when they wait."""
        assert self.progress is not None, "no batch was begun"
        self.context.watch(replace(self.progress, pending=rows, until=until))

    # -- Limits -----------------------------------------------------------------------------------

    def check_can_send(self, *, is_write: bool = False) -> None:
        """Raise `PushStopped` if no request may be sent, or no write if `is_write`."""
        if self.error is not None or (is_write and self.is_read_only):
            raise PushStopped

    def stop(self, error: ConnectorError) -> None:
        """Let nothing more be sent in this run. The first error is kept."""
        self.error = self.error or error

    def record_server_time(self, server_time: datetime | None) -> None:
        """Update `server_ahead` from the time of an answer; None changes nothing."""
        if server_time is not None:
            self.server_ahead = server_time - self.now()

    def record_write_end(self, error: ConnectorError | None) -> None:
        """Count failed writes in a row, and stop the run if other rows would fail as well."""
        if error is None:
            self.unanswered_in_a_row = self.limited_in_a_row = 0
            return
        match answer_from_error(error):
            case Lost():
                self._count_unanswered(error)
            case Unsent(is_limited=True):
                self.limited_in_a_row += 1
                if self.limited_in_a_row >= LIMITED_MAX:
                    self.stop(error)
            case Unsent():
                self.stop(error)
            case _:
                self.unanswered_in_a_row = self.limited_in_a_row = 0

    def _count_unanswered(self, error: ConnectorError) -> None:
        """Count an unanswered request, and stop the run after `UNANSWERED_MAX` in a row."""
        self.unanswered_in_a_row += 1
        if self.unanswered_in_a_row >= UNANSWERED_MAX:
            self.stop(error)

    # -- Reads ------------------------------------------------------------------------------------
    # They raise `PushStopped` for errors that every further request would meet as well.

    async def read_record(self, task: Task, id: str) -> Outcome:
        """Read the complete record as it is now; a proof if it is deleted."""
        self.check_can_send()
        try:
            record = await self.context.client.detail(task.resource, id, task.parent)
        except ConnectorError as error:
            # Only the API's own words prove that a record is gone; a proxy's page proves nothing.
            if isinstance(error, NotFound) and error.is_api_error:
                return DeletionProof(error.served_at or self.now())
            return self._unreadable_or_stop(error)
        self.record_server_time(record.served_at)
        return FoundDetail(record, record.served_at or self.now())

    async def list_newest(self, task: Task, number: int) -> Page[Resource] | UnreadableDetail:
        """Read a page of the list, sorted by creation, newest first."""
        self.check_can_send()
        try:
            page = await self.context.client.page(
                task.resource, task.parent, page=number, sort="created_at", order="desc"
            )
        except ConnectorError as error:
            return self._unreadable_or_stop(error)
        self.record_server_time(page.served_at)
        return replace(page, received_at=self.now())

    async def newest_before_creates(self, task: Task) -> Page[Resource] | UnreadableDetail:
        """Return the first page of the list as it was before the run's first create. It is read
        once.
        """
        async with self.newest_lock:
            if task.parent in self.newest_pages:
                return self.newest_pages[task.parent]
            page = await self.list_newest(task, 1)
            if isinstance(page, Page):
                self.newest_pages[task.parent] = page
            return page

    def _unreadable_or_stop(self, error: ConnectorError) -> UnreadableDetail:
        """Return that a record cannot be read now, or stop the run if other rows would fail, too.

        Raises `PushStopped` in the second case.
        """
        if not isinstance(error, ServerFailed | NoAnswer | UnreadableAnswer):
            self.stop(error)
            raise PushStopped from None
        self._count_unanswered(error)
        return UnreadableDetail(error.code)


# -- Push executor ---------------------------------------------------------------------------------


Sleep = Callable[[float], Coroutine[Any, Any, None]]
RunRow = Callable[[], Coroutine[Any, Any, bool | datetime]]

W = TypeVar("W", bound=QueuedRow)

WAIT_SECONDS_MAX = 30.0
"""Maximum length of one wait for unconfirmed rows, so that the progress is reported."""


ROWS_A_CONNECTION = 3
"""Rows that run for each connection: one is being sent, and the others wait for their turn."""


@dataclass(slots=True)
class RowExecutor:
    """Carries out the commands of one row, and keeps its next command while it waits."""

    row: PendingRow
    steps: PushSteps[bool]
    session: PushSession
    next_command: PushCommand | None = None
    request: Request | None = field(default=None, repr=False)
    has_looked_early: bool = False

    async def run(self) -> bool | datetime:
        """Carry out the commands of the row until it ends or has to wait.

        Returns True if the row's write is open when it ends, False if not, or the time before which
        the row cannot continue. Raises `PushStopped`, and errors that every other row would meet as
        well.
        """
        async with self.session.row_slots:
            try:
                wanted = self.next_command or next(self.steps)
                while True:
                    if isinstance(wanted, WaitUntil) and self.session.now() < wanted.moment:
                        if self.has_looked_early or not self.session.is_eager:
                            self.next_command = wanted
                            return wanted.moment
                        self.has_looked_early = True
                    wanted = self.steps.send(await self._carry_out(wanted))
            except StopIteration as ended:
                self.session.on_row_end()
                return bool(ended.value)
            except BaseException:
                self.steps.close()
                raise

    async def _carry_out(self, command: PushCommand) -> Any:
        """Carry out one command, and return its answer."""
        session, task, key = self.session, self.row.task, self.row.key
        answer: Any = None
        match command:
            case RecordAttempt():
                answer = await self._record_attempt(command)
            case Send():
                answer = await self._send()
            case Transition():
                await session.record_transition(self.row, command)
            case ListNewest(page):
                answer = await session.list_newest(task, page)
            case NewestBefore():
                answer = await session.newest_before_creates(task)
            case ReadOne(id):
                answer = await session.read_record(task, id)
            case ClaimedRecords(ids):
                answer = await asyncio.to_thread(session.journal.records_of_others, key, ids)
            case OpenCreates():
                answer = await asyncio.to_thread(session.journal.other_open_creates, key)
        return answer

    async def _record_attempt(self, command: RecordAttempt) -> Attempt | InvalidBody:
        """Build the request of an attempt, record it in the journal, and keep it to be sent."""
        self.session.check_can_send(is_write=True)
        task = self.row.task
        resource, fields, id = declaration(task.resource), command.fields or {}, command.record_id
        try:
            match command.operation:
                case "create":
                    request = build_create_request(resource, fields, task.parent)
                case "update":
                    request = build_update_request(resource, id or "", fields, task.parent)
                case "convert":
                    request = build_convert_request(resource, id or "")
        except Misused as error:
            return InvalidBody(str(error))
        self.request = request
        session, before, sent_after = self.session, command.before, self.session.served_at
        return await asyncio.to_thread(
            session.journal.record_attempt,
            self.row.key,
            request,
            before=before,
            sent_after=sent_after,
        )

    async def _send(self) -> Answer:
        """Send the recorded request once, and return the answer."""
        request, self.request = self.request, None
        assert request is not None, "nothing was intended"
        try:
            answer = await self.session.context.client.send(request)
            raw = read_record(request, answer)
        except ConnectorError as error:
            self.session.record_write_end(error)
            return answer_from_error(error)
        self.session.record_write_end(None)
        server_time = served_at(answer)
        self.session.record_server_time(server_time)
        return Accepted(declaration(self.row.task.resource).record(raw, served_at=server_time))


class BatchExecutor(Generic[W]):
    """Runs all rows of a queue, several at the same time, started in their order.

    At most `ROWS_A_CONNECTION` rows for each connection run at the same time. Unconfirmed rows are
    continued last; without `sleep` they stay unconfirmed.

    Args:
        session: Shared state of the rows.
        queue: Queue of the rows.
        make_run: Returns the function that runs or continues a row, as `RowExecutor.run` does.
        sleep: Waits until unconfirmed rows can be looked up.
    """

    def __init__(
        self,
        session: PushSession,
        queue: RowQueue[W],
        make_run: Callable[[W], RunRow],
        sleep: Sleep | None,
    ) -> None:
        self._session, self._order, self._begin, self._sleep = session, queue, make_run, sleep
        self._connections = session.context.connections
        self._active: dict[asyncio.Task[bool | datetime], tuple[W, RunRow]] = {}
        self._waiting: list[tuple[datetime, W, RunRow]] = []

    async def run_rows(self) -> None:
        """Run all rows. If the run ends early, the session has the error."""
        try:
            while True:
                await self._start_rows()
                if not self._active and self._waiting and self._session.error is None:
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
        """Start rows until the maximum number is running, or no row can start."""
        rows_max = ROWS_A_CONNECTION * self._connections
        is_more = True
        while is_more and self._session.error is None:
            free = rows_max - len(self._active)
            if free < self._connections:
                return
            # This may read the next rows from the disk.
            begun = await asyncio.to_thread(self._next_rows, free)
            for each in begun:
                if each is None:
                    self._session.on_row_end()
                else:
                    self._start_row(*each)
            is_more = len(begun) == free

    def _next_rows(self, count: int) -> list[tuple[W, RunRow] | None]:
        """Return at most `count` rows to start; None in place of a row that another row blocks."""
        found: list[tuple[W, RunRow] | None] = []
        while len(found) < count:
            match self._order.next_row():
                case None:
                    break
                case BlockedRow(row, by):
                    self._session.journal.mark_blocked(row.key, *_blocked_transition(by))
                    found.append(None)
                case row:
                    found.append((row, self._begin(row)))
        return found

    def _start_row(self, row: W, run: RunRow) -> None:
        """Start a task that runs the row."""
        self._active[asyncio.ensure_future(run())] = row, run

    def _end_row(self, task: asyncio.Task[bool | datetime], row: W, run: RunRow) -> None:
        """Handle the result of a row's task: the row has ended, has to wait, or stops the run."""
        try:
            ended = task.result()
        except PushStopped:
            return
        except ConnectorError as error:
            self._session.stop(error)
            return
        if isinstance(ended, datetime):
            self._waiting.append((ended, row, run))
            return
        self._order.end_row(row, is_open=ended)

    async def _resume_due_rows(self, sleep: Sleep) -> None:
        """Sleep until the first unconfirmed row may continue, and start all that may."""
        self._waiting.sort(key=lambda each: (each[0], each[1].key))
        until = self._waiting[0][0]
        while (left := (until - self._session.now()).total_seconds()) > 0:
            self._session.on_wait(until, len(self._waiting))
            await sleep(min(left, WAIT_SECONDS_MAX))
        while self._waiting and len(self._active) < self._connections:
            if self._waiting[0][0] > self._session.now():
                return
            self._start_row(*self._waiting.pop(0)[1:])


def _blocked_transition(by: RowKey) -> tuple[Transition, RowKey]:
    """Return the transition of a row that the row `by` blocks, and that row's key."""
    batch, number = by
    problem = Problem(
        "in_doubt_elsewhere",
        f"row {number} of the batch {batch} is for the same record and is unconfirmed",
        fix="Resolve that row with 'connector resolve', then push this row again.",
    )
    return Transition("kept", problem.code, (problem,)), by
