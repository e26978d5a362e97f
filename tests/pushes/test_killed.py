"""`kill -9` of a push at every commit and at every socket call."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from connector.ledger.push_plan import PushPlan
from connector.pushes.batch import BatchReport
from connector.sandbox.faults import Drop, PlannedFault
from connector.sandbox.server import Sandbox
from tests.pushes.killable_push import (
    Point,
    PushForkServer,
    PushOrder,
    make_push_order,
    parse_points,
)
from tests.pushes.pushing import CANDIDATES, Pusher, list_writes, make_creates, make_plan
from tests.seeds import SEED
from tests.support.clock import Time
from tests.support.kill_points import IS_ALL, SHARES
from tests.tiers import first_fast

ROWS = 30
POINTS = 2
"""Deaths that are tried of each kind, over all shares, unless all are."""

MODES = ("commits", "drops", "commits late", "commits very late")
"""What the server does with the write that was under way."""


class WallTime(Time):
    """Wall-clock time plus the simulated waits, since child processes have no other clock."""

    def local_now(self) -> datetime:
        """Return the client's time."""
        return datetime.now(UTC) + timedelta(seconds=self.seconds)

    def server_now(self) -> datetime:
        """Return the server's time."""
        return self.local_now()


@pytest.fixture(scope="module")
def fork_server() -> Iterator[PushForkServer]:
    """A process that forks all killed pushes."""
    with PushForkServer() as opened:
        yield opened


@pytest.fixture(scope="module")
def points(fork_server: PushForkServer, tmp_path_factory: pytest.TempPathFactory) -> list[Point]:
    """Kill points of a push over one connection, the same at each run."""
    time = WallTime()
    with Sandbox(clock=time.server_now) as sandbox:
        return KilledPushStage(sandbox, tmp_path_factory.mktemp("counted"), time, ROWS).points(
            fork_server, 1
        )


class KilledPushStage:
    """A sandbox, an unused data folder, and the file to push."""

    def __init__(self, sandbox: Sandbox, folder: Path, time: Time, rows: int) -> None:
        self.sandbox, self.time, self.rows = sandbox, time, rows
        self.plan: PushPlan = make_plan(make_creates(rows))
        self._base, self._folder = folder / "base", folder / "killed"
        Pusher(sandbox, self._base, time)

    def restore(self) -> Pusher:
        """Reset folder and sandbox to the state before the first push."""
        for id in self.sandbox.store.records("candidates"):
            self.sandbox.store.remove("candidates", id)
        self.sandbox.faults.clear()
        self.sandbox.apply_delayed_effects()
        for id in self.sandbox.store.records("candidates"):
            self.sandbox.store.remove("candidates", id)
        shutil.rmtree(self._folder, ignore_errors=True)
        shutil.copytree(self._base, self._folder)
        return Pusher(self.sandbox, self._folder, self.time)

    def child(self, **options: Any) -> PushOrder:
        """Return the order of a push of the file in a separate process."""
        return make_push_order(self.sandbox, self._folder, self.rows, **options)

    def points(self, fork_server: PushForkServer, connections: int) -> list[Point]:
        """Return the kill points of a push that is not killed, in order."""
        self.restore()
        return parse_points(fork_server.run(self.child(connections=connections)))


