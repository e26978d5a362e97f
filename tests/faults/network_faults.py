"""Faults beyond the sandbox's own: answers edited on their way, and bytes cut on the wire."""

from __future__ import annotations

import json
import socket
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from starlette.responses import JSONResponse, Response

from connector.sandbox.exchange import Fault, HttpExchange
from connector.sandbox.server import Sandbox

Edit = Callable[[dict[str, Any]], None]
"""Changes an answer's document in place."""


@dataclass(frozen=True, slots=True)
class EditedResponse:
    """The request is served; a success says what `edit` makes of it."""

    edit: Edit

    async def perform(self, exchange: HttpExchange) -> None:
        """Serve, and answer with the edited document."""
        response = await exchange.serve()
        if response.status_code == 200:
            document = json.loads(bytes(response.body))
            self.edit(document)
            # Not a `JSONResponse`, which refuses NaN.
            response = Response(json.dumps(document), media_type="application/json")
        await exchange.send(response)


@dataclass(frozen=True, slots=True)
class RateLimitRefusal:
    """A 429 without effect, with exactly these headers of the rate limit.

    `reset_in_seconds` is added to the server's time; None leaves the reset out.
    """

    reset_in_seconds: float | None
    headers: Mapping[str, str] = field(default_factory=lambda: {"x-ratelimit-remaining": "0"})

    async def perform(self, exchange: HttpExchange) -> None:
        body = {"error": "rate_limit_exceeded", "message": "Too many requests."}
        claims = dict(self.headers)
        if self.reset_in_seconds is not None:
            reset = int(exchange.store.clock().timestamp() + self.reset_in_seconds)
            claims["x-ratelimit-reset"] = str(reset)
        await exchange.send(JSONResponse(body, 429, claims), rate_headers=False)


Where = Literal["before", "in the status", "in the headers", "after the headers", "in the body"]


@dataclass(frozen=True, slots=True)
class CutResponse:
    """The request is served; its answer's bytes end there, by a reset or by a mere close."""

    where: Where
    is_reset: bool = True

    async def perform(self, exchange: HttpExchange) -> None:
        """Send the first bytes and break the connection."""
        data = as_bytes(await exchange.serve())
        body_at = data.index(b"\r\n\r\n") + 4
        ends = {
            "before": 0,
            "in the status": 10,
            "in the headers": body_at // 2,
            "after the headers": body_at,
            "in the body": (body_at + len(data)) // 2,
        }
        await send_bytes(exchange, data[: ends[self.where]], is_reset=self.is_reset)


@dataclass(frozen=True, slots=True)
class RawResponse:
    """Exactly these bytes come, whatever they are, and then the connection ends."""

    data: bytes

    async def perform(self, exchange: HttpExchange) -> None:
        await send_bytes(exchange, self.data)


@dataclass(slots=True)
class FaultFromRequest:
    """From its n-th meeting on another fault, and before that nothing.

    Plan it with `times=None`.
    """

    number: int
    fault: Fault
    met: int = 0

    async def perform(self, exchange: HttpExchange) -> None:
        """Serve, or perform the fault."""
        self.met += 1
        if self.met < self.number:
            await exchange.send(await exchange.serve())
        else:
            await self.fault.perform(exchange)


def as_bytes(response: Response) -> bytes:
    """The answer as it goes over the wire, with the headers that every server sends."""
    head = b"HTTP/1.1 %d Words\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % (
        response.status_code,
        len(response.body),
    )
    return head + bytes(response.body)


async def send_bytes(exchange: HttpExchange, data: bytes, *, is_reset: bool = False) -> None:
    """Write past the server's own protocol, and end the connection."""
    # The only thing of uvicorn's that the sandbox shows; its protocol owns the transport.
    protocol: Any = exchange.scope["state"]["sandbox.hang_up"].__self__
    protocol.transport.write(data)
    if is_reset:
        raw: socket.socket = protocol.transport.get_extra_info("socket")
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    await exchange.drop()


LISTS = "/api/v1/candidates"
DETAILS = "/api/v1/candidates/*"


def plan(sandbox: Sandbox, fault: Fault, path: str) -> None:
    """The fault for every request of that path, until faults are cleared."""
    sandbox.faults.add(fault, path=path, times=None)
