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
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol, Self, TypeVar, cast

from pydantic import SecretStr

from connector.catalog import declaration
from connector.catalog.resource import PER_PAGE_MAX, Order, Page, Resource
from connector.client.limiter import (
    RESET_SECONDS_MAX,
    QuotaExhausted,
    RateLimiter,
    Ticket,
    seconds_until,
)
from connector.client.messages import (
    Request,
    Response,
    build_list_request,
    build_request,
    check_deleted,
    rate_headers,
    read_list,
    read_record,
    response_error,
    retry_after,
    served_at,
)
from connector.client.session import HttpSession
from connector.errors import (
    Misused,
    RateLimited,
    ServerFailed,
    SettingsError,
    Stopped,
    TryAgain,
    Unreachable,
    UnreadableAnswer,
    quota_spent,
)
from connector.settings.values import parse_address, parse_key

# An unreachable server rarely returns within seconds, and an answer that is unreadable three times
# probably stays unreadable.
FEW_ATTEMPTS_MAX = 3
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

    def quota_error(self, request: Request, resets_at: float | None) -> Stopped:
        """Return the error for a used-up month; `resets_at` is a Unix time, None if unknown."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a client.

    Args:
        deadline_seconds: Limit of one attempt, from first byte to last.
        attempts_max: Maximum number of attempts at one request.
        retry_seconds_max: Limit of all attempts at one request, and of one wait for the rate limit.
        body_bytes_max: Limit of an unpacked answer.
    """

    deadline_seconds: float = 60.0
    attempts_max: int = 5
    retry_seconds_max: float = 300.0
    body_bytes_max: int = 32 * 1024 * 1024


