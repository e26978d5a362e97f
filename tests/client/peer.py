"""Server on a real socket that replies to each request as the test defines."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Self

Reply = Callable[[asyncio.StreamWriter], Awaitable[None]]
"""What the server does once it has read a request; the connection is kept if it returns."""

PARTS_MAX = 10_000
"""Maximum number of parts of 64 KiB in an endless body."""


@dataclass(frozen=True)
class ReceivedRequest:
    """Request as the server received it, with header names in lower case."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes


class Peer:
    """Server during an `async with` block. It sends the replies in order, and the last one to all
    later requests.
    """

    def __init__(self, *replies: Reply, tls: ssl.SSLContext | None = None) -> None:
        self.requests: list[ReceivedRequest] = []
        self.has_request = asyncio.Event()
        self.port = 0
        self.in_flight = self.in_flight_max = 0
        self._replies, self._tls = list(replies), tls
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def base_url(self) -> str:
        """Return the address before `/api/v1`."""
        return f"{'http' if self._tls is None else 'https'}://127.0.0.1:{self.port}"

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(
            self._accept, "127.0.0.1", self.port, ssl=self._tls
        )
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *exception: object) -> None:
        assert self._server is not None
        self._server.close()
        for each in self._tasks:
            each.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve the requests of one connection, and record each."""
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        with suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            while True:
                self.requests.append(await _read_request(reader))
                self.has_request.set()
                reply = self._replies.pop(0) if len(self._replies) > 1 else self._replies[0]
                self.in_flight += 1
                self.in_flight_max = max(self.in_flight_max, self.in_flight)
                try:
                    await reply(writer)
                    await writer.drain()
                finally:
                    self.in_flight -= 1
                if writer.is_closing():
                    break
        writer.transport.abort()
        self._tasks.discard(task)


async def _read_request(reader: asyncio.StreamReader) -> ReceivedRequest:
    """Read one request with its body."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    method, target, _ = head[0].split(" ")
    pairs = (line.split(": ", 1) for line in head[1:] if line)
    headers = {name.lower(): value for name, value in pairs}
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    return ReceivedRequest(method, target, headers, body)


# -- replies -------------------------------------------------------------------------------------


def send_bytes(data: bytes) -> Reply:
    """Return a reply that sends these bytes and keeps the connection open."""

    async def reply(writer: asyncio.StreamWriter) -> None:
        writer.write(data)

    return reply


def send_and_close(data: bytes = b"") -> Reply:
    """Return a reply that sends these bytes and closes the connection."""

    async def reply(writer: asyncio.StreamWriter) -> None:
        writer.write(data)
        await writer.drain()
        writer.close()

    return reply


def send_endless_body(head: bytes) -> Reply:
    """Return a reply that sends a head, and parts of a body as long as the client reads."""

    async def reply(writer: asyncio.StreamWriter) -> None:
        writer.write(head)
        for _ in range(PARTS_MAX):
            writer.write(b" " * 65_536)
            await writer.drain()

    return reply


async def send_nothing(writer: asyncio.StreamWriter) -> None:
    """Send nothing, and keep the connection open."""
    await asyncio.Event().wait()


def reply_after(event: asyncio.Event, then: Reply) -> Reply:
    """Return a reply that is sent after the event."""

    async def reply(writer: asyncio.StreamWriter) -> None:
        await event.wait()
        await then(writer)

    return reply


def make_response(
    status: int,
    body: bytes = b"",
    headers: Mapping[str, str] | None = None,
    *,
    missing_bytes: int = 0,
) -> bytes:
    """Return the bytes of a response. The body lacks its last `missing_bytes`."""
    fields = {"Content-Type": "application/json", "Content-Length": str(len(body))}
    if status == 204:
        fields = {}
    lines = [f"{name}: {value}" for name, value in {**fields, **(headers or {})}.items()]
    head = "\r\n".join([f"HTTP/1.1 {status} Words", *lines]).encode("latin-1")
    return head + b"\r\n\r\n" + body[: len(body) - missing_bytes]


def send_json(status: int, document: Any, headers: Mapping[str, str] | None = None) -> Reply:
    """Return a reply that sends a JSON document."""
    return send_bytes(make_response(status, json.dumps(document).encode(), headers))


def make_list_document(items: list[dict[str, Any]], **pagination: int) -> dict[str, Any]:
    """Return the JSON document of a page of a list (API 4.1), by default of the only page."""
    numbers = {"page": 1, "per_page": 100, "total": len(items), "total_pages": 1}
    return {"data": items, "pagination": {**numbers, **pagination}}


RECORD = {"id": "5d1c", "created_at": "2026-01-01T00:00:00Z", "updated_at": "2026-01-02T00:00:00Z"}
"""The least that a record's answer holds."""

found = send_json(200, {"data": RECORD})
created = send_json(201, {"data": RECORD, "message": "Made."})
listed = send_json(200, make_list_document([RECORD]))
