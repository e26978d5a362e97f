"""Several accounts: an error in one does not affect the others."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from connector.errors import SettingsError, UnknownName
from connector.operations.backup import FOLDERS
from connector.settings import ConfiguredAccount, configured_accounts, load_settings
from connector.settings.folders import OWN_FOLDERS, OWN_PREFIXES
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
def project_folder(tmp_path: Path) -> Path:
    """Project folder with a key file of the account acme."""
    (tmp_path / "acme.key").write_text("key-of-acme\n", encoding="utf-8")
    (tmp_path / "acme.key").chmod(0o600)
    return tmp_path


def read_accounts(folder: Path, text: str) -> dict[str | None, ConfiguredAccount]:
    """Return the accounts of a project file with this text, by name."""
    (folder / "connector.toml").write_text(text, encoding="utf-8")
    return {each.name: each for each in configured_accounts({}, folder)}


@pytest.mark.parametrize(("table", "message"), BROKEN.values(), ids=BROKEN)
def test_invalid_settings_of_one_account_do_not_affect_others(
    project_folder: Path, table: str, message: str
) -> None:
    found = read_accounts(project_folder, f"{table}\n{WELL}")

    assert {"acme", "globex"} == set(found)
    assert found["acme"].settings is not None
    assert "https://acme.example" == found["acme"].settings.connection().base_url
    assert found["globex"].settings is None
    assert message in str(found["globex"].error)


def test_an_invalid_account_table_does_not_affect_the_unnamed_account(project_folder: Path) -> None:
    (project_folder / "data").mkdir()
    (project_folder / "data" / "work.duckdb").touch()
    found = read_accounts(project_folder, "[accounts.globex]\nbase_ur = 'x'\n")

    assert found[None].settings is not None
    assert isinstance(found["globex"].error, UnknownName)
    with pytest.raises(UnknownName, match="'base_ur' is not a setting"):
        load_settings({}, {}, project_folder)


def test_an_error_above_the_account_tables_is_refused_for_all_accounts(
    project_folder: Path,
) -> None:
    with pytest.raises(SettingsError, match=r"is not valid TOML"):
        read_accounts(project_folder, f"billing_day = \n{WELL}")
    with pytest.raises(UnknownName, match=r"'billing_dai' is not a setting of connector\.toml"):
        read_accounts(project_folder, f"billing_dai = 2\n{WELL}")


@pytest.mark.parametrize("name", [*OWN_FOLDERS, *(f"{each}acme" for each in OWN_PREFIXES)])
def test_a_reserved_folder_name_is_refused_as_account_name(project_folder: Path, name: str) -> None:
    """The error states the folder's purpose and all reserved names. Other accounts are not
    affected.
    """
    message = rf"account is '{name}' \(from .*{name}/ in the data folder is for .*inbox, imports"
    with pytest.raises(SettingsError, match=message):
        load_settings({"account": name}, {}, project_folder)
    with pytest.raises(SettingsError, match=message):
        load_settings({}, {"CONNECTOR_ACCOUNT": name}, project_folder)
    found = read_accounts(project_folder, f"{WELL}[accounts.{name}]\n")
    assert found["acme"].settings is not None
    assert "data folder is for" in str(found[name].error)
    with pytest.raises(SettingsError, match=message):
        load_settings({"account": name}, {}, project_folder)


def test_reserved_folder_names_match_the_documentation() -> None:
    page = (ROOT / "docs" / "SETTINGS.md").read_text(encoding="utf-8")
    (documented,) = re.findall(r"that the connector uses there: (.*?)\.\n", page, re.DOTALL)

    assert set(FOLDERS) <= set(OWN_FOLDERS)
    assert {*OWN_FOLDERS, *OWN_PREFIXES} == set(re.findall(r"`(.+?)`", documented))


@pytest.mark.parametrize("name", ["inbox-acme", "acme-seeds", "replaced", "data"])
def test_names_similar_to_reserved_ones_are_accepted_as_accounts(
    project_folder: Path, name: str
) -> None:
    assert name == load_settings({"account": name}, {}, project_folder).account
