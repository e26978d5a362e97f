"""One batch performed: its rows over the client, the journal and the warehouse, several at once.

Rows that must settle wait until all others have ended. Whatever ends the run early, each row is in
the journal as it stands, and the next run goes on from there.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
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
from connector.engine.push_plan import Plan, Terms, check_marker, settle_seconds
from connector.engine.push_states import FOR_A_PERSON
from connector.engine.quota import Month, shown
from connector.errors import ConnectorError, Misused, RestoredUnpulled, WarehouseError
from connector.errors_api import NotFound, Stopped
from connector.lakehouse.push_claims import PushClaims, sharing
from connector.ledger.erasures import Backups
from connector.ledger.journal import PUSH_LEASE, Journal
from connector.ledger.journal_reads import Key, Left, Work
from connector.ledger.journal_writes import UNFINISHED
from connector.ledger.ledger import Ledger
from connector.pulls.run_context import RunContext, open_run
from connector.pushes.batch_report import (
    BatchReport,
    BatchWatch,
    Decision,
    Declared,
    EndedRows,
    UnwatchedBatch,
    judged,
)
from connector.pushes.landed import Landing, publish
from connector.pushes.row_driver import Rows, Scene, Sleep
from connector.settings.model import Settings
from connector.warehouse.warehouse import Warehouse

# -- Decide ----------------------------------------------------------------------------------------
# What follows from a person's decision on a row in doubt, as a transition.


async def decided(client: Client, row: Work, decision: Decision) -> Move:
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
        case Declared(id):
            return await _declared(client, row, id)


async def _declared(client: Client, row: Work, id: str) -> Move:
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
    """Raise `RestoredUnpulled` where the ledger came from a backup, and no pull has proven the
    resource since.
    """
    restored = Backups(ledger).last_restore(is_ledger_older=True)
    if restored is None:
        return
    before, proven_at = restored.proven.get(resource), warehouse.standing_of(resource).proven_at
    if proven_at is not None and (before is None or proven_at > before):
        return
    raise RestoredUnpulled(
        f"the ledger is from a backup of {shown(restored.made_at)}, and no pull has proven"
        f" {resource} since: what was pushed to it after the backup would not be known again"
    )


# -- Apply -----------------------------------------------------------------------------------------
#


async def apply(
    settings: Settings,
    plan: Plan,
    terms: Terms | None = None,
    *,
    budget: int | None = None,
    asks_anyway: bool = False,
    watch: BatchWatch | None = None,
    command: str = "push",
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
    check_marker(declaration(plan.resource), plan, terms or Terms())
    opening = open_run(
        settings,
        command,
        lease=PUSH_LEASE,
        budget=budget,
        asks_anyway=asks_anyway,
        now=now,
        connect=connect,
    )
    with sharing(settings) as claims:
        async with opening as context:
            run = _Run(context, claims, watch or UnwatchedBatch(), now, sleep)
            return await run.begin(plan, terms or Terms())


async def resume(
    settings: Settings,
    batch: str,
    *,
    budget: int | None = None,
    asks_anyway: bool = False,
    watch: BatchWatch | None = None,
    command: str = "push",
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
    sleep: Sleep = asyncio.sleep,
    connect: Callable[..., Client] = Client,
) -> BatchReport:
    """Go on with a batch, on the terms on which it was begun. Raises what `apply` raises, and
    `UnknownName` for a batch that is not in the journal.
    """
    opening = open_run(
        settings,
        command,
        lease=PUSH_LEASE,
        budget=budget,
        asks_anyway=asks_anyway,
        now=now,
        connect=connect,
    )
    with sharing(settings) as claims:
        async with opening as context:
            run = _Run(context, claims, watch or UnwatchedBatch(), now, sleep)
            return await run.go_on(batch)


async def resolve(
    settings: Settings,
    batch: str,
    number: int,
    decision: Decision,
    *,
    watch: BatchWatch | None = None,
    command: str = "resolve",
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
    sleep: Sleep = asyncio.sleep,
    connect: Callable[..., Client] = Client,
) -> BatchReport:
    """Carry out what a person decided of a row in doubt, and say how its batch stands.

    To look or to send again is done at once. A record that is named is read first: it must be
    there. What was settled is published. Raises what `resume` raises, and `Misused` for a row that
    is not in doubt, or a record that does not exist.
    """
    opening = open_run(settings, command, lease=PUSH_LEASE, now=now, connect=connect)
    with sharing(settings) as claims:
        async with opening as context:
            run = _Run(context, claims, watch or UnwatchedBatch(), now, sleep)
            report = await run.decide((batch, number), decision)
    return replace(report, unpublished=await asyncio.to_thread(publish, settings))


class _Run:
    """One run at a batch."""

    def __init__(
        self,
        context: RunContext,
        claims: PushClaims | None,
        watch: BatchWatch,
        now: Callable[[], datetime],
        sleep: Sleep,
    ) -> None:
        self._context, self._claims = context, claims
        self._watch, self._now, self._sleep = watch, now, sleep
        self._started = time.monotonic()
        self._journal = Journal(context.turn.ledger, context.run.run_id, now=now)
        self._landing = Landing(context.warehouse, context.run.run_id, now)

    async def begin(self, plan: Plan, terms: Terms) -> BatchReport:
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
        return await self._through(batch)

    async def go_on(self, batch: str) -> BatchReport:
        """Go on with what was written down."""
        await asyncio.to_thread(self._journal.recover)
        await asyncio.to_thread(self._journal.resume, batch)
        return await self._through(batch)

    async def decide(self, key: Key, decision: Decision) -> BatchReport:
        """Record the decision, and carry out what follows from it."""
        await asyncio.to_thread(self._journal.recover)
        await asyncio.to_thread(self._journal.batch, key[0])
        batch = key[0]
        record = await asyncio.to_thread(self._journal.stands, key)
        if record is not None and record.state == "follows" and record.same is not None:
            key = record.same
        row = await asyncio.to_thread(self._journal.row, key)
        if row is None:
            raise Misused(
                f"row {key[1]} of the batch {key[0]} was never sent",
                action="Name a row whose outcome is 'held'.",
            )
        move = await decided(self._context.client, row, decision)
        scene = await self._scene()
        await scene.move(row, move)
        row = await asyncio.to_thread(self._journal.row, key)
        is_left = row is not None and row.standing.state in UNFINISHED
        return await self._through(batch, (row,) if is_left and row else ())

    # -- the work ---------------------------------------------------------------------------------

    async def _through(self, batch: str, rows: Sequence[Work] | None = None) -> BatchReport:
        """Bring the rows as far as they come, or all that the batch has left, and report."""
        if rows is None:
            left = await asyncio.to_thread(self._journal.left, batch)
        else:
            left = Left(len(rows), frozenset(row.key for row in rows))
        self._watch.began(batch, left.rows)
        scene = await self._scene()
        driven = Rows(
            scene,
            self._journal.work(batch) if rows is None else rows,
            left,
            connections=self._context.connections,
            watch=self._watch,
            tally=self._context.tally,
            sleep=self._sleep,
        )
        try:
            await driven.to_their_ends()
        finally:
            await self._landing.finish()
        return await self._end(batch, scene.error)

    async def _scene(self) -> Scene:
        server = await asyncio.to_thread(self._context.turn.ledger.server)
        return Scene(
            self._context.client,
            self._journal,
            self._landing,
            self._now,
            timedelta(seconds=server.offset_seconds),
            self._claims,
        )

    async def _end(self, batch: str, error: ConnectorError | None) -> BatchReport:
        folder, rows = self._context.warehouse.folder, self._journal.rows(batch)
        ended = await asyncio.to_thread(EndedRows, folder, rows)
        tally, seconds = self._context.tally, time.monotonic() - self._started
        outcome = judged(ended, error, stopped=isinstance(error, Stopped))
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
        return BatchReport(
            outcome=outcome,
            batch=batch,
            ended=ended,
            requests=tally.requests,
            seconds=seconds,
            waited_seconds=tally.waited_seconds,
            rate_limited=tally.rate_limited,
            unlanded=self._landing.unlanded,
            error=error,
            month=await self._month(),
        )

    async def _month(self) -> Month | None:
        """Write down what was spent; None where that failed, which makes no push a failure."""
        try:
            return await self._context.month()
        except WarehouseError:
            return None

    def _landed_before(self, plan: Plan) -> frozenset[str]:
        """The records that were landed lately: none of them can be one that the plan creates."""
        creates = {task.parent: task for task in plan.tasks if task.operation == "create"}
        server = self._context.turn.ledger.server()
        lately = timedelta(seconds=LATENESS_UNTIMED_SECONDS + self._context.lateness_seconds)
        since = self._now() + timedelta(seconds=server.offset_seconds) - lately
        found: set[str] = set()
        for task in creates.values():
            stream = self._landing.stream(task)
            if stream is not None:
                found |= self._context.warehouse.look(stream, Between(since, None))
        self._context.warehouse.release()
        return frozenset(found)
