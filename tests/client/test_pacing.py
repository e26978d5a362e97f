"""One rate limiter for all requests of a client, no endless wait, and cancelled requests."""

from __future__ import annotations

import asyncio
import gc

import pytest
from pydantic import SecretStr

from connector.catalog import declaration
from connector.client.client import Client
from connector.client.messages import build_list_request
from connector.client.session import HttpSession, Limits
from connector.errors import RateLimited, ServerFailed, Stopped
from connector.pulls.account import RequestTally
from connector.sandbox.server import Sandbox
from tests.client.calls import make_client
from tests.client.peer import RECORD, Peer, Reply, found, reply_after, send_json, send_nothing
from tests.support.clock import ClientClock
from tests.support.errors import has_code

pytestmark = pytest.mark.anyio

DEADLINE_SECONDS = 20


async def get_job(client: Client) -> None:
    """Read a job, which must succeed within `DEADLINE_SECONDS`."""
    async with asyncio.timeout(DEADLINE_SECONDS):
        await client.detail("jobs", "5d1c")


@pytest.mark.parametrize("connections", [1, 3])
async def test_requests_in_flight_never_exceed_the_connections(connections: int) -> None:
    headers = {"X-RateLimit-Limit": "1000", "X-RateLimit-Remaining": "900"}
    reply = send_json(200, {"data": RECORD}, {**headers, "X-RateLimit-Reset": "50"})
    are_in_flight = asyncio.Event()
    # The first request is sent alone, because the rate limit is not known yet.
    async with Peer(reply, reply_when_concurrent(connections, are_in_flight, reply)) as peer:
        async with make_client(peer.base_url, connections=connections) as client:
            await get_job(client)
            await asyncio.gather(*(get_job(client) for _ in range(20)))
        assert are_in_flight.is_set()
        assert connections == peer.in_flight_max
        assert 21 == len(peer.requests)


def reply_when_concurrent(count: int, met: asyncio.Event, then: Reply) -> Reply:
    """Return a reply that is sent once `count` requests are in flight, which sets `met`."""
    waiting = 0

    async def reply(writer: asyncio.StreamWriter) -> None:
        nonlocal waiting
        waiting += 1
        if waiting == count:
            met.set()
        await met.wait()
        await then(writer)

    return reply


async def measure_wait_after(status: int, retry_after: dict[str, str]) -> float:
    """Return the seconds between a response with these headers and the repeated request."""
    clock = ClientClock()
    async with (
        Peer(
            send_json(status, {}, {"Date": "Sat, 21 Nov 2026 10:00:00 GMT", **retry_after}), found
        ) as peer,
        make_client(peer.base_url, clock) as client,
    ):
        await get_job(client)
        assert 2 == len(peer.requests)
    return sum(clock.waits)


@pytest.mark.parametrize("status", [429, 503])
async def test_a_plausible_retry_after_is_respected(status: int) -> None:
    unsaid = await measure_wait_after(status, {})
    for retry_after, seconds in (("30", 30), ("Sat, 21 Nov 2026 10:00:45 GMT", 45)):
        waited = await measure_wait_after(status, {"Retry-After": retry_after})
        assert seconds <= waited <= seconds + 15
    for retry_after in ("-5", "soon", "Sat, 21 Nov 2026 09:00:00 GMT"):
        assert unsaid == await measure_wait_after(status, {"Retry-After": retry_after})


@pytest.mark.parametrize(("status", "error"), [(429, Stopped), (503, ServerFailed)])
async def test_a_retry_after_of_more_than_a_minute_fails_without_a_wait(
    status: int, error: type[Exception]
) -> None:
    clock = ClientClock()
    async with (
        Peer(send_json(status, {}, {"Retry-After": "3600"}), found) as peer,
        make_client(peer.base_url, clock) as client,
    ):
        with pytest.raises(error):
            await get_job(client)
        assert 1 == len(peer.requests)
    assert not any(clock.waits)


