"""The seeded agency is complete, plausible, difficult, old enough and reproducible."""

from __future__ import annotations

import json
import random
from collections import Counter
from datetime import datetime, timedelta
from typing import Any

import pytest

from connector.catalog import CATALOG, references
from connector.catalog.content import ContentTypeField
from connector.catalog.field import parse_datetime
from connector.errors import SettingsError, UnknownName
from connector.sandbox.checks import check_content
from connector.sandbox.seed import FIELD_TYPES, LEAD_STATUSES, USERS, seed_store
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


def test_seeded_records_are_between_one_hour_and_two_years_old(agency: dict[str, Records]) -> None:
    midnight = Clock(datetime.fromisoformat("2026-03-04T00:10:00+00:00"))
    late = make_store(clock=midnight, counts={"candidates": 700}).records("candidates")
    for now, records in [(midnight.now, late), *((CLOCK.now, each) for each in agency.values())]:
        for record in records.values():
            created, updated = (parse_datetime(record[n]) for n in ("created_at", "updated_at"))
            assert now - timedelta(days=732) <= created <= updated <= now - timedelta(hours=1)
    for name in ("created_at", "updated_at"):
        assert len({record[name][:7] for record in agency["candidates"].values()}) >= 24


@pytest.mark.parametrize("resource", ["jobs", "candidates", "bookings", "leads"])
def test_some_seeded_records_share_their_timestamps(
    agency: dict[str, Records], resource: str
) -> None:
    """An import gives both times to many records, a bulk edit only the time of the change."""
    stamps = Counter((r["created_at"], r["updated_at"]) for r in agency[resource].values())
    assert stamps.most_common(1)[0][1] > 100
    if resource == "candidates":
        edits = Counter(updated for created, updated in stamps if created != updated)
        assert edits.most_common(1)[0][1] > 100


@pytest.mark.parametrize("resource", ["jobs", "candidates", "companies", "bookings", "leads"])
def test_seeded_values_are_difficult(agency: dict[str, Records], resource: str) -> None:
    values = [v for record in agency[resource].values() for v in record.values()]
    texts = [value for value in values if isinstance(value, str)]

    has_names = resource in ("candidates", "leads")
    for each in TEXTS:
        assert any(each in text for text in texts) or (each == "王" and not has_names)
    assert max(map(len, texts)) > 5000
    assert None in values
    assert "" in values
    for field in CATALOG[resource].detail_fields:
        if field.kind == "bool":
            assert {True, False, None} == {r[field.name] for r in agency[resource].values()}


def test_content_types_have_every_kind_of_field_and_fitting_items(
    store: Store, agency: dict[str, Records]
) -> None:
    for id, type in agency["content_types"].items():
        assert list(FIELD_TYPES) == [each["field_type"] for each in type["fields"]]
        assert len(FIELD_TYPES) == len({each["field_key"] for each in type["fields"]})
        for each in type["fields"]:
            assert list(ContentTypeField.fields_declared) == list(each)
            assert isinstance(json.loads(each["config"] or "{}"), dict)
        items = store.records("content_items", type=id)
        assert items
        for item in items.values():
            values = check_content(type["fields"], item["fields"], "create", store.behaviours)
            assert item["fields"] == values


def test_seeded_company_counters_match_jobs_and_bookings(agency: dict[str, Records]) -> None:
    jobs = Counter(job["company_id"] for job in agency["jobs"].values())
    active = Counter(
        job["company_id"] for job in agency["jobs"].values() if job["status"] == "published"
    )
    placements = Counter(
        each["company_id"]
        for each in agency["bookings"].values()
        if each["booking_type"] in ("contract", "permanent")
        and each["status"] in ("confirmed", "in_progress", "completed")
    )
    for id, company in agency["companies"].items():
        assert (jobs[id], active[id], placements[id]) == (
            company["jobs_count"],
            company["active_jobs_count"],
            company["placements_count"],
        )
    assert max(placements.values()) > 1
