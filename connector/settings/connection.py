"""The base address: how it is read and checked, and how much of a wrong one may be shown.

It opens no connection and knows no setting.
"""

from __future__ import annotations

import os
import re
import stat
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

from pydantic import SecretStr

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


# -- Key -------------------------------------------------------------------------------------------
# The API key: how it is read from text, a file, a keyring. Nothing here ever shows any of it.


KEY_CHARACTERS_MAX = 4096


def read_key(text: str) -> SecretStr:
    """The key, which must be able to stand in a header (API 5.1).

    Its form beyond that is "not shown" (API 5.5). Raises `ValueError`, whose text says what is
    wrong and holds nothing of the key.
    """
    if not text:
        raise ValueError("is empty")
    if len(text) > KEY_CHARACTERS_MAX:
        raise ValueError(f"is longer than {KEY_CHARACTERS_MAX} characters")
    if not re.fullmatch(r"[\x21-\x7e]+", text):
        raise ValueError(
            "has a space, a line break or a character outside ASCII, and must be one word"
        )
    return SecretStr(text)


def read_key_file(path: Path) -> tuple[str, str | None]:
    """What the file holds, without the line's end, and a warning if others may open the file.

    Raises `OSError`. No more is read than a key could hold, whatever the file is.
    """
    with path.open("rb") as file:
        mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
        content = file.read(KEY_CHARACTERS_MAX + 2)
    warning = None
    if os.name == "posix" and mode & 0o077:
        warning = (
            f"The key file {path} can be opened by others (mode {mode:04o}): run chmod 600 on it."
        )
    # Latin-1 reads any byte; whatever cannot be part of a key is refused by `read_key`.
    return content.decode("latin-1").removesuffix("\n").removesuffix("\r"), warning


KEYRING_ALLOWED = "SERVICE/USER, the names under which the key is in the system's keyring"


def read_keyring(entry: str) -> str:
    """What the system's keyring holds under `SERVICE/USER`.

    Raises `ValueError`, whose text says what is wrong and what to do; it holds nothing of the key,
    and nothing of what the keyring itself has said, which may.
    """
    service, _, user = entry.strip().rpartition("/")
    if not service or not user:
        raise ValueError(f"must be {KEYRING_ALLOWED}")
    try:
        # Only who keeps the key there needs it, and asking the system for its keyrings takes time.
        import keyring  # noqa: PLC0415
        import keyring.errors  # noqa: PLC0415
    except ImportError:
        raise ValueError(
            "needs the package keyring, which is not installed here: install"
            " recruitment-connector[keyring]"
        ) from None
    try:
        found = keyring.get_password(service, user)
    except keyring.errors.NoKeyringError:
        raise ValueError("cannot be read: this machine has no keyring for this user") from None
    except keyring.errors.KeyringLocked:
        raise ValueError("cannot be read: the keyring is locked, and nobody unlocked it") from None
    except keyring.errors.KeyringError as error:
        raise ValueError(f"cannot be read: the keyring failed ({type(error).__name__})") from None
    if found is None:
        raise ValueError(
            f"is not in the keyring under these names: run 'keyring set {service} {user}'"
        )
    return found
