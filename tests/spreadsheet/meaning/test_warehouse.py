"""Checks query the loaded records of a small agency, which is pulled once for all tests."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from connector.catalog import CATALOG
from connector.errors import UnknownName, WarehouseError
from connector.sandbox.server import Sandbox
from connector.spreadsheet.check import check_rows
from connector.spreadsheet.mapping import map_headings
from connector.spreadsheet.targets import comparison_text, natural_key, push_target
from connector.spreadsheet.template import template_columns
from connector.warehouse.lookups import WarehouseLookups
from connector.warehouse.warehouse import Warehouse
from tests.spreadsheet.meaning.sheet import get_changes, list_problems, make_table
from tests.support.agency import SMALL, pulled

COUNTS = {**SMALL, "candidates": 30}
Store = dict[str, dict[str, dict[str, Any]]]


@dataclass(frozen=True)
class PulledAgency:
    """A small agency that was pulled, and its running server.

    `store` has the server's records by resource and id at the time of the pull.
    """

    folder: Path
    store: Store
    deleted_candidate: str
    sandbox: Sandbox


@pytest.fixture(scope="module")
def pulled_once(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PulledAgency]:
    """A small agency, pulled once for all tests of this module."""
    folder = tmp_path_factory.mktemp("pulled")
    with Sandbox(counts=COUNTS) as sandbox:
        gone = sorted(sandbox.store.records("candidates"))[0]
        pulled(sandbox, folder)
        sandbox.store.delete("candidates", gone)
        pulled(sandbox, folder, "candidates")
        store = {name: dict(sandbox.store.records(name)) for name in CATALOG}
        yield PulledAgency(folder / "data", store, gone, sandbox)


@pytest.fixture
def lookups(pulled_once: PulledAgency) -> Iterator[WarehouseLookups]:
    """Open lookups of the pulled records."""
    with WarehouseLookups(Warehouse(pulled_once.folder), comparison_text) as opened:
        yield opened


@pytest.fixture(scope="module")
def store(pulled_once: PulledAgency) -> Store:
    """The pulled agency's records by resource and id, as on the server."""
    return pulled_once.store


def get_first_record(store: Store, resource: str) -> dict[str, Any]:
    """Return any record of the resource."""
    return next(iter(store[resource].values()))


def test_every_record_is_found_by_its_natural_key(lookups: WarehouseLookups, store: Store) -> None:
    for resource in [name for name, each in CATALOG.items() if each.natural_keys]:
        keyed = {id: natural_key(resource, record) for id, record in store[resource].items()}
        assert any(keyed.values())
        for fields in {tuple(key) for key in keyed.values() if key}:
            ids = [id for id, key in keyed.items() if tuple(key) == fields]
            found = lookups.find_ids(resource, fields, [tuple(keyed[id].values()) for id in ids])
            assert [] == [id for id, each in zip(ids, found, strict=True) if id not in each]


def test_texts_match_regardless_of_case_and_outer_spaces(
    lookups: WarehouseLookups, store: Store
) -> None:
    company = get_first_record(store, "companies")
    name = company["name"]
    values = [(f"  {name.upper()} ",), (name[:-1],), ("",), ("'; DROP TABLE landing.companies",)]

    assert [(company["id"],), (), (), ()] == list(lookups.find_ids("companies", ("name",), values))


def test_lookups_return_the_loaded_records(lookups: WarehouseLookups, store: Store) -> None:
    ids = list(store["jobs"])
    found = lookups.landed_records("jobs", [*ids, "nothing"])

    assert set(ids) == found.keys()
    assert all(each.is_whole and not each.is_deleted for each in found.values())
    shown = {each.name for each in CATALOG["jobs"].detail_fields}
    for id in ids:
        assert found[id].record.keys() <= shown
        assert store["jobs"][id]["title"] == found[id].record["title"]


