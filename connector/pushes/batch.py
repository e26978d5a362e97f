"""Run at one batch: rows over client, journal and warehouse, several at once.

Rows that must settle wait until all others have ended. Whatever ends the run early, each row is in
the journal as it stands, and the next run goes on from there.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from connector.catalog import declaration
from connector.catalog.resource import Resource
from connector.client.client import Client
from connector.client.endpoint import Endpoint
from connector.engine.bookmark import LATENESS_UNTIMED_SECONDS
from connector.engine.commands import Between
from connector.engine.push_commands import Move
from connector.engine.push_plan import Plan, PushPolicy, check_marker, settle_seconds
from connector.engine.push_states import FOR_A_PERSON
from connector.engine.quota import shown
from connector.errors import ConnectorError, Misused, RestoredUnpulled, WarehouseError
from connector.errors_api import NotFound, Stopped
from connector.lakehouse.push_claims import PushClaims, sharing
from connector.ledger.erasures import Backups
from connector.ledger.journal import PUSH_LEASE
from connector.ledger.journal_reads import UNFINISHED, Key, Pending, PendingRow
from connector.ledger.ledger import Ledger
from connector.pulls.run_context import RunContext, open_run
from connector.pushes.batch_report import (
    BatchReport,
    BatchWatch,
    Decision,
    DeclaredRecord,
    EndedRows,
    judged,
)
from connector.pushes.landed import publish
from connector.pushes.push_session import PushSession
from connector.pushes.row_driver import BatchDriver, Sleep
from connector.settings.model import Settings
from connector.warehouse.warehouse import Warehouse

# -- Decide ----------------------------------------------------------------------------------------
# What follows from a person's decision on a row in doubt, as a transition.


async def decided(client: Client, row: PendingRow, decision: Decision) -> Move:
    """The transition that the decision asks for. A record that is named is read first.

    Raises `Misused` for a row that is not in doubt, and for a record that does not exist or is not
    the one that the row is about.
    """
    if row.standing.state not in FOR_A_PERSON:
        raise Misused(
            f"row {row.key[1]} of the batch {row.key[0]} is not in doubt",
            action="Name a row whose outcome is 'held'.",
        )
    match decision:
        case "look":
            return Move("looked_again", "in_doubt")
        case "resend":
            return Move("resent", "in_doubt")
        case "drop":
            return Move("dropped", "dropped")
        case DeclaredRecord(id):
            return await _declared(client, row, id)


async def _declared(client: Client, row: PendingRow, id: str) -> Move:
    """A person's word that the record is the row's."""
    task = row.task
    if task.record_id is not None and task.record_id != id:
        raise Misused(
            f"row {row.key[1]} is about the record {task.record_id}, and another was named",
            action="Name that record, or decide otherwise.",
        )
    endpoint: Endpoint[Resource] = Endpoint(client, declaration(task.resource).record, task.parent)
    try:
        record = await endpoint.get(id)
    except NotFound as error:
        if task.operation == "convert" and error.is_api_error:
            # A converted lead may be gone (API 3.5).
            return Move("declared_applied", "declared", record_id=id)
        raise Misused(
            f"there is no record {id} in {task.resource}",
            action="Copy the id of the record from the application.",
        ) from None
    updated_at = record.raw.get("updated_at")
    move = Move(
        "declared_applied",
        "declared",
        record_id=id,
        updated_at=updated_at if isinstance(updated_at, str) else None,
        shown=record,
        is_detail=True,
    )
    if task.operation == "create" and task.afterwards and not row.standing.is_begun:
        return replace(move, event="begun", before=dict(record.raw))
    return move


# -- Restored --------------------------------------------------------------------------------------
# What a push must know of a folder that was restored: an older ledger knows fewer pushes.
#
# Rows that were sent after the backup are not in its journal. Once a pull has proven the resource,
# their records are landed, and the rows are told as duplicates; before that they would be created
# a second time.


def check_pulled(ledger: Ledger, warehouse: Warehouse, resource: str) -> None:
    """Raise `RestoredUnpulled` where a backup's ledger saw no pull since."""
    restored = Backups(ledger).last_restore(is_ledger_older=True)
    if restored is None:
        return
    before, proven_at = restored.proven.get(resource), warehouse.status_of(resource).proven_at
    if proven_at is not None and (before is None or proven_at > before):
        return
    raise RestoredUnpulled(
        f"the ledger is from a backup of {shown(restored.made_at)}, and no pull has proven"
        f" {resource} since: what was pushed to it after the backup would not be known again"
    )


# -- Apply -----------------------------------------------------------------------------------------


async def apply(
    settings: Settings,
    plan: Plan,
    terms: PushPolicy | None = None,
    *,
    budget: int | None = None,
    asks_anyway: bool = False,
    watch: BatchWatch | None = None,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
    sleep: Sleep = asyncio.sleep,
    connect: Callable[..., Client] = Client,
) -> BatchReport:
    """Write the plan's rows, and say how each of them ended.

    A file that was pushed on these terms and not brought to an end is gone on with. At most
    `budget` requests are sent, repeats and look-ups among them. `asks_anyway` asks the API even
    where it said that the month is spent. `sleep` waits for rows to settle, `connect` makes the
    client.

    Raises `Misused` for a budget of nothing and for a marker field that can carry none,
    `SettingsError` for a missing address or key, `PushJournalUnreached` where folders share a
    journal that cannot be reached, `LeaseHeld` while another push of the account is
    under way, `RestoredUnpulled` where the folder was restored and the resource not pulled since,
    and `WarehouseError` where nothing could be recorded; every other end is in the report.
    """
    terms = terms or PushPolicy()
    check_marker(declaration(plan.resource), plan, terms)
    opening = open_run(
        settings,
        "push",
        lease=PUSH_LEASE,
        budget=budget,
        asks_anyway=asks_anyway,
        now=now,
        connect=connect,
    )
    with sharing(settings) as claims:
        async with opening as context:
            return await _Batch(context, claims, sleep, watch).begin(plan, terms)


