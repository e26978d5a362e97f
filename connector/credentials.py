"""Secrets: from the environment, or from a file that the environment or the project file names;
the API's key from the system's keyring as well.

Each has a form of its own. None is ever shown: not by a message, and not by `repr`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from connector.address import read_address, read_proxy
from connector.alert_settings import read_password, read_webhook
from connector.errors import SettingsError
from connector.key import KEYRING_ALLOWED, read_key, read_key_file, read_keyring
from connector.lakehouse_settings import read_catalog
from connector.log import Form
from connector.reading import one_of, raw
from connector.sources import (
    ENVIRONMENT,
    FILE_ENDING,
    KEYRING_ENDING,
    Found,
    Setting,
    Sources,
    read_path,
    refuse,
)

HASH_KEY_CHARACTERS_MIN = 16

_KEYRING = f"api_key{KEYRING_ENDING}"
_PLACES = (f"api_key{FILE_ENDING}", _KEYRING)

# Secrets that are no keys, and have a form of their own.
_OTHER_SECRETS: Mapping[str, Callable[[str], str]] = {
    "alert_webhook": read_webhook,
    "alert_email_password": read_password,
    "lakehouse": read_catalog,
}


@dataclass(frozen=True, slots=True)
class Connection:
    """What a client needs: the address before `/api/v1`, and the key; the file of an authority
    that is trusted besides the usual ones, and a proxy, where there are any.
    """

    base_url: str
    api_key: SecretStr
    ca_file: Path | None = None
    proxy: str | None = None

    def route(self) -> dict[str, Any]:
        """How the address is reached, as a client takes it; empty where nothing is said of it."""
        given = {"ca_file": self.ca_file, "proxy": self.proxy}
        return {name: value for name, value in given.items() if value is not None}


def read_api_key(sources: Sources, warnings: list[str]) -> Setting[SecretStr | None]:
    """The key of the API, which must belong to the address.

    What others can read is told in `warnings`. Raises `SettingsError`.
    """
    outer = [sources.outer(name) for name in ("api_key", *_PLACES)]
    given = [each for each in outer if each is not None]
    _check_pair(sources, given[0] if given else None)
    if len(given) > 1:
        raise SettingsError(
            f"both {given[0].origin} and {given[1].origin} are set", action="Unset one of the two."
        )
    kept = sources.outer(_KEYRING) if given else sources.inner(_KEYRING)
    if kept is None:
        return read_secret(sources, "api_key", warnings)
    if not given and sources.inner(f"api_key{FILE_ENDING}"):
        raise SettingsError(
            f"both api_key_file and {_KEYRING} are set (from {kept.origin})",
            action="Take one of the two out.",
        )
    if not isinstance(kept.raw, str):
        refuse(_KEYRING, kept.raw, KEYRING_ALLOWED, kept.origin)
    try:
        return Setting(read_key(read_keyring(kept.raw)), f"the keyring, named by {kept.origin}")
    except ValueError as error:
        raise SettingsError(
            f"api_key {error} (from {kept.origin})",
            action=f"Put the key there, or set {ENVIRONMENT['api_key_file']} instead.",
        ) from None


def read_secret(sources: Sources, name: str, warnings: list[str]) -> Setting[SecretStr | None]:
    """A secret from the environment, or from a file that the environment or the project names.

    What others can read is told in `warnings`. Raises `SettingsError`, which shows nothing of it.
    """
    file_name = f"{name}{FILE_ENDING}"
    plain, named = sources.outer(name), sources.outer(file_name)
    if plain and named:
        raise SettingsError(
            f"both {plain.origin} and {named.origin} are set", action="Unset one of the two."
        )
    found = plain or named or sources.inner(file_name)
    if found is None:
        return Setting(None, "default")
    if found is plain:
        return Setting(_fit(name, str(found.raw), found.origin), found.origin)
    try:
        path = read_path(found, sources.environ)
    except ValueError as error:
        refuse(file_name, found.raw, str(error), found.origin)
    origin = f"{path}, named by {found.origin}"
    try:
        text, warning = read_key_file(path)
    except OSError as error:
        refuse(file_name, path, f"a file that can be read: {error.strerror}", found.origin)
    warnings += [warning] if warning else []
    return Setting(_fit(name, text, origin), origin)


def _fit(name: str, text: str, origin: str) -> SecretStr:
    try:
        if name in _OTHER_SECRETS:
            return SecretStr(_OTHER_SECRETS[name](text))
        key = read_key(text)
        if name == "publish_hash_key" and len(text) < HASH_KEY_CHARACTERS_MIN:
            raise ValueError(
                f"is shorter than {HASH_KEY_CHARACTERS_MIN} characters, and could be guessed"
            )
    except ValueError as error:
        raise SettingsError(f"{name} {error} (from {origin})") from None
    return key


def _check_pair(sources: Sources, key: Found | None) -> None:
    """Refuse an address and a key that were not set for each other: a key must never be sent to
    another account's address.
    """
    address = sources.outer("base_url")
    file_address = sources.inner("base_url")
    file_key = sources.inner(f"api_key{FILE_ENDING}") or sources.inner(_KEYRING)
    if not file_address or not file_key or bool(address) == bool(key):
        return
    set_outside, kept, other = (
        (address, file_key, "the key") if address else (key, file_address, "the address")
    )
    assert set_outside is not None
    raise SettingsError(
        f"{set_outside.origin} is set, but {other} would still come from {kept.origin}",
        action="Set the address and the key in the same place, so that no key is sent to an"
        " address that it was not made for.",
    )


def read_ends(sources: Sources, warnings: list[str]) -> dict[str, Any]:
    """The settings on where the account is, at both ends, and how it is talked of. Raises
    `SettingsError`.
    """
    environ, cwd = sources.environ, sources.cwd
    return {
        "base_url": sources.pick("base_url", raw(read_address), None),
        "api_key": read_api_key(sources, warnings),
        "ca_file": sources.pick("ca_file", lambda f: read_path(f, environ), None),
        "proxy": sources.pick("proxy", raw(read_proxy), None),
        "data_dir": sources.pick("data_dir", lambda f: read_path(f, environ), cwd / "data"),
        "log": sources.pick("log", one_of(Form), "text"),
    }
