"""Settings layers: options, the environment and the project file, in this order.

This module finds a value and its origin. `model.py` declares the settings, and `values.py` parses
the values. No key is shown.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Generic, NoReturn, TypeVar

from connector.errors import SettingsError, UnknownName
from connector.settings.values import redact_address

T = TypeVar("T")

CONFIG_VARIABLE = "CONNECTOR_CONFIG"
"""The environment variable that names the project file; without it, `connector.toml`."""

CONFIG_NAME = "connector.toml"

FILE_ENDING = "_file"
"""What the name of a secret's file ends in, as a setting."""


INBOX_FOLDER, SEEDS_FOLDER, MAPS_FOLDER = "inbox", "seeds", "maps"
IMPORTS_FOLDER, PUSHES_FOLDER = "imports", "pushes"
DAGSTER_FOLDER = "dagster"
WAITED = "waited-"

OWN_FOLDERS: Mapping[str, str] = {
    INBOX_FOLDER: "files that the inbox pushes",
    IMPORTS_FOLDER: "imports that users prepare on the import page",
    PUSHES_FOLDER: "results of queries that were pushed",
    MAPS_FOLDER: "saved column mappings",
    SEEDS_FOLDER: "seed files of the models",
    DAGSTER_FOLDER: "Dagster's state",
    "backups": "backups",
}
"""Folders in the data folder that the connector uses, with their contents. An account of the same
name would have its databases in that folder.
"""

OWN_PREFIXES: Mapping[str, str] = {WAITED: "inbox files from before a restore"}
"""Beginnings of such folders' names that a time stamp follows."""

GROUPS = ("models", "publish")
"""Tables of the project file whose keys are settings: `folder` in `[models]` is `models_folder`."""

_TABLES_ALLOWED = "must be tables such as [accounts.acme]"
_SHOWN_CHARACTERS_MAX = 120


@dataclass(frozen=True, slots=True)
class Setting(Generic[T]):
    """Value of a setting and its origin: an option, a variable, the project file, or "default"."""

    value: T
    origin: str


@dataclass(frozen=True, slots=True)
class SettingRule:
    """Declaration of a setting: how its value is parsed, and where it may be set.

    Attributes:
        parse: Converts a raw value; raises `ValueError` with the allowed values.
        is_secret: Never shown; not allowed as an option or in the project file.
        place_of: Name of the secret whose file this setting names.
        is_personal: Contains personal data, and is never shown.
        is_identity: Account tables do not inherit the value from the top of the project file.
        may_be_relative: A relative path starts at the folder of the project file.
        is_global: Not allowed in an account's table.
    """

    parse: Callable[[Any], Any]
    default: object = None
    is_secret: bool = False
    place_of: str = ""
    is_personal: bool = False
    is_identity: bool = False
    may_be_relative: bool = False
    is_global: bool = False


@dataclass(frozen=True, slots=True)
class RawValue:
    """Value of a setting before it is parsed, and its origin."""

    name: str
    raw: object
    origin: str
    rule: SettingRule

    def parse(self) -> Any:
        """Return the parsed value. Raises `SettingsError`."""
        try:
            return self.rule.parse(self.raw)
        except ValueError as error:
            self.raise_invalid(str(error))

    def raise_invalid(self, allowed: str) -> NoReturn:
        """Raise `SettingsError` with the allowed values.

        The message omits a value that may be personal data or a key.
        """
        if self.rule.place_of or self.rule.is_personal:
            raise SettingsError(f"{self.name} (from {self.origin}) must be {allowed}")
        raise_invalid_value(self.name, self.raw, allowed, self.origin)


