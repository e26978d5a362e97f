"""Reading for one pull: list pages and details, the deletions that wait, and the two ports.

A pull reads the API through `Api` and knows the local copy through `Copy`. Production passes HTTP
and the work file (`ports.py`), and the simulator passes its world.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import islice
from typing import Protocol

from connector.catalog.resource import Declaration, Order, Page, Resource
from connector.errors import UnreadableAnswer
from connector.warehouse.stream import (
    BATCH_RECORDS_MAX,
    SECOND,
    Bookmark,
    Commit,
    DeletionProof,
    Event,
    FoundDetail,
    LandedRow,
    Outcome,
    Purpose,
    UnreadableDetail,
    floor_of,
    with_clock_change,
    with_lateness,
    with_pass_start,
)

SAME_PAGES_MAX = 2
"""Maximum number of consecutive page numbers that may show the same records."""

DELETIONS_MIN, DELETIONS_SHARE = 20, 0.05
"""Number, and share of the live records, of deletions that need no consent."""

EXAMPLES_MAX = 3
"""Number of records that the reason of held deletions names."""


class Api(Protocol):
    """Reads of one stream from the API. `purpose` is what the requests are counted as."""

    purpose: Purpose

    async def page(self, number: int, sort: str | None, order: Order) -> Page[Resource]:
        """Return one page of the list."""

    async def details(self, ids: Sequence[str]) -> dict[str, Outcome]:
        """Return the details of at least one of these records; the others are asked for again."""


class Copy(Protocol):
    """Rows and queue of one stream in the local copy. Live rows are those that are not deleted."""

    async def commit(self, commit: Commit) -> None:
        """Write everything in one transaction."""

    async def rows_of(self, items: Collection[Resource]) -> dict[str, LandedRow]:
        """Return the rows of these list items, by id."""

    async def rows_by_id(self, ids: Sequence[str]) -> dict[str, LandedRow]:
        """Return the rows with these ids, by id."""

    async def differing(self, records: Collection[Resource]) -> dict[str, tuple[str, ...]]:
        """Return the fields in which responses differ from the loaded details, by id."""

    async def live(self, after: datetime | None, before: datetime | None) -> frozenset[str]:
        """Return live ids created strictly between two times (None: no bound)."""

    async def updated(self, after: datetime, before: datetime) -> frozenset[str]:
        """Return live ids, not queued, whose `updated_at` is strictly between two times."""

    async def undated(self, after: datetime) -> tuple[str, ...]:
        """Return live ids whose detail has no `updated_at`, or one after this time."""

    async def oldest(self, count: int) -> tuple[str, ...]:
        """Return the live ids whose details were read longest ago."""

    async def count(self, before: datetime | None = None) -> int:
        """Return the number of live rows, optionally of those created before a time."""

    async def queued(self, count: int, skip: frozenset[str]) -> tuple[str, ...]:
        """Return at most `count` queued ids, newest first, except `skip`."""


@dataclass(frozen=True, slots=True)
class PullOptions:
    """Options of a pull beyond the minimum number of requests.

    Attributes:
        is_full: Read every record again.
        sweeps: Compare every page of the list, and read records that differ or are absent.
        accepts_deletes: Accept all deletions, because the user has confirmed them.
        verification_requests: Number of requests that compare verified records again.
    """

    is_full: bool = False
    sweeps: bool = False
    accepts_deletes: bool = False
    verification_requests: int = 0


FEWEST_REQUESTS = PullOptions()


@dataclass(frozen=True, slots=True)
class PullResult:
    """Result of a stream's pull.

    Attributes:
        is_proven: True if the local copy is verified up to the bookmark's time.
        reason: Reason why it is not verified.
        total: Number of records according to the last list.
        code: Error code that describes the next step, if deletions are held.
    """

    is_proven: bool
    reason: str | None
    total: int
    code: str | None = None


@dataclass
class Pull:
    """One pull of one stream: both sides, the bookmark, and what was read so far.

    Attributes:
        known: Number of live rows before the pull.
        refused: Reason why deletions are held; nothing is loaded afterwards.
        gone: Proofs of deletions that are not committed yet.
        unread: Reason by id for details that could not be read.
        reads: `updated_at` of each detail read in this scan, and the number of the request.
        step: Number of requests so far.
        served_at: Server time of the last list.
        is_open: True while pages may set the start of a pass, the next R.
    """

    api: Api
    copy: Copy
    resource: Declaration
    mark: Bookmark
    options: PullOptions
    known: int = 0
    total: int = 0
    refused: str | None = None
    gone: dict[str, DeletionProof] = field(default_factory=dict)
    unread: dict[str, str] = field(default_factory=dict)
    reads: dict[str, tuple[datetime | None, int]] = field(default_factory=dict)
    step: int = 0
    is_open: bool = False
    shown: tuple[str, ...] = ()
    same_pages: int = 0
    served_at: datetime | None = None

    @property
    def lateness(self) -> timedelta:
        """L as a time span."""
        return timedelta(seconds=self.mark.lateness_seconds)

    def check(self, deleted: int, why: str, ids: Iterable[str] = ()) -> bool:
        """Return True if so many deletions are plausible; else hold all deletions of this pull.

        They are counted since the last accepted state. The whole of a resource is never few. The
        reason names three of the ids, so that a person can look for them on the platform.
        """
        if self.options.accepts_deletes or self.refused is not None:
            return self.refused is None
        deleted += self.mark.deletions
        known = self.known + self.mark.deletions
        if deleted > max(DELETIONS_MIN, DELETIONS_SHARE * known) or 0 < known <= deleted:
            self.refused = f"{deleted} of {known} loaded records {why}"
            if examples := sorted(ids)[:EXAMPLES_MAX]:
                self.refused += f", for example {', '.join(examples)}"
        return self.refused is None

    def updated_at(self, id: str) -> datetime | None:
        """Return `updated_at` of the detail read in this scan; None without one."""
        return self.reads.get(id, (None, 0))[0]

    def read_step(self, id: str) -> int:
        """Return the number of the request that read the detail; -1 if it was not read."""
        return self.reads.get(id, (None, -1))[1]


async def list_page(pull: Pull, number: int, sort: str | None, order: Order) -> Page[Resource]:
    """Read one page, and note the server's clock.

    Raises `UnreadableAnswer` if several page numbers show the same records.
    """
    page = await pull.api.page(number, sort, order)
    pull.step += 1
    pull.mark = with_clock_change(page, pull.mark)
    if page.total_error is not None:
        pull.mark = replace(pull.mark, is_total_exact=page.total_error == 0)
    if pull.is_open:
        pull.mark = with_pass_start(page, pull.mark)
    shown = (str(sort), order, str(number == 1), *(item.id for item in page.items))
    is_same = number > 1 and page.is_full and shown == pull.shown
    pull.same_pages = pull.same_pages + 1 if is_same else 0
    pull.shown, pull.total, pull.served_at = shown, page.total, page.timestamp
    if pull.same_pages >= SAME_PAGES_MAX:
        raise UnreadableAnswer("the list", "answered with the same records on several pages")
    return page


async def read(pull: Pull, ids: Iterable[str], *, measures: bool = True) -> None:
    """Read details and commit them with the bookmark.

    Deletions wait in `pull.gone` until `settle`. Records that could not be read are queued.
    `measures` raises the lateness if a record shows a change that an earlier read had missed.
    """
    todo = dict.fromkeys(ids)
    while todo:
        batch = tuple(islice(todo, BATCH_RECORDS_MAX))
        rows = await pull.copy.rows_by_id(batch) if measures else {}
        outcomes = await pull.api.details(batch)
        pull.step += 1
        found, unread = list[FoundDetail](), dict[str, UnreadableDetail]()
        for id, outcome in outcomes.items():
            del todo[id]
            pull.unread.pop(id, None)
            pull.gone.pop(id, None)
            if isinstance(outcome, FoundDetail):
                found.append(outcome)
                pull.reads[id] = outcome.record.updated_at, pull.step
            elif isinstance(outcome, DeletionProof):
                pull.gone[id] = outcome
                pull.reads.pop(id, None)
            else:
                unread[id] = outcome
        pull.unread |= {id: each.message or each.reason for id, each in unread.items()}
        events = [event for each in found if (event := learn_lateness(pull, each, rows))]
        events += await find_silent_changes(pull, found, rows)
        queue = {id: each.reason for id, each in unread.items()}
        await pull.copy.commit(
            Commit(
                records=tuple(found), enqueue=queue, unread=unread, bookmark=pull.mark,
                events=tuple(events),
            )
        )  # fmt: skip


def learn_lateness(pull: Pull, found: FoundDetail, rows: dict[str, LandedRow]) -> Event | None:
    """Raise L if a version is dated before an earlier read that did not show it.

    If that read ended the last scan, the scan may have ended too high, and the next one reaches
    down to its floor (`Bookmark.closed_by`).
    """
    id, at, row = found.record.id, found.record.updated_at, rows.get(found.record.id)
    if at is None or pull.mark.proven_at is None:
        return None
    if row is None or row.read_at is None:
        late = pull.mark.lateness_seconds if row is None and at <= floor_of(pull.mark) else 0.0
    elif at == row.updated_at:
        return None
    else:
        if id == pull.mark.closed_by and at < row.read_at + SECOND:
            pull.mark = replace(pull.mark, closed_by=None)
        late = (row.read_at - at).total_seconds()
    before, pull.mark = pull.mark, with_lateness(pull.mark, late) if late > 0 else pull.mark
    if pull.mark.lateness_seconds == before.lateness_seconds:
        return None
    return Event("late", f"a change became visible {late:.0f} s or more late", id)


async def find_silent_changes(
    pull: Pull, found: Iterable[FoundDetail], rows: dict[str, LandedRow]
) -> list[Event]:
    """Return an event for each record that changed although its `updated_at` stayed the same."""
    same = [
        each.record
        for each in found
        if (row := rows.get(each.record.id)) is not None
        and row.read_at is not None
        and row.updated_at == each.record.updated_at
    ]
    differing = await pull.copy.differing(same) if same else {}
    detail = "changed, but updated_at stayed the same"
    return [Event("silent", detail, id) for id in sorted(differing)]


async def settle(pull: Pull) -> None:
    """Commit the waiting deletions if they are few; else queue the records and hold them."""
    gone, pull.gone = pull.gone, {}
    rows = await pull.copy.rows_by_id(tuple(gone)) if gone else {}
    live = sum(not row.is_deleted for row in rows.values())
    if pull.check(live, "were answered with 404", gone):
        pull.mark = replace(pull.mark, deletions=pull.mark.deletions + live)
        await pull.copy.commit(Commit(gone=gone, bookmark=pull.mark if gone else None))
    else:
        await pull.copy.commit(Commit(enqueue=dict.fromkeys(gone, "gone")))


async def drain(pull: Pull) -> None:
    """Read the queue, newest first, and settle the deletions that it proves."""
    while ids := await pull.copy.queued(
        BATCH_RECORDS_MAX, frozenset(pull.unread.keys() | pull.gone.keys())
    ):
        await read(pull, ids)
    await settle(pull)
