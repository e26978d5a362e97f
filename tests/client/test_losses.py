"""Lost, unreadable and large answers: a write is never sent twice, and reads are repeated within
limits. Each fault happens on a real socket, and the server counts the requests that it received.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import tracemalloc
from collections.abc import Mapping

import pytest

from connector.client.client import FEW_ATTEMPTS_MAX
from connector.client.messages import Request
from connector.client.session import HttpSession, Limits
from connector.errors import (
    AnswerTooLarge,
    ConnectorError,
    InDoubt,
    NoAnswer,
    RateLimited,
    ServerFailed,
    Unreachable,
    UnreadableAnswer,
)
from tests.client.calls import KEY, READS, WRITES, StatusObserver, make_client
from tests.client.peer import (
    RECORD,
    Peer,
    Reply,
    created,
    found,
    listed,
    make_response,
    send_and_close,
    send_bytes,
    send_endless_body,
    send_json,
    send_nothing,
)
from tests.support.clock import ClientClock

pytestmark = pytest.mark.anyio

HTML = b"<!doctype html><h1>Bad Gateway</h1>"
BODY = json.dumps({"data": RECORD}).encode()
ANSWER = make_response(200, BODY)
LIMITS = Limits(deadline_seconds=0.3, body_bytes_max=200_000)
GZIP = {"Content-Encoding": "gzip"}

LOST: Mapping[str, Reply] = {
    "closed before a byte": send_and_close(),
    "closed within the status": send_and_close(ANSWER[:12]),
    "closed within the headers": send_and_close(ANSWER[:40]),
    "closed after the headers": send_and_close(ANSWER[: ANSWER.index(b"\r\n\r\n") + 4]),
    "closed within the body": send_and_close(ANSWER[:-5]),
    "chunks without an end": send_and_close(
        make_response(200, b"", {"Transfer-Encoding": "chunked"}).replace(
            b"Content-Length: 0\r\n", b""
        )
        + b'5\r\n{"dat'
    ),
    "silence": send_nothing,
    "not http": send_and_close(b"SSH-2.0-OpenSSH_9.6\r\n"),
    "ten thousand headers": send_and_close(
        make_response(200, b"{}", {f"X-{n}": "abc" for n in range(10_000)})
    ),
}
"""Ends without a whole answer: a read may be repeated."""

FAILED: Mapping[str, Reply] = {
    "500": send_json(500, {"error": "server_error", "message": "Oh."}),
    "502 of a proxy": send_bytes(make_response(502, HTML)),
}
"""Failures of the server: a read may be repeated."""

UNREADABLE: Mapping[str, tuple[Reply, type[ConnectorError]]] = {
    "html": (send_bytes(make_response(200, HTML)), UnreadableAnswer),
    "empty": (send_bytes(make_response(200)), UnreadableAnswer),
    "no object": (send_bytes(make_response(200, b"[]")), UnreadableAnswer),
    "no record": (send_json(200, {"data": {}, "message": "Made."}), UnreadableAnswer),
    "202": (send_bytes(make_response(202, b"{}")), UnreadableAnswer),
    "no gzip": (send_bytes(make_response(200, ANSWER, GZIP)), UnreadableAnswer),
    "brotli": (send_bytes(make_response(200, b"{}", {"Content-Encoding": "br"})), UnreadableAnswer),
    "endless": (send_endless_body(b"HTTP/1.1 200 OK\r\n\r\n"), AnswerTooLarge),
    "300 headers": (
        send_bytes(make_response(200, b"{}", {f"X-{n}": "" for n in range(300)})),
        AnswerTooLarge,
    ),
}
"""Answers that are no answers of this API."""


def call_with_replies(
    operation: str, *replies: Reply, limits: Limits = LIMITS
) -> tuple[type[ConnectorError] | None, int]:
    """Call an operation of READS or WRITES. Returns the class of its error, if any, and the number
    of requests that the server received.
    """

    async def act() -> tuple[type[ConnectorError] | None, int]:
        async with Peer(*replies) as peer, make_client(peer.base_url, limits=limits) as client:
            try:
                await {**READS, **WRITES}[operation](client)
            except ConnectorError as error:
                return type(error), len(peer.requests)
            return None, len(peer.requests)

    return asyncio.run(act())


@pytest.mark.parametrize("call", WRITES)
@pytest.mark.parametrize("fault", [*LOST, *FAILED, *UNREADABLE])
def test_a_write_with_a_lost_or_unreadable_answer_is_never_sent_twice(
    call: str, fault: str
) -> None:
    replies = {**LOST, **FAILED, **{name: each for name, (each, _) in UNREADABLE.items()}}

    assert (InDoubt, 1) == call_with_replies(call, replies[fault], created)


@pytest.mark.parametrize("call", WRITES)
@pytest.mark.parametrize("error", [NoAnswer("X", "slow"), UnreadableAnswer("X", "odd")], ids=repr)
def test_a_write_is_not_repeated_after_an_error_that_does_not_prove_it_unsent(
    call: str, error: ConnectorError, monkeypatch: pytest.MonkeyPatch
) -> None:
    attempts = list[Request]()

    async def fail(session: HttpSession, request: Request) -> None:
        attempts.append(request)
        raise error

    async def act() -> None:
        async with make_client("http://127.0.0.1:1") as client:
            await WRITES[call](client)

    monkeypatch.setattr(HttpSession, "exchange", fail)
    with pytest.raises(type(error)):
        asyncio.run(act())
    assert 1 == len(attempts)


@pytest.mark.parametrize("call", ["create", "update", "convert"])
def test_a_204_leaves_a_create_or_update_in_doubt_and_confirms_a_delete(call: str) -> None:
    assert (InDoubt, 1) == call_with_replies(call, send_bytes(make_response(204)))
    assert (None, 1) == call_with_replies("delete", send_bytes(make_response(204)))


@pytest.mark.parametrize("call", [*READS, *WRITES])
@pytest.mark.parametrize("reset", [{}, {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "30"}])
def test_every_request_rejected_with_429_is_sent_again(call: str, reset: dict[str, str]) -> None:
    success = listed if call == "list" else found

    assert (None, 3) == call_with_replies(call, *[send_json(429, {}, reset)] * 2, success)


async def test_repeated_429s_end_after_the_maximum_of_attempts() -> None:
    limits = Limits(attempts_max=4, retry_seconds_max=10_000.0)
    reply = send_json(429, {}, {"X-RateLimit-Reset": "5"})

    async with Peer(reply) as peer, make_client(peer.base_url, limits=limits) as client:
        with pytest.raises(RateLimited):
            await READS["get"](client)
        assert 2 <= len(peer.requests) <= 4


@pytest.mark.parametrize("call", READS)
@pytest.mark.parametrize("fault", [*LOST, *FAILED])
def test_a_failed_read_is_repeated_until_it_succeeds(call: str, fault: str) -> None:
    reply = {**LOST, **FAILED}[fault]

    assert (None, 3) == call_with_replies(call, reply, reply, listed if call == "list" else found)


@pytest.mark.parametrize("fault", ["closed within the body", "500"])
def test_a_failed_read_is_repeated_up_to_the_maximum_of_attempts(fault: str) -> None:
    expected = NoAnswer if fault in LOST else ServerFailed
    reply = {**LOST, **FAILED}[fault]

    assert (expected, 3) == call_with_replies("get", reply, limits=Limits(attempts_max=3))
    assert (expected, 1) == call_with_replies("get", reply, limits=Limits(attempts_max=1))


def test_waits_between_repeats_grow_up_to_their_limit() -> None:
    async def collect_waits(chance: float, limits: Limits) -> list[float]:
        clock = ClientClock()
        terms = {"chance": lambda: chance, "limits": limits}
        async with Peer(FAILED["500"]) as peer:
            async with make_client(peer.base_url, clock, **terms) as client:
                with pytest.raises(ServerFailed):
                    await client.detail("jobs", "5d1c")
            assert len(clock.waits) + 1 == len(peer.requests)
        return clock.waits

    long = Limits(attempts_max=9, retry_seconds_max=1000.0)
    assert [0.5, 1, 2, 4, 8, 16, 20, 20] == asyncio.run(collect_waits(0.0, long))
    assert [0.75, 1.5, 3, 6, 12, 24, 30, 30] == asyncio.run(collect_waits(1.0, long))
    assert [0.5, 1, 2] == asyncio.run(
        collect_waits(0.0, Limits(attempts_max=9, retry_seconds_max=7.5))
    )
    assert [] == asyncio.run(collect_waits(0.0, Limits(attempts_max=9, retry_seconds_max=0.5)))


@pytest.mark.parametrize("fault", UNREADABLE)
def test_a_read_with_an_unreadable_answer_is_repeated_but_not_a_too_large_one(fault: str) -> None:
    reply, expected = UNREADABLE[fault]
    requests = FEW_ATTEMPTS_MAX if expected is UnreadableAnswer else 1

    assert (expected, requests) == call_with_replies("get", reply)


@pytest.mark.parametrize("call", [*READS, *WRITES])
def test_a_request_that_cannot_connect_is_tried_three_times(call: str) -> None:
    async def act() -> list[float]:
        async with Peer(send_nothing) as peer:
            address = peer.base_url
        clock, observer = ClientClock(), StatusObserver()
        async with make_client(address, clock, observer=observer) as client:
            with pytest.raises(Unreachable, match="cannot be reached"):
                await {**READS, **WRITES}[call](client)
        assert [None] * 3 == observer.statuses
        return clock.waits

    assert [0.5, 1.0] == asyncio.run(act())


@pytest.mark.parametrize("call", WRITES)
def test_a_write_that_could_not_connect_is_sent_once_the_server_listens(call: str) -> None:
    async def act() -> int:
        async with Peer(found) as peer:
            pass

        async def start_server(seconds: float) -> None:
            await peer.__aenter__()

        async with make_client(peer.base_url, sleep=start_server) as client:
            await WRITES[call](client)
        await peer.__aexit__()
        return len(peer.requests)

    assert 1 == asyncio.run(act())


@pytest.mark.parametrize("call", WRITES)
async def test_a_write_that_could_not_connect_in_time_is_not_in_doubt(call: str) -> None:
    limits = Limits(deadline_seconds=0.1)
    async with Peer(send_nothing) as peer:
        address = peer.base_url.replace("http:", "https:")
        async with make_client(address, limits=limits) as client:
            with pytest.raises(Unreachable, match=r"no connection in time, of 0\.1 s"):
                await WRITES[call](client)


async def test_gzip_answers_are_requested_and_unpacked() -> None:
    async with Peer(send_bytes(make_response(200, gzip.compress(BODY), GZIP))) as peer:
        async with make_client(peer.base_url) as client:
            assert RECORD == (await client.detail("jobs", "5d1c")).raw
        headers = peer.requests[0].headers
    assert "gzip" == headers["accept-encoding"]
    assert "application/json" == headers["content-type"] == headers["accept"]
    assert f"Bearer {KEY}" == headers["authorization"]


@pytest.mark.parametrize("fault", ["bomb", "endless"])
def test_bombs_and_endless_answers_are_refused_within_a_memory_limit(fault: str) -> None:
    size = 1_000_000
    reply = send_endless_body(b"HTTP/1.1 200 OK\r\n\r\n")
    if fault == "bomb":
        reply = send_bytes(make_response(200, gzip.compress(bytes(200 * size)), GZIP))
    tracemalloc.start()
    try:
        result = call_with_replies("get", reply, limits=Limits(body_bytes_max=size))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert (AnswerTooLarge, 1) == result
    assert peak < 8 * size
