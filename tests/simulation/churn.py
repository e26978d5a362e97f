"""Random changes of the records by users, imports and nightly jobs."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from tests.simulation.scenario import PullScenario
from tests.simulation.server import SimulatedServer

ODD_SHARE = 0.05
FAR_FUTURE = datetime(2099, 1, 1, tzinfo=UTC)

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
# Fields that only details show, and fields that lists show, too.
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


class RandomChanges:
    """Random changes of one server's records, weighted by the scenario.

    Args:
        now: Clock that dates the changes.
        advance: Moves the clock by a timedelta.
        later: Performs a write of a record after some seconds: called with seconds, id and write.
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
        """Make one random change, of a kind drawn by the scenario's weights."""
        kind = self._chance.choices(self._kinds, self._weights)[0]
        if kind == "create":
            self.create_record()
            return
        live = [id for id in sorted(self._server.created_at) if id not in self._locked]
        if live:
            getattr(self, f"_{kind}")(live)

    def create_record(self, *, is_late_allowed: bool = True) -> None:
        """Create a record. It may become visible late if `is_late_allowed`."""
        self._made += 1
        # Ids without an order, like those of the API.
        id = f"{self._made * 2654435761 % 2**32:08x}"
        now = self._now()
        name = self._scenario.resource
        record = {
            "id": id,
            **_CREATED[name],
            _NAMED[name]: f"N{self._made}",
            "created_at": now,
            "updated_at": now if is_late_allowed else self._draw_first_updated_at(now),
        }
        if is_late_allowed and self._draw_is_late():
            self._write_later(id, lambda: self._server.insert(record))
        else:
            self._server.insert(record)

    def _draw_first_updated_at(self, now: datetime) -> datetime | None:
        """Return the `updated_at` of an initial record: now, or rarely the scenario's odd date."""
        if self._scenario.odd_dates == "none" or self._chance.random() >= ODD_SHARE:
            return now
        return FAR_FUTURE if self._scenario.odd_dates == "future" else None

    def _draw_is_late(self) -> bool:
        """Return True with the probability that a write becomes visible late."""
        share = self._scenario.late_share
        return share > 0 and self._chance.random() < share

    def _write_later(self, id: str, write: Callable[[], None]) -> None:
        """Perform the write after a random delay; until then, no other change uses the record."""

        def commit() -> None:
            self._locked.discard(id)
            write()

        self._locked.add(id)
        least, most = self._scenario.late_seconds_min, self._scenario.late_seconds_max
        self._later(least + self._chance.random() * (most - least), id, commit)

    def _draw_changes(self) -> dict[str, Any]:
        """Return a new value for one field, which lists show or not."""
        name = self._scenario.resource
        note = f"note {self._chance.random()}"
        changes: dict[str, Any] = {_HIDDEN[name]: note}
        if _HIDDEN[name] == "fields":
            changes = {"fields": {"text": note} if name == "content_items" else [{"name": note}]}
        if self._chance.random() < 0.3:
            changes[_LISTED[name]] = f"Company {self._chance.randrange(50)}"
        return changes

    def _next_updated_at(self, id: str) -> datetime | None:
        """Return the `updated_at` that a write gives to the record: now, or its odd date again."""
        if self._scenario.odd_dates != "none":
            before = self._server.updated_at[id]
            if not before or before.startswith("2099"):
                return None
        return self._now()

    def update_any_record(self, *, is_late_allowed: bool = True) -> None:
        """Update a random record."""
        id = self._chance.choice(sorted(self._server.created_at))
        self.update_record(id, is_late_allowed=is_late_allowed)

    def _update(self, live: list[str]) -> None:
        """Update one of the given records."""
        self.update_record(self._chance.choice(live))

    def update_record(self, id: str, *, is_late_allowed: bool = True) -> None:
        """Update a record and date the change. It may become visible late if `is_late_allowed`."""
        changes, at = self._draw_changes(), self._next_updated_at(id)
        if is_late_allowed and self._draw_is_late():
            self._write_later(id, lambda: self._server.change((id,), changes, at))
        else:
            self._server.change((id,), changes, at)

    def _newest_ids(self, live: list[str], count: int) -> list[str]:
        """Return the ids of the records with the latest `updated_at`, at most `count`."""
        dated = self._server.updated_at
        return sorted(live, key=lambda each: (dated[each] or "", each), reverse=True)[:count]

    def _touch_top(self, live: list[str]) -> None:
        """Update one of the eight most recently updated records."""
        self.update_record(self._chance.choice(self._newest_ids(live, 8)))

    def _batch(self, live: list[str]) -> None:
        """Update the newest records one by one in their present order, as a nightly job does."""
        for id in reversed(self._newest_ids(live, self._chance.randint(2, 25))):
            self._advance(timedelta(milliseconds=1))
            self._server.change((id,), self._draw_changes(), self._next_updated_at(id))

    def _slow_batch(self, live: list[str]) -> None:
        """Update two or three of the newest records, with pauses longer than any late write."""
        seconds = 0.0
        for id in reversed(self._newest_ids(live, self._chance.randint(2, 3))):
            self._locked.add(id)
            self._later(seconds, id, partial(self._update_locked, id))
            seconds += self._scenario.lateness_seconds * (1.1 + self._chance.random())

    def _update_locked(self, id: str) -> None:
        """Update a record that waited in a slow batch, and release it for other changes."""
        self._locked.discard(id)
        self._server.change((id,), self._draw_changes(), self._next_updated_at(id))

    def _bulk(self, live: list[str]) -> None:
        """Give up to 40 records the same change and the same `updated_at`."""
        ids = self._chance.sample(live, min(len(live), self._chance.randint(2, 40)))
        dated = [id for id in ids if self._next_updated_at(id) is not None]
        self._server.change(dated, self._draw_changes(), self._now())

    def _migration(self, live: list[str]) -> None:
        """Give half of all records the same `updated_at` in one transaction."""
        self._server.change(self._chance.sample(live, len(live) // 2), {}, self._now())

    def _delete(self, live: list[str]) -> None:
        """Delete one of the given records."""
        self._server.remove(self._chance.choice(live))

    def _swap(self, live: list[str]) -> None:
        """Delete one of the given records and create another, so that the total stays."""
        self._server.remove(self._chance.choice(live))
        self.create_record()

    def _delete_run(self, live: list[str]) -> None:
        """Delete up to 20 records created one after another, as a user does after an import."""
        born = self._server.created_at
        order = sorted(live, key=lambda each: (born[each], each))
        start = self._chance.randrange(len(order))
        for id in order[start : start + self._chance.randint(2, 20)]:
            self._server.remove(id)

    def _silent(self, live: list[str]) -> None:
        """Change one of the given records without changing its `updated_at`."""
        self._server.change((self._chance.choice(live),), self._draw_changes(), None)
