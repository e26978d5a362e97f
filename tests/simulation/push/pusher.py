"""The connector's side of a play: the production steps and journal, run against the simulated
server.

One process after another pushes. Each has a coroutine per row. Any of them may continue next, and
the process can be killed before or after any await. The journal is an SQLite database in memory;
its committed contents are all that the next process knows.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache, partial
from pathlib import Path
from typing import Any

from connector.catalog.resource import Page, Resource
from connector.client.messages import Request, read_record
from connector.errors import ConnectorError
from connector.pushes import row as steps
from connector.pushes.row import Answer
from connector.pushes.run import Queue, block
from connector.state.database import SCHEMA, Database
from connector.state.journal import Journal, Plan
from connector.state.row import Policy, Row, RowKey
from connector.warehouse.stream import DeletionProof, FoundDetail, UnreadableDetail
from tests.simulation.harness import Perform, Steps, TooManySteps
from tests.simulation.push.world import PushWorld

STEPS_MAX = 3000
"""Steps after which a process counts as endless."""

CommitCheck = Callable[["PushProcess", RowKey | None], None]


class ProcessKilled(Exception):
    """The simulated process was killed."""


@cache
def _empty_state() -> bytes:
    """Return the bytes of an SQLite database with the empty tables."""
    connection = sqlite3.connect(":memory:")
    connection.executescript(SCHEMA)
    return connection.serialize()


class MemoryDatabase(Database):
    """A state in memory, because a file would take most of a play's time."""

    def __init__(self) -> None:
        super().__init__(Path("memory"))
        self.connection = sqlite3.connect(
            ":memory:", isolation_level=None, detect_types=sqlite3.PARSE_DECLTYPES
        )
        self.connection.row_factory = sqlite3.Row
        self.connection.deserialize(_empty_state())

    @contextmanager
    def open(self) -> Iterator[sqlite3.Connection]:
        """Yield the connection, without a transaction."""
        yield self.connection


@dataclass(frozen=True)
class Wait:
    """Command: continue the row no earlier than a time of the connector's clock."""

    moment: datetime


@dataclass
class _RowProgress:
    """A row in progress: its steps, and the command that it is waiting for."""

    row: Row
    steps: Steps
    wanted: Any


class SimulatedPorts:
    """`Port` of a row: each await hands its action to the process."""

    def __init__(self, process: PushProcess) -> None:
        self._process, self._world = process, process.world
        self.stored = process.journal

    def times(self) -> tuple[datetime, datetime]:
        """Return the connector's time, and its estimate of the server's."""
        world, now = self._world, self._world.connector_now()
        return now, world.server_now() if world.scenario.has_date else now

    def check_can_send(self) -> None:
        """Nothing stops the run."""

    async def send(self, row: Row, request: Request) -> Answer:
        """Send a request."""
        answer: Answer = await Perform(partial(self._process.send, row, request))
        return answer

    async def read(self, row: Row, id: str) -> FoundDetail | DeletionProof:
        """Read a record."""
        found: FoundDetail | DeletionProof
        found = _readable(await Perform(partial(self._world.read_detail, id)))
        return found

    async def newest(self, row: Row, page: int) -> Page[Resource]:
        """Read a page of the list."""
        found: Page[Resource]
        found = _readable(await Perform(partial(self._world.list_newest, page)))
        return found

    async def newest_before(self, row: Row) -> Page[Resource]:
        """Return the first page as it was before the first write."""
        found: Page[Resource] = _readable(await Perform(self._process.page_before_creates))
        return found

    async def wait_until(self, row: Row, moment: datetime) -> None:
        """Let time pass."""
        await Perform(Wait(moment))

    async def save(self, row: Row, shown: Resource | None = None) -> None:
        """Save the row."""
        await Perform(partial(self._process.save, row))


def _readable(found: Any) -> Any:
    """Return what was read. Raises `PushStopped` if it could not be read."""
    if isinstance(found, UnreadableDetail):
        raise steps.PushStopped
    return found


