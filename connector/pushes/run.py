"""Run of a push: sends the rows of one batch, several at the same time, and resolves lost ones.

Rows start in the order of the file. Rows for the same record or identity are sent one after
another, and so are creates without an identity. If the run ends early, the journal has the state of
each row, and the next run continues from there.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter, deque
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from connector.catalog.resource import LATENESS_UNTIMED_SECONDS
from connector.client.client import Client
from connector.errors import ConnectorError, Misused, NotFound, Stopped, WarehouseError
from connector.models.publish import publish
from connector.pulls.account import RunContext, open_run
from connector.pulls.report import Watch
from connector.pushes.row import PushStopped, done_outcome, push_row
from connector.pushes.session import Postponed, Session, Sleep
from connector.settings import Settings
from connector.state.journal import Batch, Plan
from connector.state.quota import format_moment
from connector.state.row import GOOD, Policy, Problem, Row, RowKey, fold, subject
from connector.state.runs import Restore
from connector.warehouse.queries import bookmark_runs, resource_state


@dataclass(frozen=True, slots=True)
class DeclaredRecord:
    """Decision of the user that an unconfirmed row was applied to this record.

    `ignores_differences` is True if the record may differ from the row.
    """

    record_id: str
    ignores_differences: bool = False


Decision = Literal["look", "resend", "drop"] | DeclaredRecord
"""Decision on an unconfirmed row: look it up again, send it again, drop it, or name its record."""


@dataclass(frozen=True, slots=True)
class Report:
    """Result of one run of a batch.

    Attributes:
        rows: All rows of the batch with their outcomes, by number.
        error: Error that ended the run early.
        unpublished: Error that prevented the publication of the results.
        is_applied: Whether the run wrote to the API, or only previewed an undo.
    """

    batch: str
    rows: Sequence[Row] = field(repr=False)
    requests: int
    seconds: float
    error: ConnectorError | None = None
    unpublished: ConnectorError | None = None
    is_applied: bool = True

    @property
    def counts(self) -> Mapping[str, int]:
        """Number of rows by outcome, without outcomes that no row has."""
        return Counter(row.outcome for row in self.rows)

    @property
    def outcome(self) -> Literal["previewed", "done", "partial", "stopped", "failed"]:
        """How the run ended; "partial" if some rows need attention."""
        if self.error is not None:
            return "stopped" if isinstance(self.error, Stopped) else "failed"
        if not self.is_applied:
            return "previewed"
        return "done" if self.counts.keys() <= GOOD else "partial"

    @property
    def exit_status(self) -> int:
        """0 done, 1 not published, 3 rows need attention, or the exit status of the error."""
        if self.error is not None:
            return self.error.exit_status
        if self.unpublished is not None:
            return 1
        return 0 if self.counts.keys() <= GOOD else 3

    def as_json(self) -> dict[str, Any]:
        """Return the report for `--json`, without the rows, which are in the report file."""
        return {
            "outcome": self.outcome,
            "batch": self.batch,
            "rows": len(self.rows),
            **self.counts,
            "requests": self.requests,
            "seconds": round(self.seconds, 3),
            "error": None if self.error is None else self.error.as_json(),
            "unpublished": None if self.unpublished is None else self.unpublished.as_json(),
        }


# -- Commands --------------------------------------------------------------------------------------


async def send(
    settings: Settings,
    plan: Plan,
    policy: Policy | None = None,
    *,
    budget: int | None = None,
    ignores_quota: bool = False,
    sent_by: str | None = None,
    watch: Watch | None = None,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
    sleep: Sleep | None = asyncio.sleep,
    connect: Callable[..., Client] = Client,
) -> Report:
    """Send the plan's rows, and return a report with the outcome of each row.

    If the same file was pushed with the same policy and not finished, its batch continues. `budget`
    is the maximum number of requests. `sent_by` is the user of the import page, for the journal.
    Without `sleep`, unconfirmed rows are looked up once.

    Raises:
        Misused: The budget is 0.
        SettingsError: The address or the key is missing.
        AccountBusy: Another process uses the account.
        ConnectorError: The folder was restored, and the resource not pulled since.
        WarehouseError: Nothing could be recorded. Every other error is in the report.
    """
    policy = policy or Policy()
    async with open_run(
        settings, "push", budget=budget, ignores_quota=ignores_quota, watch=watch, now=now,
        connect=connect,
    ) as context:  # fmt: skip
        _check_pulled_since_restore(context, plan.resource)
        session = Session(context, sleep)
        deadline = context.client.limits.deadline_seconds
        policy = replace(
            policy,
            settle_seconds=max(policy.settle_seconds, 2 * deadline),
            lateness_seconds=max(policy.lateness_seconds, context.lateness_seconds),
        )
        known = await asyncio.to_thread(_recently_created, session, plan)
        batch = session.stored.begin(
            plan, policy, context.run.run_id, known_ids=known, sent_by=sent_by
        )
        return await _run_batch(session, batch, session.stored.unfinished(batch.batch))


async def resolve(
    settings: Settings,
    name: str,
    numbers: Sequence[int],
    decision: Decision,
    *,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
    sleep: Sleep | None = asyncio.sleep,
    connect: Callable[..., Client] = Client,
) -> Report:
    """Carry out a decision on unconfirmed rows, publish the results, and report on their batch.

    A declared record is read first. Raises what `send` raises, and:

    Raises:
        UnknownName: The batch is not in the journal.
        Misused: A row is not unconfirmed, or the record does not exist.
    """
    async with open_run(settings, "resolve", now=now, connect=connect) as context:
        session = Session(context, sleep)
        batch = session.stored.batch(name)
        rows = []
        for number in numbers:
            row = await _decide(session, (name, number), decision)
            rows += [row] if row.state in ("planned", "sent") else []
        report = await _run_batch(session, batch, rows)
        return replace(report, unpublished=await publish_results(settings))


async def publish_results(settings: Settings) -> ConnectorError | None:
    """Publish what was written. Returns the error that prevented it: the rows are sent anyway."""
    try:
        await asyncio.to_thread(publish, settings)
    except ConnectorError as error:
        return error
    return None


# -- Batch -----------------------------------------------------------------------------------------


async def _run_batch(session: Session, batch: Batch, rows: Sequence[Row]) -> Report:
    """Send or look up the rows, record the end of the run, and report."""
    started, journal = time.monotonic(), session.stored
    policies = {name: journal.batch(name).policy for name in {row.batch for row in rows}}
    queue = Queue(rows, journal.open_subjects())
    await run_all(session, batch, queue, lambda row: push_row(row, session, policies[row.batch]))
    seconds, error = time.monotonic() - started, session.error
    requests = session.context.tally.requests
    report = Report(batch.batch, journal.rows(batch.batch), requests, seconds, error)
    # The rows are sent, even if nothing more can be recorded.
    with suppress(WarehouseError):
        journal.end(
            batch.batch,
            report.outcome,
            requests=requests,
            seconds=seconds,
            error_code=error.code if error else None,
            message=str(error) if error else None,
        )
    return report


async def run_all(
    session: Session, batch: Batch, queue: Queue, push: Callable[[Row], Coroutine[Any, Any, None]]
) -> None:
    """Run the rows of a queue, started in their order, and load all answers.

    An error of all rows stops the run.
    """
    rows_max = session.context.connections  # A kill leaves at most these rows unconfirmed.
    active: dict[asyncio.Task[None], Row] = {}
    postponed: list[tuple[datetime, Row]] = []
    session.begin_batch(batch, len(queue))
    try:
        while True:
            now = session.context.now()
            queue.put_first(row for until, row in postponed if until <= now)
            postponed = [each for each in postponed if each[0] > now]
            while session.error is None and len(active) < rows_max and (row := queue.next_row()):
                if (by := queue.blocked_by(row)) is None:
                    active[asyncio.create_task(push(row))] = row
                    continue
                block(row, by)
                session.stored.save(row)
                session.end_row()
            if not active:
                if session.error is not None or not postponed:
                    return
                await session.sleep_until(min(until for until, _ in postponed), len(postponed))
                continue
            done, _ = await asyncio.wait(active, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                row = active.pop(task)
                match task.exception():
                    case Postponed() as later:
                        postponed.append((later.until, row))
                        continue
                    case ConnectorError() as error:
                        session.stop(error)
                    case None | PushStopped():
                        pass
                    case error:
                        raise error
                queue.end_row(row)
                session.end_row()
    finally:
        for task in active:
            task.cancel()
        await asyncio.gather(*active, return_exceptions=True)
        await session.load_rest()


def block(row: Row, by: RowKey) -> None:
    """Note that an open row for the same record blocks a planned row. Its state stays."""
    batch, number = by
    problem = Problem(
        "in_doubt_elsewhere",
        f"row {number} of the batch {batch} is for the same record and is unconfirmed",
        fix="Resolve that row with 'connector resolve', then push this row again.",
    )
    row.code, row.problems, row.same = problem.code, (problem,), by


class Queue:
    """Rows of one run in their order. Rows for the same record start one after another.

    Args:
        rows: Rows, in order.
        open_by_subject: Row with an open write in the journal, by the record that it writes.
        subject_of: Returns the record that a row writes.
    """

    def __init__(
        self,
        rows: Iterable[Row],
        open_by_subject: Mapping[str, RowKey],
        subject_of: Callable[[Row], str | None] = subject,
    ) -> None:
        self._rows, self._subject_of = deque(rows), subject_of
        own = {row.key for row in self._rows}
        self._under_way = {s: key for s, key in open_by_subject.items() if key in own}
        self._open = {s: key for s, key in open_by_subject.items() if key not in own}
        self._behind: dict[str, list[Row]] = {}

    def __len__(self) -> int:
        """Return the number of rows that can start, without rows that wait for another."""
        return len(self._rows)

    def blocked_by(self, row: Row) -> RowKey | None:
        """Return the open row for the same record, which is not in this run."""
        return self._open.get(str(self._subject_of(row)))

    def put_first(self, rows: Iterable[Row]) -> None:
        """Let rows continue that have started before."""
        self._rows.extendleft(rows)

    def next_row(self) -> Row | None:
        """Return the next row that can start, or that is blocked; None if none can start now."""
        while self._rows:
            row = self._rows.popleft()
            about = str(self._subject_of(row))
            if about in self._open or self._under_way.setdefault(about, row.key) == row.key:
                return row
            self._behind.setdefault(about, []).append(row)
        return None

    def end_row(self, row: Row) -> None:
        """Let rows for the same record start. An open write blocks them instead."""
        about = str(self._subject_of(row))
        self._under_way.pop(about, None)
        if row.is_open and not row.is_nameless:
            self._open[about] = row.key
        self._rows.extendleft(reversed(self._behind.pop(about, [])))


# -- Decisions of the user -------------------------------------------------------------------------


async def _decide(session: Session, key: RowKey, decision: Decision) -> Row:
    """Carry out the user's decision on an unconfirmed row, or on the row that it follows."""
    row = session.stored.row(key)
    if row is not None and row.is_followed and row.same is not None:
        row = session.stored.row(row.same)
    if row is None or row.state not in ("sent", "held"):
        raise Misused(
            f"row {key[1]} of the batch {key[0]} is not unconfirmed",
            action="Give a row that 'connector resolve' lists.",
        )
    if row.state == "sent" and decision == "look":
        return row
    if row.state == "sent":
        raise Misused(
            f"the API may still apply row {row.number} of the batch {row.batch}",
            action="Search for the record with --look. If it does not exist after some minutes, "
            "resolve the row with --resend or --drop.",
        )
    if isinstance(decision, DeclaredRecord):
        await _declare(session, row, decision)
        return row
    if decision == "drop":
        row.end("refused", "not_sent", "dropped")
    else:
        row.state = "sent" if decision == "look" else "planned"
        row.code, row.problems = "in_doubt", ()
    await session.save(row)
    return row


