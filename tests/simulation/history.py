"""The history that a pull stores, compared with the true history of the simulated server.

`MemoryHistory` stores it in memory, which is fast, `WarehouseHistory` in a real warehouse. Both
must be equal, and every version must be as docs/PULL.md describes.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from typing import Any

from connector.warehouse.stream import Commit, FoundDetail, Stream
from connector.warehouse.versions import SECOND, HistoryEdits, RecordState, Version, VersionEnd
from connector.warehouse.warehouse import Warehouse
from tests.simulation.twin import SimulatedServer, TwinServer
from tests.support.agency import rows

FOREVER = datetime.max.replace(tzinfo=UTC)

Past = list[tuple[datetime, Mapping[str, Any] | None]]
"""States of a record on the server, each with its start; None while deleted."""


@dataclass(frozen=True)
class StoredVersion:
    """A stored version, the fields that it shows, and its end (None if it is current)."""

    version: Version
    shown: Mapping[str, Any]
    ending: VersionEnd | None = None


Chains = dict[str, list[StoredVersion]]
"""Versions of each record, by id and in order."""


@dataclass
class _LandedRow:
    """Current row of a record; `is_hydrated` if from a detail, `seen_at` when last observed."""

    raw: Mapping[str, Any]
    is_hydrated: bool
    seen_at: datetime


class MemoryHistory:
    """A stream's history in memory, with the current rows that the history rules need."""

    def __init__(self, server: SimulatedServer) -> None:
        self._declaration = server.declaration
        self._landed: dict[str, _LandedRow] = {}
        self.chains: Chains = {}

    def apply(self, commit: Commit) -> None:
        """Apply a commit in the order of the warehouse (connector/warehouse/landing.py)."""
        self._apply_items(commit)
        self._apply_details({each.record.id: each for each in commit.records})
        edits = HistoryEdits(self._declaration)
        for id, gone in commit.gone.items():
            if id in self.chains:
                edits.add_deletion(id, gone.served_at, self._state_of(id).last)
        self._apply_edits(edits)

    def _apply_items(self, commit: Commit) -> None:
        """Apply the list items of a commit."""
        edits = HistoryEdits(self._declaration)
        items = {each.id: each for each in commit.items}
        moments = {id: each.served_at for id, each in items.items() if each.served_at}
        for id, item in items.items():
            before = self._state_of(id) if id in self._landed else None
            if before is None or before.last.ended_at is None:
                edits.add_list_item(item, moments[id], before)
        for id in items.keys() - edits.stale:
            row = self._landed.setdefault(id, _LandedRow(items[id].raw, False, moments[id]))
            row.seen_at = moments[id]
            if id in edits.begun and not row.is_hydrated:
                row.raw = items[id].raw
        self._apply_edits(edits)

    def _apply_details(self, records: Mapping[str, FoundDetail]) -> None:
        """Apply the details of a commit, by id."""
        edits = HistoryEdits(self._declaration)
        for id, found in records.items():
            before = self._state_of(id) if id in self._landed else None
            if before is not None and _is_unchanged(before, found):
                self._extend_observation(id, found.served_at)
            else:
                edits.add_detail(found.record, found.served_at, before)
            self._landed[id] = _LandedRow(found.record.raw, True, found.served_at)
        self._apply_edits(edits)

    def _state_of(self, id: str) -> RecordState:
        """Return the record's last version and current row, as the history rules expect them."""
        stored, row = self.chains[id][-1], self._landed[id]
        last = replace(
            stored.version,
            ended_at=stored.ending.valid_to if stored.ending else None,
            list_item=None if stored.version.is_from_detail else stored.shown,
        )
        return RecordState(last, row.raw, row.is_hydrated, row.seen_at)

    def _extend_observation(self, id: str, at: datetime) -> None:
        """Extend the time up to which the last version of the record was observed."""
        stored = self.chains[id][-1]
        version = replace(stored.version, observed_to=max(at, stored.version.observed_to))
        self.chains[id][-1] = replace(stored, version=version)

    def _apply_edits(self, edits: HistoryEdits) -> None:
        """Apply the endings, moved starts, confirmations and new versions of the history rules."""
        for id, ending in edits.endings.items():
            self.chains[id][-1] = replace(self.chains[id][-1], ending=ending)
        for id, version in edits.moved.items():
            if version.number > 1:
                stored = self.chains[id][version.number - 2]
                assert stored.ending is not None
                ending = replace(stored.ending, valid_to=version.valid_from)
                self.chains[id][version.number - 2] = replace(stored, ending=ending)
        for id, at in edits.confirmed.items():
            self._extend_observation(id, at)
        for id, (version, record) in edits.completed.items():
            self.chains[id][-1] = StoredVersion(version, record.raw)
        for id, (version, record) in edits.begun.items():
            self.chains.setdefault(id, []).append(StoredVersion(version, record.raw))


def _is_unchanged(before: RecordState, found: FoundDetail) -> bool:
    """Return True if the detail equals the record's last version, which has not ended."""
    is_current = before.last.is_from_detail and before.last.ended_at is None
    return is_current and bool(before.landed == found.record.raw)


