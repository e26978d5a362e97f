"""Load the settings: options first, then the environment, the project file, and the defaults.

The project file has keys at its top and, for several accounts, tables:

    monthly_requests = 50000

    [accounts.acme]
    base_url = "https://acme.example"
    api_key_file = "acme.key"

An account's table inherits limits from the top, and never an address or a key. An error in the
settings of one account does not affect the other accounts.
"""

from __future__ import annotations

import os
import stat
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import SecretStr, ValidationError

from connector.errors import ConnectorError, Misused, SettingsError, UnknownName
from connector.settings import model
from connector.settings.model import ENVIRONMENT, NAMES, SECRETS, Settings, invalid_value

CONFIG_VARIABLE = "CONNECTOR_CONFIG"
"""The environment variable that names the project file; without it, `connector.toml`."""

CONFIG_NAME = "connector.toml"

OPEN_TO_OTHERS = "can be opened by other users"
"""Part of the warning about a secret's file, by which `doctor` finds it."""

UNNAMED = "(unnamed)"
"""Title of the account without a name."""

_IDENTITY = ("base_url", "api_key_file")
"""Settings that the table of an account does not inherit from the top of the project file."""


class _Found(NamedTuple):
    """Value of a setting before it is validated, and its origin."""

    value: Any
    origin: str


class _Project(NamedTuple):
    """Project file: its name and folder, the keys at its top, and the tables of accounts."""

    name: str
    folder: Path
    top: Mapping[str, Any]
    accounts: Mapping[str, Any]


def load_settings(
    flags: Mapping[str, object] | None = None,
    environ: Mapping[str, str] = os.environ,
    cwd: Path = Path(),
) -> Settings:
    """Load the settings of one account.

    `flags` are options by the name of their setting, None if not given. Relative paths start at
    `cwd`, where the project file is unless `CONNECTOR_CONFIG` is set. Raises `SettingsError`, and
    `UnknownName` for a setting or an account that does not exist.
    """
    cwd = cwd.absolute()
    project = _read_project(environ, cwd)
    outside = _options_and_variables(flags or {}, environ, cwd)
    inside = _project_values(project, outside.get("account"))
    _refuse_mixed_sources(inside, outside)
    found, known = inside | outside, (*ENVIRONMENT.values(), CONFIG_VARIABLE)
    warnings = [
        f"{name} is not a setting; did you mean {near}?"
        for name in sorted(environ)
        if name.startswith("CONNECTOR_") and name not in known
        for near in get_close_matches(name, known, n=1, cutoff=0.85)
    ]
    for name, file in zip(SECRETS, model.SECRET_FILES, strict=True):
        if name in outside and file in outside:
            both = f"{outside[name].origin} and {outside[file].origin}"
            raise SettingsError(f"both {both} are set", action="Unset one of the two.")
        if name not in outside and file in found:
            found[name] = _read_secret(file, found[file], warnings)
    found = {name: found[name] for name in NAMES if name in found}
    try:
        return Settings(
            **{"data_dir": cwd / "data", **{name: each.value for name, each in found.items()}},
            accounts=tuple(project.accounts),
            warnings=tuple(warnings),
            origins={name: each.origin for name, each in found.items()},
        )
    except ValidationError as refused:
        error = refused.errors(include_url=False, include_input=False)[0]
        context, name = error.get("ctx", {}), str(error["loc"][0])
        allowed = context.get("error", context.get("expected", error["msg"]))
        raise invalid_value(name, *found[name], str(allowed)) from None


def _options_and_variables(
    options: Mapping[str, object], environ: Mapping[str, str], cwd: Path
) -> dict[str, _Found]:
    """Return the values of variables, and of options, which process lists show: no secrets."""
    found, allowed = dict[str, _Found](), [name for name in NAMES if name not in SECRETS]
    for name, variable in ENVIRONMENT.items():
        if variable in environ:
            if not environ[variable].strip():
                action = f"Give {variable} a value, or unset it."
                raise SettingsError(f"{name} is empty (from {variable})", action=action)
            found[name] = _find(name, environ[variable], variable, cwd)
    for name, value in options.items():
        if name not in allowed:
            raise UnknownName("setting that an option may give", name, allowed)
        if value is not None:
            option = f"--{name.removeprefix('publish_').replace('_', '-')}"
            found[name] = _find(name, value, option, cwd)
    return found


