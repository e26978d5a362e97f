"""Where settings come from: flags, the environment, the project file, in that order.

Here a value is looked for and its origin noted. What a setting means and which values it may have
is `settings.py`. No key is ever shown.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Generic, NoReturn, TypeVar, get_args

from connector.errors import SettingsError, UnknownName
from connector.settings.connection import shown_address

T = TypeVar("T")

ENVIRONMENT: Mapping[str, str] = {
    "account": "CONNECTOR_ACCOUNT",
    "base_url": "CONNECTOR_BASE_URL",
    "api_key": "CONNECTOR_API_KEY",
    "api_key_file": "CONNECTOR_API_KEY_FILE",
    "api_key_keyring": "CONNECTOR_API_KEY_KEYRING",
    "ca_file": "CONNECTOR_CA_FILE",
    "proxy": "CONNECTOR_PROXY",
    "data_dir": "CONNECTOR_DATA_DIR",
    "log": "CONNECTOR_LOG",
    "monthly_requests": "CONNECTOR_MONTHLY_REQUESTS",
    "billing_day": "CONNECTOR_BILLING_DAY",
    "monthly_reserve_requests": "CONNECTOR_MONTHLY_RESERVE_REQUESTS",
    "connections": "CONNECTOR_CONNECTIONS",
    "lateness_seconds": "CONNECTOR_LATENESS_SECONDS",
    "reserve_requests": "CONNECTOR_RESERVE_REQUESTS",
    "models": "CONNECTOR_MODELS",
    "publish_personal": "CONNECTOR_PUBLISH_PERSONAL",
    "publish_without": "CONNECTOR_PUBLISH_WITHOUT",
    "publish_hash_key": "CONNECTOR_PUBLISH_HASH_KEY",
    "publish_hash_key_file": "CONNECTOR_PUBLISH_HASH_KEY_FILE",
    "alert_webhook": "CONNECTOR_ALERT_WEBHOOK",
    "alert_webhook_file": "CONNECTOR_ALERT_WEBHOOK_FILE",
    "alert_webhook_style": "CONNECTOR_ALERT_WEBHOOK_STYLE",
    "alert_email_to": "CONNECTOR_ALERT_EMAIL_TO",
    "alert_email_from": "CONNECTOR_ALERT_EMAIL_FROM",
    "alert_email_host": "CONNECTOR_ALERT_EMAIL_HOST",
    "alert_email_port": "CONNECTOR_ALERT_EMAIL_PORT",
    "alert_email_security": "CONNECTOR_ALERT_EMAIL_SECURITY",
    "alert_email_user": "CONNECTOR_ALERT_EMAIL_USER",
    "alert_email_password": "CONNECTOR_ALERT_EMAIL_PASSWORD",
    "alert_email_password_file": "CONNECTOR_ALERT_EMAIL_PASSWORD_FILE",
    "alert_max_age": "CONNECTOR_ALERT_MAX_AGE",
    "alert_kinds": "CONNECTOR_ALERT_KINDS",
    "nightly_cron": "CONNECTOR_NIGHTLY_CRON",
    "intraday_cron": "CONNECTOR_INTRADAY_CRON",
    "scrub_cron": "CONNECTOR_SCRUB_CRON",
    "scrub_requests": "CONNECTOR_SCRUB_REQUESTS",
    "time_zone": "CONNECTOR_TIME_ZONE",
    "lakehouse": "CONNECTOR_LAKEHOUSE",
    "lakehouse_file": "CONNECTOR_LAKEHOUSE_FILE",
    "lakehouse_data": "CONNECTOR_LAKEHOUSE_DATA",
    "lakehouse_keep_days": "CONNECTOR_LAKEHOUSE_KEEP_DAYS",
    "push_journal": "CONNECTOR_PUSH_JOURNAL",
}
"""The environment variable of each setting."""

CONFIG_VARIABLE = "CONNECTOR_CONFIG"
"""The environment variable that names the project file; without it, `connector.toml`."""

CONFIG_NAME = "connector.toml"

# An address and a key belong together: neither is inherited from the top by an account's table.
_IDENTITY = ("base_url", "api_key_file", "api_key_keyring")
SECRETS = ("api_key", "publish_hash_key", "alert_webhook", "alert_email_password", "lakehouse")
"""Settings that are never shown, and never taken from a flag or from the project file itself."""

PERSONAL = ("alert_email_to", "alert_email_from", "alert_email_user")
"""Settings that name a person, and are never shown: they may stand anywhere."""

FILE_ENDING = "_file"
"""What the name of a secret's file ends in, as a setting."""

KEYRING_ENDING = "_keyring"
"""What the name of a secret's place in the system's keyring ends in, as a setting."""

