"""Accounts beside each other: what is wrong with one is no other's affair."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from connector.errors import SettingsError, UnknownName
from connector.operations.backup import FOLDERS
from connector.settings.accounts import ConfiguredAccount, configured_accounts
from connector.settings.layers import OWN_FOLDERS, OWN_PREFIXES
from connector.settings.model import load_settings
from tests.repository import ROOT

WELL = "[accounts.acme]\nbase_url = 'https://acme.example'\napi_key_file = 'acme.key'\n"

BROKEN = {
    "unknown key": ("[accounts.globex]\nbase_ur = 'x'", "'base_ur' is not a setting"),
    "a secret": ("[accounts.globex]\napi_key = 'x'", "contains api_key"),
    "an address": ("[accounts.globex]\nbase_url = 'ftp://x'", "base_url is"),
    "a key file": (
        "[accounts.globex]\nbase_url = 'https://g.example'\napi_key_file = 'gone'",
        "a file that can be read",
    ),
    "a time": ("[accounts.globex]\nnightly_cron = 'often'", "nightly_cron is 'often'"),
    "no table": ("[accounts]\nglobex = 1", "must be tables such as"),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A project whose account acme has a key."""
    (tmp_path / "acme.key").write_text("key-of-acme\n", encoding="utf-8")
    (tmp_path / "acme.key").chmod(0o600)
    return tmp_path


def configured(folder: Path, text: str) -> dict[str | None, ConfiguredAccount]:
    """The accounts of a project file, by their names."""
    (folder / "connector.toml").write_text(text, encoding="utf-8")
    return {each.name: each for each in configured_accounts({}, folder)}


@pytest.mark.parametrize(("table", "said"), BROKEN.values(), ids=BROKEN)
def test_a_broken_account_harms_no_other(folder: Path, table: str, said: str) -> None:
    found = configured(folder, f"{table}\n{WELL}")

    assert {"acme", "globex"} == set(found)
    assert found["acme"].settings is not None
    assert "https://acme.example" == found["acme"].settings.connection().base_url
    assert found["globex"].settings is None
    assert said in str(found["globex"].error)


def test_a_wrong_name_is_that_accounts_mistake(folder: Path) -> None:
    found = configured(folder, f"{WELL}[accounts.Globex]\n")

    assert found["acme"].settings is not None
    assert "account is 'Globex'" in str(found["Globex"].error)


def test_the_unnamed_account_is_not_harmed_either(folder: Path) -> None:
    (folder / "data").mkdir()
    (folder / "data" / "work.duckdb").touch()
    found = configured(folder, "[accounts.globex]\nbase_ur = 'x'\n")

    assert found[None].settings is not None
    assert isinstance(found["globex"].error, UnknownName)
    with pytest.raises(UnknownName, match="'base_ur' is not a setting"):
        load_settings({}, {}, folder)


def test_a_mistake_at_the_top_is_everybodys(folder: Path) -> None:
    """What stands above the tables counts for every account, so that a mistake there is refused."""
    with pytest.raises(SettingsError, match=r"is not valid TOML"):
        configured(folder, f"billing_day = \n{WELL}")
    with pytest.raises(UnknownName, match=r"'billing_dai' is not a setting of connector\.toml"):
        configured(folder, f"billing_dai = 2\n{WELL}")


@pytest.mark.parametrize("name", [*OWN_FOLDERS, *(f"{each}acme" for each in OWN_PREFIXES)])
def test_folder_of_the_connector_is_no_account(folder: Path, name: str) -> None:
    """An account that would live in a folder that the connector uses otherwise is refused by each
    way of choosing it, with the folder's purpose and all such names; its table harms no other.
    """
    said = rf"account is '{name}' \(from .*{name}/ in the data folder is for .*inbox, imports"
    with pytest.raises(SettingsError, match=said):
        load_settings({"account": name}, {}, folder)
    with pytest.raises(SettingsError, match=said):
        load_settings({}, {"CONNECTOR_ACCOUNT": name}, folder)
    found = configured(folder, f"{WELL}[accounts.{name}]\n")
    assert found["acme"].settings is not None
    assert "data folder is for" in str(found[name].error)
    with pytest.raises(SettingsError, match=said):
        load_settings({"account": name}, {}, folder)


@pytest.mark.parametrize("name", ["inbox-acme", "acme-seeds", "replaced", "data"])
def test_names_alike_are_accounts(folder: Path, name: str) -> None:
    assert name == load_settings({"account": name}, {}, folder).account.value


def test_own_folders_are_those_that_an_account_has() -> None:
    page = (ROOT / "docs" / "SETTINGS.md").read_text(encoding="utf-8")
    (told,) = re.findall(r"that the connector uses there: (.*?)\.\n", page, re.DOTALL)

    assert set(FOLDERS) <= set(OWN_FOLDERS)
    assert {*OWN_FOLDERS, *OWN_PREFIXES} == set(re.findall(r"`(.+?)`", told))
