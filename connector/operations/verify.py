"""Verification of the local copy: reads all records from the API and reports differences.

Reads every list page in order of creation, the detail of every listed record, and every loaded
record that is not listed, because only a 404 shows that a record is deleted. Changes nothing.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from connector.catalog import declaration
from connector.errors import DONE, PARTIAL, ConnectorError, NotFound
from connector.pulls.account import RunContext, open_run, select_resources
from connector.pulls.pull import BATCH_RECORDS_MAX
from connector.pulls.report import Progress, Watch
from connector.pulls.streams import StreamApi
from connector.settings import Settings
from connector.warehouse.landing import StoredRow, stored_rows
from connector.warehouse.schema import as_json, differing_names
from connector.warehouse.stream import DeletionProof, FoundDetail, Outcome, Stream


@dataclass(slots=True)
class StreamComparison:
    """Differences between the local copy and the API, by id.

    Attributes:
        total: Number of records according to the API.
        compared: Number of records that were read.
        missing: Listed records that are not loaded.
        extra: Loaded records that the API no longer has.
        stale: Records with different values, each with the names of the fields.
        unhydrated: Records loaded as list items only.
        unread: Records that could not be read, each with the reason.
    """

    total: int = 0
    compared: int = 0
    missing: list[str] = field(default_factory=list)
    extra: list[str] = field(default_factory=list)
    stale: dict[str, tuple[str, ...]] = field(default_factory=dict)
    unhydrated: list[str] = field(default_factory=list)
    unread: dict[str, str] = field(default_factory=dict)

    @property
    def is_equal(self) -> bool:
        """Return True if all records were compared and are equal."""
        differ = self.missing or self.extra or self.stale or self.unhydrated or self.unread
        return not differ


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """Result of the comparison by stream: a resource, or `content_items/ID` for items.

    `error` is the error that ended it early, in the stream `unfinished`.
    """

    streams: dict[str, StreamComparison]
    requests: int
    seconds: float
    error: ConnectorError | None = None
    unfinished: str | None = None

    def is_stream_equal(self, name: str) -> bool | None:
        """Return True if the stream is equal; None if it was not compared to its end."""
        is_equal = self.streams[name].is_equal
        return None if is_equal and name == self.unfinished else is_equal

    @property
    def is_equal(self) -> bool:
        """Return True if all records were compared and are equal."""
        return self.error is None and all(each.is_equal for each in self.streams.values())

    @property
    def exit_status(self) -> int:
        """Return the status of the error; else if all records are equal."""
        if self.error is not None:
            return self.error.exit_status
        return DONE if self.is_equal else PARTIAL

    def as_json(self) -> dict[str, Any]:
        """Return the report as `--json` prints it."""
        shown: dict[str, Any] = {
            "equal": self.is_equal,
            "requests": self.requests,
            "seconds": round(self.seconds, 3),
            "streams": {
                name: {"equal": self.is_stream_equal(name), **asdict(each)}
                for name, each in self.streams.items()
            },
        }
        if self.error is not None:
            shown["error"] = self.error.as_json()
        return shown


async def verify(
    settings: Settings,
    resources: Sequence[str] = (),
    *,
    budget: int | None = None,
    watch: Watch | None = None,
) -> VerifyReport:
    """Compare all records of the resources (default: all) with the API. Changes no record.

    Reads every list and every detail. Raises the errors that `run.pull` raises at its start.
    """
    names = select_resources(resources)
    started = time.monotonic()
    streams: dict[str, StreamComparison] = {}
    failed: ConnectorError | None = None
    unfinished: str | None = None
    kinds = ((RunContext.streams, _compare_stream), (RunContext.ended_streams, _compare_rows))
    async with open_run(settings, "verify", budget=budget, watch=watch) as context:
        try:
            for name in names:
                context.watch(Progress(name))
                for find, compare in kinds:
                    for stream in await find(context, declaration(name)):
                        unfinished = stream.name
                        streams[unfinished] = StreamComparison()
                        await compare(context, stream, streams[unfinished])
                        unfinished = None
        except ConnectorError as error:
            failed = error
        requests = context.tally.requests
    return VerifyReport(streams, requests, time.monotonic() - started, failed, unfinished)


async def _compare_stream(context: RunContext, stream: Stream, found: StreamComparison) -> None:
    """Compare a stream with the API, and add the result to `found`.

    A stream whose parent was deleted has no list. Its loaded rows are read one by one.
    """
    listed: set[str] = set()
    api, number, total = StreamApi(context, stream, None), 1, 0
    sort = "created_at" if stream.resource.sortable else None
    try:
        while True:
            page = await api.page(number, sort, "asc")
            has_shrunk, total = page.total < total, page.total
            found.total = total
            fresh = tuple(dict.fromkeys(e.id for e in page.items if e.id not in listed))
            listed.update(fresh)
            await _compare_details(context, stream, fresh, found)
            if has_shrunk and number > 1:
                number -= 1  # A deletion moved a record to the page before.
            elif page.is_last or (page.is_full and not fresh):
                break
            else:
                number += 1
    except NotFound as error:
        if stream.parent is None or not error.is_api_error:
            raise
    await _compare_rows(context, stream, found, listed)


async def _compare_rows(
    context: RunContext, stream: Stream, found: StreamComparison, listed: Collection[str] = ()
) -> None:
    """Compare the loaded records that were not listed, one by one."""
    live = await asyncio.to_thread(
        context.warehouse.query, stream, lambda rows: rows.live(None, None)
    )
    unlisted = sorted(live.difference(listed))
    for start in range(0, len(unlisted), BATCH_RECORDS_MAX):
        batch = tuple(unlisted[start : start + BATCH_RECORDS_MAX])
        await _compare_details(context, stream, batch, found)


async def _compare_details(
    context: RunContext, stream: Stream, ids: tuple[str, ...], found: StreamComparison
) -> None:
    """Read these records, compare them with the rows, and add differences to `found`."""
    api, name = StreamApi(context, stream, None), stream.resource.name
    while ids:
        outcomes = await api.details(ids)
        ids = tuple(id for id in ids if id not in outcomes)
        rows = await asyncio.to_thread(context.warehouse.read, stored_rows, name, outcomes)
        for id, outcome in outcomes.items():
            _compare_detail(id, outcome, rows.get(id), found)
        found.compared += len(outcomes)


def _compare_detail(
    id: str, outcome: Outcome, row: StoredRow | None, found: StreamComparison
) -> None:
    """Compare one detail with its row."""
    is_live = row is not None and row.deleted_at is None
    if isinstance(outcome, DeletionProof):
        if is_live:
            found.extra.append(id)
    elif not isinstance(outcome, FoundDetail):
        found.unread[id] = outcome.message or outcome.reason
    elif row is None or not is_live:
        found.missing.append(id)
    elif row.read_at is None:
        found.unhydrated.append(id)
    elif differing := differing_names(row.record, json.loads(as_json(outcome.record.raw))):
        found.stale[id] = differing
