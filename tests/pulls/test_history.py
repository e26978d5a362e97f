"""History end to end: what changed between pulls is kept, version by version, in the published
file.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

from connector.sandbox.server import Sandbox
from tests.support.agency import differences, published, pulled, rows
from tests.support.clock import Clock

COUNTS = {"candidates": 104, "jobs": 8, "content_types": 2, "content_items": 6}
RESOURCES = ("candidates", "jobs", "content_items")
STATUSES = ("screening", "submitted", "interviewing", "rejected", "placed")

Snapshot = Mapping[str, Mapping[str, Any]]


def expected_versions(snapshots: list[Snapshot], id: str) -> list[Mapping[str, Any]]:
    """Return the versions observed at the snapshots, without repetitions."""
    seen: list[Mapping[str, Any] | None] = [None]
    for snapshot in snapshots:
        if snapshot.get(id) != seen[-1]:
            seen.append(snapshot.get(id))
    return [each for each in seen if each is not None]


def test_each_observed_version_is_kept_with_its_dates(tmp_path: Path) -> None:
    time = Clock(datetime.now(UTC).replace(microsecond=0))
    moments: list[datetime] = []
    snapshots: dict[str, list[Snapshot]] = {name: [] for name in RESOURCES}
    with Sandbox(counts=COUNTS, clock=time) as sandbox:
        gone: list[dict[str, Any]] = []
        for turn in range(5):
            ids = sorted(sandbox.store.records("candidates"))
            if turn:
                for number, id in enumerate(ids[turn : 30 + turn]):
                    time.pass_time(seconds=20)
                    status = STATUSES[(number + turn) % len(STATUSES)]
                    sandbox.store.update("candidates", id, {"status": status})
                for back in gone:
                    sandbox.store.insert("candidates", {**back, "updated_at": time.now.isoformat()})
                item = sorted(sandbox.store.records("content_items"))[0]
                sandbox.store.touch("content_items", item, {"title": f"Title {turn}"})
                records = sandbox.store.records("candidates")
                gone = [records[id] for id in ids[-3 * turn : -1]][:2]
                for each in gone:
                    sandbox.store.delete("candidates", each["id"])
            time.pass_time(hours=1)
            assert "done" == pulled(sandbox, tmp_path).outcome
            assert [] == differences(sandbox, published(tmp_path))
            moments.append(time.now)
            for name, taken in snapshots.items():
                taken.append(sandbox.store.records(name))
    for name, taken in snapshots.items():
        found = rows(published(tmp_path), f"FROM history.{name} ORDER BY _version")
        wanted = {id: expected_versions(taken, id) for snapshot in taken for id in snapshot}
        assert sum(map(len, wanted.values())) == len(found)
        for id, states in wanted.items():
            chain = [row for row in found if row["id"] == id]
            assert states == [json.loads(row["_record"]) for row in chain]
            assert [row["updated_at"] for row in chain] == [row["_valid_from"] for row in chain]
            assert (id in taken[-1]) == (chain[-1]["_valid_to"] is None)
            for row, after in pairwise(chain):
                assert row["_valid_from"] <= row["_valid_to"] <= after["_valid_from"]
                assert {row["_hydrated_at"], after["_hydrated_at"]} <= set(moments)
    returns = "SELECT 1 FROM history.candidates WHERE _changed[1] = '_deleted_at'"
    assert 6 == len(rows(published(tmp_path), returns))


def test_a_quiet_pull_adds_no_version(tmp_path: Path) -> None:
    time = Clock(datetime.now(UTC).replace(microsecond=0))
    with Sandbox(counts=COUNTS, clock=time) as sandbox:
        for _ in range(2):
            pulled(sandbox, tmp_path)
            time.pass_time(hours=1)
            for name in RESOURCES:
                query = f"FROM history.{name} WHERE _hydrated_at IS NOT NULL AND _changed IS NULL"
                assert COUNTS[name] == len(rows(published(tmp_path), query))
                assert COUNTS[name] == len(rows(published(tmp_path), f"FROM history.{name}"))


def test_a_response_without_a_date_header_is_dated_by_its_arrival(tmp_path: Path) -> None:
    before = datetime.now(UTC)
    with Sandbox(counts={"candidates": 3}, behaviours={"date_header": "missing"}) as sandbox:
        pulled(sandbox, tmp_path, "candidates")

    for table in ("landing", "history"):
        read = rows(published(tmp_path), f"SELECT _hydrated_at FROM {table}.candidates")
        assert [True] * 3 == [before <= row["_hydrated_at"] <= datetime.now(UTC) for row in read]
