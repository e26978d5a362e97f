"""Records with undeclared values."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from connector.sandbox.server import Sandbox
from tests.faults.network_faults import DETAILS, EditedResponse, add_fault
from tests.support.agency import differences, published, rows
from tests.support.clock import Time, pulled
from tests.tiers import first_fast

COUNT = 110


def change_records(sandbox: Sandbox) -> None:
    """Change seven records, create two and delete one."""
    ids = sorted(sandbox.store.records("candidates"))
    for id in ids[:7]:
        sandbox.store.update("candidates", id, {"city": "Bern"})
    sandbox.store.delete("candidates", ids[7])
    for number in range(2):
        person = {"first_name": "Zoë", "last_name": "O'Neill", "employment_type": "permanent"}
        email = f"zoe.{number}@people.example"
        sandbox.store.create("candidates", {**person, "email": email})


Oddity = Callable[[dict[str, Any]], None]
ODD: Mapping[str, tuple[Oddity, str]] = {
    "an unknown choice": (lambda r: r.update(status="teleported"), "unknown_value"),
    "a new field": (lambda r: r.update(shoe_size={"eu": 42}), "unknown_field"),
    "another type": (lambda r: r.update(expected_salary="a lot"), "unreadable_value"),
    "a missing field": (lambda r: r.pop("city", None), ""),
    "no updated_at": (lambda r: r.update(updated_at=None), ""),
    "an updated_at of 2099": (lambda r: r.update(updated_at="2099-01-01T00:00:00Z"), ""),
}
"""Change of a record's detail, and the kind of event that reports it (or none)."""


@pytest.mark.parametrize("oddity", first_fast([*ODD]))
def test_odd_records_are_loaded_as_received_and_recorded_as_events(
    tmp_path: Path, oddity: str
) -> None:
    time = Time()
    edit, kind = ODD[oddity]
    with Sandbox(counts={"candidates": 40}, clock=time.server_now) as sandbox:
        ids = sorted(sandbox.store.records("candidates"))
        odd = ids[3]

        def make_record_odd(document: dict[str, Any]) -> None:
            if document["data"]["id"] == odd:
                edit(document["data"])

        add_fault(sandbox, EditedResponse(make_record_odd), DETAILS)
        report = pulled(sandbox, tmp_path, "candidates", time=time)
        assert report.resources["candidates"].live == 40, report.as_json()
        shown = {"data": dict(sandbox.store.records("candidates")[odd])}
        edit(shown["data"])
        query = f"SELECT _record::VARCHAR AS record FROM landing.candidates WHERE id = '{odd}'"
        (landed,) = rows(published(tmp_path), query)
        assert shown["data"] == json.loads(landed["record"])
        if kind:
            events = rows(published(tmp_path), f"FROM sync.events WHERE kind = '{kind}'")
            assert 1 == len(events)

        for number in range(2):
            time.pass_minutes(10)
            sandbox.store.update("candidates", ids[10], {"city": f"City {number}"})
            pull_and_compare_others(sandbox, tmp_path, time, odd)
        time.pass_minutes(10)
        quiet = pulled(sandbox, tmp_path, "candidates", time=time).resources["candidates"]
        assert quiet.requests <= 2 + 2
        assert (0, 40) == (quiet.deleted, quiet.live)


def pull_and_compare_others(sandbox: Sandbox, folder: Path, time: Time, odd: str) -> None:
    """Pull, and check that no record except `odd` differs from the server."""
    report = pulled(sandbox, folder, "candidates", time=time)
    assert report.outcome in ("done", "partial"), report.as_json()
    found = differences(sandbox, published(folder))
    assert [] == [each for each in found if odd not in each]
