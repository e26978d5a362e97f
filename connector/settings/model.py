"""Settings of one account, which `docs/SETTINGS.md` describes; no message or `repr` shows a key."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, Field, PlainValidator, SecretStr, model_validator

from connector.errors import SettingsError
from connector.log import Form
from connector.settings import values
from connector.settings.folders import parse_account_name

OnOff = Literal["on", "off"]

Treatment = Literal["keep", "drop", "hash"]
"""Treatment of personal fields in the published file."""

_Cron = Annotated[str, PlainValidator(values.parse_cron)]


def _whole(least: int, most: int) -> PlainValidator:
    return PlainValidator(values.whole_number(least, most))


def _secret(parse: Any) -> AfterValidator:
    return AfterValidator(lambda secret: SecretStr(parse(secret.get_secret_value())))


class Settings(BaseModel):
    """Settings of one account. Each secret may come from a file, under a name ending in `_file`.

    `accounts` are the names of the tables in the project file, `warnings` are sentences to show
    once, and `origins` has the option, variable or file of each setting that is set.
    """

    model_config = {"frozen": True, "extra": "forbid", "hide_input_in_errors": True}

    account: Annotated[str | None, PlainValidator(parse_account_name)] = None
    base_url: Annotated[str | None, PlainValidator(values.parse_address)] = None
    api_key: Annotated[SecretStr, _secret(values.parse_key)] | None = None
    ca_file: Path | None = None
    proxy: Annotated[str | None, PlainValidator(values.parse_proxy)] = None
    data_dir: Path = Path("data")
    log: Form = "text"
    region: Annotated[str, PlainValidator(values.parse_region)] = "GB"

    monthly_requests: Annotated[int | None, _whole(1, 10**9)] = None
    billing_day: Annotated[int, _whole(1, 31)] = 1
    connections: Annotated[int, _whole(1, 32)] = 4
    lateness_seconds: Annotated[int, _whole(0, 86_400)] = 120

    models: OnOff = "on"
    models_folder: Path | None = None
    publish_personal: Treatment = "keep"
    publish_without: Annotated[tuple[str, ...], PlainValidator(values.parse_left_out)] = ()
    publish_hash_key: Annotated[SecretStr, _secret(values.parse_hash_key)] | None = None

    notify_urls: Annotated[SecretStr, _secret(values.parse_notify_urls)] | None = None
    max_age: Annotated[values.Age, PlainValidator(values.parse_age)] = values.parse_age("26h")

    nightly_cron: _Cron = "15 2 * * *"
    intraday_cron: _Cron = "0 7-18 * * 1-5"
    verification_cron: _Cron = "30 3 * * 6"
    verification_requests: Annotated[int, _whole(0, 10**6)] = 500
    time_zone: Annotated[str, PlainValidator(values.parse_zone)] = "UTC"

    record_url: Annotated[str | None, PlainValidator(values.parse_record_url)] = None

    accounts: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    origins: Mapping[str, str] = Field(default={}, repr=False)

    @model_validator(mode="after")
    def _check_hash_key(self) -> Self:
        """Refuse `hash` without a key: better no pull than one that cannot publish in the end."""
        if self.publish_personal == "hash" and self.publish_hash_key is None:
            raise SettingsError(
                f"publish_personal is 'hash' (from {self.origin('publish_personal')}), and"
                " publish_hash_key is not set",
                action=f"Set {ENVIRONMENT['publish_hash_key_file']} to a file that contains a "
                f"random word of at least {values.HASH_KEY_CHARACTERS_MIN} characters (chmod 600).",
            )
        return self

    @property
    def folder(self) -> Path:
        """Folder of the account: the data folder for the unnamed account, else a folder in it."""
        return self.data_dir if self.account is None else self.data_dir / self.account

    @property
    def monthly_reserve(self) -> int:
        """A twentieth of the monthly quota, which pulls leave to users; 0 without a quota."""
        return (self.monthly_requests or 0) // 20

    def origin(self, name: str) -> str:
        """Return where the setting was found, or "default"."""
        return self.origins.get(name, "default")

    def invalid(self, name: str, allowed: str) -> SettingsError:
        """Return the error for a value that is not `allowed`."""
        return invalid_value(name, getattr(self, name), self.origin(name), allowed)

    def connection(self) -> tuple[str, SecretStr]:
        """Return the address and the key. Raises `SettingsError` if one of them is not set."""
        if self.base_url is None:
            raise self._missing("base_url", "CONNECTOR_BASE_URL, or base_url")
        if self.api_key is None:
            sources = "CONNECTOR_API_KEY or CONNECTOR_API_KEY_FILE, or api_key_file"
            raise self._missing("api_key", sources)
        return self.base_url, self.api_key

    def _missing(self, name: str, sources: str) -> SettingsError:
        names = "" if self.account else ", ".join(self.accounts)
        accounts = f", or choose --account: {names}" if names else ""
        action = f"Set {sources} in connector.toml{accounts}."
        return SettingsError(f"{name} is not set", action=action)

    def replace_variables_by_origins(self, text: str) -> str:
        """Replace a text's variables of the address and the key by the place where they are set."""
        for name in ("base_url", "api_key"):
            variable, origin = ENVIRONMENT[name], self.origin(name)
            if origin not in ("default", variable):
                text = f"{name} ({origin})".join(re.split(rf"\b{variable}\b", text))
        return text

    def secrets(self) -> Iterator[str]:
        """Yield every secret that is set."""
        found = (getattr(self, name) for name in SECRETS)
        yield from (each.get_secret_value() for each in found if each is not None)

    def display_rows(self) -> Iterator[tuple[str, str, str]]:
        """Yield each setting's name, its value or "set" for a secret, and its origin."""
        for name in NAMES:
            value = getattr(self, name)
            shown = ", ".join(value) if isinstance(value, tuple) else str(value)
            if value in (None, ()):
                shown = "not set"
            elif isinstance(value, SecretStr):
                shown = "set"
            yield name, shown, self.origin(name)


