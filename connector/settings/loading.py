"""Load the settings: options first, then the environment, the project file, and the defaults.

The project file has keys at its top and, for several accounts, tables:

    monthly_requests = 50000

    [accounts.acme]
    base_url = "https://acme.example"
    api_key_file = "acme.key"

An account's table inherits limits from the top, and never an address or a key.
"""

from __future__ import annotations

import os
import stat
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from pydantic import SecretStr, ValidationError

from connector.errors import SettingsError, UnknownName
from connector.settings.folders import parse_account_name
from connector.settings.model import (
    ENVIRONMENT,
    FILE_ENDING,
    NAMES,
    PATHS,
    SECRETS,
    Settings,
    invalid_value,
)

CONFIG_VARIABLE = "CONNECTOR_CONFIG"
"""The environment variable that names the project file; without it, `connector.toml`."""

CONFIG_NAME = "connector.toml"

OPEN_TO_OTHERS = "can be opened by other users"
"""Part of the warning about a secret's file, by which `doctor` finds it."""

_IDENTITY = ("base_url", "api_key_file")
"""Settings that the table of an account does not inherit from the top of the project file."""

_SECRET_BYTES_MAX = 5_000


def load_settings(
    flags: Mapping[str, object] | None = None,
    environ: Mapping[str, str] = os.environ,
    cwd: Path = Path(),
) -> Settings:
    """Load the settings from options, the environment and the project file.

    The project file is in `cwd` unless `CONNECTOR_CONFIG` is set.

    Args:
        flags: Options by the name of their setting; None if an option is not given.
        environ: Environment variables.
        cwd: Folder of the project file and of relative paths.

    Raises:
        SettingsError: A setting is missing, malformed or unsafe.
        UnknownName: A setting or an account does not exist.
    """
    cwd = cwd.absolute()
    file = ProjectFile.read(environ, cwd)
    outside = _find_outside(flags or {}, environ, cwd)
    inside = file.values(outside.get("account") or file.values(None).get("account"))
    _refuse_mixed_sources(inside, outside)
    found, warnings = inside | outside, list(_misspelt_variables(environ))
    for name in SECRETS:
        if name in outside and f"{name}{FILE_ENDING}" in outside:
            both = f"{outside[name].origin} and {outside[f'{name}{FILE_ENDING}'].origin}"
            raise SettingsError(f"both {both} are set", action="Unset one of the two.")
        if name not in outside and (named := found.get(f"{name}{FILE_ENDING}")):
            found[name] = _read_secret(f"{name}{FILE_ENDING}", named, warnings)
    found = {name: each for name, each in found.items() if name in NAMES}
    values: dict[str, Any] = {
        "data_dir": cwd / "data",
        **{name: each.value(name) for name, each in found.items()},
        "accounts": tuple(file.accounts),
        "warnings": tuple(warnings),
        "origins": {name: each.origin for name, each in found.items()},
    }
    try:
        settings = Settings(**values)
    except ValidationError as refused:
        error = refused.errors(include_url=False, include_input=False)[0]
        context, name = error.get("ctx", {}), str(error["loc"][0])
        allowed = context.get("error", context.get("expected", error["msg"]))
        raise invalid_value(name, found[name].raw, str(allowed), found[name].origin) from None
    settings.hash_key()  # Better no pull than one that cannot publish in the end.
    return settings


@dataclass(frozen=True, slots=True)
class Found:
    """Value of a setting before it is parsed, its origin, and the folder of a relative path."""

    raw: Any
    origin: str
    folder: Path

    def value(self, name: str) -> Any:
        """Return the value without white space around it, and a path as an absolute one."""
        if not isinstance(self.raw, str | Path):
            return self.raw
        text = str(self.raw).strip()
        return self.folder / Path(text).expanduser() if name in PATHS else text


@dataclass(frozen=True, slots=True)
class ProjectFile:
    """Contents of the project file; `accounts` are the tables of accounts as they are."""

    name: str
    folder: Path
    top: Mapping[str, Any] = field(default_factory=dict)
    accounts: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def read(cls, environ: Mapping[str, str], cwd: Path) -> ProjectFile:
        """Read the file, if it exists. Raises `SettingsError` and `UnknownName`."""
        name, is_named = environ.get(CONFIG_VARIABLE, CONFIG_NAME), CONFIG_VARIABLE in environ
        path = cwd / name
        if not is_named and not path.exists():
            return cls(name, cwd)
        try:
            top = tomllib.loads(path.read_text(encoding="utf-8"))
        except OSError as error:
            origin = f" (from {CONFIG_VARIABLE})" if is_named else ""
            raise SettingsError(f"{name}{origin} cannot be read: {error.strerror}") from None
        except ValueError as error:
            # The parser names the line and the column, and never quotes the line.
            reason = error if isinstance(error, tomllib.TOMLDecodeError) else "it is not UTF-8"
            raise SettingsError(f"{name} is not valid TOML: {reason}") from None
        accounts = _require_table(top.pop("accounts", {}), name)
        _check_names(top, [*ENVIRONMENT, "accounts"], name)
        return cls(name, path.parent, top, accounts)

    def values(self, chosen: Found | None) -> dict[str, Found]:
        """Return the values in the account's table and at the top that apply to the account.

        Raises:
            SettingsError: The account's name or its table is not valid.
            UnknownName: The file has other accounts, or the table has an unknown name.
        """
        top = {name: Found(raw, self.name, self.folder) for name, raw in self.top.items()}
        if chosen is None:
            return top
        account, table = chosen.raw, dict[str, Any]()
        try:
            parse_account_name(account)
        except ValueError as error:
            raise invalid_value("account", account, str(error), chosen.origin) from None
        where = f"{self.name} [accounts.{account}]"
        if self.accounts:
            if account not in self.accounts:
                what = f"configured account of {self.name} ({chosen.origin})"
                raise UnknownName(what, account, self.accounts)
            table = _require_table(self.accounts[account], self.name)
            _check_names(table, [n for n in ENVIRONMENT if n not in ("account", "data_dir")], where)
        inherited = {name: each for name, each in top.items() if name not in _IDENTITY}
        return inherited | {name: Found(raw, where, self.folder) for name, raw in table.items()}


