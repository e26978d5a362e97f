"""Client of one workspace: operations on any resource, and when a request is sent or repeated.

A request is sent when a connection is free, the rate limiter permits it, and the meter has counted
it. A request that was certainly not applied is repeated, up to a number of attempts and a time.
Every other failure is raised. `session.py` sends the request.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol, Self, TypeVar

from pydantic import SecretStr

from connector import errors
from connector.catalog import declaration
from connector.catalog.resource import PER_PAGE_MAX, Order, Page, Resource
from connector.client.limiter import RESET_SECONDS_MAX, QuotaExhausted, RateLimiter, Ticket
from connector.client.messages import (
    Request,
    Response,
    build_list_request,
    build_request,
    check_deleted,
    rate_headers,
    read_list,
    read_record,
    served_at,
)
from connector.client.session import HttpSession, Limits
from connector.settings.values import parse_address, parse_key

FEW_ATTEMPTS_MAX = 3  # A server that cannot be reached, or read, rarely recovers within seconds.
BACKOFF_SECONDS_MIN = 0.5
BACKOFF_SECONDS_MAX = 20.0

T = TypeVar("T")


class Observer:
    """Observer of requests and waits, called from the event loop; this one does nothing."""

    def before_send(self, request: Request) -> None:
        """Called before each attempt; an error raised here stops it."""

    def on_response(self, request: Request, status: int | None) -> None:
        """Called after each attempt with the status, None if no answer came."""

    def on_wait(self, seconds: float) -> None:
        """Called before all requests wait for the rate limit."""


class RequestMeter(Protocol):
    """Counts the month's requests, each before it is sent."""

    def count_attempt(self, request: Request) -> None:
        """Count one attempt before it is sent. An error raised here stops the request."""

    def record_response(self, status: int, served_at: datetime | None) -> None:
        """Record an answer; `served_at` is the server's time, None if the answer has none."""

    def quota_error(self, request: Request, resets_at: float | None) -> errors.Stopped:
        """Return the error for a used-up month; `resets_at` is a Unix time, None if unknown."""


