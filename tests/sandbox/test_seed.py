"""The seeded agency is complete, plausible, difficult, old enough and reproducible."""

from __future__ import annotations

import json
import random
from collections import Counter
from datetime import datetime
from typing import Any

import pytest

from connector.catalog import CATALOG, references
from connector.errors import SettingsError, UnknownName
from connector.sandbox.seed import LEAD_STATUSES, USERS, seed_store
from connector.sandbox.store import Store
from tests.sandbox.world import MORNING
from tests.support.clock import Clock

# A page that is new has a hundred, so that what is asserted of every resource holds for it.
COUNTS = dict.fromkeys(CATALOG, 100) | {
    "jobs": 700,
    "candidates": 2500,
    "companies": 150,
    "bookings": 900,
    "leads": 700,
    "content_types": 4,
    "content_items": 120,
}
CLOCK = Clock(MORNING)
TEXTS = ("é", "'", '"', "\n", "🙂", ",", "\t", "\\", "王", "=")

Records = dict[str, dict[str, Any]]


def make_store(seed: int = 7, clock: Clock = CLOCK, counts: dict[str, int] = COUNTS) -> Store:
    """Return a store seeded with these counts."""
    store = Store(clock=clock, random=random.Random(seed))
    seed_store(store, counts, seed=seed)
    return store


@pytest.fixture(scope="module")
def store() -> Store:
    """A store that tests only read."""
    return make_store()


@pytest.fixture(scope="module")
def agency(store: Store) -> dict[str, Records]:
    """Every record by resource and id."""
    return {name: store.records(name) for name in CATALOG}


def test_a_seeded_store_has_the_requested_counts(agency: dict[str, Records]) -> None:
    assert COUNTS == {name: len(agency[name]) for name in COUNTS}
    with pytest.raises(UnknownName, match="Did you mean 'jobs'"):
        seed_store(Store(), {"job": 1}, seed=1)
    with pytest.raises(SettingsError, match="-1"):
        seed_store(Store(), {"jobs": -1}, seed=1)
    with pytest.raises(SettingsError, match="content type"):
        seed_store(Store(), {"content_items": 1}, seed=1)


def test_the_same_seed_makes_the_same_agency_until_one_o_clock() -> None:
    few = {name: number // 10 for name, number in COUNTS.items()} | {"content_types": 2}

    def make_agency(seed: int, at: str) -> dict[str, Records]:
        store = make_store(seed, Clock(datetime.fromisoformat(at)), few)
        return {name: store.records(name) for name in CATALOG}

    first = make_agency(7, "2026-03-03T02:50:00+00:00")
    assert first == make_agency(7, "2026-03-04T00:59:00+00:00")
    assert first != make_agency(7, "2026-03-04T01:00:00+00:00")
    assert not set(first["jobs"]) & set(make_agency(8, "2026-03-03T02:50:00+00:00")["jobs"])


@pytest.mark.parametrize("resource", CATALOG)
def test_seeded_records_match_the_declared_fields(
    agency: dict[str, Records], resource: str
) -> None:
    fields = CATALOG[resource].detail_fields
    for record in agency[resource].values():
        assert [f.name for f in fields] == list(record)
        for declared in fields:
            _, problem = declared.parse(record[declared.name])
            assert None is problem, (declared.name, record[declared.name])
            if declared.create.required or not declared.nullable:
                assert record[declared.name] not in (None, "")
    for declared in fields:
        values = Counter(json.dumps(each[declared.name]) for each in agency[resource].values())
        del values["null"]
        assert values, declared.name
        if declared.values:
            assert {json.dumps(each) for each in declared.values} == set(values)
            assert max(values.values()) < 0.8 * sum(values.values())


@pytest.mark.parametrize("resource", CATALOG)
def test_related_records_exist(agency: dict[str, Records], resource: str) -> None:
    for name, target in references(CATALOG[resource]).items():
        given = {record[name] for record in agency[resource].values()} - {None}
        assert given <= set(agency[target])
        assert len(given) > 1
    users = {r.get("assigned_to") for r in agency[resource].values()} - {None}
    assert users <= set(USERS)
    if resource == "leads":
        assert set(LEAD_STATUSES) == {r["lead_status_id"] for r in agency["leads"].values()}
