"""The page as an application: one HTML file, routes that take and return JSON, and limits.

Each route runs in a thread, after the checks of `Access`. The content policy of every answer allows
the page's own script only.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal, TypeVar
from urllib.parse import unquote

from pydantic import BaseModel, ValidationError
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import Message, Receive, Scope, Send

from connector.catalog import CATALOG
from connector.errors import ConnectorError
from connector.page import grid
from connector.page.access import Access
from connector.page.imports import (
    Change,
    Import,
    Imports,
    Order,
    PageError,
    Reading,
    Run,
    describe,
)  # fmt: skip
from connector.state.row import Mode

_HERE = Path(__file__).parent
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

Answer = Response | dict[str, Any] | None
M = TypeVar("M", bound=BaseModel)


class Upload(BaseModel):
    """Answers of the first screen."""

    name: str
    resource: Literal[tuple(CATALOG)]  # type: ignore[valid-type] # the names of the catalog
    mode: Mode
    match: str = "id"
    content_type: str | None = None
    reading: Reading = Reading()


class App:
    """Import page of one account, as an ASGI application."""

    def __init__(self, imports: Imports, access: Access) -> None:
        self.imports, self.access = imports, access
        imports.continue_sending()
        self._app = Starlette(
            routes=[
                Route("/enter/{token}", self._enter, methods=["GET", "HEAD"]),
                self._route("GET", "/", lambda *_: HTMLResponse(_PAGE)),
                Mount("/vendor", StaticFiles(directory=_HERE / "vendor")),
                self._route("GET", "/api/start", lambda user, *_: grid.start(imports, user)),
                self._route("POST", "/api/imports", self._create, grid.FILE_MEGABYTES_MAX),
                self._of_import("GET", "", lambda each, _: grid.shown(imports, each)),
                self._of_import("POST", "", self._change),
                self._of_import("GET", "/check", lambda each, _: grid.checked(imports, each)),
                self._of_import("GET", "/progress", self._progress),
                self._of_import("GET", "/results", self._results),
                self._of_import("GET", "/report", self._report),
                self._of_import("POST", "/send", lambda e, c: imports.send(e, _parse(Order, c))),
                self._of_import(
                    "POST", "/undo", lambda e, c: imports.undo(e, applies=c == b"true")
                ),
                self._of_import("POST", "/delete", lambda each, _: imports.delete(each)),
            ]
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, with the security headers."""

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                own = [(name.lower().encode(), each.encode()) for name, each in HEADERS.items()]
                message = {**message, "headers": [*message.get("headers", ()), *own]}
            await send(message)

        await self._app(scope, receive, send_guarded)

    # -- routes --------------------------------------------------------------------------------

    def _route(
        self,
        method: str,
        path: str,
        answer: Callable[[str, Request, bytes], Answer],
        megabytes_max: int = 20,
    ) -> Route:
        """Return a route that checks access, and answers errors in a sentence."""

        async def endpoint(request: Request) -> Response:
            try:
                self.access.check_request(request)
                user = self.access.user_of(request)
                content = await _read_body(request, megabytes_max)
                found = await run_in_threadpool(answer, user, request, content)
            except Exception as error:
                return _error(error, is_page=not path.startswith("/api"))
            return found if isinstance(found, Response) else JSONResponse(found or {})

        return Route(path, endpoint, methods=[method])

    def _of_import(
        self, method: str, path: str, answer: Callable[[Import, bytes], Answer]
    ) -> Route:
        """Return a route of an import of the user."""

        def find_and_answer(user: str, request: Request, content: bytes) -> Answer:
            return answer(self.imports.load(request.path_params["id"], user), content)

        return self._route(method, f"/api/imports/{{id}}{path}", find_and_answer)

    async def _enter(self, request: Request) -> Response:
        """Sign in with the link of the terminal. A preview of the link does not use it up."""
        try:
            self.access.check_request(request)
            if request.method == "HEAD":
                return Response()
            cookie = self.access.enter(request.path_params["token"])
        except Exception as error:
            return _error(error, is_page=True)
        response = RedirectResponse("/", 303)
        is_secure = self.access.address.startswith("https://")
        response.set_cookie(
            self.access.cookie, cookie, httponly=True, samesite="strict", secure=is_secure
        )
        return response

    # -- imports -------------------------------------------------------------------------------

    def _create(self, user: str, request: Request, content: bytes) -> Answer:
        """Create an import of a file. Its name is in a header, because addresses may be logged."""
        said = _parse(Upload, unquote(request.headers.get("x-import", "")))
        return {"id": self.imports.create(user, content, **said.model_dump()).id}

    def _change(self, each: Import, content: bytes) -> Answer:
        """Save a change, and return what it means for the rows."""
        said = _parse(Change, content)
        each = self.imports.change(each, said)
        if said.cells and said.mapping is None and said.match is None:
            return {"check": grid.checked(self.imports, each, {row for row, *_ in said.cells})}
        return {
            "check": grid.checked(self.imports, each),
            "columns": grid.columns(self.imports, each),
        }

    def _progress(self, each: Import, _: bytes) -> Answer:
        """Return the progress of a push or an undo. One that a former server ended is over."""
        return asdict(self.imports.runs.get(each.id, Run("send", is_over=True)))

    def _results(self, each: Import, _: bytes) -> Answer:
        """Return the outcome of every row that was sent, also by a push in progress."""
        run = self.imports.runs.get(each.id)
        batches = dict.fromkeys([*each.batches, run.batch if run else None])
        return grid.results(self.imports, each, filter(None, batches))

    def _report(self, each: Import, _: bytes) -> Answer:
        """Return the file with the outcome of every row of the last push."""
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


async def _read_body(request: Request, megabytes_max: int) -> bytes:
    """Return the body of a request. Raises `PageError` if it is too large."""
    content = bytearray()
    async for part in request.stream():
        content += part
        if len(content) > megabytes_max * 1024 * 1024:
            raise PageError(
                f"The file is larger than {megabytes_max} MB.", "Split it into several files.", 413
            )
    return bytes(content)


def _error(error: Exception, *, is_page: bool) -> Response:
    """Return an error as JSON, or as a short page if the browser shows it as it is."""
    message, action = describe(error)
    status = 422 if isinstance(error, ConnectorError) else getattr(error, "status", 500)
    if is_page:
        return Response(f"{message} {action}\n", status, media_type="text/plain")
    names = list(getattr(error, "names", ()))
    return JSONResponse({"error": message, "action": action, "names": names}, status)
