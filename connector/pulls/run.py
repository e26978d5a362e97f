"""Run of a pull: update resources one after another, and publish the loaded rows.

An error of one resource does not affect the others. `pull.py` decides what to read, and
`streams.py` reads it.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import TypeVar

from connector.catalog import CATALOG, declaration
from connector.catalog.resource import Declaration
from connector.client.client import Client
from connector.client.messages import check_ids
from connector.errors import (
    AnswerTooLarge,
    ConnectorError,
    Forbidden,
    Misused,
    NotFound,
    NotTheApi,
    Stopped,
    Unauthorized,
    Unreachable,
    UnreadableAnswer,
    UnusableId,
    WarehouseError,
    count_noun,
)
from connector.log import shorten_name
from connector.models.publish import PublishResult, publish
from connector.models.runner import Watch as BuildWatch
from connector.pulls import pull as pulls
from connector.pulls.account import RunContext, open_run, select_resources
from connector.pulls.ports import FEWEST_REQUESTS, PullOptions, PullResult
from connector.pulls.report import (
    QUIET_KINDS,
    Progress,
    PullReport,
    ResourceOutcome,
    RunOutcome,
    Watch,
    describe_unread,
)
from connector.pulls.streams import StreamApi, StreamCopy
from connector.settings import Settings
from connector.state.runs import ONCE, Event, ResourceRun
from connector.warehouse import queries
from connector.warehouse.landing import Counts
from connector.warehouse.queries import ResourceState, UnreadRecord
from connector.warehouse.stream import Bookmark, Commit, Stream

_FATAL = (Unauthorized, Stopped, Unreachable, WarehouseError, NotTheApi)
"""Errors that every further request would raise as well."""

RUNS_UNTIL_COMPACTION = 50
"""Number of runs with changes before a compaction; each run leaves separate row groups."""

TWIN = (
    "was created within a minute of a pushed row with the same identity, and not by the connector"
)
"""Detail of the event `twin`."""

K = TypeVar("K")


async def pull(
    settings: Settings,
    resources: Sequence[str] = (),
    *,
    options: PullOptions = FEWEST_REQUESTS,
    ids: Sequence[str] | Mapping[str, Sequence[str]] = (),
    budget: int | None = None,
    ignores_quota: bool = False,
    publishes: bool = True,
    watch: Watch | None = None,
    building: BuildWatch | None = None,
    command: str = "pull",
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
    connect: Callable[..., Client] = Client,
) -> PullReport:
    """Update the local copy of the resources (default: all) and publish it.

    Args:
        settings: Settings of the account.
        resources: Names of resources.
        options: Options beyond the minimum number of requests. `verification_requests` are divided
            among the resources by size.
        ids: Read only these records, by resource, or of the only resource.
        budget: Maximum number of requests, including retries.
        ignores_quota: Send requests even if the API reported that the monthly quota is used up.
        publishes: Publish at the end if something has changed.
        watch: Called with the progress.
        building: Called after each model and check of the publication.
        command: Name of the command in the record of the run.
        now: Clock.
        connect: Creates the client.

    Raises:
        UnknownName: A resource does not exist.
        Misused: The budget is 0, or ids were given without exactly one resource.
        UnusableId: No path can contain an id.
        SettingsError: The address or the key is missing, or the folder has other records.
        AccountBusy: Another process uses the account.
        WarehouseError: The run could not be recorded. Other failures are in the report.
    """
    names = select_resources(tuple(ids) if isinstance(ids, Mapping) else resources)
    if not isinstance(ids, Mapping):
        if ids and len(names) != 1:
            raise Misused("--ids needs exactly one resource")
        ids = {names[0]: ids} if ids else {}
    wanted = {name: tuple(dict.fromkeys(each)) for name, each in ids.items()}
    for name, each in wanted.items():
        check_ids(declaration(name), each)
    opening = open_run(
        settings,
        command,
        budget=budget,
        ignores_quota=ignores_quota,
        loads_again=options.is_full,
        watch=watch,
        now=now,
        connect=connect,
    )
    async with opening as context:
        run_id = context.run.run_id
        publishing = partial(publish, settings, run_id=run_id, watch=building, now=now)
        run = PullRun(context, options, wanted)
        return await run.run(names, publishing if publishes else None)


class ResourceTally:
    """Row counts and result of one resource's pull, summed over its streams."""

    def __init__(self) -> None:
        self.counts = Counts()
        self.read = self.pending = 0
        self.total: int | None = None
        self.is_proven = True
        self.reason: str | None = None
        self.code: str | None = None

    def add_commit(self, commit: Commit, counts: Counts) -> None:
        """Add the row counts of one commit."""
        self.counts += counts
        self.read += len(commit.records)
        self.pending += counts.listed + len(commit.enqueue) - len(commit.records) - len(commit.gone)
        self.pending = max(0, self.pending)

    def add_result(self, result: PullResult) -> None:
        """Add the result of one stream."""
        self.total = (self.total or 0) + result.total
        self.is_proven = self.is_proven and result.is_proven
        if self.reason is None or (self.code is None and result.code is not None):
            self.reason, self.code = result.reason, result.code


