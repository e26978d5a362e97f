"""Access to the page: a link that works once, or the user that a reverse proxy names.

A request must name the page's own host, and a change must come from the page itself. A session is
a signed cookie that scripts cannot read. Its key is on disk, so that a restart signs nobody out.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import time
from pathlib import Path
from typing import NamedTuple

from starlette.requests import Request

from connector.atomic_files import write_atomically
from connector.page.errors import PageError

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
        folder: Folder for the key of the sessions.
        proxy: Reverse proxy that signs users in instead of the link.
    """

    def __init__(self, address: str, user: str, folder: Path, proxy: Proxy | None = None) -> None:
        self.address, self._user, self._proxy = address, user, proxy
        self._link: str | None = None
        self._host = address.lower().partition("://")[2]
        # Cookies of one host are shared by all its ports.
        self.cookie = "import_page_" + re.sub(r"\W", "_", self._host)
        path = folder / "session.key"
        if not path.exists():
            with write_atomically(path) as file:
                file.write(secrets.token_bytes(32))
        self._key = path.read_bytes()

    def create_link(self) -> str:
        """Return the address of a new link that signs one browser in, once."""
        self._link = secrets.token_urlsafe(32)
        return f"{self.address}/enter/{self._link}"

    def enter(self, token: str) -> str:
        """Return the cookie of a new session for a link's token. Raises `PageError`."""
        if self._link is None or not hmac.compare_digest(token.encode(), self._link.encode()):
            raise PageError(
                "This link is not valid, or it was used before.",
                "Start “connector page” again. It prints a new link.",
                403,
            )
        self._link = None
        return self._signed(str(int(time.time()) + SESSION_SECONDS))

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
        cookie = request.cookies.get(self.cookie, "")
        until = cookie.partition(".")[0]
        is_signed = hmac.compare_digest(cookie.encode(), self._signed(until).encode())
        if not is_signed or int(until) < time.time():
            raise PageError(
                "You are not signed in.",
                "Open the link that “connector page” prints in the terminal.",
                403,
            )
        return self._user

    def _signed(self, until: str) -> str:
        """Return the cookie of a session that ends at this Unix time."""
        return f"{until}.{hmac.new(self._key, until.encode(), hashlib.sha256).hexdigest()}"
