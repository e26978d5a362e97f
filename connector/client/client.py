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
from typing import Any, Protocol, Self, TypeVar, Unpack, cast

from pydantic import SecretStr

from connector.catalog import declaration
from connector.catalog.resource import Page, Resource
from connector.client.limiter import (
    RESET_SECONDS_MAX,
    QuotaExhausted,
    RateLimiter,
    Ticket,
    seconds_until,
)
from connector.client.messages import (
    ListOptions,
    Observer,
    Request,
    Response,
    build_convert_request,
    build_create_request,
    build_delete_request,
    build_get_request,
    build_list_request,
    build_update_request,
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


class RequestMeter(Protocol):
    """Counts the month's requests, each before it is sent."""

    async def count_attempt(self, request: Request) -> None:
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
        reserve: Requests of each minute that are left for people.
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
        reserve: int = 0,
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
        self.limiter = RateLimiter(reserve=reserve)
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
        self._slots, self._answered = asyncio.Semaphore(connections), asyncio.Event()
        self._observer, self._meter = observer or Observer(), meter
        self._clock, self._sleep, self._chance = clock, sleep, chance
        self._waiting, self._waiting_since = 0, 0.0

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
        self, resource: str, parent: str | None = None, **options: Unpack[ListOptions]
    ) -> Page[Resource]:
        """Return one page of a list, newest first by default."""
        declared = declaration(resource)
        request = build_list_request(declared, parent, **options)

        def parse(request: Request, answer: Response) -> Page[Resource]:
            found = read_list(request, answer)
            return replace(
                cast("Page[Any]", found),
                items=tuple(
                    declared.record(raw, is_item=True, served_at=found.served_at)
                    for raw in found.items
                ),
            )

        return await self._send(request, parse)

    async def detail(self, resource: str, id: str, parent: str | None = None) -> Resource:
        """Return the record with all its fields. Raises `NotFound`."""
        return await self._record(build_get_request(declaration(resource), id, parent))

    async def create(
        self, resource: str, fields: Mapping[str, Any], parent: str | None = None
    ) -> Resource:
        """Create a record, and return it with the fields that the API echoed (API 4.7).

        Raises `ValidationFailed` with messages by field.
        """
        return await self._record(build_create_request(declaration(resource), fields, parent))

    async def update(
        self, resource: str, id: str, fields: Mapping[str, Any], parent: str | None = None
    ) -> Resource:
        """Change the fields that are given, and no others. Raises `ValidationFailed`."""
        return await self._record(build_update_request(declaration(resource), id, fields, parent))

    async def delete(self, resource: str, id: str, parent: str | None = None) -> None:
        """Delete the record."""
        request = build_delete_request(declaration(resource), id, parent)
        check_deleted(request, await self.send(request))

    async def convert(self, resource: str, id: str) -> Resource:
        """Convert a lead into an active customer (API 4.6). It cannot be undone."""
        return await self._record(build_convert_request(declaration(resource), id))

    async def _record(self, request: Request) -> Resource:
        """Send the request, and return the record in the answer."""
        declared = declaration(request.resource)

        def parse(request: Request, answer: Response) -> Resource:
            return declared.record(read_record(request, answer), served_at=served_at(answer))

        return await self._send(request, parse)

    # -- Sending ----------------------------------------------------------------------------------

    async def send(self, request: Request) -> Response:
        """Send one request and return its successful answer; every failure is raised.

        A read is repeated while it may succeed; a write only if it was certainly not applied.
        """
        return await self._send(request, lambda _, answer: answer)

    async def _send(self, request: Request, reader: Callable[[Request, Response], T]) -> T:
        """Send the request and return `reader(request, answer)`. Raises the last attempt's error.

        If `reader` raises `UnreadableAnswer`, a read is repeated, as after a 502.
        """
        attempts = _Attempts()
        while True:
            try:
                return reader(request, await self._send_attempt(request, attempts))
            except (TryAgain, UnreadableAnswer) as error:
                seconds = self._seconds_to_repeat(request, attempts, error)
                spent = self._clock() - attempts.begun_at
                if seconds is None or spent + seconds >= self.limits.retry_seconds_max:
                    raise
            self._observer.on_wait_start(seconds, "retry")
            await self._sleep(seconds)

    def _seconds_to_repeat(
        self, request: Request, attempts: _Attempts, error: TryAgain | UnreadableAnswer
    ) -> float | None:
        """Return the seconds to wait before the next attempt; None if there is no other attempt."""
        # Any other failure of a write leaves it in doubt.
        assert request.is_read or isinstance(error, RateLimited | Unreachable), error
        attempts_max = self.limits.attempts_max
        if isinstance(error, Unreachable | UnreadableAnswer):
            attempts_max = min(attempts_max, FEW_ATTEMPTS_MAX)
        if attempts.count >= attempts_max:
            return None
        if isinstance(error, RateLimited):
            return 0.0  # After a 429 the rate limiter makes every request wait.
        backoff = min(BACKOFF_SECONDS_MAX, BACKOFF_SECONDS_MIN * 2.0 ** (attempts.count - 1))
        backoff *= 1 + self._chance() / 2  # Chance only ever lengthens it.
        requested = error.retry_after_seconds if isinstance(error, TryAgain) else None
        if requested is not None and requested > RESET_SECONDS_MAX:
            return None
        return max(backoff, requested or 0.0)

    async def _send_attempt(self, request: Request, attempts: _Attempts) -> Response:
        """Send the request once, when the limits permit. Raises the error of a failed answer."""
        async with self._slots:
            ticket = await self._wait_for_permission(request, attempts)
            answer: Response | None = None
            has_left = False
            try:
                if self._meter is not None:
                    await self._meter.count_attempt(request)
                sent_at = self._clock()
                # Time spent waiting before the first attempt does not count against a second one.
                attempts.begun_at = sent_at if attempts.count == 0 else attempts.begun_at
                attempts.count += 1
                self._observer.before_send(request)
                has_left = True
                try:
                    answer = await self._session.exchange(request)
                except (Unreachable, Misused):
                    has_left = False
                    raise
                finally:
                    status = answer.status if answer is not None else None
                    self._observer.on_response(request, status, self._clock() - sent_at)
            finally:
                self._return_ticket(ticket, answer, has_left)
        now = self._clock()
        if 200 <= answer.status < 300:
            return replace(answer, seconds=now - sent_at)
        error = response_error(request, answer, reset_in_seconds=self.limiter.resets_in(now))
        if isinstance(error, ServerFailed):
            requested = seconds_until(retry_after(answer), now - sent_at, _unix_date(answer))
            error.retry_after_seconds = requested
        raise error

    def _return_ticket(self, ticket: Ticket, answer: Response | None, has_left: bool) -> None:
        """End the ticket with the answer's rate headers; `has_left` is True if the server may have
        counted it.
        """
        now, limiter = self._clock(), self.limiter
        if answer is None:
            fate = limiter.record_lost if has_left else limiter.record_unsent
            fate(now, ticket)
        else:
            if self._meter is not None:
                self._meter.record_response(answer.status, served_at(answer))
            rate, server_now = rate_headers(answer), _unix_date(answer)
            if answer.status == 429:
                limiter.record_refusal(now, ticket, rate, server_now, self._chance())
            else:
                limiter.record_response(now, ticket, rate, server_now)
        # Requests that wait may ask the rate limiter again.
        answered, self._answered = self._answered, asyncio.Event()
        answered.set()

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
                where, seconds = request.method_and_path, permission.seconds
                raise RateLimited(where, reset_in_seconds=seconds, is_sent=False)
            await self._wait_for_response(permission.seconds, permission.reason)

    async def _wait_for_response(self, seconds: float | None, reason: str) -> None:
        """Wait this many seconds, or until any request is answered; None: only for an answer."""
        if not self._waiting:
            self._waiting_since = self._clock()
        self._waiting += 1
        self._observer.on_wait_start(seconds or 0.0, reason)
        waits: set[asyncio.Future[Any]] = {asyncio.ensure_future(self._answered.wait())}
        if seconds is not None:
            waits.add(asyncio.ensure_future(self._sleep(seconds)))
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in waits:
                each.cancel()
            self._waiting -= 1
            if not self._waiting:
                # Waits that overlap count once, so that their sum is never more than what passed.
                self._observer.on_wait_end(self._clock() - self._waiting_since, reason)


def _unix_date(answer: Response) -> float | None:
    """Return the answer's `Date` as a Unix time; None if it has none."""
    moment = served_at(answer)
    return None if moment is None else moment.timestamp()
