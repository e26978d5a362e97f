"""Monthly requests: never fewer counted than attempted, never more sent than allowed."""

from __future__ import annotations

import asyncio
import signal
from collections import Counter
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

from connector.errors import LeaseHeld, Stopped
from connector.ledger.ledger import Ledger
from connector.ledger.quota import UNSETTLED, Allowance, RequestUse
from connector.ledger.request_budget import RequestBudget
from tests.ledger.account import (
    DETAIL,
    LIST,
    make_spender,
    read_used_requests,
    spend_requests,
    start_program,
)
from tests.support.clock import START, Clock
from tests.support.errors import has_code

SPEND = """
import asyncio, sys
from pathlib import Path
from connector.errors import Stopped
from connector.ledger.ledger import Ledger
from connector.ledger.request_budget import RequestBudget
from tests.ledger.account import LIST, make_spender
from tests.support.clock import Clock

async def spend():
    with Ledger(Path(sys.argv[1])) as ledger:
        meter = RequestBudget(ledger, make_spender(monthly=237, reserve=20), now=Clock())
        print("ready", flush=True)
        sys.stdin.readline()
        try:
            while True:
                await meter.count_attempt(LIST)
                print(meter.requests, flush=True)
        except Stopped:
            await meter.return_unused()

asyncio.run(spend())
"""


def test_requests_are_counted_before_they_are_sent(tmp_path: Path) -> None:
    with Ledger(tmp_path) as ledger, Ledger(tmp_path) as reader:
        meter = RequestBudget(ledger, make_spender(), now=Clock())
        for paid in range(1, 121):
            spend_requests(meter, LIST)
            assert paid == meter.requests <= read_used_requests(reader) <= paid + 49


def test_unused_requests_of_a_block_are_returned(tmp_path: Path) -> None:
    with Ledger(tmp_path) as ledger:
        meter = RequestBudget(ledger, make_spender(), now=Clock())
        spend_requests(meter, LIST, DETAIL, DETAIL)
        asyncio.run(meter.return_unused())
        asyncio.run(meter.return_unused())

        day = START.date()
        assert (
            RequestUse(day, "pull", "get", 2),
            RequestUse(day, "pull", "list", 1),
        ) == ledger.read_uses()
        spend_requests(meter, LIST)
        assert RequestUse(day, "pull", UNSETTLED, 50) in ledger.read_uses()
        assert 53 == read_used_requests(ledger)


def test_the_block_of_a_killed_run_stays_counted(tmp_path: Path) -> None:
    with start_program(SPEND, tmp_path) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdout.readline()
        process.stdin.write("\n")
        process.stdin.flush()
        attempted = [process.stdout.readline() for _ in range(60)]
        process.send_signal(signal.SIGKILL)
        attempted += process.stdout.readlines()

    with Ledger(tmp_path) as ledger:
        sent = len(attempted)
        assert sent <= read_used_requests(ledger) <= sent + 50


def test_processes_share_one_monthly_quota(tmp_path: Path) -> None:
    processes = [start_program(SPEND, tmp_path) for _ in range(4)]
    for each in processes:
        assert each.stdout is not None
        each.stdout.readline()
    for each in processes:
        assert each.stdin is not None
        each.stdin.write("\n")
        each.stdin.flush()
    sent = [len(each.communicate(timeout=60)[0].splitlines()) for each in processes]

    with Ledger(tmp_path) as ledger:
        assert sum(sent) == read_used_requests(ledger) <= 217
        # What one had not needed when another was turned away may stay unspent.
        assert sum(sent) >= 217 - 3 * 50
        spend_requests(
            RequestBudget(
                ledger, make_spender(monthly=sum(sent) + 20, keeps_reserve=False), now=Clock()
            ),
            LIST,
        )


def test_the_last_request_of_the_quota_is_sent(tmp_path: Path) -> None:
    with Ledger(tmp_path) as ledger:
        meter = RequestBudget(ledger, make_spender(monthly=123, billing_day=15), now=Clock())
        with pytest.raises(
            Stopped, match="monthly limit of 123 requests", check=has_code("quota_spent")
        ) as caught:
            spend_requests(meter, *[LIST] * 200)

        assert 123 == meter.requests == read_used_requests(ledger, billing_day=15)
        assert "2026-12-15" in caught.value.action


def test_scheduled_runs_do_not_use_the_reserve(tmp_path: Path) -> None:
    with Ledger(tmp_path) as ledger:
        meter = RequestBudget(ledger, make_spender(monthly=60, reserve=10), now=Clock())
        with pytest.raises(Stopped, match="10 reserved", check=has_code("quota_spent")):
            spend_requests(meter, *[LIST] * 60)
        person = RequestBudget(
            ledger, make_spender("b", monthly=60, reserve=10, keeps_reserve=False), now=Clock()
        )
        with pytest.raises(Stopped, check=has_code("quota_spent")):
            spend_requests(person, *[LIST] * 60)

        assert (50, 10) == (meter.requests, person.requests)


@pytest.mark.parametrize("budget", [1, 7, 50, 51])
def test_concurrent_requests_stay_within_the_request_limit(tmp_path: Path, budget: int) -> None:
    async def act() -> list[BaseException | None]:
        with Ledger(tmp_path) as ledger:
            meter = RequestBudget(ledger, make_spender(), budget=budget, now=Clock())
            ends = await asyncio.gather(
                *(meter.count_attempt(LIST) for _ in range(90)), return_exceptions=True
            )
            assert budget == read_used_requests(ledger)
            return ends

    ends = Counter(type(each) for each in asyncio.run(act()))
    assert {type(None): budget, Stopped: 90 - budget} == ends