_SECRET_FILES = (*(f"{name}{FILE_ENDING}" for name in SECRETS), f"api_key{KEYRING_ENDING}")
FLAGS = tuple(name for name in ENVIRONMENT if name not in (*SECRETS, *_SECRET_FILES))
_FILE_KEYS = tuple(name for name in ENVIRONMENT if name not in SECRETS)
_ACCOUNT_KEYS = tuple(name for name in _FILE_KEYS if name not in ("account", "data_dir"))

RETENTION = "retention"
"""The table of rules that say after what time people are erased, at the top or of an account."""

INBOX_FOLDER, RECEIPTS_FOLDER, SEEDS_FOLDER = "inbox", "receipts", "seeds"
DAGSTER_FOLDER = "dagster"
ASIDE, WAITED = "replaced-", "waited-"

OWN_FOLDERS: Mapping[str, str] = {
    INBOX_FOLDER: "the files that wait to be pushed",
    RECEIPTS_FOLDER: "the receipts of erasures",
    SEEDS_FOLDER: "the tables that people fill in for the models",
    DAGSTER_FOLDER: "Dagster's state",
    "backups": "backups",
}
"""Folders that the connector makes in the data folder or that are meant for it there, each with its
contents. An account of the same name would have its databases in that folder.
"""

OWN_PREFIXES: Mapping[str, str] = {
    ASIDE: "what a restore replaced",
    WAITED: "files that waited to be pushed before a restore",
}
"""Beginnings of such folders' names that a time stamp follows."""

_TABLES_ALLOWED = "must be tables such as [accounts.acme]"
_SHOWN_CHARACTERS_MAX = 120
_ACCOUNT_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")


@dataclass(frozen=True, slots=True)
class Setting(Generic[T]):
    """A value and its origin: `--account`, `CONNECTOR_BASE_URL`, `connector.toml` or `default`."""

    value: T
    origin: str


@dataclass(frozen=True, slots=True)
class Found:
    """A raw value, its origin, and the folder that a relative path in it starts from."""

    raw: object
    origin: str
    folder: Path


@dataclass(slots=True)
class Sources:
    """Where values are looked for, in order of precedence."""

    flags: Mapping[str, object]
    environ: Mapping[str, str]
    cwd: Path
    config: Path | None = None
    top: Mapping[str, Any] = field(default_factory=dict)
    tables: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    broken: Mapping[str, SettingsError | UnknownName] = field(default_factory=dict)
    account: str | None = None

    @property
    def config_name(self) -> str:
        """The project file as messages name it."""
        if self.config is None:
            return CONFIG_NAME
        inside = self.config.is_relative_to(self.cwd)
        return str(self.config.relative_to(self.cwd) if inside else self.config)

    def outer(self, name: str) -> Found | None:
        """The value that a flag or the environment gives."""
        if self.flags.get(name) is not None:
            return Found(self.flags[name], f"--{name.replace('_', '-')}", self.cwd)
        variable = ENVIRONMENT[name]
        if variable not in self.environ:
            return None
        if not self.environ[variable].strip():
            raise SettingsError(
                f"{name} is empty (from {variable})",
                action=f"Give {variable} a value, or unset it.",
            )
        return Found(self.environ[variable], variable, self.cwd)

    def inner(self, name: str) -> Found | None:
        """The value that the project file gives."""
        if self.config is None:
            return None
        folder = self.config.parent
        table = self.tables.get(self.account or "", {})
        if name in table:
            origin = f"{self.config_name} [accounts.{self.account}]"
            return Found(table[name], origin, folder)
        if name in self.top and (self.account is None or name not in _IDENTITY):
            return Found(self.top[name], self.config_name, folder)
        return None

    def pick(self, name: str, read: Callable[[Found], T], default: T) -> Setting[T]:
        """The setting, read by `read`, whose `ValueError` says what is allowed."""
        found = self.outer(name) or self.inner(name)
        if found is None:
            return Setting(default, "default")
        try:
            return Setting(read(found), found.origin)
        except ValueError as error:
            refuse(name, found.raw, str(error), found.origin)


def refuse(name: str, received: object, allowed: str, origin: str) -> NoReturn:
    """Raise `SettingsError`: what was received, from where, and what is allowed."""
    if name in (*_SECRET_FILES, *PERSONAL):
        # Not shown: a key that was put there by mistake would be.
        raise SettingsError(f"{name} (from {origin}) must be {allowed}")
    shown = repr(str(received) if isinstance(received, Path) else received)
    if name == "base_url":
        shown = shown_address(str(received))
    if len(shown) > _SHOWN_CHARACTERS_MAX:
        shown = f"{shown[:_SHOWN_CHARACTERS_MAX]}…"
    raise SettingsError(f"{name} is {shown} (from {origin}): it must be {allowed}")