class PushProcess:
    """One process with its own run ID. `check_commit` is called after every commit."""

    def __init__(
        self, world: PushWorld, database: MemoryDatabase, run_id: str, check_commit: CommitCheck
    ) -> None:
        self.world, self.run_id, self._check_commit = world, run_id, check_commit
        self.journal = Journal(database, now=world.connector_now)
        self.sent = 0
        self._page: Page[Resource] | None = None
        self._policy = cache(lambda batch: self.journal.batch(batch).policy)

    def push(self, plan: Plan, policy: Policy, known_ids: frozenset[str]) -> str:
        """Push a file until no row can continue, and return the batch ID.

        Raises:
            ProcessKilled: The process was killed by chance.
        """
        self._kill_by_chance()
        batch = self.begin(plan, policy, known_ids)
        self._kill_by_chance()
        self._run_rows(batch)
        self._kill_by_chance()
        self.journal.end(batch, "done", requests=self.sent, seconds=0.0)
        return batch

    def begin(self, plan: Plan, policy: Policy, known_ids: frozenset[str]) -> str:
        """Record a file in the journal, and return the batch ID."""
        copy = replace(plan, rows=deepcopy(plan.rows))
        return self.journal.begin(copy, policy, self.run_id, known_ids=known_ids).batch

    def resume(self, batch: str) -> None:
        """Continue an existing batch until no row can continue."""
        self.journal.resume(batch)
        self._run_rows(batch)
        self.journal.end(batch, "done", requests=self.sent, seconds=0.0)

    def save(self, row: Row) -> None:
        """Save a row, and run the checks of a commit."""
        self.journal.save(row)
        if self.world.trace is not None:
            self._trace(f"row {row.number}: {row.state}, {row.outcome} {row.code}")
        self._check_commit(self, row.key)

    def page_before_creates(self) -> Page[Resource] | UnreadableDetail:
        """Return the first list page as it was before the first write; read it if necessary."""
        if self._page is None:
            page = self.world.list_newest(1)
            if isinstance(page, UnreadableDetail):
                return page
            self._page = page
        return self._page

    def send(self, row: Row, request: Request) -> Answer:
        """Send the row's request and classify the response, as the production client does."""
        self.sent += 1
        if request.operation == "create":
            self.world.bodies.append(json.loads(request.body or b"{}"))
        try:
            answer = self.world.send(row.key, len(row.attempts), request)
            return read_record(request, answer)
        except ConnectorError as error:
            return error

    def _run_rows(self, batch: str) -> None:
        """Run the rows of a batch in random order, as many in parallel as the scenario has
        connections.

        Raises:
            TooManySteps: The rows do not end.
        """
        rows = self.journal.unfinished(batch)
        queue = Queue(rows, self.journal.open_subjects())
        active: list[_RowProgress] = []
        parked: list[_RowProgress] = []
        ports = SimulatedPorts(self)
        for _ in range(STEPS_MAX):
            self._start_rows(queue, active, ports)
            if not active and parked:
                # Every row is waiting: let time pass until the first may continue.
                parked.sort(key=lambda each: (each.wanted.moment, each.row.key))
                seconds = (parked[0].wanted.moment - self.world.connector_now()).total_seconds()
                self.world.pass_time(max(0.0, seconds))
                active.append(parked.pop(0))
            if not active:
                assert queue.next_row() is None
                assert not queue._behind
                return
            progress = active[self.world.chance.pick(len(active))]
            wanted = progress.wanted
            if isinstance(wanted, Wait) and self.world.connector_now() < wanted.moment:
                active.remove(progress)
                parked.append(progress)
            elif self._run_step(progress):
                active.remove(progress)
                queue.end_row(progress.row)
        raise TooManySteps

    def _start_rows(self, queue: Queue, active: list[_RowProgress], ports: SimulatedPorts) -> None:
        """Start rows until all connections are in use. Blocked rows end immediately."""
        while len(active) < self.world.scenario.connections:
            row = queue.next_row()
            if row is None:
                return
            if (by := queue.blocked_by(row)) is not None:
                block(row, by)
                self.save(row)
            elif (progress := self._start(row, ports)) is not None:
                active.append(progress)
            else:
                queue.end_row(row)

    def _start(self, row: Row, ports: SimulatedPorts) -> _RowProgress | None:
        """Start the steps of a row; None if they end at once."""
        running = steps.push_row(row, ports, self._policy(row.batch))
        try:
            return _RowProgress(row, running, running.send(None))
        except StopIteration:
            return None

    def _run_step(self, progress: _RowProgress) -> bool:
        """Perform a row's action. Return True at the row's end."""
        self._kill_by_chance()
        answer = None if isinstance(progress.wanted, Wait) else progress.wanted()
        self._kill_by_chance()
        try:
            progress.wanted = progress.steps.send(answer)
        except StopIteration:
            return True
        return False

    def _kill_by_chance(self) -> None:
        """Raise `ProcessKilled` with the scenario's probability."""
        if self.world.is_faulty and self.world.chance.happens(self.world.scenario.crashes, "kill"):
            raise ProcessKilled

    def _trace(self, what: str) -> None:
        """Pass a line with the time to the world's `trace`, if there is one."""
        if self.world.trace is not None:
            self.world.trace(f"{self.world.now:%H:%M:%S} {what}")


def reverse_rows(plan: Plan, digest: str) -> Plan:
    """Return the plan of another file with the same rows in reverse order."""
    moved = [replace(row, number=number) for number, row in enumerate([*plan.rows][::-1], 2)]
    return replace(plan, file=f"{digest}.csv", digest=digest, rows=moved)
