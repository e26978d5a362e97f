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

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, NoReturn

from pydantic import SecretStr

from connector.errors import SettingsError, UnknownName
from connector.settings.connection import is_loopback
from connector.settings.layers import (
    CONFIG_NAME,
    ENVIRONMENT,
    FILE_ENDING,
    FLAGS,
    KEYRING_ENDING,
    PERSONAL,
    RETENTION,
    SECRETS,
    Found,
    Setting,
    Sources,
    misspelt,
    one_of,
    raw,
    read_account,
    read_config,
    refuse,
    whole,
)
from connector.settings.parts import (
    HASH_KEY_CHARACTERS_MIN,
    KINDS,
    Age,
    Connection,
    Kind,
    PushJournal,
    Security,
    Style,
    check_lakehouse,
    read_age,
    read_cron,
    read_data,
    read_ends,
    read_host,
    read_kinds,
    read_mailbox,
    read_recipients,
    read_secret,
    read_user,
    read_zone,
)
from connector.system.log import Form

RESERVE_SHARE = 20
"""The part of the month's requests that is left to people unless it is set: a twentieth."""

OnOff = Literal["on", "off"]

Treatment = Literal["keep", "drop", "hash"]
"""What becomes of personal fields in the published file."""

SCHEMAS = ("landing", "history", "sync", "push", "staging", "marts", "seeds")
"""The schemas that a published file may have."""

_NO_RULES: Setting[Mapping[str, str]] = Setting(MappingProxyType({}), "default")