@dataclass(slots=True)
class _Attempts:
    """Number of attempts at one request so far, and clock time of the first one."""

    count: int = 0
    begun_at: float = 0.0


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
        clock: Seconds, which never decrease.
        sleep: Waits for a number of seconds.
        chance: Random numbers of [0, 1).

    Raises:
        SettingsError: The address, the key or a file is not valid.
    """

    base_url: str = "no address yet"

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
        secret = api_key if isinstance(api_key, SecretStr) else SecretStr(api_key)
        del api_key  # A report that shows local variables must not show the key.
        try:
            self.base_url = parse_address(base_url)
        except ValueError as error:
            raise SettingsError(f"the base address must be {error}") from None
        try:
            secret = SecretStr(parse_key(secret.get_secret_value()))
        except ValueError as error:
            raise SettingsError(f"the API key {error}") from None
        self.limiter = RateLimiter()
        self.limits = limits or Limits()
        self._session = HttpSession(
            self.base_url,
            secret,
            count=connections,
            deadline_seconds=self.limits.deadline_seconds,
            body_bytes_max=self.limits.body_bytes_max,
            ca_file=ca_file,
            proxy=proxy,
        )
        self._slots = asyncio.Semaphore(connections)
        self._queue, self._answered = asyncio.Lock(), asyncio.Event()
        self._observer, self._meter = observer or Observer(), meter
        self._clock, self._sleep, self._chance = clock, sleep, chance

    def __repr__(self) -> str:
        return f"<Client of {self.base_url}>"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections. A closed client cannot be used again."""
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
        found = await self._send(request, read_list)
        at = found.served_at
        items = (declared.record(raw, is_item=True, served_at=at) for raw in found.items)
        return replace(cast("Page[Any]", found), items=tuple(items))

    async def detail(self, resource: str, id: str, parent: str | None = None) -> Resource:
        """Return the record with all its fields. Raises `NotFound`."""
        return await self._record(build_request(declaration(resource), "get", id, parent=parent))

    async def create(
        self, resource: str, fields: Mapping[str, Any], parent: str | None = None
    ) -> Resource:
        """Create a record, and return it with the fields that the API echoed (API 4.7).

        Raises `ValidationFailed` with messages by field.
        """
        declared = declaration(resource)
        return await self._record(build_request(declared, "create", None, fields, parent=parent))

    async def update(
        self, resource: str, id: str, fields: Mapping[str, Any], parent: str | None = None
    ) -> Resource:
        """Change the fields that are given, and no others. Raises `ValidationFailed`."""
        declared = declaration(resource)
        return await self._record(build_request(declared, "update", id, fields, parent=parent))

    async def delete(self, resource: str, id: str, parent: str | None = None) -> None:
        """Delete the record."""
        request = build_request(declaration(resource), "delete", id, parent=parent)
        await self._send(request, check_deleted)

    async def convert(self, resource: str, id: str) -> Resource:
        """Convert a lead into an active customer (API 4.6). It cannot be undone."""
        return await self._record(build_request(declaration(resource), "convert", id))

    async def _record(self, request: Request) -> Resource:
        """Send the request, and return the record in the answer."""

        def read(request: Request, answer: Response) -> Resource:
            raw = read_record(request, answer)
            return declaration(request.resource).record(raw, served_at=served_at(answer))

        return await self._send(request, read)

    # -- Sending ----------------------------------------------------------------------------------

    async def send(self, request: Request) -> Response:
        """Send one request and return its successful answer; every failure is raised.

        A read is repeated while it may succeed; a write only if it was certainly not applied.
        """
        return await self._send(request, lambda _, answer: answer)

    async def _send(self, request: Request, read: Callable[[Request, Response], T]) -> T:
        """Send the request and return `read(request, answer)`. Raises the last attempt's error.

        If `read` raises `UnreadableAnswer`, a read is repeated, as after a 502.
        """
        attempts = _Attempts()
        while True:
            try:
                return read(request, await self._send_attempt(request, attempts))
            except (TryAgain, UnreadableAnswer) as error:
                seconds = self._backoff(attempts.count, error)
                if not (request.is_read or isinstance(error, RateLimited | Unreachable)):
                    raise  # Any other failure of a write leaves it in doubt.
                spent = self._clock() - attempts.begun_at
                if seconds is None or spent + seconds >= self.limits.retry_seconds_max:
                    raise
            await self._sleep(seconds)

    def _backoff(self, attempts: int, error: TryAgain | UnreadableAnswer) -> float | None:
        """Return the seconds to wait before the next attempt; None if there is no other attempt."""
        attempts_max = self.limits.attempts_max
        if isinstance(error, Unreachable | UnreadableAnswer):
            attempts_max = min(attempts_max, FEW_ATTEMPTS_MAX)
        requested = error.retry_after_seconds if isinstance(error, ServerFailed) else None
        if attempts >= attempts_max or (requested or 0.0) > RESET_SECONDS_MAX:
            return None
        if isinstance(error, RateLimited):
            return 0.0  # After a 429 the rate limiter makes every request wait.
        backoff = min(BACKOFF_SECONDS_MAX, BACKOFF_SECONDS_MIN * 2.0 ** (attempts - 1))
        return max(backoff * (1 + self._chance() / 2), requested or 0.0)

    async def _send_attempt(self, request: Request, attempts: _Attempts) -> Response:
        """Send the request once, when the limits permit. Raises the error of a failed answer."""
        async with self._slots:
            async with self._queue:
                ticket = await self._wait_for_permission(request, attempts)
            answer: Response | None = None
            may_have_left = False
            try:
                if self._meter is not None:
                    self._meter.count_attempt(request)
                # Time spent waiting before the first attempt does not count against a second one.
                sent_at = self._clock()
                attempts.begun_at = attempts.begun_at if attempts.count else sent_at
                attempts.count += 1
                self._observer.before_send(request)
                may_have_left = True
                answer = await self._session.exchange(request)
            except (Unreachable, Misused):
                may_have_left = False
                raise
            finally:
                self._record_end(request, ticket, answer, may_have_left=may_have_left)
        seconds = self._clock() - sent_at
        if 200 <= answer.status < 300:
            return replace(answer, seconds=seconds)
        error = response_error(request, answer)
        if isinstance(error, ServerFailed):
            moment = retry_after(answer)
            error.retry_after_seconds = seconds_until(moment, seconds, _unix_date(answer))
        raise error

    def _record_end(
        self, request: Request, ticket: Ticket, answer: Response | None, *, may_have_left: bool
    ) -> None:
        """Report the end of an attempt, with its answer if one arrived."""
        now, limiter = self._clock(), self.limiter
        self._observer.on_response(request, None if answer is None else answer.status)
        if answer is None:
            (limiter.record_lost if may_have_left else limiter.record_unsent)(now, ticket)
        else:
            if self._meter is not None:
                self._meter.record_response(answer.status, served_at(answer))
            rate, server_now = rate_headers(answer), _unix_date(answer)
            if answer.status == 429:
                limiter.record_refusal(now, ticket, rate, server_now, self._chance())
            else:
                limiter.record_response(now, ticket, rate, server_now)
        self._answered.set()

    async def _wait_for_permission(self, request: Request, attempts: _Attempts) -> Ticket:
        """Wait until the rate limiter permits it. Raises `Stopped` and `RateLimited`."""
        while True:
            permission = self.limiter.acquire(self._clock())
            if isinstance(permission, Ticket):
                return permission
            if isinstance(permission, QuotaExhausted):
                if self._meter is not None:
                    raise self._meter.quota_error(request, permission.resets_at)
                reason = "the monthly quota is used up"
                raise quota_spent(f"{request.method_and_path} was not sent: {reason}")
            since = self._clock() - attempts.begun_at if attempts.count else 0.0
            if since + (permission.seconds or 0.0) > self.limits.retry_seconds_max:
                raise RateLimited(request.method_and_path, is_sent=False)
            self._observer.on_wait(permission.seconds or 0.0)
            if permission.seconds is None:
                self._answered.clear()
                await self._answered.wait()
            else:
                await self._sleep(permission.seconds)


def _unix_date(answer: Response) -> float | None:
    """Return the answer's `Date` as a Unix time; None if it has none."""
    moment = served_at(answer)
    return None if moment is None else moment.timestamp()
