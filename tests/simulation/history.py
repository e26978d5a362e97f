"""The history that a pull stores, compared with the true history of the simulated server.

`MemoryHistory` stores it in memory, which is fast, and `WarehouseCopy` in a real work file, whose
answers to the queries of the pull must be those of the mirror. Both histories must be equal.
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

from connector.warehouse.landing import SECOND, StoredRow, Version, next_version, read_bookmark
from connector.warehouse.schema import as_json
from connector.warehouse.stream import Bookmark, Commit, Stream
from connector.warehouse.warehouse import Warehouse
from tests.simulation.server import SimulatedServer
from tests.support.agency import rows

FOREVER = datetime.max.replace(tzinfo=UTC)

Past = list[tuple[datetime, Mapping[str, Any] | None]]
"""States of a record on the server, each with its start; None while deleted."""


@dataclass(frozen=True)
class StoredVersion:
    """A stored version, its values, when they were first read, and its end (None: current)."""

    version: Version
    raw: Mapping[str, Any]
    read_at: datetime
    ended_at: datetime | None = None


Chains = dict[str, list[StoredVersion]]
"""Versions of each record, by id and in order."""


class MemoryHistory:
    """A stream's history in memory, with the current rows that the history rules need."""

    def __init__(self) -> None:
        self._rows: dict[str, StoredRow] = {}
        self.chains: Chains = {}

    def apply(self, commit: Commit) -> None:
        """Apply a commit in the order of the warehouse."""
        for item in commit.items:
            self._rows.setdefault(item.id, StoredRow(0, as_json(item.raw), None, None, None))
        for found in {each.record.id: each for each in commit.records}.values():
            id, text = str(found.record.id), as_json(found.record.raw)
            row = self._rows.get(id)
            is_same = row is not None and row.equals(text)
            self._rows[id] = StoredRow(0, text, found.record.updated_at, found.served_at, None)
            if is_same:
                continue
            chain = self.chains.setdefault(id, [])
            last, end = (chain[-1].version, chain[-1].ended_at) if chain else (None, None)
            version = next_version(found, row, last, end)
            self._end(id, version.valid_from)
            chain.append(StoredVersion(version, found.record.raw, found.served_at))
        for id, gone in commit.gone.items():
            if id in self._rows and self._rows[id].deleted_at is None:
                self._rows[id] = replace(self._rows[id], deleted_at=gone.served_at)
                self._end(id, gone.served_at)
        for id in commit.forget:
            self._rows.pop(id, None)

    def _end(self, id: str, at: datetime) -> None:
        """End the open version of a record."""
        chain = self.chains.get(id)
        if chain and chain[-1].ended_at is None:
            chain[-1] = replace(chain[-1], ended_at=max(at, chain[-1].version.valid_from))


class WarehouseCopy:
    """A stream in its own work file."""

    def __init__(self, server: SimulatedServer, folder: Path) -> None:
        self._stream = Stream(server.declaration, server.parent)
        self.warehouse = Warehouse(folder)

    def apply(self, commit: Commit) -> None:
        """Commit to the warehouse, as a pull does."""
        self.warehouse.commit(self._stream, commit, "run", datetime(2026, 1, 1, tzinfo=UTC))

    def ask(self, query: str, *values: Any) -> Any:
        """Answer a query of a pull."""
        return self.warehouse.query(self._stream, lambda stream: getattr(stream, query)(*values))

    @property
    def bookmark(self) -> Bookmark:
        """The stored bookmark."""
        return self.warehouse.read(read_bookmark, self._stream)

    @property
    def chains(self) -> Chains:
        """The versions of each record in the warehouse, in order."""
        query = f"FROM history.{self._stream.resource.name} ORDER BY id, _version"
        self.warehouse.close()
        found: Chains = {}
        for row in rows(self.warehouse.work, query):
            changed = None if row["_changed"] is None else tuple(row["_changed"])
            version = Version(row["_version"], row["_valid_from"], row["_began_after"], changed)
            raw, read_at = json.loads(row["_record"]), row["_hydrated_at"]
            stored = StoredVersion(version, raw, read_at, row["_valid_to"])
            found.setdefault(row["id"], []).append(stored)
        return found


@contextmanager
def open_warehouse_copy(server: SimulatedServer) -> Iterator[WarehouseCopy]:
    """Open a new warehouse in a temporary folder."""
    with TemporaryDirectory() as folder:
        shutil.copytree(_prepared_warehouse(), folder, dirs_exist_ok=True)
        landed = WarehouseCopy(server, Path(folder))
        with landed.warehouse.keep_open():
            yield landed


@cache
def _prepared_warehouse() -> Path:
    """Return the folder of an empty warehouse, made once to be copied, because that is slow."""
    folder = Path(mkdtemp())
    Warehouse(folder).prepare()
    return folder


def find_overlapping_versions(chains: Chains) -> set[str]:
    """Return ids with a version that ends before it begins, or begins before the last one ended."""
    found: set[str] = set()
    for id, chain in chains.items():
        ends = [each.ended_at or FOREVER for each in chain]
        if any(each.version.valid_from > end for each, end in zip(chain, ends, strict=True)) or any(
            after.version.valid_from < end for after, end in zip(chain[1:], ends, strict=False)
        ):
            found.add(id)
    return found


# -- what must hold -------------------------------------------------------------------------------


def find_false_versions(server: SimulatedServer, chains: Chains) -> dict[str, set[str]]:
    """Return ids with a version that the server's true history contradicts, by error."""
    found: dict[str, set[str]] = {}
    for id, chain in chains.items():
        past = server.past_details(id)
        for number, stored in enumerate(chain):
            following = chain[number + 1] if number + 1 < len(chain) else None
            for wrong in _find_errors(stored, following, past):
                found.setdefault(wrong, set()).add(id)
    return found


def _find_errors(
    stored: StoredVersion, following: StoredVersion | None, past: Past
) -> Iterator[str]:
    """Yield what is wrong with a version, according to the record's true history."""
    version, read_at = stored.version, stored.read_at
    assert version.began_after is not None
    spans = [each for each in _find_spans(stored.raw, past) if _overlaps_second(each, read_at)]
    if not spans:
        yield "not so when it was read"
    elif not any(version.began_after <= since <= read_at + SECOND for since, _ in spans):
        yield "began outside of its interval"
    if not version.began_after <= version.valid_from < read_at + SECOND:
        yield "_valid_from outside of its interval"
    if stored.ended_at is not None and stored.ended_at < version.valid_from:
        yield "ended before it began"
    if following is not None and "_deleted_at" not in (following.version.changed or ()):
        after, before = following.version.began_after, following.read_at + SECOND
        assert after is not None
        if not any(after <= at <= before for at, _ in past):
            yield "ended outside of its interval"
        if stored.ended_at != following.version.valid_from:
            yield "ended at another time than the next one began"


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
