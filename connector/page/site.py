"""Site of the screens: requests, forms, responses, and their security checks.

A screen is a function of a `PageCall`, run in a thread. Before it runs, the request's host, its
session, and the origin and key of its form are checked. Every response has headers that prevent the
browser from loading external content and from running inline scripts.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import jinja2
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from connector.errors import ConnectorError
from connector.page.access import AccessDenied, PageAccess, PageSession
from connector.page.drafts import DraftVersion, parse_whole_number
from connector.page.words import TEXTS, PageError

HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; script-src 'self';"
    " img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none';"
    " frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    # Without any referrer, browsers would not report the origin of a form either.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""Security headers of every response."""

_LOGGER = logging.getLogger(__name__)

FIELDS_MAX, _PART_BYTES_MAX = 6_000, 2**40
_HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class PageCall:
    """Request to a screen, with the user's session and form."""

    request: Request
    session: PageSession
    form: Mapping[str, str] = field(default_factory=dict)
    file: UploadFile | None = None

    @property
    def id(self) -> str:
        """Id of the draft in the address."""
        return str(self.request.path_params["id"])

    @property
    def shown_version(self) -> DraftVersion:
        """Version of the draft that the form was made for."""
        version, _, page = self.form.get("version", "").partition(".")
        number = parse_whole_number(version)
        return DraftVersion(-1 if number is None else number, page, "late" in self.form)

    def query(self, name: str, default: str = "") -> str:
        """Return a query parameter."""
        return str(self.request.query_params.get(name, default))

    def page(self) -> int:
        """Return the requested page number of a list, from 1."""
        return max(1, parse_whole_number(self.query("page", "1")) or 1)

    def render(self, name: str, *, status: int = 200, **values: Any) -> Response:
        """Return a template as a response."""
        shown = render(name, session=self.session, **values)
        return HTMLResponse(shown, status)


Screen = Callable[[PageCall], Response]


def redirect(path: str) -> Response:
    """Return a redirect that the browser follows with GET."""
    return RedirectResponse(path, 303)


def render(name: str, **values: Any) -> str:
    """Return a template's HTML."""
    key = secrets.token_hex(8)
    return _template_environment().get_template(name).render(page_key=key, **values)


@cache
def _template_environment() -> jinja2.Environment:
    """Return the templates, with the global `texts`."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_HERE / "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals["texts"] = TEXTS
    return environment


class PageEntrance:
    """Checks of session, origin and form key before a screen answers a request."""

    def __init__(self, access: PageAccess, cookie: str) -> None:
        self.access, self.cookie = access, cookie

    def protect(self, show: Screen) -> Callable[[Request], Awaitable[Response]]:
        """Return an endpoint that answers with the screen, or with an error page.

        Users without a session are redirected to the login.
        """

        async def answer(request: Request) -> Response:
            session: PageSession | None = None
            try:
                is_post = request.method == "POST"
                self.access.check_origin(request.headers, changes=is_post)
                session = self._find_session(request)
                if session is None:
                    return self._start_login(request)
                call = PageCall(request, session)
                if not is_post:
                    return await run_in_threadpool(show, call)
                # Pasted cells are one field. `GuardedApplication` limits the body.
                async with request.form(
                    max_files=1, max_fields=FIELDS_MAX, max_part_size=_PART_BYTES_MAX
                ) as form:
                    data = {
                        name: str(each)
                        for name, each in form.multi_items()
                        if isinstance(each, str)
                    }
                    self.access.check_form(session, data.get("form_key"))
                    file = form.get("file")
                    uploaded = file if isinstance(file, UploadFile) and file.filename else None
                    return await run_in_threadpool(show, PageCall(request, session, data, uploaded))
            except ConnectorError as error:
                return error_page(error, session)
            except HTTPException:
                raise
            except Exception as error:  # A bug is also explained in a sentence.
                _LOGGER.debug(
                    "the page failed to answer a request",
                    exc_info=True,
                    extra={"event": "page_request_failed"},
                )
                broken = ConnectorError(f"an unexpected error: {type(error).__name__}")
                return error_page(broken, session, 500)

        return answer

    def _find_session(self, request: Request) -> PageSession | None:
        """Return the session of a request, or None. Raises `AccessDenied`."""
        header = self.access.rules.header
        return self.access.find_session(
            request.cookies.get(self.cookie),
            request.client.host if request.client else None,
            request.headers.get(header) if header else None,
        )

    def _start_login(self, request: Request) -> Response:
        """Return a redirect to the login, or log in the user that the reverse proxy names.

        Raises `AccessDenied` if users need the link in the terminal.
        """
        if self.access.rules.header is not None:
            # The proxy has named the user: a session is only used for the keys of forms.
            response = redirect(str(request.url.path))
            person = request.headers[self.access.rules.header]
            self.set_cookie(response, self.access.start_session(person))
            return response
        if self.access.rules.passwords is not None:
            return redirect("/login")
        raise AccessDenied(
            "You are not signed in.",
            action="Open the link that “connector page” prints in the terminal.",
        )

    def set_cookie(self, response: Response, cookie: str) -> None:
        """Set the cookie of a session, which scripts cannot read and other sites do not send."""
        is_secure = self.access.rules.is_secure
        response.set_cookie(self.cookie, cookie, httponly=True, samesite="strict", secure=is_secure)


def error_page(
    error: ConnectorError, session: PageSession | None, status: int | None = None
) -> Response:
    """Return a page with the error and its action. `status` replaces the status of the error."""
    found = error.status if isinstance(error, PageError) else 400
    message, action = TEXTS.describe_error(error)
    link = error.link if isinstance(error, PageError) else None
    shown = render("message.html", session=session, message=message, action=action, link=link)
    return HTMLResponse(shown, status or found)


class GuardedApplication:
    """ASGI application that adds security headers and limits the size of request bodies.

    Args:
        app: The wrapped application.
        bytes_max: Returns the maximum size of a body for a path.
    """

    def __init__(self, app: ASGIApp, bytes_max: Callable[[str], int]) -> None:
        self._app, self._bytes_max = app, bytes_max

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        size, bytes_max = 0, self._bytes_max(scope["path"])

        async def receive_some() -> Message:
            nonlocal size
            message = await receive()
            size += len(message.get("body", b""))
            if size > bytes_max:
                raise HTTPException(413, "The file is too large.")
            return message

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                own = [(k.lower().encode(), v.encode()) for k, v in HEADERS.items()]
                message = {**message, "headers": [*message.get("headers", ()), *own]}
            await send(message)

        await self._app(scope, receive_some, send_guarded)