def _find(name: str, value: Any, origin: str, folder: Path) -> _Found:
    """Return the value without white space around it, and a path as an absolute one."""
    if name in SECRETS:
        return _Found(SecretStr(value), origin)
    value = value.strip() if isinstance(value, str) else value
    if name in model.PATHS:
        if not isinstance(value, str | Path):
            raise invalid_value(name, value, origin, "a path")
        value = folder / Path(value).expanduser()
    return _Found(value, origin)


def _read_secret(name: str, file: _Found, warnings: list[str]) -> _Found:
    """Return the secret in a file; if other users can open it, that is added to `warnings`."""
    path, origin = file
    try:
        with path.open("rb") as opened:
            mode = stat.S_IMODE(os.fstat(opened.fileno()).st_mode)
            content = opened.read(5_000)  # No secret is longer.
    except OSError as error:
        allowed = f"a file that can be read: {error.strerror}"
        raise invalid_value(name, None, origin, allowed) from None
    if os.name == "posix" and mode & 0o077:
        warnings.append(
            f"The key file {path} {OPEN_TO_OTHERS} (mode {mode:04o}): run chmod 600 on it."
        )
    # Latin-1 reads any byte; a character that cannot be part of a secret is refused later.
    secret = content.decode("latin-1").removesuffix("\n").removesuffix("\r")
    return _Found(SecretStr(secret), f"{path}, named by {origin}")


def _refuse_mixed_sources(inside: Mapping[str, _Found], outside: Mapping[str, _Found]) -> None:
    """Raise `SettingsError` if only one of address and key replaces the one in the project file."""
    address, key = outside.get("base_url"), outside.get("api_key", outside.get("api_key_file"))
    replaced = address or key
    if set(_IDENTITY) <= set(inside) and replaced and not (address and key):
        kept, left = ("the key", "api_key_file") if address else ("the address", "base_url")
        raise SettingsError(
            f"{replaced.origin} is set, but {kept} would still come from {inside[left].origin}",
            action="Set the address and the key in the same place, so the key is never sent to a"
            " wrong address.",
        )


def _read_project(environ: Mapping[str, str], cwd: Path) -> _Project:
    """Read the file, if it exists. Raises `SettingsError` and `UnknownName`."""
    name, is_named = environ.get(CONFIG_VARIABLE, CONFIG_NAME), CONFIG_VARIABLE in environ
    path = cwd / name
    if not is_named and not path.exists():
        return _Project(name, cwd, {}, {})
    try:
        top = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        origin = f" (from {CONFIG_VARIABLE})" if is_named else ""
        raise SettingsError(f"{name}{origin} cannot be read: {error.strerror}") from None
    except ValueError as error:
        # The parser names the line and the column, and never quotes the line.
        reason = error if isinstance(error, tomllib.TOMLDecodeError) else "it is not UTF-8"
        raise SettingsError(
            f"{name} is not valid TOML: {reason}",
            action="Correct this line of the file. A text stands between two quotation marks.",
        ) from None
    accounts = _require_table(top.pop("accounts", {}), name)
    _check_names(top, ENVIRONMENT, name)
    return _Project(name, path.parent, top, accounts)


def _project_values(project: _Project, chosen: _Found | None) -> dict[str, _Found]:
    """Return the values in the account's table and at the top that apply to the account."""

    def find_all(table: Mapping[str, Any], origin: str) -> dict[str, _Found]:
        return {name: _find(name, raw, origin, project.folder) for name, raw in table.items()}

    top = find_all(project.top, project.name)
    chosen = chosen or top.get("account")
    if chosen is None:
        return top
    account, inherited = str(chosen.value), {n: top[n] for n in top if n not in _IDENTITY}
    if not project.accounts:
        return inherited
    if account not in project.accounts:
        what = f"configured account of {project.name} ({chosen.origin})"
        raise UnknownName(what, account, project.accounts)
    where = f"{project.name} [accounts.{account}]"
    table = _require_table(project.accounts[account], project.name)
    _check_names(table, [n for n in ENVIRONMENT if n not in ("account", "data_dir")], where)
    return inherited | find_all(table, where)


