"""Secrets: from the environment, or from a file that the environment or the project file names;
the API's key from the system's keyring as well.

Each has a form of its own. None is ever shown: not by a message, and not by `repr`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal, get_args
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import SecretStr

from connector.errors import SettingsError
from connector.settings.connection import (
    KEYRING_ALLOWED,
    is_loopback,
    read_address,
    read_key,
    read_key_file,
    read_keyring,
    read_proxy,
)
from connector.settings.layers import (
    ENVIRONMENT,
    FILE_ENDING,
    KEYRING_ENDING,
    Found,
    Setting,
    Sources,
    one_of,
    raw,
    read_path,
    refuse,
)
from connector.system.log import Form

# -- Alert settings --------------------------------------------------------------------------------
# How the settings on alerts are read: an age, kinds, an address to post to, a mail server.
#
# Values alone: nothing is sent, opened or looked up here, and no text of an error holds any of a
# secret.


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


# -- Schedule settings -----------------------------------------------------------------------------
# How the settings on schedules are read: when something happens by itself, and by which clock.
#
# Values alone: nothing is scheduled or looked up here but the names of time zones.


OFF: Literal["off"] = "off"
"""In the place of a time: never by itself."""

_CRON_ALLOWED = (
    "five numbers or rules in cron's manner, for minute, hour, day of the month, month and day of"
    " the week, such as '15 2 * * *' for 02:15 every day; or 'off'"
)
_RANGES = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 7))
"""The least and the greatest number of each field, in their order; Sunday is 0 as well as 7."""

_RULE = re.compile(r"(?:\*|([0-9]{1,2})(?:-([0-9]{1,2}))?)(?:/([0-9]{1,2}))?")
_ZONE = re.compile(r"[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+)*")
_ZONE_ALLOWED = "the name of a time zone such as UTC or Europe/Berlin"
# The longest that each month can be: a day that none of the chosen months has never comes.
_LENGTHS = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def read_cron(raw: object) -> str:
    """When something happens, as cron writes it, with single spaces; or `off`.

    Raises `ValueError`, which says what is allowed. Names of months and days are not taken, nor
    is a day that never comes.
    """
    text = " ".join(raw.split()) if isinstance(raw, str) else ""
    if text == OFF:
        return OFF
    fields = text.split(" ")
    if len(fields) != len(_RANGES):
        raise ValueError(_CRON_ALLOWED)
    _, _, days, months, _ = map(_numbers, fields, _RANGES)
    if all(min(days) > _LENGTHS[month - 1] for month in months):
        raise ValueError(f"{_CRON_ALLOWED}; no chosen month has such a day")
    return text


def _numbers(field: str, allowed: tuple[int, int]) -> frozenset[int]:
    """The numbers that a field of cron chooses. Raises `ValueError`."""
    least, most = allowed
    chosen: set[int] = set()
    for rule in field.split(","):
        match = _RULE.fullmatch(rule)
        if match is None:
            raise ValueError(_CRON_ALLOWED)
        first, last, step = (int(each) if each is not None else None for each in match.groups())
        if first is None:
            first, last = least, most
        elif last is None:
            # 5/10 is from 5 on, every tenth; 5 alone is 5.
            last = first if step is None else most
        if not least <= first <= last <= most or step == 0:
            raise ValueError(_CRON_ALLOWED)
        chosen |= set(range(first, last + 1, step or 1))
    return frozenset(chosen)


def read_zone(raw: object) -> str:
    """The name of a time zone. Raises `ValueError`, which says what is allowed."""
    text = raw.strip() if isinstance(raw, str) else ""
    try:
        if not _ZONE.fullmatch(text):
            raise ValueError(_ZONE_ALLOWED)
        ZoneInfo(text)
    except (ZoneInfoNotFoundError, OSError):
        raise ValueError(_ZONE_ALLOWED) from None
    return text


# -- Lakehouse settings ----------------------------------------------------------------------------
# How the settings on the shared lakehouse are read: its catalog, and where its data is.
#
# Values alone: nothing is opened or looked up here, and no text of an error holds any of a secret.


PushJournal = Literal["folder", "lakehouse"]
"""Where a create is claimed before it is sent."""

OBJECT_STORAGE = "s3://"
"""What an address of object storage begins with."""

CATALOG_CHARACTERS_MAX = 4096

_CATALOG = re.compile(r"postgres(ql)?://[\x21-\x7e]+|\w+ *= *[\x20-\x7e]*")
_BUCKET = re.compile(r"s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/[A-Za-z0-9!_.*'()=-]+)*/?")


def read_catalog(text: str) -> str:
    """A connection string of PostgreSQL in either of its forms. Raises `ValueError`, whose text
    holds nothing of it.
    """
    if len(text) > CATALOG_CHARACTERS_MAX or not _CATALOG.fullmatch(text.strip()):
        raise ValueError(
            "must be a connection string of PostgreSQL, such as postgresql://USER:PASSWORD@HOST/"
            "DATABASE or host=HOST dbname=DATABASE user=USER password=PASSWORD"
        )
    return text.strip()


def read_data(raw: object, folder: Path) -> str:
    """A folder, which starts from `folder` where it is relative, or an address in object storage,
    without a slash at its end. Raises `ValueError`.
    """
    text = str(raw).strip()
    if not isinstance(raw, str | Path) or not text:
        raise ValueError("a folder, or an address such as s3://bucket/lake")
    if "://" not in text:
        return str((folder / text).absolute())
    if not _BUCKET.fullmatch(text):
        raise ValueError("a folder, or an address such as s3://bucket/lake")
    return text.rstrip("/")


def check_lakehouse(
    catalog: Setting[SecretStr | None], data: Setting[str | None], data_dir: Setting[Path]
) -> None:
    """Refuse a lakehouse that is half described, and one whose files would lie among those of the
    accounts, which are searched and erased by other rules. Raises `SettingsError`.
    """
    if (catalog.value is None) != (data.value is None):
        given, name = (catalog, "lakehouse") if catalog.value else (data, "lakehouse_data")
        missing = "lakehouse_data" if catalog.value else f"lakehouse{FILE_ENDING}"
        raise SettingsError(
            f"{name} (from {given.origin}) cannot do without the other half of what a lakehouse"
            " needs",
            action=f"Set {ENVIRONMENT[missing]} as well.",
        )
    if data.value and Path(data.value).is_relative_to(data_dir.value.absolute()):
        refuse("lakehouse_data", data.value, "outside data_dir", data.origin)


# -- Credentials -----------------------------------------------------------------------------------
#


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
