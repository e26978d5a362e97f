"""Lost and unreadable answers: a write is never sent twice, a read is repeated within its bounds.

Each fault is made on a real socket; the server counts what it was sent.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping

import pytest

from connector.client.client import FEW_ATTEMPTS_MAX, Limits
from connector.errors import ConnectorError
from connector.errors_api import (
    AnswerTooLarge,
    InDoubt,
    InvalidRequest,
    NoAnswer,
    NotFound,
    RateLimited,
    Redirected,
    ServerFailed,
    Unauthorized,
    UnexpectedStatus,
    Unreachable,
    UnreadableAnswer,
    ValidationFailed,
)
from tests.client.calls import READS, WRITES, Diary, client_of, records
from tests.client.peer import (
    RECORD,
    Peer,
    Reply,
    answers,
    breaks_off,
    created,
    endless,
    envelope,
    found,
    http,
    listed,
    sends,
    silent,
)
from tests.support.clock import ClientClock

HTML = b"<!doctype html><h1>Bad Gateway</h1>"
ANSWER = http(200, json.dumps({"data": RECORD}).encode())
LIMITS = Limits(deadline_seconds=0.3, body_bytes_max=200_000)
GZIP = {"Content-Encoding": "gzip"}

LOST: Mapping[str, Reply] = {
    "closed before a byte": breaks_off(),
    "closed within the status": breaks_off(ANSWER[:12]),
    "closed within the headers": breaks_off(ANSWER[:40]),
    "closed after the headers": breaks_off(ANSWER[: ANSWER.index(b"\r\n\r\n") + 4]),
    "closed within the body": breaks_off(ANSWER[:-5]),
    "chunks without an end": breaks_off(
        http(200, b"", {"Transfer-Encoding": "chunked"}).replace(b"Content-Length: 0\r\n", b"")
        + b'5\r\n{"dat'
    ),
    "silence": silent,
    "not http": breaks_off(b"SSH-2.0-OpenSSH_9.6\r\n"),
    "ten thousand headers": breaks_off(http(200, b"{}", {f"X-{n}": "abc" for n in range(10_000)})),
}
"""Ends without a whole answer: a read may be repeated."""

FAILED: Mapping[str, Reply] = {
    "500": answers(500, {"error": "server_error", "message": "Oh."}),
    "502 of a proxy": sends(http(502, HTML)),
    "503": sends(http(503)),
    "504": sends(http(504, HTML)),
}
"""Failures of the server: a read may be repeated."""

UNREADABLE: Mapping[str, tuple[Reply, type[ConnectorError]]] = {
    "html": (sends(http(200, HTML)), UnreadableAnswer),
    "half a json": (sends(http(200, b'{"data": {"id": "5')), UnreadableAnswer),
    "nan": (sends(http(200, b'{"data": NaN}')), UnreadableAnswer),
    "deep": (sends(http(200, b"[" * 100_000)), UnreadableAnswer),
    "empty": (sends(http(200)), UnreadableAnswer),
    "no object": (sends(http(200, b"[]")), UnreadableAnswer),
    "202": (sends(http(202, b"{}")), UnreadableAnswer),
    "no gzip": (sends(http(200, ANSWER, GZIP)), UnreadableAnswer),
    "brotli": (sends(http(200, b"{}", {"Content-Encoding": "br"})), UnreadableAnswer),
    "endless": (endless(b"HTTP/1.1 200 OK\r\n\r\n"), AnswerTooLarge),
    "300 headers": (sends(http(200, b"{}", {f"X-{n}": "" for n in range(300)})), AnswerTooLarge),
    "302": (sends(http(302, b"", {"Location": "https://other.example/x?y"})), Redirected),
    "307": (sends(http(307, b"", {"Location": "/login"})), Redirected),
}
"""Answers that are no answers of this API."""

PAGES_OF_PROXIES: Mapping[str, Reply] = {
    str(status): sends(http(status, HTML)) for status in (400, 401, 403, 404, 413, 422)
}
"""Refusals that are not in the API's words: they prove nothing about a write."""

