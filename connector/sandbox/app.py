"""HTTP application of the sandbox: addresses, keys, scopes, limits, headers and the log (API 4-8).

The store performs the operations. A fault answers a request with the methods of `HttpExchange`, and
needs no knowledge of ASGI.
"""

from __future__ import annotations

import asyncio
import json
import logging
import math
import re
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any, Protocol
from urllib.parse import parse_qsl

from starlette.responses import JSONResponse, Response
from starlette.types import Message, Receive, Scope, Send

from connector.catalog import CATALOG
from connector.catalog.resource import Declaration, Operation
from connector.sandbox.behaviour import Behaviours
from connector.sandbox.checks import Body, Rejection
from connector.sandbox.store import Store

ALL_SCOPES = "*"
PREFIX = "/api/v1"
WINDOW_SECONDS = 60
PER_MINUTE_DEFAULT = 1_000_000
"""The limit where none is set: the headers are always sent, and no client reaches it."""

BODY_BYTES_MAX = 10 * 1024 * 1024
LOG_ENTRIES_MAX = 200_000
HANG_UP_SECONDS_MAX = 5
"""Maximum time until a closed connection ends."""

_LOGGER = logging.getLogger(__name__)
# The operations by method, at each path below the resource's (API 4).
_PATHS: Mapping[str, Mapping[str, Operation]] = {
    "": {"GET": "list", "HEAD": "list", "POST": "create"},
    "/{id}": {"GET": "get", "HEAD": "get", "PUT": "update", "DELETE": "delete"},
    "/{id}/convert": {"POST": "convert"},
}
_ADDRESSES = [
    (
        re.compile(re.sub(r"{(\w+)}", r"(?P<\1>[^/]+)", PREFIX + declaration.path + suffix)),
        declaration,
        {m: each for m, each in methods.items() if each in declaration.operations},
    )
    for declaration in CATALOG.values()
    for suffix, methods in _PATHS.items()
]

Between = Callable[[Store], None]
"""What happens to the data between two requests."""


# -- Limits ----------------------------------------------------------------------------------------


class RequestLimits:
    """Counters of requests in a minute and in a calendar month in UTC (API 8)."""

    def __init__(
        self, behaviours: Behaviours, *, per_minute: int | None, per_month: int | None
    ) -> None:
        self.per_minute = PER_MINUTE_DEFAULT if per_minute is None else per_minute
        self.per_month = per_month
        self._behaviours = behaviours
        # When each request leaves the window.
        self._leaving: deque[float] = deque()
        self._month, self._spent_in_month = (0, 0), 0

    def try_to_count(self, now: datetime) -> bool:
        """Count a request and return True; return False if a limit is reached."""
        self._drop_expired(now)
        if len(self._leaving) >= self.per_minute or self._is_month_spent():
            return False
        self._leaving.append(self._window_end(now))
        self._spent_in_month += 1
        return True

    def headers(self, now: datetime) -> dict[str, str]:
        """Return the three rate headers; the reset is a Unix time in seconds."""
        self._drop_expired(now)
        remaining = self.per_minute - len(self._leaving)
        reset_at = self._leaving[0] if self._leaving else self._window_end(now)
        if self._is_month_spent():
            remaining = 0
            if self._behaviours["month_reset"] == "month":
                first = now.astimezone(UTC).replace(day=1, hour=0, minute=0, second=0)
                next_month = (first + timedelta(days=32)).replace(day=1, microsecond=0)
                reset_at = next_month.timestamp()
        return {
            "x-ratelimit-limit": str(self.per_minute),
            "x-ratelimit-remaining": str(remaining),
            "x-ratelimit-reset": str(math.ceil(reset_at)),
        }

    def _is_month_spent(self) -> bool:
        return self.per_month is not None and self._spent_in_month >= self.per_month

    def _window_end(self, now: datetime) -> float:
        at = now.timestamp()
        if self._behaviours["rate_window"] == "aligned":
            return at - at % WINDOW_SECONDS + WINDOW_SECONDS
        if self._behaviours["rate_window"] == "first_request" and self._leaving:
            return self._leaving[0]
        return at + WINDOW_SECONDS

    def _drop_expired(self, now: datetime) -> None:
        while self._leaving and now.timestamp() >= self._leaving[0]:
            self._leaving.popleft()
        month = (now.astimezone(UTC).year, now.astimezone(UTC).month)
        if month != self._month:
            self._month, self._spent_in_month = month, 0


# -- Requests --------------------------------------------------------------------------------------


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


