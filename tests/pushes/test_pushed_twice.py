"""Pushing the same file again, sorted or with one cell changed, sends only what is new."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from connector.sandbox.faults import Drop
from connector.sandbox.server import Sandbox
from connector.state.row import Policy
from tests.pushes.pushing import (
    CANDIDATES,
    Pusher,
    create_lead,
    list_emails,
    list_rows,
    list_writes,
    make_conversion,
    make_create,
    make_creates,
    make_plan,
    map_codes,
    map_outcomes,
)

ROWS = 6


def test_rows_applied_before_are_not_sent_again(tmp_path: Path) -> None:
    with Sandbox() as sandbox:
        pusher = Pusher(sandbox, tmp_path)
        rows = make_creates(ROWS)
        first = pusher.push(rows)
        same = pusher.push(rows)
        moved = [replace(task, number=number) for number, task in enumerate(rows[::-1], 2)]
        ordered = pusher.push(make_plan(moved, name="sorted.csv"))
        changed = pusher.push(
            make_plan([*rows[:-1], replace(rows[-1], fields={**rows[-1].fields, "phone": "1"})])
        )
        made = list_emails(sandbox)

    assert [ROWS + 1, 0, 0, 1 + 1] == [each.requests for each in (first, same, ordered, changed)]
    assert {"unchanged"} == {*map_outcomes(same).values()} == {*map_outcomes(ordered).values()}
    assert {"already_pushed"} == {*map_codes(same).values()}
    by_row = {row.number: row.record_id for row in first.rows}
    assert by_row == {row.number: row.record_id for row in same.rows}
    assert (0, 0) == (same.exit_status, ordered.exit_status)
    assert {"unchanged": ROWS - 1, "created": 1} == dict(changed.counts)
    assert ROWS + 1 == len(made)


def test_applied_rows_are_sent_again_with_the_again_policy(tmp_path: Path) -> None:
    with Sandbox() as sandbox:
        pusher = Pusher(sandbox, tmp_path)
        pusher.push(make_creates(ROWS))
        first = pusher.push(make_creates(ROWS), Policy(resend=True), budget=3)
        second = pusher.push(make_creates(ROWS), Policy(resend=True))
        made = list_emails(sandbox)

    assert {"created": 2, "not_sent": ROWS - 2} == dict(first.counts)
    assert {"created": ROWS} == dict(second.counts)
    assert first.batch == second.batch
    assert sorted([*(task.fields["email"] for task in make_creates(ROWS))] * 2) == made


def test_equal_rows_of_a_file_create_one_record(tmp_path: Path) -> None:
    with Sandbox() as sandbox:
        twin = replace(make_create(2), number=3)
        report = Pusher(sandbox, tmp_path).push([make_create(2), twin])
        sent = list_writes(sandbox)

    assert {2: "created", 3: "duplicate"} == map_outcomes(report)
    assert 1 == len(sent)


def test_a_row_equal_to_one_in_doubt_is_held(tmp_path: Path) -> None:
    with Sandbox() as sandbox:
        pusher = Pusher(sandbox, tmp_path)
        sandbox.faults.add(Drop("later"), method="POST", path=CANDIDATES)
        first = pusher.push([make_create(2)])
        corrected = make_create(2, phone="corrected")
        second = pusher.push(make_plan([replace(make_create(2), number=8)], name="b.csv"))
        third = pusher.push(make_plan([corrected], name="c.csv"))
        sent = len(list_writes(sandbox))
        pusher.resolve(first.batch, 2, "drop")
        fourth = pusher.push(make_plan([corrected], name="c.csv"))
        made = list_emails(sandbox)

    assert {8: "held"} == map_outcomes(second)
    assert {8: "taken_over"} == map_codes(second)
    assert [p.code for p in list_rows(first)[0].problems] == [
        p.code for p in list_rows(second)[0].problems
    ]
    assert {2: "not_sent"} == map_outcomes(third)
    assert {2: "in_doubt_elsewhere"} == map_codes(third)
    assert first.batch in list_rows(third)[0].problems[0].message
    assert 1 == sent
    assert third.batch == fourth.batch
    assert ({2: "created"}, ["ann2@example.com"]) == (map_outcomes(fourth), made)


def test_a_converted_lead_is_not_converted_by_other_files(tmp_path: Path) -> None:
    with Sandbox() as sandbox:
        id = create_lead(sandbox, "ada")
        pusher = Pusher(sandbox, tmp_path)
        first = pusher.push([make_conversion(2, id)])
        other = pusher.push(make_plan([make_conversion(7, id)], name="b.csv"))
        forced = pusher.push(make_plan([make_conversion(9, id)], name="c.csv"), Policy(resend=True))
        sent = list_writes(sandbox)

    assert ["converted", "unchanged", "unchanged"] == [
        *map_outcomes(first).values(),
        *map_outcomes(other).values(),
        *map_outcomes(forced).values(),
    ]
    assert [f"POST /api/v1/leads/{id}/convert"] == sent
