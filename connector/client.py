"""The typed, asynchronous client of the API: the only place that knows httpx.

    async with Client("https://acme.example", key) as client:
        page = await client.candidates.list(sort="updated_at")
        candidate = await client.candidates.get(page.items[0].id)

Every request has a total deadline and a cap on the answer's size; no redirect is followed and no
proxy of the environment is used. All requests of a client share one pace. Reads are repeated
within bounds of count and time. A write is repeated only when it is certain that nothing was
applied; otherwise it raises `InDoubt`.
"""

from __future__ import annotations

import asyncio
import logging
import random
import ssl
import time
from collections.abc import Callable, Coroutine, Generator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Protocol, Self

import httpx
from pydantic import SecretStr

from connector.address import read_address
from connector.catalog import (
    Booking,
    Candidate,
    Company,
    ContentItem,
    ContentType,
    Job,
    Lead,
)
from connector.endpoint import Endpoint, Exchange
from connector.engine.pace import Go, Pace, Spent, Ticket, Wait
from connector.errors import (
    AnswerTooLarge,
    ConnectorError,
    InDoubt,
    Misused,
    NoAnswer,
    QuotaSpent,
    RateLimited,
    SettingsError,
    TryAgain,
    Unreachable,
)
from connector.key import read_key
from connector.wire import Answer, Request, error_of, rate_headers, served_at

# httpx logs whole addresses, queries included, and a query can hold personal data.
for _name in ("httpx", "httpcore"):
    logging.getLogger(_name).setLevel(logging.WARNING)

WRITE_IDLE_SECONDS_MAX = 5.0
"""A connection idle for longer is not used again: the server may be closing it, which puts a
write in doubt.
"""

HEADERS_MAX = 200
"""More header lines than this are not an answer of this API."""

CONNECT_ATTEMPTS_MAX = 3
"""Attempts at a connection that cannot be made."""

BACKOFF_SECONDS_MAX = 20.0


class Observer(Protocol):
    """Told of everything that leaves and is waited for; called from the event loop, so it must
    not block.
    """

    def before_send(self, request: Request) -> None:
        """An attempt is about to leave; raising here (a budget) stops it."""

    def answered(self, request: Request, status: int | None, seconds: float) -> None:
        """An attempt ended with a status, or with None where no answer came."""

    def waited(self, seconds: float, why: str) -> None:
        """A request was held back."""


class Unobserved:
    """Nobody observes."""

    def before_send(self, request: Request) -> None:
        """Ignore it."""

    def answered(self, request: Request, status: int | None, seconds: float) -> None:
        """Ignore it."""

    def waited(self, seconds: float, why: str) -> None:
        """Ignore it."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The client's own bounds: `deadline_seconds` for one attempt from first byte to last,
    `attempts_max` and `retry_seconds_max` for the repeats of one request, `body_bytes_max` for an
    answer unpacked.
    """

    deadline_seconds: float = 60.0
    attempts_max: int = 5
    retry_seconds_max: float = 300.0
    body_bytes_max: int = 32 * 1024 * 1024


