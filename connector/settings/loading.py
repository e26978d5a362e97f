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
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pydantic import SecretStr, ValidationError

from connector.errors import ConnectorError, SettingsError, UnknownName
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

_SECRET_FILES = tuple(f"{name}{FILE_ENDING}" for name in SECRETS)
_IN_TABLES = [each for each in ENVIRONMENT if each not in (*SECRETS, "account", "data_dir")]
_AT_TOP = [each for each in ENVIRONMENT if each not in SECRETS]
_IDENTITY = ("base_url", "api_key_file")
"""Settings that the table of an account does not inherit from the top of the project file."""

_GROUPS = ("models", "publish")
"""Tables whose keys are settings: `folder` in `[models]` is `models_folder`."""

_SECRET_BYTES_MAX = 5_000


def load_settings(
    flags: Mapping[str, object] = MappingProxyType({}),
    environ: Mapping[str, str] = os.environ,
    cwd: Path = Path(),
    *,
    checks_all_accounts: bool = True,
) -> Settings:
    """Load the settings from options, the environment and the project file.

    The project file is in `cwd` unless `CONNECTOR_CONFIG` is set.

    Args:
        flags: Options by the name of their setting; None if an option is not given.
        environ: Environment variables.
        cwd: Folder of the project file and of relative paths.
        checks_all_accounts: If no account is chosen, raise the errors of all accounts' tables.

    Raises:
        SettingsError: A setting is missing, malformed or unsafe.
        UnknownName: A setting or an account does not exist.
    """
    settings, errors = read_settings(flags, environ, cwd, checks_all_accounts=checks_all_accounts)
    for error in errors:
        raise error
    assert settings is not None, "settings without an error are complete"
    return settings


def read_settings(
    flags: Mapping[str, object],
    environ: Mapping[str, str],
    cwd: Path,
    *,
    checks_all_accounts: bool = False,
) -> tuple[Settings | None, list[ConnectorError]]:
    """Return the settings and all errors in them, with the arguments of `load_settings`.

    A setting with an error has its default, so that the errors can be reported. Without a valid
    account there are no settings.
    """
    cwd, errors = cwd.absolute(), list[ConnectorError]()
    _check_options(flags)
    file = ProjectFile.read(environ, cwd)
    outside = _find_outside(flags, environ, cwd, errors)
    try:
        account = _choose_account(outside.get("account") or file.find(None).get("account"), file)
    except (SettingsError, UnknownName) as error:
        return None, [error]
    errors += [
        file.errors[name]
        for name in file.errors
        if name == account or (account is None and checks_all_accounts)
    ]
    inside, warnings = file.find(account), list(_misspelt_variables(environ))
    found = inside | outside
    for name in SECRETS:
        try:
            if secret := _find_secret(name, outside, inside, environ, warnings):
                found[name] = secret
        except SettingsError as error:
            found.pop(name, None)
            errors.append(error)
    given: dict[str, Any] = {"data_dir": cwd / "data"}
    given |= {name: found[name].value(environ) for name in NAMES if name in found}
    given |= {"accounts": tuple(file.tables), "warnings": tuple(warnings)}
    given["origins"] = {name: each.origin for name, each in found.items() if name in NAMES}
    try:
        settings = Settings(**given)
    except ValidationError as refused:
        for each in refused.errors(include_url=False, include_input=False):
            context, name = each.get("ctx", {}), str(each["loc"][0])
            allowed = context.get("error", context.get("expected", each["msg"]))
            errors.append(found[name].refuse(str(allowed)))
            given.pop(name, None)
        settings = Settings(**given)
    return settings, [*errors, *_conflicts(settings)]


@dataclass(frozen=True, slots=True)
class Found:
    """Value of a setting before it is parsed, its origin, and the folder of a relative path."""

    name: str
    raw: Any
    origin: str
    folder: Path

    def value(self, environ: Mapping[str, str]) -> Any:
        """Return the value without white space around it, and a path as an absolute one."""
        if not isinstance(self.raw, str | Path):
            return self.raw
        text = str(self.raw).strip()
        if self.name not in (*PATHS, *_SECRET_FILES):
            return text
        if text.startswith("~/") and "HOME" in environ:
            text = environ["HOME"] + text[1:]
        return self.folder / text

    def refuse(self, allowed: str) -> SettingsError:
        """Return the error for a value that is not `allowed`; it does not contain a secret."""
        if self.name in SECRETS:
            return SettingsError(f"{self.name} {allowed} (from {self.origin})")
        if self.name in _SECRET_FILES:
            return SettingsError(f"{self.name} (from {self.origin}) must be {allowed}")
        return invalid_value(self.name, self.raw, allowed, self.origin)