REFUSED: Mapping[int, type[ConnectorError]] = {
    400: InvalidRequest,
    401: Unauthorized,
    404: NotFound,
    422: ValidationFailed,
}


def ends(call: str, *replies: Reply, limits: Limits = LIMITS) -> tuple[ConnectorError | None, int]:
    """The error in which a call ends, if any, and how many requests the server was sent."""

    async def act() -> tuple[ConnectorError | None, int]:
        async with Peer(*replies) as peer, client_of(peer.base_url, limits=limits) as client:
            try:
                await {**READS, **WRITES}[call](client)
            except ConnectorError as error:
                return error, len(peer.requests)
            return None, len(peer.requests)

    return asyncio.run(act())


@pytest.mark.parametrize("call", WRITES)
@pytest.mark.parametrize(
    "fault", [*LOST, *FAILED, *UNREADABLE, *(f"page {each}" for each in PAGES_OF_PROXIES)]
)
def test_a_write_is_never_sent_twice(call: str, fault: str) -> None:
    replies = {**LOST, **FAILED, **{name: each for name, (each, _) in UNREADABLE.items()}}
    replies |= {f"page {name}": each for name, each in PAGES_OF_PROXIES.items()}
    error, requests = ends(call, replies[fault], created)

    assert InDoubt is type(error)
    assert 1 == requests


@pytest.mark.parametrize("call", ["create", "update", "convert"])
@pytest.mark.parametrize("data", [None, {}, [], {"title": "A"}, {"id": None}])
def test_a_write_without_a_record_in_its_answer_is_in_doubt(call: str, data: object) -> None:
    assert (InDoubt, 1) == outcome_of(*ends(call, answers(201, {"data": data, "message": "Made."})))


@pytest.mark.parametrize("call", ["create", "update", "convert"])
def test_a_204_is_no_answer_to_a_write_with_a_record(call: str) -> None:
    assert (InDoubt, 1) == outcome_of(*ends(call, sends(http(204))))
    assert (None, 1) == ends("delete", sends(http(204)))


@pytest.mark.parametrize("call", WRITES)
@pytest.mark.parametrize("status", REFUSED)
def test_a_refusal_in_the_apis_words_is_no_doubt(call: str, status: int) -> None:
    reply = answers(status, {"error": "no", "message": "That cannot be."})

    assert (REFUSED[status], 1) == outcome_of(*ends(call, reply))


@pytest.mark.parametrize("call", [*READS, *WRITES])
@pytest.mark.parametrize("reset", [{}, {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "30"}])
def test_what_was_refused_for_its_pace_is_sent_again(call: str, reset: dict[str, str]) -> None:
    success = listed if call == "list" else found

    assert (None, 3) == ends(call, *[answers(429, {}, reset)] * 2, success)


def test_refusals_for_pace_end_within_bounds() -> None:
    limits = Limits(attempts_max=4, retry_seconds_max=10_000.0)
    error, requests = ends("get", answers(429, {}, {"X-RateLimit-Reset": "5"}), limits=limits)

    assert isinstance(error, RateLimited)
    assert error.reset_in_seconds is not None
    assert 2 <= requests <= 4


@pytest.mark.parametrize("call", READS)
@pytest.mark.parametrize("fault", [*LOST, *FAILED])
def test_a_read_is_repeated_until_it_succeeds(call: str, fault: str) -> None:
    reply = {**LOST, **FAILED}[fault]

    assert (None, 3) == ends(call, reply, reply, listed if call == "list" else found)


@pytest.mark.parametrize("fault", ["closed within the body", "500"])
def test_a_read_is_repeated_a_bounded_number_of_times(fault: str) -> None:
    expected = NoAnswer if fault in LOST else ServerFailed
    reply = {**LOST, **FAILED}[fault]

    assert (expected, 3) == outcome_of(*ends("get", reply, limits=Limits(attempts_max=3)))
    assert (expected, 1) == outcome_of(*ends("get", reply, limits=Limits(attempts_max=1)))


