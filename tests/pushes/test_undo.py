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
from connector.state.journal import Journal
from connector.state.row import Row
from tests.pushes.pushing import (
    CANDIDATES,
    Pusher,
    create_lead,
    list_emails,
    list_writes,
    make_conversion,
    make_create,
    make_creates,
    make_plan,
    make_update,
    map_outcomes,
)
from tests.support.clock import Time, count_deleted_candidates, work_rows
from tests.support.command import call, variables

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

    def edit_candidate(self, id: str, **fields: Any) -> None:
        """Update a candidate as another user, a simulated minute later."""
        self.time.pass_minutes(1)
        self.sandbox.store.update("candidates", id, fields)


@pytest.fixture
def pusher(tmp_path: Path) -> Iterator[Undoer]:
    """Account without records."""
    time = Time()
    with Sandbox(clock=time.server_now) as sandbox:
        yield Undoer(sandbox, tmp_path, time)


def test_an_undo_restores_records_that_nobody_changed_since(pusher: Undoer, tmp_path: Path) -> None:
    id = pusher.create_candidate(notes="mine", phone=None)
    before = pusher.read_candidate(id)
    rows = (*make_creates(2), make_create(4, status="screening"))
    invalid = Row(6, "candidates")
    invalid.end("refused", "invalid", "bad")
    changed = make_update(
        5, id, before, notes="theirs", phone="+44 1", last_name=before["last_name"]
    )
    pushed = pusher.push(make_plan((*rows, changed, invalid)))
    assert {"created": 3, "updated": 1, "invalid": 1} == dict(pushed.counts)

    pusher.time.pass_minutes(3)
    report = pusher.undo(pushed.batch)

    expected = {2: "deleted", 3: "deleted", 4: "deleted", 5: "restored", 6: "nothing"}
    assert expected == map_outcomes(report)
    assert (0, "done", 8) == (report.exit_status, report.outcome, report.requests)
    assert ["old@example.com"] == list_emails(pusher.sandbox)
    after = pusher.read_candidate(id)
    assert {**before, "updated_at": after["updated_at"]} == after
    assert 3 == count_deleted_candidates(tmp_path)
    (landed,) = work_rows(tmp_path, f"FROM landing.candidates WHERE id = '{id}'")
    assert ("mine", None) == (landed["notes"], landed["phone"])
    with pusher.journal() as journal:
        assert 4 == sum(row.undone_at is not None for row in journal.rows(pushed.batch))

    again = pusher.undo(pushed.batch)
    assert (0, 0) == (again.requests, again.exit_status)
    assert {"undone": 4, "nothing": 1} == dict(again.counts)


def test_an_undo_keeps_changes_by_other_users(pusher: Undoer) -> None:
    """A created record with a later edit is kept. A deleted record counts only for an update."""
    one, gone = pusher.create_candidate(), pusher.create_candidate(email="gone@example.com")
    rows = (
        *make_creates(4),
        make_update(7, one, pusher.read_candidate(one), notes="ours", city="Leeds"),
        make_update(8, gone, pusher.read_candidate(gone), notes="ours"),
    )
    pushed = pusher.push(rows)
    ids = {row.number: str(row.record_id) for row in pushed.rows}
    pusher.edit_candidate(ids[2], phone="+44 999")
    pusher.edit_candidate(ids[3], rating=4)
    pusher.edit_candidate(one, notes="theirs")
    for id in (ids[4], gone):
        pusher.sandbox.store.remove("candidates", id)

    report = pusher.undo(pushed.batch)

    expected = {2: "conflict", 3: "conflict", 4: "undone", 5: "deleted", 7: "partly", 8: "conflict"}
    assert expected == map_outcomes(report)
    assert (3, "partial") == (report.exit_status, report.outcome)
    problems = {
        row.number: [(each.code, each.field, each.found) for each in row.problems]
        for row in report.rows
    }
    assert [("changed_since", "phone", "+44 999")] == problems[2]
    assert [("changed_since", "updated_at")] == [each[:2] for each in problems[3]]
    assert [("changed_since", "notes", "theirs")] == problems[7]
    assert "record_gone" == problems[8][0][0]
    assert ("theirs", None) == (
        pusher.read_candidate(one)["notes"],
        pusher.read_candidate(one)["city"],
    )
    assert "+44 999" == pusher.read_candidate(ids[2])["phone"]

    sent = len(list_writes(pusher.sandbox))
    again = pusher.undo(pushed.batch)
    assert sent == len(list_writes(pusher.sandbox))
    assert {2: "conflict", 3: "conflict", 8: "conflict"} == {
        number: outcome for number, outcome in map_outcomes(again).items() if outcome != "undone"
    }


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


def test_a_stopped_undo_is_continued_by_the_next(pusher: Undoer) -> None:
    id = pusher.create_candidate(notes="first")
    pushed = pusher.push(
        [*make_creates(3), make_update(9, id, pusher.read_candidate(id), notes="x")]
    )
    since = len(list_writes(pusher.sandbox))

    statuses = []
    for budget in (1, 3):
        report = pusher.undo(pushed.batch, budget=budget)
        assert 4 == len(report.rows)
        assert report.requests <= budget
        statuses.append((report.exit_status, report.outcome))
    done = pusher.undo(pushed.batch)

    assert [(4, "stopped")] * 2 == statuses
    assert 0 == done.exit_status
    sent = list_writes(pusher.sandbox)[since:]
    assert (4, 4) == (len(sent), len({*sent}))
    assert "first" == pusher.read_candidate(id)["notes"]


def test_an_undo_killed_before_it_was_recorded_is_not_repeated(
    pusher: Undoer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    id = pusher.create_candidate(notes="first")
    pushed = pusher.push(
        [*make_creates(2), make_update(9, id, pusher.read_candidate(id), notes="x")]
    )

    def stop_process(*given: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Journal, "mark_undone", stop_process)
        with pytest.raises(KeyboardInterrupt):
            pusher.undo(pushed.batch)
    again = pusher.undo(pushed.batch)

    assert 1 <= again.counts["undone"]
    assert {"undone", "deleted"} >= {*again.counts}
    # Three writes of the push, and one of the undo for each row.
    assert 3 + 3 == len(list_writes(pusher.sandbox))
    assert 2 == count_deleted_candidates(tmp_path)
    with pusher.journal() as journal:
        assert all(row.undone_at is not None for row in journal.rows(pushed.batch))


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


def test_the_undo_command_previews_and_applies(pusher: Undoer, tmp_path: Path) -> None:
    id = pusher.create_candidate()
    pushed = pusher.push(
        [*make_creates(1), make_update(3, id, pusher.read_candidate(id), notes="x", city="Leeds")]
    )
    pusher.edit_candidate(id, city="York")
    environ = variables(pusher.sandbox.base_url, tmp_path / "data", pusher.sandbox.key)

    shown = call(["undo", pushed.batch], environ)
    assert 3 == shown.status
    assert ["to", "delete", "1"] == shown.row("to delete")
    assert "changed after the push" in shown.err
    assert "--apply" in shown.err

    done = call(["undo", pushed.batch, "--apply", "--json"], environ)
    assert (3, "partial", 4) == (done.status, done.object["outcome"], done.object["requests"])
    assert {"deleted": 1, "partly": 1} == done.object["counts"]
    assert {"notes": {"now": "x", "then": None}} == done.object["rows"][1]["changes"]
    assert "York" == done.object["rows"][1]["problems"][0]["found"]
    assert 2 == call(["undo", "nonsense"], environ).status