async def _declare(session: Session, row: Row, declared: DeclaredRecord) -> None:
    """Read the record that the user declared, and make it the row's.

    Raises `Misused` if it does not exist, or differs and `ignores_differences` is False.
    """
    id = declared.record_id
    if row.record_id is not None and row.operation != "create" and row.record_id != id:
        raise Misused(
            f"row {row.number} updates the record {row.record_id}, but another record was given",
            action="Give the record of the row, or use --resend or --drop.",
        )
    try:
        record = await session.context.client.detail(row.resource, id, row.parent)
    except NotFound as error:
        if not error.is_api_error:
            raise  # A proxy's page says nothing about the record.
        if row.operation == "convert":
            # A converted lead may be gone (API 3.5).
            row.end("done", "converted", "declared")
            await session.save(row)
            return
        raise Misused(
            f"{row.resource} has no record {id}",
            action="Copy the id of the record from the platform.",
        ) from None
    other = [n for n, v in row.identity.items() if fold(record.raw.get(n)) != fold(v)]
    if other and row.operation == "create" and not declared.ignores_differences:
        raise Misused(
            f"the record {id} has other values than row {row.number} in: {', '.join(other)}",
            action="Give the id of the right record. If this record is right, add --force.",
        )
    at = record.raw.get("updated_at")
    row.record_id, row.updated_at = id, at if isinstance(at, str) else row.updated_at
    if row.operation == "create" and row.then and not row.is_created:
        row.before, row.is_created = dict(record.raw), True
        row.end("planned", "not_applied", "declared")
    else:
        row.end("done", done_outcome(row), "declared")
    await session.save(row, record)