def test_repeats_wait_longer_each_time_and_not_beyond_their_bound() -> None:
    async def waits(chance: float, limits: Limits) -> list[float]:
        clock = ClientClock()
        terms = {"chance": lambda: chance, "limits": limits}
        async with Peer(FAILED["500"]) as peer:
            async with client_of(peer.base_url, clock, **terms) as client:
                with pytest.raises(ServerFailed):
                    await records(client, "jobs").get("5d1c")
            assert len(clock.waits) + 1 == len(peer.requests)
        return clock.waits

    long = Limits(attempts_max=9, retry_seconds_max=1000.0)
    assert [0.5, 1, 2, 4, 8, 16, 20, 20] == asyncio.run(waits(0.0, long))
    assert [0.75, 1.5, 3, 6, 12, 24, 30, 30] == asyncio.run(waits(1.0, long))
    assert [0.5, 1, 2] == asyncio.run(waits(0.0, Limits(attempts_max=9, retry_seconds_max=7.5)))
    assert [] == asyncio.run(waits(0.0, Limits(attempts_max=9, retry_seconds_max=0.5)))


@pytest.mark.parametrize("fault", UNREADABLE)
def test_a_read_that_was_answered_by_something_else_is_repeated_if_that_may_help(
    fault: str,
) -> None:
    reply, expected = UNREADABLE[fault]
    requests = FEW_ATTEMPTS_MAX if expected is UnreadableAnswer else 1

    assert (expected, requests) == outcome_of(*ends("get", reply))


@pytest.mark.parametrize(
    ("document", "call"),
    [
        ({"data": None}, "get"),
        ({"data": []}, "get"),
        ({"data": None, "pagination": {}}, "list"),
        ({"data": [RECORD]}, "list"),
        (envelope([RECORD], page=7), "list"),
    ],
)
def test_a_read_of_another_shape_is_refused(document: object, call: str) -> None:
    assert (UnreadableAnswer, FEW_ATTEMPTS_MAX) == outcome_of(*ends(call, answers(200, document)))


@pytest.mark.parametrize("status", [402, 405, 418])
def test_an_undocumented_status_is_said_to_be(status: int) -> None:
    reply = answers(status, {"message": "What?"})

    assert (UnexpectedStatus, 1) == outcome_of(*ends("get", reply))
    assert (InDoubt, 1) == outcome_of(*ends("create", reply))
    assert (InDoubt, 1) == outcome_of(*ends("create", sends(http(status, HTML))))


@pytest.mark.parametrize("call", [*READS, *WRITES])
def test_what_could_not_connect_is_tried_thrice(call: str) -> None:
    async def act() -> list[float]:
        async with Peer(silent) as peer:
            address = peer.base_url
        clock, diary = ClientClock(), Diary()
        async with client_of(address, clock, observer=diary) as client:
            with pytest.raises(Unreachable, match="cannot be reached"):
                await {**READS, **WRITES}[call](client)
        assert [None] * 3 == diary.statuses
        return clock.waits

    assert [0.5, 1.0] == asyncio.run(act())


@pytest.mark.parametrize("call", WRITES)
def test_what_could_not_connect_succeeds_once_somebody_listens(call: str) -> None:
    async def act() -> int:
        async with Peer(found) as peer:
            pass

        async def open_the_door(seconds: float) -> None:
            await peer.__aenter__()

        async with client_of(peer.base_url, sleep=open_the_door) as client:
            await WRITES[call](client)
        await peer.__aexit__()
        return len(peer.requests)

    assert 1 == asyncio.run(act())


def outcome_of(
    error: ConnectorError | None, requests: int
) -> tuple[type[ConnectorError] | None, int]:
    """Return how a call ended: the kind of its error."""
    return None if error is None else type(error), requests