MAX_AGE = "26h"
"""The age of the last proof after which an account is silent: a day, and two hours to be late."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that was set, or is the default.

    `ca_file` has authorities that are trusted besides the usual ones, and `proxy` is the way to
    the address; both are None where nothing was said of them. `log` is how commands talk.
    `account` is None for the unnamed account. `monthly_requests` is None where the plan's figure
    was not told (API 8.5); `monthly_reserve_requests` is None where a twentieth of it is meant.
    `connections` is how many requests may be under way at once,
    `lateness_seconds` how late a write may become visible, `reserve_requests` how many requests
    of each minute's window are left to people. `models` says whether models are built;
    `publish_personal` what becomes of personal fields in the published file, `publish_hash_key`
    the key by which they are hashed, and `publish_without` which schemas the file goes without.
    `*_cron` say when something happens by itself, in cron's manner or `off`, by the clock of
    `time_zone`, and `scrub_requests` what the weekly scrub may spend on looking again.
    `alert_*` say which alerts are sent and where to; `alert_email_port` is None where it follows
    from `alert_email_security`. `lakehouse` is the catalog of the shared lakehouse and
    `lakehouse_data` where its files are, both None where there is none; `lakehouse_keep_days` is
    for how long its earlier states are kept. `push_journal` says where creates are claimed.
    `retention` are rules in text, by resource. `accounts` are the names that the project file has
    tables for. `warnings` are sentences to show once.
    """

    account: Setting[str | None]
    base_url: Setting[str | None]
    api_key: Setting[SecretStr | None]
    ca_file: Setting[Path | None]
    proxy: Setting[str | None]
    data_dir: Setting[Path]
    log: Setting[Form]
    monthly_requests: Setting[int | None]
    billing_day: Setting[int]
    monthly_reserve_requests: Setting[int | None]
    connections: Setting[int]
    lateness_seconds: Setting[int]
    reserve_requests: Setting[int]
    models: Setting[OnOff]
    publish_personal: Setting[Treatment]
    publish_without: Setting[tuple[str, ...]]
    publish_hash_key: Setting[SecretStr | None]
    alert_webhook: Setting[SecretStr | None]
    alert_webhook_style: Setting[Style]
    alert_email_to: Setting[tuple[str, ...]]
    alert_email_from: Setting[str | None]
    alert_email_host: Setting[str | None]
    alert_email_port: Setting[int | None]
    alert_email_security: Setting[Security]
    alert_email_user: Setting[str | None]
    alert_email_password: Setting[SecretStr | None]
    alert_max_age: Setting[Age]
    alert_kinds: Setting[tuple[Kind, ...]]
    nightly_cron: Setting[str]
    intraday_cron: Setting[str]
    scrub_cron: Setting[str]
    scrub_requests: Setting[int]
    time_zone: Setting[str]
    lakehouse: Setting[SecretStr | None]
    lakehouse_data: Setting[str | None]
    lakehouse_keep_days: Setting[int]
    push_journal: Setting[PushJournal]
    retention: Setting[Mapping[str, str]] = _NO_RULES
    accounts: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def folder(self) -> Path:
        """The account's folder: the data folder itself for the unnamed account, else one in it."""
        name = self.account.value
        return self.data_dir.value if name is None else self.data_dir.value / name

    @property
    def monthly_reserve(self) -> int:
        """How many of the month's requests are left to people; 0 where the month has no limit."""
        allowance = self.monthly_requests.value
        if allowance is None:
            return 0
        told = self.monthly_reserve_requests.value
        return allowance // RESERVE_SHARE if told is None else told

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
            refuse("data_dir", self.folder, allowed, self.data_dir.origin)
        if not self.folder.is_dir():
            refuse("data_dir", self.folder, "a folder, not a file", self.data_dir.origin)
        return self.folder

    def connection(self) -> Connection:
        """The address and the key. Raises `SettingsError` where either is not set."""
        if self.base_url.value is None:
            self._miss("base_url", ENVIRONMENT["base_url"], f"base_url in {CONFIG_NAME}")
        if self.api_key.value is None:
            names = f"{ENVIRONMENT['api_key']} or {ENVIRONMENT['api_key_file']}"
            self._miss("api_key", names, f"api_key_file in {CONFIG_NAME}")
        return Connection(
            self.base_url.value, self.api_key.value, self.ca_file.value, self.proxy.value
        )

    def hash_key(self) -> SecretStr | None:
        """The key by which personal fields are hashed; None where they are not.

        Raises `SettingsError` where they are to be, and no key is set.
        """
        if self.publish_personal.value != "hash":
            return None
        if self.publish_hash_key.value is None:
            raise SettingsError(
                f"publish_personal is 'hash' (from {self.publish_personal.origin}), and"
                " publish_hash_key is not set",
                action=f"Set {ENVIRONMENT['publish_hash_key_file']} to a file that holds a random"
                f" word of at least {HASH_KEY_CHARACTERS_MIN} characters (chmod 600).",
            )
        return self.publish_hash_key.value

    def _miss(self, name: str, variable: str, key: str) -> NoReturn:
        names = "" if self.account.value else ", ".join(self.accounts)
        accounts = f", or choose --account: {names}" if names else ""
        raise SettingsError(f"{name} is not set", action=f"Set {variable}, or {key}{accounts}.")

    def secrets(self) -> Iterator[str]:
        """Every secret that is set, to be kept out of what is shown and of what is copied."""
        for name in SECRETS:
            setting: Setting[SecretStr | None] = getattr(self, name)
            if setting.value is not None:
                yield setting.value.get_secret_value()

    def rows(self) -> Iterator[tuple[str, str, str]]:
        """Each setting's name, its value as it may be shown, and its origin."""
        for name in ENVIRONMENT:
            secret = name.removesuffix(FILE_ENDING).removesuffix(KEYRING_ENDING)
            if secret in SECRETS and name not in SECRETS:
                continue
            setting: Setting[Any] = getattr(self, name)
            shown = "not set" if setting.value in (None, ()) else str(setting.value)
            if name in (*SECRETS, *PERSONAL) and setting.value not in (None, ()):
                shown = "set"
            elif isinstance(setting.value, tuple) and setting.value:
                shown = ", ".join(setting.value)
            yield name, shown, setting.origin


