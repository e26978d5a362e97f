"""Faults that the sandbox does not have: edited responses, and bytes cut on the wire."""

from __future__ import annotations

import json
import socket
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from starlette.responses import JSONResponse, Response

from connector.sandbox.app import Fault, HttpExchange
from connector.sandbox.server import Sandbox

Edit = Callable[[dict[str, Any]], None]
"""Changes an answer's document in place."""


@dataclass(frozen=True, slots=True)
class EditedResponse:
    """Serves the request, and lets `edit` change the JSON document of a response with 200."""

    edit: Edit

    async def perform(self, exchange: HttpExchange) -> None:
        """Serve the request, and send the edited document."""
        response = await exchange.call_application()
        if response.status_code == 200:
            document = json.loads(bytes(response.body))
            self.edit(document)
            # Not a `JSONResponse`, which refuses NaN.
            response = Response(json.dumps(document), media_type="application/json")
        await exchange.send(response)


def wrong_total(total: float) -> EditedResponse:
    """Return the fault of a list whose `total` and `total_pages` are this number."""
    pages = {"total": total, "total_pages": total}
    return EditedResponse(lambda document: document["pagination"].update(pages))


@dataclass(frozen=True, slots=True)
class RateLimitRefusal:
    """Responds with 429 and exactly these headers, without performing the request.

    The reset header is `reset_in_seconds` after the server's time; None omits it.
    """

    reset_in_seconds: float | None
    headers: Mapping[str, str] = field(default_factory=lambda: {"x-ratelimit-remaining": "0"})

    async def perform(self, exchange: HttpExchange) -> None:
        """Send the 429."""
        body = {"error": "rate_limit_exceeded", "message": "Too many requests."}
        claims = dict(self.headers)
        if self.reset_in_seconds is not None:
            reset = int(exchange.store.clock().timestamp() + self.reset_in_seconds)
            claims["x-ratelimit-reset"] = str(reset)
        await exchange.send(JSONResponse(body, 429, claims), rate_headers=False)


Where = Literal["before", "in the status", "in the headers", "after the headers", "in the body"]


@dataclass(frozen=True, slots=True)
class CutResponse:
    """Performs the request, sends a part of the response, then resets or closes the connection."""

    where: Where
    is_reset: bool = True

    async def perform(self, exchange: HttpExchange) -> None:
        """Send the first bytes and break the connection."""
        data = encode_response(await exchange.call_application())
        body_at = data.index(b"\r\n\r\n") + 4
        ends = {
            "before": 0,
            "in the status": 10,
            "in the headers": body_at // 2,
            "after the headers": body_at,
            "in the body": (body_at + len(data)) // 2,
        }
        await write_raw(exchange, data[: ends[self.where]], is_reset=self.is_reset)


@dataclass(frozen=True, slots=True)
class RawBytes:
    """Sends exactly these bytes instead of a response, then closes the connection."""

    data: bytes

    async def perform(self, exchange: HttpExchange) -> None:
        """Send the bytes and close the connection."""
        await write_raw(exchange, self.data)


@dataclass(slots=True)
class FromRequest:
    """Performs another fault from request `number` on. Add it with `times=None`."""

    number: int
    fault: Fault
    met: int = 0

    async def perform(self, exchange: HttpExchange) -> None:
        """Serve the request, or perform the fault."""
        self.met += 1
        if self.met < self.number:
            await exchange.send(await exchange.call_application())
        else:
            await self.fault.perform(exchange)


def encode_response(response: Response) -> bytes:
    """Return status line, content headers and body of the response as bytes."""
    head = b"HTTP/1.1 %d Words\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % (
        response.status_code,
        len(response.body),
    )
    return head + bytes(response.body)


async def write_raw(exchange: HttpExchange, data: bytes, *, is_reset: bool = False) -> None:
    """Write bytes without the server's own protocol, and close the connection."""
    # The sandbox exposes only this method of uvicorn's protocol, which owns the transport.
    protocol: Any = exchange.scope["state"]["sandbox.hang_up"].__self__
    protocol.transport.write(data)
    if is_reset:
        raw: socket.socket = protocol.transport.get_extra_info("socket")
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    await exchange.close_connection()


LISTS = "/api/v1/candidates"
DETAILS = "/api/v1/candidates/*"


def add_fault(sandbox: Sandbox, fault: Fault, path: str) -> None:
    """Add a fault for every request of that path, until faults are cleared."""
    sandbox.faults.add(fault, path=path, times=None)
