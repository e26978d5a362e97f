"""Access to the page: links, sessions, passwords, origins of forms.

A local page uses a link that works once. Otherwise a user has a password, stored as an argon2 hash,
or a name that a reverse proxy provides. A session is a cookie that scripts cannot read. Its hash is
stored on disk, so that it survives a restart of the server.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
from collections import deque
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Lock
from time import monotonic

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from connector.atomic_files import write_atomically
from connector.errors import Misused, SettingsError, convert_file_errors
from connector.page.words import PageError

SESSION_HOURS = 12
TRIES_MAX, TRIES_SECONDS = 10, 60.0
"""Number of failed logins within this number of seconds, of all users, after which logins wait."""

_SESSIONS_FILE = "sessions.json"
_SESSIONS_MAX = 200
_PASSWORDS_BYTES_MAX = 1_000_000


class AccessDenied(PageError):
    """The user may not send this request."""

    action = "Sign in again."
    status = 403


class LoginsTooMany(PageError):
    """Logins are refused for a minute, because too many failed."""

    action = "Wait a minute, then try again."
    status = 429


@dataclass(frozen=True, slots=True)
class PageSession:
    """Login of a user, valid until `until`. Each form must contain `form_key`."""

    person: str
    form_key: str
    until: str


@dataclass(frozen=True, slots=True)
class AccessRules:
    """Rules for access to the page.

    Attributes:
        address: Address of the page. Every request must have its host.
        passwords: File with names and argon2 hashes.
        proxy: Address of the reverse proxy.
        header: Header in which the proxy names the user. Without `passwords` and `proxy`, users
            need a link that works once.
    """

    address: str
    passwords: Path | None = None
    proxy: str | None = None
    header: str | None = None

    @property
    def is_secure(self) -> bool:
        """True if users connect by https, so that the cookie requires https."""
        return self.address.startswith("https://")


class PageAccess:
    """Links, logins and sessions of one server. Sessions are stored in a file of the folder."""

    def __init__(self, rules: AccessRules, folder: Path, person: str) -> None:
        self.rules, self._path, self._person = rules, folder / _SESSIONS_FILE, person
        self._lock = Lock()
        self._link: str | None = None
        self._failed: deque[float] = deque()
        self._hasher = PasswordHasher()
        self._sessions = self._load_sessions()

    # -- Login -------------------------------------------------------------------------------------

    def create_link(self) -> str:
        """Return the path of a new link that works once. Earlier links stop working."""
        self._link = secrets.token_urlsafe(32)
        return f"/enter/{self._link}"

    def login_with_link(self, token: str) -> str:
        """Return the cookie of a new session for a link's token. Raises `AccessDenied`.

        The terminal shows the link, so its user is the one who started the server.
        """
        with self._lock:
            link, is_right = self._link, False
            if link is not None:
                is_right = hmac.compare_digest(token.encode(), link.encode())
            if not is_right:
                raise AccessDenied(
                    "This link is not valid, or it was used before.",
                    action="Start “connector page” again. It prints a new link.",
                )
            self._link = None
        return self.start_session(self._person)

    def login(self, name: str, password: str) -> str:
        """Return the cookie of a new session. Raises `AccessDenied` or `LoginsTooMany`."""
        self._refuse_too_many_logins()
        known = read_passwords(self.rules.passwords) if self.rules.passwords else {}
        try:
            # An unknown name takes as long as a known one.
            self._hasher.verify(known.get(name, _NOBODY), password)
        except (VerificationError, InvalidHashError):
            self._failed.append(monotonic())
            raise AccessDenied("The name or the password is wrong.", action="Try again.") from None
        return self.start_session(name)

    def _refuse_too_many_logins(self) -> None:
        """Raise `LoginsTooMany` if ten logins failed within the last minute."""
        now = monotonic()
        while self._failed and now - self._failed[0] > TRIES_SECONDS:
            self._failed.popleft()
        if len(self._failed) >= TRIES_MAX:
            raise LoginsTooMany("Too many sign-ins failed.")

    def start_session(self, person: str) -> str:
        """Create a session for the user and return its cookie. Expired sessions are deleted."""
        cookie, now = secrets.token_urlsafe(32), datetime.now(UTC)
        until = (now + timedelta(hours=SESSION_HOURS)).isoformat()
        with self._lock:
            alive = {k: s for k, s in self._sessions.items() if s.until > now.isoformat()}
            while len(alive) >= _SESSIONS_MAX:
                alive.pop(min(alive, key=lambda each: alive[each].until))
            alive[_hash_cookie(cookie)] = PageSession(person, secrets.token_urlsafe(24), until)
            self._sessions = alive
            self._save_sessions()
        return cookie

    def find_session(
        self, cookie: str | None, peer: str | None, header: str | None
    ) -> PageSession | None:
        """Return the valid session of a cookie, or None.

        `peer` is the client's address, and `header` the name from the reverse proxy. Raises
        `AccessDenied` if the proxy must name a user and did not.
        """
        found = self._sessions.get(_hash_cookie(cookie)) if cookie else None
        if found is not None and found.until <= datetime.now(UTC).isoformat():
            found = None
        if self.rules.header is None:
            return found
        if peer != self.rules.proxy or not header:
            raise AccessDenied("The reverse proxy did not send your name.")
        return found if found is not None and found.person == header else None

    def logout(self, cookie: str | None) -> None:
        """End the session of a cookie."""
        with self._lock:
            if cookie and self._sessions.pop(_hash_cookie(cookie), None) is not None:
                self._save_sessions()

    # -- Origin of a request -----------------------------------------------------------------------

    def check_origin(self, headers: Mapping[str, str], *, changes: bool) -> None:
        """Refuse a request to another host name and, if it `changes` data, a form of another site.

        Raises `AccessDenied`.
        """
        scheme, _, host = self.rules.address.partition("://")
        if headers.get("host", "").lower() not in {host.lower(), *_other_host_names(host)}:
            raise AccessDenied("This page is at %(address)s.", address=self.rules.address)
        if not changes:
            return
        origin = headers.get("origin", "").lower()
        allowed = {f"{scheme}://{each}" for each in (host.lower(), *_other_host_names(host))}
        if origin not in allowed or headers.get("sec-fetch-site", "same-origin") != "same-origin":
            raise AccessDenied("The form came from another website.")

    def check_form(self, session: PageSession, form_key: str | None) -> None:
        """Raise `AccessDenied` if the form does not have the session's key."""
        if not hmac.compare_digest((form_key or "").encode(), session.form_key.encode()):
            raise AccessDenied("Your session has expired.")

    def _load_sessions(self) -> dict[str, PageSession]:
        """Return the stored sessions by the hash of their cookie; none if the file is damaged."""
        with convert_file_errors(self._path):
            if not self._path.exists():
                return {}
            try:
                found = json.loads(self._path.read_text(encoding="utf-8"))
                return {key: PageSession(**each) for key, each in found.items()}
            except (ValueError, TypeError, AttributeError):
                return {}

    def _save_sessions(self) -> None:
        """Write the sessions to their file."""
        sessions = {key: asdict(each) for key, each in self._sessions.items()}
        with convert_file_errors(self._path), write_atomically(self._path) as file:
            file.write(json.dumps(sessions).encode())


