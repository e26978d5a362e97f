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
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, NoReturn, TypeVar

from connector.address import read_address, shown_address
from connector.errors import SettingsError, UnknownName
from connector.key import read_key, read_key_file

if TYPE_CHECKING:
    from pydantic import SecretStr

T = TypeVar("T")

ENVIRONMENT: Mapping[str, str] = {
    "account": "CONNECTOR_ACCOUNT",
    "base_url": "CONNECTOR_BASE_URL",
    "api_key": "CONNECTOR_API_KEY",
    "api_key_file": "CONNECTOR_API_KEY_FILE",
    "data_dir": "CONNECTOR_DATA_DIR",
    "monthly_requests": "CONNECTOR_MONTHLY_REQUESTS",
    "billing_day": "CONNECTOR_BILLING_DAY",
    "connections": "CONNECTOR_CONNECTIONS",
    "lateness_seconds": "CONNECTOR_LATENESS_SECONDS",
    "reserve_requests": "CONNECTOR_RESERVE_REQUESTS",
}
"""The environment variable of each setting."""

CONFIG_VARIABLE = "CONNECTOR_CONFIG"
"""The environment variable that names the project file; without it, `connector.toml`."""

CONFIG_NAME = "connector.toml"

# An address and a key belong together: neither is inherited from the top by an account's table.
_IDENTITY = ("base_url", "api_key_file")
_FLAGS = tuple(name for name in ENVIRONMENT if not name.startswith("api_key"))
_FILE_KEYS = tuple(name for name in ENVIRONMENT if name != "api_key")
_ACCOUNT_KEYS = tuple(name for name in _FILE_KEYS if name not in ("account", "data_dir"))

_SHOWN_CHARACTERS_MAX = 120
_ACCOUNT_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")


@dataclass(frozen=True, slots=True)
class Setting(Generic[T]):
    """A value and its origin: `--account`, `CONNECTOR_BASE_URL`, `connector.toml` or `default`."""

    value: T
    origin: str


@dataclass(frozen=True, slots=True)
class Connection:
    """What a client needs: the address before `/api/v1`, and the key."""

    base_url: str
    api_key: SecretStr


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that was set, or is the default.

    `account` is None for the unnamed account. `monthly_requests` is None where the plan's figure
    was not told (API 8.5). `connections` is how many requests may be under way at once,
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
            _refuse("data_dir", self.folder, allowed, self.data_dir.origin)
        if not self.folder.is_dir():
            _refuse("data_dir", self.folder, "a folder, not a file", self.data_dir.origin)
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


@dataclass(frozen=True, slots=True)
class _Found:
    """A raw value, its origin, and the folder that a relative path in it starts from."""

    raw: object
    origin: str
    folder: Path


@dataclass(slots=True)
class _Sources:
    """Where values are looked for, in order of precedence."""

    flags: Mapping[str, object]
    environ: Mapping[str, str]
    cwd: Path
    config: Path | None = None
    top: Mapping[str, Any] = field(default_factory=dict)
    tables: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    account: str | None = None

    @property
    def config_name(self) -> str:
        """The project file as messages name it."""
        if self.config is None:
            return CONFIG_NAME
        inside = self.config.is_relative_to(self.cwd)
        return str(self.config.relative_to(self.cwd) if inside else self.config)

    def outer(self, name: str) -> _Found | None:
        """The value that a flag or the environment gives."""
        if self.flags.get(name) is not None:
            return _Found(self.flags[name], f"--{name.replace('_', '-')}", self.cwd)
        variable = ENVIRONMENT[name]
        if variable not in self.environ:
            return None
        if not self.environ[variable].strip():
            raise SettingsError(
                f"{name} is empty (from {variable})",
                action=f"Give {variable} a value, or unset it.",
            )
        return _Found(self.environ[variable], variable, self.cwd)

    def inner(self, name: str) -> _Found | None:
        """The value that the project file gives."""
        if self.config is None:
            return None
        folder = self.config.parent
        table = self.tables.get(self.account or "", {})
        if name in table:
            origin = f"{self.config_name} [accounts.{self.account}]"
            return _Found(table[name], origin, folder)
        if name in self.top and (self.account is None or name not in _IDENTITY):
            return _Found(self.top[name], self.config_name, folder)
        return None

    def pick(self, name: str, read: Callable[[_Found], T], default: T) -> Setting[T]:
        """The setting, read by `read`, whose `ValueError` says what is allowed."""
        found = self.outer(name) or self.inner(name)
        if found is None:
            return Setting(default, "default")
        try:
            return Setting(read(found), found.origin)
        except ValueError as error:
            _refuse(name, found.raw, str(error), found.origin)


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
        if name not in _FLAGS:
            raise UnknownName("setting that a flag may give", name, _FLAGS)
    sources = _Sources(flags, environ, cwd)
    _read_config(sources)
    account = sources.pick("account", _account, None)
    if account.value is not None and sources.tables and account.value not in sources.tables:
        raise UnknownName(
            f"configured account of {sources.config_name} ({account.origin})",
            account.value,
            sources.tables,
        )
    sources.account = account.value
    warnings = list(_misspelt(environ))
    return Settings(
        account=account,
        base_url=sources.pick("base_url", lambda f: read_address(f.raw), None),
        api_key=_api_key(sources, warnings),
        data_dir=sources.pick("data_dir", lambda f: _path(f, environ), cwd / "data"),
        monthly_requests=sources.pick("monthly_requests", _whole(1, 10**9), None),
        billing_day=sources.pick("billing_day", _whole(1, 31), 1),
        connections=sources.pick("connections", _whole(1, 32), 4),
        lateness_seconds=sources.pick("lateness_seconds", _whole(0, 86_400), 120),
        reserve_requests=sources.pick("reserve_requests", _whole(0, 10**6), 0),
        accounts=tuple(sources.tables),
        warnings=tuple(warnings),
    )