class PullRun:
    """One run that pulls several resources and publishes."""

    def __init__(
        self, context: RunContext, options: PullOptions, ids: Mapping[str, tuple[str, ...]]
    ) -> None:
        self._context, self._options, self._ids = context, options, ids
        self._scrubs: dict[str, int] = {}
        self._live_before: dict[str, int] = {}
        self._started = time.monotonic()
        self._anomalies: dict[str, tuple[Event, ...]] = {}
        self._was_readable = False
        """True if the address gave readable responses in an earlier run."""

    async def run(
        self, names: tuple[str, ...], publishing: Callable[[], PublishResult] | None
    ) -> PullReport:
        """Pull the resources one after another; record the end and publish."""
        context, tally = self._context, self._context.tally
        context.runs.begin(context.run)
        await asyncio.to_thread(self._compact_if_due)
        try:
            results, outcome, fatal = await self._pull_resources(names)
        except (asyncio.CancelledError, KeyboardInterrupt):
            # A planned stop is no failure, and differs from a run that was killed.
            self._record_end("stopped", None)
            raise
        outcome, fatal = self._record_end(outcome, fatal)
        published: PublishResult | None = None
        unpublished: ConnectorError | None = None
        if outcome != "failed" and publishing is not None:
            context.warehouse.close()
            try:
                published = await asyncio.to_thread(publishing)
            except ConnectorError as error:
                unpublished = error
                # A stopped run stays stopped: the next one continues and publishes. Any other run
                # has failed, because analysts do not see its rows.
                if outcome != "stopped":
                    outcome, fatal = "failed", error
                outcome, fatal = self._record_end(outcome, fatal, error)
        return PullReport(
            outcome=outcome,
            run_id=context.run.run_id,
            seconds=time.monotonic() - self._started,
            waited_seconds=tally.waited_seconds,
            requests=tally.requests,
            rate_limited=tally.rate_limited,
            resources={name: results[name] for name in names},
            error=fatal,
            month=context.quota.month(),
            published=published,
            unpublished=unpublished,
            anomalies={name: events for name, events in self._anomalies.items() if events},
        )

    async def _pull_resources(
        self, names: tuple[str, ...]
    ) -> tuple[dict[str, ResourceRun], RunOutcome, ConnectorError | None]:
        """Pull the resources. Return their results, and the run's outcome and error."""
        context = self._context
        results: dict[str, ResourceRun] = {}
        first: ConnectorError | None = None
        fatal: ConnectorError | None = None
        states = {name: self._state(name) for name in names}
        self._was_readable = any(each.live for each in states.values())
        self._live_before = {name: states[name].live for name in names}
        self._scrubs = _split_by_size(self._options.verification_requests, self._live_before)
        for name in _least_recently_verified_first(names, states):
            context.watch(Progress(name))
            if fatal is None:
                results[name], error = await self._pull_resource(name)
                # A missing scope is an error of its resource; other errors of this kind end the
                # run.
                first = error if first is None or isinstance(first, Forbidden) else first
                is_fatal = isinstance(error, _FATAL) and error.code != "answer_broken"
                fatal = error if is_fatal else None
            else:
                results[name] = self._record(name, None, "not_started", None, ResourceTally())
            context.watch(Progress(name, requests=results[name].requests, ended=results[name]))
        outcome = _run_outcome(results, fatal)
        return results, outcome, fatal or (first if outcome == "failed" else None)

    def _compact_if_due(self) -> None:
        """Compact the work file after many runs with changes."""
        database = self._context.database
        ((count,),) = database.rows(
            "SELECT count(DISTINCT run_id) FROM run_resources JOIN runs USING (run_id)"
            " WHERE new + changed + deleted > 0 AND started_at > ?",
            database.fact("compacted_at") or "",
        )
        if count >= RUNS_UNTIL_COMPACTION:
            self._context.warehouse.compact()
            database.note("compacted_at", self._context.now())

    # -- One resource ------------------------------------------------------------------------------

    async def _pull_resource(self, name: str) -> tuple[ResourceRun, ConnectorError | None]:
        """Pull a resource. Return its recorded result, and the error if it failed."""
        resource, tally = declaration(name), ResourceTally()
        before: datetime | None = None
        error: ConnectorError | None = None
        outcome: ResourceOutcome = "done"
        try:
            streams = await self._streams(resource)
            marks = [(await self._context.bookmark(each)).proven_at for each in streams]
            before = None if None in marks else min(filter(None, marks), default=None)
            if self._ids:
                await self._pull_ids(name, streams, tally)
            else:
                await self._pull_streams(resource, streams, tally)
        except ConnectorError as raised:
            error = self._as_broken_answer(raised)
            if isinstance(error, Forbidden):
                outcome = "skipped"
            else:
                outcome = "stopped" if isinstance(error, Stopped) else "failed"
        return self._record(name, before, outcome, error, tally), error

    def _as_broken_answer(self, error: ConnectorError) -> ConnectorError:
        """Return the error as `answer_broken` if earlier answers were readable."""
        if isinstance(error, UnreadableAnswer | AnswerTooLarge) and (
            self._was_readable or self._context.tally.readable
        ):
            return NotTheApi(error.where, error.answer, code="answer_broken")
        return error

    async def _streams(self, resource: Declaration) -> tuple[Stream, ...]:
        """Return the streams of a resource. Parents that were never pulled are pulled first."""
        if resource.parent is not None:
            parents = Stream(declaration(resource.parent))
            if (await self._context.bookmark(parents)).proven_at is None:
                await self._pull_stream(parents, ResourceTally(), 0)
        return await self._context.streams(resource)

    async def _pull_streams(
        self, resource: Declaration, streams: tuple[Stream, ...], tally: ResourceTally
    ) -> None:
        """Pull all streams of a resource, and end those whose parent is deleted."""
        scrubs = self._scrubs.get(resource.name, 0)
        shares = _split_by_size(scrubs, {each.parent: 1 for each in streams})
        if not streams:
            tally.total = 0  # Without a parent, the API has no such record.
        for stream in streams:
            tally.add_result(await self._pull_item_stream(stream, tally, shares[stream.parent]))
        for stream in await self._context.ended_streams(resource):
            ports = await self._ports(stream, tally)
            tally.add_result(await pulls.end_stream(*ports, self._options))

    async def _pull_stream(self, stream: Stream, tally: ResourceTally, scrubs: int) -> PullResult:
        """Pull one stream with this number of additional requests for verification."""
        options = replace(self._options, verification_requests=scrubs)
        return await pulls.run(*await self._ports(stream, tally), options)

    async def _ports(
        self, stream: Stream, tally: ResourceTally
    ) -> tuple[StreamApi, StreamCopy, Declaration, Bookmark]:
        """Return the API, the local copy, the resource and the bookmark of a stream."""
        context, name = self._context, stream.resource.name

        def note(commit: Commit, counts: Counts) -> None:
            tally.add_commit(commit, counts)
            live = self._live_before.get(name, 0) + tally.counts.listed - tally.counts.deleted
            context.runs.note_progress(context.run.run_id, name, live, tally.pending)
            requests = context.tally.requests_of(name)
            context.watch(Progress(name, tally.read, tally.pending, requests))

        copy = StreamCopy(context, stream, note)
        api = StreamApi(self._context, stream, copy)
        return api, copy, stream.resource, await self._context.bookmark(stream)

    async def _pull_item_stream(
        self, stream: Stream, tally: ResourceTally, scrubs: int
    ) -> PullResult:
        """Pull a stream. If its list does not exist, pull the parents to check its parent."""
        try:
            return await self._pull_stream(stream, tally, scrubs)
        except UnusableId as error:
            if stream.parent is None:
                raise
            reason = f"the items of {shorten_name(stream.parent)} cannot be listed: {error}"
            return PullResult(False, reason, 0, "record_unreadable")
        except NotFound as error:
            if stream.resource.parent is None or not error.is_api_error:
                raise
            parents = Stream(declaration(stream.resource.parent))
            await self._pull_stream(parents, ResourceTally(), 0)
            if stream in await self._streams(stream.resource):
                raise
        return PullResult(True, None, 0)

    async def _pull_ids(self, name: str, streams: tuple[Stream, ...], tally: ResourceTally) -> None:
        """Read only the requested ids. A child record can only be read if it is loaded."""
        wanted = self._ids[name]
        unknown, reasons = set(wanted), list[str]()
        for stream in streams:
            ids = wanted
            if stream.parent is not None:
                _, copy, *_ = await self._ports(stream, tally)
                landed = await copy.live(None, None)
                ids = tuple(id for id in ids if id in landed)
            unknown -= set(ids)
            if ids:
                pulled = await pulls.read_ids(*await self._ports(stream, tally), ids)
                tally.add_result(pulled)
                if pulled.reason is not None and pulled.reason != pulls.ONLY_THESE:
                    reasons.append(pulled.reason)
        if unknown:
            named = ", ".join(sorted(unknown))
            reasons.append(f"not loaded, so the parent record is unknown: {named}")
        tally.reason = "; ".join(reasons) or pulls.ONLY_THESE

    # -- Records -----------------------------------------------------------------------------------

    def _state(self, name: str) -> ResourceState:
        """Return the loaded state of a resource."""
        return self._context.warehouse.read(queries.resource_state, name)

    def _record(
        self,
        name: str,
        before: datetime | None,
        outcome: ResourceOutcome,
        error: ConnectorError | None,
        tally: ResourceTally,
    ) -> ResourceRun:
        """Record the outcome and return it. Raises an error of recording if `error` is None."""
        counts, spent, run_id = tally.counts, self._context.tally, self._context.run.run_id
        result = ResourceRun(
            resource=name,
            outcome=outcome,
            proven=False,
            requests=spent.requests_of(name),
            lists=spent.by_kind[name, "list"],
            details=spent.by_kind[name, "get"],
            new=counts.new,
            changed=counts.changed,
            unchanged=counts.unchanged,
            deleted=counts.deleted,
            live=0,
            total=tally.total,
            pending=0,
            bookmark_before=before,
            bookmark_after=before,
            error_code=error.code if error else tally.code,
            message=str(error) if error else tally.reason,
            scrubs=spent.by_purpose[name, "scrub"],
        )
        try:
            state = self._state(name)
            result = replace(
                result,
                live=state.live,
                pending=state.pending,
                bookmark_after=state.proven_at,
                lateness_seconds=state.lateness_seconds,
                oldest_read_at=state.oldest_read_at,
            )
            if outcome == "done" and not self._ids:
                unread = self._context.warehouse.read(queries.unread_records, name)
                result = _with_outcome(result, unread, is_proven=tally.is_proven)
                result = self._with_checked_counts(result)
            elif outcome == "done" and tally.reason != pulls.ONLY_THESE:
                result = replace(result, outcome="partial")
            self._note_twins(name)
            seen = self._context.runs.events(resource=name, run_id=run_id)
            kinds = Counter(each.kind for each in seen if each.kind != "deleted")
            result = replace(result, anomalies=dict(kinds))
            self._context.runs.add_resource(run_id, result)
            self._anomalies[name] = self._present_anomalies(name)
        except WarehouseError:
            if error is None:
                raise
        return result

    def _note_twins(self, name: str) -> None:
        """Record an event for each record that a repeated request of a push has made."""
        database, runs = self._context.database, self._context.runs
        made = database.rows(
            "SELECT record_id FROM rows WHERE resource = ? AND operation = 'create'"
            " AND record_id IS NOT NULL",
            name,
        )
        if made:
            pushed = [row["record_id"] for row in made]
            found = self._context.warehouse.read(queries.twins, declaration(name), pushed)
            known = {each.id for each in runs.events(resource=name) if each.kind == "twin"}
            events = [Event("twin", TWIN, id) for id in found if id not in known]
            at, run_id = self._context.now(), self._context.run.run_id
            runs.add_events(events, at, run_id=run_id, resource=name)

    def _present_anomalies(self, name: str) -> tuple[Event, ...]:
        """Return the events of this run, and earlier ones of a kind that is reported once."""
        runs, found = self._context.runs, dict[tuple[str, str], Event]()
        lasting = [each for each in runs.events(resource=name) if each.kind in ONCE]
        for each in (*lasting, *runs.events(resource=name, run_id=self._context.run.run_id)):
            if each.kind not in QUIET_KINDS and each.kind != "deleted":
                found[each.kind, each.detail] = each
        return tuple(found.values())

    def _with_checked_counts(self, result: ResourceRun) -> ResourceRun:
        """Return the result as not verified if the counts differ for the second time in a row.

        The first time, a record may have been created or deleted while the lists were read.
        """
        if not result.proven or result.total is None or result.live == result.total:
            return result
        _, last = self._context.runs.latest_of_resources().get(result.resource, ("", None))
        if (
            last is None
            or last.total is None
            or last.live - last.total != result.live - result.total
        ):
            return result
        message = (
            f"in two pulls in a row, the API counted {result.total} records, but {result.live} are "
            "loaded"
        )
        return replace(result, outcome="partial", proven=False, message=message)

    def _record_end(
        self,
        outcome: RunOutcome,
        fatal: ConnectorError | None,
        unpublished: ConnectorError | None = None,
    ) -> tuple[RunOutcome, ConnectorError | None]:
        """Record the end of the run. Return its outcome and error, which recording may change."""
        messages = dict.fromkeys(str(e) for e in (fatal, unpublished) if e is not None)
        tally = self._context.tally
        ended = replace(
            self._context.run,
            ended_at=self._context.now(),
            outcome=outcome,
            seconds=time.monotonic() - self._started,
            waited_seconds=tally.waited_seconds,
            requests=tally.requests,
            rate_limited=tally.rate_limited,
            error_code=fatal.code if fatal else None,
            message="; ".join(messages) or None,
        )
        try:
            self._context.runs.end(ended)
        except WarehouseError as error:
            return "failed", fatal or error
        return outcome, fatal


