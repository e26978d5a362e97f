"""Settings layers: flags, the environment, the project file, in that order.

A value is looked for here and its origin noted. `model.py` declares the settings, and `values.py`
says which values they may have. No key is ever shown.
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
from connector.settings.values import shown_address

T = TypeVar("T")

CONFIG_VARIABLE = "CONNECTOR_CONFIG"
"""The environment variable that names the project file; without it, `connector.toml`."""

CONFIG_NAME = "connector.toml"

FILE_ENDING = "_file"
"""What the name of a secret's file ends in, as a setting."""

KEYRING_ENDING = "_keyring"
"""What the name of a secret's place in the system's keyring ends in, as a setting."""

INBOX_FOLDER, RECEIPTS_FOLDER, SEEDS_FOLDER, MAPS_FOLDER = "inbox", "receipts", "seeds", "maps"
IMPORTS_FOLDER, PUSHES_FOLDER = "imports", "pushes"
DAGSTER_FOLDER = "dagster"
ASIDE, WAITED = "replaced-", "waited-"

OWN_FOLDERS: Mapping[str, str] = {
    INBOX_FOLDER: "files that the inbox pushes",
    IMPORTS_FOLDER: "imports that users prepare on the import page",
    PUSHES_FOLDER: "results of queries that were pushed",
    RECEIPTS_FOLDER: "the receipts of erasures",
    MAPS_FOLDER: "saved column mappings",
    SEEDS_FOLDER: "seed files of the models",
    DAGSTER_FOLDER: "Dagster's state",
    "backups": "backups",
}
"""Folders in the data folder that the connector uses, with their contents. An account of the same
name would have its databases in that folder.
"""

OWN_PREFIXES: Mapping[str, str] = {
    ASIDE: "files that a restore replaced",
    WAITED: "inbox files from before a restore",
}
"""Beginnings of such folders' names that a time stamp follows."""

GROUPS = ("models", "publish")
"""Tables of the project file whose keys are settings: `folder` in `[models]` is `models_folder`."""

_TABLES_ALLOWED = "must be tables such as [accounts.acme]"
_SHOWN_CHARACTERS_MAX = 120


@dataclass(frozen=True, slots=True)
class Setting(Generic[T]):
    """Value and its origin: a flag, a variable, the project file, or `default`."""

    value: T
    origin: str


@dataclass(frozen=True, slots=True)
class Spec:
    """Rule of a setting: its reader, and where it may be set.

    `is_secret`: never shown, and in neither a flag nor the project file; `has_keyring`: its place
    may be in the system's keyring. `place_of` is the secret whose place this names: then it is
    never shown, and no flag. `is_personal`: names a person, and is never shown. `is_identity`: no
    account's table inherits it, since an address and a key belong together. `is_located`: a
    relative path starts from the folder of its layer. `is_of_all`: no account's table may have it.
    `is_table`: only the project file may have it.
    """

    read: Callable[[Any], Any]
    default: object = None
    is_secret: bool = False
    has_keyring: bool = False
    place_of: str = ""
    is_personal: bool = False
    is_identity: bool = False
    is_located: bool = False
    is_of_all: bool = False
    is_table: bool = False


@dataclass(frozen=True, slots=True)
class RawValue:
    """A value as it was given under a name, with its origin."""

    name: str
    raw: object
    origin: str
    rule: Spec

    def read(self) -> Any:
        """Value as the rule reads it. Raises `SettingsError`."""
        try:
            return self.rule.read(self.raw)
        except ValueError as error:
            self.refuse(str(error))

    def refuse(self, allowed: str) -> NoReturn:
        """Raise `SettingsError`, which shows the value where it can be neither secret nor
        personal: a key may have been put in the place of its file's name.
        """
        if self.rule.place_of or self.rule.is_personal:
            raise SettingsError(f"{self.name} (from {self.origin}) must be {allowed}")
        refuse(self.name, self.raw, allowed, self.origin)


