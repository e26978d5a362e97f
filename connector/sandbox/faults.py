"""Faults that can be requested, like those of networks, proxies and overloaded servers.

A test adds a fault with conditions (method, path, number of the request, probability) and a number
of times. The first fault that matches a request performs it. Each fault is a dataclass whose
`perform` defines the whole exchange. Differences that affect every request are behaviours instead.
"""

from __future__ import annotations

import json
import random as chance
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from email.utils import format_datetime
from fnmatch import fnmatchcase
from inspect import signature
from threading import RLock
from typing import Any, Literal
from urllib.parse import parse_qsl, urlencode

from pydantic import TypeAdapter, ValidationError
from starlette.responses import HTMLResponse, JSONResponse, Response

from connector.errors import SettingsError, UnknownName
from connector.sandbox.api_answer import CODES
from connector.sandbox.exchange import Fault, HttpExchange

When = Literal["before", "after"]
"""Whether the fault comes before the request has had its effect, or after."""

_HTML = b"<!doctype html><html><head><title>%d</title></head><body><h1>Error</h1></body></html>"
_DAYS_FAR = 20
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
class NotJson:
    """Response with the correct status and a body that is not JSON. The effect happens."""

    body: bytes = b"OK"

    async def perform(self, exchange: HttpExchange) -> None:
        """Send the status of the application's response with another body."""
        status = (await exchange.call_application()).status_code
        await exchange.send(Response(self.body, status, media_type="application/json"))


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
class Truncated:
    """Response that ends after half of the announced body. The effect happens."""

    async def perform(self, exchange: HttpExchange) -> None:
        """Send the headers and half of the body, then close the connection."""
        response = await exchange.call_application()
        await exchange.send_head(response)
        await exchange.send_part(bytes(response.body[: len(response.body) // 2]))
        await exchange.close_connection()


@dataclass(frozen=True, slots=True)
class Endless:
    """Response with an endless body of white space, until the client disconnects."""

    part: bytes = b" " * 65_536

    async def perform(self, exchange: HttpExchange) -> None:
        """Send parts of the body until the client disconnects."""
        response = await exchange.call_application()
        del response.headers["content-length"]
        await exchange.send_head(response)
        while not exchange.is_gone:
            await exchange.send_part(self.part)
            # A turn of the loop: it is here that the client's leaving is noticed.
            await exchange.wait(0)


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
class Limited:
    """Response 429 without effect. `reset` selects its rate headers.

    They are correct ("right"), missing ("missing"), or announce a reset in twenty days ("far") or a
    minute ago ("past"), or the seconds until the reset instead of a timestamp ("seconds").
    """

    reset: Literal["right", "missing", "far", "past", "seconds"] = "right"

    async def perform(self, exchange: HttpExchange) -> None:
        """Send the 429."""
        body = {"error": CODES[429], "message": "Too many requests."}
        now = exchange.store.clock()
        right = exchange.limits.rate_figures(now).reset_at
        at = {
            "right": right,
            "far": int((now + timedelta(days=_DAYS_FAR)).timestamp()),
            "past": int(now.timestamp()) - 60,
            "seconds": right - int(now.timestamp()),
        }.get(self.reset)
        claims = {"x-ratelimit-remaining": "0", "x-ratelimit-reset": str(at)}
        if self.reset == "missing":
            claims = {}
        await exchange.send(JSONResponse(body, 429, claims), rate_headers=bool(claims))


@dataclass(frozen=True, slots=True)
class WrongRateHeaders:
    """Response with other rate headers, or without them if `headers` is empty."""

    headers: dict[str, str] = field(default_factory=dict)

    async def perform(self, exchange: HttpExchange) -> None:
        """Send the application's response with these headers."""
        response = await exchange.call_application()
        response.headers.update(self.headers)
        await exchange.send(response, rate_headers=bool(self.headers))


@dataclass(frozen=True, slots=True)
class Redirect:
    """Redirect to another address. The effect does not happen."""

    target: str
    status: int = 302

    async def perform(self, exchange: HttpExchange) -> None:
        """Send the redirect."""
        await exchange.send(HTMLResponse(b"", self.status, {"location": self.target}))


@dataclass(frozen=True, slots=True)
class LateCommit:
    """Write with a timestamp `seconds` in the past, like the commit of a long transaction."""

    seconds: float

    async def perform(self, exchange: HttpExchange) -> None:
        """Apply the request with the earlier timestamp, and send the response."""
        begun = exchange.store.clock() - timedelta(seconds=self.seconds)
        await exchange.send(await exchange.call_application(at=begun))


@dataclass(frozen=True, slots=True)
class DateSkew:
    """Response whose `Date` header is wrong by `seconds`. Timestamps in the body are correct.

    For a server whose whole clock is wrong, pass a `clock` to the sandbox.
    """

    seconds: float

    async def perform(self, exchange: HttpExchange) -> None:
        """Send the application's response with a changed `Date` header."""
        claimed = exchange.store.clock() + timedelta(seconds=self.seconds)
        response = await exchange.call_application()
        response.headers["date"] = format_datetime(claimed, usegmt=True)
        await exchange.send(response)


@dataclass(frozen=True, slots=True)
class Crossed:
    """Response with another record, like from a cache that confuses responses. The effect happens.

    A delete is answered with 200 and the other record. A list is answered correctly.
    """

    async def perform(self, exchange: HttpExchange) -> None:
        """Send the application's response with the other record."""
        other = exchange.other_record()
        response = await exchange.call_application()
        if other is None or response.status_code >= 400:
            await exchange.send(response)
            return
        document = json.loads(bytes(response.body) or b'{"message": "Done."}')
        if not isinstance(document.get("data"), list):
            status = 200 if response.status_code == 204 else response.status_code
            response = JSONResponse({**document, "data": other}, status)
        await exchange.send(response)


@dataclass(frozen=True, slots=True)
class Merged:
    """Create that stores nothing, and is answered with an existing record and this status.

    The record has the natural key in the body; if no record has it, the oldest record is sent.
    """

    status: int = 201

    async def perform(self, exchange: HttpExchange) -> None:
        """Send the existing record."""
        other = exchange.other_record()
        if other is None or exchange.method != "POST":
            await exchange.send(await exchange.call_application())
            return
        document = {"data": other, "message": "The record was merged."}
        await exchange.send(JSONResponse(document, self.status))


@dataclass(frozen=True, slots=True)
class TotalHuge:
    """List with correct records and a wrong `total` and `total_pages`."""

    total: int | float = 10**12

    async def perform(self, exchange: HttpExchange) -> None:
        """Send the application's response with these numbers."""
        response = await exchange.call_application()
        await exchange.send(_replace_pagination(response, total=self.total, total_pages=self.total))


@dataclass(frozen=True, slots=True)
class SamePage:
    """List that has the records of the first page on every page, with this `total`."""

    total: int = 100_000

    async def perform(self, exchange: HttpExchange) -> None:
        """Send the first page with the requested page number."""
        query = dict(parse_qsl(exchange.scope["query_string"].decode("latin-1")))
        page = int(query.get("page", "1"))
        first = urlencode({**query, "page": "1"})
        response = await exchange.call_application(query=first)
        pages = -(-self.total // 100)
        numbers = {"page": page, "total": self.total, "total_pages": pages}
        await exchange.send(_replace_pagination(response, **numbers))


def _replace_pagination(response: Response, **numbers: float) -> Response:
    """Return a list response with other numbers in `pagination`; other responses are unchanged."""
    document = json.loads(bytes(response.body)) if response.status_code == 200 else {}
    if "pagination" not in document:
        return response
    document["pagination"] |= numbers
    # Not a `JSONResponse`, which refuses an infinite total.
    return Response(json.dumps(document), media_type="application/json")


KINDS: Mapping[str, type[Fault]] = {
    re.sub("(?<!^)(?=[A-Z])", "-", kind.__name__).lower(): kind
    for kind in (
        *(Latency, Status, HtmlPage, NotJson, Drop, Truncated, Endless, Drip, Limited),
        *(WrongRateHeaders, Redirect, LateCommit, DateSkew, Crossed, Merged, TotalHuge, SamePage),
    )
}
"""Every fault by the name that the command knows it by."""


@dataclass(frozen=True, slots=True)
class Matcher:
    """Requests to which a fault applies, with the parameters of `Faults.add`."""

    method: str | None = None
    path: str = "*"
    nth: int | None = None
    probability: float = 1.0
    times: int | None = 1


def _parse_fault(name: str, given: Mapping[str, Any]) -> tuple[Fault, Matcher]:
    """Return the named fault and its matcher. Raises `UnknownName` or `ValidationError`.

    `given` has the parameters of both as texts.
    """
    if name not in KINDS:
        raise UnknownName("fault", name, KINDS)
    kind = KINDS[name]
    own, shared = [*signature(kind).parameters], [*signature(Matcher).parameters]
    for each in given:
        if each not in own + shared:
            raise UnknownName(f"parameter of the fault {name}", each, own + shared)
    fault = TypeAdapter(kind).validate_python({n: v for n, v in given.items() if n in own})
    matcher = {n: v for n, v in given.items() if n in shared}
    return fault, TypeAdapter(Matcher).validate_python(matcher)


@dataclass(slots=True)
class PlannedFault:
    """Fault with its matcher, the number of matching requests, and how often it was performed."""

    fault: Fault
    matcher: Matcher
    matched: int = 0
    hits: int = 0


class Faults:
    """Planned faults in order. They can be changed while requests are served."""

    def __init__(self, random: chance.Random) -> None:
        self._random = random
        self._lock = RLock()
        self._planned: list[PlannedFault] = []

    def add(
        self,
        fault: Fault,
        *,
        method: str | None = None,
        path: str = "*",
        nth: int | None = None,
        probability: float = 1.0,
        times: int | None = 1,
    ) -> PlannedFault:
        """Plan a fault for requests with this method and path.

        Args:
            fault: The fault.
            method: HTTP method; None for all methods.
            path: Pattern of the whole path, for example `/api/v1/jobs/*`.
            nth: Number of the only matching request with the fault, counted from 1; None for all.
            probability: Share of the matching requests with the fault.
            times: Maximum number of requests with the fault; None for no maximum.
        """
        return self._append(fault, Matcher(method, path, nth, probability, times))

    def _append(self, fault: Fault, matcher: Matcher) -> PlannedFault:
        """Add a fault to the end of the planned faults."""
        planned = PlannedFault(fault, matcher)
        with self._lock:
            self._planned.append(planned)
        return planned

    def plan(self, text: str) -> PlannedFault:
        """Plan a fault from a text such as `status status=503 path=/api/v1/jobs* times=3`.

        The text is split into words like in a shell; `times=always` means no maximum. Raises
        `UnknownName` or `SettingsError`.
        """
        try:
            name, *words = shlex.split(text) or [""]
            given: dict[str, Any] = {}
            for word in words:
                part, _, value = word.partition("=")
                given[part] = json.loads(value) if part == "headers" else value
            if given.get("times") == "always":
                given["times"] = None
            fault, matcher = _parse_fault(name, given)
        except ValidationError as error:
            (first, *_) = error.errors()
            reason = (
                f"{first['loc'][0]}={first['input']}: {first['msg']}" if first["loc"] else first
            )
            raise SettingsError(f"--fault {text!r}: {reason}") from None
        except ValueError as error:
            raise SettingsError(f"--fault {text!r} cannot be read: {error}") from None
        return self._append(fault, matcher)

    def clear(self) -> None:
        """Remove all planned faults."""
        with self._lock:
            self._planned.clear()

    def match(self, method: str, path: str) -> Fault | None:
        """Return the first planned fault for a request, and count it, or None."""
        with self._lock:
            for each in self._planned:
                if self._count_and_decide(each, method, path):
                    each.hits += 1
                    return each.fault
        return None

    def _count_and_decide(self, planned: PlannedFault, method: str, path: str) -> bool:
        """Count a matching request; return True if the fault must be performed for it."""
        matcher = planned.matcher
        if matcher.method not in (None, method) or not fnmatchcase(path, matcher.path):
            return False
        if matcher.times is not None and planned.hits >= matcher.times:
            return False
        planned.matched += 1
        if matcher.nth not in (None, planned.matched):
            return False
        return matcher.probability >= 1 or self._random.random() < matcher.probability
