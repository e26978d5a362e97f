"""The API key: how it is read from text, a file, a keyring. Nothing here ever shows any of it."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path

from pydantic import SecretStr

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
