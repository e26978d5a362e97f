"""One request and its answer, from the first byte to the last: `Exchange`.

A fault performs an exchange through these few verbs and needs to know nothing of ASGI. The
exchange knows no resource and no rule of the API; serving is the application's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from starlette.types import Message, Receive, Scope, Send

from connector.sandbox.limits import Allowance

JSON = b"application/json"


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer before it is sent; `headers` replace those that the sandbox adds by itself."""

    status: int
    body: bytes
    content_type: bytes = JSON
    headers: Mapping[bytes, bytes] = field(default_factory=dict)
    has_rate_headers: bool = True
    is_length_known: bool = True


class Server(Protocol):
    """What an exchange asks of the application."""

    async def serve(self, scope: Scope, body: bytes, at: datetime | None) -> Reply:
        """Answer the request, with its effect, which `at` dates."""

    def now(self) -> datetime:
        """The server's time."""

    def allowance(self) -> Allowance:
        """What the rate headers would say now."""

    def headers(self, reply: Reply) -> list[tuple[bytes, bytes]]:
        """All headers of an answer."""

    def postpone(self, effect: Callable[[], Awaitable[Reply]]) -> None:
        """Keep an effect until it is released."""

    def record(self, exchange: Exchange, status: int | None) -> None:
        """Note that the exchange ended, or began to end, with that status."""


class Exchange:
    """One request on its way through the server."""

    def __init__(
        self, server: Server, scope: Scope, body: bytes, receive: Receive, send: Send
    ) -> None:
        self.scope, self.body = scope, body
        self.is_gone = self.is_recorded = False
        self._server, self._receive, self._send = server, receive, send

    @property
    def method(self) -> str:
        """The request's method."""
        method: str = self.scope["method"]
        return method

    @property
    def path(self) -> str:
        """The request's path, without the query."""
        path: str = self.scope["path"]
        return path

    def now(self) -> datetime:
        """The server's time."""
        return self._server.now()

    def allowance(self) -> Allowance:
        """What the rate headers would say now."""
        return self._server.allowance()

    async def serve(self, *, at: datetime | None = None) -> Reply:
        """Let the application answer, with the request's effect; nothing is sent yet."""
        return await self._server.serve(self.scope, self.body, at)

    def reply(self, status: int, body: bytes, content_type: bytes = JSON) -> Reply:
        """An answer that the application did not give."""
        return Reply(status, body, content_type)

    def postpone(self) -> None:
        """Keep the effect until it is released, long after the client has gone."""
        self._server.postpone(self.serve)

    async def send(self, reply: Reply) -> None:
        """Send the whole answer."""
        await self.send_head(reply)
        # For HEAD the server itself leaves the body out.
        await self._send({"type": "http.response.body", "body": reply.body})

    async def send_head(self, reply: Reply) -> None:
        """Send the status and the headers. The exchange is in the log from here on."""
        self._server.record(self, reply.status)
        start: Message = {
            "type": "http.response.start",
            "status": reply.status,
            "headers": self._server.headers(reply),
        }
        await self._send(start)

    async def send_part(self, part: bytes) -> None:
        """Send a part of the body; more follows."""
        await self._send({"type": "http.response.body", "body": part, "more_body": True})

    async def finish(self) -> None:
        """End the body."""
        await self._send({"type": "http.response.body", "body": b""})

    async def wait(self, seconds: float) -> None:
        """Wait, but no longer than the client does: its leaving ends the wait."""
        if self.is_gone:
            return
        try:
            async with asyncio.timeout(seconds):
                while (await self._receive())["type"] != "http.disconnect":
                    pass
        except TimeoutError:
            return
        self.is_gone = True

    async def drop(self) -> None:
        """End the connection, once what was sent has left."""
        self._server.record(self, None)
        self.scope["state"]["sandbox.hang_up"]()
        await self.wait(HANG_UP_SECONDS_MAX)


HANG_UP_SECONDS_MAX = 5
"""How long the end of a connection may take before the exchange is given up."""
