"""Settings of one account: each is declared here, once, with its default.

`docs/SETTINGS.md` describes them. Nothing here reads a file, the environment or a clock, and no key
is ever shown: not by a message, and not by `repr`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, PlainValidator, SecretStr

from connector.errors import SettingsError
from connector.log import Form
from connector.settings import values
from connector.settings.folders import parse_account_name

FILE_ENDING = "_file"
"""End of the name of the setting that names a secret's file."""

RESERVE_SHARE = 20
"""The part of the month's requests that is left to users: a twentieth."""

OnOff = Literal["on", "off"]

Treatment = Literal["keep", "drop", "hash"]
"""Treatment of personal fields in the published file."""

_PATH = PlainValidator(values.parse_path)
_CRON = PlainValidator(values.parse_cron)
_SHOWN_CHARACTERS_MAX = 120


def _whole(least: int, most: int) -> PlainValidator:
    return PlainValidator(values.whole_number(least, most))


def _secret(parse: Any) -> AfterValidator:
    return AfterValidator(lambda secret: SecretStr(parse(secret.get_secret_value())))


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
        """Return the options of `Client` for the certificate authority and the proxy."""
        return {"ca_file": self.ca_file, "proxy": self.proxy}


class Settings(BaseModel):
    """Settings of one account. Each secret may come from a file, under a name ending in `_file`.

    Attributes:
        account: None for the unnamed account.
        monthly_requests: None if the plan's limit was not set (API 8.5).
        accounts: Names of the tables in the project file.
        warnings: Sentences to show once.
        origins: Option, variable or file of each setting that is set.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    account: Annotated[str | None, PlainValidator(parse_account_name)] = None
    base_url: Annotated[str | None, PlainValidator(values.parse_address)] = None
    api_key: Annotated[SecretStr, _secret(values.parse_key)] | None = None
    ca_file: Annotated[Path | None, _PATH] = None
    proxy: Annotated[str | None, PlainValidator(values.parse_proxy)] = None
    data_dir: Annotated[Path, _PATH] = Path("data")
    log: Form = "text"
    region: Annotated[str, PlainValidator(values.parse_region)] = "GB"

    monthly_requests: Annotated[int | None, _whole(1, 10**9)] = None
    billing_day: Annotated[int, _whole(1, 31)] = 1
    connections: Annotated[int, _whole(1, 32)] = 4
    lateness_seconds: Annotated[int, _whole(0, 86_400)] = 120

    models: OnOff = "on"
    models_folder: Annotated[Path | None, _PATH] = None
    publish_personal: Treatment = "keep"
    publish_without: Annotated[tuple[str, ...], PlainValidator(values.parse_left_out)] = ()
    publish_hash_key: Annotated[SecretStr, _secret(values.parse_hash_key)] | None = None

    notify_urls: Annotated[SecretStr, _secret(values.parse_notify_urls)] | None = None
    max_age: Annotated[values.Age, PlainValidator(values.parse_age)] = values.parse_age("26h")

    nightly_cron: Annotated[str, _CRON] = "15 2 * * *"
    intraday_cron: Annotated[str, _CRON] = "0 7-18 * * 1-5"
    verification_cron: Annotated[str, _CRON] = "30 3 * * 6"
    verification_requests: Annotated[int, _whole(0, 10**6)] = 500
    time_zone: Annotated[str, PlainValidator(values.parse_zone)] = "UTC"

    record_url: Annotated[str | None, PlainValidator(values.parse_record_url)] = None

    accounts: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    origins: Mapping[str, str] = Field(default={}, repr=False)

    @property
    def folder(self) -> Path:
        """Folder of the account: the data folder for the unnamed account, else a folder in it."""
        return self.data_dir if self.account is None else self.data_dir / self.account

    @property
    def monthly_reserve(self) -> int:
        """Requests of the monthly quota that pulls leave to users; 0 without a quota."""
        return (self.monthly_requests or 0) // RESERVE_SHARE

    def origin(self, name: str) -> str:
        """Return where the setting was found, or "default"."""
        return self.origins.get(name, "default")

    def invalid(self, name: str, allowed: str) -> SettingsError:
        """Return the error for a value that is not `allowed`."""
        return invalid_value(name, getattr(self, name), allowed, self.origin(name))

    def make_folder(self) -> Path:
        """Create the account's folder with access for its owner only, and return its path.

        An existing folder is not changed. Raises `SettingsError`.
        """
        try:
            missing = [f for f in (self.folder, *self.folder.parents) if not f.exists()]
            for each in reversed(missing):
                each.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise self.invalid("data_dir", f"a folder that can be made: {error.strerror}") from None
        if not self.folder.is_dir():
            raise self.invalid("data_dir", "a folder, not a file")
        return self.folder

    def connection(self) -> Connection:
        """Return the address and the key. Raises `SettingsError` if one of them is not set."""
        names = "" if self.account else ", ".join(self.accounts)
        accounts = f", or choose --account: {names}" if names else ""
        if self.base_url is None:
            action = f"Set CONNECTOR_BASE_URL, or base_url in connector.toml{accounts}."
            raise SettingsError("base_url is not set", action=action)
        if self.api_key is None:
            variables = "CONNECTOR_API_KEY or CONNECTOR_API_KEY_FILE"
            action = f"Set {variables}, or api_key_file in connector.toml{accounts}."
            raise SettingsError("api_key is not set", action=action)
        return Connection(self.base_url, self.api_key, self.ca_file, self.proxy)

    def hash_key(self) -> SecretStr | None:
        """Return the key that hashes personal fields; None if they are not hashed.

        Raises `SettingsError` if they are hashed and no key is set.
        """
        if self.publish_personal != "hash":
            return None
        if self.publish_hash_key is None:
            raise SettingsError(
                f"publish_personal is 'hash' (from {self.origin('publish_personal')}), and"
                " publish_hash_key is not set",
                action=f"Set {ENVIRONMENT['publish_hash_key_file']} to a file that contains a "
                f"random word of at least {values.HASH_KEY_CHARACTERS_MIN} characters (chmod 600).",
            )
        return self.publish_hash_key

    def replace_variables_by_origins(self, text: str) -> str:
        """Replace a text's variables of the address and the key by the place where they are set."""
        for name in ("base_url", "api_key"):
            variable, origin = ENVIRONMENT[name], self.origin(name)
            if origin not in ("default", variable):
                text = f"{name} ({origin})".join(re.split(rf"\b{variable}\b", text))
        return text

    def secrets(self) -> Iterator[str]:
        """Yield every secret that is set."""
        for name in SECRETS:
            if (value := getattr(self, name)) is not None:
                yield value.get_secret_value()

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

