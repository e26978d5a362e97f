"""Several batches about one record, undone one after another."""

from __future__ import annotations

from pathlib import Path

import pytest

from connector.sandbox.server import Sandbox
from tests.pushes.pushing import list_rows, make_creates, make_update, map_outcomes
from tests.pushes.test_undo import Undoer
from tests.support.clock import Time
from tests.tiers import first_fast


@pytest.mark.parametrize("is_edited", first_fast([True, False]))
def test_batches_about_one_record_are_undone_one_after_another(
    tmp_path: Path, is_edited: bool
) -> None:
    time = Time()
    with Sandbox(clock=time.server_now) as sandbox:
        undoer = Undoer(sandbox, tmp_path, time)
        made = undoer.push(make_creates(1))
        id = list_rows(made)[0].record_id
        assert id is not None
        batches = [made.batch]
        for rows in ({"notes": "a"}, {"notes": "b", "city": "Leeds"}):
            time.pass_minutes(1)
            batches.append(
                undoer.push([make_update(2, id, undoer.read_candidate(id), **rows)]).batch
            )
            if is_edited and len(batches) == 2:
                undoer.edit_candidate(id, phone="+44 7")
        assert {2: "conflict"} == map_outcomes(undoer.undo(made.batch))
        time.pass_minutes(1)

        assert {2: "restored"} == map_outcomes(undoer.undo(batches[2]))
        assert {2: "restored"} == map_outcomes(undoer.undo(batches[1]))
        assert {2: "conflict" if is_edited else "deleted"} == map_outcomes(undoer.undo(batches[0]))
        assert is_edited == (id in sandbox.store.records("candidates"))
