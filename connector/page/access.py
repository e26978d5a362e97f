"""Access to the page: a link that works once, or the user that a reverse proxy names.

Every request must name the page's own host, and a request that changes data must come from the page
itself. A session is a cookie that scripts cannot read; its hash is on disk, so that users stay
signed in after a restart of the server.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Lock

from starlette.requests import Request

from connector.atomic_files import write_atomically

SESSION_HOURS = 12
MARK = "X-Import-Page"
"""Header of every change. Another website cannot send it, because browsers ask the page first."""

_SESSIONS_FILE = "sessions.json"
_SESSIONS_MAX = 100
_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")


class PageError(Exception):
    """A request that the page refuses, with a sentence for the user and a next step."""

    def __init__(self, message: str, action: str = "", status: int = 422) -> None:
        super().__init__(message)
        self.action, self.status = action, status


@dataclass(frozen=True, slots=True)
class Rules:
    """Rules for access.

    Attributes:
        address: Address of the page in the browser, without a slash at its end.
        user: User who opens the link that the command prints.
        proxy_user: Header in which the reverse proxy names the user; None for the link.
        proxy_from: IP address of the reverse proxy.
    """

    address: str
    user: str
    proxy_user: str | None = None
    proxy_from: str | None = None


class Access:
    """Link and sessions of one server; `folder` has the file of the sessions."""

    def __init__(self, rules: Rules, folder: Path) -> None:
        self.rules, self._path, self._lock = rules, folder / _SESSIONS_FILE, Lock()
        self._link: str | None = None
        scheme, _, host = rules.address.lower().partition("://")
        name, colon, port = host.rpartition(":")
        self._hosts = {host}
        if name in _LOOPBACK:
            self._hosts |= {f"{each}{colon}{port}" for each in _LOOPBACK}
        self._origins = {f"{scheme}://{each}" for each in self._hosts}
        # Cookies of one host are shared by all its ports.
        self.cookie = f"import_page_{port if port.isdecimal() else 'session'}"

    def create_link(self) -> str:
        """Return the address of a new link that signs one browser in, once."""
        self._link = secrets.token_urlsafe(32)
        return f"{self.rules.address}/enter/{self._link}"

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
            cookie, now = secrets.token_urlsafe(32), datetime.now(UTC)
            until = (now + timedelta(hours=SESSION_HOURS)).isoformat()
            valid = {key: end for key, end in self._load().items() if end > now.isoformat()}
            latest = sorted(valid.items(), key=lambda each: each[1])[-_SESSIONS_MAX + 1 :]
            with write_atomically(self._path) as file:
                file.write(json.dumps({**dict(latest), _hash(cookie): until}).encode())
        return cookie

    def check_request(self, request: Request) -> None:
        """Raise `PageError` for another host name, or for a change that another website sends."""
        if request.headers.get("host", "").lower() not in self._hosts:
            raise PageError(f"This page is at {self.rules.address}.", status=403)
        if request.method in ("GET", "HEAD"):
            return
        is_own = (
            request.headers.get("origin", "").lower() in self._origins
            and request.headers.get("sec-fetch-site", "same-origin") == "same-origin"
            and MARK in request.headers
        )
        if not is_own:
            raise PageError("The request came from another website.", status=403)

    def user_of(self, request: Request) -> str:
        """Return the signed-in user of a request. Raises `PageError` if there is none."""
        if self.rules.proxy_user is not None:
            name = request.headers.get(self.rules.proxy_user, "").strip()
            is_proxy = request.client is not None and request.client.host == self.rules.proxy_from
            if is_proxy and name:
                return name
            raise PageError("The reverse proxy did not send your name.", "Sign in there.", 403)
        until = self._load().get(_hash(request.cookies.get(self.cookie, "")), "")
        if until <= datetime.now(UTC).isoformat():
            raise PageError(
                "You are not signed in.",
                "Open the link that “connector page” prints in the terminal.",
                403,
            )
        return self.rules.user

    def _load(self) -> dict[str, str]:
        """Return the end of each session, by the hash of its cookie."""
        try:
            found = json.loads(self._path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}


def _hash(cookie: str) -> str:
    return hashlib.sha256(cookie.encode()).hexdigest()
