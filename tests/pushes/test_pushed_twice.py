"""The same file twice, in another order, with one cell changed;
and what the journal answers without a request.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from connector.ledger.push_plan import PushPolicy
from connector.sandbox.faults import Drop
from connector.sandbox.server import Sandbox
from tests.pushes.pushing import (
    CANDIDATES,
    Pusher,
    codes,
    convert,
    create,
    creates,
    emails,
    file_of,
    lead,
    listed,
    outcomes,
    writes,
)

ROWS = 6


def test_the_same_rows_again_send_nothing(tmp_path: Path) -> None:
    with Sandbox() as sandbox:
        pusher = Pusher(sandbox, tmp_path)
        rows = creates(ROWS)
        first = pusher.push(rows)
        same = pusher.push(rows)
        moved = [replace(task, number=number) for number, task in enumerate(rows[::-1], 2)]
        ordered = pusher.push(file_of(moved, name="sorted.csv"))
        changed = pusher.push(
            file_of([*rows[:-1], replace(rows[-1], fields={**rows[-1].fields, "phone": "1"})])
        )
        made = emails(sandbox)

    assert [ROWS + 1, 0, 0, 1 + 1] == [each.requests for each in (first, same, ordered, changed)]
    assert {"unchanged"} == {*outcomes(same).values()} == {*outcomes(ordered).values()}
    assert {"already_pushed"} == {*codes(same).values()}
    by_row = {row.number: row.record_id for row in first.rows}
    assert by_row == {row.number: row.record_id for row in same.rows}
    assert (0, 0) == (same.exit_status, ordered.exit_status)
    assert {"unchanged": ROWS - 1, "created": 1} == dict(changed.counts)
    assert ROWS + 1 == len(made)


def test_again_by_choice(tmp_path: Path) -> None:
    with Sandbox() as sandbox:
        pusher = Pusher(sandbox, tmp_path)
        pusher.push(creates(ROWS))
        first = pusher.push(creates(ROWS), PushPolicy(again=True), budget=3)
        second = pusher.push(creates(ROWS), PushPolicy(again=True))
        made = emails(sandbox)

    assert {"created": 2, "not_sent": ROWS - 2} == dict(first.counts)
    assert {"created": ROWS} == dict(second.counts)
    assert first.batch == second.batch
    assert sorted([*(task.fields["email"] for task in creates(ROWS))] * 2) == made


def test_equal_rows_of_one_file_are_one(tmp_path: Path) -> None:
    with Sandbox() as sandbox:
        twin = replace(create(2), number=3)
        report = Pusher(sandbox, tmp_path).push([create(2), twin])
        sent = writes(sandbox)

    assert {2: "created", 3: "duplicate"} == outcomes(report)
    assert 1 == len(sent)


def test_nothing_is_sent_beside_what_is_in_doubt(tmp_path: Path) -> None:
    with Sandbox() as sandbox:
        pusher = Pusher(sandbox, tmp_path)
        sandbox.faults.add(Drop("later"), method="POST", path=CANDIDATES)
        first = pusher.push([create(2)])
        corrected = create(2, phone="corrected")
        second = pusher.push(file_of([replace(create(2), number=8)], name="b.csv"))
        third = pusher.push(file_of([corrected], name="c.csv"))
        sent = len(writes(sandbox))
        pusher.resolve(first.batch, 2, "drop")
        fourth = pusher.push(file_of([corrected], name="c.csv"))
        made = emails(sandbox)

    assert {8: "held"} == outcomes(second)
    assert {8: "taken_over"} == codes(second)
    assert [p.code for p in listed(first)[0].problems] == [
        p.code for p in listed(second)[0].problems
    ]
    assert {2: "not_sent"} == outcomes(third)
    assert {2: "in_doubt_elsewhere"} == codes(third)
    assert first.batch in listed(third)[0].problems[0].message
    assert 1 == sent
    assert third.batch == fourth.batch
    assert ({2: "created"}, ["ann2@example.com"]) == (outcomes(fourth), made)


def test_a_lead_is_converted_once(tmp_path: Path) -> None:
    with Sandbox() as sandbox:
        id = lead(sandbox, "ada")
        pusher = Pusher(sandbox, tmp_path)
        first = pusher.push([convert(2, id)])
        other = pusher.push(file_of([convert(7, id)], name="b.csv"))
        forced = pusher.push(file_of([convert(9, id)], name="c.csv"), PushPolicy(again=True))
        sent = writes(sandbox)

    assert ["converted", "unchanged", "unchanged"] == [
        *outcomes(first).values(),
        *outcomes(other).values(),
        *outcomes(forced).values(),
    ]
    assert [f"POST /api/v1/leads/{id}/convert"] == sent
