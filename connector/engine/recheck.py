"""Reading records one by one: what is queued, what is in doubt, what was verified longest ago.

Each detail read here is held against the landed row. A difference that the bookmark says cannot
be is an anomaly: a write that became visible too late, which raises the lateness, or a change
that the API did not date. Both are told as events.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from connector.catalog.resource import Resource
from connector.engine import commands
from connector.engine.bookmark import Bookmark, floor_of
from connector.engine.commands import Commit, Event, Found, Gone, Known, Outcome, PageSeen, Steps

# -- Listing ---------------------------------------------------------------------------------------
# The pages of one list, read one after another, as a pass sees them.


SECOND = timedelta(seconds=1)
"""What `Date` is cut to."""

CLOCK_SLACK_SECONDS = 5.0
"""By how much two clocks may drift apart between two lists without one of them having been set."""


class Listing:
    """One attempt's pages: the distinct items in listed order, each with its rank and the step at
    which it was last shown.
    """

    def __init__(self) -> None:
        self.pages: list[PageSeen] = []
        self.order: list[Resource] = []
        self.rank: dict[str, int] = {}
        self.step: dict[str, int] = {}
        self.last_step = 0
        self.has_shifted = False

    def add(self, page: PageSeen, step: int) -> tuple[Resource, ...]:
        """Take a page in; returns the items that this listing had not shown before."""
        if self.pages:
            last = self.pages[-1]
            self.has_shifted |= page.total < last.total or page.per_page != last.per_page
        self.pages.append(page)
        self.last_step = step
        fresh = []
        for index, item in enumerate(page.items):
            if item.id not in self.rank:
                fresh.append(item)
                self.order.append(item)
            # The last showing counts: a record that slid onto a later page stands at its new rank.
            self.rank[item.id] = (page.page - 1) * page.per_page + index
            self.step[item.id] = step
        return tuple(fresh)

    def is_complete(self, offset: int) -> bool:
        """Whether the list has no further page; it has `offset` more rows than its total says."""
        return self.pages[-1].ends_list(offset)

    def length(self, offset: int) -> int:
        """How many rows the list has: those of its last page count, and not the total, where the
        list certainly ends on it.
        """
        last = self.pages[-1]
        return last.total + offset if last.is_full else last.count


def opening(page: PageSeen) -> datetime:
    """T0 by a pass's first list: the server's time before it, cut to the second and never later."""
    before = page.served_at - timedelta(seconds=page.round_trip_seconds) - SECOND
    return before.replace(microsecond=0)


def measured(page: PageSeen, bookmark: Bookmark) -> Bookmark:
    """The bookmark after a page that may show where the list ends, beside what its total says.

    That both agree is a measure. That they do not may as well be a total of another instant: then
    the offset is unknown, until every page was compared.
    """
    bookmark = clocked(page, bookmark)
    if page.offset is None or page.offset == bookmark.total_offset:
        return bookmark
    agrees = page.offset == 0 and bookmark.total_offset is None
    return replace(bookmark, total_offset=0 if agrees else None)


def clocked(page: PageSeen, bookmark: Bookmark) -> Bookmark:
    """The bookmark with a lower floor where the server's clock was set back, by our own clock.

    What was written since R was set may bear moments from before R, by as much as it was set back;
    so the next walk reaches down there.
    """
    before, ahead = bookmark.clock_ahead_seconds, page.ahead_seconds
    if ahead is None:
        return bookmark
    if before is None:
        return replace(bookmark, clock_ahead_seconds=ahead)
    if before - ahead <= CLOCK_SLACK_SECONDS:
        return bookmark
    distrusted = replace(bookmark, closed_by=None, clock_ahead_seconds=ahead)
    since = replace(distrusted, proven_at=bookmark.proven_at or bookmark.opened_at)
    floor = floor_of(since) - timedelta(seconds=before - ahead)
    return replace(distrusted, closed_floor=floor)


# -- Guard -----------------------------------------------------------------------------------------
# The guard against mass deletion: what a key cannot see any more is not thereby deleted.
#
# A handful of deletions is daily work. Hundreds at once are more often a key that lost a scope, a
# wrong address or a server in trouble. What tells them apart is the list:
#
# - a list that is suddenly much shorter than it was is not believed, until a person says so;
# - neither is one that shows hardly any record that is landed, whatever its length;
# - where many records are said to be gone, lists must have stopped showing them as well: those that
#   still show them contradict it, and those that were not read yet have to be.
#
# While others create as much as they delete, any number may go, and all of it is found. A refusal
# keeps deletions back and nothing else: what is new or changed lands all the same.


GONE_MIN = 20
"""So many missing records are always believed, however few are landed."""

GONE_SHARE = 0.02
"""The share of the live records by which the list may be shorter than it last was."""

EMPTIED_MAX = 5
"""A list of no more records may be empty: each of them is then asked for, and must be a 404."""

RECOGNISED_SHARE = 0.05
"""How many listed records must be landed for each that is absent: another agency has none."""


def gone_max(live: int) -> float:
    """By more than this no list may be shorter than it last was without a person's word."""
    return max(GONE_MIN, GONE_SHARE * live)


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why deletions were kept back: `code` is that of the error that says what to do about it
    (`connector/errors_api.py`). With `hides_changes` the lists may hide changed records as
    well, so that the bookmark must stay.
    """

    code: str
    told: str
    hides_changes: bool = False


class Guard:
    """Holds back the tombstones of one pull until there is evidence enough for their number.

    `live` is the number of live rows when the pull began, `listed` the list's total when it was
    last believed (None: the live rows are taken for it); `accepts` is a person's word that all
    deletions are meant, which lets any number through. `refused` says why the guard refused, if it
    has: then it lets nothing through any more. `held` are tombstones that wait for lists that do
    not show them, `contradicted` the ids of those that a list showed.
    """

    def __init__(self, live: int, listed: int | None, *, accepts: bool = False) -> None:
        self._accepts = accepts
        self._live, self._listed = live, live if listed is None else listed
        self._is_emptied = False
        self._max = gone_max(live)
        self._passed = 0
        self._waiting: set[str] = set()
        self.refused: Refusal | None = None
        self.held: dict[str, Gone] = {}
        self.contradicted: set[str] = set()

    @property
    def holds_many(self) -> bool:
        """Whether so many are held that lists must be read before they are believed."""
        return self._passed + len(self.held) > self._max and not self._accepts

    @property
    def blindness(self) -> str | None:
        """Why lists prove nothing of what changed either, if it is the lists that were refused, or
        if a list is empty that was not.
        """
        refused = self.refused
        if refused is None:
            told = f"the list is empty, and {self._live} records are landed"
            return told if self._is_emptied else None
        return refused.told if refused.hides_changes else None

    @property
    def refusal(self) -> Refusal | None:
        """Why deletions were kept back in this pull, if any were."""
        if self.refused is not None or not self._waiting:
            return self.refused
        told = f"{len(self._waiting)} records are said to be gone, and no list was read since"
        return Refusal("deletions_waiting", told)

    def allows_list(self, total: int) -> bool:
        """Whether the list may have so many records now.

        An empty list is not believed where it had more than a few: that is how a key looks that
        sees nothing any more.
        """
        self._is_emptied = total == 0 < self._live
        missing = self._listed - total
        is_emptied = total == 0 and self._listed > EMPTIED_MAX
        told = f"{missing} records are missing at once: {self._listed} were listed, and now {total}"
        refusal = Refusal("list_shrank", told, hides_changes=True)
        return self._judge(missing <= self._max and not is_emptied, refusal)

    def allows_absent(self, absent: int, recognised: int) -> bool:
        """Whether so many may be absent from lists that show so many of those that are landed."""
        is_familiar = recognised >= RECOGNISED_SHARE * absent
        told = f"{absent} records are missing, and the lists show {recognised} that are landed"
        refusal = Refusal("list_unfamiliar", told, hides_changes=True)
        return self._judge(absent <= self._max or is_familiar, refusal)

    def still_listed(self, ids: set[str]) -> None:
        """What is held and listed after all is not deleted, or not surely."""
        shown = ids & self.held.keys()
        for id in shown:
            del self.held[id]
        self.contradicted |= shown
        count = len(self.contradicted)
        told = f"{count} records are said to be gone, and the lists show them"
        self._judge(count <= self._max, Refusal("details_gone", told))

    def let_through(self, gone: dict[str, Gone]) -> dict[str, Gone]:
        """The tombstones that may be made on the API's word alone; too many at once are held."""
        self.held |= gone
        if self.holds_many:
            return {}
        self._passed += len(self.held)
        return self.release()

    def release(self) -> dict[str, Gone]:
        """The tombstones that were held, since lists do not show them either."""
        held, self.held = self.held, {}
        self._waiting -= held.keys()
        return {} if self.refused is not None else held

    def put_off(self) -> None:
        """Leave what is held to the next pull, which reads all lists first."""
        self._waiting |= self.held.keys()
        self.held.clear()

    def _judge(self, is_believed: bool, refusal: Refusal) -> bool:
        if is_believed or self._accepts:
            return True
        self.refused = refusal
        return False


