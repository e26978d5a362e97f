"""Verification of the local copy: reads all records from the API and reports differences.

Reads every list page in order of creation, the detail of every listed record, and every loaded
record that is not listed, because only a 404 shows that a record is deleted. Changes nothing.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Sequence
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

KINDS = ("missing", "extra", "different", "unread")
"""Kinds of difference: records that are not loaded, that the API no longer has, whose values differ
or are not loaded yet, and that could not be read.
"""


@dataclass(slots=True)
class StreamComparison:
    """Result for one stream: a resource, or `content_items/ID` for items of a content type.

    `differences` has the differing records by kind and id, each with the fields or the reason.
    `is_complete` is True if the API was read to the end of the stream.
    """

    compared: int = 0
    is_complete: bool = False
    differences: dict[str, dict[str, str]] = field(
        default_factory=lambda: {kind: {} for kind in KINDS}
    )

    @property
    def is_equal(self) -> bool | None:
        """Return True if all records are equal; None if none differed until an early end."""
        if any(self.differences.values()):
            return False
        return True if self.is_complete else None


@dataclass(slots=True)
class VerifyReport:
    """Result of the comparison by stream, and the error that ended it early."""

    streams: dict[str, StreamComparison] = field(default_factory=dict)
    requests: int = 0
    seconds: float = 0.0
    error: ConnectorError | None = None

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
        streams = {name: {"equal": e.is_equal, **asdict(e)} for name, e in self.streams.items()}
        values = {"equal": self.is_equal, "requests": self.requests, "seconds": self.seconds}
        error = {} if self.error is None else {"error": self.error.as_json()}
        return {**values, "streams": streams, **error}


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
    names, started, report = select_resources(resources), time.monotonic(), VerifyReport()
    async with open_run(settings, "verify", budget=budget, watch=watch) as context:
        try:
            for name in names:
                context.watch(Progress(name))
                for stream in await context.streams(declaration(name)):
                    await _compare_stream(context, stream, report, is_listed=True)
                for stream in await context.ended_streams(declaration(name)):
                    await _compare_stream(context, stream, report, is_listed=False)
        except ConnectorError as error:
            report.error = error
        report.requests = context.tally.requests
    report.seconds = round(time.monotonic() - started, 3)
    return report


async def _compare_stream(
    context: RunContext, stream: Stream, report: VerifyReport, *, is_listed: bool
) -> None:
    """Compare a stream with the API. A stream whose parent was deleted has no list."""
    found = report.streams[stream.name] = StreamComparison()
    api, name = StreamApi(context, stream, None), stream.resource.name
    async for ids in _batches_of_ids(context, stream, api, is_listed=is_listed):
        while ids:
            outcomes = await api.details(tuple(ids))
            rows = await asyncio.to_thread(context.warehouse.read, stored_rows, name, outcomes)
            for id, outcome in outcomes.items():
                if (difference := _difference(outcome, rows.get(id))) is not None:
                    kind, text = difference
                    found.differences[kind][id] = text
            found.compared += len(outcomes)
            ids = [id for id in ids if id not in outcomes]  # noqa: PLW2901  # what is left
    found.is_complete = True


async def _batches_of_ids(
    context: RunContext, stream: Stream, api: StreamApi, *, is_listed: bool
) -> AsyncIterator[list[str]]:
    """Yield the new ids of each page of the list, then those of loaded records not in it."""
    listed, number, total = set[str](), 1, 0
    sort = "created_at" if stream.resource.sortable else None
    while is_listed:
        try:
            page = await api.page(number, sort, "asc")
        except NotFound as error:
            if stream.parent is None or not error.is_api_error:
                raise
            break
        has_shrunk, total = page.total < total, page.total
        fresh = [*dict.fromkeys(str(each.id) for each in page.items if each.id not in listed)]
        listed.update(fresh)
        yield fresh
        if has_shrunk and number > 1:
            number -= 1  # A deletion moved a record to the page before.
        elif page.is_last or (page.is_full and not fresh):
            break
        else:
            number += 1
    live = await asyncio.to_thread(
        context.warehouse.query, stream, lambda rows: rows.live(None, None)
    )
    unlisted = sorted(live.difference(listed))
    for start in range(0, len(unlisted), BATCH_RECORDS_MAX):
        yield unlisted[start : start + BATCH_RECORDS_MAX]


def _difference(outcome: Outcome, row: StoredRow | None) -> tuple[str, str] | None:
    """Return the kind of difference between a detail and its row, with the fields or the reason."""
    is_live = row is not None and row.deleted_at is None
    if isinstance(outcome, DeletionProof):
        return ("extra", "deleted on the platform") if is_live else None
    if not isinstance(outcome, FoundDetail):
        return "unread", outcome.message or outcome.reason
    if row is None or not is_live:
        return "missing", "not loaded"
    if row.read_at is None:
        return "different", "only its list item is loaded"
    fields = differing_names(row.record, json.loads(as_json(outcome.record.raw)))
    return ("different", ", ".join(fields)) if fields else None
