"""Run of a pull: update resources one after another, and publish the loaded rows.

An error of one resource does not affect the others. The steps decide what to read
(`pulls/pull.py`), and `ports.py` performs it.
"""

from __future__ import annotations

import asyncio
import time
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
from connector.ledger.quota import MonthUse
from connector.log import shorten_name
from connector.models.publish import PublishResult, publish
from connector.models.runner import Watch as BuildWatch
from connector.pulls import pull as pulls
from connector.pulls.outcome import (
    QUIET_KINDS,
    Progress,
    PullReport,
    ResourceOutcome,
    ResourceTally,
    RunOutcome,
    Watch,
    describe_unread,
)
from connector.pulls.ports import StreamApi, StreamCopy
from connector.pulls.reading import FEWEST_REQUESTS, PullOptions, PullResult
from connector.pulls.run_context import RunContext, open_run, select_resources
from connector.settings import Settings
from connector.warehouse import runs
from connector.warehouse.runs import ResourceRun
from connector.warehouse.state import (
    ResourceState,
    UnreadRecord,
    current_events,
    read_resource_state,
    read_unread,
)
from connector.warehouse.stream import Bookmark, Event, Stream

# Errors that every further request would raise as well.
_FATAL = (Unauthorized, Stopped, Unreachable, WarehouseError, NotTheApi)


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
        SettingsError: The address or the key is missing.
        LeaseHeld: Another pull of the account is running.
        WarehouseError: The run could not be recorded. Other failures are in the report.
    """
    names = select_resources(tuple(ids) if isinstance(ids, Mapping) else resources)
    if not isinstance(ids, Mapping):
        if ids and len(names) != 1:
            raise Misused(
                "--ids needs exactly one resource",
                action="Name it, for example 'connector pull jobs --ids ID,...'.",
            )
        ids = {names[0]: ids} if ids else {}
    ids_by_resource = {name: tuple(dict.fromkeys(each)) for name, each in ids.items()}
    for name, each in ids_by_resource.items():
        check_ids(declaration(name), each)
    opening = open_run(
        settings,
        command,
        budget=budget,
        ignores_quota=ignores_quota,
        watch=watch,
        now=now,
        connect=connect,
    )
    async with opening as context:
        run_id = context.run.run_id
        publishing = partial(publish, settings, run_id=run_id, watch=building, now=now)
        return await _PullRun(
            context, options, ids_by_resource, publishing if publishes else None
        ).run(names)


class _PullRun:
    """One run that pulls several resources and publishes."""

    def __init__(
        self,
        context: RunContext,
        options: PullOptions,
        ids: Mapping[str, tuple[str, ...]],
        publish: Callable[[], PublishResult] | None,
    ) -> None:
        self._context, self._warehouse = context, context.warehouse
        self._options, self._ids, self._publish = options, ids, publish
        self._scrubs: dict[str, int] = {}
        self._started = time.monotonic()
        # Counts before the current resource.
        self._before = replace(context.tally)
        self._anomalies: dict[str, tuple[Event, ...]] = {}
        # True if the address gave readable responses in an earlier run.
        self._was_readable = False

    async def run(self, names: tuple[str, ...]) -> PullReport:
        """Pull the resources one after another; record the end and publish."""
        context, tally = self._context, self._context.tally
        await asyncio.to_thread(self._warehouse.write, runs.begin_run, context.run)
        try:
            results, outcome, fatal = await self._pull_resources(names)
        except (asyncio.CancelledError, KeyboardInterrupt):
            # A planned stop is no failure, and differs from a run that was killed.
            await self._record_run_end("stopped", None)
            raise
        month = await self._store_request_counts()
        outcome, fatal = await self._record_run_end(outcome, fatal)
        published, unpublished = await self._publish_rows(outcome)
        if unpublished is not None:
            # A stopped run stays stopped: the next one continues and publishes. Any other run has
            # failed, because analysts do not see its rows.
            if outcome != "stopped":
                outcome, fatal = "failed", unpublished
            outcome, fatal = await self._record_run_end(outcome, fatal, unpublished)
        return PullReport(
            outcome=outcome,
            run_id=context.run.run_id,
            seconds=time.monotonic() - self._started,
            waited_seconds=tally.waited_seconds,
            requests=tally.requests,
            rate_limited=tally.rate_limited,
            resources={name: results[name] for name in names},
            error=fatal,
            month=month,
            published=published,
            unpublished=unpublished,
            notices=context.notices,
            anomalies={name: events for name, events in self._anomalies.items() if events},
        )

    async def _pull_resources(
        self, names: tuple[str, ...]
    ) -> tuple[dict[str, ResourceRun], RunOutcome, ConnectorError | None]:
        """Pull the resources. Return their results, and the run's outcome and error."""
        context, tally = self._context, self._context.tally
        results: dict[str, ResourceRun] = {}
        first: ConnectorError | None = None
        fatal: ConnectorError | None = None
        states = {name: await self._read_state(name) for name in names}
        self._was_readable = any(each.live for each in states.values())
        self._scrubs = _split_by_size(
            self._options.verification_requests, {n: states[n].live for n in names}
        )
        for name in _least_recently_verified_first(names, states):
            context.watch(Progress(name))
            self._before = replace(tally)
            if fatal is None:
                results[name], error = await self._pull_resource(name)
                # A missing scope is an error of its resource; other errors of this kind end the
                # run.
                first = error if first is None or isinstance(first, Forbidden) else first
                is_fatal = isinstance(error, _FATAL) and error.code != "answer_broken"
                fatal = error if is_fatal else None
            else:
                results[name] = await self._record_resource_end(
                    name, None, "not_started", None, ResourceTally()
                )
            context.watch(Progress(name, requests=results[name].requests, ended=results[name]))
        outcome = self._run_outcome(results, fatal)
        return results, outcome, fatal or (first if outcome == "failed" else None)

    async def _publish_rows(
        self, outcome: RunOutcome
    ) -> tuple[PublishResult | None, ConnectorError | None]:
        """Publish if the run has not failed.

        Returns the publication, or the error if publishing failed.
        """
        if outcome == "failed" or self._publish is None:
            return None, None
        await asyncio.to_thread(self._warehouse.release)
        try:
            return await asyncio.to_thread(self._publish), None
        except ConnectorError as error:
            return None, error

    async def _store_request_counts(self) -> MonthUse | None:
        """Store the run's requests in the ledger and, for analysts, in the work file.

        Returns the requests of the month; None if they could not be stored.
        """
        lease = self._context.lease
        try:
            month = await self._context.read_month()
            day = lease.spender.allowance.billing_day
            await asyncio.to_thread(
                self._warehouse.write, runs.copy_quota, lease.ledger.read_uses, day
            )
        except WarehouseError:
            return None
        return month

    async def _record_run_end(
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
            month_share=self._share_of_month(tally.requests),
        )
        try:
            await asyncio.to_thread(self._warehouse.write, runs.write_run, ended)
        except WarehouseError as error:
            return "failed", fatal or error
        return outcome, fatal

    def _share_of_month(self, requests: int) -> float | None:
        """Return the requests as a share of the monthly quota; None if the quota is unknown."""
        monthly = self._context.lease.spender.allowance.monthly_requests
        return None if monthly is None else requests / monthly

    async def _pull_resource(self, name: str) -> tuple[ResourceRun, ConnectorError | None]:
        """Pull a resource. Return its recorded result, and the error if it failed."""
        tally = ResourceTally()
        before: datetime | None = None
        error: ConnectorError | None = None
        outcome: ResourceOutcome = "done"
        try:
            streams = await self._streams_to_pull(declaration(name))
            before = await self._earliest_verified_time(streams)
            shares = _split_by_size(self._scrubs.get(name, 0), {each.name: 1 for each in streams})
            if not streams and not self._ids:
                # Without a parent there is no list to count: the API has no such record.
                tally.total = 0
            for stream in streams:
                if not self._ids:
                    tally.add_result(
                        await self._pull_child_stream(stream, tally, shares[stream.name])
                    )
            if self._ids:
                await self._pull_ids(name, streams, tally)
            else:
                for stream in await self._context.streams_of_deleted_parents(declaration(name)):
                    tally.add_result(
                        await pulls.end_stream(*await self._ports(stream, tally), self._options)
                    )
        except ConnectorError as raised:
            error = self._as_broken_answer(raised)
            outcome = _outcome_of_error(error)
        result = await self._record_resource_end(name, before, outcome, error, tally)
        return result, error

    def _as_broken_answer(self, error: ConnectorError) -> ConnectorError:
        """Return the error as `answer_broken` if earlier answers were readable."""
        if not isinstance(error, UnreadableAnswer | AnswerTooLarge):
            return error
        if self._was_readable or self._context.tally.readable:
            return NotTheApi(error.where, error.answer, code="answer_broken")
        return error

    async def _streams_to_pull(self, resource: Declaration) -> tuple[Stream, ...]:
        """Return the streams of a resource. Parents that were never pulled are pulled first."""
        if resource.parent is not None:
            parents = Stream(declaration(resource.parent))
            if (await self._context.bookmark(parents)).proven_at is None:
                await self._pull_stream(parents, ResourceTally(), 0)
        return await self._context.streams(resource)

    async def _pull_stream(
        self, stream: Stream, tally: ResourceTally, verification_requests: int
    ) -> PullResult:
        """Pull one stream with this number of additional requests for verification."""
        options = replace(self._options, verification_requests=verification_requests)
        return await pulls.run(*await self._ports(stream, tally), options)

    async def _ports(
        self, stream: Stream, tally: ResourceTally
    ) -> tuple[StreamApi, StreamCopy, Declaration, Bookmark]:
        """Return the API, the local copy, the resource and the bookmark of a stream."""
        copy = StreamCopy(self._context, stream, tally)
        api = StreamApi(self._context, stream, copy)
        return api, copy, stream.resource, await self._context.bookmark(stream)

    async def _pull_child_stream(
        self, stream: Stream, tally: ResourceTally, verification_requests: int
    ) -> PullResult:
        """Pull a stream. If its list does not exist, pull the parents to check its parent."""
        try:
            return await self._pull_stream(stream, tally, verification_requests)
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
            if stream.parent in {
                each.parent for each in await self._streams_to_pull(stream.resource)
            }:
                raise
        return PullResult(True, None, 0)

    async def _pull_ids(self, name: str, streams: tuple[Stream, ...], tally: ResourceTally) -> None:
        """Read only the requested ids. A child record can only be read if it is loaded."""
        wanted = self._ids[name]
        unknown, reasons = set(wanted), list[str]()
        for stream in streams:
            ids = wanted
            if stream.parent is not None:
                landed = await StreamCopy(self._context, stream).live(None, None)
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

    async def _earliest_verified_time(self, streams: tuple[Stream, ...]) -> datetime | None:
        """Return the time up to which all of the streams are verified; None if one never was."""
        moments = [(await self._context.bookmark(stream)).proven_at for stream in streams]
        known = [each for each in moments if each is not None]
        return min(known) if known and len(known) == len(moments) else None

    async def _record_resource_end(
        self,
        name: str,
        before: datetime | None,
        outcome: ResourceOutcome,
        error: ConnectorError | None,
        tally: ResourceTally,
    ) -> ResourceRun:
        """Record the outcome and return it. Raises an error of recording if `error` is None."""
        counts, spent = tally.counts, self._context.tally
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
            sweeps=spent.by_purpose[name, "sweep"],
            scrubs=spent.by_purpose[name, "scrub"],
            waited_seconds=spent.waited_seconds - self._before.waited_seconds,
            rate_limited=spent.rate_limited - self._before.rate_limited,
            month_share=self._share_of_month(spent.requests_of(name)),
        )
        try:
            result = _add_state(result, await self._read_state(name))
            if outcome == "done" and not self._ids:
                unread = await asyncio.to_thread(self._warehouse.read, read_unread, name)
                result = _add_outcome(result, unread, is_proven=tally.is_proven)
                result = await self._check_counts(result)
            elif outcome == "done" and tally.reason != pulls.ONLY_THESE:
                result = replace(result, outcome="partial")
            run_id = self._context.run.run_id
            result = await asyncio.to_thread(
                self._warehouse.write, runs.finish_resource_run, run_id, result
            )
            events = await asyncio.to_thread(self._warehouse.read, current_events, name, run_id)
            self._anomalies[name] = tuple(each for each in events if each.kind not in QUIET_KINDS)
        except WarehouseError:
            if error is None:
                raise
        return result

    async def _read_state(self, name: str) -> ResourceState:
        """Return the loaded state of a resource, without its last run."""
        return await asyncio.to_thread(
            self._warehouse.read, read_resource_state, name, with_last_run=False
        )

    async def _check_counts(self, result: ResourceRun) -> ResourceRun:
        """Mark the resource as not verified if the counts differ for the second time in a row.

        The first time, a record may have been created or deleted while the lists were read.
        """
        if not result.proven or result.total is None or result.live == result.total:
            return result
        name = result.resource
        found = await asyncio.to_thread(self._warehouse.read, runs.last_resource_runs, name)
        last = found[name][1] if name in found else None
        if (
            last is None
            or last.total is None
            or last.live - last.total != result.live - result.total
        ):
            return result
        message = (
            f"in two pulls in a row, the API counted {result.total} records, but {result.live} are "
            f"loaded"
        )
        return replace(result, outcome="partial", proven=False, message=message)

    @staticmethod
    def _run_outcome(results: dict[str, ResourceRun], fatal: ConnectorError | None) -> RunOutcome:
        """Return the outcome of the run from the outcomes of its resources."""
        if isinstance(fatal, Stopped):
            return "stopped"
        outcomes = {each.outcome for each in results.values()}
        if outcomes == {"done"} and fatal is None:
            return "done"
        # A resource that needed no request, such as content items without a type, is no success.
        answered = {each.outcome for each in results.values() if each.requests}
        return "partial" if fatal is None and answered & {"done", "partial"} else "failed"