# -- Examine ---------------------------------------------------------------------------------------
#


BATCH_RECORDS_MAX = 100
"""Records read between two commits, which bounds what a crash costs."""

LATENESS_SECONDS_MAX = 3600.0
"""The lateness never grows beyond an hour: what comes later is the scrub's to find."""


@dataclass(frozen=True, slots=True)
class Examined:
    """What came of reading records: the bookmark, whose lateness may have grown, and the ids that
    are gone.
    """

    bookmark: Bookmark
    gone: frozenset[str] = frozenset()


def drain(guard: Guard) -> Steps[None]:
    """Read everything queued, newest first, committing each batch.

    What cannot be read stays queued, and what is gone is held by the guard, until `bury`. What was
    said to be gone in this pull and is listed all the same waits for the next one.
    """
    unread: set[str] = set()
    while ids := (
        yield from commands.next_queued(
            BATCH_RECORDS_MAX, frozenset(unread | guard.held.keys() | guard.contradicted)
        )
    ):
        outcomes = yield from commands.read_records(ids)
        found, gone = _sorted_out(outcomes)
        unread |= outcomes.keys() - gone.keys() - {each.record.id for each in found}
        guard.held |= gone
        yield from commands.commit(Commit(records=found))


def bury(guard: Guard) -> Steps[None]:
    """Make the tombstones that the guard held, now that lists do not show them either."""
    if gone := guard.release():
        yield from commands.commit(Commit(gone=gone))


