"""A world of one seed: the production engine, the sandbox's store without HTTP, a clock of its own.

Everything that chance decides is drawn from the seed: what people change between and during
requests, which writes become visible late, where a run is cut short. `Mirror` performs what the
engine asks in memory, so that a simulated pull takes milliseconds.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from connector.catalog import CATALOG
from connector.engine import ask
from connector.engine.ask import Bookmark, Commit, Found, Gone, Known, PageSeen
from connector.engine.pull import Pulled, pull
from connector.sandbox import Rejection, Store

CANDIDATES = CATALOG["candidates"]
START = datetime(2026, 1, 5, 8, 0, tzinfo=UTC)


class CutShort(Exception):
    """The process was killed here."""


@dataclass(frozen=True)
class Scenario:
    """How the world behaves: which mutations, how often, and what the server does to reads."""

    churn: Mapping[str, float]
    behaviours: Mapping[str, str] = field(default_factory=dict)
    late_seconds_max: float = 0.0
    late_share: float = 0.0
    kill_share: float = 0.0
    records: int = 40
    mutations_per_second: float = 0.5


class World:
    """The API's side: records that change while time passes."""

    def __init__(self, seed: int, scenario: Scenario) -> None:
        self.chance = random.Random(seed)
        self.scenario = scenario
        self.now = START
        behaviours = {"per_page_max": "10", **scenario.behaviours}
        self.store = Store(
            clock=lambda: self.now, random=random.Random(seed), behaviours=behaviours
        )
        self.is_busy = False
        self.requests = 0
        self._made = 0
        self._late: list[tuple[datetime, str, Callable[[], str]]] = []
        for _ in range(scenario.records):
            self._create()
            if self.chance.random() > 0.2:  # Otherwise the next one shares its stamp.
                self.pass_time(self.chance.expovariate(1.0))
        self.pass_time(7200)

    def pass_time(self, seconds: float) -> None:
        """Let time pass, with what people do in it if the world is busy."""
        end = self.now + timedelta(seconds=seconds)
        while self.is_busy:
            wait = self.chance.expovariate(self.scenario.mutations_per_second)
            if self.now + timedelta(seconds=wait) > end:
                break
            self.now += timedelta(seconds=wait)
            self._settle_late()
            self._mutate()
        self.now = end
        self._settle_late()

    def settle(self) -> None:
        """Let every late write become visible, and then an hour pass in peace."""
        self.is_busy = False
        self.pass_time(3600)
        assert not self._late

    def _settle_late(self) -> None:
        for each in [late for late in self._late if late[0] <= self.now]:
            self._late.remove(each)
            each[2]()

    def _mutate(self) -> None:
        kinds = list(self.scenario.churn)
        weights = [self.scenario.churn[kind] for kind in kinds]
        kind = self.chance.choices(kinds, weights)[0]
        locked = {id for _, id, _ in self._late}
        live = [id for id in sorted(self.store.records("candidates")) if id not in locked]
        if kind == "create":
            self._create()
        elif live:
            getattr(self, f"_{kind}")(live)

    def _create(self) -> None:
        self._made += 1
        self.store.create(
            "candidates",
            {
                "first_name": "Ada",
                "last_name": f"N{self._made}",
                "email": f"p{self._made}@people.example",
                "employment_type": "permanent",
            },
        )

    def _changes(self) -> dict[str, Any]:
        changes: dict[str, Any] = {"notes": f"note {self.chance.random()}"}
        if self.chance.random() < 0.3:
            changes["current_company"] = f"Company {self.chance.randrange(50)}"
        return changes

    def _update(self, live: list[str]) -> None:
        id = self.chance.choice(live)
        if self.chance.random() < self.scenario.late_share:
            delay = self.chance.random() * self.scenario.late_seconds_max
            commit = self.store.postpone("candidates", self._changes(), id=id)
            self._late.append((self.now + timedelta(seconds=delay), id, commit))
        else:
            self.store.update("candidates", id, self._changes())

    def _newest(self, live: list[str], count: int) -> list[str]:
        records = self.store.records("candidates")
        return sorted(live, key=lambda each: records[each]["updated_at"], reverse=True)[:count]

    def _touch_top(self, live: list[str]) -> None:
        id = self.chance.choice(self._newest(live, 8))
        self.store.update("candidates", id, self._changes())

    def _batch(self, live: list[str]) -> None:
        """A nightly job: the newest once more, in the order that they already have."""
        for id in reversed(self._newest(live, self.chance.randint(2, 15))):
            self.now += timedelta(milliseconds=1)
            self.store.update("candidates", id, self._changes())

    def _bulk(self, live: list[str]) -> None:
        """One statement, one stamp."""
        ids = self.chance.sample(live, min(len(live), self.chance.randint(2, 30)))
        for id in ids:
            self.store.touch("candidates", id, self._changes(), updated_at=self.now)

    def _delete(self, live: list[str]) -> None:
        self.store.delete("candidates", self.chance.choice(live))


