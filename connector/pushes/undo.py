"""Undo of a batch, except for records that changed since.

Each row is compared with its current record (`pushes/undo_plan.py`). Fields of an update are
restored, and a created record is deleted. Changes of other users are kept and reported. The journal
only records that a row is undone. An interrupted undo is run again and finds the remaining rows.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

from connector.catalog.resource import Resource
from connector.client.client import Client
from connector.errors import ConnectorError, InDoubt, Misused, NotFound
from connector.ledger.journal import Journal
from connector.ledger.journal_records import RowKey, Transition
from connector.ledger.journal_writer import PUSH_LEASE
from connector.ledger.ledger import Ledger
from connector.ledger.push_plan import Problem, RowQueue
from connector.pulls.outcome import Watch
from connector.pulls.run_context import RunContext, open_run
from connector.pulls.workspace import check_files
from connector.pushes.landed_writes import copy_and_publish
from connector.pushes.push_executor import BatchExecutor, PushSession
from connector.pushes.push_row import (
    Accepted,
    Answer,
    Declined,
    answer_from_error,
    declined_problems,
)
from connector.pushes.row_steps import altered_problems
from connector.pushes.undo_plan import UndoStep, WrittenRow, is_unchanged_by_others, plan_undo
from connector.pushes.undo_report import (
    UndoneRow,
    UndoOutcome,
    UndoReport,
    WrittenRecord,
    make_undone_row,
    read_undo_plan,
)
from connector.settings import Settings
from connector.warehouse.stream import DeletionProof, FoundDetail, Outcome, UnreadableDetail

TRIES_MAX = 3
"""How often a row is read and written if its write is not answered. A retry does no harm, since a
field is restored, or a record deleted, only if it still is as the push left it.
"""

LAST = "last"
"""Name of the batch that was started last."""

MARKED_TOGETHER = 50
"""Number of rows that are marked as undone together."""


async def undo(
    settings: Settings,
    batch: str,
    *,
    applies: bool = False,
    budget: int | None = None,
    ignores_quota: bool = False,
    person: str | None = None,
    watch: Watch | None = None,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
    connect: Callable[..., Client] = Client,
) -> UndoReport:
    """Undo a batch if `applies`; otherwise report what an undo would do.

    Each record is read once. Rows of one record are undone in the reverse order. `batch` is the
    name of a batch, or `LAST`. `budget` is the maximum number of requests. `person` is the user of
    the import page, for the journal.

    Raises:
        UnknownName: The batch is not in the journal.
        Misused: The budget is 0.
        SettingsError: The address or the key is missing.
        LeaseHeld: A push is running.
        WarehouseError: A file of the data folder cannot be read or written.
    """
    started = time.monotonic()
    await asyncio.to_thread(check_files, settings)
    with Ledger(settings.folder) as ledger:
        batch = await asyncio.to_thread(_batch_to_undo, ledger, batch)
    opening = open_run(
        settings,
        "undo",
        lease=PUSH_LEASE,
        budget=budget,
        ignores_quota=ignores_quota,
        watch=watch,
        now=now,
        connect=connect,
    )
    async with opening as context:
        undoing = _UndoRun(context, applies=applies)
        if person is not None and applies:
            await asyncio.to_thread(undoing.journal.record_people, batch, {"undone": person})
        report = await undoing.undo_records(batch)
    unpublished = await asyncio.to_thread(copy_and_publish, settings) if applies else None
    seconds = time.monotonic() - started
    return replace(report, seconds=seconds, unpublished=unpublished)


def _batch_to_undo(ledger: Ledger, batch: str) -> str:
    """Return the name of the batch, or of the latest one for `LAST`.

    Raises `UnknownName`, or `Misused` if nothing was pushed.
    """
    journal = Journal(ledger)
    pushed = journal.batches() if ledger.exists else ()
    if not pushed:
        raise Misused(
            "nothing was pushed from this data folder", action="Check CONNECTOR_DATA_DIR."
        )
    return pushed[0].batch if batch == LAST else journal.batch(batch).batch


class _UndoRun:
    """Undo of one batch within an open run context."""

    def __init__(self, context: RunContext, *, applies: bool) -> None:
        self._context, self._applies = context, applies
        self._session = PushSession.of(context)
        self.journal, self._landing = self._session.journal, self._session.loader
        self._ended: dict[int, UndoneRow] = {}
        self._marked: dict[RowKey, str | None] = {}
        self._turn = asyncio.Lock()

    async def undo_records(self, batch: str) -> UndoReport:
        """Undo the batch's rows, several records at the same time, or only preview it.

        The report contains the error that ended the run early.
        """
        work = await asyncio.to_thread(read_undo_plan, self.journal, batch)
        self._ended = {each.number: each for each in work.ended}
        rows = sum(len(each.rows) for each in work.records)
        self._session.on_batch_start(await asyncio.to_thread(self.journal.batch, batch), rows)
        order = RowQueue(work.records, {}, ())
        try:
            await BatchExecutor(
                self._session, order, lambda record: partial(self._undo_record, record), None
            ).run_rows()
        finally:
            await self._load_and_mark()
        for record in work.records:
            for each in record.rows:
                self._ended.setdefault(each.key[1], make_undone_row(each, "not_reached"))
        return UndoReport(
            batch=batch,
            is_applied=self._applies,
            rows=tuple(self._ended[number] for number in sorted(self._ended)),
            requests=self._context.tally.requests,
            seconds=0.0,
            answers_not_loaded=self._landing.answers_not_loaded,
            error=self._session.error,
        )

    async def _undo_record(self, record: WrittenRecord) -> bool:
        """Undo the rows of one record, the last one first. Returns False: no write is left open."""
        seen: Outcome | None = None
        taken_back: tuple[tuple[str, str], ...] = ()
        async with self._session.row_slots:
            for row in record.rows:
                present = replace(row, undone_updates=(*row.undone_updates, *taken_back))
                seen = await self._undo_row(present, seen)
                left_at, before = self._marked.get(row.key), row.before.get("updated_at")
                taken_back += ((before, left_at),) if left_at and before else ()
        if len(self._marked) >= MARKED_TOGETHER:
            await self._load_and_mark()
        return False

    async def _undo_row(self, row: WrittenRow, seen: Outcome | None) -> Outcome | None:
        """Undo one row, and return its record afterwards; None if that is unknown.

        `seen` is the record after the undo of a later row.
        """
        if self._applies:
            # The answer to an earlier write may not show the record as it is now.
            seen = None
        for _ in range(TRIES_MAX):
            seen = seen or await self._session.read_record(row.task, row.record_id)
            if not isinstance(seen, FoundDetail):
                return await self._end_unread_row(row, seen)
            is_timed = seen.record.served_at is not None
            found = plan_undo(row, seen.record.raw, has_server_time=is_timed)
            if not self._applies or not (found.deletes or found.body):
                self._end_without_write(row, found)
                return _record_after_undo(seen, found)
            answer = await self._send_undo(row, found)
            match answer:
                case DeletionProof():
                    return await self._end_deleted_row(row, answer)
                case Accepted(record):
                    return await self._end_restored_row(row, found, record, seen)
                case Declined(is_missing=False):
                    problems = declined_problems(row.resource, answer, found.body)
                    self._record_row_end(
                        make_undone_row(row, "refused", (*found.problems, *problems))
                    )
                    return None
            seen = None
        return await self._end_unread_row(row, UnreadableDetail(InDoubt.code))

    # -- ends of rows ----------------------------------------------------------------------------

    def _record_row_end(
        self, ended: UndoneRow, key: RowKey | None = None, updated_at: str | None = None
    ) -> None:
        """Record how a row ended.

        With its `key` the row counts as undone. `updated_at` is the record's own after the undo;
        None if another user has changed the record.
        """
        self._ended[ended.number] = ended
        if key is not None and self._applies:
            self._marked[key] = updated_at
        self._session.on_row_end()

    def _end_without_write(self, row: WrittenRow, step: UndoStep) -> None:
        """Record the end of a row for which nothing is sent: a preview, or nothing to undo."""
        if step.deletes:
            self._record_row_end(make_undone_row(row, "delete"))
        elif step.problems:
            outcome: UndoOutcome = "partly" if step.restores_any_field else "conflict"
            ended = make_undone_row(row, outcome, step.problems, step)
            self._record_row_end(ended, row.key if step.restores_any_field else None)
        elif step.body:
            self._record_row_end(make_undone_row(row, "restore", (), step))
        else:
            self._record_row_end(make_undone_row(row, "undone"), row.key)

    async def _end_unread_row(
        self, row: WrittenRow, seen: DeletionProof | UnreadableDetail
    ) -> DeletionProof | None:
        """Record the end of a row whose record is deleted or unreadable. A deleted create is
        undone.
        """
        if isinstance(seen, UnreadableDetail):
            self._record_row_end(make_undone_row(row, "unread", reason=seen.reason))
            return None
        if row.operation == "create":
            return await self._end_deleted_row(row, seen, "undone")
        problem = Problem("record_gone", "the record was deleted after the push")
        self._record_row_end(make_undone_row(row, "conflict", (problem,)))
        return seen

    async def _end_deleted_row(
        self, row: WrittenRow, gone: DeletionProof, outcome: UndoOutcome = "deleted"
    ) -> DeletionProof:
        """Record the end of a row whose record is deleted, and mark the record in the warehouse."""
        if self._applies:
            await self._landing.add_deletion(row.task, row.record_id, gone)
        self._record_row_end(make_undone_row(row, outcome), row.key)
        return gone

    async def _end_restored_row(
        self, row: WrittenRow, step: UndoStep, record: Resource, seen: FoundDetail
    ) -> Outcome:
        """Record the end of a row whose fields were restored, and problems of differing values."""
        await self._landing.add_answer(
            row.task, Transition("accepted", record_id=record.id, shown=record)
        )
        problems = (*step.problems, *altered_problems(row.resource, step.body, record.raw))
        shown = record.raw.get("updated_at")
        is_ours = (
            *(not problems, isinstance(shown, str), is_unchanged_by_others(row, seen.record.raw)),
            _differs_only_in(step.body, seen.record.raw, record.raw),
        )
        ended = make_undone_row(row, "partly" if problems else "restored", problems, step)
        self._record_row_end(ended, row.key, shown if all(is_ours) else None)
        return _record_after_undo(seen, step, record)

    async def _load_and_mark(self) -> None:
        """Load the answers, then mark their rows as undone.

        If the process is killed in between, the next undo reads the records again.
        """
        async with self._turn:
            marked, self._marked = self._marked, {}
            await self._landing.load_rest()
            if marked:
                try:
                    await asyncio.to_thread(self.journal.mark_undone, marked)
                except ConnectorError as error:
                    self._session.stop(error)

    async def _send_undo(self, row: WrittenRow, step: UndoStep) -> Answer | DeletionProof:
        """Delete the record, or restore its fields, and return the answer."""
        self._session.check_can_send()
        client, task, id = self._session.context.client, row.task, row.record_id
        answer: Answer | DeletionProof
        try:
            if step.deletes:
                await client.delete(task.resource, id, task.parent)
                answer = DeletionProof(self._session.served_at)
            else:
                record = await client.update(task.resource, id, step.body, task.parent)
                answer = Accepted(record)
        except ConnectorError as error:
            self._session.record_write_end(error)
            is_gone = isinstance(error, NotFound) and error.is_api_error
            return (
                DeletionProof(self._session.served_at)
                if is_gone and step.deletes
                else answer_from_error(error)
            )
        self._session.record_write_end(None)
        return answer


def _differs_only_in(
    body: Mapping[str, Any], before: Mapping[str, Any], after: Mapping[str, Any]
) -> bool:
    """Return True if the record changed only in the fields of `body` and in `updated_at`."""
    return all(
        after[name] == before.get(name) for name in after if name not in {*body, "updated_at"}
    )


def _record_after_undo(
    seen: FoundDetail, step: UndoStep, record: Resource | None = None
) -> FoundDetail:
    """Return the record that the API returned after the undo or, without an answer, the expected
    one.
    """
    shown = {} if record is None else record.raw
    raw = {**seen.record.raw, **step.body, **shown}
    return FoundDetail(type(seen.record)(raw, served_at=seen.record.served_at), seen.served_at)
