"""Taking back what a batch did, as far as no one has touched it since.

Each row is held against its record as it is now (`pushes/undo_plan.py`): the fields of an update go
back, a record that was created is deleted, and what another user has changed is told and left.
Nothing is remembered of an undo but that a row is undone: one that was cut off is run again, and
finds by itself what is left to do.
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
from connector.errors import ConnectorError, Misused
from connector.errors_api import InDoubt, NotFound
from connector.ledger.journal import Journal
from connector.ledger.journal_records import RowKey, Transition
from connector.ledger.journal_writer import PUSH_LEASE
from connector.ledger.ledger import Ledger
from connector.ledger.push_plan import Problem, RowQueue
from connector.pulls.outcome import Watch
from connector.pulls.run_context import RunContext, open_run
from connector.pulls.workspace import check_files
from connector.pushes.landed_writes import copy_and_publish
from connector.pushes.push_executor import BatchExecutor, GoOn, PushSession, Sleep
from connector.pushes.push_row import Accepted, Answer, Declined, answer_of, declined_problems
from connector.pushes.row_steps import altered_problems
from connector.pushes.undo_plan import UndoStep, is_unchanged_by_others, plan_undo
from connector.pushes.undo_report import (
    UndoableRow,
    UndoneRow,
    UndoOutcome,
    UndoReport,
    WrittenRecord,
    read_undo_plan,
)
from connector.settings.model import Settings
from connector.warehouse.pull_commands import Found, Gone, Outcome, Unread

TRIES_MAX = 3
"""How often a row is read and written to while its write is not answered. A field is put back and
a record deleted only where it still is as the push left it, so that a repeat does no harm.
"""

LAST = "last"
"""The name for the batch that was begun last."""

MARKED_TOGETHER = 50
"""Rows that are landed and marked as undone together."""


async def undo(
    settings: Settings,
    batch: str,
    *,
    applies: bool = False,
    budget: int | None = None,
    asks_anyway: bool = False,
    person: str | None = None,
    watch: Watch | None = None,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
    sleep: Sleep = asyncio.sleep,
    connect: Callable[..., Client] = Client,
) -> UndoReport:
    """Say what would take a batch back, with a read each; do it if `applies`.

    `batch` may be `LAST`. Rows about one record are taken back in the reverse order. At most
    `budget` requests are sent; `person` is noted in the journal. Raises `UnknownName` for a batch
    that is not in the journal, `Misused` for a budget of nothing, `SettingsError`, `LeaseHeld`
    while a push is under way, and `WarehouseError`; what ends it early else is in the report.
    """
    started = time.monotonic()
    await asyncio.to_thread(check_files, settings)
    with Ledger(settings.folder) as ledger:
        batch = await asyncio.to_thread(_batch_to_undo, Journal(ledger), batch)
    opening = open_run(
        settings,
        "undo",
        lease=PUSH_LEASE,
        budget=budget,
        asks_anyway=asks_anyway,
        watch=watch,
        now=now,
        connect=connect,
    )
    async with opening as context:
        undoing = _UndoRun(context, applies=applies)
        if person is not None and applies:
            await asyncio.to_thread(undoing.note_person, batch, person)
        report = await undoing.undo_records(batch, sleep)
    unpublished = await asyncio.to_thread(copy_and_publish, settings) if applies else None
    seconds = time.monotonic() - started
    return replace(report, seconds=seconds, unpublished=unpublished)


def _batch_to_undo(journal: Journal, batch: str) -> str:
    """The batch that is meant. Raises `UnknownName`, or `Misused` without any."""
    if batch != LAST:
        return journal.batch(batch).batch
    pushed = journal.batches()
    if not pushed:
        raise Misused(
            "nothing was pushed from this data folder", action="Check CONNECTOR_DATA_DIR."
        )
    return pushed[0].batch


class _UndoRun:
    """One run at a batch."""

    def __init__(self, context: RunContext, *, applies: bool) -> None:
        self._context, self._applies = context, applies
        self._session = PushSession.of(context)
        self._journal, self._landing = self._session.journal, self._session.landing
        self._told: dict[int, UndoneRow] = {}
        self._marked: dict[RowKey, str | None] = {}
        self._turn = asyncio.Lock()

    def note_person(self, batch: str, person: str) -> None:
        """Write down who takes the batch back."""
        self._journal.note_people(batch, {"undone": person})

    async def undo_records(self, batch: str, sleep: Sleep) -> UndoReport:
        """Take back what can be, several records at once, and report."""
        work = await asyncio.to_thread(read_undo_plan, self._journal, batch)
        self._told = {each.number: each for each in work.told}
        rows = sum(len(each.rows) for each in work.records)
        self._session.on_batch_start(await asyncio.to_thread(self._journal.batch, batch), rows)
        order = RowQueue(work.records, {}, ())
        try:
            await BatchExecutor(self._session, order, self._lock_record, sleep).run_rows()
        finally:
            await self._flush()
        for record in work.records:
            for each in record.rows:
                self._told.setdefault(each.number, each.report_row("not_reached"))
        return UndoReport(
            batch=batch,
            is_applied=self._applies,
            rows=tuple(self._told[number] for number in sorted(self._told)),
            requests=self._context.tally.requests,
            seconds=0.0,
            unlanded=self._landing.unlanded,
            error=self._session.error,
        )

    def _lock_record(self, record: WrittenRecord) -> GoOn:
        return partial(self._undo_record, record)

    async def _undo_record(self, record: WrittenRecord) -> bool:
        """Take back the rows that wrote to one record, the last of them first."""
        seen: Outcome | None = None
        taken_back: tuple[tuple[str, str], ...] = ()
        async with self._session.places:
            for row in record.rows:
                deed = replace(row.deed, taken_back=(*row.deed.taken_back, *taken_back))
                seen = await self._undo_row(replace(row, deed=deed), seen)
                left_at, before = self._marked.get(row.key), deed.before.get("updated_at")
                taken_back += ((before, left_at),) if left_at and before else ()
        if len(self._marked) >= MARKED_TOGETHER:
            await self._flush()
        return False

    async def _undo_row(self, row: UndoableRow, seen: Outcome | None) -> Outcome | None:
        """Take one row back; returns its record as it is then, None if unknown."""
        if self._applies:
            # What an earlier write was answered is no sight of the record as it is now.
            seen = None
        for _ in range(TRIES_MAX):
            seen = seen or await self._session.read(row.task, row.deed.record_id)
            if not isinstance(seen, Found):
                return await self._end_unread_row(row, seen)
            is_timed = seen.record.served_at is not None
            found = plan_undo(row.deed, seen.record.raw, is_timed=is_timed)
            if not self._applies or not (found.deletes or found.body):
                self._previewed(row, found)
                return _with(seen, found)
            answer = await self._write(row, found)
            match answer:
                case Gone():
                    return await self._end_deleted_row(row, answer)
                case Accepted(record):
                    return await self._put_back(row, found, record, seen)
                case Declined(is_missing=False):
                    problems = declined_problems(row.deed.resource, answer, found.body)
                    self._record_row_end(row.report_row("refused", (*found.problems, *problems)))
                    return None
            seen = None
        return await self._end_unread_row(row, Unread(InDoubt.code))

    # -- what became of a row ---------------------------------------------------------------------

    def _record_row_end(
        self, told: UndoneRow, key: RowKey | None = None, left_at: str | None = None
    ) -> None:
        """Take note of how a row ended; with its key, also that it is undone, and
        `left_at`, the record's `updated_at` since where that is ours.
        """
        self._told[told.number] = told
        if key is not None and self._applies:
            self._marked[key] = left_at
        self._session.on_row_end()

    def _previewed(self, row: UndoableRow, found: UndoStep) -> None:
        """Nothing is sent for the row: it is a preview, or nothing is left that could be."""
        if found.deletes:
            self._record_row_end(row.report_row("delete"))
        elif found.problems:
            unfit: UndoOutcome = "redacted" if found.is_redacted else "conflict"
            outcome: UndoOutcome = "partly" if found.is_any_back else unfit
            told = row.report_row(outcome, found.problems, found)
            self._record_row_end(told, row.key if found.is_any_back else None)
        elif found.body:
            self._record_row_end(row.report_row("restore", (), found))
        else:
            self._record_row_end(row.report_row("undone"), row.key)

    async def _end_unread_row(self, row: UndoableRow, seen: Gone | Unread) -> Gone | None:
        """End a row whose record is gone or unread; a create that is gone is undone."""
        if isinstance(seen, Unread):
            self._record_row_end(row.report_row("unread", reason=seen.reason))
            return None
        if row.deed.operation == "create":
            return await self._end_deleted_row(row, seen, "undone")
        problem = Problem("record_gone", "the record was deleted after the push")
        self._record_row_end(row.report_row("conflict", (problem,)))
        return seen

    async def _end_deleted_row(
        self, row: UndoableRow, gone: Gone, outcome: UndoOutcome = "deleted"
    ) -> Gone:
        """The record is gone, by this undo or before."""
        if self._applies:
            await self._landing.queue_deletion(row.task, row.deed.record_id, gone)
        self._record_row_end(row.report_row(outcome), row.key)
        return gone

    async def _put_back(
        self, row: UndoableRow, found: UndoStep, record: Resource, seen: Found
    ) -> Outcome:
        """The fields were accepted; what the API shows of them is compared."""
        await self._landing.add(row.task, Transition("accepted", record_id=record.id, shown=record))
        problems = (*found.problems, *altered_problems(row.deed.resource, found.body, record.raw))
        shown = record.raw.get("updated_at")
        is_ours = (
            *(
                not problems,
                isinstance(shown, str),
                is_unchanged_by_others(row.deed, seen.record.raw),
            ),
            _is_same_besides(found.body, seen.record.raw, record.raw),
        )
        told = row.report_row("partly" if problems else "restored", problems, found)
        self._record_row_end(told, row.key, shown if all(is_ours) else None)
        return _with(seen, found, record)

    async def _flush(self) -> None:
        """Land the answers, then mark the rows: a kill in between only reads again."""
        async with self._turn:
            marked, self._marked = self._marked, {}
            await self._landing.finish()
            if marked:
                try:
                    await asyncio.to_thread(self._journal.mark_undone, marked)
                except ConnectorError as error:
                    self._session.stop(error)

    async def _write(self, row: UndoableRow, found: UndoStep) -> Answer | Gone:
        """Delete the record, or put the fields back."""
        endpoint, id = self._session.endpoint(row.task), row.deed.record_id
        answer: Answer | Gone
        try:
            if found.deletes:
                await endpoint.delete(id)
                answer = Gone(self._session.served_at)
            else:
                answer = Accepted((await endpoint.update(id, found.body)).record)
        except ConnectorError as error:
            self._session.record_write_end(error)
            is_gone = isinstance(error, NotFound) and error.is_api_error
            return Gone(self._session.served_at) if is_gone and found.deletes else answer_of(error)
        self._session.record_write_end(None)
        return answer


def _is_same_besides(
    body: Mapping[str, Any], before: Mapping[str, Any], after: Mapping[str, Any]
) -> bool:
    """Whether nothing but `body` differs between the two records."""
    return all(
        after[name] == before.get(name) for name in after if name not in {*body, "updated_at"}
    )


def _with(seen: Found, found: UndoStep, record: Resource | None = None) -> Found:
    """The record as it is, or in a preview would be, once the body is sent."""
    shown = {} if record is None else record.raw
    raw = {**seen.record.raw, **found.body, **shown}
    return Found(type(seen.record)(raw, served_at=seen.record.served_at), seen.served_at)
