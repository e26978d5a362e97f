"""Undo: what a batch did is taken back where nobody has touched it, and all else is told."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from connector.errors import UnknownName
from connector.ledger.journal_writer import JournalWriter
from connector.ledger.push_plan import RowResult
from connector.ledger.push_states import Task
from connector.pushes.batch_report import DeclaredRecord
from connector.pushes.undo import undo
from connector.pushes.undo_report import UndoReport
from connector.sandbox.faults import Drop, Status
from connector.sandbox.server import Sandbox
from tests.pushes.pushing import (
    CANDIDATES,
    Pusher,
    convert,
    create,
    creates,
    emails,
    file_of,
    lead,
    outcomes,
    update,
    writes,
)
from tests.support.clock import Time, tombstones, work_rows
from tests.support.command import call, variables

ONE = f"{CANDIDATES}/*"


class Undoer(Pusher):
    """Pushes, and takes back."""

    def undo(self, batch: str, *, applies: bool = True, budget: int | None = None) -> UndoReport:
        """Undo a batch, with the time of the test."""
        return asyncio.run(
            undo(
                self.settings,
                batch,
                applies=applies,
                budget=budget,
                now=self.time.ours,
                connect=self._connect,
            )
        )

    def create_one(self, **fields: Any) -> str:
        """A candidate that somebody else has made; its id."""
        body = {**create(900).fields, "email": "old@example.com", **fields}
        id: str = self.sandbox.store.create("candidates", body).record["id"]
        return id

    def record(self, id: str) -> dict[str, Any]:
        """A candidate as it is."""
        return dict(self.sandbox.store.get("candidates", id).record)

    def edit(self, id: str, **fields: Any) -> None:
        """Somebody else changes a candidate, a minute later."""
        self.time.pass_minutes(1)
        self.sandbox.store.update("candidates", id, fields)


@pytest.fixture
def undoer(tmp_path: Path) -> Iterator[Undoer]:
    """One account, in which there is nothing yet."""
    time = Time()
    with Sandbox(clock=time.servers) as sandbox:
        yield Undoer(sandbox, tmp_path, time)


def found(report: UndoReport) -> dict[int, str]:
    """The outcome of each row, by its number."""
    return {row.number: row.outcome for row in report.rows}


def test_what_nobody_touched_is_as_before(undoer: Undoer, tmp_path: Path) -> None:
    id = undoer.create_one(notes="mine", phone=None)
    before = undoer.record(id)
    rows = (*creates(2), create(4, status="screening"))
    invalid = RowResult(6, "invalid", (), "bad")
    changed = update(5, id, before, notes="theirs", phone="+44 1", last_name=before["last_name"])
    pushed = undoer.push(file_of((*rows, changed), invalid))
    assert {"created": 3, "updated": 1, "invalid": 1} == dict(pushed.counts)

    undoer.time.pass_minutes(3)
    report = undoer.undo(pushed.batch)

    expected = {2: "deleted", 3: "deleted", 4: "deleted", 5: "restored", 6: "nothing"}
    assert expected == found(report)
    assert (0, "done", 8) == (report.exit_status, report.outcome, report.requests)
    assert ["old@example.com"] == emails(undoer.sandbox)
    after = undoer.record(id)
    assert {**before, "updated_at": after["updated_at"]} == after
    assert 3 == tombstones(tmp_path)
    (landed,) = work_rows(tmp_path, f"FROM landing.candidates WHERE id = '{id}'")
    assert ("mine", None) == (landed["notes"], landed["phone"])
    (undone,) = work_rows(tmp_path, "SELECT count(undone_at) AS n FROM push.rows")
    assert 4 == undone["n"]

    again = undoer.undo(pushed.batch)
    assert (0, 0) == (again.requests, again.exit_status)
    assert {"undone": 4, "nothing": 1} == dict(again.counts)


def test_a_preview_only_reads(undoer: Undoer) -> None:
    id = undoer.create_one()
    rows = (*creates(2), update(9, id, undoer.record(id), notes="new"))
    pushed = undoer.push(rows)
    sent = len(writes(undoer.sandbox))

    report = undoer.undo(pushed.batch, applies=False)

    assert {2: "delete", 3: "delete", 9: "restore"} == found(report)
    assert (3, 0, "previewed") == (report.requests, report.exit_status, report.outcome)
    assert {"notes": ("new", None)} == dict(report.rows[2].changes)
    assert sent == len(writes(undoer.sandbox))

    assert {2: "deleted", 3: "deleted", 9: "restored"} == found(undoer.undo(pushed.batch))
    assert {2: "created", 3: "created", 9: "updated"} == outcomes(undoer.push(rows))


def test_what_others_changed_stays(undoer: Undoer) -> None:
    """A field that somebody has changed since keeps the other value, which is told, while the rest
    goes back; a created record that somebody changed, even in another field, is not deleted; a
    record that is gone is told for an update and is nothing to do for a create.
    """
    one, gone = undoer.create_one(), undoer.create_one(email="gone@example.com")
    rows = (
        *creates(4),
        update(7, one, undoer.record(one), notes="ours", city="Leeds"),
        update(8, gone, undoer.record(gone), notes="ours"),
    )
    pushed = undoer.push(rows)
    ids = {row.number: str(row.record_id) for row in pushed.rows}
    undoer.edit(ids[2], phone="+44 999")
    undoer.edit(ids[3], rating=4)
    undoer.edit(one, notes="theirs")
    for id in (ids[4], gone):
        undoer.sandbox.store.remove("candidates", id)

    report = undoer.undo(pushed.batch)

    expected = {2: "conflict", 3: "conflict", 4: "undone", 5: "deleted", 7: "partly", 8: "conflict"}
    assert expected == found(report)
    assert (3, "partial") == (report.exit_status, report.outcome)
    problems = {
        row.number: [(each.code, each.field, each.found) for each in row.problems]
        for row in report.rows
    }
    assert [("changed_since", "phone", "+44 999")] == problems[2]
    assert [("changed_since", "updated_at")] == [each[:2] for each in problems[3]]
    assert [("changed_since", "notes", "theirs")] == problems[7]
    assert "record_gone" == problems[8][0][0]
    assert ("theirs", None) == (undoer.record(one)["notes"], undoer.record(one)["city"])
    assert "+44 999" == undoer.record(ids[2])["phone"]

    sent = len(writes(undoer.sandbox))
    again = undoer.undo(pushed.batch)
    assert sent == len(writes(undoer.sandbox))
    assert {2: "conflict", 3: "conflict", 8: "conflict"} == {
        number: outcome for number, outcome in found(again).items() if outcome != "undone"
    }


def test_what_cannot_be_undone_is_said(undoer: Undoer) -> None:
    converted = undoer.push([convert(2, lead(undoer.sandbox, "won"))])
    undoer.sandbox.faults.add(Drop("none"), method="POST", path=CANDIDATES)
    held = undoer.push(creates(1))
    assert {"held": 1} == dict(held.counts)

    for batch, outcome in ((converted.batch, "irreversible"), (held.batch, "held")):
        report = undoer.undo(batch)
        assert ({2: outcome}, 3, 0) == (found(report), report.exit_status, report.requests)
        assert report.rows[0].problems
    # A record that a person named is not known to be the row's own.
    undoer.resolve(held.batch, 2, DeclaredRecord(undoer.create_one(), is_sure=True))
    report = undoer.undo(held.batch)
    assert ({2: "conflict"}, 0) == (found(report), report.requests)
    assert "declared" == report.rows[0].problems[0].code


def test_rows_about_one_record_go_back_in_reverse(undoer: Undoer) -> None:
    id = undoer.create_one(notes="first")
    rows = [
        update(2, id, undoer.record(id), notes="second"),
        Task(3, "update", "candidates", {"notes": "third"}, record_id=id),
    ]
    both = undoer.push(rows)
    assert {"updated": 2} == dict(both.counts)
    assert {2: "restore", 3: "restore"} == found(undoer.undo(both.batch, applies=False))
    assert {2: "restored", 3: "restored"} == found(undoer.undo(both.batch))
    assert "first" == undoer.record(id)["notes"]


def test_what_the_api_does_not_take_is_told(undoer: Undoer) -> None:
    two = undoer.create_one()
    one = {**undoer.record(two), "id": str(UUID(int=7)), "email": "one@example.com"}
    ids = [undoer.sandbox.store.insert("candidates", {**one, "status": "on_hold"}), two]
    rows = [
        update(2, ids[0], undoer.record(ids[0]), status="screening"),
        update(3, ids[1], undoer.record(ids[1]), notes="x"),
    ]
    pushed = undoer.push(rows)
    assert {"updated": 2} == dict(pushed.counts)
    undoer.sandbox.faults.add(Status(422), method="PUT", path=ONE)

    report = undoer.undo(pushed.batch)

    assert {2: "conflict", 3: "refused"} == found(report)
    assert "not_accepted" == report.rows[0].problems[0].code
    assert "screening" == undoer.record(ids[0])["status"]
    assert {2: "conflict", 3: "restored"} == found(undoer.undo(pushed.batch))


def test_silence_is_looked_into(undoer: Undoer) -> None:
    id = undoer.create_one(notes="first")
    undoer.sandbox.faults.add(Drop("applied"), method="POST", path=CANDIDATES)
    pushed = undoer.push([*creates(2), update(9, id, undoer.record(id), notes="x")])
    for method, fault in (
        ("DELETE", Drop("none")),
        ("DELETE", Drop("applied")),
        ("PUT", Drop("applied")),
    ):
        undoer.sandbox.faults.add(fault, method=method, path=ONE)

    report = undoer.undo(pushed.batch)

    assert 0 == report.exit_status, report
    assert ["old@example.com"] == emails(undoer.sandbox)
    assert "first" == undoer.record(id)["notes"]


def test_an_undo_that_was_stopped_goes_on(undoer: Undoer) -> None:
    id = undoer.create_one(notes="first")
    pushed = undoer.push([*creates(3), update(9, id, undoer.record(id), notes="x")])
    since = len(writes(undoer.sandbox))

    statuses = []
    for budget in (1, 3):
        report = undoer.undo(pushed.batch, budget=budget)
        assert 4 == len(report.rows)
        assert report.requests <= budget
        statuses.append((report.exit_status, report.outcome))
    done = undoer.undo(pushed.batch)

    assert [(4, "stopped")] * 2 == statuses
    assert 0 == done.exit_status
    sent = writes(undoer.sandbox)[since:]
    assert (4, 4) == (len(sent), len({*sent}))
    assert "first" == undoer.record(id)["notes"]


def test_killed_before_it_was_noted(
    undoer: Undoer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    id = undoer.create_one(notes="first")
    pushed = undoer.push([*creates(2), update(9, id, undoer.record(id), notes="x")])

    def killed(*given: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(JournalWriter, "mark_undone", killed)
        with pytest.raises(KeyboardInterrupt):
            undoer.undo(pushed.batch)
    sent = len(writes(undoer.sandbox))
    again = undoer.undo(pushed.batch)

    assert {"undone": 3} == dict(again.counts)
    assert sent == len(writes(undoer.sandbox))
    assert 2 == tombstones(tmp_path)
    with undoer.journal() as journal:
        assert all(row.undone_at is not None for row in journal.rows(pushed.batch))


def test_content_goes_back_key_by_key(tmp_path: Path) -> None:
    """Of a content item's values those go back that the row changed and nobody since; an item whose
    create was answered without `updated_at` is deleted all the same.
    """
    time = Time()
    counts = {"content_types": 1, "content_items": 1}
    with Sandbox(clock=time.servers, counts=counts) as sandbox:
        undoer = Undoer(sandbox, tmp_path, time)
        ((type_id, _),) = sandbox.store.records("content_types").items()
        ((id, base),) = sandbox.store.records("content_items").items()
        kept, back = "text_value", "textarea_value"
        new = {kept: "ours", back: "ours"}
        task = Task(
            2,
            "update",
            "content_items",
            {"fields": new},
            parent=type_id,
            record_id=id,
            base={"fields": base["fields"]},
        )
        fields = {"title": "New", "fields": {kept: "new"}}
        made = Task(3, "create", "content_items", fields, parent=type_id)
        pushed = undoer.push(file_of([task]))
        assert {"updated": 1} == dict(pushed.counts)
        other = undoer.push(file_of([made]))
        time.pass_minutes(1)
        sandbox.store.update("content_items", id, {"fields": {kept: "theirs"}}, type=type_id)

        report = undoer.undo(pushed.batch)

        shown = sandbox.store.get("content_items", id).record["fields"]
        assert {**base["fields"], kept: "theirs"} == {**dict.fromkeys(base["fields"]), **shown}
        assert [f"fields.{kept}"] == [each.field for each in report.rows[0].problems]
        assert 3 == report.exit_status
        assert {"created": 1} == dict(other.counts)
        assert {3: "deleted"} == found(undoer.undo(other.batch))


def test_an_unknown_batch_is_a_mistake(undoer: Undoer) -> None:
    pushed = undoer.push(creates(1))
    asked = len(undoer.sandbox.log)

    with pytest.raises(UnknownName, match="nonsense") as raised:
        undoer.undo("nonsense")

    assert (2, True) == (raised.value.exit_status, pushed.batch in raised.value.action)
    assert asked == len(undoer.sandbox.log)


def test_the_command_tells_and_does(undoer: Undoer, tmp_path: Path) -> None:
    id = undoer.create_one()
    pushed = undoer.push([*creates(1), update(3, id, undoer.record(id), notes="x", city="Leeds")])
    undoer.edit(id, city="York")
    environ = variables(undoer.sandbox.base_url, tmp_path / "data", undoer.sandbox.key)

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