@dataclass(frozen=True, slots=True)
class ProjectFile:
    """Contents of the project file; `errors` are the errors in the tables of accounts."""

    name: str
    folder: Path
    top: Mapping[str, Any] = field(default_factory=dict)
    tables: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    errors: dict[str, ConnectorError] = field(default_factory=dict)

    @classmethod
    def read(cls, environ: Mapping[str, str], cwd: Path) -> ProjectFile:
        """Read the file, if it exists. Raises `SettingsError` and `UnknownName`."""
        where, is_named = environ.get(CONFIG_VARIABLE, CONFIG_NAME), CONFIG_VARIABLE in environ
        path = cwd / where
        if not is_named and not path.exists():
            return cls(where, cwd)
        try:
            top = tomllib.loads(path.read_text(encoding="utf-8"))
        except OSError as error:
            origin = f" (from {CONFIG_VARIABLE})" if is_named else ""
            raise SettingsError(f"{where}{origin} cannot be read: {error.strerror}") from None
        except ValueError as error:
            # The parser names the line and the column, and never quotes the line.
            reason = error if isinstance(error, tomllib.TOMLDecodeError) else "it is not UTF-8"
            raise SettingsError(f"{where} is not valid TOML: {reason}") from None
        not_tables = SettingsError(f"accounts in {where} must be tables such as [accounts.acme]")
        if not isinstance(accounts := top.pop("accounts", {}), dict):
            raise not_tables
        file = cls(where, path.parent, _checked_table(top, [*_AT_TOP, "accounts"], where))
        for name, table in accounts.items():
            file.tables[name] = table if isinstance(table, dict) else {}
            try:
                _parse_account(Found("account", name, where, cwd))
                if not isinstance(table, dict):
                    raise not_tables
                file.tables[name] = _checked_table(table, _IN_TABLES, f"{where} [accounts.{name}]")
            except (SettingsError, UnknownName) as error:
                file.errors[name] = error
        return file

    def find(self, account: str | None) -> dict[str, Found]:
        """Return the values in the account's table and at the top that apply to the account."""
        table, where = self.tables.get(account or "", {}), f"{self.name} [accounts.{account}]"
        return {
            name: Found(name, raw, self.name, self.folder)
            for name, raw in self.top.items()
            if account is None or name not in _IDENTITY
        } | {name: Found(name, raw, where, self.folder) for name, raw in table.items()}


def _check_options(options: Mapping[str, object]) -> None:
    """Raise `UnknownName` for an option that is a key or no setting."""
    # A key cannot be given as an option, because process lists and shell histories show it.
    allowed = [each for each in NAMES if each not in SECRETS]
    for name in options:
        if name not in allowed:
            raise UnknownName("setting that an option may give", name, allowed)


def _find_outside(
    options: Mapping[str, object],
    environ: Mapping[str, str],
    cwd: Path,
    errors: list[ConnectorError],
) -> dict[str, Found]:
    """Return the values of options and environment variables; add an error for an empty one."""
    found = dict[str, Found]()
    for name, variable in ENVIRONMENT.items():
        if options.get(name) is not None:
            option = f"--{name.removeprefix('publish_').replace('_', '-')}"
            found[name] = Found(name, options[name], option, cwd)
        elif environ.get(variable, "").strip():
            found[name] = Found(name, environ[variable], variable, cwd)
        elif variable in environ:
            action = f"Give {variable} a value, or unset it."
            errors.append(SettingsError(f"{name} is empty (from {variable})", action=action))
    return found


def _choose_account(found: Found | None, file: ProjectFile) -> str | None:
    """Return the name of the chosen account. Raises `SettingsError` and `UnknownName`."""
    name = None if found is None else _parse_account(found)
    if found is not None and name is not None and file.tables and name not in file.tables:
        raise UnknownName(f"configured account of {file.name} ({found.origin})", name, file.tables)
    return name


def _parse_account(found: Found) -> str:
    """Return the name of an account. Raises `SettingsError`."""
    try:
        return parse_account_name(found.raw)
    except ValueError as error:
        raise found.refuse(str(error)) from None


