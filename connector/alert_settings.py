"""How the settings on alerts are read: an age, kinds, an address to post to, a mail server.

Values alone: nothing is sent, opened or looked up here, and no text of an error holds any of a
secret.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal, get_args
from urllib.parse import urlsplit

from connector.address import is_loopback

Kind = Literal["failed", "degraded", "silent"]
"""What an alert says: something did not work, or less well than it should, or not at all."""

KINDS: tuple[Kind, ...] = get_args(Kind)

Style = Literal["generic", "slack"]
"""The shape of what a webhook is sent: our own object, or the one that Slack and its like take."""

Security = Literal["starttls", "ssl", "none"]
"""How the connection to the mail server is protected."""

PORTS: Mapping[Security, int] = {"starttls": 587, "ssl": 465, "none": 25}
"""The mail server's port for each, where none is set."""

PASSWORD_CHARACTERS_MAX = 4096
RECIPIENTS_MAX = 50

_UNITS = {"d": timedelta(days=1), "h": timedelta(hours=1), "min": timedelta(minutes=1)}
_AGE = re.compile(rf"([0-9]{{1,6}}) ?({'|'.join(_UNITS)}|m)")
_AGE_MAX = timedelta(days=366)
_AGE_ALLOWED = "a length of time such as 26h, 90min or 2d, of at most 366 days"
_MAILBOX = re.compile(r"[^\s@,;<>\"\x00-\x1f\x7f]{1,64}@[A-Za-z0-9.-]{1,253}")
_HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]{0,252}[A-Za-z0-9])?|[0-9a-fA-F:.]{2,45}")


@dataclass(frozen=True, slots=True)
class Age:
    """A length of time, and the text that it was given as."""

    length: timedelta
    text: str

    def __str__(self) -> str:
        return self.text


def read_age(raw: object) -> Age:
    """An age such as `26h`, `90min` or `2d`. Raises `ValueError`, which says what is allowed."""
    text = str(raw).strip()
    match = _AGE.fullmatch(text)
    if not isinstance(raw, str) or match is None:
        raise ValueError(_AGE_ALLOWED)
    number, unit = match.groups()
    length = int(number) * _UNITS["min" if unit == "m" else unit]
    if not timedelta(0) < length <= _AGE_MAX:
        raise ValueError(_AGE_ALLOWED)
    return Age(length, text)


def read_webhook(text: str) -> str:
    """An address to post to, which may hold a token in its path or in its query.

    `https` is required, except towards this machine. Raises `ValueError`, whose text holds nothing
    of the address.
    """
    allowed = "is not an address such as https://hooks.example/alerts"
    if len(text) > PASSWORD_CHARACTERS_MAX or not re.fullmatch(r"[\x21-\x5b\x5d-\x7e]+", text):
        raise ValueError(f"{allowed}: it must be one word of ASCII, without backslashes")
    try:
        parts = urlsplit(text)
        port, host = parts.port, parts.hostname
    except ValueError:
        raise ValueError(allowed) from None
    if parts.scheme not in ("https", "http") or not host or port == 0 or "#" in text:
        raise ValueError(allowed)
    if "@" in parts.netloc:
        raise ValueError(f"{allowed}: it must be without a name or a password before its host")
    if parts.scheme == "http" and not is_loopback(host):
        raise ValueError(f"{allowed}: http would show alerts to others, so only this machine may")
    return text


def read_password(text: str) -> str:
    """A mail server's password. Raises `ValueError`, whose text holds nothing of it."""
    if not text or len(text) > PASSWORD_CHARACTERS_MAX or not re.fullmatch(r"[\x20-\x7e]+", text):
        raise ValueError(f"must be 1 to {PASSWORD_CHARACTERS_MAX} printable ASCII characters")
    return text


def read_kinds(raw: object) -> tuple[Kind, ...]:
    """Kinds, parted by commas or as a list, in their own order. Raises `ValueError`."""
    names = _listed(raw)
    if not names or not set(names) <= set(KINDS):
        raise ValueError(f"some of: {', '.join(KINDS)}")
    return tuple(each for each in KINDS if each in names)


def read_recipients(raw: object) -> tuple[str, ...]:
    """Mailboxes, parted by commas or as a list. Raises `ValueError`, which shows none of them."""
    names = tuple(dict.fromkeys(_listed(raw)))
    if not names or len(names) > RECIPIENTS_MAX or not all(map(_MAILBOX.fullmatch, names)):
        raise ValueError(f"1 to {RECIPIENTS_MAX} addresses such as ops@acme.example")
    return names


def read_mailbox(raw: object) -> str:
    """One mailbox. Raises `ValueError`, which does not show it."""
    if not isinstance(raw, str) or not _MAILBOX.fullmatch(raw.strip()):
        raise ValueError("one address such as connector@acme.example")
    return raw.strip()


def read_host(raw: object) -> str:
    """A mail server's name or number. Raises `ValueError`."""
    if not isinstance(raw, str) or not _HOST.fullmatch(raw.strip()):
        raise ValueError("a host such as smtp.acme.example, without a port")
    return raw.strip()


def read_user(raw: object) -> str:
    """The name to give to the mail server. Raises `ValueError`."""
    if not isinstance(raw, str) or not re.fullmatch(r"[\x21-\x7e]{1,320}", raw.strip()):
        raise ValueError("a name of at most 320 visible ASCII characters")
    return raw.strip()


def _listed(raw: object) -> list[str]:
    given = raw.split(",") if isinstance(raw, str) else raw
    return [str(each).strip() for each in given] if isinstance(given, list) else []
