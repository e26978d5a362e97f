"""One process at a time uses an account; another waits, and names the holder."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from connector.errors import AccountBusy
from connector.state.lock import Holder, has_locks, hold, holder_of
from tests.support.processes import OtherProcess


@pytest.fixture
def other(tmp_path: Path) -> OtherProcess:
    """A process that holds the lock of `tmp_path`."""
    return OtherProcess(tmp_path)


def test_a_second_process_names_the_holder_when_its_time_is_over(
    tmp_path: Path, other: OtherProcess
) -> None:
    with (
        pytest.raises(AccountBusy, match=f"pull .process {other.process.pid},"),
        hold(tmp_path, "push", wait_seconds=0),
    ):
        pass
    other.kill()


def test_a_process_that_waits_continues_when_the_holder_is_killed(
    tmp_path: Path, other: OtherProcess
) -> None:
    told: list[Holder | None] = []

    def kill(holder: Holder | None) -> None:
        told.append(holder)
        other.kill()

    with hold(tmp_path, "push", wait_seconds=30, on_wait=kill):
        assert ["pull"] == [each.name for each in told if each is not None]
        holder = holder_of(tmp_path)
        assert holder is not None
        assert "push" == holder.name
    assert holder_of(tmp_path) is None


async def _hold_within(folder: Path) -> str | None:
    """Hold the lock twice in one task, also from a thread, and return the holder."""
    async with hold(folder, "push", wait_seconds=0), hold(folder, "pull", wait_seconds=0):

        def in_a_thread() -> str | None:
            with hold(folder, "publish", wait_seconds=0):
                holder = holder_of(folder)
                return holder.name if holder is not None else None

        return await asyncio.to_thread(in_a_thread)


def test_a_run_that_holds_the_lock_starts_other_runs(tmp_path: Path) -> None:
    assert "push" == asyncio.run(_hold_within(tmp_path))
    assert holder_of(tmp_path) is None


async def _hold_twice(folder: Path) -> list[str]:
    """Hold the lock in two tasks, and return the order of their steps."""
    steps: list[str] = []

    async def use(name: str) -> None:
        async with hold(folder, name):
            steps.append(f"{name} begins")
            await asyncio.sleep(0)
            steps.append(f"{name} ends")

    await asyncio.gather(use("first"), use("second"))
    return steps


def test_two_tasks_of_one_process_take_turns(tmp_path: Path) -> None:
    steps = asyncio.run(_hold_twice(tmp_path))

    assert ["begins", "ends"] * 2 == [each.split()[1] for each in steps]
    assert steps[0].split()[0] == steps[1].split()[0]


def test_a_local_folder_has_locks(tmp_path: Path) -> None:
    assert has_locks(tmp_path)
    assert [] == [*tmp_path.iterdir()]
