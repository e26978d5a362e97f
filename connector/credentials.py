"""Secrets: from the environment, or from a file that the environment or the project file names.

Each has a form of its own. None is ever shown: not by a message, and not by `repr`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pydantic import SecretStr

from connector.alert_settings import read_password, read_webhook
from connector.errors import SettingsError
from connector.key import read_key, read_key_file
from connector.sources import FILE_ENDING, Found, Setting, Sources, read_path, refuse

HASH_KEY_CHARACTERS_MIN = 16

# Secrets that are no keys, and have a form of their own.
_OTHER_SECRETS: Mapping[str, Callable[[str], str]] = {
    "alert_webhook": read_webhook,
    "alert_email_password": read_password,
}


def read_api_key(sources: Sources, warnings: list[str]) -> Setting[SecretStr | None]:
    """The key of the API, which must belong to the address.

    What others can read is told in `warnings`. Raises `SettingsError`.
    """
    _check_pair(sources, sources.outer("api_key") or sources.outer(f"api_key{FILE_ENDING}"))
    return read_secret(sources, "api_key", warnings)


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
    file_address, file_key = sources.inner("base_url"), sources.inner("api_key_file")
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