def _require_table(value: Any, file: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise SettingsError(f"accounts in {file} must be tables such as [accounts.acme]")
    return value


def _check_names(table: Mapping[str, Any], allowed: Iterable[str], where: str) -> None:
    """Raise `UnknownName` for a key that is not a setting, and `SettingsError` for a secret."""
    for key in table:
        if key in SECRETS:
            raise SettingsError(
                f"{where} contains {key}, but a project file is easily shared or committed",
                action=f"Move the key to a separate file (chmod 600) and set {key}_file to its"
                " path. If the project file was ever shared, generate a new key.",
            )
        if key not in allowed:
            raise UnknownName(f"setting of {where}", key, [n for n in allowed if n not in SECRETS])


@dataclass(frozen=True, slots=True)
class ConfiguredAccount:
    """Account with its settings, or with the error in them. The name is None if it is unnamed.

    An error is reported by `settings_for_alerts`, those at the top of the project file.
    """

    name: str | None
    settings: Settings | None
    error: ConnectorError | None = None
    settings_for_alerts: Settings | None = None

    @property
    def title(self) -> str:
        """Name for display."""
        return self.name or UNNAMED

    def require_settings(self) -> Settings:
        """Return the settings. Raises the error in them."""
        if self.error is not None:
            raise self.error
        assert self.settings is not None
        return self.settings


def configured_accounts(environ: Mapping[str, str], cwd: Path) -> tuple[ConfiguredAccount, ...]:
    """Return the accounts of the project file, and the unnamed one if it is used or the only one.

    Raises `SettingsError` or `UnknownName` if the project file itself is invalid.
    """
    environ = {name: value for name, value in environ.items() if name != ENVIRONMENT["account"]}

    def load(name: str | None, common: Settings | None = None) -> ConfiguredAccount:
        try:
            return ConfiguredAccount(name, load_settings({"account": name}, environ, cwd))
        except ConnectorError as error:
            for_alerts = common and common.model_copy(update={"account": name})
            return ConfiguredAccount(name, None, error, for_alerts)

    names, unnamed = _read_project(environ, cwd).accounts, load(None)
    common = unnamed.settings
    named = [load(name, common) for name in names]
    # The project file may choose one of its accounts as the default.
    is_used = common is not None and common.account is None and _has_databases(common.folder)
    return (unnamed, *named) if is_used or not names else tuple(named)


def require_account(settings: Settings, *, creates: bool = False) -> Settings:
    """Return the settings. Raises `Misused` if no account is chosen, or one to be created."""
    name, has_files = settings.account, _has_databases(settings.folder)
    if name is not None and not (settings.accounts or creates or has_files):
        known = sorted({each.parent.name for each in settings.data_dir.glob("*/*.duckdb")})
        known = [UNNAMED, *known] if _has_databases(settings.data_dir) else known
        raise Misused(
            f"{name!r} ({settings.origin('account')}) is not a known account: {CONFIG_NAME} has no"
            f" accounts, and {settings.data_dir} has no folder of that name. Known:"
            f" {', '.join(known) or 'none'}",
            action=f"Correct the name, add [accounts.{name}] to {CONFIG_NAME}, or create a new "
            f"account with 'connector pull --account {name} --create'.",
        )
    if settings.accounts and name is None and settings.base_url is None and not has_files:
        names = ", ".join(settings.accounts)
        raise Misused("no account is chosen", action=f"Choose one with --account: {names}.")
    return settings


def refuse_shared_credentials(settings: Settings) -> Settings:
    """Return the settings. Raises `SettingsError` if one variable applies to several accounts."""
    for name in ("base_url", "api_key"):
        variable = settings.origin(name).rpartition(" ")[2]
        if len(settings.accounts) > 1 and variable in ENVIRONMENT.values():
            raise SettingsError(
                f"{variable} is set and would apply to every account",
                action="Unset the variable. Set the address and the key in the table of each"
                " account in the project file.",
            )
    return settings


def _has_databases(folder: Path) -> bool:
    return any(folder.glob("*.duckdb"))
