"""Webhook that receives notifications over a real socket."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self


class _WebhookServer(ThreadingHTTPServer):
    """HTTP server of a `Receiver`."""

    allow_reuse_address = True
    daemon_threads = True
    receiver: Receiver


class _WebhookHandler(BaseHTTPRequestHandler):
    """Handler of one request, which it records in the `Receiver`."""

    server: _WebhookServer

    def do_POST(self) -> None:
        """Record the path and body, and respond with the status of the `Receiver`."""
        body = self.rfile.read(int(self.headers["Content-Length"]))
        receiver = self.server.receiver
        receiver.paths.append(self.path)
        receiver.bodies.append(body)
        self.send_response(receiver.status)
        self.send_header("Content-Length", "0")
        if receiver.location:
            self.send_header("Location", receiver.location)
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing."""


class Receiver:
    """Webhook that records every posted body. While it is stopped, its port is closed."""

    def __init__(self, status: int = 204, location: str = "") -> None:
        self.status, self.location = status, location
        self.bodies: list[bytes] = []
        self.paths: list[str] = []
        self._server: _WebhookServer | None = None
        self._port = 0

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    @property
    def address(self) -> str:
        """Address to post to."""
        return f"http://127.0.0.1:{self._port}/hooks/planted-token-c0ffee?key=planted-query"

    @property
    def apprise_url(self) -> str:
        """Address in Apprise's form: a POST of a JSON object."""
        return f"json://127.0.0.1:{self._port}/hooks/planted-token-c0ffee"

    @property
    def received(self) -> list[dict[str, Any]]:
        """Posted JSON objects, in order."""
        return [json.loads(body) for body in self.bodies]

    def start(self) -> None:
        """Listen, after the first time at the same port."""
        self._server = _WebhookServer(("127.0.0.1", self._port), _WebhookHandler)
        self._server.receiver = self
        self._port = self._server.server_address[1]
        threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
        ).start()

    def stop(self) -> None:
        """Close the port."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None