class WarehouseHistory:
    """A stream's history in its own warehouse."""

    def __init__(self, server: SimulatedServer, folder: Path) -> None:
        self._stream = Stream(server.declaration, server.parent)
        self._warehouse = Warehouse(folder)

    def apply(self, commit: Commit) -> None:
        """Commit to the warehouse, as a pull does. Each response keeps its own time."""
        self._warehouse.commit(self._stream, commit, "run", FOREVER)

    @property
    def chains(self) -> Chains:
        """The versions of each record in the warehouse, in order."""
        query = f"FROM history.{self._stream.resource.name} ORDER BY id, _version"
        self._warehouse.release()
        found: Chains = {}
        for row in rows(self._warehouse.work, query):
            found.setdefault(row["id"], []).append(_parse_version(row))
        return found


@contextmanager
def open_warehouse_history(server: SimulatedServer) -> Iterator[WarehouseHistory]:
    """Open a new warehouse in a temporary folder."""
    with TemporaryDirectory() as folder:
        shutil.copytree(_prepared_warehouse(), folder, dirs_exist_ok=True)
        landed = WarehouseHistory(server, Path(folder))
        with landed._warehouse.keep_open():
            yield landed


@cache
def _prepared_warehouse() -> Path:
    """Return the folder of an empty warehouse, made once to be copied, because that is slow."""
    folder = Path(mkdtemp())
    Warehouse(folder).prepare()
    return folder


def _parse_version(row: Mapping[str, Any]) -> StoredVersion:
    """Convert a row of a history table."""
    ending = None
    if row["_valid_to"] is not None:
        ending = VersionEnd(row["_valid_to"], row["_ended_before"], row["_ended_by"])
        assert row["_ended_after"] == row["_observed_to"]
    version = Version(
        number=row["_version"],
        valid_from=row["_valid_from"],
        began_after=row["_began_after"],
        observed_from=row["_observed_from"],
        observed_to=row["_observed_to"],
        changed=None if row["_changed"] is None else tuple(row["_changed"]),
        hydrated_at=row["_hydrated_at"],
    )
    assert row["_began_before"] == version.began_before
    return StoredVersion(version, json.loads(row["_record"]), ending)


def find_overlapping_versions(chains: Chains) -> set[str]:
    """Return ids with a version that ends before it begins, or begins before the last one ended."""
    found: set[str] = set()
    for id, chain in chains.items():
        ends = [each.ending.valid_to if each.ending else FOREVER for each in chain]
        if any(each.version.valid_from > end for each, end in zip(chain, ends, strict=True)) or any(
            after.version.valid_from < end for after, end in zip(chain[1:], ends, strict=False)
        ):
            found.add(id)
    return found


# -- what must hold -------------------------------------------------------------------------------


def find_false_versions(server: SimulatedServer, chains: Chains) -> dict[str, set[str]]:
    """Return ids with a version that the server's true history contradicts, by error."""
    assert isinstance(server, TwinServer), "the store has no memory: use the twin"
    found: dict[str, set[str]] = {}
    for id, chain in chains.items():
        past = server.past_details(id)
        for stored in chain:
            for wrong in _find_errors(stored, past):
                found.setdefault(wrong, set()).add(id)
    return found


def _find_errors(stored: StoredVersion, past: Past) -> Iterator[str]:
    """Yield what is wrong with a version, according to the record's true history."""
    version = stored.version
    assert version.began_after is not None
    spans = list(_find_spans(stored.shown, past))
    first = [each for each in spans if _overlaps_second(each, version.observed_from)]
    if not first:
        yield "not so at _observed_from"
    elif not any(version.began_after <= since <= version.began_before for since, _ in first):
        yield "began outside of its interval"
    if not version.began_after <= version.valid_from < version.began_before:
        yield "_valid_from outside of its interval"
    last = [each for each in spans if _overlaps_second(each, version.observed_to)]
    if not last:
        yield "not so at _observed_to"
    elif stored.ending is not None:
        yield from _find_end_errors(stored, stored.ending, [until for _, until in last], past)


def _find_end_errors(
    stored: StoredVersion, ending: VersionEnd, ends: list[datetime], past: Past
) -> Iterator[str]:
    """Yield what is wrong with a version's end. `ends` are the times when the shown state ended."""
    after = stored.version.observed_to
    if not after <= ending.valid_to < ending.before:
        yield "_valid_to outside of its interval"
    if not stored.version.is_from_detail:
        # The listed fields may be unchanged, because another field has changed.
        ends = [at for at, _ in past]
    if not any(after <= end <= ending.before for end in ends):
        yield f"ended by {ending.by} outside of its interval"


def _find_spans(shown: Mapping[str, Any], past: Past) -> Iterator[tuple[datetime, datetime]]:
    """Yield begin and end of each time span in which the record had all the `shown` values."""
    since: datetime | None = None
    for at, raw in [*past, (FOREVER, None)]:
        is_so = raw is not None and all(n in raw and raw[n] == v for n, v in shown.items())
        if is_so and since is None:
            since = at
        elif since is not None and not is_so:
            yield since, at
            since = None


def _overlaps_second(span: tuple[datetime, datetime], second: datetime) -> bool:
    """Return True if the span overlaps the second."""
    return span[0] < second + SECOND and span[1] > second
