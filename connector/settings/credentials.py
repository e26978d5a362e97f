"""Secrets: from the environment, a file, or the system's keyring.

A secret is never shown: not by a message, and not by `repr`.
"""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path

from pydantic import SecretStr

from connector.errors import SettingsError
from connector.extras import install_extra
from connector.settings.layers import (
    FILE_ENDING,
    KEYRING_ENDING,
    Layers,
    RawValue,
    Setting,
    variable_of,
)
from connector.settings.values import SECRET_CHARACTERS_MAX

HASH_KEY_CHARACTERS_MIN = 16


def read_key(text: str) -> str:
    """Parse a key, which must be valid in a header (API 5.1).

    "Not shown" is all else that is known of its form (API 5.5). Raises `ValueError`, whose
    text holds nothing of it.
    """
    if not text:
        raise ValueError("is empty")
    if len(text) > SECRET_CHARACTERS_MAX:
        raise ValueError(f"is longer than {SECRET_CHARACTERS_MAX} characters")
    if not re.fullmatch(r"[\x21-\x7e]+", text):
        raise ValueError(
            "has a space, a line break or a character outside ASCII, and must be one word"
        )
    return text


OPEN_TO_OTHERS = "can be opened by other users"
"""Part of the warning about a secret's file, by which `doctor` finds it."""


def read_hash_key(text: str) -> str:
    """Parse the key that hashes personal fields. Raises `ValueError` as `read_key` does."""
    if len(read_key(text)) < HASH_KEY_CHARACTERS_MIN:
        raise ValueError(f"is shorter than {HASH_KEY_CHARACTERS_MIN} characters")
    return text


def find_secret(layers: Layers, name: str, warnings: list[str]) -> Setting[SecretStr | None]:
    """Secret from the one place it is set in: a variable, a file, or the keyring.

    Adds a warning about a file that others can open. Raises `SettingsError`.
    """
    names = [each for each, rule in layers.rules.items() if name in (each, rule.place_of)]
    outer = [found for each in names if (found := layers.from_flag_or_environment(each))]
    inner = [found for each in names if (found := layers.from_project_file(each))]
    if layers.rules[name].is_identity:
        _check_pair(layers, outer, inner)
    if len(outer) > 1:
        raise SettingsError(
            f"both {outer[0].origin} and {outer[1].origin} are set", action="Unset one of the two."
        )
    if len(inner) > 1 and not outer:
        raise SettingsError(
            f"both {inner[0].name} and {inner[1].name} are set (from {inner[0].origin})",
            action="Remove one of the two.",
        )
    if not outer and not inner:
        return Setting(None, "default")
    found = (*outer, *inner)[0]
    origin, shown, action = found.origin, found.origin, ""
    try:
        if found.name.endswith(KEYRING_ENDING):
            origin = f"the keyring, named by {found.origin}"
            action = f"Put the key there, or set {variable_of(name + FILE_ENDING)} instead."
            text = read_keyring(found.raw)
        elif found.rule.place_of:
            path = found.read()
            origin = shown = f"{path}, named by {found.origin}"
            text = _read_file(found, path, warnings)
        else:
            text = str(found.raw)
        return Setting(SecretStr(layers.rules[name].read(text)), origin)
    except ValueError as error:
        raise SettingsError(f"{name} {error} (from {shown})", action=action) from None


def _read_file(found: RawValue, path: Path, warnings: list[str]) -> str:
    """Return the file's text without its line end, and a warning if others may open the file.

    No more is read than a secret could hold, whatever the file is.
    """
    try:
        with path.open("rb") as file:
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
            content = file.read(SECRET_CHARACTERS_MAX + 2)
    except OSError as error:
        found.refuse(f"a file that can be read: {error.strerror}")
    if os.name == "posix" and mode & 0o077:
        warnings.append(
            f"The key file {path} {OPEN_TO_OTHERS} (mode {mode:04o}): run chmod 600 on it."
        )
    # Latin-1 reads any byte; whatever cannot be part of a secret is refused by its reader.
    return content.decode("latin-1").removesuffix("\n").removesuffix("\r")


def read_keyring(entry: object) -> str:
    """Return the secret that the system's keyring has under `SERVICE/USER`.

    Raises `ValueError` with the problem and the action. The text has no part of the key, and no
    text of the keyring's own error, which may contain the key.
    """
    service, _, user = entry.strip().rpartition("/") if isinstance(entry, str) else ("", "", "")
    if not service or not user:
        raise ValueError(
            "must be SERVICE/USER, the names under which the key is in the system's keyring"
        )
    try:
        # Only who keeps the key there needs it, and asking the system for its keyrings takes time.
        import keyring  # noqa: PLC0415
        import keyring.errors  # noqa: PLC0415
    except ImportError:
        raise ValueError(
            f"needs the package keyring, which is not installed here. {install_extra('keyring')}"
        ) from None
    try:
        found = keyring.get_password(service, user)
    except keyring.errors.NoKeyringError:
        raise ValueError("cannot be read: this machine has no keyring for this user") from None
    except keyring.errors.KeyringLocked:
        raise ValueError("cannot be read: the keyring is locked") from None
    except keyring.errors.KeyringError as error:
        raise ValueError(f"cannot be read: the keyring failed ({type(error).__name__})") from None
    if found is None:
        raise ValueError(
            f"is not in the keyring under these names: run 'keyring set {service} {user}'"
        )
    return found


def _check_pair(layers: Layers, outer: list[RawValue], inner: list[RawValue]) -> None:
    """Refuse an address and a key that were not set for each other.

    A key must never be sent to another account's address.
    """
    address, file_address = (
        layers.from_flag_or_environment("base_url"),
        layers.from_project_file("base_url"),
    )
    if not file_address or not inner or bool(address) == bool(outer):
        return
    if address:
        problem = f"{address.origin} is set, but the key would still come from {inner[0].origin}"
    else:
        problem = f"{outer[0].origin} is set, but the address would still come from"
        problem += f" {file_address.origin}"
    raise SettingsError(
        problem,
        action="Set the address and the key in the same place, so the key is never sent to a wrong "
        "address.",
    )