# -- Checks before the first row -------------------------------------------------------------------


def _check_pulled_since_restore(context: RunContext, resource: str) -> None:
    """Raise `ConnectorError` if the state was replaced and no pull has verified the resource since.

    The state lacks the pushes since its backup: their rows could be created a second time. After a
    pull their records are loaded, and the rows are duplicates.
    """
    runs = {run_id for (run_id,) in context.database.rows("SELECT run_id FROM runs")}
    restored = context.database.fact_as(Restore, "restore")
    if context.warehouse.read(bookmark_runs, resource) - runs:
        why = f"{context.database.path} is older than the records of {resource}, so that it was put"
        why += " back from a copy"
    elif restored is not None:
        before = restored.proven.get(resource)
        proven_at = context.warehouse.read(resource_state, resource).proven_at
        if proven_at is not None and (before is None or proven_at > before):
            return
        why = f"the state was replaced at {format_moment(restored.restored_at)}, and no pull has"
        why += f" verified {resource} since"
    else:
        return
    message = f"{why}. A push could create rows a second time"
    raise ConnectorError(message, code="restored_unpulled")


def _recently_created(session: Session, plan: Plan) -> Collection[str]:
    """Return the ids of recently created records in the local copy: no row has created them."""
    parents = {row.parent for row in plan.rows if row.operation == "create"}
    lately = timedelta(seconds=LATENESS_UNTIMED_SECONDS + session.context.lateness_seconds)
    _, server_now = session.times()
    found: set[str] = set()
    for parent in parents:
        if (stream := session.stream_of(plan.resource, parent)) is not None:
            found |= session.context.warehouse.query(
                stream, lambda rows: rows.live(server_now - lately, None)
            )
    return found
