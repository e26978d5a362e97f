"""Settings of one account: each is declared here, once, with its default.

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

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal, NoReturn, get_type_hints

from pydantic import SecretStr

from connector.errors import ConnectorError, Misused, SettingsError, UnknownName
from connector.log import Form
from connector.settings import values
from connector.settings.credentials import (
    HASH_KEY_CHARACTERS_MIN,
    find_secret,
    parse_hash_key,
    parse_key,
)
from connector.settings.layers import (
    CONFIG_NAME,
    CONFIG_VARIABLE,
    FILE_ENDING,
    Layers,
    Setting,
    SettingRule,
    find_misspelt_variables,
    parse_account_name,
    raise_invalid_value,
    read_project_file,
    variable_name,
)
from connector.settings.values import Age

RESERVE_SHARE = 20
"""The part of the month's requests that is left to people unless it is set: a twentieth."""

OnOff = Literal["on", "off"]

Treatment = Literal["keep", "drop", "hash"]
"""What becomes of personal fields in the published file."""

SCHEMAS = ("landing", "history", "sync", "push", "staging", "marts", "seeds")
"""The schemas that a published file may have."""


@dataclass(frozen=True, slots=True)
class Connection:
    """Connection to the API: the address before `/api/v1`, and the key.

    `ca_file` has an additional trusted certificate authority; `proxy` is the address of a proxy.
    """

    base_url: str
    api_key: SecretStr
    ca_file: Path | None = None
    proxy: str | None = None

    def client_options(self) -> dict[str, Any]:
        """Return the options of `Client` for the certificate authority and the proxy, if set."""
        given = {"ca_file": self.ca_file, "proxy": self.proxy}
        return {name: value for name, value in given.items() if value is not None}


