"""Faults that can be requested, like those of networks, proxies and overloaded servers.

A test adds a fault with conditions (method, path, number of the request, probability) and a number
of times. The first fault that matches a request performs it. Each fault is a dataclass whose
`perform` defines the whole exchange. Differences that affect every request are behaviours instead.
"""

from __future__ import annotations

import json
import random as chance
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from threading import RLock
from typing import Any, Literal

from starlette.responses import HTMLResponse, JSONResponse

from connector.sandbox.app import Fault, HttpExchange
from connector.sandbox.checks import CODES

When = Literal["before", "after"]
"""Whether the fault comes before the request has had its effect, or after."""

_HTML = b"<!doctype html><html><head><title>%d</title></head><body><h1>Error</h1></body></html>"
# A drip sends its body in this many parts.
_DRIPS = 8


@dataclass(frozen=True, slots=True)
class Latency:
    """Complete response after `seconds`. The effect happens even if the client disconnects."""

    seconds: float

    async def perform(self, exchange: HttpExchange) -> None:
        """Wait, then send the application's response."""
        await exchange.wait(self.seconds)
        await exchange.send(await exchange.call_application())


@dataclass(frozen=True, slots=True)
class Status:
    """Error response of the API with this status. The effect happens if `when` is "after"."""

    status: int = 500
    when: When = "before"

    async def perform(self, exchange: HttpExchange) -> None:
        """Send the error."""
        if self.when == "after":
            await exchange.call_application()
        body = {"error": CODES.get(self.status, "error"), "message": "Something went wrong."}
        await exchange.send(JSONResponse(body, self.status))


@dataclass(frozen=True, slots=True)
class HtmlPage:
    """HTML error page of a proxy, without rate headers. The effect happens if `when` is "after"."""

    status: int = 502
    when: When = "before"

    async def perform(self, exchange: HttpExchange) -> None:
        """Send the page."""
        if self.when == "after":
            await exchange.call_application()
        page = HTMLResponse(_HTML % self.status, self.status)
        await exchange.send(page, rate_headers=False)


@dataclass(frozen=True, slots=True)
class Drop:
    """Connection that is closed without a response.

    The effect never happens ("none"), has happened ("applied"), or happens when
    `Sandbox.apply_delayed_effects` is called ("later").
    """

    effect: Literal["none", "applied", "later"] = "none"

    async def perform(self, exchange: HttpExchange) -> None:
        """Close the connection."""
        if self.effect == "applied":
            await exchange.call_application()
        if self.effect == "later":
            exchange.delay_effect()
        await exchange.close_connection()


@dataclass(frozen=True, slots=True)
class Drip:
    """Response whose body is sent in eight parts, each after a pause of `seconds`."""

    seconds: float

    async def perform(self, exchange: HttpExchange) -> None:
        """Send the body part by part."""
        response = await exchange.call_application()
        body = bytes(response.body)
        await exchange.send_head(response)
        size = -(-len(body) // _DRIPS) or 1
        for start in range(0, len(body), size):
            await exchange.wait(self.seconds)
            await exchange.send_part(body[start : start + size])
        await exchange.send_part(b"", is_last=True)


@dataclass(frozen=True, slots=True)
class Redirect:
    """Redirect to another address. The effect does not happen."""

    target: str
    status: int = 302

    async def perform(self, exchange: HttpExchange) -> None:
        """Send the redirect."""
        await exchange.send(HTMLResponse(b"", self.status, {"location": self.target}))


@dataclass(frozen=True, slots=True)
class Crossed:
    """Response with another record, like from a cache that confuses responses. The effect happens.

    A delete is answered with 200 and the other record. A list is answered correctly.
    """

    async def perform(self, exchange: HttpExchange) -> None:
        """Send the application's response with the other record."""
        other = exchange.other_record()
        response = await exchange.call_application()
        document = json.loads(bytes(response.body) or b'{"message": "Done."}')
        is_list = isinstance(document.get("data"), list)
        if other is not None and response.status_code < 400 and not is_list:
            status = 200 if response.status_code == 204 else response.status_code
            response = JSONResponse({**document, "data": other}, status)
        await exchange.send(response)


@dataclass(slots=True)
class PlannedFault:
    """Fault for requests with this method and path.

    Attributes:
        fault: The fault.
        method: HTTP method; None for all methods.
        path: Pattern of the whole path, for example `/api/v1/jobs/*`.
        nth: Number of the only matching request with the fault, counted from 1; None for all.
        probability: Share of the matching requests with the fault.
        times: Maximum number of requests with the fault; None for no maximum.
        matched: Number of matching requests.
        hits: Number of requests with the fault.
    """

    fault: Fault
    method: str | None = None
    path: str = "*"
    nth: int | None = None
    probability: float = 1.0
    times: int | None = 1
    matched: int = field(default=0, init=False)
    hits: int = field(default=0, init=False)

    def match(self, method: str, path: str, random: chance.Random) -> bool:
        """Count a matching request; return True if the fault must be performed for it."""
        if self.method not in (None, method) or not fnmatchcase(path, self.path):
            return False
        if self.times is not None and self.hits >= self.times:
            return False
        self.matched += 1
        if self.nth not in (None, self.matched):
            return False
        is_hit = self.probability >= 1 or random.random() < self.probability
        self.hits += is_hit
        return is_hit


class Faults:
    """Planned faults in order. They can be changed while requests are served."""

    def __init__(self, random: chance.Random) -> None:
        self._random = random
        self._lock = RLock()
        self._planned: list[PlannedFault] = []

    def add(self, fault: Fault, **conditions: Any) -> PlannedFault:
        """Plan a fault; the conditions are attributes of `PlannedFault`."""
        planned = PlannedFault(fault, **conditions)
        with self._lock:
            self._planned.append(planned)
        return planned

    def clear(self) -> None:
        """Remove all planned faults."""
        with self._lock:
            self._planned.clear()

    def match(self, method: str, path: str) -> Fault | None:
        """Return the first planned fault for a request, and count it, or None."""
        with self._lock:
            for each in self._planned:
                if each.match(method, path, self._random):
                    return each.fault
        return None