async def resolve(
    settings: Settings,
    batch: str,
    number: int,
    decision: Decision,
    *,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
    sleep: Sleep = asyncio.sleep,
    connect: Callable[..., Client] = Client,
) -> BatchReport:
    """Carry out what a person decided of a row in doubt, and say how its batch stands.

    To look or to send again is done at once. A record that is named is read first: it must be
    there. What was settled is published. Raises what `apply` raises, `UnknownName` for a batch that
    is not in the journal, and `Misused` for a row that is not in doubt, or a record that does not
    exist.
    """
    opening = open_run(settings, "resolve", lease=PUSH_LEASE, now=now, connect=connect)
    with sharing(settings) as claims:
        async with opening as context:
            report = await _Batch(context, claims, sleep).decide((batch, number), decision)
    return replace(report, unpublished=await asyncio.to_thread(publish, settings))


class _Batch:
    """One run at a batch."""

    def __init__(
        self,
        context: RunContext,
        claims: PushClaims | None,
        sleep: Sleep,
        watch: BatchWatch | None = None,
    ) -> None:
        self._context = context
        self._watch, self._sleep = watch, sleep
        self._started = time.monotonic()
        self._session = PushSession.of(context, claims)
        self._journal = self._session.journal

    async def begin(self, plan: Plan, terms: PushPolicy) -> BatchReport:
        """Write the plan down, and carry it out."""
        ledger, warehouse = self._context.turn.ledger, self._context.warehouse
        await asyncio.to_thread(check_pulled, ledger, warehouse, plan.resource)
        deadline = self._context.client.limits.deadline_seconds
        terms = replace(
            terms,
            settle_seconds=max(terms.settle_seconds, settle_seconds(deadline)),
            lateness_seconds=max(terms.lateness_seconds, self._context.lateness_seconds),
        )
        await asyncio.to_thread(self._journal.recover)
        before = await asyncio.to_thread(self._landed_before, plan)
        batch = await asyncio.to_thread(self._journal.undertake, plan, terms, before)
        pending = await asyncio.to_thread(self._journal.pending, batch)
        return await self._through(batch, self._journal.work(batch), pending)

    async def decide(self, key: Key, decision: Decision) -> BatchReport:
        """Record the decision, and carry out what follows from it."""
        await asyncio.to_thread(self._journal.recover)
        batch = (await asyncio.to_thread(self._journal.batch, key[0])).batch
        record = await asyncio.to_thread(self._journal.record, key)
        if record is not None and record.state == "follows" and record.same is not None:
            key = record.same
        row = await asyncio.to_thread(self._journal.row, key)
        if row is None:
            raise Misused(
                f"row {key[1]} of the batch {key[0]} was never sent",
                action="Name a row whose outcome is 'held'.",
            )
        await self._session.move(row, await decided(self._context.client, row, decision))
        row = await asyncio.to_thread(self._journal.row, key)
        rows = [row] if row is not None and row.standing.state in UNFINISHED else []
        pending = Pending(len(rows), frozenset(each.key for each in rows))
        return await self._through(batch, rows, pending)

    async def _through(
        self, batch: str, rows: Iterable[PendingRow], pending: Pending
    ) -> BatchReport:
        """Bring the rows as far as they come, and report."""
        if self._watch is not None:
            self._watch.began(batch, pending.rows)
        driver = BatchDriver(
            self._session,
            rows,
            pending,
            connections=self._context.connections,
            watch=self._watch,
            tally=self._context.tally,
            sleep=self._sleep,
        )
        try:
            await driver.to_their_ends()
        finally:
            await self._session.landing.finish()
        return await self._end(batch, self._session.error)

    async def _end(self, batch: str, error: ConnectorError | None) -> BatchReport:
        folder, rows = self._context.warehouse.folder, self._journal.rows(batch)
        ended = await asyncio.to_thread(EndedRows, folder, rows)
        tally, seconds = self._context.tally, time.monotonic() - self._started
        outcome = judged(ended, error)
        # A run that has lost its turn has nothing more to write down.
        with suppress(WarehouseError, Stopped):
            await asyncio.to_thread(
                self._journal.end,
                batch,
                outcome,
                requests=tally.requests,
                seconds=seconds,
                error_code=error.code if error else None,
                message=str(error) if error else None,
            )
        month = None
        with suppress(WarehouseError):  # A month that cannot be read makes no push a failure.
            month = await self._context.month()
        return BatchReport(
            outcome=outcome,
            batch=batch,
            ended=ended,
            requests=tally.requests,
            seconds=seconds,
            waited_seconds=tally.waited_seconds,
            rate_limited=tally.rate_limited,
            unlanded=self._session.landing.unlanded,
            error=error,
            month=month,
        )

    def _landed_before(self, plan: Plan) -> frozenset[str]:
        """Records that were landed lately: none of them is made by this plan."""
        creates = {task.parent: task for task in plan.tasks if task.operation == "create"}
        lately = timedelta(seconds=LATENESS_UNTIMED_SECONDS + self._context.lateness_seconds)
        recent = Between(self._session.served_at - lately, None)
        found: set[str] = set()
        for task in creates.values():
            stream = self._session.landing.stream(task)
            if stream is not None:
                found |= self._context.warehouse.look(stream, recent)
        self._context.warehouse.release()
        return frozenset(found)
