"""`kill -9` of a push at every commit and at every socket call."""

from __future__ import annotations

import random
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from connector.pushes.run import BatchReport
from connector.sandbox.faults import Drop, PlannedFault
from connector.sandbox.server import Sandbox
from connector.state.journal import Plan
from tests.pushes.killable_push import (
    KillPoint,
    PushForkServer,
    PushOrder,
    make_push_order,
    parse_kill_points,
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
    """Real time plus the simulated waits, since child processes use the real clock."""

    def local_now(self) -> datetime:
        """Return the client's time."""
        return datetime.now(UTC) + timedelta(seconds=self.seconds)

    def server_now(self) -> datetime:
        """Return the server's time."""
        return self.local_now()


@pytest.fixture(scope="module")
def points(
    fork_server: PushForkServer, tmp_path_factory: pytest.TempPathFactory
) -> list[KillPoint]:
    """Kill points of a push over one connection, which are the same each time."""
    time = WallTime()
    with Sandbox(clock=time.server_now) as sandbox:
        return KilledPushStage(
            sandbox, tmp_path_factory.mktemp("counted"), time, ROWS
        ).run_and_list_kill_points(fork_server, 1)


class KilledPushStage:
    """Sandbox, template of an unused data folder, and the plan to push in processes that are
    killed.
    """

    def __init__(self, sandbox: Sandbox, folder: Path, time: Time, rows: int) -> None:
        self.sandbox, self.time, self.rows = sandbox, time, rows
        self.plan: Plan = make_plan(make_creates(rows))
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

    def make_order(self, connections: int, kill_at: int | None = None) -> PushOrder:
        """Return the order to push the plan in a process killed at the point of that number."""
        return make_push_order(
            self.sandbox, self._folder, self.rows, connections=connections, kill_at=kill_at
        )

    def run_and_list_kill_points(
        self, fork_server: PushForkServer, connections: int
    ) -> list[KillPoint]:
        """Run a push that is not killed, and return its kill points in order."""
        self.restore()
        return parse_kill_points(fork_server.run(self.make_order(connections=connections)))


def push_and_verify(
    stage: KilledPushStage, pusher: Pusher, killed_at: str, writes_before: int
) -> BatchReport:
    """Push the plan to its end, and check the promises P1 and P4 to P7 of docs/CORRECTNESS.md.
    `point` is part of the messages; `since` is the number of writes before the test.
    """
    sandbox = stage.sandbox
    report = pusher.push(stage.plan)
    # Delayed requests take effect now.
    sandbox.apply_delayed_effects()
    assert report.error is None, (killed_at, report.error)
    records = sandbox.store.records("candidates")
    made = [each["email"] for each in records.values()]
    # P5: a row creates one record. P4: every row has one outcome.
    assert len({*made}) == len(made), killed_at
    assert [*range(2, stage.rows + 2)] == [row.number for row in report.rows], killed_at
    assert {"created", "held"} >= {*report.counts}, (killed_at, report.counts)
    for row, task in zip(report.rows, stage.plan.rows, strict=True):
        if row.outcome == "created":
            assert row.record_id is not None
            shown = records[row.record_id]
            assert {**task.fields} == {name: shown[name] for name in task.fields}, killed_at
    # P1, P7: every write is in the journal, and no attempt reached the server twice.
    attempts = [each for row in report.rows for each in row.attempts]
    assert len(list_writes(sandbox)) - writes_before <= len(attempts), killed_at
    for row in report.rows:
        if row.outcome == "held":
            assert any(each.fate == "lost" for each in row.attempts), killed_at
    # P6: no write is sent for completed rows.
    before = len(list_writes(sandbox))
    again = pusher.push(stage.plan)
    assert before == len(list_writes(sandbox)), killed_at
    assert {"unchanged", "held"} >= {*again.counts}, (killed_at, again.counts)
    return report


def choose_points(points: list[KillPoint], share: int, mode: str) -> list[KillPoint]:
    """Return the kill points of one of `SHARES` shares: all of them, or one of some kinds, drawn
    with the seed.
    """
    if IS_ALL:
        return points[share::SHARES]
    chance = random.Random(f"{SEED} {mode}")
    by_kind: dict[str, list[KillPoint]] = {}
    for point in points:
        by_kind.setdefault(point.kind, []).append(point)
    kinds = sorted(by_kind)
    chosen = [chance.choice(by_kind[kind]) for kind in chance.sample(kinds, len(kinds))]
    return chosen[:POINTS][share::SHARES]


@pytest.mark.parametrize("share", first_fast(range(SHARES), (SHARES + 1) // 2))
@pytest.mark.parametrize("mode", MODES)
def test_a_push_killed_at_any_point_is_finished_by_the_next_push(
    tmp_path: Path, fork_server: PushForkServer, points: list[KillPoint], mode: str, share: int
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
            ended = fork_server.run(stage.make_order(connections=1, kill_at=point.number))
            assert ended.is_killed, (message, ended)
            sandbox.faults.clear()
            if mode == "commits late":
                sandbox.apply_delayed_effects()
            report = push_and_verify(stage, pusher, message, since)
            held += report.counts.get("held", 0)
            assert report.counts.get("held", 0) <= 1, message
            assert planned is None or planned.hits <= 1
        print(f"{len(points)} points, {held} rows held")  # noqa: T201  # shown with -s


def plan_fault(sandbox: Sandbox, point: KillPoint, mode: str) -> PlannedFault | None:
    """Plan what the server does (see `MODES`) with the write that is in flight at the kill point.
    Returns the planned fault; None without one.
    """
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
            ended = fork_server.run(stage.make_order(connections=4, kill_at=chance.randint(5, 60)))
            assert ended.is_killed or ended.status in (0, 3), ended
        report = push_and_verify(stage, pusher, f"{kills} kills, seed {SEED}", 0)

        assert report.counts.get("held", 0) <= kills * 4