def _checked_table(table: Mapping[str, Any], allowed: Iterable[str], where: str) -> dict[str, Any]:
    """Return the table with `folder` of `[models]` as `models_folder`, for each of the groups.

    Raises `UnknownName` for a key that is not a setting, and `SettingsError` for a secret.
    """
    found = dict(table)
    for group in _GROUPS:
        if isinstance(found.get(group), dict):
            known = [n.removeprefix(f"{group}_") for n in allowed if n.startswith(f"{group}_")]
            for key, value in found.pop(group).items():
                if key not in known:
                    raise UnknownName(f"setting of {where} [{group}]", key, known)
                found[f"{group}_{key}"] = value
    for key in found:
        if key in SECRETS:
            raise SettingsError(
                f"{where} contains {key}, but a project file is easily shared or committed",
                action=f"Move the key to a separate file (chmod 600) and set {key}{FILE_ENDING} "
                "to its path. If the project file was ever shared, generate a new key.",
            )
        if key not in allowed:
            raise UnknownName(f"setting of {where}", key, allowed)
    return found


def _misspelt_variables(environ: Mapping[str, str]) -> Iterator[str]:
    """Yield a warning for each variable whose name resembles that of a setting."""
    known = (*ENVIRONMENT.values(), CONFIG_VARIABLE)
    for name in sorted(environ):
        if name.startswith("CONNECTOR_") and name not in known:
            for near in get_close_matches(name, known, n=1, cutoff=0.85):
                yield f"{name} is not a setting; did you mean {near}?"


def _conflicts(settings: Settings) -> Iterator[SettingsError]:
    """Yield the errors of settings that are valid alone, but not together."""
    quota = settings.monthly_requests
    if quota is not None and settings.monthly_reserve >= quota:
        origin = settings.origin("monthly_requests")
        allowed = f"less than monthly_requests, {quota} (from {origin})"
        yield settings.invalid("monthly_reserve_requests", allowed)
    try:
        # A pull that cannot publish in the end had better not begin.
        settings.hash_key()
    except SettingsError as error:
        yield error


# -- Secrets ---------------------------------------------------------------------------------------


def _find_secret(
    name: str,
    outside: Mapping[str, Found],
    inside: Mapping[str, Found],
    environ: Mapping[str, str],
    warnings: list[str],
) -> Found | None:
    """Return a secret from a variable or a file; None if it is not set.

    A file that other users can open adds a sentence to `warnings`. Raises `SettingsError` if the
    secret is set twice or cannot be read.
    """
    names = (name, f"{name}{FILE_ENDING}")
    given = [outside[each] for each in names if each in outside]
    if name == "api_key":
        _refuse_mixed_sources(outside.get("base_url"), given, inside)
    if len(given) > 1:
        problem = f"both {given[0].origin} and {given[1].origin} are set"
        raise SettingsError(problem, action="Unset one of the two.")
    found = given[0] if given else inside.get(names[1])
    if found is None or found.name == name:
        return None if found is None else replace(found, raw=SecretStr(found.raw))
    path = found.value(environ)
    if not isinstance(path, Path):
        raise found.refuse("a path")
    secret = _read_secret(found, path, warnings)
    return Found(name, secret, f"{path}, named by {found.origin}", path.parent)


def _read_secret(found: Found, path: Path, warnings: list[str]) -> SecretStr:
    """Return the contents of a secret's file without its line end. Raises `SettingsError`."""
    try:
        with path.open("rb") as file:
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
            content = file.read(_SECRET_BYTES_MAX)
    except OSError as error:
        raise found.refuse(f"a file that can be read: {error.strerror}") from None
    if os.name == "posix" and mode & 0o077:
        warnings.append(
            f"The key file {path} {OPEN_TO_OTHERS} (mode {mode:04o}): run chmod 600 on it."
        )
    # Latin-1 reads any byte; a character that cannot be part of a secret is refused later.
    return SecretStr(content.decode("latin-1").removesuffix("\n").removesuffix("\r"))


def _refuse_mixed_sources(
    address: Found | None, key: list[Found], inside: Mapping[str, Found]
) -> None:
    """Raise `SettingsError` if only one of address and key replaces the one in the project file.

    Otherwise the key could be sent to the address of another account.
    """
    if not {"base_url", "api_key_file"} <= set(inside) or bool(address) == bool(key):
        return
    replaced, kept, left = key[0] if key else address, "the address", inside["base_url"]
    if address:
        kept, left = "the key", inside["api_key_file"]
    raise SettingsError(
        f"{replaced and replaced.origin} is set, but {kept} would still come from {left.origin}",
        action="Set the address and the key in the same place, so the key is never sent to a wrong"
        " address.",
    )