def _run_outcome(results: dict[str, ResourceRun], fatal: ConnectorError | None) -> RunOutcome:
    """Return the outcome of the run from the outcomes of its resources."""
    if isinstance(fatal, Stopped):
        return "stopped"
    if fatal is None and {each.outcome for each in results.values()} == {"done"}:
        return "done"
    # A resource that needed no request, such as content items without a type, is no success.
    answered = {each.outcome for each in results.values() if each.requests}
    return "partial" if fatal is None and answered & {"done", "partial"} else "failed"


def _with_outcome(
    result: ResourceRun, unread: Sequence[UnreadRecord], *, is_proven: bool
) -> ResourceRun:
    """Return the result as verified if the queue is empty, else as "partial" with the reason."""
    if is_proven and not result.pending:
        return replace(result, proven=True)
    messages = [] if result.message is None else [result.message]
    if unread:
        messages.append(describe_unread(unread))
    elif result.pending and not messages:
        stay = count_noun(result.pending, "record is", "records are")
        messages.append(f"{stay} not read yet")
    code = result.error_code
    if code is None and any(each.is_broken for each in unread):
        code = "record_unreadable"
    message = "; ".join(messages) or None
    return replace(result, outcome="partial", message=message, error_code=code)


def _least_recently_verified_first(
    names: tuple[str, ...], states: Mapping[str, ResourceState]
) -> tuple[str, ...]:
    """Return the names, least recently verified first, and parents before children.

    A budget that is too small for all resources is then not spent on the same ones each time.
    """
    never = datetime.min.replace(tzinfo=UTC)
    ordered = dict[str, None]()
    for name in sorted(names, key=lambda name: states[name].proven_at or never):
        if (parent := CATALOG[name].parent) in names and parent is not None:
            ordered[parent] = None
        ordered[name] = None
    return tuple(ordered)


def _split_by_size(whole: int, sizes: Mapping[K, int]) -> dict[K, int]:
    """Return shares of the whole, proportional to the sizes; 0 for all if there are no sizes."""
    remaining, remaining_size, shares = whole, sum(sizes.values()), dict[K, int]()
    for each, size in sizes.items():
        shares[each] = round(remaining * size / remaining_size) if remaining_size else 0
        remaining, remaining_size = remaining - shares[each], remaining_size - size
    return shares
