"""The connector's side of a simulated pull, in memory: it runs the production engine and performs
its commands.

A commit is applied as a whole or not at all, and a kill loses only what was not committed. `trace`
receives each command and answer, and `check_commit` is called with each commit.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import lru_cache, partial
from typing import Any, TypeVar

from connector.catalog.field import parse_datetime
from connector.catalog.resource import Order, Page, Resource
from connector.errors import ConnectorError, NoAnswer
from connector.pulls import pull
from connector.pulls.ports import PullOptions, PullResult, Purpose
from connector.pulls.streams import BATCH_SECONDS_MAX, UNREAD_AMONG, UNREAD_MAX
from connector.state.runs import Event
from connector.warehouse.stream import (
    Bookmark,
    Commit,
    DeletionProof,
    FoundDetail,
    LandedRow,
    Outcome,
    UnreadableDetail,
)
from tests.simulation.harness import TooManySteps, Trace
from tests.simulation.history import MemoryHistory, WarehouseCopy
from tests.simulation.world import PullWorld

T = TypeVar("T")


class PullKilled(Exception):
    """The process was killed here."""


@lru_cache(maxsize=65536)
def parse_timestamp(text: str | None) -> datetime | None:
    """Parse a timestamp of a response; None if it is null."""
    return None if text is None else parse_datetime(text)


@dataclass(slots=True)
class MirrorRow:
    """Loaded row of a record. `read_at` is when its last detail was read; None if only listed."""

    raw: Mapping[str, Any]
    created_at: datetime | None
    updated_at: datetime | None = None
    read_at: datetime | None = None
    is_deleted: bool = False


@dataclass
class KillPoint:
    """Step at which a process is killed, before or after its effect.

    Each list request, detail request, commit and query of the local copy is a step.
    """

    step: int
    is_after: bool = False


@dataclass(frozen=True)
class PullEnd:
    """How a pull ended: with a result, with an error, or killed (both None)."""

    pulled: PullResult | None = None
    error: ConnectorError | None = None


@dataclass
class ReceivedAnswers:
    """List pages and deletion proofs that the engine received, for the checks of its commits."""

    pages: list[Page[Resource]] = field(default_factory=list)
    gone: dict[str, list[DeletionProof]] = field(default_factory=dict)


CommitCheck = Callable[["Mirror", Commit], None]


class Mirror:
    """Local copy of one stream in memory: its rows, its queue of ids to read, its bookmark."""

    def __init__(self, world: PullWorld, *, check_commit: CommitCheck | None = None) -> None:
        self.world = world
        self.rows: dict[str, MirrorRow] = {}
        self.queue: dict[str, tuple[str, datetime | None]] = {}
        self.bookmark = Bookmark(lateness_seconds=world.scenario.lateness_seconds)
        self.events: list[Event] = []
        self.seen = ReceivedAnswers()
        self.steps = 0
        self.kill: KillPoint | None = None
        self.trace: Trace | None = None
        self.requests_max = 10**9
        self.purpose: Purpose = "pull"
        self.options = PullOptions(accepts_deletes=world.scenario.accepts_deletes)
        self.before_request: Callable[[], None] | None = None
        self.history = MemoryHistory()
        self.landed: WarehouseCopy | None = None
        self._check_commit = check_commit

    def copy_server(self) -> None:
        """Copy the server's present records and set the bookmark to now, without requests."""
        at = self.world.server_now().replace(microsecond=0)
        for id, raw in self.world.server.all_details().items():
            self.rows[id] = MirrorRow(
                raw, parse_timestamp(raw["created_at"]), parse_timestamp(raw["updated_at"]), at
            )
        proven_at = at - timedelta(seconds=1)
        self.bookmark = replace(self.bookmark, proven_at=proven_at, is_total_exact=True)

    def pull(self) -> PullEnd:
        """Pull until the engine ends, fails or is killed.

        Raises:
            TooManySteps: The pull sent more than `requests_max` requests.
        """
        self._requests_before = self.world.requests
        self._failed: deque[bool] = deque(maxlen=UNREAD_AMONG)
        resource = self.world.server.declaration
        pulling = pull.run(self, self, resource, self.bookmark, self.options)
        try:
            pulling.send(None)
        except StopIteration as ended:
            return PullEnd(pulled=ended.value)
        except PullKilled:
            return PullEnd()
        except ConnectorError as error:
            return PullEnd(error=error)
        finally:
            pulling.close()
        raise AssertionError("the pull waits for something that is not simulated")

    # -- The API ----------------------------------------------------------------------------------

    async def page(self, number: int, sort: str | None, order: Order) -> Page[Resource]:
        """Request a list page, and remember it for the checks."""
        seen: Page[Resource] = self._run_step(lambda: self._list_page(number, sort, order))
        self._tell(f"page {number} by {sort} {order}", seen)
        return seen

    async def details(self, ids: Sequence[str]) -> dict[str, Outcome]:
        """Read details for as long as a batch may take."""
        outcomes = self._read_details(tuple(ids))
        self._tell(f"details {' '.join(ids)}", outcomes)
        return outcomes

    def _tell(self, asked: str, answer: object) -> None:
        """Trace a question and its answer."""
        if self.trace is not None:
            self.trace(f"{self.world.now:%H:%M:%S.%f} {asked} -> {_trace_line(answer)}")

    # -- The local copy ---------------------------------------------------------------------------

    async def commit(self, commit: Commit) -> None:
        """Apply a commit as a whole."""
        if commit == Commit():
            return
        if self.trace is not None:
            self.trace(f"{self.world.now:%H:%M:%S.%f} {_trace_line(commit)}")
        self._run_step(lambda: self._apply_commit(commit))

    def _ask(self, name: str, values: tuple[Any, ...], query: Callable[[], T]) -> T:
        """Answer a query as one step. The work file must give the same answer."""
        answer: T = self._run_step(query)
        if self.landed is not None:
            landed = self.landed.ask(name, *values)
            assert answer == landed, f"{name}: {answer} in the mirror, {landed} in the file"[:2000]
        return answer

    async def rows_of(self, ids: Collection[str]) -> dict[str, LandedRow]:
        """Return the rows with these ids, by id."""
        return self._ask(
            "rows_of", (ids,), lambda: {id: self._landed_row(id) for id in ids if id in self.rows}
        )

    async def differing(self, items: Collection[Resource]) -> set[str]:
        """Return the ids of list items that differ from their rows."""
        return self._ask(
            "differing", (items,), lambda: {e.id for e in items if self._differs_from_row(e)}
        )

    async def live(self, after: datetime | None, before: datetime | None) -> frozenset[str]:
        """Return live ids created strictly between two times."""
        live = self._live_rows()
        return self._ask(
            "live",
            (after, before),
            lambda: frozenset(id for id, row in live if _is_between(row.created_at, after, before)),
        )

    async def updated(self, after: datetime, before: datetime) -> frozenset[str]:
        """Return live ids, not queued, updated strictly between two times."""
        live = self._live_unqueued_rows()
        return self._ask(
            "updated",
            (after, before),
            lambda: frozenset(id for id, row in live if _is_between(row.updated_at, after, before)),
        )

    async def undated(self, after: datetime) -> tuple[str, ...]:
        """Return live ids without a date, or with one after this time."""
        dated = [(id, row.updated_at) for id, row in self._live_rows() if row.read_at]
        return self._ask(
            "undated",
            (after,),
            lambda: tuple(sorted(id for id, at in dated if at is None or at > after)),
        )

    async def oldest(self, count: int) -> tuple[str, ...]:
        """Return the ids read longest ago."""
        read = sorted((row.read_at, id) for id, row in self._live_unqueued_rows() if row.read_at)
        return self._ask("oldest", (count,), lambda: tuple(id for _, id in read[:count]))

    async def count(self, before: datetime | None = None) -> int:
        """Return the number of live rows, created before a time if one is given."""
        live = self._live_rows()
        return self._ask(
            "count",
            (before,),
            lambda: sum(_is_between(row.created_at, None, before) for _, row in live),
        )

    async def queued(self, count: int, skip: Collection[str]) -> tuple[str, ...]:
        """Return queued ids, newest first."""
        return self._ask("queued", (count, skip), lambda: self._next_queued(count, skip))

    def _run_step(self, act: Callable[[], Any]) -> Any:
        """Count a step and perform it. The process may be killed before or after it."""
        self.steps += 1
        self._kill_if_due(is_after=False)
        done = act()
        self._kill_if_due(is_after=True)
        return done

    def _kill_if_due(self, *, is_after: bool) -> None:
        """Raise `PullKilled` if `kill` names this step, or by chance if the scenario has kills."""
        world, share = self.world, self.world.scenario.kill_share / 2
        is_drawn = share > 0 and world.is_faulty and world.chance.random() < share
        if is_drawn or (self.kill is not None and self.kill == KillPoint(self.steps, is_after)):
            if self.trace is not None:
                self.trace(f"killed {'after' if is_after else 'before'} step {self.steps}")
            raise PullKilled

    def _list_page(self, page: int, sort: str | None, order: str) -> Page[Resource]:
        """Request a list page, and remember it for the checks."""
        self._prepare_request()
        seen = self.world.list_page(page, sort, order)
        self.seen.pages.append(seen)
        return seen

    def _prepare_request(self) -> None:
        """Fail if the pull has sent too many requests, and call `before_request`."""
        if self.world.requests - self._requests_before >= self.requests_max:
            raise TooManySteps(f"more than {self.requests_max} requests")
        if self.before_request is not None:
            self.before_request()

    def _read_details(self, ids: tuple[str, ...]) -> dict[str, Outcome]:
        """Read details in random order for as long as a batch may take; raise when too many fail,
        as the production client does.
        """
        outcomes: dict[str, Outcome] = {}
        until = self.world.now + timedelta(seconds=BATCH_SECONDS_MAX)
        order = list(ids)
        self.world.chance.shuffle(order)
        for id in order:
            self._prepare_request()
            outcomes[id] = outcome = self._run_step(partial(self.world.read_detail, id))
            if isinstance(outcome, DeletionProof):
                self.seen.gone.setdefault(id, []).append(outcome)
            self._failed.append(isinstance(outcome, UnreadableDetail))
            if sum(self._failed) > UNREAD_MAX:
                found = tuple(each for each in outcomes.values() if isinstance(each, FoundDetail))
                self._run_step(partial(self._apply_commit, Commit(records=found)))
                raise NoAnswer("a record", "too many records failed")
            if self.world.now > until:
                break
        return outcomes

    def _live_rows(self) -> list[tuple[str, MirrorRow]]:
        """Return id and row of every record that is not deleted."""
        return [(id, row) for id, row in self.rows.items() if not row.is_deleted]

    def _live_unqueued_rows(self) -> list[tuple[str, MirrorRow]]:
        """Return id and row of every record that is neither deleted nor queued."""
        return [(id, row) for id, row in self._live_rows() if id not in self.queue]

    def _landed_row(self, id: str) -> LandedRow:
        """Return the row as the engine receives it."""
        row = self.rows[id]
        return LandedRow(row.updated_at, row.read_at, id in self.queue, row.is_deleted)

    def _differs_from_row(self, answer: Resource) -> bool:
        """Return True if a list item differs from the record's row in a field that both have."""
        row = self.rows.get(answer.raw["id"])
        if row is None or row.read_at is None:
            return False
        landed = row.raw
        return any(landed.get(name, value) != value for name, value in answer.raw.items())

    def _next_queued(self, count: int, skip: Collection[str]) -> tuple[str, ...]:
        """Return up to `count` queued ids, the newest first and those without a date last."""
        waiting = sorted(id for id in self.queue if id not in skip)
        dated = [id for id in waiting if self.queue[id][1] is not None]
        dated.sort(key=lambda each: self.queue[each][1] or datetime.max, reverse=True)
        return (*dated, *(id for id in waiting if self.queue[id][1] is None))[:count]

    # -- commits ----------------------------------------------------------------------------------

    def _apply_commit(self, commit: Commit) -> None:
        """Apply a commit in the order of the warehouse (warehouse/landing.py), and check it."""
        for item in {each.raw["id"]: each for each in commit.items}.values():
            id = item.raw["id"]
            if id not in self.rows:
                self.rows[id] = MirrorRow(item.raw, parse_timestamp(item.raw["created_at"]))
                self._enqueue(id, "listed")
            elif self.rows[id].is_deleted:
                self._enqueue(id, "reappeared")
        for found in commit.records:
            raw = found.record.raw
            created_at, updated_at = (
                parse_timestamp(raw["created_at"]),
                parse_timestamp(raw["updated_at"]),
            )
            self.rows[raw["id"]] = MirrorRow(raw, created_at, updated_at, found.served_at)
            self.queue.pop(raw["id"], None)
        for id in commit.gone:
            if id in self.rows:
                self.rows[id] = replace(self.rows[id], is_deleted=True)
            self.queue.pop(id, None)
        for id, reason in commit.enqueue.items():
            self._enqueue(id, reason)
        for id in commit.forget:
            assert id not in self.rows or self.rows[id].read_at is None, "a detail is forgotten"
            self.rows.pop(id, None)
            self.queue.pop(id, None)
        self.history.apply(commit)
        if self.landed is not None:
            self.landed.apply(commit)
        self.events.extend(commit.events)
        if self._check_commit is not None:
            self._check_commit(self, commit)
        if commit.bookmark is not None:
            self.bookmark = commit.bookmark

    def _enqueue(self, id: str, reason: str) -> None:
        """Queue a record for reading, unless it is already queued."""
        row = self.rows.get(id)
        self.queue.setdefault(id, (reason, row.created_at if row else None))


