"""Settings: the account, its address and key, the data folder and the limits, each with its origin.

A value is taken from the first of: a flag, the environment, `connector.toml`, the default. The
project file has keys at its top and, for several accounts, tables:

    monthly_requests = 50000

    [accounts.acme]
    base_url = "https://acme.example"
    api_key_file = "acme.key"

An account's table inherits limits from the top, and never an address or a key. Nothing here
reads a clock, a `.env` file, the process's environment (it is an argument) or the network, and
no key is ever shown: not by a message, and not by `repr`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from connector.address import read_address
from connector.errors import SettingsError, UnknownName
from connector.key import read_key, read_key_file
from connector.sources import (
    ACCOUNT_ALLOWED,
    ACCOUNT_NAME,
    CONFIG_NAME,
    CONFIG_VARIABLE,
    ENVIRONMENT,
    FLAGS,
    Found,
    Setting,
    Sources,
    misspelt,
    read_config,
    refuse,
)

if TYPE_CHECKING:
    from pydantic import SecretStr

__all__ = ["CONFIG_VARIABLE", "ENVIRONMENT", "Connection", "Setting", "Settings", "load_settings"]

RESERVE_SHARE = 20
"""The part of the month's requests that is left to people unless it is set: a twentieth."""


@dataclass(frozen=True, slots=True)
class Connection:
    """What a client needs: the address before `/api/v1`, and the key."""

    base_url: str
    api_key: SecretStr


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that was set, or is the default.

    `account` is None for the unnamed account. `monthly_requests` is None where the plan's figure
    was not told (API 8.5); `monthly_reserve_requests` is None where a twentieth of it is meant.
    `connections` is how many requests may be under way at once,
    `lateness_seconds` how late a write may become visible, `reserve_requests` how many requests
    of each minute's window are left to people. `accounts` are the names that the project file
    has tables for. `warnings` are sentences to show once.
    """

    account: Setting[str | None]
    base_url: Setting[str | None]
    api_key: Setting[SecretStr | None]
    data_dir: Setting[Path]
    monthly_requests: Setting[int | None]
    billing_day: Setting[int]
    monthly_reserve_requests: Setting[int | None]
    connections: Setting[int]
    lateness_seconds: Setting[int]
    reserve_requests: Setting[int]
    accounts: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def folder(self) -> Path:
        """The account's folder: the data folder itself for the unnamed account, else one in it."""
        name = self.account.value
        return self.data_dir.value if name is None else self.data_dir.value / name

    @property
    def monthly_reserve(self) -> int:
        """How many of the month's requests are left to people; 0 where the month has no limit."""
        allowance = self.monthly_requests.value
        if allowance is None:
            return 0
        told = self.monthly_reserve_requests.value
        return allowance // RESERVE_SHARE if told is None else told

    def make_folder(self) -> Path:
        """Make the account's folder, readable by its owner alone, and return it.

        A folder that exists is left as it is. Raises `SettingsError`.
        """
        try:
            missing = [f for f in (self.folder, *self.folder.parents) if not f.exists()]
            for each in reversed(missing):
                each.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            allowed = f"a folder that can be made: {error.strerror}"
            refuse("data_dir", self.folder, allowed, self.data_dir.origin)
        if not self.folder.is_dir():
            refuse("data_dir", self.folder, "a folder, not a file", self.data_dir.origin)
        return self.folder

    def connection(self) -> Connection:
        """The address and the key. Raises `SettingsError` where either is not set."""
        if self.base_url.value is None:
            self._miss("base_url", ENVIRONMENT["base_url"], f"base_url in {CONFIG_NAME}")
        if self.api_key.value is None:
            names = f"{ENVIRONMENT['api_key']} or {ENVIRONMENT['api_key_file']}"
            self._miss("api_key", names, f"api_key_file in {CONFIG_NAME}")
        return Connection(self.base_url.value, self.api_key.value)

    def _miss(self, name: str, variable: str, key: str) -> NoReturn:
        names = "" if self.account.value else ", ".join(self.accounts)
        accounts = f", or choose --account: {names}" if names else ""
        raise SettingsError(f"{name} is not set", action=f"Set {variable}, or {key}{accounts}.")

    def rows(self) -> Iterator[tuple[str, str, str]]:
        """Each setting's name, its value as it may be shown, and its origin."""
        for name in ENVIRONMENT:
            if name == "api_key_file":
                continue
            setting: Setting[Any] = getattr(self, name)
            shown = "not set" if setting.value is None else str(setting.value)
            if name == "api_key" and setting.value is not None:
                shown = "set"
            yield name, shown, setting.origin


