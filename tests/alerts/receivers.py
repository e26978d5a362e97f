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
    allow_reuse_address = True
    daemon_threads = True
    receiver: Receiver


class _WebhookHandler(BaseHTTPRequestHandler):
    server: _WebhookServer

    def do_POST(self) -> None:
        """Record the posted body, and respond with the configured status."""
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
    """Webhook that records every posted body. While it is down, its port is closed."""

    def __init__(self, status: int = 204, location: str = "") -> None:
        self.status, self.location = status, location
        self.bodies: list[bytes] = []
        self.paths: list[str] = []
        self._server: _WebhookServer | None = None
        self._port = 0

    def __enter__(self) -> Self:
        self.go_up()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.go_down()

    @property
    def address(self) -> str:
        """Address to post to."""
        return f"http://127.0.0.1:{self._port}/hooks/planted-token-c0ffee?key=planted-query"

    @property
    def received(self) -> list[dict[str, Any]]:
        """Posted objects, in order."""
        return [json.loads(body) for body in self.bodies]

    def go_up(self) -> None:
        """Listen again at the same port."""
        self._server = _WebhookServer(("127.0.0.1", self._port), _WebhookHandler)
        self._server.receiver = self
        self._port = self._server.server_address[1]
        threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
        ).start()

    def go_down(self) -> None:
        """Close the port."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None


@dataclass
class MailServer:
    """Mail server that accepts or rejects letters as configured. `tls` protects STARTTLS, or with
    `is_wrapped` the connection itself.
    """

    tls: ssl.SSLContext | None = None
    is_wrapped: bool = False
    password: str | None = None
    refused: tuple[str, ...] = ()
    answer_to_letter: str = "250 taken"
    letters: list[Message] = field(default_factory=list)
    recipients: list[list[str]] = field(default_factory=list)
    protected: list[bool] = field(default_factory=list)
    commands: list[str] = field(default_factory=list)

    def __enter__(self) -> Self:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._clerk = threading.Thread(target=self._serve)
        self._clerk.start()
        return self

    def __exit__(self, *exception: object) -> None:
        # Closing alone does not wake whoever waits for a connection.
        self._listener.shutdown(socket.SHUT_RDWR)
        self._clerk.join()
        self._listener.close()

    def _serve(self) -> None:
        """Serve one client after another until the server closes. A client that does not trust the
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
                    talk.go()
                finally:
                    talk.close()

    @property
    def port(self) -> int:
        """Port of the server."""
        return int(self._listener.getsockname()[1])


class _MailConnection:
    """Connection of one mail client."""

    def __init__(self, office: MailServer, connection: socket.socket) -> None:
        self._office, self._socket = office, connection
        self._is_protected = office.is_wrapped
        if office.is_wrapped and office.tls is not None:
            self._socket = office.tls.wrap_socket(connection, server_side=True)
        self._lines = self._socket.makefile("rb")
        self._to: list[str] = []
        self._has_logged_in = office.password is None

    def go(self) -> None:
        """Talk until the client leaves."""
        self._say("220 ready")
        while line := self._lines.readline():
            command = line.decode("ascii").strip()
            word = command.split(" ", 1)[0].upper()
            self._office.commands.append(word)
            if word == "QUIT":
                self._say("221 bye")
                return
            self._answer(word, command)

    def close(self) -> None:
        """Hang up."""
        self._lines.close()
        self._socket.close()

    def _answer(self, word: str, command: str) -> None:
        office = self._office
        match word:
            case "EHLO":
                extras = ["AUTH PLAIN"] if office.password is not None else []
                extras += ["STARTTLS"] if office.tls and not self._is_protected else []
                lines = ["here", *extras]
                for line in lines[:-1]:
                    self._say(f"250-{line}")
                self._say(f"250 {lines[-1]}")
            case "STARTTLS":
                self._say("220 go on")
                self._lines.close()
                assert office.tls is not None
                self._socket = office.tls.wrap_socket(self._socket, server_side=True)
                self._lines = self._socket.makefile("rb")
                self._is_protected = True
            case "AUTH":
                given = base64.b64decode(command.split()[2]).decode().split("\0")[2]
                self._has_logged_in = given == office.password
                self._say("235 welcome" if self._has_logged_in else "535 no, Annabel Quist")
            case "RCPT":
                address = command.split("<")[1].split(">", maxsplit=1)[0]
                if address in office.refused:
                    self._say(f"550 nobody called {address} is here")
                else:
                    self._to.append(address)
                    self._say("250 ok")
            case "DATA":
                self._say("354 go on")
                content = b""
                while (part := self._lines.readline()) != b".\r\n":
                    content += part
                office.letters.append(message_from_bytes(content))
                office.recipients.append(self._to)
                office.protected.append(self._is_protected)
                self._say(office.answer_to_letter)
            case _:
                self._say("250 ok" if self._has_logged_in or word == "RSET" else "530 log in")

    def _say(self, text: str) -> None:
        self._socket.sendall(f"{text}\r\n".encode())