def _is_between(at: datetime | None, after: datetime | None, before: datetime | None) -> bool:
    """Return True if the timestamp is strictly between the bounds; None only if both are open."""
    if at is None:
        return after is None and before is None
    return (after is None or at > after) and (before is None or at < before)


def _trace_line(value: object) -> str:
    """Format a command or an answer as one line, identical in every process."""
    match value:
        case Page():
            ids = " ".join(str(item.raw["id"]) for item in value.items)
            return f"page {value.page}, {value.total} in all, {value.timestamp:%H:%M:%S}: {ids}"
        case FoundDetail(record, served_at):
            return f"found {record.raw['updated_at']} at {served_at:%H:%M:%S}"
        case dict():
            return (
                "{" + ", ".join(f"{key}: {_trace_line(each)}" for key, each in value.items()) + "}"
            )
        case Commit():
            parts = (
                f"{len(value.items)} items",
                f"records {' '.join(each.record.raw['id'] for each in value.records)}",
                f"gone {' '.join(sorted(value.gone))}",
                f"queued {dict(sorted(value.enqueue.items()))}",
                *(f"{each.kind}: {each.detail}" for each in value.events),
                str(value.bookmark),
            )
            return f"commit {'; '.join(parts)}"
        case _:
            return str(sorted(value) if isinstance(value, frozenset) else value)