def test_deleted_records_are_reported_and_not_found_by_fields(
    lookups: WarehouseLookups, pulled_once: PulledAgency
) -> None:
    gone = pulled_once.deleted_candidate
    wanted = push_target("candidates", "update", lookups)
    rows = make_table({"id": gone, "city": "York"}, {"id": "nothing", "city": "York"})
    found = list(check_rows(rows.rows(), map_headings(rows.headings, wanted), wanted, lookups))

    assert [()] == list(lookups.find_ids("candidates", ("id",), [(gone,)]))
    assert lookups.landed_records("candidates", [gone])[gone].is_deleted
    assert [(2, "id", "record_deleted"), (3, "id", "record_unknown")] == list_problems(found)


def test_content_types_are_found_by_slug_and_id(lookups: WarehouseLookups, store: Store) -> None:
    declared = get_first_record(store, "content_types")
    keys = [each["field_key"] for each in declared["fields"]]
    for name in (declared["slug"], declared["id"]):
        fields = lookups.content_fields(name)
        assert fields is not None
        assert keys == [each.field_key for each in fields]
    assert lookups.content_fields("none") is None

    item = get_first_record(store, "content_items")
    slugs = [each["slug"] for each in store["content_types"].values()]
    values = [(item["title"],)]
    found = [lookups.find_ids("content_items", ("title",), values, slug)[0] for slug in slugs]
    assert 1 == sum(item["id"] in ids for ids in found)


def test_lookups_of_missing_records_and_types_find_nothing(
    lookups: WarehouseLookups, tmp_path: Path
) -> None:
    fresh = Warehouse(tmp_path / "fresh")
    fresh.prepare()
    with WarehouseLookups(fresh, comparison_text) as empty:
        assert not empty.has_records("jobs")
        assert [()] == list(empty.find_ids("jobs", ("title",), [("x",)]))
        assert {} == empty.landed_records("jobs", ["x"])
    assert lookups.has_records("jobs")
    with pytest.raises(UnknownName):
        lookups.find_ids("jobs", ("colour",), [("x",)])
    (tmp_path / "work.duckdb").write_text("no database", encoding="utf-8")
    with (
        pytest.raises(WarehouseError),
        WarehouseLookups(Warehouse(tmp_path), comparison_text) as broken,
    ):
        broken.has_records("jobs")


def test_pushing_an_export_of_the_loaded_records_changes_nothing(
    lookups: WarehouseLookups, store: Store
) -> None:
    for resource in ("jobs", "candidates", "companies", "bookings", "leads"):
        wanted = push_target(resource, "update", lookups)
        keys = [each.key for each in wanted.columns if each.name == each.key]
        taken = [key for key in keys if not CATALOG[resource].fields[key].write_only]
        rows = [
            {key: format_cell(record.get(key)) for key in taken}
            for record in store[resource].values()
        ]
        made = make_table(*rows)
        outcomes = [
            each
            for each in check_rows(
                made.rows(), map_headings(made.headings, wanted), wanted, lookups
            )
            if each.outcome != "unchanged"
        ]
        assert {"value_not_accepted"} >= {p.code for each in outcomes for p in each.problems}
        assert [] == [get_changes(each) for each in outcomes if each.task]


def format_cell(value: Any) -> Any:
    """Format a JSON value as the cell of an exported spreadsheet."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value)


def test_the_headings_of_each_template_are_fields(lookups: WarehouseLookups, store: Store) -> None:
    for resource in [name for name, each in CATALOG.items() if "create" in each.operations]:
        types = get_first_record(store, "content_types")
        parent = types["slug"] if resource == "content_items" else None
        wanted = push_target(resource, "create", lookups, parent=parent)
        columns = template_columns(wanted)
        mapped = map_headings([each.heading for each in columns], wanted)

        assert {"name"} == {each.match_kind for each in mapped.columns}
        assert (len(columns), ()) == (len(mapped.columns), mapped.missing)
        assert {each.key for each in wanted.columns} == mapped.targets.keys()
        assert all(each.rule.endswith(".") for each in columns)
