"""Accounts that are configured, each with its settings, or why it has none.

A mistake in the settings of one account keeps no other from being looked at.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from connector.errors import ConnectorError, Misused
from connector.settings.model import ENVIRONMENT, Settings, account_names, load_settings

UNNAMED = "(unnamed)"
"""How the account without a name is written where each stands by its name."""


@dataclass(frozen=True, slots=True)
class Configured:
    """An account by its name (None: the unnamed one), and its settings or their error."""

    name: str | None
    settings: Settings | None
    error: ConnectorError | None = None

    @property
    def title(self) -> str:
        """The name as a person reads it."""
        return self.name or UNNAMED

    def required(self) -> Settings:
        """The settings; what is wrong with them is raised where there are none."""
        if self.settings is None:
            raise self.error or AssertionError(f"{self.title} has neither settings nor an error")
        return self.settings


def configured_accounts(environ: Mapping[str, str], cwd: Path) -> tuple[Configured, ...]:
    """Accounts of the project file, and the unnamed one where it is in use.

    That is where no account is named, or where the unnamed one has files of its own. The account
    that the environment chooses is not preferred.

    Raises `SettingsError` or `UnknownName` where the project file itself cannot be used.
    """
    environ = {name: value for name, value in environ.items() if name != ENVIRONMENT["account"]}
    names = account_names(environ, cwd)
    unnamed, named = _read(None, environ, cwd), [_read(name, environ, cwd) for name in names]
    found = unnamed.settings
    # The project file may choose one of its own accounts where none is said.
    is_there = found is not None and found.account.value is None and _has_files(found)
    return (unnamed, *named) if is_there or not names else tuple(named)


def _read(name: str | None, environ: Mapping[str, str], cwd: Path) -> Configured:
    try:
        given = {"account": name}
        return Configured(name, load_settings(given, environ, cwd, heeds_all=False))
    except Misused as error:
        return Configured(name, None, error)


def _has_files(settings: Settings) -> bool:
    return any(each.is_file() for each in settings.folder.glob("*.duckdb"))
