"""Run of one batch: sends its rows, several at the same time.

Unconfirmed rows that have to wait are continued after all others have ended. If the run ends early,
the journal has the state of each row, and the next run continues from there.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import astuple, dataclass, field, fields, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal

from connector.catalog import declaration
from connector.catalog.resource import LATENESS_UNTIMED_SECONDS
from connector.client.client import Client
from connector.errors import (
    ConnectorError,
    LeaseHeld,
    Misused,
    NotFound,
    Stopped,
    WarehouseError,
    count_noun,
)
from connector.ledger.backups import Backups
from connector.ledger.journal import has_rows_to_look_up
from connector.ledger.journal_records import (
    UNFINISHED,
    BatchAction,
    BatchRecord,
    PendingCount,
    PendingRow,
    RowKey,
    RowRecord,
    Transition,
)
from connector.ledger.journal_writer import PUSH_LEASE
from connector.ledger.ledger import Ledger
from connector.ledger.push_plan import (
    Problem,
    PushPlan,
    PushPolicy,
    RowQueue,
    fold_identity,
    settle_seconds_min,
)
from connector.ledger.push_states import FOR_A_PERSON, IN_DOUBT, RowOutcome
from connector.ledger.quota import MonthUse, format_moment
from connector.pulls.outcome import RunOutcome, Watch
from connector.pulls.run_context import RunContext, open_run
from connector.pushes.landed_writes import copy_and_publish, copy_journal
from connector.pushes.push_executor import BatchExecutor, PushSession, RowExecutor, RunRow, Sleep
from connector.pushes.row_steps import run_row
from connector.pushes.spill_file import SpillFile
from connector.settings import Settings
from connector.warehouse.state import read_resource_state
from connector.warehouse.warehouse import Warehouse

# -- Report ----------------------------------------------------------------------------------------


GOOD: frozenset[RowOutcome] = frozenset(("created", "updated", "converted", "unchanged"))
"""Outcomes that need no attention."""


@dataclass(frozen=True, slots=True)
class DeclaredRecord:
    """Decision of the user that an unconfirmed row was applied to this record.

    `ignores_differences` is True if the record may differ from the row.
    """

    record_id: str
    ignores_differences: bool = False


Decision = Literal["look", "resend", "drop"] | DeclaredRecord
"""Decision on an unconfirmed row: look it up again, send it again, drop it, or name its record."""


_ROW_FIELDS = tuple(each.name for each in fields(RowRecord) if each.name != "problems")


class EndedRows:
    """All rows of a batch with their outcomes, on the disk, and the number of rows by outcome."""

    def __init__(self, folder: Path, rows: Iterable[RowRecord]) -> None:
        self.rows: SpillFile[RowRecord] = SpillFile(folder, _row_to_json, _row_from_json)
        self.counts: Counter[RowOutcome] = Counter()
        for row in rows:
            self.rows.add(row)
            self.counts[row.outcome] += 1


@dataclass(frozen=True, slots=True)
class BatchReport:
    """Result of one run of a batch.

    Attributes:
        ended: Rows of the batch with their outcomes.
        waited_seconds: Time that requests waited for the rate limit.
        rate_limited: Number of answers with status 429.
        answers_not_loaded: Number of answers that could not be loaded; the next pull loads their
            records.
        error: Error that ended the run early.
        month: Requests of the billing cycle; None if they could not be read.
        unpublished: Error that prevented the publication of the results.
    """

    outcome: RunOutcome
    batch: str
    ended: EndedRows = field(repr=False)
    requests: int
    seconds: float
    waited_seconds: float
    rate_limited: int
    answers_not_loaded: int = 0
    error: ConnectorError | None = None
    month: MonthUse | None = None
    unpublished: ConnectorError | None = None

    @property
    def rows(self) -> Collection[RowRecord]:
        """All rows of the batch, by number."""
        return self.ended.rows

    @property
    def counts(self) -> Mapping[RowOutcome, int]:
        """Number of rows by outcome, without outcomes that no row has."""
        return self.ended.counts

    @property
    def exit_status(self) -> int:
        """0 done, 1 failed or not published, 3 rows need attention, 4 stopped; or that of the
        error.
        """
        if self.outcome == "failed" and self.error is not None:
            return self.error.exit_status
        status = {"done": 0, "failed": 1, "partial": 3, "stopped": 4}[self.outcome]
        return 1 if self.unpublished is not None and status in (0, 3) else status

    def as_json(self) -> dict[str, Any]:
        """Return the report for `--json`, without the rows, which are in the report file."""
        shown: dict[str, Any] = {
            "outcome": self.outcome,
            "batch": self.batch,
            "rows": len(self.rows),
            **{str(outcome): count for outcome, count in self.counts.items()},
            "requests": self.requests,
            "seconds": round(self.seconds, 3),
            "waited_seconds": round(self.waited_seconds, 3),
            "rate_limited": self.rate_limited,
        }
        if self.error is not None:
            shown["error"] = self.error.as_json()
        if self.unpublished is not None:
            shown["unpublished"] = self.unpublished.as_json()
        return shown


def outcome_of_rows(rows: EndedRows, error: ConnectorError | None) -> RunOutcome:
    """Return the outcome of a run: stopped or failed by its error, else done or partial by its
    rows.
    """
    if error is not None:
        return "stopped" if isinstance(error, Stopped) else "failed"
    return "done" if rows.counts.keys() <= GOOD else "partial"


def _row_to_json(row: RowRecord) -> str:
    """Return a row as one line of JSON for the spill file."""
    values = [getattr(row, name) for name in _ROW_FIELDS]
    problems = [astuple(each) for each in row.problems]
    return json.dumps([*values, problems], default=datetime.isoformat)


def _row_from_json(text: str) -> RowRecord:
    """Return the row from a line of `_row_to_json`."""
    *values, problems = json.loads(text)
    values_by_name: dict[str, Any] = dict(zip(_ROW_FIELDS, values, strict=True))
    for name in ("undone_at", "moved_at"):
        values_by_name[name] = (
            None if values_by_name[name] is None else datetime.fromisoformat(values_by_name[name])
        )
    return RowRecord(**values_by_name, problems=tuple(Problem(*each) for each in problems))


# -- Decisions of the user on unconfirmed rows -----------------------------------------------------


async def transition_for_decision(
    client: Client, row: PendingRow, decision: Decision
) -> Transition:
    """Return the transition that carries out the user's decision on an unconfirmed row.

    A declared record is read first.

    Raises:
        Misused: The row is not unconfirmed, or the record does not exist or is not that of the row.
    """
    if row.status.state in IN_DOUBT - FOR_A_PERSON:
        raise Misused(
            f"the API may still apply row {row.key[1]} of the batch {row.key[0]}",
            action=(
                "Search for the record with --look. If it does not exist after some minutes, "
                "resolve the row with --resend or --drop."
            ),
        )
    if row.status.state not in FOR_A_PERSON:
        raise Misused(
            f"row {row.key[1]} of the batch {row.key[0]} is not unconfirmed",
            action="Give a row that 'connector resolve' lists.",
        )
    match decision:
        case "look":
            return Transition("looked_again", "in_doubt")
        case "resend":
            return Transition("resent", "in_doubt")
        case "drop":
            return Transition("dropped", "dropped")
        case DeclaredRecord():
            return await _transition_for_declared_record(client, row, decision)


async def _transition_for_declared_record(
    client: Client, row: PendingRow, declared: DeclaredRecord
) -> Transition:
    """Read the record that the user declared, and return the transition that makes it the row's.

    Raises `Misused` if the record does not exist, or differs and `ignores_differences` is False.
    """
    task, id = row.task, declared.record_id
    if task.record_id is not None and task.record_id != id:
        raise Misused(
            (f"row {row.key[1]} updates the record {task.record_id}, but another record was given"),
            action="Give the record of the row, or use --resend or --drop.",
        )
    try:
        record = await client.detail(task.resource, id, task.parent)
    except NotFound as error:
        if not error.is_api_error:
            # A proxy's page says nothing about the record.
            raise
        if task.operation == "convert":
            # A converted lead may be gone (API 3.5).
            return Transition("declared_applied", "declared", record_id=id)
        raise Misused(
            f"{task.resource} has no record {id}",
            action="Copy the id of the record from the platform.",
        ) from None
    other = [
        n for n, v in task.identity.items() if fold_identity(record.raw.get(n)) != fold_identity(v)
    ]
    if other and task.operation == "create" and not declared.ignores_differences:
        raise Misused(
            (f"the record {id} has other values than row {row.key[1]} in: {', '.join(other)}"),
            action="Give the id of the right record. If this record is right, add --force.",
        )
    updated_at = record.raw.get("updated_at")
    move = Transition(
        "declared_applied",
        "declared",
        record_id=id,
        updated_at=updated_at if isinstance(updated_at, str) else None,
        shown=record,
        is_detail=True,
    )
    if task.operation == "create" and task.afterwards and not row.status.is_begun:
        return replace(move, event="begun", before=dict(record.raw))
    return move


# -- Check after a restore -------------------------------------------------------------------------
# A restored ledger lacks the pushes since its backup, and a new one lacks all earlier pushes. Until
# a pull has verified the resource, rows of these pushes could be created a second time. After it,
# their records are loaded, and the rows are duplicates.


def check_pulled_since_restore(ledger: Ledger, warehouse: Warehouse, resource: str) -> None:
    """Raise `ConnectorError` if the ledger was replaced and no pull has verified the resource
    since.
    """
    restored = Backups(ledger).latest_restore()
    if restored is None:
        return
    before = restored.proven.get(resource)
    proven_at = warehouse.read(read_resource_state, resource, with_last_run=False).proven_at
    if proven_at is not None and (before is None or proven_at > before):
        return
    raise ConnectorError(
        f"the ledger was replaced at {format_moment(restored.restored_at)}, and no pull has "
        f"verified {resource} since. A push could create rows a second time",
        code="restored_unpulled",
    )


# -- Runs ------------------------------------------------------------------------------------------


async def apply(
    settings: Settings,
    plan: PushPlan,
    policy: PushPolicy | None = None,
    *,
    budget: int | None = None,
    ignores_quota: bool = False,
    people: Mapping[BatchAction, str] | None = None,
    watch: Watch | None = None,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
    sleep: Sleep | None = asyncio.sleep,
    connect: Callable[..., Client] = Client,
) -> BatchReport:
    """Send the plan's rows, and return a report with the outcome of each row.

    If the same file was pushed with the same policy and not finished, its batch continues. `budget`
    is the maximum number of requests, including retries and lookups. `people` are the users of the
    import page, for the journal. Without `sleep`, unconfirmed rows are not looked up again.

    Raises:
        Misused: The budget is 0.
        SettingsError: The address or the key is missing.
        LeaseHeld: Another push of the account is running.
        ConnectorError: The folder was restored, and the resource not pulled since.
        WarehouseError: Nothing could be recorded. Every other error is in the report.
    """
    policy = policy or PushPolicy()
    opening = open_run(
        settings,
        "push",
        lease=PUSH_LEASE,
        budget=budget,
        ignores_quota=ignores_quota,
        watch=watch,
        now=now,
        connect=connect,
    )
    async with opening as context:
        return await _BatchRun(context, sleep).send_plan(plan, policy, people or {})


async def resolve(
    settings: Settings,
    batch: str,
    numbers: int | Sequence[int],
    decision: Decision,
    *,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
    sleep: Sleep | None = asyncio.sleep,
    connect: Callable[..., Client] = Client,
) -> BatchReport:
    """Carry out a decision on unconfirmed rows, publish the results, and report on their batch.

    A declared record is read first. Raises what `apply` raises, and:

    Raises:
        UnknownName: The batch is not in the journal.
        Misused: A row is not unconfirmed, or the record does not exist.
    """
    opening = open_run(settings, "resolve", lease=PUSH_LEASE, now=now, connect=connect)
    async with opening as context:
        rows = [numbers] if isinstance(numbers, int) else numbers
        report = await _BatchRun(context, sleep).carry_out_decision(batch, rows, decision)
    return replace(report, unpublished=await asyncio.to_thread(copy_and_publish, settings))


async def look_up_unconfirmed_rows(
    settings: Settings,
    *,
    budget: int | None = None,
    publishes: bool = True,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
    connect: Callable[..., Client] = Client,
) -> str | None:
    """Look up the unconfirmed rows of all batches, and return a sentence for users about the
    result.

    Nothing is written to the API: rows that have to be sent wait for the next push of their file.
    Returns None if there are no such rows, or if a running push looks them up itself. Raises
    `SettingsError` and `WarehouseError`.
    """
    if not has_rows_to_look_up(settings.folder):
        return None
    opening = open_run(
        settings, "settle", lease=PUSH_LEASE, budget=budget, now=now, connect=connect
    )
    try:
        async with opening as context:
            rows, error = await _BatchRun(context, None).look_up_rows()
    except LeaseHeld:
        return None
    unpublished = None
    if publishes:
        unpublished = await asyncio.to_thread(copy_and_publish, settings)
    else:
        await asyncio.to_thread(copy_journal, settings)
    message = ", ".join(f"{n} {name}" for name, n in Counter(each.outcome for each in rows).items())
    why = "; ".join(str(each) for each in (error, unpublished) if each is not None)
    return (
        f"{count_noun(len(rows), 'row')} of earlier pushes unconfirmed. Result of a new search: "
        f"{message} ('connector resolve' lists the rows that are still "
        f"unconfirmed){f'; {why}' if why else ''}"
    )


class _BatchRun:
    """Run that sends or looks up rows of a batch, within an open run context."""

    def __init__(self, context: RunContext, sleep: Sleep | None) -> None:
        self._context, self._sleep = context, sleep
        self._batches: dict[str, BatchRecord] = {}
        self._started = time.monotonic()
        self._session = PushSession.of(context)
        self._journal = self._session.journal

    async def send_plan(
        self, plan: PushPlan, policy: PushPolicy, people: Mapping[BatchAction, str]
    ) -> BatchReport:
        """Record the plan in the journal, send its rows, and report."""
        ledger, warehouse = self._context.lease.ledger, self._context.warehouse
        await asyncio.to_thread(check_pulled_since_restore, ledger, warehouse, plan.resource)
        deadline = self._context.client.limits.deadline_seconds
        policy = replace(
            policy,
            settle_seconds=max(policy.settle_seconds, settle_seconds_min(deadline)),
            lateness_seconds=max(policy.lateness_seconds, self._context.lateness_seconds),
        )
        await asyncio.to_thread(self._journal.mark_interrupted_rows)
        before = await asyncio.to_thread(self._recently_created_ids, plan)
        batch = await asyncio.to_thread(self._journal.create_batch, plan, policy, before, people)
        pending = await asyncio.to_thread(self._journal.count_pending, batch)
        return await self._run_rows_and_report(batch, self._journal.rows_to_push(batch), pending)

    async def carry_out_decision(
        self, batch: str, numbers: Sequence[int], decision: Decision
    ) -> BatchReport:
        """Record the user's decision on each row, send or look up the rows, and report."""
        self._session.is_eager = decision == "look"
        await asyncio.to_thread(self._journal.mark_interrupted_rows)
        batch = (await asyncio.to_thread(self._journal.batch, batch)).batch
        rows = [
            row
            for number in numbers
            if (row := await self._apply_user_decision((batch, number), decision))
        ]
        pending = PendingCount(len(rows), frozenset(each.key for each in rows))
        return await self._run_rows_and_report(batch, rows, pending)

    async def _apply_user_decision(self, key: RowKey, decision: Decision) -> PendingRow | None:
        """Carry out the user's decision on an unconfirmed row, or on the row that it repeats.

        Returns the row if it is still to be run; None if it has ended.
        """
        record = await asyncio.to_thread(self._journal.row_record, key)
        if record is not None and record.state == "follows" and record.same_row is not None:
            key = record.same_row
        row = await asyncio.to_thread(self._journal.row_with_task, key)
        if row is None:
            raise Misused(
                f"row {key[1]} of the batch {key[0]} was never sent",
                action="Give a row that 'connector resolve' lists.",
            )
        # A row whose lookup was interrupted is looked up again without a transition.
        if row.status.state in FOR_A_PERSON or decision != "look":
            await self._session.record_transition(
                row, await transition_for_decision(self._context.client, row, decision)
            )
        row = await asyncio.to_thread(self._journal.row_with_task, key)
        return row if row is not None and row.status.state in UNFINISHED else None

    async def look_up_rows(self) -> tuple[list[RowRecord], ConnectorError | None]:
        """Look up all unconfirmed rows that need no decision. Sends no write.

        Returns the rows with their outcomes afterwards, and the error that ended the run early.
        """
        self._session.is_read_only = self._session.is_eager = True
        await asyncio.to_thread(self._journal.mark_interrupted_rows)
        found = [
            each for each in self._journal.unconfirmed_rows() if each.state not in FOR_A_PERSON
        ]
        batches: dict[str, list[PendingRow]] = {}
        for each in found:
            if (row := self._journal.row_with_task((each.batch, each.number))) is not None:
                batches.setdefault(each.batch, []).append(row)
        for batch, rows in batches.items():
            await self._run_rows(
                batch, rows, PendingCount(len(rows), frozenset(r.key for r in rows))
            )
        ended = (self._journal.row_record((each.batch, each.number)) for each in found)
        return [row for row in ended if row is not None], self._session.error

    async def _run_rows_and_report(
        self, batch: str, rows: Iterable[PendingRow], pending: PendingCount
    ) -> BatchReport:
        """Send or look up the rows, record the end of the run, and report."""
        await self._run_rows(batch, rows, pending)
        return await self._record_run_end(batch)

    async def _run_rows(
        self, batch: str, rows: Iterable[PendingRow], pending: PendingCount
    ) -> None:
        """Send or look up the rows, several at the same time, and load all answers."""
        self._session.on_batch_start(await asyncio.to_thread(self._read_batch, batch), pending.rows)
        open_about = await asyncio.to_thread(self._journal.open_rows_by_subject)
        order = RowQueue(rows, open_about, pending.open)
        try:
            await BatchExecutor(self._session, order, self._make_row_runner, self._sleep).run_rows()
        finally:
            await self._session.loader.load_rest()

    def _read_batch(self, batch: str) -> BatchRecord:
        """Return the batch from the journal, which is read once."""
        if batch not in self._batches:
            self._batches[batch] = self._journal.batch(batch)
        return self._batches[batch]

    def _make_row_runner(self, row: PendingRow) -> RunRow:
        """Return the function that carries out the steps of a row."""
        begun = self._read_batch(row.key[0])
        resource = declaration(row.task.resource)
        steps = run_row(resource, row.task, begun.terms, row.status)
        return RowExecutor(row, steps, self._session).run

    async def _record_run_end(self, batch: str) -> BatchReport:
        """Record in the journal how the run ended, and return the report."""
        folder, rows = self._context.warehouse.folder, self._journal.rows(batch)
        error = self._session.error
        ended = await asyncio.to_thread(EndedRows, folder, rows)
        tally, seconds = self._context.tally, time.monotonic() - self._started
        outcome = outcome_of_rows(ended, error)
        # A run that has lost its lease records nothing more.
        with suppress(WarehouseError, Stopped):
            await asyncio.to_thread(
                self._journal.record_run_end,
                batch,
                outcome,
                requests=tally.requests,
                seconds=seconds,
                error_code=error.code if error else None,
                message=str(error) if error else None,
            )
        month = None
        with suppress(WarehouseError):  # The push has succeeded even if the month cannot be read.
            month = await self._context.read_month()
        return BatchReport(
            outcome=outcome,
            batch=batch,
            ended=ended,
            requests=tally.requests,
            seconds=seconds,
            waited_seconds=tally.waited_seconds,
            rate_limited=tally.rate_limited,
            answers_not_loaded=self._session.loader.answers_not_loaded,
            error=error,
            month=month,
        )

    def _recently_created_ids(self, plan: PushPlan) -> frozenset[str]:
        """Return the ids of recently created records in the warehouse, which this plan did not
        create.
        """
        creates = {task.parent: task for task in plan.tasks if task.operation == "create"}
        lately = timedelta(seconds=LATENESS_UNTIMED_SECONDS + self._context.lateness_seconds)
        since = self._session.served_at - lately
        found: set[str] = set()
        for task in creates.values():
            stream = self._session.loader.find_stream(task)
            if stream is not None:
                found |= self._context.warehouse.query(
                    stream, lambda rows: rows.created_between(since, None)
                )
        self._context.warehouse.release()
        return frozenset(found)