def read_account(name: object) -> str:
    """An account's name, which is its folder's as well. Raises `ValueError` where it is none, or is
    one of the connector's own folders.
    """
    if not isinstance(name, str) or not _ACCOUNT_NAME.fullmatch(name):
        raise ValueError("at most 64 of a-z, 0-9, '-' and '_', beginning with a letter or a digit")
    contents = OWN_FOLDERS.get(name)
    if contents is None:
        contents = next((OWN_PREFIXES[e] for e in OWN_PREFIXES if name.startswith(e)), None)
    if contents is not None:
        taken = ", ".join((*OWN_FOLDERS, *(f"{each}..." for each in OWN_PREFIXES)))
        raise ValueError(
            f"another name, since {name}/ in the data folder is for {contents}; the connector's own"
            f" folders are {taken}"
        )
    return name


def read_path(found: Found, environ: Mapping[str, str]) -> Path:
    """A path, from the folder that it starts from. Raises `ValueError` where it is none."""
    if not isinstance(found.raw, str | Path) or not str(found.raw).strip():
        raise ValueError("a path")
    text = str(found.raw)
    if text.startswith("~/") and "HOME" in environ:
        text = environ["HOME"] + text[1:]
    return found.folder / text


def read_config(sources: Sources) -> None:
    """Read the project file into `sources`, refusing keys that mean nothing at its top.

    What is wrong with the table of one account goes into `broken`: it is that account's affair.
    """
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
    if not isinstance(tables, dict):
        raise SettingsError(f"accounts in {where} {_TABLES_ALLOWED}")
    _check_keys(content, (*_FILE_KEYS, "accounts", RETENTION), where)
    broken: dict[str, SettingsError | UnknownName] = {}
    for name, table in tables.items():
        try:
            _check_table(name, table, where)
        except (SettingsError, UnknownName) as error:
            broken[name] = error
    sources.top, sources.tables, sources.broken = content, tables, broken


def _check_table(name: str, table: object, where: str) -> None:
    try:
        read_account(name)
    except ValueError as error:
        refuse("account", name, str(error), where)
    if not isinstance(table, dict):
        raise SettingsError(f"accounts in {where} {_TABLES_ALLOWED}")
    _check_keys(table, (*_ACCOUNT_KEYS, RETENTION), f"{where} [accounts.{name}]")


def _check_keys(table: Mapping[str, Any], allowed: tuple[str, ...], where: str) -> None:
    for secret in SECRETS:
        if secret in table:
            raise SettingsError(
                f"{where} holds {secret}, and a project file is too easily shared or committed",
                action="Move the key into a file of its own (chmod 600) and name it in"
                f" {secret}{FILE_ENDING}; if the project file was ever shared, generate a new key.",
            )
    for key in table:
        if key not in allowed:
            raise UnknownName(f"setting of {where}", key, allowed)


def misspelt(environ: Mapping[str, str]) -> Iterator[str]:
    """A sentence on each variable that looks like a setting and is none."""
    known = (*ENVIRONMENT.values(), CONFIG_VARIABLE)
    for name in sorted(environ):
        if not name.startswith("CONNECTOR_") or name in known:
            continue
        for near in get_close_matches(name, known, n=1, cutoff=0.85):
            yield f"{name} means nothing here; is {near} meant?"


# -- Reading ---------------------------------------------------------------------------------------
# How raw values of settings are read: whole numbers, one of a few words, and by other readers.
#
# Each makes a reader for `Sources.pick`, which raises `ValueError` with what is allowed.


def whole(least: int, most: int) -> Callable[[Found], int]:
    """A whole number, in digits alone."""

    def read(found: Found) -> int:
        text = str(found.raw).strip()
        if isinstance(found.raw, bool | float) or not re.fullmatch(r"[0-9]{1,12}", text):
            raise ValueError(f"a whole number from {least} to {most}")
        if not least <= int(text) <= most:
            raise ValueError(f"a whole number from {least} to {most}")
        return int(text)

    return read


def one_of(choices: Any) -> Callable[[Found], Any]:
    """One of the words of a `Literal`."""
    allowed = get_args(choices)

    def read(found: Found) -> Any:
        if not isinstance(found.raw, str) or found.raw.strip() not in allowed:
            raise ValueError(f"one of: {', '.join(allowed)}")
        return found.raw.strip()

    return read


def raw(read: Callable[[object], Any]) -> Callable[[Found], Any]:
    """What another reader makes of the value itself."""
    return lambda found: read(found.raw)