def _outcome_of_error(error: ConnectorError) -> ResourceOutcome:
    """Return "skipped" for a missing scope, "stopped" at a limit, else "failed"."""
    if isinstance(error, Forbidden):
        return "skipped"
    return "stopped" if isinstance(error, Stopped) else "failed"


def _add_state(result: ResourceRun, state: ResourceState) -> ResourceRun:
    """Return the result with the counts and times of the loaded state."""
    return replace(
        result,
        live=state.live,
        pending=state.pending,
        bookmark_after=state.proven_at,
        lateness_seconds=state.lateness_seconds,
        oldest_read_at=state.oldest_read_at,
    )


def _add_outcome(
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

    def need(name: str) -> datetime:
        return states[name].proven_at or datetime.min.replace(tzinfo=UTC)

    ordered: list[str] = []
    for name in sorted(names, key=need):
        parent = CATALOG[name].parent
        if parent in names and parent not in ordered:
            ordered.append(parent)
        if name not in ordered:
            ordered.append(name)
    return tuple(ordered)


K = TypeVar("K")


def _split_by_size(whole: int, sizes: Mapping[K, int]) -> dict[K, int]:
    """Return shares of the whole, proportional to the sizes; 0 for all if there are no sizes."""
    remaining, remaining_size, shares = whole, sum(sizes.values()), {}
    for each, size in sizes.items():
        shares[each] = round(remaining * size / remaining_size) if remaining_size else 0
        remaining, remaining_size = remaining - shares[each], remaining_size - size
    return shares
