"""The server's records: the sandbox's store, and a twin of it in plain Python with a memory.

A run over the store costs ten times a run over the twin, which is also the only one that can
show an earlier state (a replica that lags). `test_twin.py` holds both equal, request for request.
Neither knows what time does to it: the world decides.
"""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from operator import attrgetter
from typing import Any

from connector.catalog import CATALOG
from connector.catalog.field import Kind
from connector.catalog.resource import Resource
from connector.sandbox.api_answer import Rejection
from connector.sandbox.behaviour import Behaviours
from connector.sandbox.record_table import (
    AnswerShape,
    format_shown_time,
    format_stored_time,
    truncate_time,
)
from connector.sandbox.store import Store
from tests.simulation.scenario import PullScenario

Clock = Callable[[], datetime]

TYPE_ID = "type-1"
TYPE = {"id": TYPE_ID, "name": "Pages", "slug": "pages", "fields": []}
"""The content type whose items are the world's, where the scenario has content items."""

_PRIME = 2147483647
_BY_UPDATE, _BY_CREATION = attrgetter("updated_at"), attrgetter("created_at")


@dataclass(frozen=True, slots=True)
class ServerPage:
    items: tuple[Resource, ...]
    page: int
    per_page: int
    total: int


@dataclass(frozen=True, slots=True)
class ServerView:
    """State that an answer is made from: the records that the key sees, and the replica's time."""

    at: datetime | None = None
    sees: Callable[[str], bool] | None = None


WHOLE = ServerView()


class SimulatedServer(ABC):
    """The records of one stream. `born` and `dated` hold the kept `created_at` and `updated_at`
    of every live record.
    """

    interlude: Callable[[], None] | None = None
    told: Callable[[str], None] | None = None

    def __init__(self, scenario: PullScenario) -> None:
        self.declaration = CATALOG[scenario.resource]
        self.parent = TYPE_ID if self.declaration.parent else None
        self.born: dict[str, str] = {}
        self.dated: dict[str, str | None] = {}

    def tell(self, what: str, ids: Iterable[str]) -> None:
        """Tell of a write, where the run is traced."""
        if self.told is not None:
            self.told(f"    {what} {' '.join(ids)}")

    @abstractmethod
    def insert(self, record: Mapping[str, Any]) -> None:
        """Store a record with its id and moments."""

    @abstractmethod
    def change(self, ids: Iterable[str], changes: Mapping[str, Any], at: datetime | None) -> None:
        """Change records in one transaction and date them; without `at` their dates stay."""

    @abstractmethod
    def remove(self, id: str) -> None:
        """Delete a record."""

    @abstractmethod
    def page(
        self, page: int, sort: str | None, order: str, sight: ServerView = WHOLE
    ) -> ServerPage:
        """One page of the list, asked for with the API's largest `per_page`."""

    @abstractmethod
    def detail(self, id: str, sight: ServerView = WHOLE) -> Resource | None:
        """A record, None if there is none."""

    @abstractmethod
    def details(self) -> Mapping[str, Mapping[str, Any]]:
        """Every record as its detail shows it now."""


