"""Loading of the API's responses to a push, in the same way as pulled records.

A complete record is loaded as if it had been read. For a response with fewer fields (API 4.7) and
for a converted lead, the record is queued for the next pull. Responses are loaded together, because
opening the file takes longer than loading one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import asdict, dataclass, field
from datetime import datetime

from connector.catalog import declaration
from connector.catalog.resource import Declaration
from connector.errors import ConnectorError, WarehouseError
from connector.ledger.journal import Journal
from connector.ledger.journal_records import JournalChanges, Transition
from connector.ledger.ledger import Ledger
from connector.ledger.push_states import RowEvent, Task
from connector.ledger.sqlite_file import values_of
from connector.models.publish import publish as publish_file
from connector.settings import Settings
from connector.warehouse.state import (
    PushChanges,
    find_by_slug_or_id,
    last_copied_change,
    write_pushes,
)
from connector.warehouse.stream import Commit, DeletionProof, FoundDetail, Stream
from connector.warehouse.warehouse import Warehouse

LOAD_SECONDS = 1.0
"""Maximum time in seconds that an answer waits for others to be loaded with it."""

QUEUED_AS = "pushed"
"""Reason in the queue for a record that a push has written."""

_WRITTEN: frozenset[RowEvent] = frozenset(
    ("accepted", "altered", "begun", "confirmed", "found", "declared_applied")
)


@dataclass(slots=True)
class _WaitingAnswers:
    """Answers of one stream that wait to be loaded.

    Attributes:
        records: Complete records, by id.
        queue: Reasons to read a record with the next pull, by id.
        gone: Proofs that a record is deleted, by id.
    """

    stream: Stream
    records: dict[str, FoundDetail] = field(default_factory=dict)
    queue: dict[str, str] = field(default_factory=dict)
    gone: dict[str, DeletionProof] = field(default_factory=dict)


class AnswerLoader:
    """Loads the API's answers to one run's writes into the warehouse, several together.

    `answers_not_loaded` counts answers that could not be loaded.
    """

    def __init__(self, warehouse: Warehouse, run_id: str, now: Callable[[], datetime]) -> None:
        self.answers_not_loaded = 0
        self._warehouse, self._run_id, self._now = warehouse, run_id, now
        self._pending: dict[str, _WaitingAnswers] = {}
        self._parents: dict[str, str | None] = {}
        self._due: asyncio.Task[None] | None = None
        self._turn = asyncio.Lock()

    def find_stream(self, task: Task) -> Stream | None:
        """Return the stream of the task's record; None if its parent is not loaded.

        Looks the parent up in the warehouse, so call it in a thread.
        """
        resource = declaration(task.resource)
        if resource.parent is None:
            return Stream(resource)
        assert task.parent is not None
        if task.parent not in self._parents:
            self._parents[task.parent] = self._parent_id(resource, task.parent)
        parent = self._parents[task.parent]
        return None if parent is None else Stream(resource, parent)

    async def add_answer(self, task: Task, transition: Transition) -> None:
        """Load the record of a transition within `LOAD_SECONDS`, if it has one."""
        shown, record_id = transition.shown, transition.record_id
        if shown is None and (transition.event not in _WRITTEN or record_id is None):
            return
        pending = await self._answers_of_stream(task)
        if pending is None:
            return
        names = {each.name for each in pending.stream.resource.detail_fields}
        # An answer with all of these fields is a complete record.
        if shown is not None and (transition.is_detail or names <= shown.raw.keys()):
            pending.records[shown.id] = FoundDetail(shown, shown.served_at or self._now())
            pending.queue.pop(shown.id, None)
        else:
            assert record_id is not None
            pending.records.pop(record_id, None)
            pending.queue[record_id] = QUEUED_AS
        if self._due is None:
            self._due = asyncio.ensure_future(self._load_periodically())

    async def add_deletion(self, task: Task, id: str, gone: DeletionProof) -> None:
        """Mark a record as deleted, together with the next answers."""
        if (pending := await self._answers_of_stream(task)) is not None:
            pending.records.pop(id, None)
            pending.gone[id] = gone

    async def _answers_of_stream(self, task: Task) -> _WaitingAnswers | None:
        """Return the waiting answers of the task's stream; None without a stream.

        Without a stream, the answer is counted as not loaded.
        """
        is_known = declaration(task.resource).parent is None or task.parent in self._parents
        # Only an unknown parent has to be looked up in the file.
        stream = (
            self.find_stream(task) if is_known else await asyncio.to_thread(self.find_stream, task)
        )
        if stream is None:
            self.answers_not_loaded += 1
            return None
        return self._pending.setdefault(stream.name, _WaitingAnswers(stream))

    async def load_rest(self) -> None:
        """Load all waiting answers now, and stop the periodic loading."""
        if self._due is not None:
            self._due.cancel()
            with suppress(asyncio.CancelledError):
                await self._due
        await self._load_waiting()

    async def _load_periodically(self) -> None:
        """Load the waiting answers every `LOAD_SECONDS`, until cancelled."""
        while True:
            await asyncio.sleep(LOAD_SECONDS)
            # If the run ends while answers are loaded, all of them are loaded.
            await asyncio.shield(self._load_waiting())

    async def _load_waiting(self) -> None:
        """Load the waiting answers, and count answers that could not be loaded."""
        async with self._turn:
            pending, self._pending = self._pending, {}
            for what in pending.values():
                records = tuple(what.records.values())
                commit = Commit(records=records, gone=what.gone, enqueue=what.queue)
                try:
                    await asyncio.to_thread(self._commit_to_warehouse, what.stream, commit)
                except WarehouseError:
                    # The journal has the write, and the next pull loads its record.
                    self.answers_not_loaded += len(what.records) + len(what.queue) + len(what.gone)

    def _commit_to_warehouse(self, stream: Stream, commit: Commit) -> None:
        """Commit the answers of a stream, and close the warehouse's file."""
        try:
            self._warehouse.commit(stream, commit, self._run_id, self._now())
        finally:
            self._warehouse.release()

    def _parent_id(self, resource: Declaration, slug_or_id: str) -> str | None:
        """Return the id of the parent with this slug or id; None if it is not loaded."""
        assert resource.parent is not None
        try:
            found = self._warehouse.read(find_by_slug_or_id, resource.parent, slug_or_id)
        except WarehouseError:
            return None
        finally:
            self._warehouse.release()
        return found[0] if len(found) == 1 else None


