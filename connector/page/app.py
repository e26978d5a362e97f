"""The page as an application: routes, JSON, limits and security headers.

One HTML file is the whole page. It talks to routes that take and return JSON; each runs in a
thread, after the checks of `Access`. Every answer has a content policy that allows the page's own
script only.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import tempfile
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from connector.catalog import CATALOG
from connector.errors import ConnectorError
from connector.page import grid
from connector.page.access import Access, PageError
from connector.page.imports import MODES, Change, Import, Imports, describe
from connector.pushes.preview import create_template
from connector.pushes.run import Decision, DeclaredRecord
from connector.spreadsheet.report import pair_rows, report_suffix, write_report
from connector.state.row import Row

SMALL_ROWS = 1_000
"""A file of at most this many rows is checked as a whole after every change."""

_HERE = Path(__file__).parent
_CHANGE_BYTES = 20 * 1024 * 1024
_FILES = {"tabulator.min.js": "text/javascript", "tabulator.min.css": "text/css"}
_PAGE = (_HERE / "page.html").read_text(encoding="utf-8")


def _hash_of(tag: str) -> str:
    """Return the source of the page's own script or style for the content policy."""
    found = re.search(rf"<{tag}>(.*?)</{tag}>", _PAGE, re.DOTALL)
    assert found is not None
    return f"'sha256-{base64.b64encode(hashlib.sha256(found[1].encode()).digest()).decode()}'"


HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": f"default-src 'none'; script-src 'self' {_hash_of('script')};"
    f" style-src 'self' {_hash_of('style')}; img-src 'self' data:; connect-src 'self';"
    " form-action 'none'; base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""Security headers of every answer."""

Body = dict[str, Any]
Answer = Callable[[Request, str, bytes], Any]
"""Function that answers a request of a user with a body: JSON, or a response."""


