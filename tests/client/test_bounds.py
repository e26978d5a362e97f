"""The bounds of one attempt: time, size and memory, whatever the other side does."""

from __future__ import annotations

import asyncio
import gzip
import json
import tracemalloc

import pytest

from connector.client.client import Limits
from connector.errors_api import AnswerTooLarge, InDoubt, NoAnswer, NotTheApi, Unreachable
from connector.sandbox.faults import Drip
from connector.sandbox.server import Sandbox
from tests.client.calls import KEY, WRITES, Diary, client_of, records
from tests.client.peer import RECORD, Peer, Reply, endless, http, sends, silent

BODY = json.dumps({"data": RECORD}).encode()
GZIP = {"Content-Encoding": "gzip"}


async def raw_of(reply: Reply, body_bytes_max: int) -> dict[str, object]:
    """The record that comes of getting that reply with that cap."""
    limits = Limits(body_bytes_max=body_bytes_max)
    async with Peer(reply) as peer, client_of(peer.base_url, limits=limits) as client:
        return dict((await records(client, "jobs").get("5d1c")).raw)


def test_a_slow_drip_ends_at_the_deadline() -> None:
    diary = Diary()
    with Sandbox(counts={"jobs": 1}, keys={KEY: ("*",)}) as sandbox:
        id = next(iter(sandbox.store.records("jobs")))
        sandbox.faults.add(Drip(0.25), times=None)

        async def act() -> None:
            limits = Limits(deadline_seconds=0.6, attempts_max=1)
            async with client_of(sandbox.base_url, limits=limits, observer=diary) as client:
                with pytest.raises(NoAnswer, match=r"no complete answer in time, of 0\.6 s"):
                    await records(client, "jobs").get(id)

        asyncio.run(act())

    assert [None] == diary.statuses


@pytest.mark.parametrize("call", WRITES)
def test_silence_leaves_a_write_in_doubt_at_the_deadline(call: str) -> None:
    async def act() -> None:
        limits = Limits(deadline_seconds=0.2)
        async with Peer(silent) as peer, client_of(peer.base_url, limits=limits) as client:
            with pytest.raises(InDoubt, match=r"no complete answer in time, of 0\.2 s"):
                await WRITES[call](client)

    asyncio.run(act())


@pytest.mark.parametrize("call", WRITES)
def test_a_deadline_before_anything_was_sent_is_no_doubt(call: str) -> None:
    async def act() -> None:
        limits = Limits(deadline_seconds=0.1)
        async with Peer(silent) as peer:
            address = peer.base_url.replace("http:", "https:")
            async with client_of(address, limits=limits) as client:
                with pytest.raises(Unreachable, match=r"no connection in time, of 0\.1 s"):
                    await WRITES[call](client)

    asyncio.run(act())


@pytest.mark.parametrize("is_packed", [False, True])
def test_the_cap_is_exact(is_packed: bool) -> None:
    body = gzip.compress(BODY) if is_packed else BODY
    reply = sends(http(200, body, GZIP if is_packed else {}))

    assert RECORD == asyncio.run(raw_of(reply, len(BODY)))
    with pytest.raises(AnswerTooLarge, match=f"more than {len(BODY) - 1} bytes"):
        asyncio.run(raw_of(reply, len(BODY) - 1))


def test_packed_answers_are_asked_for_and_read() -> None:
    async def act() -> None:
        async with Peer(sends(http(200, gzip.compress(BODY), GZIP))) as peer:
            async with client_of(peer.base_url) as client:
                assert RECORD == (await records(client, "jobs").get("5d1c")).raw
            headers = peer.requests[0].headers
        assert "gzip" == headers["accept-encoding"]
        assert "application/json" == headers["content-type"] == headers["accept"]
        assert f"Bearer {KEY}" == headers["authorization"]

    asyncio.run(act())


@pytest.mark.parametrize("fault", ["bomb", "bomb in a bomb", "endless"])
def test_no_answer_fills_the_memory(fault: str) -> None:
    cap = 1_000_000
    bomb = gzip.compress(bytes(200 * cap))
    replies = {
        "bomb": sends(http(200, bomb, GZIP)),
        "bomb in a bomb": sends(http(200, gzip.compress(bomb), {"Content-Encoding": "gzip, gzip"})),
        "endless": endless(b"HTTP/1.1 200 OK\r\n\r\n"),
    }

    async def act() -> None:
        limits = Limits(body_bytes_max=cap)
        async with Peer(replies[fault]) as peer, client_of(peer.base_url, limits=limits) as client:
            expected = (
                "unknown compression" if fault == "bomb in a bomb" else "more than 1000000 bytes"
            )
            with pytest.raises(NotTheApi, match=expected):
                await records(client, "jobs").get("5d1c")

    tracemalloc.start()
    try:
        asyncio.run(act())
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert peak < 8 * cap
