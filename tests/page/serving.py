"""Helpers for tests of the page: the page in a process or a thread, its users, and their files."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from html import unescape
from pathlib import Path
from threading import Thread
from typing import Any, Self

import httpx
import openpyxl
import uvicorn

from connector.page.access import AccessRules
from connector.page.import_page import ImportPage, PageOptions
from connector.sandbox.server import Sandbox
from tests.support.agency import settings_of

HEADINGS = (
    *("Vorname", "Nachname", "E-Mail", "Mobil", "Geburtsdatum", "Beschäftigungsart", "Ort"),
    *("Merkfeld", "Farbe"),
)
"""Headings of a German list of people. The last two match no field."""

COLUMNS = {
    f"c:{index}": name
    for index, name in enumerate(("first_name", "last_name", "email", "employment_type"))
}
"""Answers of the columns screen for a file of `make_csv`."""
ENDS_SECONDS = 60.0


def make_environ(sandbox: Sandbox, folder: Path, **more: str) -> dict[str, str]:
    """Return the environment of a command whose account is the sandbox, with data in the folder."""
    return {
        **{name: os.environ[name] for name in ("PATH", "PYTHONPATH", "HOME") if name in os.environ},
        "CONNECTOR_BASE_URL": sandbox.base_url,
        "CONNECTOR_API_KEY": sandbox.key,
        "CONNECTOR_DATA_DIR": str(folder / "data"),
        "CONNECTOR_MODELS": "off",
        "CONNECTOR_CONNECTIONS": "1",
        **more,
    }


class PageProcess:
    """`connector page` in a separate process that a test can kill."""

    def __init__(self, environ: Mapping[str, str], folder: Path, port: int = 0) -> None:
        command = [sys.executable, "-m", "connector.cli.main", "page", "--port", str(port)]
        command[1:3] = ["-c", "from connector.cli import main; main()"]
        self._process = subprocess.Popen(
            command, env=dict(environ), cwd=folder, stderr=subprocess.PIPE, text=True
        )
        assert self._process.stderr is not None
        line = self._process.stderr.readline()
        found = re.search(r"(http://[^/]+:(\d+))/enter/\S+", line)
        assert found is not None, line + self._process.stderr.read()
        self.pid = self._process.pid
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


class PageUser:
    """Signed-in user who opens screens and submits forms without a browser. `shown` is the response
    of the current screen.
    """

    def __init__(self, address: str, path: str = "/", **headers: str) -> None:
        self.address = address
        self.client = httpx.Client(
            base_url=address, follow_redirects=True, headers=headers, timeout=ENDS_SECONDS
        )
        self.shown = self.client.get(path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.client.close()

    def open(self, path: str) -> httpx.Response:
        """Open a screen, and return its response once it no longer reloads itself."""
        self.shown = self.client.get(path)
        return self._wait_until_loaded()

    def _wait_until_loaded(self) -> httpx.Response:
        """Reload the current screen until it no longer reloads itself."""
        while 'http-equiv="refresh"' in self.shown.text:
            self.shown = self.client.get(self.shown.url)
        return self.shown

    def read_hidden_fields(self) -> dict[str, str]:
        """Return the hidden fields `form_key` and `version` of the current screen."""
        text = self.shown.text
        found = dict(re.findall(r'type="hidden" name="(form_key|version)" value="([^"]+)"', text))
        return {str(name): str(value) for name, value in found.items()}

    def post(
        self, path: str, fields: Mapping[str, str] | None = None, **options: Any
    ) -> httpx.Response:
        """Submit a form with the current screen's hidden fields; `options` are those of httpx."""
        data = {**self.read_hidden_fields(), **(fields or {})}
        headers = {"Origin": self.address, **options.pop("headers", {})}
        self.shown = self.client.post(path, data=data, headers=headers, **options)
        return self._wait_until_loaded()

    def upload(self, name: str, content: bytes, **fields: str) -> str:
        """Start an import with a file. Returns its path, empty if the page rejects the file."""
        self.open("/")
        form = {"resource": "candidates", "mode": "create", **fields}
        self.post("/imports", form, files={"file": (name, content)})
        found = re.search(r"/imports/[0-9a-f]{16}", str(self.shown.url))
        return found[0] if found else ""


@contextmanager
def serve_page(
    sandbox: Sandbox, folder: Path, access_rules: Mapping[str, Any] | None = None, **flags: Any
) -> Iterator[tuple[ImportPage, str]]:
    """Serve the page in a thread; `flags` are settings. Yields the page and its address."""
    settings = settings_of(sandbox, folder, **flags)
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    # A client that connects before the server starts waits in the queue.
    listener.listen()
    address = f"http://127.0.0.1:{listener.getsockname()[1]}"
    options = PageOptions(AccessRules(address, **(access_rules or {})), "session", "Ann")
    page = ImportPage(settings, options)
    page.start()
    config = uvicorn.Config(page.app, log_config=None, lifespan="off", proxy_headers=False)
    server = uvicorn.Server(config)
    thread = Thread(target=server.run, args=([listener],), daemon=True)
    thread.start()
    try:
        yield page, address
    finally:
        server.should_exit = True
        thread.join(ENDS_SECONDS)
        listener.close()


@contextmanager
def serve_and_sign_in(
    sandbox: Sandbox, folder: Path, **flags: Any
) -> Iterator[tuple[ImportPage, PageUser]]:
    """Serve the page in a thread. Yields the page and a user who signed in with a link."""
    with (
        serve_page(sandbox, folder, **flags) as (page, address),
        PageUser(address, page.access.create_link()) as user,
    ):
        yield page, user


def write_german_workbook(path: Path, rows: Sequence[Sequence[Any]]) -> Path:
    """Write a workbook with a title, the headings in `HEADINGS`, these rows, and their total."""
    book = openpyxl.Workbook()
    sheet = book.active
    assert sheet is not None
    sheet.append(["Bewerberliste Messe"])
    sheet.append([])
    sheet.append(HEADINGS)
    for row in rows:
        sheet.append(list(row))
    sheet.append(["Summe", len(rows)])
    book.save(path)
    return path


def make_csv(*lines: str) -> bytes:
    """Return a CSV file of candidates with first name, last name, email and employment type."""
    headings = "First name,Last name,Email,Employment type"
    return "\n".join((headings, *lines)).encode()


def strip_tags(page: str) -> str:
    """Return the text of a page without its tags."""
    return " ".join(unescape(re.sub("<[^>]+>", " ", page)).split())
