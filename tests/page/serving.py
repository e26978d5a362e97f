"""Helpers for tests of the page: the page in a thread or a process, and its users."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any, Self
from urllib.parse import quote

import httpx
import uvicorn

from connector.page.access import Access, Proxy
from connector.page.app import App
from connector.page.imports import Imports
from connector.sandbox.server import Sandbox
from tests.support.agency import settings_of

ENDS_SECONDS = 60.0
HEADINGS = "First name,Last name,Email,Employment type"


def make_csv(*lines: str, headings: str = HEADINGS) -> bytes:
    """Return a CSV file with these lines."""
    return "\n".join((headings, *lines)).encode()


class Server:
    """The page in a thread: its imports, its access and its address."""

    def __init__(self, imports: Imports, access: Access, address: str) -> None:
        self.imports, self.access, self.address = imports, access, address


@contextmanager
def serve(
    sandbox: Sandbox,
    folder: Path,
    proxy: Proxy | None = None,
    public: str | None = None,
    **flags: Any,
) -> Iterator[Server]:
    """Serve the page in a thread, perhaps at a public address; `flags` are settings."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    # A client that connects before the server starts waits in the queue.
    listener.listen()
    address = f"http://127.0.0.1:{listener.getsockname()[1]}"
    imports = Imports(settings_of(sandbox, folder, **flags))
    access = Access(public or address, "Ann", imports.folder, proxy)
    app = App(imports, access)
    config = uvicorn.Config(app, log_config=None, lifespan="off", proxy_headers=False)
    running = uvicorn.Server(config)
    thread = Thread(target=running.run, args=([listener],), daemon=True)
    thread.start()
    try:
        yield Server(imports, access, address)
    finally:
        running.should_exit = True
        thread.join(ENDS_SECONDS)
        listener.close()


class User:
    """User of the page without a browser. Headers replace the sign-in with the link."""

    def __init__(self, server: Server, **headers: str) -> None:
        self.address = server.address
        self.client = httpx.Client(base_url=server.address, timeout=ENDS_SECONDS, headers=headers)
        if not headers:
            self.client.get(server.access.create_link(), follow_redirects=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.client.close()

    def send_request(
        self, path: str, body: bytes = b"{}", headers: Mapping[str, str] | None = None
    ) -> httpx.Response:
        """Send a POST request as the page does."""
        own = {"Origin": self.address, "X-Import-Page": "1", **(headers or {})}
        return self.client.post(path, content=body, headers=own)

    def post(self, path: str, said: Mapping[str, Any], status: int = 200) -> dict[str, Any]:
        """Post JSON and return the answer."""
        answer = self.send_request(path, json.dumps(said).encode())
        assert status == answer.status_code, answer.text
        return dict(answer.json())

    def get(self, path: str, status: int = 200) -> dict[str, Any]:
        """Return the JSON at a path."""
        answer = self.client.get(path)
        assert status == answer.status_code, answer.text
        return dict(answer.json())

    def start(self, name: str, content: bytes, *, status: int = 200, **said: Any) -> httpx.Response:
        """Upload a file; `said` are the answers of the first screen."""
        form = {"resource": "candidates", "mode": "create", "name": name, **said}
        answer = self.send_request(
            "/api/imports", content, {"X-Import": quote(json.dumps(form, ensure_ascii=False))}
        )
        assert status == answer.status_code, answer.text
        return answer

    def upload(self, content: bytes, name: str = "people.csv", **said: Any) -> OpenImport:
        """Start an import, and return it."""
        answer = self.start(name, content, status=200, **said)
        return OpenImport(self, str(answer.json()["id"]))


class OpenImport:
    """An import as one tab of the page sees it: it remembers the version that it shows."""

    def __init__(self, user: User, id: str) -> None:
        self.user, self.id, self.path = user, id, f"/api/imports/{id}"
        self.version, self.checked_at = self.show()["version"], ""

    def show(self) -> dict[str, Any]:
        """Return the import with its cells, without taking over its version."""
        return self.user.get(self.path)

    def load(self) -> dict[str, Any]:
        """Return the import with its cells, as after loading the page again."""
        shown = self.show()
        self.version = shown["version"]
        return shown

    def check(self) -> dict[str, Any]:
        """Return what would happen to each row."""
        found = self.user.get(f"{self.path}/check")
        self.checked_at = found["at"]
        return found

    def change(self, status: int = 200, **said: Any) -> dict[str, Any]:
        """Save a change of the version that the tab shows."""
        found = self.user.post(self.path, {"version": self.version, **said}, status)
        self.version = found.get("check", {"version": self.version})["version"]
        return found

    def outcomes(self) -> dict[str, str]:
        """Return the outcome of each row."""
        return {number: row["outcome"] for number, row in self.check()["rows"].items()}

    def start_sending(self, *accepted: str, status: int = 200) -> None:
        """Send the import as the tab shows it."""
        if not self.checked_at:
            self.check()
        order = {"version": self.version, "checked_at": self.checked_at, "accepted": accepted}
        self.user.post(f"{self.path}/send", order, status)

    def send(self, *accepted: str) -> dict[str, Any]:
        """Send the import, wait for its end, and return the outcome of each row."""
        self.start_sending(*accepted)
        progress = self.wait()
        assert progress["error"] is None, progress
        self.load()
        return {number: row["outcome"] for number, row in self.results().items()}

    def wait(self) -> dict[str, Any]:
        """Wait until the import is no longer at work, and return its progress."""
        return self.wait_for("is_over", True)

    def wait_for(self, name: str, value: Any) -> dict[str, Any]:
        """Return the progress once it has this value."""
        end = time.monotonic() + ENDS_SECONDS
        while (found := self.user.get(f"{self.path}/progress"))[name] != value:
            assert time.monotonic() < end, found
        return found

    def results(self) -> dict[str, Any]:
        """Return the rows that were sent."""
        rows: dict[str, Any] = self.user.get(f"{self.path}/results")["rows"]
        return rows


def make_environ(sandbox: Sandbox, folder: Path) -> dict[str, str]:
    """Return the environment of a command whose account is the sandbox, with data in the folder."""
    return {
        **{name: os.environ[name] for name in ("PATH", "PYTHONPATH", "HOME") if name in os.environ},
        "CONNECTOR_BASE_URL": sandbox.base_url,
        "CONNECTOR_API_KEY": sandbox.key,
        "CONNECTOR_DATA_DIR": str(folder / "data"),
        "CONNECTOR_MODELS": "off",
        "CONNECTOR_CONNECTIONS": "1",
    }


class PageProcess:
    """`connector page` in a separate process that a test can kill."""

    def __init__(self, environ: Mapping[str, str], folder: Path, port: int = 0) -> None:
        program = "from connector.cli import main; main()"
        command = [sys.executable, "-c", program, "page", "--port", str(port)]
        self._process = subprocess.Popen(
            command, env=dict(environ), cwd=folder, stderr=subprocess.PIPE, text=True
        )
        assert self._process.stderr is not None
        line = self._process.stderr.readline()
        found = re.search(r"(http://[^/]+:(\d+))/enter/\S+", line)
        assert found is not None, line + self._process.stderr.read()
        self.link, self.address, self.port = found[0], found[1], int(found[2])

    def kill(self) -> None:
        """Kill the process, as a power cut does."""
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        if self._process.poll() is None:
            self.kill()
        assert self._process.stderr is not None
        self._process.stderr.close()