class Api:
    """ASGI application that answers the API's requests and performs faults.

    Args:
        store: Records.
        keys: API keys with their scopes.
        limits: Counters of requests.
        match_fault: Returns the fault of a request by its method and path.

    Attributes:
        between: Called with the store before each request that reaches it, but for the first one.
        log: Latest requests.
        failures: Exceptions of the application, which are answered with 500.
        delayed: Requests whose effect `HttpExchange.delay_effect` postponed.
    """

    def __init__(
        self,
        store: Store,
        *,
        keys: Mapping[str, Iterable[str]],
        limits: RequestLimits,
        match_fault: Callable[[str, str], Fault | None],
    ) -> None:
        self.store, self.limits = store, limits
        self.between: Between | None = None
        self.log: deque[LoggedRequest] = deque(maxlen=LOG_ENTRIES_MAX)
        self.failures: list[Exception] = []
        self.delayed: deque[Callable[[], Response]] = deque()
        self._called_next: Between | None = None
        self._scopes = {key: frozenset(scopes) for key, scopes in keys.items()}
        self._match_fault = match_fault
        store.interlude = self._call_between

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

    def respond(self, scope: Scope, body: bytes) -> Response:
        """Apply a request to the store, and return the response without `Date` and rate headers."""
        try:
            return self._perform(scope, body)
        except Rejection as rejection:
            return JSONResponse(rejection.error_body(), rejection.status, rejection.headers)
        except Exception as failure:  # the owner of the sandbox raises it in the end
            self.failures.append(failure)
            _LOGGER.error(
                "%s %s failed",
                scope["method"],
                scope["path"],
                exc_info=failure,
                extra={"event": "sandbox_request_failed"},
            )
            return JSONResponse(Rejection(500, "The server failed.").error_body(), 500)

    def _perform(self, scope: Scope, body: bytes) -> Response:
        """Perform a request on the store. Raises `Rejection`."""
        method: str = scope["method"]
        declaration, operations, arguments = _find_address(scope["path"])
        if method not in operations:
            message = f"The method {method} is not allowed at this address."
            raise Rejection(405, message, headers={"allow": ", ".join(operations)})
        operation = operations[method]
        self._check_access(dict(scope["headers"]), declaration, operation)
        if operation == "list":
            query = scope["query_string"].decode("latin-1")
            arguments["query"] = dict(parse_qsl(query, keep_blank_values=True))
        if operation in ("create", "update"):
            arguments["body"] = _parse_json_object(body)
        if operation != "list" or self.store.behaviours["total"] == "exact":
            self._call_between()
        # The store's methods are named after the operations, their parameters after the path's.
        answer = getattr(self.store, operation)(declaration.name, **arguments)
        self._called_next = self.between
        if answer.body is None:
            return Response(status_code=answer.status)
        return JSONResponse(answer.body, answer.status)

    def _call_between(self) -> None:
        """Call the hook `between`, unless it was set after the previous request."""
        between, self._called_next = self._called_next, None
        if between is not None and between is self.between:
            between(self.store)

    def _check_access(
        self, headers: Mapping[bytes, bytes], declaration: Declaration, operation: Operation
    ) -> None:
        """Raise `Rejection` 401, 429 or 403 if key, limits or scope forbid it (API 5, 8)."""
        scheme, _, key = headers.get(b"authorization", b"").decode("latin-1").partition(" ")
        scopes = self._scopes.get(key.strip()) if scheme.lower() == "bearer" else None
        if scopes is None:
            challenge = {"www-authenticate": "Bearer"}
            raise Rejection(401, "The API key is missing or not valid.", headers=challenge)
        if not self.limits.try_to_count(self.store.clock()):
            raise Rejection(429, "Too many requests.")
        is_read = operation in ("list", "get")
        scope = declaration.read_scope() if is_read else declaration.write_scope()
        if scope not in scopes and ALL_SCOPES not in scopes:
            raise Rejection(403, f"The API key lacks the scope {scope}.")

    def add_headers(self, response: Response, *, rate_headers: bool) -> None:
        """Add `Date` and the rate headers (API 8.3) unless the response has them."""
        now = self.store.clock()
        added = {}
        if self.store.behaviours["date_header"] == "shown":
            added["date"] = format_datetime(now.astimezone(UTC), usegmt=True)
        if rate_headers:
            added |= self.limits.headers(now)
        for name, value in added.items():
            response.headers.setdefault(name, value)


def _find_address(path: str) -> tuple[Declaration, Mapping[str, Operation], dict[str, Any]]:
    """Return the resource of a path, its operations by method, and the path's parameters.

    Raises `Rejection` 404 for an unknown path.
    """
    for pattern, declaration, operations in _ADDRESSES:
        if operations and (found := pattern.fullmatch(path)):
            return declaration, operations, found.groupdict()
    raise Rejection(404, "There is nothing at this address.")


def _parse_json_object(body: bytes) -> Body:
    if len(body) > BODY_BYTES_MAX:
        raise Rejection(400, f"The body is longer than {BODY_BYTES_MAX} bytes.")
    try:
        read = json.loads(body.decode("utf-8"), parse_constant=_refuse_constant)
        # A lone surrogate is valid in JSON's escapes and in no text that can be stored.
        json.dumps(read, ensure_ascii=False).encode("utf-8")
    except (ValueError, RecursionError) as error:
        raise Rejection(400, "The body is not valid JSON.") from error
    if not isinstance(read, dict):
        raise Rejection(400, "The body is not a JSON object.")
    return read


def _refuse_constant(constant: str) -> None:
    raise ValueError(constant)


class HttpExchange:
    """One request, with the actions from which faults compose its response.

    Attributes:
        is_gone: True if the client disconnected during `wait`.
    """

    def __init__(
        self, server: Api, scope: Scope, body: bytes, receive: Receive, send: Send
    ) -> None:
        self.scope, self.body = scope, body
        self.method: str = scope["method"]
        self.path: str = scope["path"]
        self.store, self.limits = server.store, server.limits
        self.is_gone = False
        self._server, self._receive, self._send = server, receive, send
        self._is_logged = False

    async def call_application(self) -> Response:
        """Apply the request, and return its response without sending it."""
        return self._server.respond(self.scope, self.body)

    def delay_effect(self) -> None:
        """Postpone the request's effect until `Sandbox.apply_delayed_effects` is called."""
        self._server.delayed.append(lambda: self._server.respond(self.scope, self.body))

    def other_record(self) -> Body | None:
        """Return another record of the requested resource, or None.

        A record with the natural key in the request's body is preferred.
        """
        try:
            declaration, _, _ = _find_address(self.path)
        except Rejection:
            return None
        body = json.loads(self.body) if self.body else {}
        records = self.store.records(declaration.name)
        others = [each for id, each in records.items() if id not in self.path.split("/")]
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
        if self._is_logged:
            return
        self._is_logged = True
        query = self.scope["query_string"].decode("latin-1")
        at = self.store.clock()
        self._server.log.append(LoggedRequest(self.method, self.path, query, status, at))