class Client:
    """A client for one workspace with one key.

    `connections` requests are under way at once, at most. `pace` may be shared by several clients
    of one key. `ca_file` adds a certificate authority; nothing turns verification off. Raises
    `SettingsError` for an address or a key that cannot be right.
    """

    def __init__(
        self,
        base_url: str,
        api_key: str | SecretStr,
        *,
        connections: int = 4,
        reserve: int = 0,
        pace: Pace | None = None,
        limits: Limits | None = None,
        observer: Observer | None = None,
        ca_file: Path | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Coroutine[Any, Any, None]] = asyncio.sleep,
        chance: Callable[[], float] = random.random,
    ) -> None:
        try:
            self.base_url = read_address(base_url)
        except ValueError as error:
            raise SettingsError(f"the base address must be {error}") from None
        try:
            secret = api_key if isinstance(api_key, SecretStr) else read_key(api_key)
            self._auth = _Bearer(read_key(secret.get_secret_value()))
        except ValueError as error:
            raise SettingsError(f"the API key {error}") from None
        self.pace = pace or Pace(reserve=reserve)
        self.limits = limits or Limits()
        self._observer: Observer = observer or Unobserved()
        self._clock, self._sleep, self._chance = clock, sleep, chance
        self._slots = asyncio.Semaphore(connections)
        self._answered = asyncio.Event()
        self._http = httpx.AsyncClient(
            base_url=self.base_url,
            auth=self._auth,
            headers={"Accept": "application/json", "User-Agent": "recruitment-connector"},
            verify=_trust(ca_file),
            trust_env=False,
            follow_redirects=False,
            timeout=httpx.Timeout(self.limits.deadline_seconds),
            limits=httpx.Limits(
                max_connections=connections,
                max_keepalive_connections=connections,
                keepalive_expiry=WRITE_IDLE_SECONDS_MAX,
            ),
        )

    def __repr__(self) -> str:
        return f"<Client of {self.base_url}>"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections. A closed client cannot be used again."""
        await self._http.aclose()

    # -- resources --------------------------------------------------------------------------------

    @property
    def jobs(self) -> Endpoint[Job]:
        """Jobs (API 4.2)."""
        return Endpoint(self, Job)

    @property
    def candidates(self) -> Endpoint[Candidate]:
        """Candidates (API 4.3)."""
        return Endpoint(self, Candidate)

    @property
    def companies(self) -> Endpoint[Company]:
        """Companies (API 4.4)."""
        return Endpoint(self, Company)

    @property
    def bookings(self) -> Endpoint[Booking]:
        """Bookings (API 4.5)."""
        return Endpoint(self, Booking)

    @property
    def leads(self) -> Endpoint[Lead]:
        """Leads, which can be converted (API 4.6)."""
        return Endpoint(self, Lead)

    @property
    def content_types(self) -> Endpoint[ContentType]:
        """Content types, which can only be read (API 4.7)."""
        return Endpoint(self, ContentType)

    def content_items(self, type: str) -> Endpoint[ContentItem]:
        """The items of one content type, by its slug or id (API 4.7)."""
        return Endpoint(self, ContentItem, type)

    # -- sending ----------------------------------------------------------------------------------

    async def send(self, request: Request) -> Exchange:
        """Send one request and return the answer of a success; every other end is raised.

        A read is repeated while it may succeed; a write only if it was certainly not applied.
        """
        started, attempt = self._clock(), 0
        while True:
            attempt += 1
            try:
                return await self._attempt(request)
            except TryAgain as error:
                spent = self._clock() - started
                may_repeat = request.is_read or isinstance(error, RateLimited | Unreachable)
                attempts_max = self.limits.attempts_max
                if isinstance(error, Unreachable):
                    # Nobody there now is seldom somebody there in ten seconds.
                    attempts_max = min(attempts_max, CONNECT_ATTEMPTS_MAX)
                if not may_repeat or attempt >= attempts_max:
                    raise
                if spent >= self.limits.retry_seconds_max:
                    raise
                # The pace holds everything back after a 429; nothing need be added to it here.
                if not isinstance(error, RateLimited):
                    await self._sleep(self._backoff(attempt))

    def _backoff(self, attempt: int) -> float:
        """Seconds before the next attempt: doubling, and only ever lengthened by chance."""
        return float(min(BACKOFF_SECONDS_MAX, 0.5 * 2 ** (attempt - 1)) * (1 + self._chance() / 2))

    async def _attempt(self, request: Request) -> Exchange:
        async with self._slots:
            ticket = await self._leave_to_go(request)
            sent_at = self._clock()
            answer: Answer | None = None
            has_left = False
            try:
                self._observer.before_send(request)
                has_left = True
                answer = await self._exchange(request)
            except Unreachable:
                has_left = False
                raise
            finally:
                self._give_back(ticket, answer, has_left)
                status = answer.status if answer is not None else None
                self._observer.answered(request, status, self._clock() - sent_at)
        if not 200 <= answer.status < 300:
            raise error_of(request, answer)
        return Exchange(answer, self._clock() - sent_at)

    def _give_back(self, ticket: Ticket, answer: Answer | None, has_left: bool) -> None:
        """Tell the pace what became of a request, and what the answer says of the limit."""
        now = self._clock()
        if answer is None:
            fate = self.pace.lost if has_left else self.pace.unsent
            fate(now, ticket)
        else:
            moment = served_at(answer)
            server_now = moment.timestamp() if moment is not None else None
            rate = rate_headers(answer)
            if answer.status == 429:
                self.pace.refused(now, ticket, rate, server_now, self._chance())
            else:
                self.pace.heard(now, ticket, rate, server_now)
        # Whoever waits may ask again.
        answered, self._answered = self._answered, asyncio.Event()
        answered.set()

    async def _leave_to_go(self, request: Request) -> Ticket:
        """Wait until the pace lets the request leave. Raises `QuotaSpent`."""
        while True:
            match self.pace.ask(self._clock()):
                case Go(ticket):
                    return ticket
                case Spent(resets_at):
                    when = None if resets_at is None else datetime.fromtimestamp(resets_at, UTC)
                    raise QuotaSpent(
                        f"{request.where} was not sent: the month's allowance is spent",
                        resets_at=when.isoformat() if when is not None else None,
                    )
                case Wait(seconds, reason):
                    await self._wait(seconds, reason)

    async def _wait(self, seconds: float | None, reason: str) -> None:
        """Wait for the pace, or less: any answer may change what it says. None: for an answer."""
        since = self._clock()
        waits = {asyncio.ensure_future(self._answered.wait())}
        if seconds is not None:
            waits.add(asyncio.ensure_future(self._slept(seconds)))
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in waits:
                each.cancel()
            self._observer.waited(self._clock() - since, reason)

    async def _slept(self, seconds: float) -> Literal[True]:
        await self._sleep(seconds)
        return True

    # -- the connection ---------------------------------------------------------------------------

    async def _exchange(self, request: Request) -> Answer:
        """One attempt. What it raises says whether the request can have been applied."""
        try:
            async with asyncio.timeout(self.limits.deadline_seconds):
                return await self._stream(request)
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout) as error:
            raise Unreachable(f"{self.base_url} cannot be reached: {_reason(error)}") from None
        except httpx.LocalProtocolError as error:
            raise Misused(f"{request.where} cannot be sent: {_reason(error)}") from None
        except (httpx.HTTPError, TimeoutError) as error:
            reason = _reason(error)
            if isinstance(error, TimeoutError | httpx.TimeoutException):
                reason = f"no whole answer within {self.limits.deadline_seconds:g} s"
            raise self._lost(request, reason) from None
        except AnswerTooLarge as error:
            if request.is_read:
                raise
            raise InDoubt(request.where, str(error)) from None

    def _lost(self, request: Request, reason: str) -> ConnectorError:
        if request.is_read:
            return NoAnswer(f"{request.where} was not answered: {reason}")
        return InDoubt(request.where, reason)

    async def _stream(self, request: Request) -> Answer:
        """Send, and read the answer no further than the cap."""
        headers = {} if request.body is None else {"Content-Type": "application/json"}
        async with self._http.stream(
            request.method,
            request.path,
            params=dict(request.query),
            content=request.body,
            headers=headers,
        ) as response:
            if len(response.headers.raw) > HEADERS_MAX:
                raise AnswerTooLarge(f"{request.where} was answered with too many headers")
            chunks, size = [], 0
            async for chunk in response.aiter_bytes():
                size += len(chunk)
                if size > self.limits.body_bytes_max:
                    raise AnswerTooLarge(
                        f"{request.where} was answered with more than "
                        f"{self.limits.body_bytes_max} bytes"
                    )
                chunks.append(chunk)
            found = {name.lower(): value for name, value in response.headers.items()}
            return Answer(response.status_code, found, b"".join(chunks))


class _Bearer(httpx.Auth):
    """Puts the key into the header (API 5.1), on its way out and nowhere else."""

    def __init__(self, key: SecretStr) -> None:
        self._key = key

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        request.headers["Authorization"] = f"Bearer {self._key.get_secret_value()}"
        yield request


def _trust(ca_file: Path | None) -> ssl.SSLContext:
    """The authorities that are trusted: the usual ones, and the file's."""
    context = httpx.create_ssl_context(trust_env=False)
    if ca_file is not None:
        try:
            context.load_verify_locations(cafile=ca_file)
        except (OSError, ssl.SSLError) as error:
            raise SettingsError(f"{ca_file} cannot be read as certificates: {error}") from None
    return context


def _reason(error: Exception) -> str:
    """The error in a few words: its own, or its name where it has none."""
    return str(error) or type(error).__name__
