"""Access to the page: a link that works once, or the user that a reverse proxy names.

A request must name the page's own host, and a change must come from the page itself. The session is
a cookie that scripts cannot read. It is on disk too, so that all stay signed in after a restart.
"""

from __future__ import annotations

import re
import secrets
import time
from hmac import compare_digest
from pathlib import Path
from typing import NamedTuple

from starlette.requests import Request

from connector.atomic_files import write_atomically
from connector.page.imports import PageError

SESSION_SECONDS = 12 * 3600
MARK = "X-Import-Page"
"""Header of every change. Another website cannot send it, because browsers ask the page first."""


class Proxy(NamedTuple):
    """Reverse proxy that signs users in: the header with the user, and the proxy's IP address."""

    user_header: str
    address: str


class Access:
    """Rules for access, the link, and the sessions of one server.

    Args:
        address: Address of the page in the browser, without a slash at its end.
        user: User who opens the link that the command prints.
        folder: Folder for the session.
        proxy: Reverse proxy that signs users in instead of the link.
    """

    def __init__(self, address: str, user: str, folder: Path, proxy: Proxy | None = None) -> None:
        self.address, self._user, self._proxy = address, user, proxy
        self._link: str | None = None
        self._host = address.lower().partition("://")[2]
        # Cookies of one host are shared by all its ports.
        self.cookie = "import_page_" + re.sub(r"\W", "_", self._host)
        self._session = folder / "session"

    def create_link(self) -> str:
        """Return the address of a new link that signs one browser in, once."""
        self._link = secrets.token_urlsafe(32)
        return f"{self.address}/enter/{self._link}"

    def enter(self, token: str) -> str:
        """Return the cookie of a new session for a link's token. Raises `PageError`."""
        if self._link is None or not compare_digest(token.encode(), self._link.encode()):
            action = "Start “connector page” again. It prints a new link."
            raise PageError("This link is not valid, or it was used before.", action, 403)
        self._link, cookie = None, secrets.token_urlsafe(32)
        with write_atomically(self._session) as file:
            file.write(cookie.encode())
        return cookie

    def check_request(self, request: Request) -> None:
        """Raise `PageError` for another host name, or for a change that another website sends."""
        headers = request.headers
        if headers.get("host", "").lower() != self._host:
            raise PageError(f"This page is at {self.address}.", status=403)
        is_own = (
            headers.get("origin", "").lower() == self.address.lower()
            and headers.get("sec-fetch-site", "same-origin") == "same-origin"
            and MARK in headers
        )
        if request.method not in ("GET", "HEAD") and not is_own:
            raise PageError("The request came from another website.", status=403)

    def user_of(self, request: Request) -> str:
        """Return the signed-in user of a request. Raises `PageError` if there is none."""
        if self._proxy is not None:
            name = request.headers.get(self._proxy.user_header, "").strip()
            if name and request.client and request.client.host == self._proxy.address:
                return name
            raise PageError("The reverse proxy did not send your name.", "Sign in there.", 403)
        cookie = request.cookies.get(self.cookie, "").encode()
        path = self._session
        is_open = path.exists() and time.time() - path.stat().st_mtime < SESSION_SECONDS
        if is_open and compare_digest(cookie, path.read_bytes()):
            return self._user
        action = "Open the link that “connector page” prints in the terminal."
        raise PageError("You are not signed in.", action, 403)
