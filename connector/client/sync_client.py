"""The client without asyncio, for notebooks and scripts.

It is the same client: its loop runs in a thread of its own, so that it works where another loop
runs already, as in a notebook, and each method waits there for its end. Nothing of what a request
means, waits for or is retried by is written here.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Iterator
from inspect import iscoroutine
from threading import Thread
from typing import Any, Self

from pydantic import SecretStr

from connector.client.client import Client, Limits
from connector.client.resources import Resources
from connector.client.sync_resources import SyncResources
from connector.errors import Misused

_END = object()


class SyncClient(SyncResources):
    """Client for one workspace with one key, whose methods return when they are done.

        with SyncClient(base_url, api_key) as client:
            for job in client.jobs.iterate(filters={"status": "published"}):
                print(job.title)

    `connections`, `reserve` and `limits` are those of `Client`, and so are the errors. Several
    threads may use one client. Raises `SettingsError` for an address or a key that cannot be right.
    """

    def __init__(
        self,
        base_url: str,
        api_key: str | SecretStr,
        *,
        connections: int = 4,
        reserve: int = 0,
        limits: Limits | None = None,
    ) -> None:
        secret = api_key if isinstance(api_key, SecretStr) else SecretStr(api_key)
        del api_key  # A report that shows local variables must not show the key.
        self._loop = asyncio.new_event_loop()
        self._resources: Resources
        self._thread = Thread(target=self._loop.run_forever, name="sync-client", daemon=True)
        self._thread.start()
        try:
            self._client: Client = self._end_of(
                _made(base_url, secret, connections=connections, reserve=reserve, limits=limits)
            )
        except BaseException:
            self._stop()
            raise
        self._resources = self._client

    def __repr__(self) -> str:
        return f"<SyncClient of {self._client.base_url}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections and end the thread; a second time it does nothing."""
        if not self._loop.is_closed():
            self._end_of(self._client.aclose())
            self._stop()

    def _stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _end_of(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """What it returns or raises, once it has; interrupted, it is told to end."""
        if self._loop.is_closed():
            coroutine.close()
            raise Misused("the client is closed; make another one")
        future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        try:
            return future.result()
        except KeyboardInterrupt:
            future.cancel()
            raise

    def _waiting(self, endpoint: Any) -> Any:
        return _Waiting(self, endpoint)

    def _each(self, items: AsyncIterator[Any]) -> Iterator[Any]:
        while (item := self._end_of(_next(items))) is not _END:
            yield item


class _Waiting:
    """Endpoint whose methods return when they are done; its iterators are plain."""

    def __init__(self, client: SyncClient, endpoint: Any) -> None:
        self._client, self._endpoint = client, endpoint

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._endpoint, name)

        def call(*arguments: Any, **named: Any) -> Any:
            made = method(*arguments, **named)
            client = self._client
            return client._end_of(made) if iscoroutine(made) else client._each(made)

        return call


async def _made(base_url: str, secret: SecretStr, **named: Any) -> Client:
    return Client(base_url, secret, **named)


async def _next(items: AsyncIterator[Any]) -> Any:
    return await anext(items, _END)