def load_settings(
    flags: Mapping[str, object],
    environ: Mapping[str, str],
    cwd: Path,
    *,
    heeds_all: bool = True,
) -> Settings:
    """Read the settings from flags (by the setting's name; None: not given), the environment and
    the project file in `cwd` or where `CONNECTOR_CONFIG` says.

    A mistake in the table of an account is refused where that account is chosen, and, if that
    `heeds_all`, where none is.
    Raises `SettingsError` or `UnknownName`, both of which end a command with exit status 2.
    """
    _check_flags(flags)
    sources = Sources(flags, environ, cwd)
    account = _choose(sources, heeds_all=heeds_all)
    warnings = list(misspelt(environ))
    settings = Settings(
        account=account,
        **read_ends(sources, warnings),
        monthly_requests=sources.pick("monthly_requests", whole(1, 10**9), None),
        billing_day=sources.pick("billing_day", whole(1, 31), 1),
        monthly_reserve_requests=sources.pick(
            "monthly_reserve_requests", whole(0, 10**9 - 1), None
        ),
        connections=sources.pick("connections", whole(1, 32), 4),
        lateness_seconds=sources.pick("lateness_seconds", whole(0, 86_400), 120),
        reserve_requests=sources.pick("reserve_requests", whole(0, 10**6), 0),
        models=sources.pick("models", one_of(OnOff), "on"),
        publish_personal=sources.pick("publish_personal", one_of(Treatment), "keep"),
        publish_without=sources.pick("publish_without", _schemas, ()),
        publish_hash_key=read_secret(sources, "publish_hash_key", warnings),
        **_alerts(sources, warnings),
        **_schedules(sources),
        lakehouse=read_secret(sources, "lakehouse", warnings),
        lakehouse_data=sources.pick("lakehouse_data", lambda f: read_data(f.raw, f.folder), None),
        lakehouse_keep_days=sources.pick("lakehouse_keep_days", whole(0, 36_500), 30),
        push_journal=sources.pick("push_journal", one_of(PushJournal), "folder"),
        retention=_retention(sources),
        accounts=tuple(sources.tables),
        warnings=tuple(warnings),
    )
    _check_reserve(settings)
    _check_email(settings)
    check_lakehouse(settings.lakehouse, settings.lakehouse_data, settings.data_dir)
    # A pull that cannot publish in the end had better not begin.
    settings.hash_key()
    return settings


def _retention(sources: Sources) -> Setting[Mapping[str, str]]:
    """The rules on retention by resource, as they are written; `connector/privacy` reads them."""
    found = sources.inner(RETENTION)
    if found is None:
        return _NO_RULES
    rules = found.raw
    if not isinstance(rules, dict) or not all(isinstance(each, str) for each in rules.values()):
        refuse(RETENTION, rules, "a table of rules in text, by resource", found.origin)
    return Setting(MappingProxyType(rules), found.origin)


def _alerts(sources: Sources, warnings: list[str]) -> dict[str, Any]:
    """The settings on alerts, by their names."""
    return {
        "alert_webhook": read_secret(sources, "alert_webhook", warnings),
        "alert_webhook_style": sources.pick("alert_webhook_style", one_of(Style), "generic"),
        "alert_email_to": sources.pick("alert_email_to", raw(read_recipients), ()),
        "alert_email_from": sources.pick("alert_email_from", raw(read_mailbox), None),
        "alert_email_host": sources.pick("alert_email_host", raw(read_host), None),
        "alert_email_port": sources.pick("alert_email_port", whole(1, 65_535), None),
        "alert_email_security": sources.pick("alert_email_security", one_of(Security), "starttls"),
        "alert_email_user": sources.pick("alert_email_user", raw(read_user), None),
        "alert_email_password": read_secret(sources, "alert_email_password", warnings),
        "alert_max_age": sources.pick("alert_max_age", raw(read_age), read_age(MAX_AGE)),
        "alert_kinds": sources.pick("alert_kinds", raw(read_kinds), KINDS),
    }


