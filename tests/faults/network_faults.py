"""Faults that the sandbox does not have: edited responses, and other 429s."""

from __future__ import annotations

import json
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


LISTS = "/api/v1/candidates"
DETAILS = "/api/v1/candidates/*"


def add_fault(sandbox: Sandbox, fault: Fault, path: str) -> None:
    """Add a fault for every request of that path, until faults are cleared."""
    sandbox.faults.add(fault, path=path, times=None)
