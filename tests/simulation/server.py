"""The server's records in plain Python, with the sandbox's rules for shapes, orders and totals.

It remembers past states, so that it can answer as a lagging replica does. The passing of time is up
to the world.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from operator import attrgetter
from typing import Any

from connector.catalog import CATALOG
from connector.catalog.resource import Resource
from connector.sandbox.behaviour import Behaviours
from connector.sandbox.checks import format_time
from connector.sandbox.records import Shape
from tests.simulation.scenario import PullScenario

Clock = Callable[[], datetime]

TYPE_ID = "type-1"
"""Content type of all items, if the scenario has content items."""

_PRIME = 2147483647
_BY_UPDATE, _BY_CREATION = attrgetter("updated_at"), attrgetter("created_at")


@dataclass(frozen=True, slots=True)
class ServerPage:
    """A list page. `total` is the number of records that the list claims to have."""

    items: tuple[Resource, ...]
    page: int
    per_page: int
    total: int


@dataclass(frozen=True, slots=True)
class ServerView:
    """State that a response shows: the records that the key sees, and the time of the replica."""

    at: datetime | None = None
    sees: Callable[[str], bool] | None = None


CURRENT_VIEW = ServerView()


class TwinVersion:
    """A record between two of its writes.

    `updated_at` and `created_at` are empty if null, so that they sort first, as in the store.
    """

    __slots__ = ("created_at", "detail", "item", "serial", "stored", "updated_at")

    def __init__(
        self, serial: int, stored: dict[str, Any], detail: Resource, item: Resource
    ) -> None:
        self.serial, self.stored, self.detail, self.item = serial, stored, detail, item
        self.created_at: str = stored["created_at"] or ""
        self.updated_at: str = stored["updated_at"] or ""


class SimulatedServer:
    """The records of one stream, with every version. `true_clock` dates the versions.

    `created_at` and `updated_at` hold the stored timestamps of every existing record, by id.
    """

    interlude: Callable[[], None] | None = None
    trace: Callable[[str], None] | None = None

    def __init__(self, scenario: PullScenario, true_clock: Clock, chance: random.Random) -> None:
        self.declaration = CATALOG[scenario.resource]
        self.parent = TYPE_ID if self.declaration.parent else None
        self.created_at: dict[str, str] = {}
        self.updated_at: dict[str, str | None] = {}
        self._scenario = scenario
        self._behaviours = Behaviours(
            {
                "timestamp_precision": scenario.precision,
                "content_type_items": scenario.content_type_items,
            }
        )
        shape = Shape(self.declaration, self._behaviours)
        # Response of a record without values, which each version completes.
        self._bare, self._listed = shape.detail({}), tuple(shape.item({}))
        self._kind = self.declaration.record
        self._shown: dict[str, Mapping[str, Any]] = {}
        self._clock, self._chance = true_clock, chance
        self._serial = 0
        self._live: dict[str, TwinVersion] = {}
        self._past: dict[str, list[tuple[datetime, TwinVersion | None]]] = {}

    def _trace_write(self, what: str, ids: Iterable[str]) -> None:
        """Trace a write, if the run is traced."""
        if self.trace is not None:
            self.trace(f"    {what} {' '.join(ids)}")

    def _to_stored(self, moment: object) -> object:
        """Convert a timestamp to its stored text; return other values unchanged."""
        if isinstance(moment, datetime):
            return format_time(moment, self._behaviours)
        return moment

    def _make_version(self, serial: int, stored: dict[str, Any]) -> TwinVersion:
        """Return a version with the detail and the list item that it shows."""
        raw = {**self._bare, **stored}
        item = self._kind({name: raw[name] for name in self._listed}, is_item=True)
        return TwinVersion(serial, stored, self._kind(raw), item)

    def _store_version(self, id: str, version: TwinVersion | None) -> None:
        """Make a version the record's current one; None deletes the record."""
        if version is None:
            del self._live[id], self.created_at[id], self.updated_at[id], self._shown[id]
        else:
            self._live[id], self._shown[id] = version, version.detail.raw
            self.created_at[id], self.updated_at[id] = version.created_at, version.updated_at
        self._past.setdefault(id, []).append((self._clock(), version))

    def insert(self, record: Mapping[str, Any]) -> None:
        """Store a record with its id and timestamps."""
        self._trace_write("created", (record["id"],))
        self._serial += 1
        stored = {name: self._to_stored(value) for name, value in record.items()}
        self._store_version(record["id"], self._make_version(self._serial, stored))

    def change(self, ids: Iterable[str], changes: Mapping[str, Any], at: datetime | None) -> None:
        """Change records in one transaction. Sets `updated_at` to `at`, unless it is None."""
        ids = tuple(ids)
        self._trace_write("silently changed" if at is None else "changed", ids)
        dated = {} if at is None else {"updated_at": self._to_stored(at)}
        kept = {name: self._to_stored(value) for name, value in changes.items()}
        for id in ids:
            before = self._live[id]
            stored = {**before.stored, **kept, **dated}
            self._store_version(id, self._make_version(before.serial, stored))

    def remove(self, id: str) -> None:
        """Delete a record."""
        self._trace_write("deleted", (id,))
        self._store_version(id, None)

    def past_details(self, id: str) -> list[tuple[datetime, Mapping[str, Any] | None]]:
        """Return each detail that the record had, with the time since when; None while deleted."""
        return [(at, each.detail.raw if each else None) for at, each in self._past.get(id, [])]

    def _visible_versions(self, view: ServerView) -> list[TwinVersion]:
        """Return the versions that the view shows, in order of insertion."""
        versions = self._live if view.at is None else self._versions_at(view.at)
        if view.sees is None:
            return list(versions.values())
        return [each for id, each in versions.items() if view.sees(id)]

    def _versions_at(self, at: datetime) -> dict[str, TwinVersion]:
        """Return the version of each record that existed at this time, by id."""
        found = ((id, _find_version_at(past, at)) for id, past in self._past.items())
        return {id: version for id, version in found if version is not None}

    def list_page(
        self, page: int, sort: str | None, order: str, view: ServerView = CURRENT_VIEW
    ) -> ServerPage:
        """Return one list page of the API's largest size."""
        total = len(self._visible_versions(view))
        if self._scenario.total == "earlier" and self.interlude is not None:
            self.interlude()
        versions = self._visible_versions(view)
        size = self._scenario.per_page_max
        start = (page - 1) * size
        if start < len(versions):
            self._sort(versions, range(start, start + size), *self._order(sort, order))
        items = tuple(each.item for each in versions[start : start + size])
        return ServerPage(items, page, size, max(0, total + self._scenario.total_offset))

    def _order(self, sort: str | None, order: str) -> tuple[bool, bool]:
        """Return two flags: sorted by `updated_at` (else by `created_at`), and descending."""
        if not self.declaration.sortable:
            return False, False
        sorting = self._scenario.sorting
        if sorting == "ignored" or (sorting == "updated_ignored" and sort == "updated_at"):
            return False, True
        return sort == "updated_at", order == "desc"

    def _sort(
        self, versions: list[TwinVersion], window: range, is_by_update: bool, is_descending: bool
    ) -> None:
        """Sort versions in place as the store does, with random ties only within the window."""
        by = _BY_UPDATE if is_by_update else _BY_CREATION
        if self._scenario.ties == "stable":
            if is_descending:
                versions.reverse()
            versions.sort(key=by, reverse=is_descending)
            return
        factor = self._chance.randrange(2**30, 2**31 - 1)
        versions.sort(key=by, reverse=is_descending)
        for first, last in _find_ties(versions, by, window):
            tied = versions[first:last]
            tied.sort(key=lambda each: each.serial * factor % _PRIME)
            versions[first:last] = tied

    def read_detail(self, id: str, view: ServerView = CURRENT_VIEW) -> Resource | None:
        """Return a record's detail; None if the view does not show the record."""
        if view.at is None:
            version = self._live.get(id)
        else:
            version = _find_version_at(self._past.get(id, []), view.at)
        if version is None or (view.sees is not None and not view.sees(id)):
            return None
        return version.detail

    def all_details(self) -> Mapping[str, Mapping[str, Any]]:
        """Return the present detail of every record, by id."""
        return self._shown


def _find_version_at(
    past: list[tuple[datetime, TwinVersion | None]], at: datetime
) -> TwinVersion | None:
    """Return the version that was current at this time; None if there was none."""
    for since, version in reversed(past):
        if since <= at:
            return version
    return None


def _find_ties(
    versions: list[TwinVersion], by: Callable[[TwinVersion], str], window: range
) -> Iterator[tuple[int, int]]:
    """Yield start and end index of each group of sorted versions with equal value in the window."""
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