async def test_overlapping_waits_are_counted_once() -> None:
    headers = {"X-RateLimit-Limit": "9", "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "40"}
    tally, held = RequestTally(), list[float]()
    tally.report_wait = held.append

    clock = ClientClock()
    async with (
        Peer(send_json(200, {"data": RECORD}, headers), found) as peer,
        make_client(peer.base_url, clock, observer=tally) as client,
    ):
        await get_job(client)
        begun = clock.now
        await asyncio.gather(*(get_job(client) for _ in range(3)))
    assert 0 < tally.waited_seconds <= clock.now - begun
    assert max(held) >= 40


async def test_time_in_the_queue_does_not_count_against_retries() -> None:
    headers = {"X-RateLimit-Limit": "9", "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "50"}

    clock = ClientClock()
    last = send_json(200, {"data": RECORD}, headers)
    async with Peer(last, send_json(500, {}, {}), found) as peer:
        limits = Limits(retry_seconds_max=52.0)
        async with make_client(peer.base_url, clock, limits=limits) as client:
            await get_job(client)
            await get_job(client)
        assert 3 == len(peer.requests)
    assert sum(clock.waits) >= 50

    clock = ClientClock()
    async with Peer(last, found) as peer:
        limits = Limits(retry_seconds_max=45.0)
        async with make_client(peer.base_url, clock, limits=limits) as client:
            await get_job(client)
            with pytest.raises(
                RateLimited, match="was not sent, because the wait for the rate limit is too long"
            ):
                await get_job(client)
        assert 1 == len(peer.requests)
    assert [] == clock.waits


async def test_a_second_attempt_that_would_wait_too_long_ends_the_request() -> None:
    clock = ClientClock()
    async with Peer(send_json(429, {}, {"X-RateLimit-Reset": "40"})) as peer:
        limits = Limits(retry_seconds_max=52.0)
        async with make_client(peer.base_url, clock, limits=limits) as client:
            with pytest.raises(RateLimited, match="was not sent"):
                await get_job(client)
        assert 2 == len(peer.requests)
    assert 40 <= sum(clock.waits) <= 52


async def test_a_cancelled_request_releases_its_connection_and_ticket() -> None:
    async with Peer(send_nothing, found) as peer:
        async with make_client(peer.base_url, connections=1) as client:
            task = asyncio.create_task(get_job(client))
            await peer.has_request.wait()
            # The next would wait for the first's answer as long as the pace expects one.
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            await get_job(client)
            await get_job(client)
        assert 3 == len(peer.requests)


async def test_a_used_up_monthly_quota_stops_requests_immediately() -> None:
    headers = {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "4102444800"}

    reply = send_json(429, {}, {**headers, "Date": "Wed, 04 Mar 2026 05:06:07 GMT"})
    async with Peer(reply) as peer, make_client(peer.base_url) as client:
        for _ in range(3):
            with pytest.raises(Stopped, check=has_code("quota_spent")):
                await get_job(client)
        assert 1 == len(peer.requests)


async def test_a_request_cancelled_while_waiting_releases_its_place() -> None:
    gate = asyncio.Event()
    async with Peer(reply_after(gate, found), found) as peer:
        async with make_client(peer.base_url, connections=2) as client:
            first = asyncio.create_task(get_job(client))
            await peer.has_request.wait()
            waiting = asyncio.create_task(get_job(client))
            await asyncio.sleep(0)
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
            gate.set()
            await first
            await asyncio.gather(get_job(client), get_job(client))
        assert 3 == len(peer.requests)


CONNECTIONS = 4


@pytest.mark.parametrize("steps", range(8))
def test_a_cancelled_request_leaves_no_connection_open(steps: int) -> None:
    request = build_list_request(declaration("jobs"))

    async def cancel_after(sandbox: Sandbox) -> None:
        key = SecretStr(sandbox.key)
        session = HttpSession(sandbox.base_url, key, Limits(), connections=CONNECTIONS)
        await asyncio.gather(*(session.exchange(request) for _ in range(CONNECTIONS)))
        # The next request finds that the server has closed the idle connections, and closes them.
        sandbox.stop()
        sandbox.start()
        cancelled = asyncio.ensure_future(session.exchange(request))
        for _ in range(steps):
            await asyncio.sleep(0)
        cancelled.cancel()
        with pytest.raises(asyncio.CancelledError):
            await cancelled
        await session.aclose()

    with Sandbox(counts={"jobs": 2}) as sandbox:
        asyncio.run(cancel_after(sandbox))
    # An open connection is a warning here, and so an error.
    gc.collect()
