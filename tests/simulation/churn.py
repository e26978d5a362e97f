"""What people, imports and nightly jobs do to the records, drawn from the seed."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from tests.simulation.scenario import PullScenario
from tests.simulation.twin import SimulatedServer

ODD_SHARE = 0.05
FAR = datetime(2099, 1, 1, tzinfo=UTC)

_CREATED: Mapping[str, Mapping[str, Any]] = {
    "candidates": {
        "first_name": "Ada", "employment_type": "permanent", "status": "new_lead",
    },
    "content_items": {"status": "draft", "fields": {}},
    "content_types": {"is_system": False, "is_active": True, "fields": []},
}  # fmt: skip
_NAMED: Mapping[str, str] = {
    "candidates": "last_name",
    "content_items": "title",
    "content_types": "name",
}
# What details alone show, and what lists show too.
_HIDDEN: Mapping[str, str] = {
    "candidates": "notes",
    "content_items": "fields",
    "content_types": "fields",
}
_LISTED: Mapping[str, str] = {
    "candidates": "current_company",
    "content_items": "title",
    "content_types": "name",
}


class WorldChanges:
    """Mutations of one world's server. `now` is the clock that dates them, `later` takes what
    becomes visible late: seconds, the record's id, and the write.
    """

    def __init__(
        self,
        scenario: PullScenario,
        server: SimulatedServer,
        chance: random.Random,
        *,
        now: Callable[[], datetime],
        advance: Callable[[timedelta], None],
        later: Callable[[float, str, Callable[[], None]], None],
    ) -> None:
        self._scenario, self._server, self._chance = scenario, server, chance
        self._now, self._advance, self._later = now, advance, later
        self._made = 0
        self._locked: set[str] = set()
        self._kinds, self._weights = list(scenario.churn), list(scenario.churn.values())

    def mutate(self) -> None:
        """One of the scenario's mutations."""
        kind = self._chance.choices(self._kinds, self._weights)[0]
        if kind == "create":
            self.create()
            return
        live = [id for id in sorted(self._server.born) if id not in self._locked]
        if live:
            getattr(self, f"_{kind}")(live)

    def create(self, *, is_late_allowed: bool = True) -> None:
        """A new record; now and then one that becomes visible late."""
        self._made += 1
        # Ids in no order, as the API's are.
        id = f"{self._made * 2654435761 % 2**32:08x}"
        now = self._now()
        name = self._scenario.resource
        record = {
            "id": id,
            **_CREATED[name],
            _NAMED[name]: f"N{self._made}",
            "created_at": now,
            "updated_at": now if is_late_allowed else self._first_date(now),
        }
        if is_late_allowed and self._is_late():
            self._postpone(id, lambda: self._server.insert(record))
        else:
            self._server.insert(record)

    def _first_date(self, now: datetime) -> datetime | None:
        """The date of a record that was there from the start: some of them are odd."""
        if self._scenario.odd_dates == "none" or self._chance.random() >= ODD_SHARE:
            return now
        return FAR if self._scenario.odd_dates == "future" else None

    def _is_late(self) -> bool:
        share = self._scenario.late_share
        return share > 0 and self._chance.random() < share

    def _postpone(self, id: str, write: Callable[[], None]) -> None:
        def commit() -> None:
            self._locked.discard(id)
            write()

        self._locked.add(id)
        least, most = self._scenario.late_seconds_min, self._scenario.late_seconds_max
        self._later(least + self._chance.random() * (most - least), id, commit)

    def _changes(self) -> dict[str, Any]:
        name = self._scenario.resource
        note = f"note {self._chance.random()}"
        changes: dict[str, Any] = {_HIDDEN[name]: note}
        if _HIDDEN[name] == "fields":
            changes = {"fields": {"text": note} if name == "content_items" else [{"name": note}]}
        if self._chance.random() < 0.3:
            changes[_LISTED[name]] = f"Company {self._chance.randrange(50)}"
        return changes

    def _date_of(self, id: str) -> datetime | None:
        """The date that a write to the record gives it: odd ones stay odd."""
        if self._scenario.odd_dates != "none":
            before = self._server.dated[id]
            if not before or before.startswith("2099"):
                return None
        return self._now()

    def update(self, *, is_late_allowed: bool = True) -> None:
        """Change any record."""
        id = self._chance.choice(sorted(self._server.born))
        self.write(id, is_late_allowed=is_late_allowed)

    def _update(self, live: list[str]) -> None:
        self.write(self._chance.choice(live))

    def write(self, id: str, *, is_late_allowed: bool = True) -> None:
        """Change a record and date the change; now and then it becomes visible late."""
        changes, at = self._changes(), self._date_of(id)
        if is_late_allowed and self._is_late():
            self._postpone(id, lambda: self._server.change((id,), changes, at))
        else:
            self._server.change((id,), changes, at)

    def _newest(self, live: list[str], count: int) -> list[str]:
        dated = self._server.dated
        return sorted(live, key=lambda each: (dated[each] or "", each), reverse=True)[:count]

    def _touch_top(self, live: list[str]) -> None:
        self.write(self._chance.choice(self._newest(live, 8)))

    def _batch(self, live: list[str]) -> None:
        """A nightly job: the newest once more, in the order that they already have."""
        for id in reversed(self._newest(live, self._chance.randint(2, 25))):
            self._advance(timedelta(milliseconds=1))
            self._server.change((id,), self._changes(), self._date_of(id))

    def _slow_batch(self, live: list[str]) -> None:
        """The same, by a job that takes longer for each than a write may be late."""
        seconds = 0.0
        for id in reversed(self._newest(live, self._chance.randint(2, 3))):
            self._locked.add(id)
            self._later(seconds, id, partial(self._write_now, id))
            seconds += self._scenario.lateness_seconds * (1.1 + self._chance.random())

    def _write_now(self, id: str) -> None:
        self._locked.discard(id)
        self._server.change((id,), self._changes(), self._date_of(id))

    def _bulk(self, live: list[str]) -> None:
        """One statement, one stamp."""
        ids = self._chance.sample(live, min(len(live), self._chance.randint(2, 40)))
        dated = [id for id in ids if self._date_of(id) is not None]
        self._server.change(dated, self._changes(), self._now())

    def _migration(self, live: list[str]) -> None:
        """Half of all records in one transaction."""
        self._server.change(self._chance.sample(live, len(live) // 2), {}, self._now())

    def _delete(self, live: list[str]) -> None:
        self._server.remove(self._chance.choice(live))

    def _swap(self, live: list[str]) -> None:
        self._server.remove(self._chance.choice(live))
        self.create()

    def _delete_run(self, live: list[str]) -> None:
        """Neighbours in order of creation, as when somebody clears up an import."""
        born = self._server.born
        order = sorted(live, key=lambda each: (born[each], each))
        start = self._chance.randrange(len(order))
        for id in order[start : start + self._chance.randint(2, 20)]:
            self._server.remove(id)

    def _silent(self, live: list[str]) -> None:
        self._server.change((self._chance.choice(live),), self._changes(), None)
