"""One request and its answer, from the first byte to the last: `HttpExchange`.

A fault performs an exchange through these few verbs and needs to know nothing of ASGI. The
exchange knows no resource and no rule of the API; serving is the application's.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, assert_never

from starlette.types import Message, Receive, Scope, Send

from connector.sandbox.behaviour import Behaviours

if TYPE_CHECKING:
    from connector.sandbox.app import Application

# -- Limits ----------------------------------------------------------------------------------------
# How many requests are left: the minute's window and the month's allowance (API 8).
#
# Both belong to the workspace's plan and are shared by its keys. The clock is passed into every
# call. This module sends nothing; the application asks it before each request and shows its
# figures in the headers.


WINDOW_SECONDS = 60
PER_MINUTE_DEFAULT = 1_000_000
"""The limit where none is asked for: headers are always sent, and no one meets it."""


@dataclass(frozen=True, slots=True)
class RateFigures:
    """Figures of the three headers; `reset_at` is a Unix timestamp in whole seconds."""

    limit: int
    remaining: int
    reset_at: int


class RequestLimits:
    """Counts requests within a minute and within a calendar month (UTC)."""

    def __init__(
        self, behaviours: Behaviours, *, per_minute: int | None, per_month: int | None
    ) -> None:
        self.per_minute = PER_MINUTE_DEFAULT if per_minute is None else per_minute
        self.per_month = per_month
        self._behaviours = behaviours
        # When requests leave the window, with how many: one entry, unless the window slides.
        self._leaving: deque[tuple[float, int]] = deque()
        self._spent = 0
        self._month = (0, 0)
        self._spent_in_month = 0

    def spend(self, now: datetime) -> bool:
        """Count one request, if one is left; says whether it was."""
        self._forget(now)
        if self._spent >= self.per_minute or self._is_month_spent():
            return False
        leaves_at, together = self._end(now), 0
        if self._leaving and self._leaving[-1][0] == leaves_at:
            _, together = self._leaving.pop()
        self._leaving.append((leaves_at, together + 1))
        self._spent += 1
        self._spent_in_month += 1
        return True

    def allowance(self, now: datetime) -> RateFigures:
        """Return the figures of the rate headers at this time."""
        self._forget(now)
        remaining = self.per_minute - self._spent
        reset_at = self._leaving[0][0] if self._leaving else self._end(now)
        if self._is_month_spent():
            remaining = 0
            if self._behaviours.month_reset == "month":
                reset_at = _next_month(now).timestamp()
        return RateFigures(self.per_minute, remaining, math.ceil(reset_at))

    def _is_month_spent(self) -> bool:
        return self.per_month is not None and self._spent_in_month >= self.per_month

    def _end(self, now: datetime) -> float:
        """Return the time at which a request of this time leaves the window."""
        at = now.timestamp()
        if self._behaviours.rate_window == "aligned":
            return at - at % WINDOW_SECONDS + WINDOW_SECONDS
        if self._behaviours.rate_window == "first_request" and self._leaving:
            return self._leaving[0][0]
        return at + WINDOW_SECONDS

    def _forget(self, now: datetime) -> None:
        """Drop what belongs to an earlier window or month."""
        while self._leaving and now.timestamp() >= self._leaving[0][0]:
            self._spent -= self._leaving.popleft()[1]
        month = (now.astimezone(UTC).year, now.astimezone(UTC).month)
        if month != self._month:
            self._month, self._spent_in_month = month, 0


def _next_month(now: datetime) -> datetime:
    first = now.astimezone(UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    return (first + timedelta(days=32)).replace(day=1)


# -- Exchange --------------------------------------------------------------------------------------
#


JSON = b"application/json"
HANG_UP_SECONDS_MAX = 5
"""How long the end of a connection may take before the exchange is given up."""


@dataclass(frozen=True, slots=True)
class Reply:
    """Answer before it is sent; `headers` replace those that the sandbox adds."""

    status: int
    body: bytes
    content_type: bytes = JSON
    headers: Mapping[bytes, bytes] = field(default_factory=dict)
    has_rate_headers: bool = True
    is_length_known: bool = True


class HttpExchange:
    """One request on its way through the server."""

    def __init__(
        self, server: Application, scope: Scope, body: bytes, receive: Receive, send: Send
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

    def allowance(self) -> RateFigures:
        """Return the present figures of the rate headers."""
        return self._server.allowance()

    async def serve(self, *, at: datetime | None = None, query: bytes | None = None) -> Reply:
        """Let the application answer, with the request's effect; nothing is sent yet.

        With `query`, the request is served as if it had that query.
        """
        scope = self.scope if query is None else {**self.scope, "query_string": query}
        return await self._server.serve(scope, self.body, at)

    def other_record(self) -> Body | None:
        """An existing record of the requested resource that is not the requested one.

        If the body has a natural key, it is a record of that key, where there is one. None if there
        is no other record.
        """
        return self._server.other_record(self.path, self.body)

    def reply(self, status: int, body: bytes, content_type: bytes = JSON) -> Reply:
        """An answer that the application did not give."""
        return Reply(status, body, content_type)

    def postpone(self) -> None:
        """Keep the effect until it is released, long after the client has gone."""
        self._server.postpone_effect(self.serve)

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


# -- Answer ----------------------------------------------------------------------------------------
# What the store says: an `ApiAnswer`, or a `Rejection` with the API's error body (API 4, 7).
#
# This module knows no HTTP beyond status numbers; the application turns both into responses.


Body = dict[str, Any]
"""A JSON object, as a request or an answer carries it."""

CODES: Mapping[int, str] = {
    400: "bad_request",
    401: "unauthorized",
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    422: "validation_error",
    429: "rate_limit_exceeded",
    500: "server_error",
}
"""The `error` of each status; the API shows that of 422 alone (API 7.3)."""


@dataclass(frozen=True, slots=True)
class ApiAnswer:
    """A success: its status and its envelope, which is None for 204."""

    status: int
    body: Body | None

    @property
    def record(self) -> Body:
        """The `data` of an answer about one record. Raises `KeyError` for a delete's."""
        record: Body = (self.body or {})["data"]
        return record

    @property
    def items(self) -> list[Body]:
        """The `data` of a list. Raises `KeyError` for a delete's answer."""
        items: list[Body] = (self.body or {})["data"]
        return items

    @property
    def pagination(self) -> dict[str, int]:
        """The `pagination` of a list. Raises `KeyError` for other answers."""
        pagination: dict[str, int] = (self.body or {})["pagination"]
        return pagination


class Rejection(Exception):
    """Refusal of a request: status, sentence, and messages by field for 422."""

    def __init__(
        self, status: int, message: str, errors: Mapping[str, Sequence[str]] | None = None
    ) -> None:
        super().__init__(f"{status}: {message}")
        self.status, self.message = status, message
        self.errors = None if errors is None else {k: list(v) for k, v in errors.items()}

    def body(self, behaviours: Behaviours) -> Body:
        """The error body of API 7; for statuses other than 422 as `error_bodies` says."""
        if self.errors is not None:
            return {"error": CODES[self.status], "message": self.message, "errors": self.errors}
        match behaviours.error_bodies:
            case "full":
                return {"error": CODES.get(self.status, "error"), "message": self.message}
            case "message":
                return {"message": self.message}
            case "empty":
                return {}
            case other:
                assert_never(other)


def validation_rejection(errors: Mapping[str, Sequence[str]]) -> Rejection:
    """The 422 for these messages by field (API 7.1)."""
    return Rejection(422, "The given data was invalid.", errors)
