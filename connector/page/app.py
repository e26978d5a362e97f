"""The page as an application: routes, JSON, limits and security headers.

One HTML file is the whole page. It talks to routes that take and return JSON; each runs in a
thread, after the checks of `Access`. Every answer has a content policy that allows the page's own
script only.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, TypeVar
from urllib.parse import unquote

from pydantic import BaseModel, ValidationError
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import Message, Receive, Scope, Send

from connector.catalog import CATALOG
from connector.errors import ConnectorError
from connector.page import grid
from connector.page.access import Access
from connector.page.errors import PageError, describe
from connector.page.imports import Change, Import, Imports, Reading
from connector.page.sending import Sending
from connector.state.row import Mode

SMALL_ROWS = 1_000
"""A file of at most this many rows is checked as a whole after every change."""

_HERE = Path(__file__).parent
_CHANGE_BYTES = 20 * 1024 * 1024
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
M = TypeVar("M", bound=BaseModel)


class Upload(BaseModel):
    """Answers of the first screen. `again` is the import whose file is read in another way."""

    name: str
    resource: Literal[tuple(CATALOG)]  # type: ignore[valid-type] # the names of the catalog
    mode: Mode
    match: str = "id"
    content_type: str | None = None
    reading: Reading = Reading()
    again: str = ""


class Consent(BaseModel):
    """Order to send the version that the user sees, with the accepted warnings and questions."""

    version: int
    accepted: list[str]


@dataclass(frozen=True, slots=True)
class Call:
    """Request of a signed-in user. `id` is that of the import; empty without one."""

    user: str
    id: str
    content: bytes
    upload: str


class App:
    """Import page of one account, as an ASGI application."""

    def __init__(self, imports: Imports, access: Access) -> None:
        self.imports, self.access, self.sending = imports, access, Sending(imports)
        one, megabytes = "/api/imports/{id}", grid.FILE_MEGABYTES_MAX
        self._app = Starlette(
            routes=[
                Route("/enter/{token}", self._enter, methods=["GET", "HEAD"]),
                self._route("GET", "/", lambda _: HTMLResponse(_PAGE)),
                *(self._file(path) for path in (_HERE / "vendor").glob("*.min.*")),
                self._route("GET", "/api/start", self._start),
                self._route("POST", "/api/imports", self._create, megabytes * 1024 * 1024),
                self._route("GET", one, lambda call: grid.shown(imports, self._load(call))),
                self._route("POST", one, self._change),
                self._route("GET", f"{one}/check", self._check),
                self._route("GET", f"{one}/results", self._results),
                self._route("GET", f"{one}/progress", self._progress),
                self._route("GET", f"{one}/report", self._report),
                self._route("POST", f"{one}/send", self._send),
                *(self._undo(one, applies=applies) for applies in (False, True)),
                self._route("POST", f"{one}/delete", lambda c: imports.delete(self._load(c))),
            ]
        )  # fmt: skip

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, with the security headers."""

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                own = [(name.lower().encode(), each.encode()) for name, each in HEADERS.items()]
                message = {**message, "headers": [*message.get("headers", ()), *own]}
            await send(message)

        await self._app(scope, receive, send_guarded)

    def _route(
        self,
        method: str,
        path: str,
        answer: Callable[[Call], Response | Body | None],
        bytes_max: int = _CHANGE_BYTES,
    ) -> Route:
        """Return a route that checks access, and answers errors in a sentence."""

        async def endpoint(request: Request) -> Response:
            try:
                self.access.check_request(request)
                user = self.access.user_of(request)
                content = await _read_body(request, bytes_max) if method == "POST" else b""
                upload = unquote(request.headers.get("x-import", ""))
                call = Call(user, request.path_params.get("id", ""), content, upload)
                found = await run_in_threadpool(answer, call)
            except Exception as error:
                return _error(error, is_page=not path.startswith("/api"))
            return found if isinstance(found, Response) else JSONResponse(found or {})

        return Route(path, endpoint, methods=[method])

    def _file(self, path: Path) -> Route:
        return self._route("GET", f"/{path.name}", lambda _: FileResponse(path))

    def _undo(self, one: str, *, applies: bool) -> Route:
        path = f"{one}/undo" if applies else f"{one}/preview_undo"
        return self._route(
            "POST", path, lambda call: self.sending.undo(call.id, call.user, applies=applies)
        )

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
        is_secure = self.access.address.startswith("https://")
        response.set_cookie(
            self.access.cookie, cookie, httponly=True, samesite="strict", secure=is_secure
        )
        return response

    # -- imports -------------------------------------------------------------------------------

    def _load(self, call: Call) -> Import:
        return self.imports.load(call.id, call.user)

    def _start(self, call: Call) -> Body:
        """Return what the first screen shows."""
        self.imports.delete_old(datetime.now(UTC))
        return grid.start(self.imports, call.user)

    def _create(self, call: Call) -> Body:
        """Create an import of an uploaded file, or read the file of another import again.

        The name of the file is in a header, because addresses may be logged.
        """
        said = _parse(Upload, call.upload)
        content = call.content
        if said.again:
            before = self.imports.load(said.again, call.user)
            content = self.imports.path_of(before).read_bytes()
        each = self.imports.create(
            call.user, said.name, content, **said.model_dump(exclude={"name", "again"})
        )
        if said.again and not before.batches:
            self.imports.delete(before)
        return {"id": each.id}

    def _change(self, call: Call) -> Body:
        """Save a change, and return what it means for the rows."""
        said = _parse(Change, call.content)
        each = self.imports.change(call.id, call.user, said)
        answer: Body = {"version": each.version}
        if not said.rows:
            answer["columns"] = grid.columns(self.imports, each)
        is_whole = not said.rows or len(self.imports.uploaded(each).all_rows) <= SMALL_ROWS
        only = None if is_whole else said.rows
        found = self.imports.check_rows(each, only) if only else self.imports.check(each)[0]
        return answer | {"check": grid.checked(self.imports, each, found, is_whole=is_whole)}

    def _check(self, call: Call) -> Body:
        """Check all rows, and return what would happen to each."""
        each = self._load(call)
        return grid.checked(self.imports, each, self.imports.check(each)[0], is_whole=True)

    def _send(self, call: Call) -> None:
        """Start to send the rows of the version that the user sees."""
        said = _parse(Consent, call.content)
        self.sending.send(call.id, call.user, said.version, said.accepted)

    def _progress(self, call: Call) -> Body:
        """Return the progress of a push or an undo."""
        each = self._load(call)
        run = self.sending.runs.get(each.id)
        if run is None:
            return {"is_over": each.stage != "sending", "error": each.error}
        return asdict(run)

    def _results(self, call: Call) -> Body:
        """Return the outcome of every row that was sent."""
        each = self._load(call)
        run = self.sending.runs.get(each.id)
        return grid.results(self.imports, each, run.batch if run is not None else None)

    def _report(self, call: Call) -> Response:
        """Return the file with the outcome of every row of the last push."""
        each = self._load(call)
        path = self.imports.folder / each.id / each.report
        if not each.report or not path.exists():
            raise PageError("The import has no report.", "Send it first.", 404)
        return FileResponse(path, media_type="application/octet-stream", filename=each.report)


def _parse(model: type[M], said: str | bytes) -> M:
    """Return what the page sent. Raises `PageError`, without the values of the user."""
    try:
        return model.model_validate_json(said)
    except ValidationError:
        text = "The page sent a request that cannot be read."
        raise PageError(text, "Load the page again.", 400) from None


async def _read_body(request: Request, bytes_max: int) -> bytes:
    """Return the body of a request. Raises `PageError` if it is too large."""
    content = bytearray()
    async for part in request.stream():
        content += part
        if len(content) > bytes_max:
            megabytes = bytes_max // (1024 * 1024)
            raise PageError(
                f"The file is larger than {megabytes} MB.", "Split it into several files.", 413
            )
    return bytes(content)


def _error(error: Exception, *, is_page: bool) -> Response:
    """Return an error as JSON, or as a short page if the browser shows it as it is."""
    message, action = describe(error)
    status = 422 if isinstance(error, ConnectorError) else 500
    status = error.status if isinstance(error, PageError) else status
    if is_page:
        return Response(f"{message} {action}\n", status, media_type="text/plain")
    names = list(getattr(error, "names", ()))
    return JSONResponse({"error": message, "action": action, "names": names}, status)
