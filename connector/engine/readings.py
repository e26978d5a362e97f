"""The details that one pass reads: what each showed and when, and landing them in batches."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from connector.engine import ask
from connector.engine.ask import Commit, Event, Found, Gone, Known, Steps
from connector.engine.bookmark import Bookmark
from connector.engine.examine import BATCH_RECORDS_MAX, later
from connector.engine.guard import Guard
from connector.engine.listing import SECOND, Listing


@dataclass(frozen=True, slots=True)
class Reading:
    """A detail read in this pass: its `updated_at`, and the step at which it was read."""

    updated_at: datetime | None
    step: int


class Readings:
    """What a pass has read so far. `bookmark` is its own, and is committed with every batch.

    `step` counts requests of the pass, so that a reading can be told to be younger than a list.
    `dead` are the ids that the API says are gone, `unread` those that could not be read.
    """

    def __init__(self, bookmark: Bookmark, guard: Guard) -> None:
        self.bookmark = bookmark
        self.step = 0
        self.known: dict[str, Known] = {}
        self.by_id: dict[str, Reading] = {}
        self.dead: set[str] = set()
        self.unread: dict[str, str] = {}
        self._guard = guard
        self._is_resumed = bookmark.opened_at is not None
        self._found: dict[str, Found] = {}
        self._gone: dict[str, Gone] = {}
        self._events: list[Event] = []
        self._undated = 0
        # Read since the last batch landed, found or not.
        self._unlanded = 0

    def remember(self, id: str, known: Known | None) -> None:
        """Keep what is landed; a row read since T0, by a run that was cut short, counts as read.

        Only in a pass that is resumed: T0 lies a little before the pass, so in a new one a row that
        was read just before it would count as read since, and what came after would be missed.
        """
        if known is None:
            return
        self.known[id] = known
        opened_at = self.bookmark.opened_at if self._is_resumed else None
        if opened_at is None or known.read_at is None or known.is_queued:
            return
        # `Date` is cut to the second, so only a reading that is later by one is surely later.
        if known.read_at - SECOND >= opened_at:
            self.by_id.setdefault(id, Reading(known.updated_at, 0))

    def forget(self, ids: Iterable[str]) -> None:
        """Take readings to be unmade, so that the records are read again."""
        for id in ids:
            self.by_id.pop(id, None)

    def settled(self, id: str) -> bool:
        """Whether the pass knows all that it can know of the record for now."""
        return id in self.by_id or id in self.dead or id in self.unread

    def read(self, ids: tuple[str, ...]) -> Steps[None]:
        """Read details, landing every full batch together with the open pass: whatever cuts the
        pass short, no more than a batch of what it has read is lost.
        """
        left = ids
        while left:
            room = BATCH_RECORDS_MAX - self._unlanded
            batch, left = left[:room], left[room:]
            outcomes = yield from ask.read_records(batch)
            self._unlanded += len(batch)
            self.step += 1
            for id, outcome in outcomes.items():
                self.unread.pop(id, None)
                if isinstance(outcome, Found):
                    self._take(id, outcome)
                elif isinstance(outcome, Gone):
                    self._gone[id] = outcome
                    self.dead.add(id)
                else:
                    self.unread[id] = outcome.reason
            if self._unlanded >= BATCH_RECORDS_MAX:
                yield from self._land()

    def compare(self, listing: Listing) -> None:
        """Note details that were older than the list item that led to them, where it is dated."""
        for item in listing.order:
            reading = self.by_id.get(item.id)
            if not item.declaration.lists_cursor or reading is None or reading.updated_at is None:
                continue
            if reading.step > listing.step[item.id] and reading.updated_at < item.updated_at:
                late = (listing.pages[-1].served_at - item.updated_at).total_seconds()
                self.bookmark = later(self.bookmark, late)

    def close(self, bookmark: Bookmark, event: Event | None) -> Steps[None]:
        """Land what is left, the tombstones that the guard lets through, and the bookmark."""
        self.bookmark = bookmark
        if event is not None:
            self._events.append(event)
        if self._undated:
            told = f"{self._undated} have no updated_at, or one in the future: read at every pull"
            self._events.append(Event("undated", told))
        allowed = self._guard.let_through(self._gone)
        held = dict.fromkeys(self._gone.keys() - allowed.keys(), "gone")
        yield from self._land(allowed, {**self.unread, **held})

    def _take(self, id: str, found: Found) -> None:
        updated_at = found.record.updated_at
        self._found[id] = found
        self.by_id[id] = Reading(updated_at, self.step)
        lateness = timedelta(seconds=self.bookmark.lateness_seconds)
        if updated_at is None or updated_at > found.served_at + lateness:
            self._undated += 1
        elif (known := self.known.get(id)) is not None and known.read_at is not None:
            self._measure(id, updated_at, known)

    def _measure(self, id: str, updated_at: datetime, known: Known) -> None:
        """Note that the row was read after this version was dated, and did not show it.

        The lateness grows to cover it. If it was this row that closed the last walk, then that
        walk may have ended too high, and is not trusted any more.
        """
        assert known.read_at is not None
        if known.updated_at == updated_at:
            return
        if id == self.bookmark.closed_by and updated_at < known.read_at + SECOND:
            self.bookmark = replace(self.bookmark, closed_by=None)
        late = (known.read_at - updated_at).total_seconds()
        before, self.bookmark = self.bookmark, later(self.bookmark, late)
        if self.bookmark.lateness_seconds > before.lateness_seconds:
            self._events.append(Event("late", f"became visible {late:.0f} s or more late", id))

    def _land(
        self, gone: dict[str, Gone] | None = None, enqueue: dict[str, str] | None = None
    ) -> Steps[None]:
        records = tuple(each for id, each in self._found.items() if id not in self.dead)
        yield from ask.commit(
            Commit(
                records=records,
                gone=gone or {},
                enqueue=enqueue or {},
                bookmark=self.bookmark,
                events=tuple(self._events),
            )
        )
        self._found.clear()
        self._events.clear()
        self._unlanded = 0
