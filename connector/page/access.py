"""Access to the page: a link that works once, or the user that a reverse proxy names.

Every request must name the page's own host, and a request that changes data must come from the page
itself. A session is a signed cookie that scripts cannot read. The key of the signature is on disk:
users stay signed in after a restart of the server.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from pathlib import Path
from threading import Lock

from starlette.requests import Request

from connector.atomic_files import write_atomically
from connector.page.errors import PageError

SESSION_SECONDS = 12 * 3600
MARK = "X-Import-Page"
"""Header of every change. Another website cannot send it, because browsers ask the page first."""


class Access:
    """Rules for access, the link, and the sessions of one server.

    Args:
        address: Address of the page in the browser, without a slash at its end.
        user: User who opens the link that the command prints.
        folder: Folder for the key of the sessions.
        proxy_user: Header in which the reverse proxy names the user; None for the link.
        proxy_from: IP address of the reverse proxy.
    """

    def __init__(
        self,
        address: str,
        user: str,
        folder: Path,
        proxy_user: str | None = None,
        proxy_from: str | None = None,
    ) -> None:
        self.address, self._user = address, user
        self._proxy_user, self._proxy_from = proxy_user, proxy_from
        self._link: str | None = None
        self._lock = Lock()
        self._host = address.lower().partition("://")[2]
        port = self._host.rpartition(":")[2]
        # Cookies of one host are shared by all its ports.
        self.cookie = f"import_page_{port if port.isdecimal() else 'session'}"
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
        with self._lock:
            link, self._link = self._link, None
            if link is None or not hmac.compare_digest(token.encode(), link.encode()):
                self._link = link
                raise PageError(
                    "This link is not valid, or it was used before.",
                    "Start “connector page” again. It prints a new link.",
                    403,
                )
        return self._signed(str(int(time.time()) + SESSION_SECONDS))

    def check_request(self, request: Request) -> None:
        """Raise `PageError` for another host name, or for a change that another website sends."""
        if request.headers.get("host", "").lower() != self._host:
            raise PageError(f"This page is at {self.address}.", status=403)
        if request.method in ("GET", "HEAD"):
            return
        is_own = (
            request.headers.get("origin", "").lower() == self.address.lower()
            and request.headers.get("sec-fetch-site", "same-origin") == "same-origin"
            and MARK in request.headers
        )
        if not is_own:
            raise PageError("The request came from another website.", status=403)

    def user_of(self, request: Request) -> str:
        """Return the signed-in user of a request. Raises `PageError` if there is none."""
        if self._proxy_user is not None:
            name = request.headers.get(self._proxy_user, "").strip()
            is_proxy = request.client is not None and request.client.host == self._proxy_from
            if is_proxy and name:
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