# Each secret may come from a file as well, under a name that ends in `_file`.
secret = partial(SettingRule, is_secret=True)


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of one account, described in `docs/SETTINGS.md`."""

    account: Annotated[Setting[str | None], SettingRule(parse_account_name, is_global=True)]
    """None for the unnamed account."""

    base_url: Annotated[Setting[str | None], SettingRule(values.parse_address, is_identity=True)]
    api_key: Annotated[Setting[SecretStr | None], secret(parse_key, is_identity=True)]
    ca_file: Annotated[Setting[Path | None], SettingRule(values.require_path, may_be_relative=True)]
    proxy: Annotated[Setting[str | None], SettingRule(values.parse_proxy)]
    data_dir: Annotated[
        Setting[Path],
        SettingRule(values.require_path, Path("data"), may_be_relative=True, is_global=True),
    ]
    log: Annotated[Setting[Form], SettingRule(values.choice_parser(Form), "text")]

    monthly_requests: Annotated[
        Setting[int | None], SettingRule(values.whole_number_parser(1, 10**9))
    ]
    """None where the plan's figure was not told (API 8.5)."""

    billing_day: Annotated[Setting[int], SettingRule(values.whole_number_parser(1, 31), 1)]
    monthly_reserve_requests: Annotated[
        Setting[int | None], SettingRule(values.whole_number_parser(0, 10**9 - 1))
    ]
    """None: a twentieth of `monthly_requests`."""

    connections: Annotated[Setting[int], SettingRule(values.whole_number_parser(1, 32), 4)]
    lateness_seconds: Annotated[
        Setting[int], SettingRule(values.whole_number_parser(0, 86_400), 120)
    ]
    reserve_requests: Annotated[Setting[int], SettingRule(values.whole_number_parser(0, 10**6), 0)]

    models: Annotated[Setting[OnOff], SettingRule(values.choice_parser(OnOff), "on")]
    models_folder: Annotated[
        Setting[Path | None], SettingRule(values.require_path, may_be_relative=True)
    ]
    models_schema: Annotated[Setting[str], SettingRule(values.schema_name_parser(SCHEMAS), "own")]
    publish_personal: Annotated[
        Setting[Treatment], SettingRule(values.choice_parser(Treatment), "keep")
    ]
    publish_without: Annotated[
        Setting[tuple[str, ...]], SettingRule(values.schemas_or_columns_parser(SCHEMAS), ())
    ]
    publish_hash_key: Annotated[Setting[SecretStr | None], secret(parse_hash_key)]

    notify_urls: Annotated[Setting[SecretStr | None], secret(values.parse_notify_urls)]
    max_age: Annotated[Setting[Age], SettingRule(values.parse_age, values.parse_age("26h"))]
    """By default a day, and two hours to be late."""

    nightly_cron: Annotated[Setting[str], SettingRule(values.parse_cron, "15 2 * * *")]
    intraday_cron: Annotated[Setting[str], SettingRule(values.parse_cron, "0 7-18 * * 1-5")]
    verification_cron: Annotated[Setting[str], SettingRule(values.parse_cron, "30 3 * * 6")]
    verification_requests: Annotated[
        Setting[int], SettingRule(values.whole_number_parser(0, 10**6), 500)
    ]
    time_zone: Annotated[Setting[str], SettingRule(values.parse_zone, "UTC")]

    import_keep_days: Annotated[Setting[int], SettingRule(values.whole_number_parser(1, 365), 7)]
    import_file_mb: Annotated[Setting[int], SettingRule(values.whole_number_parser(1, 1_000), 50)]
    record_url: Annotated[Setting[str | None], SettingRule(values.parse_record_url)]

    accounts: tuple[str, ...] = ()
    """The names that the project file has tables for."""

    warnings: tuple[str, ...] = ()
    """Sentences to show once."""

    @property
    def folder(self) -> Path:
        """Folder of the account: the data folder for the unnamed account, else a folder in it."""
        name = self.account.value
        return self.data_dir.value if name is None else self.data_dir.value / name

    @property
    def monthly_reserve(self) -> int:
        """Requests of the monthly quota that the connector does not use; 0 without a quota."""
        allowance, reserve = self.monthly_requests.value, self.monthly_reserve_requests.value
        if allowance is None:
            return 0
        return allowance // RESERVE_SHARE if reserve is None else reserve

    def make_folder(self) -> Path:
        """Create the account's folder with access for its owner only, and return its path.

        An existing folder is not changed. Raises `SettingsError`.
        """
        try:
            missing = [f for f in (self.folder, *self.folder.parents) if not f.exists()]
            for each in reversed(missing):
                each.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            allowed = f"a folder that can be made: {error.strerror}"
            raise_invalid_value("data_dir", self.folder, allowed, self.data_dir.origin)
        if not self.folder.is_dir():
            raise_invalid_value(
                "data_dir", self.folder, "a folder, not a file", self.data_dir.origin
            )
        return self.folder

    def connection(self) -> Connection:
        """Return the address and the key. Raises `SettingsError` if one of them is not set."""
        if self.base_url.value is None:
            self._raise_missing("base_url", ENVIRONMENT["base_url"], f"base_url in {CONFIG_NAME}")
        if self.api_key.value is None:
            names = f"{ENVIRONMENT['api_key']} or {ENVIRONMENT['api_key_file']}"
            self._raise_missing("api_key", names, f"api_key_file in {CONFIG_NAME}")
        return Connection(
            self.base_url.value, self.api_key.value, self.ca_file.value, self.proxy.value
        )

    def _raise_missing(self, name: str, variable: str, key: str) -> NoReturn:
        """Raise `SettingsError` with the places where the setting can be set."""
        names = "" if self.account.value else ", ".join(self.accounts)
        accounts = f", or choose --account: {names}" if names else ""
        raise SettingsError(f"{name} is not set", action=f"Set {variable}, or {key}{accounts}.")

    def hash_key(self) -> SecretStr | None:
        """Return the key that hashes personal fields; None if they are not hashed.

        Raises `SettingsError` if they are hashed and no key is set.
        """
        if self.publish_personal.value != "hash":
            return None
        if self.publish_hash_key.value is None:
            raise SettingsError(
                f"publish_personal is 'hash' (from {self.publish_personal.origin}), and"
                " publish_hash_key is not set",
                action=f"Set {ENVIRONMENT['publish_hash_key_file']} to a file that contains a "
                f"random word of at least {HASH_KEY_CHARACTERS_MIN} characters (chmod 600).",
            )
        return self.publish_hash_key.value

    def replace_variables_by_origins(self, text: str) -> str:
        """Replace a text's variables of the address and the key by the place where they are set."""
        for name in ("base_url", "api_key"):
            variable, origin = ENVIRONMENT[name], getattr(self, name).origin
            if origin not in ("default", variable):
                text = f"{name} ({origin})".join(re.split(rf"\b{variable}\b", text))
        return text

    def secrets(self) -> Iterator[str]:
        """Yield every secret that is set."""
        for name, rule in RULES.items():
            if rule.is_secret and (value := getattr(self, name).value) is not None:
                yield value.get_secret_value()

    def display_rows(self) -> Iterator[tuple[str, str, str]]:
        """Yield each setting's name, its value or "set" for a secret, and its origin."""
        for name, rule in RULES.items():
            if rule.place_of:
                continue
            found: Setting[Any] = getattr(self, name)
            if found.value in (None, ()):
                shown = "not set"
            elif rule.is_secret or rule.is_personal:
                shown = "set"
            else:
                shown = (
                    ", ".join(found.value) if isinstance(found.value, tuple) else str(found.value)
                )
            yield name, shown, found.origin