SECRET_FILES = tuple(f"{name}{FILE_ENDING}" for name in SECRETS)

PATHS = (*(n for n in NAMES if "Path" in str(Settings.model_fields[n].annotation)), *SECRET_FILES)
"""Settings whose relative paths start at the folder of the project file."""

ENVIRONMENT: Mapping[str, str] = {
    each: f"CONNECTOR_{each.upper()}"
    for name in NAMES
    for each in (name, *([f"{name}{FILE_ENDING}"] if name in SECRETS else []))
}
"""The environment variable of each setting, and of the file of each secret."""


def invalid_value(name: str, received: object, allowed: str, origin: str) -> SettingsError:
    """Return the error for a value, with its origin and the allowed values, without a secret."""
    if name in SECRETS:
        return SettingsError(f"{name} {allowed} (from {origin})")
    if name in SECRET_FILES:
        return SettingsError(f"{name} (from {origin}) must be {allowed}")
    shown = repr(str(received) if isinstance(received, Path) else received)
    if name == "base_url":
        shown = redact_address(str(received))
    if len(shown) > _SHOWN_CHARACTERS_MAX:
        shown = f"{shown[:_SHOWN_CHARACTERS_MAX]}…"
    return SettingsError(f"{name} is {shown} (from {origin}): it must be {allowed}")


def redact_address(raw: str) -> str:
    """Quote an invalid address for an error, without password and query.

    A value that is not an address may be a key and is not quoted.
    """
    scheme, mark, rest = raw.partition("://")
    if not mark:
        return "a value without 'https://'"
    return repr(f"{scheme}://{re.split(r'[?#]', rest.rpartition('@')[2])[0]}")