class StoreServer(SimulatedServer):
    """The sandbox's store. It knows no earlier state and sees everything."""

    def __init__(self, scenario: PullScenario, clock: Clock, chance: random.Random) -> None:
        super().__init__(scenario)
        behaviours = {
            "per_page_max": str(scenario.per_page_max),
            "timestamp_precision": scenario.precision,
            "ties": scenario.ties,
            "total": scenario.total,
            "sorting": scenario.sorting,
            "content_type_items": scenario.content_type_items,
        }
        self._name = scenario.resource
        self._store = Store(clock=clock, random=chance, behaviours=behaviours)
        self._store.interlude = self._between
        if self.parent:
            self._store.insert("content_types", TYPE)

    def _between(self) -> None:
        if self.interlude is not None:
            self.interlude()

    def _note(self, id: str) -> None:
        record = self._store.get(self._name, id).record
        self.born[id], self.dated[id] = record["created_at"], record["updated_at"]

    def insert(self, record: Mapping[str, Any]) -> None:
        self.tell("created", (record["id"],))
        self._store.insert(self._name, record, type=self.parent)
        self._note(record["id"])

    def change(self, ids: Iterable[str], changes: Mapping[str, Any], at: datetime | None) -> None:
        ids = tuple(ids)
        self.tell("silently changed" if at is None else "changed", ids)
        if at is not None:
            self._store.touch_many(self._name, ids, changes, updated_at=at)
        for id in ids:
            if at is None:
                self._store.change_silently(self._name, id, changes)
            self._note(id)

    def remove(self, id: str) -> None:
        self.tell("deleted", (id,))
        self._store.remove(self._name, id)
        del self.born[id], self.dated[id]

    def page(
        self, page: int, sort: str | None, order: str, sight: ServerView = WHOLE
    ) -> ServerPage:
        assert sight == WHOLE, "the store has no memory: use the twin"
        query = {"page": str(page), "per_page": "100", "sort": sort or "", "order": order}
        answer = self._store.list(self._name, query, type=self.parent)
        shown = answer.pagination
        items = tuple(self.declaration.record(each, is_item=True) for each in answer.items)
        return ServerPage(items, shown["page"], shown["per_page"], shown["total"])

    def detail(self, id: str, sight: ServerView = WHOLE) -> Resource | None:
        assert sight == WHOLE, "the store has no memory: use the twin"
        try:
            return self.declaration.record(self._store.get(self._name, id).record)
        except Rejection:
            return None

    def details(self) -> Mapping[str, Mapping[str, Any]]:
        return self._store.records(self._name)


class TwinVersion:
    """A record as it was from one moment to the next. `updated_at` and `created_at` are as kept,
    empty where there is none: those come first ascending, as in the store.
    """

    __slots__ = ("created_at", "detail", "item", "serial", "stored", "updated_at")

    def __init__(
        self, serial: int, stored: dict[str, Any], detail: Resource, item: Resource
    ) -> None:
        self.serial, self.stored, self.detail, self.item = serial, stored, detail, item
        self.created_at: str = stored["created_at"] or ""
        self.updated_at: str = stored["updated_at"] or ""