def load_settings(flags: Mapping[str, object], environ: Mapping[str, str], cwd: Path) -> Settings:
    """Read the settings from flags (by the setting's name; None: not given), the environment and
    the project file in `cwd` or where `CONNECTOR_CONFIG` says.

    Raises `SettingsError` or `UnknownName`, both of which end a command with exit status 2.
    """
    for name in flags:
        if name.startswith("api_key"):
            raise SettingsError(
                "a key is never taken from a flag, since process lists and shell histories show it",
                action=f"Set {ENVIRONMENT['api_key']} or {ENVIRONMENT['api_key_file']}.",
            )
        if name not in FLAGS:
            raise UnknownName("setting that a flag may give", name, FLAGS)
    sources = Sources(flags, environ, cwd)
    read_config(sources)
    account = sources.pick("account", _account, None)
    if account.value is not None and sources.tables and account.value not in sources.tables:
        raise UnknownName(
            f"configured account of {sources.config_name} ({account.origin})",
            account.value,
            sources.tables,
        )
    sources.account = account.value
    warnings = list(misspelt(environ))
    settings = Settings(
        account=account,
        base_url=sources.pick("base_url", lambda f: read_address(f.raw), None),
        api_key=_api_key(sources, warnings),
        data_dir=sources.pick("data_dir", lambda f: _path(f, environ), cwd / "data"),
        monthly_requests=sources.pick("monthly_requests", _whole(1, 10**9), None),
        billing_day=sources.pick("billing_day", _whole(1, 31), 1),
        monthly_reserve_requests=sources.pick(
            "monthly_reserve_requests", _whole(0, 10**9 - 1), None
        ),
        connections=sources.pick("connections", _whole(1, 32), 4),
        lateness_seconds=sources.pick("lateness_seconds", _whole(0, 86_400), 120),
        reserve_requests=sources.pick("reserve_requests", _whole(0, 10**6), 0),
        accounts=tuple(sources.tables),
        warnings=tuple(warnings),
    )
    _check_reserve(settings)
    return settings


def _check_reserve(settings: Settings) -> None:
    """Refuse a reserve that leaves nothing to pull with."""
    allowance, reserve = settings.monthly_requests, settings.monthly_reserve_requests
    if allowance.value is not None and settings.monthly_reserve >= allowance.value:
        allowed = f"less than monthly_requests, {allowance.value} (from {allowance.origin})"
        refuse("monthly_reserve_requests", reserve.value, allowed, reserve.origin)


def _account(found: Found) -> str:
    if not isinstance(found.raw, str) or not ACCOUNT_NAME.fullmatch(found.raw):
        raise ValueError(ACCOUNT_ALLOWED)
    return found.raw


def _whole(least: int, most: int) -> Callable[[Found], int]:
    def read(found: Found) -> int:
        text = str(found.raw).strip()
        if isinstance(found.raw, bool | float) or not re.fullmatch(r"[0-9]{1,12}", text):
            raise ValueError(f"a whole number from {least} to {most}")
        if not least <= int(text) <= most:
            raise ValueError(f"a whole number from {least} to {most}")
        return int(text)

    return read


def _path(found: Found, environ: Mapping[str, str]) -> Path:
    if not isinstance(found.raw, str | Path) or not str(found.raw).strip():
        raise ValueError("a path")
    text = str(found.raw)
    if text.startswith("~/") and "HOME" in environ:
        text = environ["HOME"] + text[1:]
    return found.folder / text


def _api_key(sources: Sources, warnings: list[str]) -> Setting[SecretStr | None]:
    """The key from the environment, or from a file that the environment or the project names."""
    plain, named = sources.outer("api_key"), sources.outer("api_key_file")
    if plain and named:
        raise SettingsError(
            f"both {plain.origin} and {named.origin} are set", action="Unset one of the two."
        )
    _check_pair(sources, plain or named)
    found = plain or named or sources.inner("api_key_file")
    if found is None:
        return Setting(None, "default")
    if found is plain:
        return Setting(_fit(lambda: read_key(str(found.raw)), found.origin), found.origin)
    try:
        path = _path(found, sources.environ)
    except ValueError as error:
        refuse("api_key_file", found.raw, str(error), found.origin)
    origin = f"{path}, named by {found.origin}"
    try:
        text, warning = read_key_file(path)
    except OSError as error:
        refuse("api_key_file", path, f"a file that can be read: {error.strerror}", found.origin)
    warnings += [warning] if warning else []
    return Setting(_fit(lambda: read_key(text), origin), origin)


def _fit(read: Callable[[], SecretStr], origin: str) -> SecretStr:
    try:
        return read()
    except ValueError as error:
        raise SettingsError(f"api_key {error} (from {origin})") from None


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