@dataclass(slots=True)
class Layers:
    """Sources of settings: options, the environment, and the project file.

    Attributes:
        rules: Rule of every setting by name.
        project_file: Path of the project file, or None.
        top_level: Settings at the top of the project file.
        account_tables: Tables of the project file by account.
        table_errors: Errors in the tables of accounts.
        account: Chosen account; None for the unnamed account.
    """

    rules: Mapping[str, SettingRule]
    flags: Mapping[str, object]
    environ: Mapping[str, str]
    cwd: Path
    project_file: Path | None = None
    top_level: Mapping[str, Any] = field(default_factory=dict)
    account_tables: Mapping[str, Any] = field(default_factory=dict)
    table_errors: Mapping[str, SettingsError | UnknownName] = field(default_factory=dict)
    account: str | None = None

    @property
    def project_file_name(self) -> str:
        """Name of the project file, as the environment gives it."""
        return self.environ.get(CONFIG_VARIABLE, CONFIG_NAME)

    def from_flag_or_environment(self, name: str) -> RawValue | None:
        """Return the value of an option or an environment variable; None if neither is set."""
        if self.flags.get(name) is not None:
            return self._raw_value(name, self.flags[name], f"--{name.replace('_', '-')}", self.cwd)
        variable = variable_name(name)
        if variable not in self.environ:
            return None
        if not self.environ[variable].strip():
            raise SettingsError(
                f"{name} is empty (from {variable})",
                action=f"Give {variable} a value, or unset it.",
            )
        return self._raw_value(name, self.environ[variable], variable, self.cwd)

    def from_project_file(self, name: str) -> RawValue | None:
        """Return the value in the chosen account's table or at the top, or None."""
        if self.project_file is None:
            return None
        folder, table = self.project_file.parent, self.account_tables.get(self.account or "", {})
        if name in table:
            where = f"{self.project_file_name} [accounts.{self.account}]"
            return self._raw_value(name, table[name], where, folder)
        if name in self.top_level and (self.account is None or not self.rules[name].is_identity):
            return self._raw_value(name, self.top_level[name], self.project_file_name, folder)
        return None

    def setting(self, name: str) -> Setting[Any]:
        """Return the parsed value of the first source that has the setting, or the default."""
        found = self.from_flag_or_environment(name) or self.from_project_file(name)
        if found is not None:
            return Setting(found.parse(), found.origin)
        default = self.rules[name].default
        return Setting(self.cwd / default if isinstance(default, Path) else default, "default")

    def _raw_value(self, name: str, raw: object, origin: str, folder: Path) -> RawValue:
        """Return the value with its rule, and a relative path as an absolute one."""
        rule = self.rules[name]
        if rule.may_be_relative and isinstance(raw, str | Path) and str(raw).strip():
            raw = self._resolve_path(str(raw), folder)
        return RawValue(name, raw, origin, rule)

    def _resolve_path(self, text: str, folder: Path) -> str | Path:
        """Return a path relative to `folder` as an absolute path; a URL is returned unchanged."""
        if "://" in text:
            return text
        if text.startswith("~/") and "HOME" in self.environ:
            text = self.environ["HOME"] + text[1:]
        return folder / text


def variable_name(name: str) -> str:
    """Return the name of a setting's environment variable."""
    return f"CONNECTOR_{name.upper()}"


def raise_invalid_value(name: str, received: object, allowed: str, origin: str) -> NoReturn:
    """Raise `SettingsError` with the received value, its origin, and the allowed values."""
    shown = repr(str(received) if isinstance(received, Path) else received)
    if name == "base_url":
        shown = redact_address(str(received))
    if len(shown) > _SHOWN_CHARACTERS_MAX:
        shown = f"{shown[:_SHOWN_CHARACTERS_MAX]}…"
    raise SettingsError(f"{name} is {shown} (from {origin}): it must be {allowed}")


def parse_account_name(name: object) -> str:
    """Validate an account's name, which is also the name of its folder.

    Raises `ValueError` for invalid characters, or for the name of a folder of the connector.
    """
    if not isinstance(name, str) or not re.fullmatch(r"[a-z0-9][a-z0-9_-]{0,63}", name):
        raise ValueError("at most 64 of a-z, 0-9, '-' and '_', beginning with a letter or a digit")
    prefixes = (OWN_PREFIXES[each] for each in OWN_PREFIXES if name.startswith(each))
    contents = OWN_FOLDERS.get(name) or next(prefixes, None)
    if contents is not None:
        taken = ", ".join((*OWN_FOLDERS, *(f"{each}..." for each in OWN_PREFIXES)))
        raise ValueError(
            f"another name, since {name}/ in the data folder is for {contents}; the connector's own"
            f" folders are {taken}"
        )
    return name