@dataclass
class _Row:
    raw: Mapping[str, Any]
    created_at: datetime
    updated_at: datetime | None = None
    read_at: datetime | None = None
    is_deleted: bool = False


class Mirror:
    """The connector's side in memory: performs what the engine asks, and commits whole or not at
    all.
    """

    def __init__(self, world: World, lateness_seconds: float = 10.0) -> None:
        self._world = world
        self.rows: dict[str, _Row] = {}
        self.queue: dict[str, str] = {}
        self.bookmark = Bookmark(lateness_seconds=lateness_seconds)

    def pull(self) -> Pulled | None:
        """One pull; None if it was cut short, which loses only what was not committed."""
        steps = pull(CANDIDATES, self.bookmark)
        try:
            wanted = next(steps)
            while True:
                wanted = steps.send(self._perform(wanted))
        except StopIteration as ended:
            pulled: Pulled = ended.value
            return pulled
        except CutShort:
            return None
        finally:
            steps.close()

    def _perform(self, wanted: ask.Ask) -> Any:
        match wanted:
            case ask.ListPage(page, sort, order):
                found: Any = self._list(page, sort, order)
            case ask.ReadRecords(ids):
                found = {id: self._read(id) for id in ids}
            case Commit():
                self._may_be_cut_short()
                self._commit(wanted)
                found = None
            case _:
                found = self._look(wanted)
        return found

    def _look(self, wanted: ask.Ask) -> Any:
        match wanted:
            case ask.Recall(ids):
                found: Any = {id: self._known(id) for id in ids if id in self.rows}
            case ask.Differing(items):
                found = [item.id for item in items if self._differs(item.raw)]
            case ask.Between(after, before):
                found = [id for id, row in self.rows.items() if _is_between(row, after, before)]
            case ask.NextQueued(count, skip):
                waiting = [id for id in self.queue if id not in skip]
                waiting.sort(key=lambda each: self.rows[each].created_at, reverse=True)
                found = waiting[:count]
            case _:
                assert isinstance(wanted, ask.CountLive), wanted
                found = sum(not row.is_deleted for row in self.rows.values())
        return found

    def _may_be_cut_short(self) -> None:
        world = self._world
        if world.is_busy and world.chance.random() < world.scenario.kill_share:
            raise CutShort

    def _answered_at(self) -> datetime:
        """The `Date` of an answer that is made now."""
        return self._world.now.replace(microsecond=0)

    def _list(self, page: int, sort: str | None, order: str) -> PageSeen:
        world = self._world
        self._may_be_cut_short()
        world.requests += 1
        world.pass_time(0.05 + world.chance.random() * 0.2)
        query = {"page": str(page), "per_page": "100", "sort": sort or "", "order": order}
        answer = world.store.list("candidates", query)
        served_at = self._answered_at()
        world.pass_time(0.02)
        shown = answer.pagination
        return PageSeen(
            items=tuple(CANDIDATES.record(item, is_item=True) for item in answer.items),
            page=shown["page"],
            per_page=shown["per_page"],
            total=shown["total"],
            served_at=served_at,
            round_trip_seconds=0.3,
        )

    def _read(self, id: str) -> Found | Gone:
        world = self._world
        self._may_be_cut_short()
        world.requests += 1
        world.pass_time(0.05 + world.chance.random() * 0.2)
        try:
            raw = world.store.get("candidates", id).record
        except Rejection:
            return Gone(self._answered_at())
        served_at = self._answered_at()
        world.pass_time(0.02)
        return Found(CANDIDATES.record(raw), served_at)

    def _known(self, id: str) -> Known:
        row = self.rows[id]
        return Known(row.updated_at, row.read_at, id in self.queue, row.is_deleted)

    def _differs(self, item: Mapping[str, Any]) -> bool:
        row = self.rows.get(item["id"])
        return row is not None and row.read_at is not None and bool(item.items() - row.raw.items())

    def _commit(self, what: Commit) -> None:
        for item in what.items:
            if item.id not in self.rows:
                self.rows[item.id] = _Row(item.raw, item.created_at)
                self.queue[item.id] = "listed"
            elif self.rows[item.id].is_deleted:
                self.queue[item.id] = "reappeared"
        for id, reason in what.enqueue.items():
            self.queue.setdefault(id, reason)
        for found in what.records:
            record = found.record
            self.rows[record.id] = _Row(
                record.raw, record.created_at, record.updated_at, found.served_at
            )
            self.queue.pop(record.id, None)
        for id in what.gone:
            if id in self.rows:
                self.rows[id] = replace(self.rows[id], is_deleted=True)
            self.queue.pop(id, None)
        if what.bookmark is not None:
            self._check(what.bookmark)
            self.bookmark = what.bookmark

    def _check(self, after: Bookmark) -> None:
        before = self.bookmark.proven_at
        assert before is None or (after.proven_at is not None and after.proven_at >= before)


def _is_between(row: _Row, after: datetime | None, before: datetime | None) -> bool:
    is_inside = (after is None or row.created_at > after) and (
        before is None or row.created_at < before
    )
    return is_inside and not row.is_deleted