@dataclass(slots=True)
class Layers:
    """Layers of values, in order of precedence; `rules` has every setting's."""

    rules: Mapping[str, Spec]
    flags: Mapping[str, object]
    environ: Mapping[str, str]
    cwd: Path
    config: Path | None = None
    top: Mapping[str, Any] = field(default_factory=dict)
    tables: Mapping[str, Any] = field(default_factory=dict)
    broken: Mapping[str, SettingsError | UnknownName] = field(default_factory=dict)
    account: str | None = None

    @property
    def config_name(self) -> str:
        """The project file, as it was named."""
        return self.environ.get(CONFIG_VARIABLE, CONFIG_NAME)

    def from_flag_or_environment(self, name: str) -> RawValue | None:
        """Return the value of a flag or the environment."""
        if self.rules[name].is_table:
            return None
        if self.flags.get(name) is not None:
            return self._given(name, self.flags[name], f"--{name.replace('_', '-')}", self.cwd)
        variable = variable_of(name)
        if variable not in self.environ:
            return None
        if not self.environ[variable].strip():
            raise SettingsError(
                f"{name} is empty (from {variable})",
                action=f"Give {variable} a value, or unset it.",
            )
        return self._given(name, self.environ[variable], variable, self.cwd)

    def from_project_file(self, name: str) -> RawValue | None:
        """Return the value of the project file."""
        if self.config is None:
            return None
        folder, table = self.config.parent, self.tables.get(self.account or "", {})
        if name in table:
            where = f"{self.config_name} [accounts.{self.account}]"
            return self._given(name, table[name], where, folder)
        if name in self.top and (self.account is None or not self.rules[name].is_identity):
            return self._given(name, self.top[name], self.config_name, folder)
        return None

    def setting(self, name: str) -> Setting[Any]:
        """Return the setting from the first layer that has it."""
        found = self.from_flag_or_environment(name) or self.from_project_file(name)
        if found is not None:
            return Setting(found.read(), found.origin)
        default = self.rules[name].default
        return Setting(self.cwd / default if isinstance(default, Path) else default, "default")

    def _given(self, name: str, raw: object, origin: str, folder: Path) -> RawValue:
        rule = self.rules[name]
        if rule.is_located and isinstance(raw, str | Path) and str(raw).strip():
            raw = self._located(str(raw), folder)
        return RawValue(name, raw, origin, rule)

    def _located(self, text: str, folder: Path) -> str | Path:
        """Return a path relative to its layer's folder; an address as it is."""
        if "://" in text:
            return text
        if text.startswith("~/") and "HOME" in self.environ:
            text = self.environ["HOME"] + text[1:]
        return folder / text


def variable_of(name: str) -> str:
    """Return the environment variable of a setting."""
    return f"CONNECTOR_{name.upper()}"


def refuse(name: str, received: object, allowed: str, origin: str) -> NoReturn:
    """Raise `SettingsError`: what was received, from where, and what is allowed."""
    shown = repr(str(received) if isinstance(received, Path) else received)
    if name == "base_url":
        shown = shown_address(str(received))
    if len(shown) > _SHOWN_CHARACTERS_MAX:
        shown = f"{shown[:_SHOWN_CHARACTERS_MAX]}…"
    raise SettingsError(f"{name} is {shown} (from {origin}): it must be {allowed}")


def read_account(name: object) -> str:
    """Parse an account's name, which is also the name of its folder.

    Raises `ValueError` if it is not a valid name, or is one of the connector's own folders.
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
    """Read the project file, refusing keys that mean nothing at its top.

    What is wrong with the table of one account goes into `broken`: it is that account's affair.
    """
    named = layers.environ.get(CONFIG_VARIABLE)
    path = layers.cwd / (named or CONFIG_NAME)
    if named is None and not path.exists():
        return
    where = layers.config_name
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
    content = _ungrouped(content, layers.rules, where)
    _check_keys({**layers.rules, "accounts": Spec(dict)}, content, where)
    of_accounts = {name: rule for name, rule in layers.rules.items() if not rule.is_of_all}
    broken: dict[str, SettingsError | UnknownName] = {}
    for name, table in tables.items():
        try:
            RawValue("account", name, where, layers.rules["account"]).read()
            if not isinstance(table, dict):
                raise SettingsError(f"accounts in {where} {_TABLES_ALLOWED}")
            table_of = f"{where} [accounts.{name}]"
            tables[name] = _ungrouped(table, layers.rules, table_of)
            _check_keys(of_accounts, tables[name], table_of)
        except (SettingsError, UnknownName) as error:
            broken[name] = error
    layers.config, layers.top, layers.tables, layers.broken = path, content, tables, broken


def _ungrouped(table: Mapping[str, Any], rules: Mapping[str, Spec], where: str) -> dict[str, Any]:
    """Return the table with the keys of its groups under the names of their settings.

    Raises `UnknownName` for a key that is not one of its group.
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


def _check_keys(rules: Mapping[str, Spec], table: Mapping[str, Any], where: str) -> None:
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


def find_misspelt(environ: Mapping[str, str], known: Collection[str]) -> Iterator[str]:
    """Yield a sentence on each variable that looks like a setting but is not one."""
    for name in sorted(environ):
        if name.startswith("CONNECTOR_") and name not in known:
            for near in get_close_matches(name, known, n=1, cutoff=0.85):
                yield f"{name} is not a setting; did you mean {near}?"