def _require_table(value: Any, file: str) -> dict[str, Any]:
    """Return the value if it is a table. Raises `SettingsError`."""
    if not isinstance(value, dict):
        raise SettingsError(f"accounts in {file} must be tables such as [accounts.acme]")
    return value


def _check_names(table: Mapping[str, Any], allowed: Iterable[str], where: str) -> None:
    """Raise `UnknownName` for a key that is not a setting, and `SettingsError` for a secret."""
    for key in table:
        if key in SECRETS:
            raise SettingsError(
                f"{where} contains {key}, but a project file is easily shared or committed",
                action=f"Move the key to a separate file (chmod 600) and set {key}{FILE_ENDING} "
                "to its path. If the project file was ever shared, generate a new key.",
            )
        if key not in allowed:
            raise UnknownName(f"setting of {where}", key, [n for n in allowed if n not in SECRETS])


def _find_outside(
    options: Mapping[str, object], environ: Mapping[str, str], cwd: Path
) -> dict[str, Found]:
    """Return the values of options and environment variables.

    Raises `SettingsError` for an empty variable, and `UnknownName` for an option that is no setting
    or a secret, which process lists would show.
    """
    allowed = [each for each in NAMES if each not in SECRETS]
    for name in options:
        if name not in allowed:
            raise UnknownName("setting that an option may give", name, allowed)
    found = dict[str, Found]()
    for name, variable in ENVIRONMENT.items():
        if options.get(name) is not None:
            option = f"--{name.removeprefix('publish_').replace('_', '-')}"
            found[name] = Found(options[name], option, cwd)
        elif variable in environ:
            if not environ[variable].strip():
                action = f"Give {variable} a value, or unset it."
                raise SettingsError(f"{name} is empty (from {variable})", action=action)
            raw = environ[variable]
            found[name] = Found(SecretStr(raw) if name in SECRETS else raw, variable, cwd)
    return found


def _misspelt_variables(environ: Mapping[str, str]) -> Iterator[str]:
    """Yield a warning for each variable whose name resembles that of a setting."""
    known = (*ENVIRONMENT.values(), CONFIG_VARIABLE)
    for name in sorted(environ):
        if name.startswith("CONNECTOR_") and name not in known:
            for near in get_close_matches(name, known, n=1, cutoff=0.85):
                yield f"{name} is not a setting; did you mean {near}?"


def _read_secret(name: str, named: Found, warnings: list[str]) -> Found:
    """Return the secret in a file; if other users can open it, that is added to `warnings`."""
    path = named.value(name)
    if not isinstance(path, Path):
        raise invalid_value(name, None, "a path", named.origin)
    try:
        with path.open("rb") as opened:
            mode = stat.S_IMODE(os.fstat(opened.fileno()).st_mode)
            content = opened.read(_SECRET_BYTES_MAX)
    except OSError as error:
        allowed = f"a file that can be read: {error.strerror}"
        raise invalid_value(name, None, allowed, named.origin) from None
    if os.name == "posix" and mode & 0o077:
        warnings.append(
            f"The key file {path} {OPEN_TO_OTHERS} (mode {mode:04o}): run chmod 600 on it."
        )
    # Latin-1 reads any byte; a character that cannot be part of a secret is refused later.
    secret = content.decode("latin-1").removesuffix("\n").removesuffix("\r")
    return Found(SecretStr(secret), f"{path}, named by {named.origin}", path.parent)


def _refuse_mixed_sources(inside: Mapping[str, Found], outside: Mapping[str, Found]) -> None:
    """Raise `SettingsError` if only one of address and key replaces the one in the project file.

    Otherwise the key could be sent to the address of another account.
    """
    address, key = outside.get("base_url"), outside.get("api_key", outside.get("api_key_file"))
    replaced = address or key
    if set(_IDENTITY) <= set(inside) and replaced and not (address and key):
        kept, left = ("the key", "api_key_file") if address else ("the address", "base_url")
        raise SettingsError(
            f"{replaced.origin} is set, but {kept} would still come from {inside[left].origin}",
            action="Set the address and the key in the same place, so the key is never sent to a"
            " wrong address.",
        )