NAMES = tuple(Settings.model_fields)[:-3]
"""The name of each setting."""

SECRETS = tuple(n for n in NAMES if "SecretStr" in str(Settings.model_fields[n].annotation))
"""Settings that are never shown, and not allowed as an option or in the project file."""

SECRET_FILES = tuple(f"{name}_file" for name in SECRETS)

PATHS = (*(n for n in NAMES if "Path" in str(Settings.model_fields[n].annotation)), *SECRET_FILES)
"""Settings whose relative paths start at the folder of the project file."""

ENVIRONMENT: Mapping[str, str] = {
    each: f"CONNECTOR_{each.upper()}"
    for name in NAMES
    for each in ((name, f"{name}_file") if name in SECRETS else (name,))
}
"""The environment variable of each setting, and of the file of each secret."""


def invalid_value(name: str, received: object, origin: str, allowed: str) -> SettingsError:
    """Return the error for a value, with its origin and the allowed values, without a secret."""
    if name in SECRETS:
        return SettingsError(f"{name} {allowed} (from {origin})")
    if name in SECRET_FILES:
        return SettingsError(f"{name} (from {origin}) must be {allowed}")
    shown = repr(str(received) if isinstance(received, Path) else received)
    if name == "base_url":
        shown = redact_address(str(received))
    shown = shown if len(shown) <= 120 else f"{shown[:120]}…"
    return SettingsError(f"{name} is {shown} (from {origin}): it must be {allowed}")


def redact_address(raw: str) -> str:
    """Quote an invalid address without password and query; without a scheme, it may be a key."""
    scheme, mark, rest = raw.partition("://")
    if not mark:
        return "a value without 'https://'"
    return repr(f"{scheme}://{re.split(r'[?#]', rest.rpartition('@')[2])[0]}")
