"""Verification of the local copy: reads all records from the API and reports differences."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from connector.catalog import declaration
from connector.errors import ConnectorError, NotFound, Stopped
from connector.pulls.compare import StreamComparison, compare_all_records, compare_details
from connector.pulls.outcome import Progress, Watch
from connector.pulls.ports import StreamApi, StreamCopy
from connector.pulls.run_context import RunContext, open_run, select_resources
from connector.settings import Settings
from connector.warehouse.stream import Stream


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """Result of the comparison by stream: a resource, or `content_items/ID` for items.

    `error` is the error that ended it early; the comparison until then is included. `unfinished` is
    the stream that it interrupted.
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
        """Return 0 if equal, 3 with differences, 4 if stopped at a limit, or the error's own."""
        if self.error is not None:
            return 4 if isinstance(self.error, Stopped) else self.error.exit_status
        return 0 if self.is_equal else 3

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
    async with open_run(settings, "verify", budget=budget, watch=watch) as context:
        try:
            for name in names:
                context.watch(Progress(name))
                for stream in await context.streams(declaration(name)):
                    found = streams[stream.name] = StreamComparison()
                    unfinished = stream.name
                    await _compare_stream(context, stream, found)
                    unfinished = None
                for stream in await context.streams_of_deleted_parents(declaration(name)):
                    found = streams[stream.name] = StreamComparison()
                    unfinished = stream.name
                    await _compare_rows(context, stream, found)
                    unfinished = None
        except ConnectorError as error:
            failed = error
        requests = context.tally.requests
    return VerifyReport(streams, requests, time.monotonic() - started, failed, unfinished)


async def _compare_stream(context: RunContext, stream: Stream, found: StreamComparison) -> None:
    """Compare a stream with the API, and add the result to `found`.

    A stream whose parent was deleted has no list. Its loaded rows are read one by one.
    """
    copy = StreamCopy(context, stream)
    try:
        await compare_all_records(StreamApi(context, stream, copy), copy, stream.resource, found)
    except NotFound as error:
        if stream.parent is None or not error.is_api_error:
            raise
        await _compare_rows(context, stream, found)


async def _compare_rows(context: RunContext, stream: Stream, found: StreamComparison) -> None:
    """Compare the loaded records of a stream without a list, one by one."""
    copy = StreamCopy(context, stream)
    ids = tuple(sorted(await copy.live(None, None)))
    await compare_details(StreamApi(context, stream, copy), copy, ids, found)