class Client:
    """Asynchronous client of one workspace with one key.

        async with Client("https://acme.example", api_key) as client:
            job = await client.detail("jobs", id)

    Every operation takes the name of a resource, and `parent`, the id or slug of a content type,
    for content items. Names and bodies are checked against the declaration before a request is
    sent. A failed request raises an error; a write whose answer was lost raises `InDoubt`.

    Args:
        base_url: Address before `/api/v1`.
        api_key: Bearer token.
        connections: Maximum number of requests at the same time.
        limits: Deadlines, attempts and sizes.
        observer: Is called before and after each attempt and wait.
        meter: Counts every attempt.
        ca_file: Additional certificate authority. Verification is never turned off.
        proxy: Proxy for an `https` address. The environment's proxies are not used.
        clock, sleep, chance: For tests.

    Raises:
        SettingsError: The address, the key or a file is not valid.
    """

    def __init__(
        self,
        base_url: str,
        api_key: str | SecretStr,
        *,
        connections: int = 4,
        limits: Limits | None = None,
        observer: Observer | None = None,
        meter: RequestMeter | None = None,
        ca_file: Path | None = None,
        proxy: str | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Coroutine[Any, Any, None]] = asyncio.sleep,
        chance: Callable[[], float] = random.random,
    ) -> None:
        # A report that shows local variables must not show the key.
        secret = api_key if isinstance(api_key, SecretStr) else SecretStr(api_key)
        del api_key
        try:
            base_url = parse_address(base_url)
        except ValueError as error:
            raise errors.SettingsError(f"the base address must be {error}") from None
        try:
            parse_key(secret.get_secret_value())
        except ValueError as error:
            raise errors.SettingsError(f"the API key {error}") from None
        self.limiter = RateLimiter()
        self.limits = limits or Limits()
        self._session = HttpSession(
            base_url, secret, self.limits, connections=connections, ca_file=ca_file, proxy=proxy
        )
        self._is_closed = False
        self._slots = asyncio.Semaphore(connections)
        self._queue, self._answered = asyncio.Lock(), asyncio.Event()
        self._observer, self._meter = observer or Observer(), meter
        self._clock, self._sleep, self._chance = clock, sleep, chance

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections. A closed client cannot be used again."""
        self._is_closed = True
        await self._session.aclose()

    # -- Operations on declared records -----------------------------------------------------------

    async def page(
        self,
        resource: str,
        parent: str | None = None,
        *,
        page: int = 1,
        per_page: int = PER_PAGE_MAX,
        sort: str | None = None,
        order: Order | None = None,
        search: str | None = None,
    ) -> Page[Resource]:
        """Return one page of a list, newest first by default."""
        declared = declaration(resource)
        request = build_list_request(
            declared, parent, page=page, per_page=per_page, sort=sort, order=order, search=search
        )
        return await self.send(request, read_list)

    async def detail(self, resource: str, id: str, parent: str | None = None) -> Resource:
        """Return the record with all its fields. Raises `NotFound`."""
        request = build_request(declaration(resource), "get", id, parent=parent)
        return await self.send(request, read_record)

    async def create(
        self, resource: str, fields: Mapping[str, Any], parent: str | None = None
    ) -> Resource:
        """Create a record, and return it with the fields that the API echoed (API 4.7).

        Raises `ValidationFailed` with messages by field.
        """
        request = build_request(declaration(resource), "create", None, fields, parent=parent)
        return await self.send(request, read_record)

    async def update(
        self, resource: str, id: str, fields: Mapping[str, Any], parent: str | None = None
    ) -> Resource:
        """Change the fields that are given, and no others. Raises `ValidationFailed`."""
        request = build_request(declaration(resource), "update", id, fields, parent=parent)
        return await self.send(request, read_record)

    async def delete(self, resource: str, id: str, parent: str | None = None) -> None:
        """Delete the record."""
        request = build_request(declaration(resource), "delete", id, parent=parent)
        await self.send(request, check_deleted)

    async def convert(self, resource: str, id: str) -> Resource:
        """Convert a lead into an active customer (API 4.6). It cannot be undone."""
        return await self.send(build_request(declaration(resource), "convert", id), read_record)

    # -- Sending ----------------------------------------------------------------------------------

    async def send(self, request: Request, read: Callable[[Request, Response], T]) -> T:
        """Send the request and return `read(request, answer)`. Raises the last attempt's error.

        A read is repeated while it may succeed; a write only if it was certainly not applied.
        """
        if self._is_closed:
            raise errors.Misused(f"{request.method_and_path} was not sent: the client is closed")
        attempts, begun_at = 0, None
        while True:
            async with self._slots:
                async with self._queue:
                    ticket = await self._wait_for_permission(request, begun_at)
                # Waiting before the first attempt does not count against a second one.
                begun_at = ticket.sent_at if begun_at is None else begun_at
                attempts += 1
                try:
                    return read(request, await self._send_attempt(request, ticket))
                except (errors.TryAgain, errors.UnreadableAnswer) as error:
                    seconds = self._backoff(request, error, attempts)
                    spent = self._clock() - begun_at
                    if seconds is None or spent + seconds >= self.limits.retry_seconds_max:
                        raise
            await self._sleep(seconds)

    def _backoff(
        self, request: Request, error: errors.TryAgain | errors.UnreadableAnswer, attempts: int
    ) -> float | None:
        """Return the seconds to wait before the next attempt; None if there is no other attempt."""
        if not (request.is_read or isinstance(error, errors.RateLimited | errors.Unreachable)):
            return None  # Any other failure of a write leaves it in doubt.
        attempts_max = self.limits.attempts_max
        if isinstance(error, errors.Unreachable | errors.UnreadableAnswer):
            attempts_max = min(attempts_max, FEW_ATTEMPTS_MAX)
        requested = error.retry_after_seconds if isinstance(error, errors.TryAgain) else 0.0
        if attempts >= attempts_max or requested > RESET_SECONDS_MAX:
            return None
        if isinstance(error, errors.RateLimited):
            return 0.0  # After a 429 the rate limiter makes every request wait.
        backoff = min(BACKOFF_SECONDS_MAX, BACKOFF_SECONDS_MIN * 2.0 ** (attempts - 1))
        return max(backoff * (1 + self._chance() / 2), requested)

    async def _send_attempt(self, request: Request, ticket: Ticket) -> Response:
        """Send the request once and return the answer, with any status."""
        answer, record_end = None, self.limiter.record_unsent
        try:
            if self._meter is not None:
                self._meter.count_attempt(request)
            self._observer.before_send(request)
            record_end = self.limiter.record_lost
            answer = await self._session.exchange(request)
        except errors.Unreachable:
            record_end = self.limiter.record_unsent
            raise
        finally:
            now = self._clock()
            if answer is None:
                record_end(now, ticket)
            else:
                self._record_answer(answer, now, ticket)
            self._observer.on_response(request, None if answer is None else answer.status)
            self._answered.set()
        return replace(answer, seconds=now - ticket.sent_at)

    def _record_answer(self, answer: Response, now: float, ticket: Ticket) -> None:
        rate = rate_headers(answer)
        if answer.status == 429:
            self.limiter.record_refusal(now, ticket, rate, self._chance())
        else:
            self.limiter.record_response(now, ticket, rate)
        if self._meter is not None:
            self._meter.record_response(answer.status, served_at(answer))

    async def _wait_for_permission(self, request: Request, begun_at: float | None) -> Ticket:
        """Wait until the rate limiter permits it. Raises `Stopped` and `RateLimited`."""
        while True:
            now = self._clock()
            permission = self.limiter.acquire(now)
            if isinstance(permission, Ticket):
                return permission
            if isinstance(permission, QuotaExhausted):
                if self._meter is not None:
                    raise self._meter.quota_error(request, permission.resets_at)
                raise errors.quota_spent("the API reports that the monthly quota is used up")
            spent = 0.0 if begun_at is None else now - begun_at
            if spent + (permission.seconds or 0.0) > self.limits.retry_seconds_max:
                where, reason = request.method_and_path, "the wait for the rate limit is too long"
                raise errors.RateLimited(f"{where} was not sent, because {reason}")
            self._observer.on_wait(permission.seconds or 0.0)
            if permission.seconds is None:
                self._answered.clear()
                await self._answered.wait()
            else:
                await self._sleep(permission.seconds)
