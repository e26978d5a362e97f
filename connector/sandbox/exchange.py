"""One request and its response, and the middleware that performs faults.

A fault only uses the methods of `HttpExchange` and needs no knowledge of ASGI.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections import deque
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from datetime import datetime
from email.utils import format_datetime
from typing import Any, Protocol

from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from connector.catalog import CATALOG
from connector.sandbox.api_answer import Body, Rejection
from connector.sandbox.request_limits import RequestLimits
from connector.sandbox.store import Store

PREFIX = "/api/v1"
BODY_BYTES_MAX = 10 * 1024 * 1024
LOG_ENTRIES_MAX = 200_000
HANG_UP_SECONDS_MAX = 5
"""Maximum time until a closed connection ends."""
_LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class LoggedRequest:
    """Request in the log, without its key. `status` is None if no response was started."""

    method: str
    path: str
    query: str
    status: int | None
    at: datetime


class Fault(Protocol):
    """Way in which a response can go wrong."""

    async def perform(self, exchange: HttpExchange) -> None:
        """Answer the request with this fault."""


class FaultMiddleware:
    """ASGI middleware that adds headers, performs faults, and logs requests.

    `failures` are the exceptions of the application, which become 500. `delayed` are requests whose
    effect `HttpExchange.delay_effect` postponed.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        store: Store,
        limits: RequestLimits,
        match_fault: Callable[[str, str], Fault | None],
    ) -> None:
        self.app, self.store, self.limits = app, store, limits
        self.log: deque[LoggedRequest] = deque(maxlen=LOG_ENTRIES_MAX)
        self.failures: list[Exception] = []
        self.delayed: deque[Callable[[], Coroutine[Any, Any, Response]]] = deque()
        self._match_fault = match_fault

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, or perform the fault that matches it."""
        body = bytearray()
        message: Message = {"more_body": True}
        # A body beyond the maximum is read and thrown away; of a client that left, nothing comes.
        while message.get("more_body", False):
            message = await receive()
            if len(body) <= BODY_BYTES_MAX:
                body += message.get("body", b"")
        exchange = HttpExchange(self, scope, bytes(body), receive, send)
        fault = self._match_fault(exchange.method, exchange.path)
        if fault is None:
            await exchange.send(await exchange.call_application())
        else:
            await fault.perform(exchange)

    def add_headers(self, response: Response, *, rate_headers: bool) -> None:
        """Add `Date` and the rate headers (API 8.3) unless the response has them."""
        behaviours, now = self.store.behaviours, self.store.clock()
        added: list[tuple[bytes, bytes]] = []
        if behaviours.date_header == "shown":
            added.append((b"date", format_datetime(now, usegmt=True).encode()))
        if rate_headers:
            figures = self.limits.rate_figures(now)
            added.append((b"x-ratelimit-limit", b"%d" % figures.limit))
            added.append((b"x-ratelimit-remaining", b"%d" % figures.remaining))
            added.append((b"x-ratelimit-reset", b"%d" % figures.reset_at))
        own = {name for name, _ in response.raw_headers}
        response.raw_headers += [each for each in added if each[0] not in own]


class HttpExchange:
    """One request, with the actions from which faults compose its response."""

    def __init__(
        self, server: FaultMiddleware, scope: Scope, body: bytes, receive: Receive, send: Send
    ) -> None:
        self.scope, self.body = scope, body
        self.method: str = scope["method"]
        self.path: str = scope["path"]
        self.store, self.limits = server.store, server.limits
        self.is_gone = False
        self._server, self._receive, self._send = server, receive, send
        self._is_logged = False

    async def call_application(
        self, *, at: datetime | None = None, query: str | None = None
    ) -> Response:
        """Let the application handle the request, and return its response without sending it.

        Args:
            at: Time of the change in the store; the current time if not given.
            query: Query string that replaces that of the request.
        """
        scope = {**self.scope, "sandbox.at": at}
        if query is not None:
            scope["query_string"] = query.encode()
        messages: list[Message] = []

        async def receive() -> Message:
            return {"type": "http.request", "body": self.body}

        async def send(message: Message) -> None:
            messages.append(message)

        try:
            await self._server.app(scope, receive, send)
        except Exception as failure:  # the owner of the sandbox raises it in the end
            self._server.failures.append(failure)
            _LOGGER.error(
                "%s %s failed",
                self.method,
                self.path,
                exc_info=failure,
                extra={"event": "sandbox_request_failed"},
            )
            body = Rejection(500, "The server failed.").error_body()
            return JSONResponse(body, 500)
        start, *parts = messages
        response = Response(b"".join(each.get("body", b"") for each in parts), start["status"])
        response.raw_headers = list(start["headers"])
        return response

    def delay_effect(self) -> None:
        """Postpone the request's effect until `Sandbox.apply_delayed_effects` is called."""
        self._server.delayed.append(self.call_application)

    def other_record(self) -> Body | None:
        """Return another record of the requested resource, or None.

        A record with the natural key in the request's body is preferred.
        """
        parts = self.path.removeprefix(PREFIX).strip("/").split("/")
        paths = {each.path.strip("/").split("/")[0]: each for each in CATALOG.values()}
        if (declaration := paths.get(parts[0])) is None:
            return None
        body = json.loads(self.body) if self.body else {}
        records = self.store.records(declaration.name)
        others = [each for id, each in records.items() if id not in parts]
        for key in declaration.natural_keys:
            for each in others:
                if all(body.get(name) and each[name] == body[name] for name in key):
                    return each
        return others[0] if others else None

    async def send(self, response: Response, *, rate_headers: bool = True) -> None:
        """Send the complete response."""
        await self.send_head(response, rate_headers=rate_headers)
        # For HEAD, uvicorn leaves the body out.
        await self.send_part(bytes(response.body), is_last=True)

    async def send_head(self, response: Response, *, rate_headers: bool = True) -> None:
        """Send the status and the headers, and log the request."""
        self._log_once(response.status_code)
        self._server.add_headers(response, rate_headers=rate_headers)
        start = {"type": "http.response.start", "status": response.status_code}
        await self._send({**start, "headers": response.raw_headers})

    async def send_part(self, part: bytes, *, is_last: bool = False) -> None:
        """Send a part of the body."""
        await self._send({"type": "http.response.body", "body": part, "more_body": not is_last})

    async def wait(self, seconds: float) -> None:
        """Wait a number of seconds, or until the client disconnects, which sets `is_gone`."""
        if self.is_gone:
            return
        try:
            async with asyncio.timeout(seconds):
                while (await self._receive())["type"] != "http.disconnect":
                    pass
        except TimeoutError:
            return
        self.is_gone = True

    async def close_connection(self) -> None:
        """Close the connection after all sent data has been delivered."""
        self._log_once(None)
        self.scope["state"]["sandbox.hang_up"]()
        await self.wait(HANG_UP_SECONDS_MAX)

    def _log_once(self, status: int | None) -> None:
        """Log the request with the status, unless it is logged already."""
        if self._is_logged:
            return
        self._is_logged = True
        query = self.scope["query_string"].decode("latin-1")
        at = self.store.clock()
        self._server.log.append(LoggedRequest(self.method, self.path, query, status, at))
