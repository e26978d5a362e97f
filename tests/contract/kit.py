"""Everything that the contract tests use: a server with faults, accounts, and the command.

The tests know only what a user knows: the command, HTTP, the published file and Dagster. The server
is the sandbox behind a proxy that belongs to the tests, so that faults and the log of requests do
not depend on the sandbox. This is the only module that imports the sandbox.
"""

from __future__ import annotations

import csv
import http.client
import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import entry_points
from pathlib import Path
from threading import Lock, Thread
from typing import Any, Self

import duckdb
import httpx
from click.testing import CliRunner

from connector.sandbox.server import Sandbox

KEY = "planted-key-5f0c1e77"
"""API key of every account, which no output and no file may contain."""

COUNTS = {
    "jobs": 6,
    "candidates": 24,
    "companies": 4,
    "bookings": 8,
    "leads": 6,
    "content_types": 2,
    "content_items": 4,
}
"""A small agency: one page of each resource."""

RESOURCES = tuple(COUNTS)
START = "from importlib.metadata import entry_points as e; import sys; sys.argv[0] = 'connector'; "
START += "(c,) = e(group='console_scripts', name='connector'); sys.exit(c.load()())"
"""Program that runs the installed command."""

PLAN = ("pull", "--plan")
"""Command that estimates a pull."""

SWEEP = ("pull", "--sweep")
"""Command that also compares all pages of lists."""

NOT_BEFORE = "_began_after"
"""Column of the history: until when the version before was still seen."""

# -- the server -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Request:
    """A request as it arrived at the server."""

    method: str
    path: str
    query: str
    body: bytes
    headers: Mapping[str, str]

    @property
    def fields(self) -> dict[str, Any]:
        """The JSON object that was sent."""
        return dict(json.loads(self.body))


@dataclass(frozen=True)
class Answer:
    """A response that the server sends."""

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def document(self) -> Any:
        """The JSON value in the body."""
        return json.loads(self.body)


Forward = Callable[[], Answer]
Fault = Callable[[Forward], Answer | None]
"""Gets the API's answer when it calls `forward`, and returns the one to send. None hangs up."""


def status(code: int, *, after: bool = False, retry_after: int | None = None) -> Fault:
    """Return a fault that answers with the API's error body; `after` applies the request first."""

    def perform(forward: Forward) -> Answer:
        if after:
            forward()
        body = json.dumps({"error": "error", "message": "Something happened."}).encode()
        headers = {"Content-Type": "application/json"}
        if retry_after is not None:
            headers["Retry-After"] = str(retry_after)
        return Answer(code, body, headers)

    return perform


def html(code: int, *, after: bool = False) -> Fault:
    """Return a fault that answers with the HTML page of a proxy."""

    def perform(forward: Forward) -> Answer:
        if after:
            forward()
        return Answer(code, b"<html><h1>Error</h1></html>", {"Content-Type": "text/html"})

    return perform


def plain(code: int, body: bytes) -> Fault:
    """Return a fault that answers with this body as JSON."""
    return lambda forward: Answer(code, body, {"Content-Type": "application/json"})


def lost(forward: Forward) -> None:
    """Apply the request and hang up without a response."""
    forward()


def unsent(forward: Forward) -> None:
    """Hang up without applying the request."""