def push_and_verify(stage: KilledPushStage, pusher: Pusher, point: str, since: int) -> BatchReport:
    """Push until the file is done, and compare the report with the server (P1 to P8)."""
    sandbox = stage.sandbox
    report = pusher.push(stage.plan)
    # Whatever is still on its way arrives now, long after.
    sandbox.apply_delayed_effects()
    assert report.error is None, (point, report.error)
    records = sandbox.store.records("candidates")
    made = [each["email"] for each in records.values()]
    # P5: never two of one row. P4: every row has one outcome.
    assert len({*made}) == len(made), point
    assert [*range(2, stage.rows + 2)] == [row.number for row in report.rows], point
    assert {"created", "held"} >= {*report.counts}, (point, report.counts)
    for row, task in zip(report.rows, stage.plan.tasks, strict=True):
        if row.outcome == "created":
            assert row.record_id is not None
            shown = records[row.record_id]
            assert {**task.fields} == {name: shown[name] for name in task.fields}, point
    with pusher.journal() as journal:
        attempts = journal.attempts(report.batch)
        # P1, P7: what the server saw was written down, and no attempt reached it twice.
        assert len(list_writes(sandbox)) - since <= len(attempts), point
        held = {row.number for row in report.rows if row.outcome == "held"}
        assert held <= {each.number for each in attempts if each.fate == "lost"}, point
    # P6: nothing is sent for what has ended.
    before = len(list_writes(sandbox))
    again = pusher.push(stage.plan)
    assert before == len(list_writes(sandbox)), point
    assert {"unchanged", "held"} >= {*again.counts}, (point, again.counts)
    return report


def choose_points(points: list[Point], share: int, mode: str) -> list[Point]:
    """Return the points of one share: every one, or a few of each kind."""
    if IS_ALL:
        return points[share::SHARES]
    chance = random.Random(f"{SEED} {mode}")
    by_kind: dict[str, list[Point]] = {}
    for point in points:
        by_kind.setdefault(point.kind, []).append(point)
    kinds = sorted(by_kind)
    chosen = [chance.choice(by_kind[kind]) for kind in chance.sample(kinds, len(kinds))]
    return chosen[:POINTS][share::SHARES]


@pytest.mark.parametrize("share", first_fast(range(SHARES), (SHARES + 1) // 2))
@pytest.mark.parametrize("mode", MODES)
def test_a_push_killed_at_any_point_is_finished_by_the_next_push(
    tmp_path: Path, fork_server: PushForkServer, points: list[Point], mode: str, share: int
) -> None:
    time = WallTime()
    with Sandbox(clock=time.server_now) as sandbox:
        stage = KilledPushStage(sandbox, tmp_path, time, ROWS)
        held = 0
        for point in choose_points(points, share, mode):
            message = f"killed at {point}, server {mode}, seed {SEED}"
            pusher = stage.restore()
            since = len(list_writes(sandbox))
            planned = plan_fault(sandbox, point, mode)
            ended = fork_server.run(stage.child(connections=1, dies_at=point.number))
            assert ended.is_killed, (message, ended)
            sandbox.faults.clear()
            if mode == "commits late":
                sandbox.apply_delayed_effects()
            report = push_and_verify(stage, pusher, message, since)
            held += report.counts.get("held", 0)
            assert report.counts.get("held", 0) <= 1, message
            assert planned is None or planned.hits <= 1
        print(f"{len(points)} points, {held} rows held")  # noqa: T201  # shown with -s


def plan_fault(sandbox: Sandbox, point: Point, mode: str) -> PlannedFault | None:
    """Plan the fault of the write in flight at the point, and return the planned outcome."""
    if mode == "commits" or point.writes == 0:
        return None
    fault = Drop("none") if mode == "drops" else Drop("later")
    return sandbox.faults.add(fault, method="POST", path=CANDIDATES, nth=point.writes)


@pytest.mark.slow
def test_a_push_killed_repeatedly_is_finished_without_duplicates(
    tmp_path: Path, fork_server: PushForkServer
) -> None:
    time, chance = WallTime(), random.Random(f"again {SEED}")
    with Sandbox(clock=time.server_now) as sandbox:
        stage = KilledPushStage(sandbox, tmp_path, time, ROWS)
        pusher = stage.restore()
        kills = 12 if IS_ALL else 3
        for _ in range(kills):
            ended = fork_server.run(stage.child(connections=4, dies_at=chance.randint(5, 60)))
            assert ended.is_killed or ended.status in (0, 3), ended
        report = push_and_verify(stage, pusher, f"{kills} kills, seed {SEED}", 0)

        assert report.counts.get("held", 0) <= kills * 4
