"""`kill -9` of an undo at every commit and every socket call."""

from __future__ import annotations

import random
import shutil
from pathlib import Path
from typing import Any

import pytest

from connector.sandbox.faults import Drop
from connector.sandbox.server import Sandbox
from tests.pushes.killable_push import (
    KillPoint,
    PushForkServer,
    PushOrder,
    make_push_order,
    parse_kill_points,
)
from tests.pushes.pushing import (
    CANDIDATES,
    Pusher,
    list_writes,
    make_create,
    make_creates,
    make_update,
)
from tests.pushes.test_killed import WallTime
from tests.pushes.test_undo import Undoer
from tests.seeds import SEED
from tests.support.kill_points import IS_ALL

CREATED, CHANGED = 3, 2
MODES = ("commits", "drops", "commits late")
"""What the server does with the write that was under way."""


class KilledUndoStage:
    """Sandbox and data folder of a push that created and changed records, for undos that are
    killed.
    """

    def __init__(self, folder: Path) -> None:
        self.time = WallTime()
        self.sandbox = Sandbox(clock=self.time.server_now)
        self._base, self._folder = folder / "base", folder / "killed"
        self.former: dict[str, Any] = {}

    def __enter__(self) -> KilledUndoStage:
        self.sandbox.__enter__()
        Pusher(self.sandbox, self._base, self.time)
        return self

    def __exit__(self, *ended: Any) -> None:
        self.sandbox.__exit__(*ended)

    def restore_and_push(self) -> tuple[Undoer, str]:
        """Reset sandbox and folder, and push again. Returns the pusher and the batch."""
        store = self.sandbox.store
        self.sandbox.faults.clear()
        self.sandbox.apply_delayed_effects()
        for id in store.records("candidates"):
            store.remove("candidates", id)
        shutil.rmtree(self._folder, ignore_errors=True)
        shutil.copytree(self._base, self._folder)
        bodies = [dict(make_create(900 + n, notes="former").fields) for n in range(CHANGED)]
        made = [store.create("candidates", body).record for body in bodies]
        self.former = {each["id"]: dict(each) for each in made}
        rows = [make_update(50 + n, each["id"], each, notes="new") for n, each in enumerate(made)]
        undoer = Undoer(self.sandbox, self._folder, self.time, connections=1)
        report = undoer.push([*make_creates(CREATED), *rows])
        assert {"created": CREATED, "updated": CHANGED} == dict(report.counts)
        return undoer, report.batch

    def make_order(self, batch: str, kill_at: int | None = None) -> PushOrder:
        """Return the order to undo the batch in a process killed at the point of that number."""
        place = self._folder
        return make_push_order(
            self.sandbox, place, 0, connections=1, kill_at=kill_at, undo_batch=batch
        )


def choose_points(points: list[KillPoint], mode: str) -> list[KillPoint]:
    """Return all kill points, or one drawn with the seed."""
    if IS_ALL:
        return points
    chance = random.Random(f"{SEED} undo {mode}")
    kind = chance.choice(sorted({each.kind for each in points}))
    return [chance.choice([each for each in points if each.kind == kind])]


@pytest.mark.slow
def test_an_undo_killed_at_any_point_is_finished_by_the_next(
    tmp_path: Path, fork_server: PushForkServer
) -> None:
    with KilledUndoStage(tmp_path) as stage:
        _, batch = stage.restore_and_push()
        points = parse_kill_points(fork_server.run(stage.make_order(batch)))
        # Rows are undone from the last to the first: the PUTs before the DELETEs.
        assert CREATED + CHANGED == points[-1].writes
        for mode in MODES:
            for point in choose_points(points, mode):
                kill_and_undo_again(stage, fork_server, point, mode)


def kill_and_undo_again(
    stage: KilledUndoStage, fork_server: PushForkServer, point: KillPoint, mode: str
) -> None:
    """Kill an undo at the point, undo again, and check that all changes are undone once. `mode` is
    what the server does with the write in flight (see `MODES`).
    """
    sandbox, message = stage.sandbox, f"killed at {point}, server {mode}, seed {SEED}"
    undoer, batch = stage.restore_and_push()
    if mode != "commits" and point.writes:
        fault = Drop("none") if mode == "drops" else Drop("later")
        deleted = point.writes - CHANGED
        method, nth = ("DELETE", deleted) if deleted > 0 else ("PUT", point.writes)
        sandbox.faults.add(fault, method=method, path=f"{CANDIDATES}/*", nth=nth)
    ended = fork_server.run(stage.make_order(batch, point.number))
    assert ended.is_killed, (message, ended)
    sandbox.faults.clear()

    report = undoer.undo(batch)
    sandbox.apply_delayed_effects()

    assert 0 == report.exit_status, (message, report)
    left = sandbox.store.records("candidates")
    assert stage.former.keys() == left.keys(), message
    for id, former in stage.former.items():
        assert {**former, "updated_at": left[id]["updated_at"]} == left[id], message
    with undoer.journal() as journal:
        assert all(row.undone_at is not None for row in journal.rows(batch)), message
    before = len(list_writes(sandbox))
    again = undoer.undo(batch)
    assert (0, 0, before) == (again.exit_status, again.requests, len(list_writes(sandbox))), message
