"""The API over HTTP: addresses, keys, scopes, limits, envelopes (API 4, 5, 7, 8).

Routes are derived from the declarations; Starlette does the routing. Every answer passes through
one place, which adds the headers, performs faults and keeps the log. What an operation does is the
store's business. No log entry holds a key.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from email.utils import format_datetime

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route
from starlette.types import Message, Receive, Scope, Send

from connector.catalog import CATALOG
from connector.catalog.resource import Declaration, Operation
from connector.sandbox.exchange import (
    ApiAnswer,
    Body,
    HttpExchange,
    RateFigures,
    Rejection,
    Reply,
    RequestLimits,
)
from connector.sandbox.faults import Faults
from connector.sandbox.store import Store

PREFIX = "/api/v1"
ALL_SCOPES = "*"
BODY_BYTES_MAX = 10 * 1024 * 1024
LOG_ENTRIES_MAX = 200_000
_RELEASE_SECONDS_MAX = 10
_LOGGER = logging.getLogger(__name__)
_PAGE_404 = "<!doctype html><html><head><title>404</title></head><body>Not Found</body></html>"
_READS = ("list", "get")
# Where each operation lives below its resource's path, and under which method (API 4).
_COLLECTION: Mapping[str, Operation] = {"GET": "list", "POST": "create"}
_MEMBER: Mapping[str, Operation] = {"GET": "get", "PUT": "update", "DELETE": "delete"}
_CONVERT: Mapping[str, Operation] = {"POST": "convert"}

Between = Callable[[Store], None]
"""What happens to the data between two requests."""


@dataclass(frozen=True, slots=True)
class LoggedRequest:
    """One request as the log keeps it; `status` is None where no answer was begun."""

    method: str
    path: str
    query: str
    status: int | None
    at: datetime
    monotonic_seconds: float


class Application:
    """The sandbox as an ASGI application; `failures` has what went wrong within it."""

    def __init__(
        self,
        store: Store,
        *,
        keys: Mapping[str, Iterable[str]],
        limits: RequestLimits,
        faults: Faults,
    ) -> None:
        self.store = store
        self.log: deque[LoggedRequest] = deque(maxlen=LOG_ENTRIES_MAX)
        self.failures: list[Exception] = []
        self._keys = {key: frozenset(scopes) for key, scopes in keys.items()}
        self._limits, self._faults = limits, faults
        self._between: Between | None = None
        self._is_between_due = False
        self._postponed: deque[Callable[[], Awaitable[Reply]]] = deque()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._starlette = Starlette(
            routes=list(self._routes()),
            exception_handlers={
                Rejection: self._reject,
                HTTPException: self._reject_path,
                Exception: self._answer_failure,
            },
        )
        store.interlude = self._pass_time
        faults.bind(self._release)

    @property
    def between_requests(self) -> Between | None:
        """Called with the store before each request that reaches it, but the first."""
        return self._between

    @between_requests.setter
    def between_requests(self, between: Between | None) -> None:
        """Begin to call it, from the second request on; None ends it."""
        self._between, self._is_between_due = between, False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, as a fault says or as the API does."""
        self._loop = asyncio.get_running_loop()
        body = await _read_body(receive)
        exchange = HttpExchange(self, scope, body, receive, send)
        fault = self._faults.match(exchange.method, exchange.path)
        if fault is None:
            await exchange.send(await exchange.serve())
        else:
            await fault.perform(exchange)

    # What an exchange asks.

    async def serve(self, scope: Scope, body: bytes, at: datetime | None) -> Reply:
        """Answer the request, with its effect, which `at` dates."""
        start: Message = {}
        parts: list[bytes] = []

        async def receive() -> Message:
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message: Message) -> None:
            if message["type"] == "http.response.start":
                start.update(message)
            else:
                parts.append(message.get("body", b""))

        try:
            await self._starlette({**scope, "sandbox.at": at}, receive, send)
        except Exception as failure:  # the answer is a 500; whoever owns us raises it
            self.failures.append(failure)
            _LOGGER.error("%s %s failed", scope["method"], scope["path"], exc_info=failure)
        headers = dict(start["headers"])
        content_type = headers.pop(b"content-type", b"")
        headers.pop(b"content-length", None)
        return Reply(start["status"], b"".join(parts), content_type, headers)

    def now(self) -> datetime:
        """The server's time."""
        return self.store.clock()

    def allowance(self) -> RateFigures:
        """Return the present figures of the rate headers."""
        return self._limits.allowance(self.now())

    def headers(self, reply: Reply) -> list[tuple[bytes, bytes]]:
        """All headers of an answer (API 8.3), those of the reply in place of our own."""
        behaviours = self.store.behaviours
        headers: dict[bytes, bytes] = {}
        if reply.content_type:
            headers[b"content-type"] = reply.content_type
        if reply.is_length_known and reply.status != 204:
            headers[b"content-length"] = b"%d" % len(reply.body)
        if behaviours.date_header == "shown":
            headers[b"date"] = format_datetime(self.now(), usegmt=True).encode()
        is_success = reply.status < 400
        shows = {"always": True, "success_only": is_success, "never": False}
        if reply.has_rate_headers and shows[behaviours.rate_headers]:
            figures = self.allowance()
            headers[b"x-ratelimit-limit"] = b"%d" % figures.limit
            headers[b"x-ratelimit-remaining"] = b"%d" % figures.remaining
            headers[b"x-ratelimit-reset"] = b"%d" % figures.reset_at
        return list({**headers, **reply.headers}.items())

    def other_record(self, path: str, body: bytes) -> Body | None:
        """Detail of an existing record for a request of that path, see `HttpExchange`."""
        parts = path.removeprefix(PREFIX).strip("/").split("/")
        declaration = _resource_of(parts)
        if declaration is None:
            return None
        sent = json.loads(body) if body else {}
        records = self.store.records(declaration.name)
        others = [each for id, each in records.items() if id not in parts]
        for key in declaration.natural_keys:
            for each in others:
                if all(sent.get(name) and each[name] == sent[name] for name in key):
                    return each
        return others[0] if others else None

    def postpone_effect(self, effect: Callable[[], Awaitable[Reply]]) -> None:
        """Keep an effect until it is released."""
        self._postponed.append(effect)

    def record(self, exchange: HttpExchange, status: int | None) -> None:
        """Note a request in the log, once: an answer that breaks off keeps its status."""
        if exchange.is_recorded:
            return
        exchange.is_recorded = True
        query = exchange.scope["query_string"].decode("latin-1")
        self.log.append(
            LoggedRequest(
                exchange.method, exchange.path, query, status, self.now(), time.monotonic()
            )
        )

    def _release(self) -> int:
        """Perform what was postponed; called from outside the loop's thread."""

        async def perform() -> int:
            released = 0
            while self._postponed:
                await self._postponed.popleft()()
                released += 1
            return released

        if self._loop is None:
            return 0
        return asyncio.run_coroutine_threadsafe(perform(), self._loop).result(_RELEASE_SECONDS_MAX)

    # Addresses.

    def _routes(self) -> Iterator[Route]:
        for declaration in CATALOG.values():
            path = PREFIX + declaration.path
            yield from self._route(path, declaration, _COLLECTION)
            yield from self._route(path + "/{id}", declaration, _MEMBER)
            yield from self._route(path + "/{id}/convert", declaration, _CONVERT)

    def _route(
        self, path: str, declaration: Declaration, offered: Mapping[str, Operation]
    ) -> Iterator[Route]:
        """The route of one path, with the operations that the resource has there."""
        operations = {m: each for m, each in offered.items() if each in declaration.operations}

        async def endpoint(request: Request) -> Response:
            method = "GET" if request.method == "HEAD" else request.method
            operation = operations[method]
            self._admit(request, declaration, operation)
            body = _read_object(await request.body()) if operation in ("create", "update") else {}
            if operation != "list" or self.store.behaviours.total == "exact":
                self._pass_time()
            answer = self._perform(request, declaration.name, operation, body)
            self._is_between_due = self._between is not None
            if answer.body is None:
                return Response(status_code=answer.status)
            return JSONResponse(answer.body, answer.status)

        if operations:
            yield Route(path, endpoint, methods=list(operations))

    def _perform(
        self, request: Request, resource: str, operation: Operation, body: Body
    ) -> ApiAnswer:
        store, at = self.store, request.scope["sandbox.at"]
        type, id = request.path_params.get("type"), request.path_params.get("id", "")
        match operation:
            case "list":
                return store.list(resource, dict(request.query_params), type=type)
            case "get":
                return store.get(resource, id, type=type)
            case "create":
                return store.create(resource, body, type=type, at=at)
            case "update":
                return store.update(resource, id, body, type=type, at=at)
            case "delete":
                return store.delete(resource, id, type=type)
            case "convert":
                return store.convert(resource, id, at=at)

    def _pass_time(self) -> None:
        """Let happen what is to happen between two requests."""
        if self._between is not None and self._is_between_due:
            self._is_between_due = False
            self._between(self.store)

    def _admit(self, request: Request, declaration: Declaration, operation: Operation) -> None:
        """Raise `Rejection` 401, 429 or 403 where the request may not pass (API 5, 8)."""
        scheme, _, key = request.headers.get("authorization", "").partition(" ")
        scopes = self._keys.get(key.strip()) if scheme.lower() == "bearer" else None
        if scopes is None:
            raise Rejection(401, "The API key is missing or not valid.")
        if not self._limits.spend(self.now()):
            raise Rejection(429, "Too many requests.")
        is_read = operation in _READS
        scope = declaration.read_scope() if is_read else declaration.write_scope()
        if scope not in scopes and ALL_SCOPES not in scopes:
            raise Rejection(403, f"The API key lacks the scope {scope}.")

    # Errors.

    async def _reject(self, request: Request, rejection: Exception) -> Response:
        assert isinstance(rejection, Rejection)  # Starlette maps classes to us
        headers = {}
        if rejection.status == 401:
            headers["www-authenticate"] = "Bearer"
        if rejection.status == 429:
            headers = self._retry_after()
        return JSONResponse(
            rejection.body(self.store.behaviours), rejection.status, headers=headers
        )

    def _retry_after(self) -> dict[str, str]:
        reset_at = self.allowance().reset_at
        match self.store.behaviours.retry_after:
            case "seconds":
                return {"retry-after": str(reset_at - int(self.now().timestamp()))}
            case "timestamp":
                return {"retry-after": str(reset_at)}
            case _:
                return {}

    async def _reject_path(self, request: Request, exception: Exception) -> Response:
        """404 for a path that is not the API's, 405 for a method that a path lacks."""
        assert isinstance(exception, HTTPException)  # Starlette maps classes to us
        if exception.status_code == 404 and self.store.behaviours.unknown_paths == "html":
            return HTMLResponse(_PAGE_404, 404)
        message = "There is nothing at this address."
        if exception.status_code == 405:
            message = f"The method {request.method} is not allowed at this address."
        body = Rejection(exception.status_code, message).body(self.store.behaviours)
        return JSONResponse(body, exception.status_code, headers=exception.headers)

    async def _answer_failure(self, request: Request, failure: Exception) -> Response:
        body = Rejection(500, "The server failed.").body(self.store.behaviours)
        return JSONResponse(body, 500)


def _resource_of(parts: list[str]) -> Declaration | None:
    """The resource of a path's segments."""
    paths = {each.path.strip("/").split("/")[0]: each for each in CATALOG.values()}
    return paths.get(parts[0])


async def _read_body(receive: Receive) -> bytes:
    """The whole body; what lies beyond the maximum is read and thrown away."""
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return bytes(body)
        if len(body) <= BODY_BYTES_MAX:
            body += message.get("body", b"")
        if not message.get("more_body", False):
            return bytes(body)


def _read_object(body: bytes) -> Body:
    """The body as a JSON object. Raises `Rejection` 400 for anything else (API 7)."""
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