def _declared_rules() -> Iterator[tuple[str, SettingRule]]:
    """Yield the rules of the settings in `Settings`, and of settings that name a secret's place."""
    for name, hint in get_type_hints(Settings, include_extras=True).items():
        for rule in getattr(hint, "__metadata__", ()):
            yield name, rule
            if rule.is_secret:
                place = replace(rule, parse=values.require_path, is_secret=False, place_of=name)
                yield f"{name}{FILE_ENDING}", replace(place, may_be_relative=True)


RULES: Mapping[str, SettingRule] = MappingProxyType(dict(_declared_rules()))
"""The rule of each setting, and of each place of a secret, by name."""

ENVIRONMENT: Mapping[str, str] = MappingProxyType({name: variable_name(name) for name in RULES})
"""The environment variable of each setting."""

_HIDDEN = frozenset(name for name, rule in RULES.items() if rule.is_secret or rule.place_of)


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
    cwd = cwd.absolute()
    _check_flags(flags)
    layers = Layers(RULES, flags, environ, cwd)
    read_project_file(layers)
    _choose_account(layers, checks_all_accounts=checks_all_accounts)
    warnings = list(find_misspelt_variables(environ, (*ENVIRONMENT.values(), CONFIG_VARIABLE)))
    found: dict[str, Any] = {
        name: find_secret(layers, name, warnings) if rule.is_secret else layers.setting(name)
        for name, rule in RULES.items()
        if not rule.place_of
    }
    settings = Settings(**found, accounts=tuple(layers.account_tables), warnings=tuple(warnings))
    _check_reserve(settings)
    # A pull that cannot publish in the end had better not begin.
    settings.hash_key()
    return settings


def load_for_alerts(
    flags: Mapping[str, object], environ: Mapping[str, str], cwd: Path = Path()
) -> Settings | None:
    """Load settings with errors, to send an alert about the errors.

    Invalid settings get their defaults. Return None if the account or its folder is unknown.
    """
    layers = Layers(RULES, flags, environ, cwd.absolute())
    try:
        read_project_file(layers)
    except Misused:
        if variable_name("data_dir") not in environ:
            return None
    found: dict[str, Any] = {}
    try:
        name = layers.account = layers.setting("account").value
    except Misused:
        return None
    if layers.account_tables and name not in layers.account_tables:
        return None
    if name in layers.table_errors:
        table = layers.account_tables[name] if isinstance(layers.account_tables[name], dict) else {}
        known = {each: value for each, value in table.items() if each in RULES}
        layers.account_tables = {**layers.account_tables, name: known}
    for each, rule in RULES.items():
        if not rule.place_of:
            try:
                found[each] = (
                    find_secret(layers, each, []) if rule.is_secret else layers.setting(each)
                )
            except Misused:
                found[each] = Setting(rule.default, "default")
    return Settings(**found, accounts=tuple(layers.account_tables))


def account_names(environ: Mapping[str, str], cwd: Path) -> tuple[str, ...]:
    """Return the accounts with a table in the project file. Raises an error if it is invalid."""
    layers = Layers(RULES, {}, environ, cwd)
    read_project_file(layers)
    return tuple(layers.account_tables)


def _check_flags(flags: Mapping[str, object]) -> None:
    """Raise `SettingsError` for a key given as an option, `UnknownName` for an unknown option."""
    for name in flags:
        if name in _HIDDEN:
            hidden = RULES[name].place_of or name
            raise SettingsError(
                (
                    "a key cannot be given as an option, because process lists and shell "
                    "histories show it"
                ),
                action=f"Set {ENVIRONMENT[hidden]} or {ENVIRONMENT[f'{hidden}{FILE_ENDING}']}.",
            )
        if name not in ENVIRONMENT:
            known = [each for each in ENVIRONMENT if each not in _HIDDEN]
            raise UnknownName("setting that a flag may give", name, known)


