"""The sandbox as one thing to start and stop, with uvicorn in its own thread.

Tests and the command use the same class. This module knows sockets and threads; what is served
is the application's, what is stored the store's.
"""

from __future__ import annotations

import asyncio
import random
import socket
from collections.abc import Iterable, Mapping
from pathlib import Path
from threading import Event, Thread
from typing import Any, Self

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from connector.errors import ConnectorError
from connector.sandbox.app import ALL_SCOPES, Application, Between, LoggedRequest
from connector.sandbox.behaviour import Behaviours
from connector.sandbox.exchange import RequestLimits
from connector.sandbox.faults import Faults
from connector.sandbox.record_table import Clock, wall_clock
from connector.sandbox.seed import seed_store
from connector.sandbox.store import Store

KEY_DEFAULT = "sandbox-key"
_THREAD_NAME = "sandbox"
_START_SECONDS_MAX = 30
_STOP_SECONDS_MAX = 10


class Sandbox:
    """The API's twin, listening on a port while the `with` block lasts.

        with Sandbox(counts={"jobs": 100, "companies": 5}, behaviours={"delete": "message"}) as it:
            httpx.get(f"{it.base_url}/api/v1/jobs", headers={"Authorization": f"Bearer {it.key}"})

    `counts` says how many records of each resource are made up (those left out: none), `seed`
    which; `keys` maps API keys to scopes ("*": all). `rate_limit` is requests a minute and
    `monthly_limit` requests a calendar month. With `data`, records are kept in that file, and a
    file that has records is not seeded again. `clock` is the server's time. `between` is called
    with the store between every two requests.

    Raises `UnknownName` and `SettingsError` for names and values that do not exist, and on
    entering `ConnectorError` where the port is taken. On leaving it raises what failed within the
    server, if anything did.
    """

    def __init__(
        self,
        *,
        counts: Mapping[str, int] | None = None,
        seed: int = 7,
        keys: Mapping[str, Iterable[str]] | None = None,
        rate_limit: int | None = None,
        monthly_limit: int | None = None,
        behaviours: Mapping[str, str] | Behaviours | None = None,
        data: str | Path | None = None,
        clock: Clock = wall_clock,
        between: Between | None = None,
        host: str = "127.0.0.1",
        port: int = 0,
    ) -> None:
        read = Behaviours.read(behaviours)
        keys = keys or {KEY_DEFAULT: (ALL_SCOPES,)}
        self.key = next(iter(keys))
        self.store = Store(
            clock=clock,
            # Another stream than the one that made the first records, or their ids come again.
            random=random.Random(f"created {seed}"),  # noqa: S311  # made-up people
            behaviours=read,
            path=data or ":memory:",
        )
        try:
            if self.store.is_new:
                seed_store(self.store, counts or {}, seed=seed)
        except BaseException:
            self.store.close()
            raise
        self.faults = Faults(random.Random(seed))  # noqa: S311  # as above
        self.limits = RequestLimits(read, per_minute=rate_limit, per_month=monthly_limit)
        self._app = Application(self.store, keys=keys, limits=self.limits, faults=self.faults)
        self.between = between
        self._host, self._port = host, port
        self._running: tuple[_UvicornServer, Thread] | None = None

    @property
    def base_url(self) -> str:
        """The address before `/api/v1`."""
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"http://{host}:{self._port}"

    @property
    def log(self) -> list[LoggedRequest]:
        """The requests served so far, oldest first; a copy."""
        return list(self._app.log)

    @property
    def between(self) -> Between | None:
        """Called with the store before each request that reaches it, but the first."""
        return self._app.between_requests

    @between.setter
    def between(self, between: Between | None) -> None:
        """Begin to call it, from the second request on; None ends it."""
        self._app.between_requests = between

    def start(self) -> None:
        """Listen; after `stop`, at the same address as before.

        Raises `ConnectorError` where the address is taken.
        """
        server = _UvicornServer(self._app)
        thread = Thread(target=server.run, args=([self._listen()],), name=_THREAD_NAME, daemon=True)
        thread.start()
        if not server.is_ready.wait(_START_SECONDS_MAX):
            raise ConnectorError(f"The sandbox did not start within {_START_SECONDS_MAX} s.")
        self._running = server, thread

    def stop(self) -> None:
        """Cut every connection and listen no more, as a dead server; the store stays."""
        if self._running is None:
            return
        server, thread = self._running
        self._running = None
        server.leave()
        thread.join(_STOP_SECONDS_MAX)

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.store.close()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, *exception: object) -> None:
        self.stop()
        self.store.close()
        if self._app.failures and kind is None:
            raise self._app.failures[0]

    def _listen(self) -> socket.socket:
        family = socket.AF_INET6 if ":" in self._host else socket.AF_INET
        listener = socket.socket(family)
        # A port that a sandbox has just left can be taken again at once.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((self._host, self._port))
        except OSError as error:
            listener.close()
            raise ConnectorError(
                f"{self.base_url} cannot be listened on: {error.strerror or error}",
                action="Choose another port, or 0 for one that is free.",
            ) from error
        self._port = listener.getsockname()[1]
        return listener


class _Protocol(HttpToolsProtocol):
    """uvicorn's protocol, which lets the application hang up."""

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.scope["state"]["sandbox.hang_up"] = self._hang_up

    def _hang_up(self) -> None:
        # Closing rather than aborting: what was sent before is still delivered.
        self.transport.close()


class _UvicornServer(uvicorn.Server):
    """uvicorn's server, told to leave by an event rather than by a flag that it polls."""

    def __init__(self, app: Application) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                http=_Protocol,
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                date_header=False,
            )
        )
        self.is_ready = Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._leaving: asyncio.Event | None = None

    def leave(self) -> None:
        """End the server, from another thread."""
        if self._loop is not None and self._leaving is not None:
            self._loop.call_soon_threadsafe(self._leaving.set)

    async def main_loop(self) -> None:
        self._loop, self._leaving = asyncio.get_running_loop(), asyncio.Event()
        self.is_ready.set()
        await self._leaving.wait()

    async def shutdown(self, sockets: Any = None) -> None:
        for server in self.servers:
            server.close()
        for each in sockets or ():
            each.close()
        for connection in list(self.server_state.connections):
            if connection.transport is not None:
                connection.transport.abort()
        # Exchanges that wait for their client notice that it has gone, and end by themselves.
        await asyncio.sleep(0)
        if tasks := set(self.server_state.tasks):
            await asyncio.wait(tasks, timeout=_STOP_SECONDS_MAX)
        for server in self.servers:
            await server.wait_closed()
