"""Secrets: from the environment or a file.

No message and no `repr` shows a secret.
"""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path

from pydantic import SecretStr

from connector.errors import SettingsError
from connector.settings.layers import Layers, RawValue, Setting
from connector.settings.values import SECRET_CHARACTERS_MAX

HASH_KEY_CHARACTERS_MIN = 16


def parse_key(text: str) -> str:
    """Validate an API key: one word of ASCII that fits into a header (API 5.1, 5.5).

    Raises `ValueError` without any part of the key.
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


def parse_hash_key(text: str) -> str:
    """Validate the key that hashes personal fields. Raises `ValueError` without any part of it."""
    if len(parse_key(text)) < HASH_KEY_CHARACTERS_MIN:
        raise ValueError(f"is shorter than {HASH_KEY_CHARACTERS_MIN} characters")
    return text


def find_secret(layers: Layers, name: str, warnings: list[str]) -> Setting[SecretStr | None]:
    """Return a secret and its origin: a variable or a file.

    A key file that other users can open adds a sentence to `warnings`. Raises `SettingsError` if a
    secret is set twice or is not valid.
    """
    names = [each for each, rule in layers.rules.items() if name in (each, rule.place_of)]
    outer = [found for each in names if (found := layers.from_flag_or_environment(each))]
    inner = [found for each in names if (found := layers.from_project_file(each))]
    if layers.rules[name].is_identity:
        _refuse_mixed_sources(layers, outer, inner)
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
    origin = found.origin
    try:
        if found.rule.place_of:
            path = found.parse()
            origin = f"{path}, named by {found.origin}"
            text = _read_secret_file(found, path, warnings)
        else:
            text = str(found.raw)
        return Setting(SecretStr(layers.rules[name].parse(text)), origin)
    except ValueError as error:
        raise SettingsError(f"{name} {error} (from {origin})") from None


def _read_secret_file(found: RawValue, path: Path, warnings: list[str]) -> str:
    """Return the file's text without its line end.

    A file that other users can open adds a sentence to `warnings`. Raises `SettingsError`.
    """
    try:
        with path.open("rb") as file:
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
            content = file.read(SECRET_CHARACTERS_MAX + 2)
    except OSError as error:
        found.raise_invalid(f"a file that can be read: {error.strerror}")
    if os.name == "posix" and mode & 0o077:
        warnings.append(
            f"The key file {path} {OPEN_TO_OTHERS} (mode {mode:04o}): run chmod 600 on it."
        )
    # Latin-1 reads any byte; whatever cannot be part of a secret is refused by its reader.
    return content.decode("latin-1").removesuffix("\n").removesuffix("\r")


def _refuse_mixed_sources(layers: Layers, outer: list[RawValue], inner: list[RawValue]) -> None:
    """Raise `SettingsError` if the address and the key are set in different layers.

    Otherwise the key could be sent to the address of another account.
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
