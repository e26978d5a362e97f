"""All rows of one run, several at once: begun in order, and those that must settle last."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from datetime import datetime
from typing import Any

from connector.batch.course import Course, Halted, Scene
from connector.batch.report import BatchWatch
from connector.catalog import declaration
from connector.engine.push import push
from connector.engine.push_asks import Move, Steps
from connector.engine.push_order import Blocked, Order
from connector.engine.push_plan import RowProblem, marker_of
from connector.errors import ConnectorError
from connector.ledger.push_reads import BatchRecord, Key, Left, Work
from connector.outcome import Tally

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
        tally: Tally,
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

    def _steps(self, row: Work) -> Steps[bool]:
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
