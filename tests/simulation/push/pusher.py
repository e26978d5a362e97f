"""The connector's side of a play: the production engine and journal, run against the simulated
server.

One process after another pushes. Each has a generator or coroutine per row. Any of them may
continue next, and the process can be killed before or after any command. The journal is an SQLite
database in memory; its committed contents are all that the next process knows.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

from connector.catalog import declaration
from connector.catalog.resource import Page, Resource
from connector.client.messages import (
    Request,
    build_convert_request,
    build_create_request,
    build_update_request,
    read_record,
    response_error,
    served_at,
)
from connector.errors import ConnectorError, Misused
from connector.ledger.journal_records import Attempt, PendingRow, RowKey, Transition
from connector.ledger.journal_writer import PUSH_LEASE, JournalWriter
from connector.ledger.ledger import Ledger
from connector.ledger.ledger_schema import SCHEMA
from connector.ledger.push_plan import BlockedRow, Problem, PushPlan, PushPolicy, RowQueue
from connector.ledger.push_states import FOR_A_PERSON
from connector.ledger.sqlite_file import transaction
from connector.pushes.push_row import (
    Accepted,
    Answer,
    ClaimedRecords,
    InvalidBody,
    ListNewest,
    NewestBefore,
    OpenCreates,
    PushCommand,
    ReadOne,
    RecordAttempt,
    Send,
    WaitUntil,
    answer_from_error,
)
from connector.warehouse.stream import UnreadableDetail
from tests.simulation import engines
from tests.simulation.harness import Steps, TooManySteps
from tests.simulation.push.world import PushWorld

STEPS_MAX = 3000
"""Steps after which a process counts as endless."""

CommitCheck = Callable[["PushProcess", RowKey | None], None]


class ProcessKilled(Exception):
    """The simulated process was killed."""


@cache
def _empty_ledger() -> bytes:
    """Return the bytes of an SQLite database with the ledger's empty tables."""
    connection = sqlite3.connect(":memory:")
    connection.executescript(SCHEMA)
    return connection.serialize()


class MemoryLedger(Ledger):
    """A ledger in memory, because a file would take most of a play's time."""

    def __init__(self) -> None:
        super().__init__(Path("memory"))
        self.connection = sqlite3.connect(":memory:", isolation_level=None)
        self.connection.deserialize(_empty_ledger())

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Yield the connection, without a transaction."""
        yield self.connection

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Yield the connection in a transaction."""
        with transaction(self.connection):
            yield self.connection


@dataclass
class _RowProgress:
    """A row in progress: its steps, and the command that it is waiting for."""

    row: PendingRow
    steps: Steps
    wanted: PushCommand
    request: Request | None = None
    attempt: Attempt | None = None