# -- Publish ---------------------------------------------------------------------------------------


def copy_and_publish(settings: Settings) -> ConnectorError | None:
    """Copy new rows of the journal to the warehouse, and publish them.

    A run must have prepared the files of the folder. Returns the error that prevented it, or None:
    the journal has what was written, and the next publication shows it.
    """
    try:
        copy_journal(settings)
        publish_file(settings)
    except ConnectorError as error:
        return error
    return None


def copy_journal(settings: Settings) -> None:
    """Copy what changed in the journal since the last copy to the warehouse. Raises
    `WarehouseError`.
    """
    warehouse = Warehouse(settings.folder)
    with Ledger(settings.folder) as ledger:
        journal, is_copied = Journal(ledger), False
        while not is_copied:
            copied = warehouse.read(last_copied_change)
            with closing(journal.changes_since(copied)) as changes:
                # False if another push has copied since, which may have copied later changes.
                is_copied = warehouse.write(write_pushes, copied, map(_rows_by_table, changes))


def _rows_by_table(changes: JournalChanges) -> PushChanges:
    """Return the changes as rows of the tables for analysts, by table."""
    return {
        "batches": [asdict(each) for each in changes.batches],
        "rows": [values_of(each) for each in changes.rows],
        "attempts": [values_of(each) for each in changes.attempts],
        "problems": [
            {"batch": row.batch, "number": row.number, "place": place, **values_of(problem)}
            for row in changes.rows
            for place, problem in enumerate(row.problems)
        ],
        "before_images": [values_of(each) for each in changes.before_images],
    }
