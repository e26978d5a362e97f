"""The base address: how it is read and checked, and how much of a wrong one may be shown.

It opens no connection and knows no setting.
"""

from __future__ import annotations

import re
from ipaddress import ip_address
from urllib.parse import urlsplit

API_PATH = "/api/v1"
"""What every path of the API begins with (API 9.1)."""

_ALLOWED = "an address such as https://acme.example"


def read_address(raw: object) -> str:
    """The address before `/api/v1`, without a closing slash, its host in lower case (API 1).

    `https` is required, except towards this machine, since the key travels with every request. A
    closing slash and a closing `/api/v1` are taken off. Raises `ValueError`, whose text says what
    is allowed and holds nothing of `raw`.
    """
    text = raw.strip() if isinstance(raw, str) else ""
    if re.search(r"[\s\x00-\x1f\x7f\\]", text):
        raise ValueError(f"{_ALLOWED}, without spaces or backslashes")
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        raise ValueError(f"{_ALLOWED}, with a port from 1 to 65535 if any") from None
    host = parts.hostname
    if parts.scheme not in ("https", "http") or not host or port == 0:
        raise ValueError(_ALLOWED)
    if "@" in parts.netloc:
        raise ValueError(f"{_ALLOWED}, without a name or a password in it")
    if "?" in text or "#" in text:
        raise ValueError(f"{_ALLOWED}, without '?' or '#'")
    if parts.scheme == "http" and not is_loopback(host):
        raise ValueError(f"{_ALLOWED}: http would show the key to others, so only this machine may")
    path = parts.path.rstrip("/").removesuffix(API_PATH).rstrip("/")
    if f"{API_PATH}/" in f"{path}/":
        raise ValueError(f"the part of the address before {API_PATH}")
    return f"{parts.scheme}://{parts.netloc.lower()}{path}"


def read_proxy(raw: object) -> str:
    """The address of a proxy: a scheme, a host and a port, and nothing else.

    A name or a password in it is refused, since addresses are shown. Raises `ValueError`, whose
    text says what is allowed and holds nothing of `raw`.
    """
    text = raw.strip() if isinstance(raw, str) else ""
    allowed = "the address of a proxy such as http://proxy.example:3128, without a name or a path"
    if not re.fullmatch(r"https?://(\[[0-9a-fA-F:]+\]|[A-Za-z0-9.-]+):[0-9]{1,5}/?", text):
        raise ValueError(allowed)
    try:
        port = urlsplit(text).port
    except ValueError:
        raise ValueError(allowed) from None
    if not port:
        raise ValueError(allowed)
    return text.rstrip("/").lower()


def is_loopback(host: str) -> bool:
    """Whether a host's name or number is this machine's own."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def shown_address(raw: str) -> str:
    """A refused address, quoted, without what may be secret: a password, a query, or a key that
    was put in its place.
    """
    scheme, mark, rest = raw.partition("://")
    if not mark:
        return "a value without 'https://'"
    return repr(f"{scheme}://{re.split(r'[?#]', rest.rpartition('@')[2])[0]}")
