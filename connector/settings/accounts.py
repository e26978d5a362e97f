"""Accounts that are configured, each with its settings or the error in them.

An error in the settings of one account does not affect the other accounts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from connector.errors import ConnectorError, Misused, SettingsError
from connector.settings.loading import CONFIG_NAME, ProjectFile, load_settings
from connector.settings.model import ENVIRONMENT, Settings

UNNAMED = "(unnamed)"
"""Title of the account without a name."""

_OF_ONE_ACCOUNT = tuple(ENVIRONMENT[name] for name in ("base_url", "api_key", "api_key_file"))


@dataclass(frozen=True, slots=True)
class ConfiguredAccount:
    """Account with its settings, or with the error in them. The name is None if it is unnamed.

    With an error, `settings_for_alerts` are the settings at the top of the project file, so that
    the error can be reported.
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
    names = ProjectFile.read(environ, cwd).accounts
    unnamed = _load(None, environ, cwd)
    common = unnamed.settings
    named = [_load(name, environ, cwd, common) for name in names]
    # The project file may choose one of its accounts as the default.
    is_used = common is not None and common.account is None and _has_databases(common.folder)
    return (unnamed, *named) if is_used or not names else tuple(named)


def _load(
    name: str | None, environ: Mapping[str, str], cwd: Path, common: Settings | None = None
) -> ConfiguredAccount:
    """Return an account of the project file with its settings or their error."""
    try:
        return ConfiguredAccount(name, load_settings({"account": name}, environ, cwd))
    except ConnectorError as error:
        for_alerts = common and common.model_copy(update={"account": name})
        return ConfiguredAccount(name, None, error, for_alerts)


def require_account(settings: Settings, *, creates: bool = False) -> Settings:
    """Return the settings if it is clear which account they belong to.

    Raises `Misused` if an account must be chosen, or if the chosen account does not exist and the
    command does not create it (`creates`).
    """
    name, has_files = settings.account, _has_databases(settings.folder)
    if name is not None and not (settings.accounts or creates or has_files):
        known = sorted({each.parent.name for each in settings.data_dir.glob("*/*.duckdb")})
        if _has_databases(settings.data_dir):
            known.insert(0, UNNAMED)
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


def _has_databases(folder: Path) -> bool:
    """Return True if the folder contains DuckDB files."""
    return any(folder.glob("*.duckdb"))