# -- Project file ----------------------------------------------------------------------------------


def read_project_file(layers: Layers) -> None:
    """Read the project file into the layers, if it exists. Raises `SettingsError`, `UnknownName`.

    Errors in an account's table are stored in `table_errors`: they concern only that account.
    """
    named = layers.environ.get(CONFIG_VARIABLE)
    path = layers.cwd / (named or CONFIG_NAME)
    if named is None and not path.exists():
        return
    where = layers.project_file_name
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        origin = f" (from {CONFIG_VARIABLE})" if named is not None else ""
        raise SettingsError(f"{where}{origin} cannot be read: {error.strerror}") from None
    except ValueError as error:
        # The parser names the line and the column and never quotes what stands there.
        reason = error if isinstance(error, tomllib.TOMLDecodeError) else "it is not UTF-8"
        raise SettingsError(f"{where} is not valid TOML: {reason}") from None
    tables = content.pop("accounts", {})
    if not isinstance(tables, dict):
        raise SettingsError(f"accounts in {where} {_TABLES_ALLOWED}")
    content = _flatten_groups(content, layers.rules, where)
    _refuse_unknown_keys({**layers.rules, "accounts": SettingRule(dict)}, content, where)
    of_accounts = {name: rule for name, rule in layers.rules.items() if not rule.is_global}
    broken: dict[str, SettingsError | UnknownName] = {}
    for name, table in tables.items():
        try:
            RawValue("account", name, where, layers.rules["account"]).parse()
            if not isinstance(table, dict):
                raise SettingsError(f"accounts in {where} {_TABLES_ALLOWED}")
            table_of = f"{where} [accounts.{name}]"
            tables[name] = _flatten_groups(table, layers.rules, table_of)
            _refuse_unknown_keys(of_accounts, tables[name], table_of)
        except (SettingsError, UnknownName) as error:
            broken[name] = error
    layers.project_file, layers.top_level, layers.account_tables, layers.table_errors = (
        path,
        content,
        tables,
        broken,
    )


def _flatten_groups(
    table: Mapping[str, Any], rules: Mapping[str, SettingRule], where: str
) -> dict[str, Any]:
    """Return the table with `folder` of `[models]` as `models_folder`, for each group in `GROUPS`.

    Raises `UnknownName` for a key that the group does not have.
    """
    found = dict(table)
    for group in GROUPS:
        if not isinstance(found.get(group), dict):
            continue
        known = [name.removeprefix(f"{group}_") for name in rules if name.startswith(f"{group}_")]
        for key, value in found.pop(group).items():
            if key not in known:
                raise UnknownName(f"setting of {where} [{group}]", key, known)
            found[f"{group}_{key}"] = value
    return found


def _refuse_unknown_keys(
    rules: Mapping[str, SettingRule], table: Mapping[str, Any], where: str
) -> None:
    """Raise an error for a key that is not a setting, or is a secret."""
    allowed = [name for name, rule in rules.items() if not rule.is_secret]
    for key in table:
        if key in rules and key not in allowed:
            raise SettingsError(
                f"{where} contains {key}, but a project file is easily shared or committed",
                action=f"Move the key to a separate file (chmod 600) and set {key}{FILE_ENDING} "
                "to its path. If the project file was ever shared, generate a new key.",
            )
        if key not in allowed:
            raise UnknownName(f"setting of {where}", key, allowed)


def find_misspelt_variables(environ: Mapping[str, str], known: Collection[str]) -> Iterator[str]:
    """Yield a warning for each variable whose name resembles that of a setting."""
    for name in sorted(environ):
        if name.startswith("CONNECTOR_") and name not in known:
            for near in get_close_matches(name, known, n=1, cutoff=0.85):
                yield f"{name} is not a setting; did you mean {near}?"