def _check_flags(flags: Mapping[str, object]) -> None:
    """Refuse what no flag may give."""
    for name in flags:
        secret = name.removesuffix(FILE_ENDING).removesuffix(KEYRING_ENDING)
        if secret in SECRETS:
            raise SettingsError(
                "a key is never taken from a flag, since process lists and shell histories show it",
                action=f"Set {ENVIRONMENT[secret]} or {ENVIRONMENT[f'{secret}{FILE_ENDING}']}.",
            )
        if name not in FLAGS:
            raise UnknownName("setting that a flag may give", name, FLAGS)


def _choose(sources: Sources, *, heeds_all: bool) -> Setting[str | None]:
    """Read the project file, and choose the account whose table counts."""
    read_config(sources)
    account = sources.pick("account", lambda f: read_account(f.raw), None)
    if account.value is not None and sources.tables and account.value not in sources.tables:
        raise UnknownName(
            f"configured account of {sources.config_name} ({account.origin})",
            account.value,
            sources.tables,
        )
    sources.account = account.value
    for name, error in sources.broken.items():
        if name == account.value or (account.value is None and heeds_all):
            raise error
    return account


def _schedules(sources: Sources) -> dict[str, Any]:
    """The settings on schedules, by their names."""
    return {
        "nightly_cron": sources.pick("nightly_cron", raw(read_cron), "15 2 * * *"),
        "intraday_cron": sources.pick("intraday_cron", raw(read_cron), "0 7-18 * * 1-5"),
        "scrub_cron": sources.pick("scrub_cron", raw(read_cron), "30 3 * * 6"),
        "scrub_requests": sources.pick("scrub_requests", whole(0, 10**6), 500),
        "time_zone": sources.pick("time_zone", raw(read_zone), "UTC"),
    }


def _check_reserve(settings: Settings) -> None:
    """Refuse a reserve that leaves nothing to pull with."""
    allowance, reserve = settings.monthly_requests, settings.monthly_reserve_requests
    if allowance.value is not None and settings.monthly_reserve >= allowance.value:
        allowed = f"less than monthly_requests, {allowance.value} (from {allowance.origin})"
        refuse("monthly_reserve_requests", reserve.value, allowed, reserve.origin)


def _check_email(settings: Settings) -> None:
    """Refuse a mail server that is half described, and one that would be told secrets openly."""
    needed = ("alert_email_to", "alert_email_from", "alert_email_host")
    given = [name for name in needed if getattr(settings, name).value]
    missing = [ENVIRONMENT[name] for name in needed if name not in given]
    if given and missing:
        raise SettingsError(
            f"{' and '.join(given)} (from {getattr(settings, given[0]).origin}) cannot do without"
            " the rest of what an email needs",
            action=f"Set {' and '.join(missing)} as well.",
        )
    user, password = settings.alert_email_user, settings.alert_email_password
    if (user.value is None) != (password.value is None):
        raise SettingsError(
            "one of alert_email_user and alert_email_password is set, and they belong together",
            action=f"Set {ENVIRONMENT['alert_email_user']} and"
            f" {ENVIRONMENT[f'alert_email_password{FILE_ENDING}']}, or neither.",
        )
    host, security = settings.alert_email_host.value, settings.alert_email_security
    if security.value == "none" and host is not None and not is_loopback(host):
        allowed = "starttls or ssl: without either only a server on this machine may be used"
        refuse("alert_email_security", security.value, allowed, security.origin)


def _schemas(found: Found) -> tuple[str, ...]:
    """Names parted by commas, or a list of them in the project file."""
    given = found.raw.split(",") if isinstance(found.raw, str) else found.raw
    names = [str(each).strip() for each in given] if isinstance(given, list) else [""]
    if not set(names) <= set(SCHEMAS):
        raise ValueError(f"some of: {', '.join(SCHEMAS)}")
    return tuple(each for each in SCHEMAS if each in names)
