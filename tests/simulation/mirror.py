"""The connector's side in memory: runs the production engine and performs what it asks.

A commit is whole or not at all, and a kill loses only what was not committed. What is asked and
answered can be watched (`trace`), and every commit is judged as it comes (`judge`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import lru_cache, partial
from typing import Any

from connector.catalog.field import parse_datetime
from connector.catalog.resource import Page, Resource
from connector.errors import ConnectorError
from connector.errors_api import NoAnswer
from connector.pulls.resource_pull import PullOptions, PullResult, pull
from connector.warehouse import pull_commands
from connector.warehouse.pull_commands import (
    UNREAD_AMONG,
    UNREAD_MAX,
    Bookmark,
    Commit,
    DeletionProof,
    FoundDetail,
    LandedRow,
    Outcome,
    UnreadableDetail,
)
from tests.simulation.harness import TooManySteps, Trace
from tests.simulation.history import MemoryHistory, WarehouseHistory
from tests.simulation.world import PullWorld


class PullKilled(Exception):
    """The process was killed here."""


@lru_cache(maxsize=65536)
def moment(text: str | None) -> datetime | None:
    """A timestamp as answers show it."""
    return None if text is None else parse_datetime(text)


@dataclass(slots=True)
class Row:
    raw: Mapping[str, Any]
    created_at: datetime | None
    updated_at: datetime | None = None
    read_at: datetime | None = None
    is_deleted: bool = False


@dataclass
class KillPoint:
    """Step at which a process is killed, before or after its effect.

    A step is a look, a list request, each request for a detail, or a commit.
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
    """Answers that the engine received, as proof for its commits."""

    pages: list[Page[Resource]] = field(default_factory=list)
    gone: dict[str, list[DeletionProof]] = field(default_factory=dict)


Judge = Callable[["Mirror", Commit], None]


