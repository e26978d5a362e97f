"""Receivers of alerts: a webhook and a mail server, both over real sockets."""

from __future__ import annotations

import base64
import json
import socket
import ssl
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from email import message_from_bytes
from email.message import Message
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


@dataclass
class MailServer:
    """SMTP server that records emails and commands. It rejects the recipients in
    `rejected_recipients`, and wrong passwords if it has one. `tls` is used after STARTTLS, or for
    the whole connection if it `is_wrapped`.
    """

    tls: ssl.SSLContext | None = None
    is_wrapped: bool = False
    password: str | None = None
    rejected_recipients: tuple[str, ...] = ()
    data_response: str = "250 taken"
    emails: list[Message] = field(default_factory=list)
    recipients: list[list[str]] = field(default_factory=list)
    protected: list[bool] = field(default_factory=list)
    commands: list[str] = field(default_factory=list)

    def __enter__(self) -> Self:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        # Closing alone does not end a pending accept().
        self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._listener.close()

    def _serve(self) -> None:
        """Serve one client after another until the server closes. A client that rejects the
        certificate disconnects.
        """
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with connection, suppress(OSError):
                talk = _MailConnection(self, connection)
                try:
                    talk.serve()
                finally:
                    talk.close()

    @property
    def port(self) -> int:
        """Port of the server."""
        return int(self._listener.getsockname()[1])


class _MailConnection:
    """SMTP conversation with one mail client."""

    def __init__(self, server: MailServer, connection: socket.socket) -> None:
        self._server, self._socket = server, connection
        self._is_protected = server.is_wrapped
        if server.is_wrapped and server.tls is not None:
            self._socket = server.tls.wrap_socket(connection, server_side=True)
        self._lines = self._socket.makefile("rb")
        self._to: list[str] = []
        self._has_logged_in = server.password is None

    def serve(self) -> None:
        """Respond to commands until the client quits or disconnects."""
        self._send_line("220 ready")
        while line := self._lines.readline():
            command = line.decode("ascii").strip()
            word = command.split(" ", 1)[0].upper()
            self._server.commands.append(word)
            if word == "QUIT":
                self._send_line("221 bye")
                return
            self._respond(word, command)

    def close(self) -> None:
        """Close the connection."""
        self._lines.close()
        self._socket.close()

    def _respond(self, verb: str, command: str) -> None:
        """Respond to the command `verb`, whose whole line is `command`."""
        server = self._server
        match verb:
            case "EHLO":
                extras = ["AUTH PLAIN"] if server.password is not None else []
                extras += ["STARTTLS"] if server.tls and not self._is_protected else []
                lines = ["here", *extras]
                for line in lines[:-1]:
                    self._send_line(f"250-{line}")
                self._send_line(f"250 {lines[-1]}")
            case "STARTTLS":
                self._send_line("220 go on")
                self._lines.close()
                assert server.tls is not None
                self._socket = server.tls.wrap_socket(self._socket, server_side=True)
                self._lines = self._socket.makefile("rb")
                self._is_protected = True
            case "AUTH":
                given = base64.b64decode(command.split()[2]).decode().split("\0")[2]
                self._has_logged_in = given == server.password
                self._send_line("235 welcome" if self._has_logged_in else "535 no, Annabel Quist")
            case "RCPT":
                address = command.split("<")[1].split(">", maxsplit=1)[0]
                if address in server.rejected_recipients:
                    self._send_line(f"550 no recipient {address}")
                else:
                    self._to.append(address)
                    self._send_line("250 ok")
            case "DATA":
                self._send_line("354 go on")
                content = b""
                while (part := self._lines.readline()) != b".\r\n":
                    content += part
                server.emails.append(message_from_bytes(content))
                server.recipients.append(self._to)
                server.protected.append(self._is_protected)
                self._send_line(server.data_response)
            case _:
                self._send_line("250 ok" if self._has_logged_in or verb == "RSET" else "530 log in")

    def _send_line(self, line: str) -> None:
        self._socket.sendall(f"{line}\r\n".encode())
