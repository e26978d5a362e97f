"""Server of the sandbox: starts and stops uvicorn in a separate thread."""

from __future__ import annotations

import asyncio
import random
import socket
from collections.abc import Iterable, Mapping
from pathlib import Path
from threading import Event, Thread
from typing import Self

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from connector.errors import ConnectorError
from connector.sandbox.app import ALL_SCOPES, Api, Between, LoggedRequest, RequestLimits
from connector.sandbox.faults import Faults
from connector.sandbox.seed import seed_store
from connector.sandbox.store import Clock, Store, utc_now

KEY_DEFAULT = "sandbox-key"
_START_SECONDS_MAX = 30
_STOP_SECONDS_MAX = 10


class Sandbox:
    """A local copy of the API that listens on a port while the `with` block lasts.

        with Sandbox(counts={"jobs": 100, "companies": 5}, behaviours={"delete": "message"}) as box:
            httpx.get(f"{box.base_url}/api/v1/jobs", headers={"Authorization": f"Bearer {box.key}"})

    On leaving, the block raises the first exception of the server, if there was one.

    Args:
        counts: Number of sample records by resource; a resource left out has none.
        seed: Random seed of the sample records and of the faults.
        keys: API keys with their scopes; "*" has all scopes.
        rate_limit: Requests per minute.
        monthly_limit: Requests per calendar month.
        behaviours: Switches by name, see docs/SANDBOX.md.
        data: File in which the records are stored. A file with records is used as it is.
        clock: The server's time.
        between: Called with the store between every two requests.
        host: Address to listen on.
        port: Port to listen on; 0 picks a free one.

    Raises:
        UnknownName: A name or a value does not exist.
        SettingsError: A number is negative, or the file is of another kind.
        ConnectorError: The port is taken (on entering).
    """

    def __init__(
        self,
        *,
        counts: Mapping[str, int] | None = None,
        seed: int = 7,
        keys: Mapping[str, Iterable[str]] | None = None,
        rate_limit: int | None = None,
        monthly_limit: int | None = None,
        behaviours: Mapping[str, str] | None = None,
        data: str | Path | None = None,
        clock: Clock = utc_now,
        between: Between | None = None,
        host: str = "127.0.0.1",
        port: int = 0,
    ) -> None:
        keys = keys or {KEY_DEFAULT: (ALL_SCOPES,)}
        self.key = next(iter(keys))
        # Another stream than the one that made the first records, or their ids come again.
        ids = random.Random(f"created {seed}")  # noqa: S311  # made-up people
        self.store = Store(clock=clock, random=ids, behaviours=behaviours, path=data)
        try:
            if self.store.is_new:
                seed_store(self.store, counts or {}, seed=seed)
        except BaseException:
            self.store.close()
            raise
        self.faults = Faults(random.Random(seed))  # noqa: S311  # as above
        self.limits = RequestLimits(
            self.store.behaviours, per_minute=rate_limit, per_month=monthly_limit
        )
        self._api = Api(self.store, keys=keys, limits=self.limits, match_fault=self.faults.match)
        self._api.between = between
        self._host, self._port = host, port
        self._running: _ServerThread | None = None

    @property
    def base_url(self) -> str:
        """Address before `/api/v1`."""
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"http://{host}:{self._port}"

    @property
    def log(self) -> list[LoggedRequest]:
        """Copy of the log of requests, oldest first."""
        return list(self._api.log)

    @property
    def between(self) -> Between | None:
        """Hook that is called with the store between two requests that reach it."""
        return self._api.between

    @between.setter
    def between(self, between: Between | None) -> None:
        self._api.between = between

    def apply_delayed_effects(self) -> int:
        """Apply the effects that `Drop(effect="later")` postponed; return their number."""
        number = len(self._api.delayed)
        for _ in range(number):
            self._api.delayed.popleft()()
        return number

    def start(self) -> None:
        """Start to listen; after `stop`, at the same address.

        Raises `ConnectorError` if the address is in use.
        """
        server = _ServerThread(self._api, self._open_listener())
        server.start()
        if not server.is_ready.wait(_START_SECONDS_MAX):
            raise ConnectorError(f"The sandbox did not start within {_START_SECONDS_MAX} s.")
        self._running = server

    def stop(self) -> None:
        """Close all connections and stop listening, like a crashed server. The records are kept."""
        server, self._running = self._running, None
        if server is not None:
            server.shut_down()

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
        if self._api.failures and kind is None:
            raise self._api.failures[0]

    def _open_listener(self) -> socket.socket:
        """Return a socket that is bound to the address. Raises `ConnectorError` if it is in use."""
        listener = socket.socket(socket.AF_INET6 if ":" in self._host else socket.AF_INET)
        # A port that a sandbox has just left can be taken again immediately.
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


class _ClosableProtocol(HttpToolsProtocol):
    """Protocol of uvicorn that lets the application close the connection.

    A connection that is accepted while the server leaves is closed at once.
    """

    def __init__(self, config: uvicorn.Config, state: ServerState, leaving: asyncio.Event) -> None:
        super().__init__(config, state, {})
        self._leaving = leaving

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if self._leaving.is_set():
            transport.abort()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.scope["state"]["sandbox.hang_up"] = self._close_connection

    def _close_connection(self) -> None:
        # Closing rather than aborting: what was sent before is still delivered.
        self.transport.close()


class _ServerThread(Thread):
    def __init__(self, app: Api, listener: socket.socket) -> None:
        super().__init__(name="sandbox", daemon=True)
        self.is_ready = Event()
        self._listener = listener
        self._config = uvicorn.Config(
            app,
            interface="asgi3",
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            date_header=False,
        )
        self._config.load()

    def run(self) -> None:
        """Serve in a new event loop."""
        with asyncio.Runner(loop_factory=self._config.get_loop_factory()) as runner:
            runner.run(self._serve_until_stopped())

    def shut_down(self) -> None:
        """Stop the server, and wait for the end of the thread."""
        self._loop.call_soon_threadsafe(self._leaving.set)
        self.join(_STOP_SECONDS_MAX)

    async def _serve_until_stopped(self) -> None:
        """Accept connections until `shut_down` is called, then close them all."""
        self._loop, self._leaving = asyncio.get_running_loop(), asyncio.Event()
        state = ServerState()
        server = await self._loop.create_server(
            lambda: _ClosableProtocol(self._config, state, self._leaving),
            sock=self._listener,
            backlog=2048,
        )
        self.is_ready.set()
        await self._leaving.wait()
        server.close()
        for connection in list(state.connections):
            if connection.transport is not None:
                connection.transport.abort()
        # Exchanges that wait for their client notice that it has gone, and end by themselves.
        await asyncio.sleep(0)
        if tasks := set(state.tasks):
            await asyncio.wait(tasks, timeout=_STOP_SECONDS_MAX)
        await server.wait_closed()
