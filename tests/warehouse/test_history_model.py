"""History compared with models in plain Python.

Whatever is committed in whatever order, the versions are the observed ones. Whatever happens
between two observations, the intervals of the versions contain it.
"""

from __future__ import annotations

import random
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from connector.catalog.candidate import Candidate
from connector.warehouse.stream import Commit, DeletionProof, FoundDetail
from connector.warehouse.warehouse import Warehouse
from tests.seeds import seeds
from tests.support.agency import rows
from tests.tiers import first_fast
from tests.warehouse.versions import (
    CANDIDATES,
    find_violations,
    make_detail,
    make_item,
    timestamp_at,
)

HIDDEN = "offer_accepted"
"""A status that lists do not document."""
IDS = ("a", "b")
EXAMPLES = 20
CHECKED = settings(
    max_examples=EXAMPLES, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.fixture(scope="module")
def prepared_folder() -> Iterator[Path]:
    """Folder of an empty warehouse, which tests copy because preparing one is slow."""
    with tempfile.TemporaryDirectory() as folder:
        Warehouse(Path(folder)).prepare()
        yield Path(folder)


@contextmanager
def open_fresh_warehouse(prepared_folder: Path) -> Iterator[Warehouse]:
    """Open a new copy of the empty warehouse."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "copy"
        shutil.copytree(prepared_folder, copy)
        warehouse = Warehouse(copy)
        with warehouse.keep_open():
            yield warehouse


@dataclass
class ExpectedVersion:
    """A version with its known fields in `shown`; `row` has the stored ones if a list hides
    some.
    """

    shown: dict[str, Any]
    is_whole: bool
    changed: set[str] | None
    last_at: float
    ended_by: str | None = None
    row: dict[str, Any] | None = None


@dataclass
class HistoryModel:
    """Expected versions by id, by the rules in the docstring of `connector.warehouse.landing`."""

    versions: dict[str, list[ExpectedVersion]] = field(default_factory=dict)
    details: dict[str, str] = field(default_factory=dict)
    """Status that the last detail of each id showed."""

    def observe_list_item(self, id: str, at: float, shown: dict[str, Any]) -> None:
        """Update the versions for a list item read at second `at`."""
        if id not in self.versions:
            self.versions[id] = [ExpectedVersion(shown, False, None, at)]
            return
        last = self.versions[id][-1]
        if last.ended_by:
            return
        names = {n for n in shown if n in last.shown and shown[n] != last.shown[n]}
        if last.shown["status"] == HIDDEN:
            names.discard("status")
        if names and at >= last.last_at + 1:
            last.ended_by = "change"
            merged = {**last.shown, **{n: shown[n] for n in names}}
            known = merged if id in self.details else shown
            is_hidden = known["status"] != shown["status"]
            row = {**shown, "status": None} if is_hidden else shown
            if is_hidden:
                # A status that only an earlier list showed is forgotten.
                known = {**known, "status": self.details[id]}
            self.versions[id].append(ExpectedVersion(known, False, names, at, row=row))
        elif not names and not last.is_whole:
            last.last_at = max(at, last.last_at)

    def observe_detail(self, id: str, at: float, updated: float, shown: dict[str, Any]) -> None:
        """Update the versions for a detail read at second `at` and last changed at `updated`."""
        chain = self.versions.setdefault(id, [])
        whole = {**shown, "updated_at": updated}
        if not chain:
            chain.append(ExpectedVersion(whole, True, None, at))
        else:
            last = chain[-1]
            names = {n for n in whole if n in last.shown and whole[n] != last.shown[n]}
            if id in self.details:
                names |= whole.keys() - last.shown.keys()
            at = max(at, last.last_at)
            if last.ended_by:
                chain.append(ExpectedVersion(whole, True, {"_deleted_at", *names}, at))
            elif last.is_whole and not names:
                last.last_at = at
            elif last.is_whole or self._begins_version(last, whole, names):
                last.ended_by = "change"
                chain.append(ExpectedVersion(whole, True, names or {"updated_at"}, at))
            else:
                last.shown, last.is_whole, last.last_at, last.row = whole, True, at, None
                last.changed = None if last.changed is None else last.changed | names
        self.details[id] = shown["status"]

    @staticmethod
    def _begins_version(last: ExpectedVersion, whole: dict[str, Any], names: set[str]) -> bool:
        """Return True if a detail that differs in `names` cannot belong to the last version."""
        if "first_name" in names or whole["updated_at"] >= last.last_at + 1:
            return True
        from_list = last.changed is None or "status" in last.changed
        if "status" not in names or (last.shown["status"] == HIDDEN and not from_list):
            return False
        return bool(whole["status"] != HIDDEN)

    def observe_deletion(self, id: str, at: float) -> None:
        """End the last version by a deletion, found at second `at`."""
        last = self.versions[id][-1] if id in self.versions else None
        if last is not None and not last.ended_by:
            last.ended_by, last.last_at = "deletion", max(at, last.last_at)


STATUSES = st.sampled_from(["screening", "interviewing", HIDDEN])
LISTED = st.fixed_dictionaries({"status": STATUSES, "first_name": st.sampled_from("AB")})
DETAILED = st.tuples(LISTED, st.sampled_from("XY"), st.sampled_from([0, 1, 15, 60]))
BATCH = st.fixed_dictionaries(
    {},
    optional={
        "listed": st.dictionaries(st.sampled_from(IDS), LISTED, min_size=1),
        "read": st.dictionaries(st.sampled_from(IDS), DETAILED, min_size=1),
        "gone": st.sets(st.sampled_from(IDS), min_size=1),
    },
)
STEPS = st.lists(st.tuples(st.sampled_from([0, 0.5, 1, 20, 40, -30]), BATCH), max_size=10)


@pytest.mark.slow
@CHECKED
@given(STEPS)
def test_the_stored_versions_equal_those_of_the_model(prepared_folder: Path, steps: Any) -> None:
    model, at = HistoryModel(), 0.0
    with open_fresh_warehouse(prepared_folder) as warehouse:
        for wait, batch in steps:
            at += wait
            items, records = [], []
            for id, shown in batch.get("listed", {}).items():
                items.append(make_item(id, at, **shown))
                model.observe_list_item(id, at, shown)
            for id, (shown, city, age) in batch.get("read", {}).items():
                records.append(make_detail(id, at + 0.1, at - age, **shown, city=city))
                model.observe_detail(id, at + 0.1, at - age, {**shown, "city": city})
            gone = {
                id: DeletionProof(timestamp_at(at + 0.2)) for id in sorted(batch.get("gone", ()))
            }
            for id in gone:
                model.observe_deletion(id, at + 0.2)
            what = Commit(items=tuple(items), records=tuple(records), gone=gone)
            warehouse.commit(CANDIDATES, what, "run", timestamp_at(at))
        warehouse.release()
        assert [] == find_violations(warehouse)
        found = rows(warehouse.work, "FROM history.candidates ORDER BY id, _version")
    expected = [
        (
            id,
            (kept.row or kept.shown)["status"],
            (kept.row or kept.shown).get("city"),
            kept.is_whole,
            kept.changed,
            kept.ended_by,
        )
        for id in sorted(model.versions)
        for kept in model.versions[id]
    ]
    names = ("id", "status", "city")
    assert expected == [
        (
            *(row[name] for name in names),
            row["_hydrated_at"] is not None,
            None if row["_changed"] is None else set(row["_changed"]),
            row["_ended_by"],
        )
        for row in found
    ]


@dataclass
class TrueRecord:
    """A record on the server, and the seconds at which it was edited and deleted."""

    shown: dict[str, Any]
    updated: float
    edits: list[float] = field(default_factory=list)
    deletions: list[float] = field(default_factory=list)
    exists: bool = True


def change_record(record: TrueRecord, chance: random.Random, at: float) -> None:
    """Edit, delete or restore the record at random, and date it as the API does."""
    if chance.random() < (0.15 if record.exists else 0.6):
        record.exists = not record.exists
        (record.edits if record.exists else record.deletions).append(at)
    name = chance.choice(["status", "first_name", "city"])
    choices = {"status": ["screening", "placed", HIDDEN], "first_name": "AB", "city": "XY"}
    record.shown[name] = chance.choice([v for v in choices[name] if v != record.shown[name]])
    record.updated = at
    record.edits.append(at)


def commit_observation(
    warehouse: Warehouse, record: TrueRecord, chance: random.Random, at: float
) -> None:
    """Commit what a random request shows at second `at`: a list item, a detail, or both."""
    items: tuple[Candidate, ...] = ()
    records: tuple[FoundDetail, ...] = ()
    gone: dict[str, DeletionProof] = {}
    how = chance.choice(["list", "detail", "both"])
    if record.exists and how != "detail":
        listed = {name: record.shown[name] for name in ("status", "first_name")}
        items = (make_item("a", at, **listed),)
    if how != "list":
        if record.exists:
            records = (make_detail("a", at, record.updated, **record.shown),)
        else:
            gone = {"a": DeletionProof(timestamp_at(at))}
    what = Commit(items=items, records=records, gone=gone)
    warehouse.commit(CANDIDATES, what, "run", timestamp_at(at))


@pytest.mark.parametrize("seed", first_fast(seeds(8), 3))
def test_each_interval_contains_the_true_time_of_its_change(
    prepared_folder: Path, seed: int
) -> None:
    chance = random.Random(seed)
    record = TrueRecord({"status": "screening", "first_name": "A", "city": "X"}, -100, [-100])
    with open_fresh_warehouse(prepared_folder) as warehouse:
        for step in range(60):
            at = 10.0 * step
            if chance.random() < 0.5:
                change_record(record, chance, at)
            else:
                commit_observation(warehouse, record, chance, at)
        warehouse.release()
        assert [] == find_violations(warehouse)
        found = rows(warehouse.work, "FROM history.candidates ORDER BY _version")
    edits = [timestamp_at(each) for each in record.edits]
    deaths = [timestamp_at(each) for each in record.deletions]
    for before, row in pairwise(found):
        began = [e for e in edits if row["_began_after"] < e < row["_began_before"]]
        assert began, f"version {row['_version']} began without a change"
        if row["_hydrated_at"] and before["_ended_before"] == row["_began_before"]:
            assert row["updated_at"] == row["_valid_from"] == began[-1]
    for row in found:
        ends = deaths if row["_ended_by"] == "deletion" else edits
        if row["_ended_by"]:
            assert any(row["_ended_after"] < e < row["_ended_before"] for e in ends), row
    assert len(found) > 3