class App:
    """Import page of one account, as an ASGI application."""

    def __init__(self, imports: Imports, access: Access) -> None:
        self.imports, self.access = imports, access
        one, megabytes = "/api/imports/{id}", grid.FILE_MEGABYTES_MAX
        app = Starlette(
            routes=[
                Route("/enter/{token}", self._enter, methods=["GET", "HEAD"]),
                self._route("GET", "/", lambda *_: HTMLResponse(_PAGE)),
                *(self._route("GET", f"/{name}", _file) for name in _FILES),
                self._route("GET", "/api/start", self._start),
                self._route("POST", "/api/template", self._template),
                self._route("POST", "/api/imports", self._create, megabytes * 1024 * 1024),
                self._route("GET", one, self._show),
                self._route("POST", one, self._change),
                self._route("GET", f"{one}/check", self._check),
                self._route("GET", f"{one}/results", self._results),
                self._route("GET", f"{one}/progress", self._progress),
                self._route("GET", f"{one}/report", self._report),
                self._route("POST", f"{one}/send", self._send),
                self._route("POST", f"{one}/undo", self._undo),
                self._route("POST", f"{one}/resolve", self._resolve),
                self._route("POST", f"{one}/delete", self._delete),
            ]
        )
        self._app: ASGIApp = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, with the security headers."""

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                own = [(name.lower().encode(), each.encode()) for name, each in HEADERS.items()]
                message = {**message, "headers": [*message.get("headers", ()), *own]}
            await send(message)

        await self._app(scope, receive, send_guarded)

    def _route(
        self, method: str, path: str, answer: Answer, bytes_max: int = _CHANGE_BYTES
    ) -> Route:
        """Return a route that checks access, and answers errors in a sentence."""

        async def endpoint(request: Request) -> Response:
            try:
                self.access.check_request(request)
                user = self.access.user_of(request)
                body = await _read_body(request, bytes_max) if method == "POST" else b""
                found = await run_in_threadpool(answer, request, user, body)
            except Exception as error:
                return _error(error, is_page=not path.startswith("/api"))
            return found if isinstance(found, Response) else JSONResponse(found)

        return Route(path, endpoint, methods=[method])

    async def _enter(self, request: Request) -> Response:
        """Sign in with the link of the terminal. A preview of the link does not use it up."""
        try:
            self.access.check_request(request)
            if request.method == "HEAD":
                return Response()
            cookie = await run_in_threadpool(self.access.enter, request.path_params["token"])
        except Exception as error:
            return _error(error, is_page=True)
        response = RedirectResponse("/", 303)
        is_secure = self.access.rules.address.startswith("https://")
        response.set_cookie(
            self.access.cookie, cookie, httponly=True, samesite="strict", secure=is_secure
        )
        return response

    # -- imports -------------------------------------------------------------------------------

    def _load(self, request: Request, user: str) -> Import:
        return self.imports.load(str(request.path_params["id"]), user)

    def _start(self, request: Request, user: str, body: bytes) -> Body:
        """Answer what the first screen shows."""
        self.imports.delete_old(datetime.now(UTC))
        return grid.start(self.imports, user)

    def _create(self, request: Request, user: str, body: bytes) -> Body:
        """Create an import. The name of its file is in a header: addresses may be logged."""
        said = _texts(unquote(request.headers.get("x-import", "")).encode(errors="replace"))
        self._check_choice(said)
        match = said.get("match", "")
        each = self.imports.create(
            user,
            said.get("name", ""),
            body,
            resource=said["resource"],
            mode=said["mode"],
            match="" if match == "id" or said["mode"] == "create" else match,
            content_type=said.get("content_type") or None,
        )
        return {"id": each.id}

    def _check_choice(self, said: Mapping[str, str]) -> None:
        """Raise `PageError` if the resource or the mode does not exist."""
        if said.get("resource") not in CATALOG or said.get("mode") not in MODES:
            raise PageError("Choose what to import.")

    def _show(self, request: Request, user: str, body: bytes) -> Body:
        """Answer an import with its cells."""
        return grid.shown(self.imports, self._load(request, user))

    def _change(self, request: Request, user: str, body: bytes) -> Body:
        """Save a change, and answer what it means for the rows."""
        said = Change.parse(body)
        each = self.imports.change(str(request.path_params["id"]), user, said)
        is_about_rows = bool(said.cells or said.records or said.bring_back or said.leave_out)
        shown = grid.shown(self.imports, each) if said.reading else {}
        if "unread" in shown:
            return shown
        opened = self.imports.opened(each)
        answer: Body = {"version": each.version, **shown}
        if not is_about_rows:
            answer["columns"] = grid.columns(self.imports, each, opened)
        is_whole = not is_about_rows or len(opened.table.all_rows) <= SMALL_ROWS
        numbers = {cell[0] for cell in said.cells} | {record[0] for record in said.records}
        numbers |= {*said.bring_back}
        found = self.imports.check(each, None if is_whole else numbers)
        return answer | {"check": grid.checked(self.imports, each, found, is_whole=is_whole)}

    def _check(self, request: Request, user: str, body: bytes) -> Body:
        """Check all rows, and answer what would happen to each."""
        each = self._load(request, user)
        return grid.checked(self.imports, each, self.imports.check(each), is_whole=True)

    def _send(self, request: Request, user: str, body: bytes) -> Body:
        """Start to send the rows of the version that the user sees."""
        said = _json(body)
        accepted, version = said.get("accepted"), said.get("version")
        if not isinstance(accepted, list) or not isinstance(version, int):
            raise PageError("The page sent a request that cannot be read.", status=400)
        self.imports.send(str(request.path_params["id"]), user, version, map(str, accepted))
        return {}

    def _progress(self, request: Request, user: str, body: bytes) -> Body:
        """Answer the progress of a push or an undo."""
        each = self._load(request, user)
        run = self.imports.runs.get(each.id)
        if run is None:
            return {"over": each.stage != "sending", "error": each.error}
        undone = [row for report in run.undone for row in report.rows if row.outcome != "nothing"]
        return {
            "action": run.action,
            "phase": run.phase,
            "waits_for": run.waits_for,
            "done": run.done,
            "total": run.total,
            "until": run.until.isoformat() if run.until else None,
            "over": run.is_over,
            "error": run.error,
            "undone": [
                [row.number, row.outcome, "; ".join(each.text for each in row.problems)]
                for row in undone
            ],
        }

    def _results(self, request: Request, user: str, body: bytes) -> Body:
        """Answer the outcome of every row that was sent."""
        each = self._load(request, user)
        run = self.imports.runs.get(each.id)
        return grid.results(self.imports, each, run.batch if run is not None else None)

    def _undo(self, request: Request, user: str, body: bytes) -> Body:
        """Start the preview of an undo, or the undo."""
        is_meant = _json(body).get("applies") is True
        self.imports.undo(str(request.path_params["id"]), user, applies=is_meant)
        return {}

    def _resolve(self, request: Request, user: str, body: bytes) -> Body:
        """Carry out a decision on an unconfirmed row."""
        said = _texts(body)
        words: dict[str, Decision] = {"look": "look", "resend": "resend", "drop": "drop"}
        decision = words.get(said.get("decision", ""))
        if said.get("record", "").strip():
            decision = DeclaredRecord(said["record"].strip())
        if decision is None or not re.fullmatch("[0-9]{1,9}", said.get("row", "")):
            raise PageError("Choose what happens with the row.")
        id = str(request.path_params["id"])
        self.imports.resolve(id, user, int(said["row"]), decision)
        return grid.results(self.imports, self._load(request, user))

    def _delete(self, request: Request, user: str, body: bytes) -> Body:
        """Delete an import with its file."""
        self.imports.delete(self._load(request, user))
        return {}

    # -- files ---------------------------------------------------------------------------------

    def _report(self, request: Request, user: str, body: bytes) -> Response:
        """Answer the file with the outcome of every row."""
        each = self._load(request, user)
        found = self.imports.check(each) if each.stage == "open" else None
        table, opened = self.imports.edited(each), self.imports.opened(each)
        columns = self.imports.columns(each, opened)
        by_number = {result.number: result for result in found.rows} if found else {}
        for number, row in self.imports.rows_of(each.batches).items():
            if each.stage != "open" or number not in by_number:
                by_number[number] = grid.result_of(row, columns)
        rows = [row.number for row in table.rows() if not row.is_left_out]
        results = [by_number.get(n, Row(n, each.resource)) for n in rows]
        name = f"{Path(each.name).stem}.report{report_suffix(table.path)}"
        with tempfile.TemporaryDirectory(dir=table.path.parent) as folder:
            path = Path(folder) / f"report{report_suffix(table.path)}"
            write_report(path, table, pair_rows(table, results))
            return _download(path.read_bytes(), name)

    def _template(self, request: Request, user: str, body: bytes) -> Response:
        """Answer an empty workbook with all columns."""
        said = _texts(body)
        self._check_choice(said)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"{said['resource']}.xlsx"
            create_template(
                self.imports.settings,
                said["resource"],
                path,
                mode=said["mode"],  # type: ignore[arg-type] # one of MODES
                match=(said["match"],) if said.get("match", "id") != "id" else (),
                parent=said.get("content_type") or None,
            )
            return _download(path.read_bytes(), path.name)


async def _read_body(request: Request, bytes_max: int) -> bytes:
    """Return the body of a request. Raises `PageError` if it is too large."""
    parts, size = [], 0
    declared = request.headers.get("content-length", "0")
    if declared.isdecimal() and len(declared) < 20:
        size = int(declared)
    if size <= bytes_max:
        size = 0
        async for part in request.stream():
            parts.append(part)
            size += len(part)
            if size > bytes_max:
                break
    if size > bytes_max:
        megabytes = bytes_max // (1024 * 1024)
        raise PageError(
            f"The file is larger than {megabytes} MB.", "Split it into several files.", 413
        )
    return b"".join(parts)


def _json(body: bytes) -> Body:
    """Return the JSON object in a body. Raises `PageError`."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise PageError("The page sent a request that cannot be read.", status=400)
    return found


def _texts(body: bytes) -> dict[str, str]:
    """Return the texts of the JSON object in a body; other values are left out."""
    return {name: value for name, value in _json(body).items() if isinstance(value, str)}


def _file(request: Request, user: str, body: bytes) -> Response:
    name = request.url.path.removeprefix("/")
    return Response((_HERE / "vendor" / name).read_bytes(), media_type=_FILES[name])


def _download(content: bytes, name: str) -> Response:
    disposition = f"attachment; filename*=utf-8''{quote(name, safe='')}"
    return Response(
        content, media_type="application/octet-stream", headers={"Content-Disposition": disposition}
    )


def _error(error: Exception, *, is_page: bool) -> Response:
    """Return an error as JSON, or as a short page if the browser shows it as it is."""
    message, action = describe(error)
    status = 422 if isinstance(error, ConnectorError) else 500
    status = error.status if isinstance(error, PageError) else status
    if is_page:
        return Response(f"{message} {action}\n", status, media_type="text/plain")
    return JSONResponse({"error": message, "action": action}, status)