class TwinServer(SimulatedServer):
    """The same in plain Python, with every version that there ever was.

    `server_clock` dates records, `true_clock` says when a version became visible.
    """

    def __init__(self, scenario: PullScenario, true_clock: Clock, chance: random.Random) -> None:
        super().__init__(scenario)
        self._scenario = scenario
        self._behaviours = Behaviours.from_values(
            {
                "timestamp_precision": scenario.precision,
                "content_type_items": scenario.content_type_items,
            }
        )
        shape = AnswerShape(self.declaration, self._behaviours)
        # What a record without any value shows; a version only lays its values over it.
        self._bare, self._listed = shape.detail({}, {}), tuple(shape.item({}, {}))
        self._dates = [
            n for n, each in self.declaration.fields.items() if each.kind is Kind.DATETIME
        ]
        self._kind = self.declaration.record
        self._shown: dict[str, Mapping[str, Any]] = {}
        self._clock, self._chance = true_clock, chance
        self._serial = 0
        self._live: dict[str, TwinVersion] = {}
        self._past: dict[str, list[tuple[datetime, TwinVersion | None]]] = {}

    def _kept(self, moment: object) -> object:
        if isinstance(moment, datetime):
            return format_stored_time(truncate_time(moment, self._behaviours))
        return moment

    def _version(self, serial: int, stored: dict[str, Any]) -> TwinVersion:
        raw = {**self._bare, **stored}
        for name in self._dates:
            if raw[name] is not None:
                raw[name] = format_shown_time(raw[name], self._behaviours)
        item = self._kind({name: raw[name] for name in self._listed}, is_item=True)
        return TwinVersion(serial, stored, self._kind(raw), item)

    def _put(self, id: str, version: TwinVersion | None) -> None:
        if version is None:
            del self._live[id], self.born[id], self.dated[id], self._shown[id]
        else:
            self._live[id], self._shown[id] = version, version.detail.raw
            self.born[id], self.dated[id] = version.created_at, version.updated_at
        self._past.setdefault(id, []).append((self._clock(), version))

    def insert(self, record: Mapping[str, Any]) -> None:
        self.tell("created", (record["id"],))
        self._serial += 1
        stored = {name: self._kept(value) for name, value in record.items()}
        self._put(record["id"], self._version(self._serial, stored))

    def change(self, ids: Iterable[str], changes: Mapping[str, Any], at: datetime | None) -> None:
        ids = tuple(ids)
        self.tell("silently changed" if at is None else "changed", ids)
        dated = {} if at is None else {"updated_at": self._kept(at)}
        kept = {name: self._kept(value) for name, value in changes.items()}
        for id in ids:
            before = self._live[id]
            stored = {**before.stored, **kept, **dated}
            self._put(id, self._version(before.serial, stored))

    def remove(self, id: str) -> None:
        self.tell("deleted", (id,))
        self._put(id, None)

    def past(self, id: str) -> list[tuple[datetime, Mapping[str, Any] | None]]:
        """The record's details with the moments since which each was shown; None while deleted."""
        return [(at, each.detail.raw if each else None) for at, each in self._past.get(id, [])]

    def _seen(self, sight: ServerView) -> list[TwinVersion]:
        versions = self._live if sight.at is None else self._state(sight.at)
        if sight.sees is None:
            return list(versions.values())
        return [each for id, each in versions.items() if sight.sees(id)]

    def _state(self, at: datetime) -> dict[str, TwinVersion]:
        found = ((id, _latest(past, at)) for id, past in self._past.items())
        return {id: version for id, version in found if version is not None}

    def page(
        self, page: int, sort: str | None, order: str, sight: ServerView = WHOLE
    ) -> ServerPage:
        total = len(self._seen(sight))
        if self._scenario.total == "earlier" and self.interlude is not None:
            self.interlude()
        versions = self._seen(sight)
        size = self._scenario.per_page_max
        start = (page - 1) * size
        if start < len(versions):
            self._sort(versions, range(start, start + size), *self._order(sort, order))
        items = tuple(each.item for each in versions[start : start + size])
        return ServerPage(items, page, size, max(0, total + self._scenario.total_offset))

    def _order(self, sort: str | None, order: str) -> tuple[bool, bool]:
        """Return True twice: for the order by `updated_at`, and for descending order."""
        if not self.declaration.sortable:
            return False, False
        sorting = self._scenario.sorting
        if sorting == "ignored" or (sorting == "updated_ignored" and sort == "updated_at"):
            return False, True
        return sort == "updated_at", order == "desc"

    def _sort(
        self, versions: list[TwinVersion], window: range, is_by_update: bool, is_descending: bool
    ) -> None:
        """Sort what stands in order of insertion as the store would, at least in the window."""
        by = _BY_UPDATE if is_by_update else _BY_CREATION
        if self._scenario.ties == "stable":
            if is_descending:
                versions.reverse()
            versions.sort(key=by, reverse=is_descending)
            return
        factor = self._chance.randrange(2**30, 2**31 - 1)
        versions.sort(key=by, reverse=is_descending)
        for first, last in _ties(versions, by, window):
            tied = versions[first:last]
            tied.sort(key=lambda each: each.serial * factor % _PRIME)
            versions[first:last] = tied

    def detail(self, id: str, sight: ServerView = WHOLE) -> Resource | None:
        if sight.at is None:
            version = self._live.get(id)
        else:
            version = _latest(self._past.get(id, []), sight.at)
        if version is None or (sight.sees is not None and not sight.sees(id)):
            return None
        return version.detail

    def details(self) -> Mapping[str, Mapping[str, Any]]:
        return self._shown


def _latest(past: list[tuple[datetime, TwinVersion | None]], at: datetime) -> TwinVersion | None:
    for since, version in reversed(past):
        if since <= at:
            return version
    return None


def _ties(
    versions: list[TwinVersion], by: Callable[[TwinVersion], str], window: range
) -> Iterator[tuple[int, int]]:
    """Where sorted versions of equal value begin and end, for each such group in the window."""
    first = window.start
    while first < min(window.stop, len(versions)):
        value, last = by(versions[first]), first + 1
        while first > 0 and by(versions[first - 1]) == value:
            first -= 1
        while last < len(versions) and by(versions[last]) == value:
            last += 1
        if last - first > 1:
            yield first, last
        first = last