def _refuse(name: str, received: object, allowed: str, origin: str) -> NoReturn:
    if name == "api_key_file":
        # Not shown: a key that was put there by mistake would be.
        raise SettingsError(f"{name} (from {origin}) must be {allowed}")
    shown = repr(str(received) if isinstance(received, Path) else received)
    if name == "base_url":
        shown = shown_address(str(received))
    if len(shown) > _SHOWN_CHARACTERS_MAX:
        shown = f"{shown[:_SHOWN_CHARACTERS_MAX]}…"
    raise SettingsError(f"{name} is {shown} (from {origin}): it must be {allowed}")


def _read_config(sources: _Sources) -> None:
    """Read the project file into `sources`, refusing keys that mean nothing."""
    named = sources.environ.get(CONFIG_VARIABLE)
    path = sources.cwd / (named or CONFIG_NAME)
    if named is None and not path.exists():
        return
    sources.config = path
    where = sources.config_name
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        origin = f" (from {CONFIG_VARIABLE})" if named is not None else ""
        raise SettingsError(f"{where}{origin} cannot be read: {error.strerror}") from None
    except ValueError as error:
        # The parser names the line and the column and never quotes what stands there.
        reason = error if isinstance(error, tomllib.TOMLDecodeError) else "it is not UTF-8"
        raise SettingsError(f"{where} is not valid TOML: {reason}") from None
    tables = content.pop("accounts", {})
    if not isinstance(tables, dict) or not all(isinstance(t, dict) for t in tables.values()):
        raise SettingsError(f"accounts in {where} must be tables such as [accounts.acme]")
    _check_keys(content, (*_FILE_KEYS, "accounts"), where)
    for name, table in tables.items():
        if not _ACCOUNT_NAME.fullmatch(name):
            _refuse("account", name, _ACCOUNT_ALLOWED, where)
        _check_keys(table, _ACCOUNT_KEYS, f"{where} [accounts.{name}]")
    sources.top, sources.tables = content, tables


def _check_keys(table: Mapping[str, Any], allowed: tuple[str, ...], where: str) -> None:
    if "api_key" in table:
        raise SettingsError(
            f"{where} holds an api_key, and a project file is too easily shared or committed",
            action="Move the key into a file of its own (chmod 600) and name it in api_key_file;"
            " if the project file was ever shared, generate a new key.",
        )
    for key in table:
        if key not in allowed:
            raise UnknownName(f"setting of {where}", key, allowed)


_ACCOUNT_ALLOWED = "at most 64 of a-z, 0-9, '-' and '_', beginning with a letter or a digit"


def _account(found: _Found) -> str:
    if not isinstance(found.raw, str) or not _ACCOUNT_NAME.fullmatch(found.raw):
        raise ValueError(_ACCOUNT_ALLOWED)
    return found.raw


def _whole(least: int, most: int) -> Callable[[_Found], int]:
    def read(found: _Found) -> int:
        text = str(found.raw).strip()
        if isinstance(found.raw, bool | float) or not re.fullmatch(r"[0-9]{1,12}", text):
            raise ValueError(f"a whole number from {least} to {most}")
        if not least <= int(text) <= most:
            raise ValueError(f"a whole number from {least} to {most}")
        return int(text)

    return read


def _path(found: _Found, environ: Mapping[str, str]) -> Path:
    if not isinstance(found.raw, str | Path) or not str(found.raw).strip():
        raise ValueError("a path")
    text = str(found.raw)
    if text.startswith("~/") and "HOME" in environ:
        text = environ["HOME"] + text[1:]
    return found.folder / text


def _api_key(sources: _Sources, warnings: list[str]) -> Setting[SecretStr | None]:
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
        _refuse("api_key_file", found.raw, str(error), found.origin)
    origin = f"{path}, named by {found.origin}"
    try:
        text, warning = read_key_file(path)
    except OSError as error:
        _refuse("api_key_file", path, f"a file that can be read: {error.strerror}", found.origin)
    warnings += [warning] if warning else []
    return Setting(_fit(lambda: read_key(text), origin), origin)


def _fit(read: Callable[[], SecretStr], origin: str) -> SecretStr:
    try:
        return read()
    except ValueError as error:
        raise SettingsError(f"api_key {error} (from {origin})") from None


def _check_pair(sources: _Sources, key: _Found | None) -> None:
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


def _misspelt(environ: Mapping[str, str]) -> Iterator[str]:
    """A sentence on each variable that looks like a setting and is none."""
    known = (*ENVIRONMENT.values(), CONFIG_VARIABLE)
    for name in sorted(environ):
        near = get_close_matches(name, known, n=1, cutoff=0.85)
        if name.startswith("CONNECTOR_") and name not in known and near:
            yield f"{name} means nothing here; is {near[0]} meant?"