_NOBODY = PasswordHasher().hash(secrets.token_urlsafe(16))


def _hash_cookie(cookie: str) -> str:
    return hashlib.sha256(cookie.encode()).hexdigest()


def _other_host_names(host: str) -> set[str]:
    """Return other names of this machine with the port, if the page is only served locally."""
    name, _, port = host.rpartition(":")
    loopback = {"127.0.0.1", "localhost", "[::1]"}
    return {f"{each}:{port}" for each in loopback} if name in loopback else set()


def read_passwords(path: Path) -> dict[str, str]:
    """Return names with argon2 hashes from a password file with lines `NAME:HASH`.

    Raises `SettingsError` without any content of the file.
    """
    try:
        if path.stat().st_mode & 0o077:
            raise SettingsError(f"other users can open {path}", action=f"Run chmod 600 {path}.")
        if path.stat().st_size > _PASSWORDS_BYTES_MAX:
            raise SettingsError(f"{path} is too large for a password file")
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise SettingsError(f"{path} cannot be read: {error.strerror or error}") from error
    pairs = [line.split(":", 1) for line in lines if line.strip() and not line.startswith("#")]
    if not pairs or any(len(each) != 2 or not each[1].startswith("$argon2") for each in pairs):
        raise SettingsError(
            f"{path} has a line that is not NAME:HASH, or none at all",
            action="Add people with 'connector page --add-person NAME --passwords FILE'.",
        )
    return {name.strip(): hashed.strip() for name, hashed in pairs}


def set_password(path: Path, name: str, password: str) -> None:
    """Add a user to a password file, or replace the password. Raises `SettingsError`, `Misused`."""
    if not name.isprintable() or ":" in name or not name.strip():
        raise Misused(
            f"{name!r} is not a valid name", action="Leave out colons and hidden characters."
        )
    known = read_passwords(path) if path.exists() else {}
    known[name.strip()] = PasswordHasher().hash(password)
    with convert_file_errors(path), write_atomically(path) as file:
        file.write("".join(f"{who}:{hashed}\n" for who, hashed in known.items()).encode())
