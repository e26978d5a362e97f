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
from connector.sandbox.checks import check_content
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
    few = make_store(counts={"jobs": 3})
    assert [3, 0] == [few.count(name) for name in ("jobs", "candidates")]


def test_the_same_seed_makes_the_same_agency() -> None:
    later = Clock(CLOCK.now + timedelta(hours=3))
    few = {name: number // 10 for name, number in COUNTS.items()} | {"content_types": 2}
    first, again, other = (
        {name: store.records(name) for name in CATALOG}
        for store in (
            make_store(counts=few),
            make_store(clock=later, counts=few),
            make_store(seed=8, counts=few),
        )
    )

    assert first == again
    assert not set(first["jobs"]) & set(other["jobs"])


@pytest.mark.parametrize("resource", CATALOG)
def test_seeded_records_match_the_declared_fields(
    agency: dict[str, Records], resource: str
) -> None:
    declaration = CATALOG[resource]
    for record in agency[resource].values():
        assert [f.name for f in declaration.detail_fields] == list(record)
        for declared in declaration.detail_fields:
            _, problem = declared.parse(record[declared.name])
            assert None is problem, (declared.name, record[declared.name])
            if declared.create.required or not declared.nullable:
                assert record[declared.name] not in (None, "")


@pytest.mark.parametrize("resource", CATALOG)
def test_related_records_exist(agency: dict[str, Records], resource: str) -> None:
    related = references(CATALOG[resource])
    for name, target in related.items():
        given = {record[name] for record in agency[resource].values()} - {None}
        assert given <= set(agency[target])
        assert len(given) > 1
    users = {r.get("assigned_to") for r in agency[resource].values()} - {None}
    assert users <= set(USERS)
    if resource == "leads":
        assert set(LEAD_STATUSES) == {r["lead_status_id"] for r in agency["leads"].values()}


def test_bookings_agree_with_their_job(agency: dict[str, Records]) -> None:
    for booking in agency["bookings"].values():
        if booking["booking_type"] not in ("interview", "contract", "permanent"):
            continue
        job = agency["jobs"][booking["job_id"]]
        assert job["company_id"] in (None, booking["company_id"])
        assert booking["candidate_id"]
        if booking["booking_type"] != "permanent":
            assert booking["start_datetime"] < booking["end_datetime"]


@pytest.mark.parametrize("resource", CATALOG)
def test_seeded_records_are_between_one_hour_and_two_years_old(
    agency: dict[str, Records], resource: str
) -> None:
    for record in agency[resource].values():
        created, updated = (parse_datetime(record[n]) for n in ("created_at", "updated_at"))
        assert CLOCK.now - timedelta(days=732) <= created <= updated
        assert updated <= CLOCK.now - timedelta(hours=1)


def test_seeded_records_are_an_hour_old_even_just_after_midnight() -> None:
    clock = Clock(datetime.fromisoformat("2026-03-04T00:10:00+00:00"))
    for record in (
        make_store(clock=clock, counts={"candidates": 700}).records("candidates").values()
    ):
        assert parse_datetime(record["updated_at"]) <= clock.now - timedelta(hours=1)


def test_the_seeded_agency_changes_daily_at_one_o_clock() -> None:
    before = Clock(datetime.fromisoformat("2026-03-03T23:50:00+00:00"))
    after = Clock(datetime.fromisoformat("2026-03-04T00:10:00+00:00"))
    next_day = Clock(datetime.fromisoformat("2026-03-04T01:00:00+00:00"))
    first, second, third = (
        make_store(clock=clock, counts={"jobs": 5}).records("jobs")
        for clock in (before, after, next_day)
    )

    assert first == second
    assert first != third


def test_timestamps_are_spread_over_two_years(agency: dict[str, Records]) -> None:
    for name in ("created_at", "updated_at"):
        months = {record[name][:7] for record in agency["candidates"].values()}
        assert len(months) >= 24


@pytest.mark.parametrize("resource", ["jobs", "candidates", "bookings", "leads"])
def test_some_seeded_records_share_their_timestamps(
    agency: dict[str, Records], resource: str
) -> None:
    stamps = Counter((r["created_at"], r["updated_at"]) for r in agency[resource].values())

    assert stamps.most_common(1)[0][1] > 100


def test_some_seeded_records_share_a_change_but_not_their_creation(
    agency: dict[str, Records],
) -> None:
    changed: dict[str, set[str]] = {}
    for record in agency["candidates"].values():
        changed.setdefault(record["updated_at"], set()).add(record["created_at"])

    assert max(len(created) for created in changed.values()) > 100


@pytest.mark.parametrize(
    ("resource", "name"),
    [(n, f.name) for n, each in CATALOG.items() for f in each.detail_fields if f.values],
)
def test_every_documented_value_occurs_in_seeded_records(
    agency: dict[str, Records], resource: str, name: str
) -> None:
    values = Counter(record[name] for record in agency[resource].values())
    del values[None]

    assert set(CATALOG[resource].fields[name].values) == set(values)
    assert max(values.values()) < 0.8 * sum(values.values())


@pytest.mark.parametrize("resource", ["jobs", "candidates", "companies", "bookings", "leads"])
def test_seeded_texts_contain_difficult_characters(
    agency: dict[str, Records], resource: str
) -> None:
    texts = "".join(json.dumps(r, ensure_ascii=False) for r in agency[resource].values())
    plain = "".join(str(v) for r in agency[resource].values() for v in r.values())
    expected = [each for each in TEXTS if each != "王" or resource in ("candidates", "leads")]

    assert expected == [each for each in expected if each in plain]
    longest = max(len(str(v)) for r in agency[resource].values() for v in r.values())
    assert longest > 5000
    assert texts.encode()


@pytest.mark.parametrize("resource", ["jobs", "candidates", "companies", "bookings", "leads"])
def test_seeded_values_include_null_empty_and_false(
    agency: dict[str, Records], resource: str
) -> None:
    values = [v for record in agency[resource].values() for v in record.values()]

    assert None in values
    assert "" in values
    booleans = {f.name for f in CATALOG[resource].detail_fields if f.kind == "bool"}
    for name in booleans:
        assert {True, False, None} == {record[name] for record in agency[resource].values()}


def test_every_field_has_a_value_in_some_seeded_record(
    agency: dict[str, Records], store: Store
) -> None:
    for name, declaration in CATALOG.items():
        for declared in declaration.detail_fields:
            assert any(r[declared.name] is not None for r in agency[name].values()), declared.name
    hidden = [store.write_only_fields("jobs", id) for id in agency["jobs"]]
    for declared in CATALOG["jobs"].fields.values():
        if declared.write_only:
            assert any(each[declared.name] is not None for each in hidden), declared.name


def test_content_types_have_every_kind_of_field(agency: dict[str, Records]) -> None:
    kinds = set(ContentTypeField.fields_declared["field_type"].values)
    for type in agency["content_types"].values():
        assert kinds == {each["field_type"] for each in type["fields"]}
        keys = [each["field_key"] for each in type["fields"]]
        assert len(set(keys)) == len(keys)
        for each in type["fields"]:
            assert list(ContentTypeField.fields_declared) == list(each)
            assert isinstance(json.loads(each["config"] or "{}"), dict)


def test_content_values_fit_their_fields(store: Store, agency: dict[str, Records]) -> None:
    for id, type in agency["content_types"].items():
        items = store.records("content_items", type=id)
        assert items
        for item in items.values():
            values = check_content(type["fields"], item["fields"], "create", store.behaviours)
            assert item["fields"] == values


def test_some_seeded_candidates_share_an_email(agency: dict[str, Records]) -> None:
    emails = Counter(record["email"] for record in agency["candidates"].values())

    assert 1 < max(emails.values())
    assert len(emails) > 0.95 * len(agency["candidates"])


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