class Mirror:
    """The landing of one stream, its queue and its bookmark."""

    def __init__(self, world: PullWorld, *, judge: Judge | None = None) -> None:
        self.world = world
        self.rows: dict[str, Row] = {}
        self.queue: dict[str, tuple[str, datetime | None]] = {}
        self.bookmark = Bookmark(lateness_seconds=world.scenario.lateness_seconds)
        self.events: list[pull_commands.Event] = []
        self.seen = ReceivedAnswers()
        self.steps = 0
        self.kill: KillPoint | None = None
        self.trace: Trace | None = None
        self.requests_max = 10**9
        self.options = PullOptions(accepts_deletes=world.scenario.accepts_deletes)
        self.before_request: Callable[[], None] | None = None
        self.histories: list[MemoryHistory | WarehouseHistory] = [MemoryHistory(world.server)]
        self._judge = judge

    def adopt(self) -> None:
        """Take the API as landed and proven at this moment, without a request."""
        at = self.world.server_now().replace(microsecond=0)
        for id, raw in self.world.server.details().items():
            self.rows[id] = Row(raw, moment(raw["created_at"]), moment(raw["updated_at"]), at)
        proven_at = at - timedelta(seconds=1)
        self.bookmark = replace(self.bookmark, proven_at=proven_at, total_offset=0)

    def pull(self) -> PullEnd:
        """One pull, to its end or to its kill. Raises `TooManySteps` past `requests_max`."""
        steps = pull(self.world.server.declaration, self.bookmark, self.options)
        self._requests_before = self.world.requests
        self._failed: deque[bool] = deque(maxlen=UNREAD_AMONG)
        try:
            wanted = next(steps)
            while True:
                if self.trace is not None and isinstance(wanted, Commit):
                    self.trace(f"{self.world.now:%H:%M:%S.%f} {_told(wanted)}")
                try:
                    answer = self._perform(wanted)
                except ConnectorError as error:
                    wanted = steps.throw(error)
                    continue
                if self.trace is not None and not isinstance(wanted, Commit):
                    self.trace(f"{self.world.now:%H:%M:%S.%f} {_told(wanted)} -> {_told(answer)}")
                wanted = steps.send(answer)
        except StopIteration as ended:
            return PullEnd(pulled=ended.value)
        except PullKilled:
            return PullEnd()
        except ConnectorError as error:
            return PullEnd(error=error)
        finally:
            steps.close()

    # -- performing -------------------------------------------------------------------------------

    def _perform(self, wanted: pull_commands.PullCommand[Any]) -> Any:
        match wanted:
            case pull_commands.ListPage(page, sort, order):
                return self._stepping(lambda: self._list(page, sort, order))
            case pull_commands.ReadRecords(ids):
                return self._read(ids)
            case Commit():
                return self._stepping(lambda: self._commit(wanted))
            case pull_commands.SetPurpose():
                return None
            case _:
                return self._stepping(lambda: self._look(wanted))

    def _stepping(self, act: Callable[[], Any]) -> Any:
        """Act, unless the process is killed before; and perhaps be killed after."""
        self.steps += 1
        self._die_here(is_after=False)
        done = act()
        self._die_here(is_after=True)
        return done

    def _die_here(self, *, is_after: bool) -> None:
        world, share = self.world, self.world.scenario.kill_share / 2
        is_drawn = share > 0 and world.is_faulty and world.chance.random() < share
        if is_drawn or (self.kill is not None and self.kill == KillPoint(self.steps, is_after)):
            if self.trace is not None:
                self.trace(f"killed {'after' if is_after else 'before'} step {self.steps}")
            raise PullKilled

    def _list(self, page: int, sort: str | None, order: str) -> Page[Resource]:
        self._count()
        seen = self.world.list(page, sort, order)
        self.seen.pages.append(seen)
        return seen

    def _count(self) -> None:
        if self.world.requests - self._requests_before >= self.requests_max:
            raise TooManySteps(f"more than {self.requests_max} requests")
        if self.before_request is not None:
            self.before_request()

    def _read(self, ids: tuple[str, ...]) -> dict[str, Outcome]:
        """Details in any order, as from several connections, for as long as a batch takes; as the
        driver gives up, so does this.
        """
        outcomes: dict[str, Outcome] = {}
        until = self.world.now + timedelta(seconds=pull_commands.BATCH_SECONDS_MAX)
        order = list(ids)
        self.world.chance.shuffle(order)
        for id in order:
            self._count()
            outcomes[id] = outcome = self._stepping(partial(self.world.read, id))
            if isinstance(outcome, DeletionProof):
                self.seen.gone.setdefault(id, []).append(outcome)
            self._failed.append(isinstance(outcome, UnreadableDetail))
            if sum(self._failed) > UNREAD_MAX:
                found = tuple(each for each in outcomes.values() if isinstance(each, FoundDetail))
                self._stepping(partial(self._commit, Commit(records=found)))
                raise NoAnswer("a record", "too many records failed")
            if self.world.now > until:
                break
        return outcomes

    # -- looks ------------------------------------------------------------------------------------

    def _look(self, wanted: pull_commands.PullCommand[Any]) -> Any:
        match wanted:
            case pull_commands.LandedRows(ids, _):
                found: Any = {id: self._known(id) for id in ids if id in self.rows}
            case pull_commands.DifferingFields(answers):
                found = dict.fromkeys((each.id for each in answers if self._differs(each)), ())
            case pull_commands.CreatedBetween(after, before):
                live = self._live()
                found = frozenset(id for id, row in live if _lies(row.created_at, after, before))
            case pull_commands.UpdatedBetween(after, before):
                live = self._settled()
                found = frozenset(id for id, row in live if _lies(row.updated_at, after, before))
            case pull_commands.TiedPages(per_page):
                created = sorted(row.created_at for _, row in self._live() if row.created_at)
                pages = [created[at : at + per_page] for at in range(0, len(created), per_page)]
                found = frozenset(n for n, page in enumerate(pages, 1) if page[0] == page[-1])
            case pull_commands.LeastRecentlyRead(count):
                read = sorted((row.read_at, id) for id, row in self._settled() if row.read_at)
                found = tuple(id for _, id in read[:count])
            case pull_commands.UndatedIds(after):
                dated = [(id, row.updated_at) for id, row in self._live() if row.read_at]
                found = tuple(id for id, at in dated if at is None or at > after)
            case pull_commands.NextQueued(count, skip):
                found = self._next_queued(count, skip)
            case _:
                assert isinstance(wanted, pull_commands.CountLive), wanted
                live = self._live()
                found = sum(_lies(row.created_at, None, wanted.created_before) for _, row in live)
        return found

    def _live(self) -> list[tuple[str, Row]]:
        return [(id, row) for id, row in self.rows.items() if not row.is_deleted]

    def _settled(self) -> list[tuple[str, Row]]:
        return [(id, row) for id, row in self._live() if id not in self.queue]

    def _known(self, id: str) -> LandedRow:
        row = self.rows[id]
        return LandedRow(row.updated_at, row.read_at, id in self.queue, row.is_deleted)

    def _differs(self, answer: Resource) -> bool:
        """Compare as the warehouse does: a detail whole, an item by the fields that both have."""
        row = self.rows.get(answer.raw["id"])
        if row is None or row.read_at is None:
            return False
        if not answer.is_item:
            return answer.raw != row.raw
        landed = row.raw
        return any(landed.get(name, value) != value for name, value in answer.raw.items())

    def _next_queued(self, count: int, skip: frozenset[str]) -> tuple[str, ...]:
        """Newest first, undated last, and by id among equals."""
        waiting = sorted(id for id in self.queue if id not in skip)
        dated = [id for id in waiting if self.queue[id][1] is not None]
        dated.sort(key=lambda each: self.queue[each][1] or datetime.max, reverse=True)
        return (*dated, *(id for id in waiting if self.queue[id][1] is None))[:count]

    # -- commits ----------------------------------------------------------------------------------

    def _commit(self, what: Commit) -> None:
        """Carry it out in the order of the warehouse (connector/warehouse/landing.py)."""
        for item in {each.raw["id"]: each for each in what.items}.values():
            id = item.raw["id"]
            if id not in self.rows:
                self.rows[id] = Row(item.raw, moment(item.raw["created_at"]))
                self._enqueue(id, "listed")
            elif self.rows[id].is_deleted:
                self._enqueue(id, "reappeared")
        for found in what.records:
            raw = found.record.raw
            created_at, updated_at = moment(raw["created_at"]), moment(raw["updated_at"])
            self.rows[raw["id"]] = Row(raw, created_at, updated_at, found.served_at)
            self.queue.pop(raw["id"], None)
        for id in what.gone:
            if id in self.rows:
                self.rows[id] = replace(self.rows[id], is_deleted=True)
            self.queue.pop(id, None)
        for id, reason in what.enqueue.items():
            self._enqueue(id, reason)
        for history in self.histories:
            history.commit(what)
        self.events.extend(what.events)
        if self._judge is not None:
            self._judge(self, what)
        if what.bookmark is not None:
            self.bookmark = what.bookmark

    def _enqueue(self, id: str, reason: str) -> None:
        row = self.rows.get(id)
        self.queue.setdefault(id, (reason, row.created_at if row else None))


def _lies(at: datetime | None, after: datetime | None, before: datetime | None) -> bool:
    """Strictly between the bounds; what has no moment lies only where there are none."""
    if at is None:
        return after is None and before is None
    return (after is None or at > after) and (before is None or at < before)


def _told(value: object) -> str:
    """A command or an answer in one line, the same in every process."""
    match value:
        case Page():
            ids = " ".join(str(item.raw["id"]) for item in value.items)
            return f"page {value.page}, {value.total} in all, {value.timestamp:%H:%M:%S}: {ids}"
        case FoundDetail(record, served_at):
            return f"found {record.raw['updated_at']} at {served_at:%H:%M:%S}"
        case dict():
            return "{" + ", ".join(f"{key}: {_told(each)}" for key, each in value.items()) + "}"
        case pull_commands.NextQueued(count, skip):
            return f"NextQueued({count}, skip={sorted(skip)})"
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
