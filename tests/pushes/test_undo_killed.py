"""`kill -9` of an undo at every commit and every socket call."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from connector.sandbox.faults import Drop
from connector.sandbox.server import Sandbox
from tests.pushes.killable_push import (
    Point,
    PushForkServer,
    PushOrder,
    make_push_order,
    parse_points,
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


@pytest.fixture(scope="module")
def fork_server() -> Iterator[PushForkServer]:
    """A process that forks all killed undos."""
    with PushForkServer() as opened:
        yield opened


class KilledUndoStage:
    """A sandbox with records that a push created and changed, and the folder it used."""

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

    def restore_pushed(self) -> tuple[Undoer, str]:
        """Reset everything to the state after the push, and return it with the batch."""
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

    def child(self, batch: str, dies_at: int | None = None) -> PushOrder:
        """Return the order of an undo of the batch in a separate process."""
        place = self._folder
        return make_push_order(self.sandbox, place, 0, connections=1, dies_at=dies_at, undoes=batch)


def choose_points(points: list[Point], mode: str) -> list[Point]:
    """Return every point, or one of each kind drawn with the seed."""
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
        _, batch = stage.restore_pushed()
        points = parse_points(fork_server.run(stage.child(batch)))
        # The rows are taken back from the last to the first: the PUTs before the DELETEs.
        assert CREATED + CHANGED == points[-1].writes
        for mode in MODES:
            for point in choose_points(points, mode):
                kill_and_undo_again(stage, fork_server, point, mode)


def kill_and_undo_again(
    stage: KilledUndoStage, fork_server: PushForkServer, point: Point, mode: str
) -> None:
    sandbox, message = stage.sandbox, f"killed at {point}, server {mode}, seed {SEED}"
    undoer, batch = stage.restore_pushed()
    if mode != "commits" and point.writes:
        fault = Drop("none") if mode == "drops" else Drop("later")
        deleted = point.writes - CHANGED
        method, nth = ("DELETE", deleted) if deleted > 0 else ("PUT", point.writes)
        sandbox.faults.add(fault, method=method, path=f"{CANDIDATES}/*", nth=nth)
    ended = fork_server.run(stage.child(batch, point.number))
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
