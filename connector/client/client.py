"""`Client`: the resources of one workspace, each with the operations and the types that it has."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from pydantic import SecretStr

from connector.client.connection import Connections
from connector.client.endpoint import Exchange
from connector.client.rate_limiter import Pace, RateHeaders
from connector.client.request import Request
from connector.client.resources import Resources
from connector.client.sending import Limits, Observer, Sending, Toll, Unobserved, Untolled
from connector.errors import SettingsError
from connector.settings.credentials import read_key
from connector.settings.values import read_address


class Client(Resources):
    """A client for one workspace with one key.

    `connections` requests are under way at once, at most; `reserve` requests of each minute are
    left for people. `pace` may be shared by several clients of one key. `toll` is paid for every
    attempt. `ca_file` adds a certificate authority; nothing turns verification off. `proxy` is the
    way to an `https` address; those that the environment names are never used. Raises
    `SettingsError` for an address, a key or a file that cannot be right.
    """

    base_url: str = "no address yet"

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
        toll: Toll | None = None,
        ca_file: Path | None = None,
        proxy: str | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Coroutine[Any, Any, None]] = asyncio.sleep,
        chance: Callable[[], float] = random.random,
    ) -> None:
        secret = api_key if isinstance(api_key, SecretStr) else SecretStr(api_key)
        del api_key  # A report that shows local variables must not show the key.
        self.base_url = _address(base_url)
        self.pace = pace or Pace(reserve=reserve)
        self.limits = limits or Limits()
        self._connections = Connections(
            self.base_url,
            _key(secret),
            count=connections,
            deadline_seconds=self.limits.deadline_seconds,
            body_bytes_max=self.limits.body_bytes_max,
            ca_file=ca_file,
            proxy=proxy,
        )
        self._sending = Sending(
            self._connections,
            count=connections,
            pace=self.pace,
            limits=self.limits,
            observer=observer or Unobserved(),
            toll=toll or Untolled(),
            clock=clock,
            sleep=sleep,
            chance=chance,
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
        await self._connections.aclose()

    @property
    def rate(self) -> RateHeaders | None:
        """The limit as the last answer that spoke of it told it (API 8.3); None before that."""
        return self._sending.rate

    async def send(self, request: Request) -> Exchange:
        """Send one request and return the answer of a success; every other end is raised.

        A read is repeated while it may succeed; a write only if it was certainly not applied.
        """
        return await self._sending.send(request)


def _address(base_url: str) -> str:
    try:
        return read_address(base_url)
    except ValueError as error:
        raise SettingsError(f"the base address must be {error}") from None


def _key(secret: SecretStr) -> SecretStr:
    try:
        return SecretStr(read_key(secret.get_secret_value()))
    except ValueError as error:
        raise SettingsError(f"the API key {error}") from None