class PushProcess:
    """One process with its own run ID. `check_commit` is called after every commit."""

    def __init__(
        self, world: PushWorld, ledger: MemoryLedger, run_id: str, check_commit: CommitCheck
    ) -> None:
        self.world, self.run_id, self._check_commit = world, run_id, check_commit
        self.journal = JournalWriter(ledger, self.run_id, now=world.connector_now)
        self.ledger = ledger
        self.sent = 0
        self._page: Page[Resource] | None = None
        self._batch = cache(self.journal.batch)
        with ledger.writing() as connection:
            connection.execute("DELETE FROM leases")
            connection.execute(
                "INSERT INTO leases VALUES (?, ?, 'push', 1, '', '', '', '', '', '', 0)",
                (PUSH_LEASE, self.run_id),
            )

    def push(self, plan: PushPlan, policy: PushPolicy, landed_before: frozenset[str]) -> str:
        """Push a file until no row can continue, and return the batch ID.

        Raises:
            ProcessKilled: The process was killed by chance.
        """
        self.journal.mark_interrupted_rows()
        self._kill_by_chance()
        batch = self.journal.create_batch(plan, policy, landed_before)
        self._kill_by_chance()
        self._run_rows(batch)
        self._kill_by_chance()
        self.journal.record_run_end(batch, "done", requests=self.sent, seconds=0.0)
        return batch

    def resume(self, batch: str) -> None:
        """Continue an existing batch until no row can continue."""
        self.journal.mark_interrupted_rows()
        self.journal.resume_batch(batch)
        self._run_rows(batch)
        self.journal.record_run_end(batch, "done", requests=self.sent, seconds=0.0)

    def search_rows_in_doubt(self) -> None:
        """Search once for the records of rows in doubt, except rows that need a user's decision, as
        a pull does.

        Raises:
            ProcessKilled: The process was killed by chance.
        """
        self.journal.mark_interrupted_rows()
        for each in self.journal.unconfirmed_rows():
            row = self.journal.row_with_task((each.batch, each.number))
            if row is None or row.status.state in FOR_A_PERSON:
                continue
            steps, may_wait = self._start_steps(row), True
            progress = _RowProgress(row, steps, steps.send(None))
            is_open: bool | None = None
            while is_open is None and not isinstance(progress.wanted, RecordAttempt):
                if isinstance(progress.wanted, WaitUntil):
                    if self.world.connector_now() < progress.wanted.moment and not may_wait:
                        break
                    may_wait = False
                is_open = self._run_step(progress)
            steps.close()

    def _start_steps(self, row: PendingRow) -> Steps:
        """Return the steps of a row: the program's generator or coroutine."""
        batch = self._batch(row.key[0])
        return engines.run_row(declaration(row.task.resource), row.task, batch.terms, row.status)

    def _run_rows(self, batch: str) -> None:
        """Run the rows of a batch in random order, as many in parallel as the scenario has
        connections.

        Raises:
            TooManySteps: The rows do not end.
        """
        left, rows = self.journal.count_pending(batch), self.journal.rows_to_push(batch)
        order = RowQueue(rows, self.journal.open_rows_by_subject(), left.open)
        active: list[_RowProgress] = []
        parked: list[_RowProgress] = []
        for _ in range(STEPS_MAX):
            self._start_rows(order, active)
            if not active and parked:
                # Every row is waiting: let time pass until the first may continue.
                parked.sort(key=lambda each: (_waits_until(each), each.row.key))
                seconds = (_waits_until(parked[0]) - self.world.connector_now()).total_seconds()
                self.world.pass_time(max(0.0, seconds))
                active.append(parked.pop(0))
            if not active:
                assert order.is_empty
                return
            progress = active[self.world.chance.pick(len(active))]
            if (
                isinstance(progress.wanted, WaitUntil)
                and self.world.connector_now() < progress.wanted.moment
            ):
                active.remove(progress)
                parked.append(progress)
            elif (is_open := self._run_step(progress)) is not None:
                active.remove(progress)
                order.end_row(progress.row, is_open=is_open)
        raise TooManySteps

    def _start_rows(self, order: RowQueue[PendingRow], active: list[_RowProgress]) -> None:
        """Start rows until all connections are in use. Blocked rows end immediately."""
        while len(active) < self.world.scenario.connections:
            match order.next_row():
                case None:
                    return
                case BlockedRow(row, by):
                    told = Problem("in_doubt_elsewhere", f"row {by[1]} of {by[0]} is open")
                    self.journal.mark_blocked(row.key, Transition("kept", told.code, (told,)), by)
                    self._check_commit(self, row.key)
                case row:
                    steps = self._start_steps(row)
                    try:
                        active.append(_RowProgress(row, steps, steps.send(None)))
                    except StopIteration as ended:
                        order.end_row(row, is_open=ended.value)

    def _run_step(self, progress: _RowProgress) -> bool | None:
        """Perform a row's command. Return None, or at the row's end True if it remains open."""
        self._kill_by_chance()
        answer = self._execute(progress)
        self._kill_by_chance()
        try:
            progress.wanted = progress.steps.send(answer)
        except StopIteration as ended:
            return bool(ended.value)
        return None

    def _kill_by_chance(self) -> None:
        """Raise `ProcessKilled` with the scenario's probability."""
        if self.world.is_faulty and self.world.chance.happens(self.world.scenario.crashes, "kill"):
            raise ProcessKilled

    def _execute(self, progress: _RowProgress) -> Any:
        """Perform the command that a row is waiting for, and return its answer."""
        key, world = progress.row.key, self.world
        answer: Any = None
        match progress.wanted:
            case RecordAttempt() as wanted:
                answer = self._record_attempt(progress, wanted)
            case Send():
                answer = self._send(progress)
            case Transition() as what:
                state = self.journal.record_transition(key, what)
                self._trace(f"row {key[1]}: {what.event}, {state}")
                self._check_commit(self, key)
            case ListNewest(page):
                answer = world.list_newest(page)
            case NewestBefore():
                answer = self._page_before_creates()
            case ReadOne(id):
                answer = world.read_detail(id)
            case ClaimedRecords(ids):
                answer = self.journal.records_of_others(key, ids)
            case OpenCreates():
                answer = self.journal.other_open_creates(key)
        return answer

    def _page_before_creates(self) -> Page[Resource] | UnreadableDetail:
        """Return the first list page as it was before the first create; read it if necessary."""
        if self._page is None:
            page = self.world.list_newest(1)
            if isinstance(page, UnreadableDetail):
                return page
            self._page = page
        return self._page

    def _record_attempt(
        self, progress: _RowProgress, wanted: RecordAttempt
    ) -> Attempt | InvalidBody:
        """Build the row's request and save the attempt in the journal."""
        task, resource = progress.row.task, declaration(progress.row.task.resource)
        try:
            match wanted.operation:
                case "create":
                    request = build_create_request(resource, wanted.fields or {}, task.parent)
                case "update":
                    id = wanted.record_id or ""
                    request = build_update_request(resource, id, wanted.fields or {}, task.parent)
                case "convert":
                    request = build_convert_request(resource, wanted.record_id or "")
        except Misused as error:
            return InvalidBody(str(error))
        ahead = self.world.server_now() - self.world.now if self.world.scenario.has_date else None
        sent_after = self.world.now + ahead if ahead is not None else self.world.connector_now()
        attempt = self.journal.record_attempt(
            progress.row.key, request, before=wanted.before, sent_after=sent_after
        )
        progress.request, progress.attempt = request, attempt
        self._trace(f"row {progress.row.key[1]}: intended, attempt {attempt.number}")
        self._check_commit(self, progress.row.key)
        return attempt

    def _send(self, progress: _RowProgress) -> Answer:
        """Send the row's request and classify the response, as the production client does."""
        assert progress.request is not None
        assert progress.attempt is not None
        request, resource = progress.request, declaration(progress.row.task.resource)
        self.sent += 1
        if request.operation == "create":
            self.world.bodies.append(json.loads(request.body or b"{}"))
        try:
            answer = self.world.send(progress.row.key, progress.attempt.number, request)
            if not 200 <= answer.status < 300:
                raise response_error(request, answer)
            raw = read_record(request, answer)
            return Accepted(resource.record(raw, served_at=served_at(answer)))
        except ConnectorError as error:
            return answer_from_error(error)

    def _trace(self, what: str) -> None:
        """Pass a line with the time to the world's `trace`, if there is one."""
        if self.world.trace is not None:
            self.world.trace(f"{self.world.now:%H:%M:%S} {what}")


def _waits_until(progress: _RowProgress) -> datetime:
    """Return the time until which the row is waiting."""
    assert isinstance(progress.wanted, WaitUntil)
    return progress.wanted.moment


def reverse_rows(plan: PushPlan, digest: str) -> PushPlan:
    """Return the plan of another file with the same rows in reverse order."""
    tasks = [*plan.tasks][::-1]
    moved = tuple(replace(task, number=number) for number, task in enumerate(tasks, 2))
    return replace(plan, file=f"{digest}.csv", digest=digest, tasks=moved, unsent=())
