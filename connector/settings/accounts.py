"""Accounts that are configured, each with its settings, or why it has none.

A mistake in the settings of one account keeps no other from being looked at.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from connector.errors import ConnectorError, Misused, SettingsError
from connector.settings.layers import CONFIG_NAME, read_account
from connector.settings.model import (
    ENVIRONMENT,
    Settings,
    account_names,
    load_for_alerts,
    load_settings,
)

UNNAMED = "(unnamed)"
"""How the account without a name is written where each stands by its name."""

_OF_ONE_ACCOUNT = tuple(
    ENVIRONMENT[name] for name in ("base_url", "api_key", "api_key_file", "api_key_keyring")
)


@dataclass(frozen=True, slots=True)
class ConfiguredAccount:
    """An account by its name (None: the unnamed one), and its settings or their error.

    `for_alerts` is what can be read of settings that cannot be used.
    """

    name: str | None
    settings: Settings | None
    error: ConnectorError | None = None
    for_alerts: Settings | None = None

    @property
    def title(self) -> str:
        """The name as a person reads it."""
        return self.name or UNNAMED

    def required(self) -> Settings:
        """Return the settings, or raise the error that was found in them."""
        if self.settings is None:
            raise self.error or AssertionError(f"{self.title} has neither settings nor an error")
        return self.settings


def configured_accounts(environ: Mapping[str, str], cwd: Path) -> tuple[ConfiguredAccount, ...]:
    """Return the accounts of the project file, and the unnamed account if it is in use.

    It is in use if no account is named, or if it has files. The account that the environment
    chooses is not preferred.

    Raises `SettingsError` or `UnknownName` where the project file itself cannot be used.
    """
    environ = {name: value for name, value in environ.items() if name != ENVIRONMENT["account"]}
    names = account_names(environ, cwd)
    unnamed, named = _read(None, environ, cwd), [_read(name, environ, cwd) for name in names]
    found = unnamed.settings
    # The project file may choose one of its accounts as the default.
    is_there = found is not None and found.account.value is None and _has_files(found)
    return (unnamed, *named) if is_there or not names else tuple(named)


def require_account(settings: Settings, *, creates: bool = False) -> Settings:
    """Return the settings if they belong to a certain account.

    Raises `Misused` if accounts are configured, none is chosen, and the unnamed one has neither an
    address nor files. Raises it also for a name that neither the project file nor a
    folder of the data folder has, unless the command `creates` the account.
    """
    name = settings.account.value
    if name is not None and not settings.accounts and not creates and not _has_files(settings):
        known = ", ".join(_names_of_folders(settings)) or "none"
        raise Misused(
            f"{name!r} ({settings.account.origin}) is not a known account: {CONFIG_NAME} has no"
            f" accounts, and {settings.data_dir.value} has no folder of that name. Known: {known}",
            action=f"Correct the name, add [accounts.{name}] to {CONFIG_NAME}, or create a new "
            f"account with 'connector pull --account {name} --create'.",
        )
    is_meant = settings.account.value is not None or settings.base_url.value is not None
    if settings.accounts and not is_meant and not _has_files(settings):
        names = ", ".join(settings.accounts)
        raise Misused("no account is chosen", action=f"Choose one with --account: {names}.")
    return settings


def _names_of_folders(settings: Settings) -> list[str]:
    """Return the names of accounts that have files in the data folder."""
    data_dir = settings.data_dir.value
    named = {each.parent.name for each in data_dir.glob("*/*.duckdb") if each.is_file()}
    unnamed = [UNNAMED] if any(each.is_file() for each in data_dir.glob("*.duckdb")) else []
    return [*unnamed, *sorted(name for name in named if _is_unclaimed(name, ()))]


def refuse_one_for_all(settings: Settings) -> Settings:
    """Return the settings. Raises if the environment gives all accounts one address or key.

    Raises `SettingsError`: each of several accounts would be a copy of the same workspace.
    """
    for each in (settings.base_url, settings.api_key) if len(settings.accounts) > 1 else ():
        for variable in _OF_ONE_ACCOUNT:
            if each.origin == variable or each.origin.endswith(f"named by {variable}"):
                raise SettingsError(
                    f"{variable} is set and would apply to every account",
                    action="Unset the variable. Set the address and the key in the table of "
                    "each account in the project file.",
                )
    return settings


def unclaimed_folders(settings: Settings) -> tuple[Path, ...]:
    """Return folders of the data folder that have an account's files and belong to no account.

    Without named accounts the data folder itself belongs to the unnamed account.
    """
    if not settings.accounts:
        return ()
    found = {each.parent for each in settings.data_dir.value.glob("*/*.duckdb") if each.is_file()}
    return tuple(sorted(each for each in found if _is_unclaimed(each.name, settings.accounts)))


def _is_unclaimed(name: str, accounts: tuple[str, ...]) -> bool:
    try:
        return read_account(name) not in accounts
    except ValueError:
        return False


def _read(name: str | None, environ: Mapping[str, str], cwd: Path) -> ConfiguredAccount:
    given = {"account": name}
    try:
        return ConfiguredAccount(name, load_settings(given, environ, cwd, heeds_all=False))
    except Misused as error:
        return ConfiguredAccount(name, None, error, load_for_alerts(given, environ, cwd))


def _has_files(settings: Settings) -> bool:
    return any(each.is_file() for each in settings.folder.glob("*.duckdb"))