def truncated(forward: Forward) -> Answer:
    """Send half of the body that the headers announce."""
    answer = forward()
    half = answer.body[: len(answer.body) // 2]
    return Answer(answer.status, half, {**answer.headers, "Content-Length": str(len(answer.body))})


def edited(change: Callable[[Any], Any]) -> Fault:
    """Return a fault that changes the JSON document of the API's answer."""

    def perform(forward: Forward) -> Answer:
        answer = forward()
        return Answer(answer.status, json.dumps(change(answer.document)).encode(), answer.headers)

    return perform


def hide(*ids: str) -> Fault:
    """Return a fault that leaves records out of a list and its total."""

    def change(document: dict[str, Any]) -> dict[str, Any]:
        kept = [each for each in document["data"] if each["id"] not in ids]
        total = len(kept)
        page = {"page": 1, "per_page": 100, "total": total, "total_pages": 1}
        return {**document, "data": kept, "pagination": page}

    return edited(change)


@dataclass
class Rule:
    """A fault for the next `times` requests that match, or for all if `times` is None."""

    pattern: str
    fault: Fault
    times: int | None
    skip: int = 0
    used: int = 0


class Server:
    """The sandbox behind a proxy at an address that stays while worlds change.

    `rule` plans a fault, `log` has the requests of the connector, and `api` sends requests that
    are not in the log.
    """

    def __init__(self) -> None:
        self._rules: list[Rule] = []
        self._lock = Lock()
        self.log: list[Request] = []
        self._sandbox: Sandbox | None = None
        server = self

        class Handler(_Handler):
            owner = server

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self.base_url = f"http://127.0.0.1:{self._http.server_address[1]}"
        Thread(target=self._http.serve_forever, args=(0.05,), daemon=True).start()

    @contextmanager
    def serve(self, **options: Any) -> Iterator[Self]:
        """Serve a sandbox with these options at this address; `clock` shows its time in answers."""
        self.shows_date = "clock" in options
        options.setdefault("keys", {KEY: ("*",)})
        with Sandbox(**options) as sandbox:
            self._sandbox = sandbox
            self.upstream = sandbox.base_url
            self.forget()
            with httpx.Client(
                base_url=f"{self.upstream}/api/v1",
                headers={"Authorization": f"Bearer {sandbox.key}"},
                timeout=30,
            ) as self._client:
                yield self
            self.forget()
            self._sandbox = None

    def forget(self) -> None:
        """Remove all faults and empty the log."""
        with self._lock:
            self._rules.clear()
            self.log.clear()

    def rule(self, pattern: str, fault: Fault, times: int | None = None, skip: int = 0) -> Rule:
        """Plan a fault for requests whose "METHOD path?query" matches the pattern."""
        rule = Rule(pattern, fault, times, skip)
        with self._lock:
            self._rules.append(rule)
        return rule

    def match(self, request: Request) -> Fault | None:
        """Log the request, and return the fault that is planned for it."""
        text = f"{request.method} {request.path}?{request.query}"
        with self._lock:
            self.log.append(request)
            for rule in self._rules:
                if not fnmatchcase(text, rule.pattern) or rule.used == rule.times:
                    continue
                if rule.skip:
                    rule.skip -= 1
                    continue
                rule.used += 1
                return rule.fault
        return None

    def api(self, method: str, path: str, **fields: Any) -> Any:
        """Send a request of another user, and return the data of the answer."""
        answer = self._client.request(method, path, json=fields or None)
        assert answer.is_success, answer.text
        return answer.json().get("data") if answer.content else None

    def pages(self, path: str) -> list[Any]:
        """Return all records of a list."""
        found: list[Any] = []
        size = 10  # every server allows it
        while True:
            answer = self._client.get(
                path, params={"page": len(found) // size + 1, "per_page": size}
            )
            found += answer.json()["data"]
            if not answer.json()["data"] or len(found) >= answer.json()["pagination"]["total"]:
                return found

    def ids(self, resource: str) -> list[str]:
        """Return the ids of the records of a resource, oldest first."""
        return [each["id"] for each in reversed(self.pages(f"/{path_of(resource)}"))]

    def records(self, resource: str) -> dict[str, dict[str, Any]]:
        """Return the details of all records of a resource by id."""
        if resource == "content_items":
            places = [f"/content/{each['slug']}" for each in self.pages("/content-types")]
        else:
            places = [f"/{path_of(resource)}"]
        found = [(place, each["id"]) for place in places for each in self.pages(place)]
        return {id: self.api("GET", f"{place}/{id}") for place, id in found}

    def emails(self, resource: str = "candidates") -> list[str]:
        """Return the email addresses of all records, sorted."""
        return sorted(each["email"] for each in self.pages(f"/{path_of(resource)}"))

    def sent(self, *methods: str) -> list[Request]:
        """Return the logged requests with these methods; all writes by default."""
        wanted = methods or ("POST", "PUT", "DELETE", "PATCH")
        with self._lock:
            return [each for each in self.log if each.method in wanted]


class _Handler(BaseHTTPRequestHandler):
    """Forwards each request to the sandbox, unless a fault is planned for it."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    owner: Server
    _upstream: http.client.HTTPConnection | None = None

    def finish(self) -> None:
        """Close the connection to the sandbox with that of the client."""
        super().finish()
        if self._upstream is not None:
            self._upstream.close()

    def log_message(self, *_: Any) -> None:
        """Print nothing."""

    def _handle(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        path, _, query = self.path.partition("?")
        body = self.rfile.read(length)
        request = Request(self.command, path, query, body, dict(self.headers))
        fault = self.owner.match(request)

        def forward() -> Answer:
            return self._forward(request)

        answer = fault(forward) if fault is not None else forward()
        if answer is None:
            self.close_connection = True
            with suppress(OSError):
                self.connection.shutdown(socket.SHUT_RDWR)
            return
        head = {"Content-Length": str(len(answer.body)), **answer.headers}
        self.send_response_only(answer.status)
        for name, value in head.items():
            self.send_header(name, value)
        if int(head["Content-Length"]) != len(answer.body):
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(answer.body)

    do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = _handle  # noqa: N815

    def _forward(self, request: Request) -> Answer:
        """Return the sandbox's answer, over one connection per connection of the client."""
        host = self.owner.upstream.removeprefix("http://")
        if self._upstream is None or f"{self._upstream.host}:{self._upstream.port}" != host:
            if self._upstream is not None:
                self._upstream.close()
            self._upstream = http.client.HTTPConnection(host, timeout=60)
        target = f"{request.path}?{request.query}" if request.query else request.path
        kept = {
            name: value
            for name, value in request.headers.items()
            if name.lower() not in ("host", "connection", "accept-encoding", "content-length")
        }
        try:
            self._upstream.request(request.method, target, request.body or None, kept)
            found = self._upstream.getresponse()
        except (http.client.HTTPException, OSError):
            # The sandbox closes idle connections when a world ends.
            self._upstream.close()
            self._upstream = http.client.HTTPConnection(host, timeout=60)
            self._upstream.request(request.method, target, request.body or None, kept)
            found = self._upstream.getresponse()
        body = found.read()
        skipped = ["content-length", "connection", "transfer-encoding", "server"]
        if not self.owner.shows_date:
            skipped.append("date")
        headers = {n: v for n, v in found.getheaders() if n.lower() not in skipped}
        return Answer(found.status, body, headers)


def path_of(resource: str) -> str:
    """Return the path of a resource below /api/v1."""
    return resource.replace("_", "-")


# -- the command ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Result:
    """Exit status and output of a command."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        """The one JSON object on standard output."""
        found = json.loads(self.out)
        assert isinstance(found, dict)
        return found

    @property
    def text(self) -> str:
        """Both outputs."""
        return self.out + self.err


(_COMMAND,) = entry_points(group="console_scripts", name="connector")


def run(arguments: Sequence[str | Path], environ: Mapping[str, str], stdin: str = "") -> Result:
    """Run the installed command in this process, with only these settings."""
    cleared = {name: None for name in os.environ if name.startswith("CONNECTOR_")}
    runner = CliRunner(env={**cleared, **environ})
    found = runner.invoke(_COMMAND.load(), [str(each) for each in arguments], input=stdin)
    if found.exception is not None and not isinstance(found.exception, SystemExit):
        raise found.exception
    return Result(found.exit_code, found.stdout, found.stderr)


def start(
    arguments: Sequence[str | Path], environ: Mapping[str, str], folder: Path
) -> subprocess.Popen[str]:
    """Start the installed command as a process in this folder, with only these settings."""
    kept = {name: v for name, v in os.environ.items() if not name.startswith("CONNECTOR_")}
    return subprocess.Popen(
        [sys.executable, "-c", START, *map(str, arguments)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
        env={**kept, **environ},
    )


# -- accounts -------------------------------------------------------------------------------------


class Account:
    """An account of the server. `data` is its data folder, inside `folder`."""

    def __init__(self, server: Server, folder: Path, **environ: str) -> None:
        self.server, self.folder, self.data = server, folder, folder / "data"
        self.environ = {
            "CONNECTOR_BASE_URL": server.base_url,
            "CONNECTOR_API_KEY": KEY,
            "CONNECTOR_DATA_DIR": str(self.data),
            "CONNECTOR_MODELS": "off",
            **environ,
        }

    @property
    def published(self) -> Path:
        """Path of the published file."""
        return self.data / "recruitment.duckdb"

    def run(self, *arguments: str | Path, **environ: str) -> Result:
        """Run a command with the account's settings and `environ` in this process."""
        return run(arguments, self.environ | environ)

    def start(self, *arguments: str | Path, **environ: str) -> subprocess.Popen[str]:
        """Start a command with the account's settings as a process."""
        return start(arguments, self.environ | environ, self.folder)

    def pull(self, *arguments: str, status: int = 0) -> dict[str, Any]:
        """Pull, check the exit status, and return the JSON object."""
        result = self.run("pull", *arguments, "--json")
        assert status == result.status, result.text
        return result.json

    def push(
        self, resource: str, file: Path, *arguments: str, status: int = 0, pulls: bool = False
    ) -> Push:
        """Send a file's rows, check the exit status, and return the result with its report."""
        return self._push(resource, file, "--apply", *arguments, status=status, pulls=pulls)

    def preview(
        self, resource: str, file: Path, *arguments: str, status: int = 0, pulls: bool = False
    ) -> Push:
        """Check a file, check the exit status, and return the result with its report."""
        given = ("--report", "all", *arguments)
        return self._push(resource, file, *given, status=status, pulls=pulls)

    def _push(self, resource: str, file: Path, *arguments: str, status: int, pulls: bool) -> Push:
        given = ("push", resource, file, *arguments, "--json", *(() if pulls else ("--no-pull",)))
        result = self.run(*given)
        assert status == result.status, result.text
        return Push(result.json, file.parent)

    def csv(self, name: str, rows: Sequence[Mapping[str, Any]]) -> Path:
        """Write a csv file with the keys of the rows as headings."""
        path = self.folder / name
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, list(dict.fromkeys(key for row in rows for key in row)))
            writer.writeheader()
            writer.writerows(rows)
        return path

    def rows(self, query: str, *parameters: Any) -> list[dict[str, Any]]:
        """Return the rows of a query on the published file."""
        return query_file(self.published, query, *parameters)

    def live_ids(self, resource: str) -> set[str]:
        """Return the ids of the published records that are not deleted."""
        found = self.rows(f"SELECT id FROM landing.{resource} WHERE _deleted_at IS NULL")
        return {each["id"] for each in found}

    def differences(self, *resources: str) -> list[str]:
        """Return a line for each difference between the published file and the server."""
        found = []
        for resource in resources or RESOURCES:
            rows = self.rows(
                f"SELECT id, _record FROM landing.{resource} WHERE _deleted_at IS NULL"
            )
            copy = {row["id"]: json.loads(row["_record"]) for row in rows}
            if len(copy) != len(rows):
                found.append(f"{resource}: an id occurs twice")
            held = self.server.records(resource)
            found += [f"{resource} {id}: extra" for id in copy.keys() - held.keys()]
            found += [f"{resource} {id}: missing" for id in held.keys() - copy.keys()]
            found += [f"{resource} {id}: {held[id]} is {copy[id]}"
                      for id in held.keys() & copy.keys() if held[id] != copy[id]]  # fmt: skip
        return found

    def files_with(self, text: str, *folders: Path) -> list[Path]:
        """Return the files below the account's folder that contain the text."""
        return [
            path
            for folder in folders or (self.folder,)
            for path in folder.rglob("*")
            if path.is_file() and text.encode() in path.read_bytes()
        ]


@dataclass(frozen=True)
class Push:
    """Result of a push: the JSON object, and the rows of the report."""

    json: dict[str, Any]
    folder: Path

    @property
    def batch(self) -> str:
        """Name of the batch."""
        return str(self.json["batch"])

    @property
    def report(self) -> Path:
        """Path of the report."""
        return self.folder / str(self.json["report"])

    @property
    def rows(self) -> list[dict[str, str]]:
        """Rows of the report, with all columns."""
        with self.report.open(encoding="utf-8-sig", newline="") as file:
            return list(csv.DictReader(file))

    @property
    def outcomes(self) -> list[str]:
        """Outcome of each row of the file, in order, as the report has it."""
        return [row["_outcome"] for row in self.rows]

    @property
    def codes(self) -> list[set[str]]:
        """Codes of each row of the report."""
        return [{code for code in row["_code"].split(", ") if code} for row in self.rows]

    @property
    def changes(self) -> dict[str, Any]:
        """New value of each changed field, for a preview of one row."""
        assert 1 == len({each["row"] for each in self.json["changes"]})
        return {each["field"]: each["then"] for each in self.json["changes"]}


def query_file(path: Path, query: str, *parameters: Any) -> list[dict[str, Any]]:
    """Return the rows of a query on a DuckDB file, with UTC as the time zone."""
    with duckdb.connect(str(path), read_only=True) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        found = connection.execute(query, parameters)
        names = [each[0] for each in found.description or ()]
        return [dict(zip(names, row, strict=True)) for row in found.fetchall()]


# -- worlds ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class World:
    """A prepared agency: the sandbox's records, and an account's folder that was pulled once."""

    server: Server
    records: Path
    data: Path

    @contextmanager
    def copy(self, folder: Path, **options: Any) -> Iterator[Account]:
        """Serve a copy of the records, with an account that has a copy of the folder."""
        records = folder / "records.sqlite"
        shutil.copy(self.records, records)
        account = Account(self.server, folder)
        shutil.copytree(self.data, account.data)
        with self.server.serve(data=records, **options):
            yield account


def make_world(server: Server, folder: Path, **environ: str) -> World:
    """Make an agency and pull it once; `environ` are settings of the pull."""
    records = folder / "records.sqlite"
    with server.serve(data=records, counts=COUNTS):
        account = Account(server, folder, **environ)
        account.pull()
    return World(server, records, account.data)


def candidate(number: int, **fields: Any) -> dict[str, Any]:
    """Return a row with a candidate that the agency does not have."""
    return {
        "first_name": f"Ann{number}",
        "last_name": "Lee",
        "email": f"ann{number}@people.example",
        "employment_type": "permanent",
        **fields,
    }
