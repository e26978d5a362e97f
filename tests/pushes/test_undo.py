"""An undo reverts the writes of a batch that nobody changed since, and reports the others."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from connector.pushes.run import DeclaredRecord
from connector.pushes.undo import UndoReport, undo
from connector.sandbox.faults import Drop, Status
from connector.sandbox.server import Sandbox
from connector.state.row import Row
from tests.pushes.pushing import (
    CANDIDATES,
    Pusher,
    create_lead,
    make_conversion,
    make_create,
    make_creates,
    make_plan,
    make_update,
    map_outcomes,
)
from tests.support.clock import Time

ONE = f"{CANDIDATES}/*"


class Undoer(Pusher):
    """Pusher that also undoes, and that acts as another user of the server."""

    def undo(self, batch: str, *, applies: bool = True, budget: int | None = None) -> UndoReport:
        """Undo a batch, or preview that if it is not applied."""
        return asyncio.run(
            undo(
                self.settings,
                batch,
                applies=applies,
                budget=budget,
                now=self.time.local_now,
                connect=self._connect,
            )
        )

    def create_candidate(self, **fields: Any) -> str:
        """Create a candidate as another user. Returns its id."""
        body = {**make_create(900).fields, "email": "old@example.com", **fields}
        id: str = self.sandbox.store.create("candidates", body).record["id"]
        return id

    def read_candidate(self, id: str) -> dict[str, Any]:
        """Return the candidate as it is on the server."""
        return dict(self.sandbox.store.get("candidates", id).record)


@pytest.fixture
def pusher(tmp_path: Path) -> Iterator[Undoer]:
    """Account without records."""
    time = Time()
    with Sandbox(clock=time.server_now) as sandbox:
        yield Undoer(sandbox, tmp_path, time)


def test_conversions_and_held_rows_are_reported_as_not_undone(pusher: Undoer) -> None:
    converted = pusher.push([make_conversion(2, create_lead(pusher.sandbox, "won"))])
    pusher.sandbox.faults.add(Drop("none"), method="POST", path=CANDIDATES)
    held = pusher.push(make_creates(1))
    assert {"held": 1} == dict(held.counts)

    for batch, outcome in ((converted.batch, "irreversible"), (held.batch, "held")):
        report = pusher.undo(batch)
        assert ({2: outcome}, 3, 0) == (map_outcomes(report), report.exit_status, report.requests)
        assert report.rows[0].problems
    # A record that the user named may not be the record of the row.
    pusher.resolve(
        held.batch, 2, DeclaredRecord(pusher.create_candidate(), ignores_differences=True)
    )
    report = pusher.undo(held.batch)
    assert ({2: "conflict"}, 0) == (map_outcomes(report), report.requests)
    assert "declared" == report.rows[0].problems[0].code


def test_rows_for_the_same_record_are_undone_in_reverse_order(pusher: Undoer) -> None:
    id = pusher.create_candidate(notes="first")
    rows = [
        make_update(2, id, pusher.read_candidate(id), notes="second"),
        Row(3, "candidates", "update", None, {"notes": "third"}, record_id=id),
    ]
    both = pusher.push(rows)
    assert {"updated": 2} == dict(both.counts)
    assert {2: "restore", 3: "restore"} == map_outcomes(pusher.undo(both.batch, applies=False))
    assert {2: "restored", 3: "restored"} == map_outcomes(pusher.undo(both.batch))
    assert "first" == pusher.read_candidate(id)["notes"]


def test_values_that_the_api_rejects_are_reported_by_the_undo(pusher: Undoer) -> None:
    two = pusher.create_candidate()
    one = {**pusher.read_candidate(two), "id": str(UUID(int=7)), "email": "one@example.com"}
    ids = [pusher.sandbox.store.insert("candidates", {**one, "status": "on_hold"}), two]
    rows = [
        make_update(2, ids[0], pusher.read_candidate(ids[0]), status="screening"),
        make_update(3, ids[1], pusher.read_candidate(ids[1]), notes="x"),
    ]
    pushed = pusher.push(rows)
    assert {"updated": 2} == dict(pushed.counts)
    pusher.sandbox.faults.add(Status(422), method="PUT", path=ONE)

    report = pusher.undo(pushed.batch)

    assert {2: "conflict", 3: "refused"} == map_outcomes(report)
    assert "not_accepted" == report.rows[0].problems[0].code
    assert "screening" == pusher.read_candidate(ids[0])["status"]
    assert {2: "conflict", 3: "restored"} == map_outcomes(pusher.undo(pushed.batch))


def test_content_values_are_restored_unless_others_changed_one_of_them(tmp_path: Path) -> None:
    """Values of other keys are kept. A create answered without `updated_at` is deleted."""
    time = Time()
    counts = {"content_types": 1, "content_items": 1}
    ours, other = "text_value", "textarea_value"
    with Sandbox(clock=time.server_now, counts=counts) as sandbox:
        pusher = Undoer(sandbox, tmp_path, time)
        ((type_id, _),) = sandbox.store.records("content_types").items()
        ((id, base),) = sandbox.store.records("content_items").items()
        row = Row(2, "content_items", "update", type_id, {"fields": {ours: "ours"}}, record_id=id)
        row.base = {"fields": base["fields"]}
        made = Row(3, "content_items", "create", type_id, {"title": "New", "fields": {ours: "a"}})
        created = pusher.push(make_plan([made]))
        results = []
        for changed in (other, ours):
            pushed = pusher.push(make_plan([replace(row, attempts=[])]))
            assert {"updated": 1} == dict(pushed.counts)
            time.pass_minutes(1)
            sandbox.store.update("content_items", id, {"fields": {changed: "new"}}, type=type_id)
            results.append(map_outcomes(pusher.undo(pushed.batch))[2])
            shown = sandbox.store.get("content_items", id).record["fields"]
            expected = {
                **base["fields"],
                other: "new",
                **({ours: "new"} if changed == ours else {}),
            }
            assert expected == {**dict.fromkeys(base["fields"]), **shown}

        assert ["restored", "conflict"] == results
        assert {3: "deleted"} == map_outcomes(pusher.undo(created.batch))