def test_a_block_ends_with_its_billing_cycle(tmp_path: Path) -> None:
    clock = Clock(datetime(2026, 11, 30, 23, 59, tzinfo=UTC))
    with Ledger(tmp_path) as ledger:
        meter = RequestBudget(ledger, make_spender(monthly=100), now=clock)
        spend_requests(meter, LIST, LIST)
        clock.pass_time(minutes=2)
        spend_requests(meter, LIST)
        asyncio.run(meter.return_unused())

        days = date(2026, 11, 30), date(2026, 12, 1)
        assert (
            tuple(RequestUse(d, "pull", "list", n) for d, n in zip(days, (2, 1), strict=True))
            == ledger.read_uses()
        )
        assert 1 == read_used_requests(ledger, clock.now)


def test_requests_count_on_the_servers_day(tmp_path: Path) -> None:
    clock = Clock(datetime(2026, 11, 30, 23, 50, tzinfo=UTC))
    with Ledger(tmp_path) as ledger:
        first = RequestBudget(ledger, make_spender(), now=clock)
        spend_requests(first, LIST)
        first.record_response(200, clock.now + timedelta(minutes=20))
        spend_requests(first, LIST)
        asyncio.run(first.return_unused())
        second = RequestBudget(ledger, make_spender("b"), now=clock)
        spend_requests(second, LIST)
        asyncio.run(second.return_unused())

        days = date(2026, 11, 30), date(2026, 12, 1)
        assert (
            tuple(RequestUse(d, "pull", "list", n) for d, n in zip(days, (1, 2), strict=True))
            == ledger.read_uses()
        )


def test_an_exhausted_quota_stops_the_next_run_before_its_first_request(tmp_path: Path) -> None:
    clock = Clock()
    ends = START + timedelta(days=3)
    with Ledger(tmp_path) as ledger:
        meter = RequestBudget(ledger, make_spender(), now=clock)
        spend_requests(meter, LIST)
        error = meter.quota_error(LIST, ends.timestamp())
        asyncio.run(meter.return_unused())
        assert "2026-11-24T12:00:00Z" in error.action

        for _ in range(2):
            later = RequestBudget(ledger, make_spender("b"), now=clock)
            with pytest.raises(
                Stopped,
                match="the API reported at 2026-11-21T12:00:00Z",
                check=has_code("quota_spent"),
            ) as caught:
                spend_requests(later, LIST)
            assert 0 == later.requests
            assert "2026-11-24T12:00:00Z" in caught.value.action
            clock.pass_time(days=1)
        clock.now = ends
        spend_requests(RequestBudget(ledger, make_spender("c"), now=clock), LIST)


def test_an_exhausted_quota_without_a_reset_ends_on_the_billing_day(tmp_path: Path) -> None:
    clock = Clock()
    with Ledger(tmp_path) as ledger:
        meter = RequestBudget(ledger, make_spender(billing_day=5), now=clock)
        error = meter.quota_error(LIST, None)
        asyncio.run(meter.return_unused())
        assert "2026-12-05" in error.action

        with pytest.raises(
            Stopped, match="By billing_day, it resets on 2026-12-05", check=has_code("quota_spent")
        ):
            spend_requests(RequestBudget(ledger, make_spender("b", billing_day=5), now=clock), LIST)
        clock.pass_time(hours=20)
        spend_requests(RequestBudget(ledger, make_spender("c", billing_day=5), now=clock), LIST)


@pytest.mark.parametrize(("status", "is_open"), [(200, True), (404, True), (429, False)])
def test_a_successful_response_reopens_an_exhausted_quota(
    tmp_path: Path, status: int, *, is_open: bool
) -> None:
    clock = Clock()
    with Ledger(tmp_path) as ledger:
        meter = RequestBudget(ledger, make_spender(), now=clock)
        meter.quota_error(LIST, None)
        asyncio.run(meter.return_unused())
        anyway = RequestBudget(ledger, make_spender("b", ignores_quota=True), now=clock)
        spend_requests(anyway, LIST)
        anyway.record_response(status, clock.now)
        asyncio.run(anyway.return_unused())

        found = ledger.status(Allowance(None, 0, 1), clock())
        assert is_open == (found.exhaustion is None)


def test_a_run_cancelled_while_reserving_a_block_returns_it(tmp_path: Path) -> None:
    async def act() -> None:
        with Ledger(tmp_path) as ledger:
            meter = RequestBudget(ledger, make_spender(), now=Clock())
            paying = asyncio.ensure_future(meter.count_attempt(LIST))
            # It has begun, and waits for the disk.
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            paying.cancel()
            await asyncio.gather(paying, return_exceptions=True)
            await meter.return_unused()
            assert (0, 0) == (meter.requests, read_used_requests(ledger))

    asyncio.run(act())


def test_reached_limits_exit_with_4_and_a_held_lease_with_1() -> None:
    assert 4 == Stopped.exit_status
    assert not issubclass(LeaseHeld, Stopped)
    assert 1 == LeaseHeld.exit_status
