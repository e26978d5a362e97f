"""Leases: one run per name at a time, whichever process dies, sleeps or starts."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from connector.errors import LeaseHeld, LeaseLost
from connector.ledger.ledger import LEASE_SECONDS, LeaseOwner, Ledger
from connector.ledger.request_budget import LeaseHolder
from tests.ledger.account import LIST, make_spender, start_program
from tests.support.clock import START, Clock

HOLD = """
import asyncio, sys
from pathlib import Path
from connector.ledger.ledger import Ledger; from connector.ledger.request_budget import LeaseHolder
from tests.ledger.account import make_spender

async def hold():
    with Ledger(Path(sys.argv[1])) as ledger:
        async with LeaseHolder(ledger, "pull", make_spender("theirs")):
            print("held", flush=True)
            await asyncio.to_thread(sys.stdin.readline)

asyncio.run(hold())
"""


def make_owner(run_id: str = "ours") -> LeaseOwner:
    """Return a lease owner with this process and this run."""
    return LeaseOwner.of_this_process(run_id, "pull")


def test_a_second_owner_gets_an_error_that_names_the_first(tmp_path: Path) -> None:
    with Ledger(tmp_path) as ledger:
        ledger.take_lease("pull", make_owner("first"), START)
        with pytest.raises(LeaseHeld) as caught:
            ledger.take_lease("pull", make_owner("second"), START + timedelta(seconds=60))

    message = str(caught.value)
    for each in (
        f"process {os.getpid()} (pull)",
        make_owner().host,
        "run first",
        "2026-11-21T12:00:00Z",
    ):
        assert each in message


def test_leases_with_other_names_are_free(tmp_path: Path) -> None:
    with Ledger(tmp_path) as ledger:
        ledger.take_lease("pull", make_owner("a"), START)
        ledger.take_lease("push", make_owner("b"), START)
        ledger.release_lease("pull", "b")
        assert ["pull", "push"] == [each.name for each in ledger.leases()]
        ledger.release_lease("pull", "a")
        assert ["push"] == [each.name for each in ledger.leases()]


@pytest.mark.parametrize(
    ("change", "is_over"),
    [
        ({}, False),
        ({"born": "1"}, True),
        ({"boot": "another"}, True),
        ({"host": "elsewhere", "pid": 2**22 + 1}, False),
        ({"space": "pid:[1]", "pid": 2**22 + 1}, False),
        ({"pid": 2**22 + 1}, True),
        ({"pid": 1, "born": None}, True),
    ],
    ids=["alive", "number given out again", "restarted", "host", "container", "gone", "other"],
)
def test_leases_of_dead_processes_are_free(
    tmp_path: Path, change: dict[str, object], *, is_over: bool
) -> None:
    theirs = replace(make_owner("theirs"), **change)  # type: ignore[arg-type]  # fields of an LeaseOwner
    with Ledger(tmp_path) as ledger:
        ledger.take_lease("pull", theirs, START)
        before = START + timedelta(seconds=LEASE_SECONDS - 1)
        if is_over:
            ledger.take_lease("pull", make_owner(), before)
        else:
            with pytest.raises(LeaseHeld):
                ledger.take_lease("pull", make_owner(), before)
            ledger.take_lease("pull", make_owner(), START + timedelta(seconds=LEASE_SECONDS))
        assert ["ours"] == [each.owner.run_id for each in ledger.leases()]


def test_the_lease_of_a_killed_process_is_taken_over_immediately(tmp_path: Path) -> None:
    with start_program(HOLD, tmp_path) as process, Ledger(tmp_path) as ledger:
        assert process.stdout is not None
        assert "held\n" == process.stdout.readline()
        (lease,) = ledger.leases()
        assert process.pid == lease.owner.pid
        with pytest.raises(LeaseHeld, match=f"process {process.pid} "):
            ledger.take_lease("pull", make_owner(), lease.since)

        process.send_signal(signal.SIGKILL)
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        ledger.take_lease("pull", make_owner(), lease.since)


def test_an_ended_run_releases_its_lease(tmp_path: Path) -> None:
    async def act(ledger: Ledger) -> None:
        async with LeaseHolder(ledger, "pull", make_spender(), now=Clock()) as turn:
            await turn.count_attempt(LIST)
            raise KeyError

    with Ledger(tmp_path) as ledger:
        with pytest.raises(KeyError):
            asyncio.run(act(ledger))
        assert () == ledger.leases()
        assert [("list", 1)] == [(each.kind, each.requests) for each in ledger.read_uses()]


def test_a_running_run_keeps_its_lease(tmp_path: Path) -> None:
    clock = Clock()

    async def act(ledger: Ledger) -> None:
        async with LeaseHolder(ledger, "pull", make_spender(), now=clock) as turn:
            for _ in range(5):
                clock.pass_time(seconds=LEASE_SECONDS - 10)
                await turn.count_attempt(LIST)
                with pytest.raises(LeaseHeld):
                    ledger.take_lease("pull", make_owner(), clock.now + timedelta(seconds=99))

    with Ledger(tmp_path) as ledger:
        asyncio.run(act(ledger))


def test_the_heartbeat_renews_the_lease(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("connector.ledger.request_budget.RENEWAL_SECONDS", 0.001)
    clock = Clock()

    async def act(ledger: Ledger) -> None:
        async with LeaseHolder(ledger, "pull", make_spender(), now=clock):
            clock.pass_time(seconds=60)
            expected = clock.now + timedelta(seconds=LEASE_SECONDS)
            async with asyncio.timeout(20):
                while ledger.leases()[0].expires_at != expected:  # noqa: ASYNC110
                    await asyncio.sleep(0)

    with Ledger(tmp_path) as ledger:
        asyncio.run(act(ledger))


def test_a_run_with_an_expired_lease_sends_no_more_requests(tmp_path: Path) -> None:
    clock = Clock()

    async def act(ledger: Ledger) -> None:
        async with LeaseHolder(ledger, "pull", make_spender(), now=clock) as turn:
            clock.pass_time(seconds=LEASE_SECONDS)
            ledger.take_lease("pull", make_owner(), clock.now)
            for _ in range(2):
                with pytest.raises(LeaseLost, match=r"\) was paused for too long, and another "):
                    await turn.count_attempt(LIST)

    with Ledger(tmp_path) as ledger:
        asyncio.run(act(ledger))
        assert ["ours"] == [each.owner.run_id for each in ledger.leases()]
        assert () == ledger.read_uses()


def test_only_one_of_several_simultaneous_owners_gets_the_lease(tmp_path: Path) -> None:
    together, ends = threading.Barrier(8), list[str]()

    def take_lease(number: int) -> None:
        with Ledger(tmp_path) as ledger:
            together.wait(20)
            try:
                ledger.take_lease("pull", make_owner(str(number)), START)
                ends.append("has it")
            except LeaseHeld:
                ends.append("is told")

    threads = [threading.Thread(target=take_lease, args=(number,)) for number in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()

    assert ["has it", *["is told"] * 7] == sorted(ends)
