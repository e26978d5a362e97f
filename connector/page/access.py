"""Who may use the page: links, sessions, passwords, places of forms.

On this machine a link that works once lets a person in. Elsewhere it is a password, kept as argon2
made it, or a name that a reverse proxy vouches for. A session is a cookie that no script sees; its
hash is on the disk, so that a server that was started again knows it.
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

from connector.atomic_files import replacing
from connector.errors import Misused, SettingsError, naming_file_errors
from connector.page.marks import N_
from connector.page.words import PageError

SESSION_HOURS = 12
TRIES_MAX, TRIES_SECONDS = 10, 60.0
"""As many logins may fail in so many seconds, whoever tries: then all wait."""

_SESSIONS_FILE = "sessions.json"
_SESSIONS_MAX = 200
_PASSWORDS_BYTES_MAX = 1_000_000


class AccessDenied(PageError):
    """The request may not be answered."""

    action = N_("Sign in again.")
    status = 403


class LoginsTooMany(PageError):
    """Too many logins have failed; the page waits."""

    action = N_("Wait a minute, then try again.")
    status = 429


@dataclass(frozen=True, slots=True)
class PageSession:
    """A person who was let in. `form_key` has to be in each of their forms."""

    person: str
    form_key: str
    until: str


@dataclass(frozen=True, slots=True)
class AccessRules:
    """Rules for access to the page.

    `address` is what they type, whose host and scheme every request must have. `passwords` is the
    file of names with argon2 hashes; `proxy` the machine whose `header` names the person. Without
    either it is a link that works once.
    """

    address: str
    passwords: Path | None = None
    proxy: str | None = None
    header: str | None = None

    @property
    def is_secure(self) -> bool:
        """Whether people come by https, so that the cookie may go by nothing else."""
        return self.address.startswith("https://")


class PageAccess:
    """Sessions of one server, over a folder that is closed to others."""

    def __init__(self, rules: AccessRules, folder: Path, person: str) -> None:
        self.rules, self._path, self._person = rules, folder / _SESSIONS_FILE, person
        self._lock = Lock()
        self._link: str | None = None
        self._failed: deque[float] = deque()
        self._hasher = PasswordHasher()
        self._sessions = self._read()

    # -- Coming in --------------------------------------------------------------------------------

    def new_link(self) -> str:
        """The path of a link that lets one person in, once."""
        self._link = secrets.token_urlsafe(32)
        return f"/enter/{self._link}"

    def enter(self, token: str) -> str:
        """The cookie of whoever has the link, once. Raises `AccessDenied`.

        The terminal shows the link, and so whoever has it is who started the server.
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
        return self.admit(self._person)

    def login(self, name: str, password: str) -> str:
        """The cookie for a password. Raises `AccessDenied`, `LoginsTooMany`."""
        self._check_tries()
        known = read_passwords(self.rules.passwords) if self.rules.passwords else {}
        try:
            # A name that no one has takes as long as one that a person has.
            self._hasher.verify(known.get(name, _NOBODY), password)
        except (VerificationError, InvalidHashError):
            self._failed.append(monotonic())
            raise AccessDenied("The name or the password is wrong.", action="Try again.") from None
        return self.admit(name)

    def _check_tries(self) -> None:
        now = monotonic()
        while self._failed and now - self._failed[0] > TRIES_SECONDS:
            self._failed.popleft()
        if len(self._failed) >= TRIES_MAX:
            raise LoginsTooMany("Too many sign-ins failed.")

    def admit(self, person: str) -> str:
        """A new session of the person; returns its cookie."""
        cookie, now = secrets.token_urlsafe(32), datetime.now(UTC)
        until = (now + timedelta(hours=SESSION_HOURS)).isoformat()
        with self._lock:
            alive = {k: s for k, s in self._sessions.items() if s.until > now.isoformat()}
            while len(alive) >= _SESSIONS_MAX:
                alive.pop(min(alive, key=lambda each: alive[each].until))
            alive[_hash(cookie)] = PageSession(person, secrets.token_urlsafe(24), until)
            self._sessions = alive
            self._write()
        return cookie

    def session(
        self, cookie: str | None, peer: str | None, header: str | None
    ) -> PageSession | None:
        """The session of a request; None where there is none.

        Raises `AccessDenied` where the reverse proxy has to name a person and did not.
        """
        found = self._sessions.get(_hash(cookie)) if cookie else None
        if found is not None and found.until <= datetime.now(UTC).isoformat():
            found = None
        if self.rules.header is None:
            return found
        if peer != self.rules.proxy or not header:
            raise AccessDenied("The reverse proxy did not send your name.")
        return found if found is not None and found.person == header else None

    def logout(self, cookie: str | None) -> None:
        """End the session, for whoever else may have its cookie as well."""
        with self._lock:
            if cookie and self._sessions.pop(_hash(cookie), None) is not None:
                self._write()

    # -- Where a request comes from ---------------------------------------------------------------

    def check_place(self, headers: Mapping[str, str], *, changes: bool) -> None:
        """Refuse a request to another name than ours, and a form of another site.

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
        """Refuse a form that this session was not given. Raises `AccessDenied`."""
        if not hmac.compare_digest((form_key or "").encode(), session.form_key.encode()):
            raise AccessDenied("Your session has expired.")

    def _read(self) -> dict[str, PageSession]:
        with naming_file_errors(self._path):
            if not self._path.exists():
                return {}
            try:
                found = json.loads(self._path.read_text(encoding="utf-8"))
                return {key: PageSession(**each) for key, each in found.items()}
            except (ValueError, TypeError, AttributeError):
                return {}

    def _write(self) -> None:
        told = {key: asdict(each) for key, each in self._sessions.items()}
        with naming_file_errors(self._path), replacing(self._path) as file:
            file.write(json.dumps(told).encode())


_NOBODY = PasswordHasher().hash(secrets.token_urlsafe(16))


def _hash(cookie: str) -> str:
    return hashlib.sha256(cookie.encode()).hexdigest()


def _other_host_names(host: str) -> set[str]:
    """Other names of this very machine, where the page is served to it alone."""
    name, _, port = host.rpartition(":")
    loopback = {"127.0.0.1", "localhost", "[::1]"}
    return {f"{each}:{port}" for each in loopback} if name in loopback else set()


def read_passwords(path: Path) -> dict[str, str]:
    """The names of a password file with their argon2 hashes, `NAME:HASH` a line.

    Raises `SettingsError`, which shows nothing of the file.
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
    return {name.strip(): kept.strip() for name, kept in pairs}


def add_person(path: Path, name: str, password: str) -> None:
    """Give a person a password, in place of one that they had. Raises `SettingsError`."""
    if not name.isprintable() or ":" in name or not name.strip():
        raise Misused(
            f"{name!r} is not a valid name", action="Leave out colons and hidden characters."
        )
    known = read_passwords(path) if path.exists() else {}
    known[name.strip()] = PasswordHasher().hash(password)
    with naming_file_errors(path), replacing(path) as file:
        file.write("".join(f"{who}:{kept}\n" for who, kept in known.items()).encode())