def bury_few(guard: Guard) -> Steps[None]:
    """Make the tombstones that the guard held, if they are few; many stay queued, and wait for the
    lists of another round.
    """
    if guard.holds_many:
        guard.put_off()
    elif gone := guard.let_through({}):
        yield from commands.commit(Commit(gone=gone))


def examine(
    ids: Iterable[str], bookmark: Bookmark, guard: Guard, *, is_absent: bool = False
) -> Steps[Examined]:
    """Read these records, whether queued or not, and judge what differs from the landed rows.

    `is_absent` says that no list shows those that may be gone. What the guard does not let through
    at once is queued.
    """
    wanted = tuple(dict.fromkeys(ids))
    gone: dict[str, Gone] = {}
    for start in range(0, len(wanted), BATCH_RECORDS_MAX):
        batch = wanted[start : start + BATCH_RECORDS_MAX]
        known = yield from commands.recall_ids(batch)
        outcomes = yield from commands.read_records(batch)
        found, batch_gone = _sorted_out(outcomes)
        gone |= batch_gone
        differing = yield from commands.differing(tuple(each.record for each in found))
        bookmark, events = _judge(found, differing, known, bookmark)
        yield from commands.commit(Commit(records=found, bookmark=bookmark, events=events))
    if is_absent:
        guard.held |= gone
    allowed = guard.release() if is_absent else guard.let_through(gone)
    held = dict.fromkeys(gone.keys() - allowed.keys(), "gone")
    yield from commands.commit(Commit(gone=allowed, enqueue=held))
    return Examined(bookmark, frozenset(allowed))


def later(bookmark: Bookmark, seconds: float) -> Bookmark:
    """The bookmark with room for a write that became visible `seconds` late, within the bound.

    The floor moves down with it, which claims less and so is never wrong.
    """
    lateness = max(bookmark.lateness_seconds, min(LATENESS_SECONDS_MAX, 2 * seconds))
    seen = max(bookmark.late_seconds_seen, seconds)
    return replace(bookmark, lateness_seconds=lateness, late_seconds_seen=seen)


def _sorted_out(outcomes: dict[str, Outcome]) -> tuple[tuple[Found, ...], dict[str, Gone]]:
    """What was found, and what the API says is gone."""
    found = tuple(each for each in outcomes.values() if isinstance(each, Found))
    gone = {id: each for id, each in outcomes.items() if isinstance(each, Gone)}
    return found, gone


def _judge(
    found: tuple[Found, ...],
    differing: frozenset[str],
    known: dict[str, Known],
    bookmark: Bookmark,
) -> tuple[Bookmark, tuple[Event, ...]]:
    """The anomalies among the differences: changes at or below a floor that says there are none."""
    if bookmark.proven_at is None:
        return bookmark, ()
    floor = bookmark.proven_at - timedelta(seconds=bookmark.lateness_seconds)
    events: list[Event] = []
    for each in found:
        id, updated_at = each.record.id, each.record.updated_at
        if id not in differing or updated_at is None or updated_at > floor:
            continue
        if known[id].is_queued and known[id].read_at is None:
            continue
        if updated_at == known[id].updated_at:
            events.append(Event("silent", "changed, and its updated_at did not move", id))
            continue
        bookmark = _with_room_for(bookmark, updated_at, known[id].read_at)
        events.append(Event("late", f"became visible late: updated_at is {updated_at}", id))
    return bookmark, tuple(events)


def _with_room_for(bookmark: Bookmark, updated_at: datetime, read_at: datetime | None) -> Bookmark:
    """The bookmark with more lateness, after a change was found that it should have covered.

    How late the change was is known only if the row was read after it was dated; otherwise it is
    known only that it was later than allowed for, and the allowance is doubled.
    """
    assert bookmark.proven_at is not None
    seen_late = (read_at - updated_at).total_seconds() if read_at is not None else 0.0
    seconds = max(seen_late, bookmark.lateness_seconds)
    return later(bookmark, min(seconds, (bookmark.proven_at - updated_at).total_seconds()))


# -- Readings --------------------------------------------------------------------------------------
# The details that one pass reads: what each showed and when, and landing them in batches.


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
            outcomes = yield from commands.read_records(batch)
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
        yield from commands.commit(
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
