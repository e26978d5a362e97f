"""Accounts that are configured, each with its settings or the error in them.

An error in the settings of one account does not affect the other accounts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from connector.errors import ConnectorError, Misused, SettingsError
from connector.settings.folders import parse_account_name
from connector.settings.loading import CONFIG_NAME, ProjectFile, read_settings
from connector.settings.model import ENVIRONMENT, Settings

UNNAMED = "(unnamed)"
"""How the account without a name is shown next to named accounts."""

_OF_ONE_ACCOUNT = tuple(ENVIRONMENT[name] for name in ("base_url", "api_key", "api_key_file"))


@dataclass(frozen=True, slots=True)
class ConfiguredAccount:
    """Account with its settings, or with the error in them. The name is None if it is unnamed.

    If the settings have errors, `settings_for_alerts` has defaults for the invalid ones.
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
        if self.settings is None:
            raise self.error or AssertionError(f"{self.title} has neither settings nor an error")
        return self.settings


def configured_accounts(environ: Mapping[str, str], cwd: Path) -> tuple[ConfiguredAccount, ...]:
    """Return the accounts of the project file, and the unnamed account if it is used.

    The unnamed account is used if the file names no account, or if the data folder has databases.

    Raises `SettingsError` or `UnknownName` if the project file itself is invalid.
    """
    environ = {name: value for name, value in environ.items() if name != ENVIRONMENT["account"]}
    names = ProjectFile.read(environ, cwd).tables
    unnamed, named = _load(None, environ, cwd), [_load(name, environ, cwd) for name in names]
    found = unnamed.settings
    # The project file may choose one of its accounts as the default.
    is_used = found is not None and found.account is None and _has_database_files(found.folder)
    return (unnamed, *named) if is_used or not names else tuple(named)


def _load(name: str | None, environ: Mapping[str, str], cwd: Path) -> ConfiguredAccount:
    """Return an account of the project file with its settings or their error."""
    settings, errors = read_settings({"account": name}, environ, cwd)
    if errors:
        return ConfiguredAccount(name, None, errors[0], settings)
    return ConfiguredAccount(name, settings)


def require_account(settings: Settings, *, creates: bool = False) -> Settings:
    """Return the settings if it is clear which account they belong to.

    Raises `Misused` if an account must be chosen, or if the chosen account does not exist and the
    command does not create it (`creates`).
    """
    name, has_files = settings.account, _has_database_files(settings.folder)
    if name is not None and not (settings.accounts or creates or has_files):
        known = ", ".join(_account_folder_names(settings.data_dir)) or "none"
        raise Misused(
            f"{name!r} ({settings.origin('account')}) is not a known account: {CONFIG_NAME} has no"
            f" accounts, and {settings.data_dir} has no folder of that name. Known: {known}",
            action=f"Correct the name, add [accounts.{name}] to {CONFIG_NAME}, or create a new "
            f"account with 'connector pull --account {name} --create'.",
        )
    if settings.accounts and name is None and settings.base_url is None and not has_files:
        names = ", ".join(settings.accounts)
        raise Misused("no account is chosen", action=f"Choose one with --account: {names}.")
    return settings


def refuse_shared_credentials(settings: Settings) -> Settings:
    """Return the settings if the environment does not set one address or key for several accounts.

    Raises `SettingsError` otherwise: every account would be a copy of the same workspace.
    """
    for name in ("base_url", "api_key") if len(settings.accounts) > 1 else ():
        for variable in _OF_ONE_ACCOUNT:
            if settings.origin(name).endswith((variable, f"named by {variable}")):
                raise SettingsError(
                    f"{variable} is set and would apply to every account",
                    action="Unset the variable. Set the address and the key in the table of "
                    "each account in the project file.",
                )
    return settings


def _has_database_files(folder: Path) -> bool:
    """Return True if the account's folder contains DuckDB files."""
    return any(each.is_file() for each in folder.glob("*.duckdb"))


def _account_folder_names(data_dir: Path) -> list[str]:
    """Return the names of accounts that have databases in the data folder."""
    found = [UNNAMED] if _has_database_files(data_dir) else []
    for folder in sorted({each.parent for each in data_dir.glob("*/*.duckdb") if each.is_file()}):
        try:
            found.append(parse_account_name(folder.name))
        except ValueError:
            continue
    return found
