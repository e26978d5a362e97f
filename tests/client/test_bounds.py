"""Limits of one attempt: time, size and memory, whatever the server sends."""

from __future__ import annotations

import asyncio
import gzip
import json
import tracemalloc

import pytest

from connector.client.client import Limits
from connector.errors import InDoubt, NotTheApi, Unreachable
from tests.client.calls import KEY, WRITES, make_client
from tests.client.peer import (
    RECORD,
    Peer,
    make_response,
    send_bytes,
    send_endless_body,
    send_nothing,
)

BODY = json.dumps({"data": RECORD}).encode()
GZIP = {"Content-Encoding": "gzip"}


@pytest.mark.parametrize("call", WRITES)
def test_a_write_without_a_response_is_in_doubt_after_the_deadline(call: str) -> None:
    async def act() -> None:
        limits = Limits(deadline_seconds=0.2)
        async with Peer(send_nothing) as peer, make_client(peer.base_url, limits=limits) as client:
            with pytest.raises(InDoubt, match=r"no complete answer in time, of 0\.2 s"):
                await WRITES[call](client)

    asyncio.run(act())


@pytest.mark.parametrize("call", WRITES)
def test_a_write_that_could_not_connect_in_time_is_not_in_doubt(call: str) -> None:
    async def act() -> None:
        limits = Limits(deadline_seconds=0.1)
        async with Peer(send_nothing) as peer:
            address = peer.base_url.replace("http:", "https:")
            async with make_client(address, limits=limits) as client:
                with pytest.raises(Unreachable, match=r"no connection in time, of 0\.1 s"):
                    await WRITES[call](client)

    asyncio.run(act())


def test_gzip_responses_are_requested_and_decompressed() -> None:
    async def act() -> None:
        async with Peer(send_bytes(make_response(200, gzip.compress(BODY), GZIP))) as peer:
            async with make_client(peer.base_url) as client:
                assert RECORD == (await client.detail("jobs", "5d1c")).raw
            headers = peer.requests[0].headers
        assert "gzip" == headers["accept-encoding"]
        assert "application/json" == headers["content-type"] == headers["accept"]
        assert f"Bearer {KEY}" == headers["authorization"]

    asyncio.run(act())


@pytest.mark.parametrize("fault", ["bomb", "bomb in a bomb", "endless"])
def test_bombs_and_endless_responses_are_rejected_within_a_memory_limit(fault: str) -> None:
    cap = 1_000_000
    bomb = gzip.compress(bytes(200 * cap))
    replies = {
        "bomb": send_bytes(make_response(200, bomb, GZIP)),
        "bomb in a bomb": send_bytes(
            make_response(200, gzip.compress(bomb), {"Content-Encoding": "gzip, gzip"})
        ),
        "endless": send_endless_body(b"HTTP/1.1 200 OK\r\n\r\n"),
    }

    async def act() -> None:
        limits = Limits(body_bytes_max=cap)
        async with (
            Peer(replies[fault]) as peer,
            make_client(peer.base_url, limits=limits) as client,
        ):
            expected = (
                "unknown compression" if fault == "bomb in a bomb" else "more than 1000000 bytes"
            )
            with pytest.raises(NotTheApi, match=expected):
                await client.detail("jobs", "5d1c")

    tracemalloc.start()
    try:
        asyncio.run(act())
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert peak < 8 * cap