def _choose_account(layers: Layers, *, checks_all_accounts: bool) -> None:
    """Set the account of the layers. Raises `UnknownName`, or the error in an account's table."""
    account: Setting[str | None] = layers.setting("account")
    if (
        account.value is not None
        and layers.account_tables
        and account.value not in layers.account_tables
    ):
        raise UnknownName(
            f"configured account of {layers.project_file_name} ({account.origin})",
            account.value,
            layers.account_tables,
        )
    layers.account = account.value
    for name, error in layers.table_errors.items():
        if name == account.value or (account.value is None and checks_all_accounts):
            raise error


def _check_reserve(settings: Settings) -> None:
    """Raise `SettingsError` if the reserve is as large as the monthly quota."""
    allowance, reserve = settings.monthly_requests, settings.monthly_reserve_requests
    if allowance.value is not None and settings.monthly_reserve >= allowance.value:
        allowed = f"less than monthly_requests, {allowance.value} (from {allowance.origin})"
        raise_invalid_value("monthly_reserve_requests", reserve.value, allowed, reserve.origin)


# -- Accounts -------------------------------------------------------------------------------------
# Accounts that are configured, each with its settings, or why it has none.
#
# A mistake in the settings of one account keeps no other from being looked at.


UNNAMED = "(unnamed)"
"""How the account without a name is written where each stands by its name."""

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
    names = account_names(environ, cwd)
    unnamed, named = (
        _load_account(None, environ, cwd),
        [_load_account(name, environ, cwd) for name in names],
    )
    found = unnamed.settings
    # The project file may choose one of its accounts as the default.
    is_there = found is not None and found.account.value is None and _has_database_files(found)
    return (unnamed, *named) if is_there or not names else tuple(named)


def require_account(settings: Settings, *, creates: bool = False) -> Settings:
    """Return the settings if it is clear which account they belong to.

    Raises `Misused` if an account must be chosen, or if the chosen account does not exist and the
    command does not create it (`creates`).
    """
    name = settings.account.value
    if (
        name is not None
        and not settings.accounts
        and not creates
        and not _has_database_files(settings)
    ):
        known = ", ".join(_account_folder_names(settings)) or "none"
        raise Misused(
            f"{name!r} ({settings.account.origin}) is not a known account: {CONFIG_NAME} has no"
            f" accounts, and {settings.data_dir.value} has no folder of that name. Known: {known}",
            action=f"Correct the name, add [accounts.{name}] to {CONFIG_NAME}, or create a new "
            f"account with 'connector pull --account {name} --create'.",
        )
    is_meant = settings.account.value is not None or settings.base_url.value is not None
    if settings.accounts and not is_meant and not _has_database_files(settings):
        names = ", ".join(settings.accounts)
        raise Misused("no account is chosen", action=f"Choose one with --account: {names}.")
    return settings


def _account_folder_names(settings: Settings) -> list[str]:
    """Return the names of accounts that have databases in the data folder."""
    data_dir = settings.data_dir.value
    named = {each.parent.name for each in data_dir.glob("*/*.duckdb") if each.is_file()}
    unnamed = [UNNAMED] if any(each.is_file() for each in data_dir.glob("*.duckdb")) else []
    return [*unnamed, *sorted(name for name in named if _is_unclaimed(name, ()))]


def refuse_shared_credentials(settings: Settings) -> Settings:
    """Return the settings if the environment does not set one address or key for several accounts.

    Raises `SettingsError` otherwise: every account would be a copy of the same workspace.
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


def _is_unclaimed(name: str, accounts: tuple[str, ...]) -> bool:
    """Return True if the name is valid for an account and is not one of `accounts`."""
    try:
        return parse_account_name(name) not in accounts
    except ValueError:
        return False


def _load_account(name: str | None, environ: Mapping[str, str], cwd: Path) -> ConfiguredAccount:
    """Return an account of the project file with its settings or their error."""
    given = {"account": name}
    try:
        return ConfiguredAccount(
            name, load_settings(given, environ, cwd, checks_all_accounts=False)
        )
    except Misused as error:
        return ConfiguredAccount(name, None, error, load_for_alerts(given, environ, cwd))


def _has_database_files(settings: Settings) -> bool:
    """Return True if the account's folder contains DuckDB files."""
    return any(each.is_file() for each in settings.folder.glob("*.duckdb"))
