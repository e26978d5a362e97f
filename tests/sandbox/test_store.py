"""The store without HTTP: direct writes, clock, random numbers and data file."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from connector.catalog import CATALOG
from connector.errors import SettingsError
from connector.sandbox.server import Sandbox
from connector.sandbox.store import Store
from tests.sandbox.world import ABSENT_ID, COUNTS, MORNING, Open
from tests.support.clock import Clock


@pytest.fixture
def clock() -> Clock:
    """The clock of the store."""
    return Clock(MORNING)


@pytest.fixture
def store(clock: Clock) -> Store:
    """A store with three jobs created a minute apart."""
    store = Store(clock=clock, random=random.Random(1))
    for number in range(3):
        store.insert("jobs", {"id": f"job-{number}", "title": f"Job {number}"})
        clock.pass_time(seconds=60)
    return store


def list_ids(store: Store, sort: str = "updated_at") -> list[str]:
    """Return the ids of the jobs, newest first."""
    return [each["id"] for each in store.list("jobs", {"sort": sort}).items]


def test_touch_many_changes_all_records_or_none(store: Store) -> None:
    store.touch_many("jobs", ("job-0", "job-1"), {"location": "Leeds"})

    records = store.records("jobs")
    assert 1 == len({records[id]["updated_at"] for id in ("job-0", "job-1")})
    assert ["job-1", "job-0", "job-2"] == list_ids(store)
    with pytest.raises(KeyError):
        store.touch_many("jobs", ("job-2", ABSENT_ID), {"location": "York"})
    assert records == store.records("jobs")


def test_a_silent_change_keeps_updated_at_and_order(store: Store) -> None:
    before = store.records("jobs")["job-0"]

    store.change_silently("jobs", "job-0", {"title": "Quietly"})

    assert {**before, "title": "Quietly"} == store.records("jobs")["job-0"]
    assert ["job-2", "job-1", "job-0"] == list_ids(store)


def test_records_survive_a_restart_with_new_ids(open_world: Open, tmp_path: Path) -> None:
    options = {"counts": COUNTS, "data": tmp_path / "agency", "seed": 3}
    first = open_world(**options)
    made = first.call("POST", "/jobs", json=first.minimal_body("jobs")).json()["data"]
    first.call("DELETE", f"/jobs/{first.list_ids('/jobs')[5]}")
    before = {name: first.store.records(name) for name in CATALOG}
    orders = [first.list_ids("/jobs", sort=sort) for sort in CATALOG["jobs"].sortable]
    first.sandbox.__exit__(None)

    again = open_world(**options)
    assert before == {name: again.store.records(name) for name in CATALOG}
    assert orders == [again.list_ids("/jobs", sort=sort) for sort in CATALOG["jobs"].sortable]
    second = again.call("POST", "/jobs", json=again.minimal_body("jobs")).json()["data"]
    assert second["id"] not in {*before["jobs"], made["id"]}


def test_a_data_file_is_complete_after_each_write(tmp_path: Path) -> None:
    """A copy of the file, as after a kill, has every write that was answered."""
    with Sandbox(counts={"jobs": 3}, data=tmp_path / "agency") as sandbox:
        sandbox.store.touch("jobs", next(iter(sandbox.store.records("jobs"))), {"title": "New"})
        for torn in (b"", b'["jobs", {"id": "torn'):
            (tmp_path / "copy").write_bytes((tmp_path / "agency").read_bytes() + torn)
            with Store(path=tmp_path / "copy") as copy:
                assert sandbox.store.records("jobs") == copy.records("jobs")
                copy.insert("jobs", {"id": "new"})
            with Store(path=tmp_path / "copy") as copy:
                assert {*sandbox.store.records("jobs"), "new"} == {*copy.records("jobs")}


@pytest.mark.parametrize("content", [b"no records at all" * 100, b'{"version": 0}\n', b"\xff\n"])
def test_files_of_another_format_are_rejected_unchanged(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "other"
    path.write_bytes(content)

    with pytest.raises(SettingsError, match=str(path)):
        Store(path=path)
    with pytest.raises(SettingsError, match="cannot be used"):
        Store(path=tmp_path / "no such folder" / "file")
    assert content == path.read_bytes()
