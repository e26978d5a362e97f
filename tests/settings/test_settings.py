"""Settings: precedence, origins, accounts, and errors."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from connector.errors import ConnectorError, SettingsError, UnknownName
from connector.settings import ENVIRONMENT, Settings, load_settings

ADDRESS = "https://acme.example"
KEY = "planted-key-0123456789"


def write_config(folder: Path, text: str) -> Path:
    """Write a project file in the folder."""
    path = folder / "connector.toml"
    path.write_text(text, encoding="utf-8")
    return path


def write_key(folder: Path, text: str = f"{KEY}\n", mode: int = 0o600) -> Path:
    """Write the key file `key`, by default readable by its owner only."""
    path = folder / "key"
    path.write_text(text, encoding="utf-8")
    path.chmod(mode)
    return path


def format_error(caught: pytest.ExceptionInfo[ConnectorError]) -> str:
    """Return the message and the action of an error."""
    return f"{caught.value} {caught.value.action}"


def test_default_values_have_the_origin_default(tmp_path: Path) -> None:
    settings = load_settings({}, {}, tmp_path)

    assert {"default"} == {origin for _, _, origin in settings.display_rows()}
    assert () == settings.warnings
    assert [] == list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("flags", "environ", "config", "expected"),
    [
        ({"billing_day": "4"}, "3", "billing_day = 2", (4, "--billing-day")),
        ({"billing_day": None}, "3", "billing_day = 2", (3, "CONNECTOR_BILLING_DAY")),
        ({}, None, "billing_day = 2", (2, "connector.toml")),
        ({}, None, "", (1, "default")),
    ],
)
def test_options_override_variables_and_variables_override_the_project_file(
    tmp_path: Path,
    flags: dict[str, object],
    environ: str | None,
    config: str,
    expected: tuple[int, str],
) -> None:
    write_config(tmp_path, config)
    variables = {} if environ is None else {"CONNECTOR_BILLING_DAY": environ}

    settings = load_settings(flags, variables, tmp_path)

    assert expected == (settings.billing_day, settings.origin("billing_day"))


def test_an_account_table_overrides_the_top_level_and_inherits_limits(tmp_path: Path) -> None:
    write_config(
        tmp_path,
        "connections = 2\nbilling_day = 5\n[accounts.acme]\nbilling_day = 9\n[accounts.globex]\n",
    )

    settings = load_settings({"account": "acme"}, {}, tmp_path)

    assert (9, "connector.toml [accounts.acme]") == (
        settings.billing_day,
        settings.origin("billing_day"),
    )
    assert (2, "connector.toml") == (settings.connections, settings.origin("connections"))
    assert ("acme", "globex") == settings.accounts


def test_an_account_does_not_inherit_an_address_or_a_key(tmp_path: Path) -> None:
    write_key(tmp_path)
    write_config(tmp_path, f"base_url = '{ADDRESS}'\napi_key_file = 'key'\n[accounts.acme]\n")

    unnamed = load_settings({}, {}, tmp_path)
    named = load_settings({"account": "acme"}, {}, tmp_path)

    assert (ADDRESS, KEY) == (
        unnamed.connection().base_url,
        unnamed.connection().api_key.get_secret_value(),
    )
    assert (None, None) == (named.base_url, named.api_key)


@pytest.mark.parametrize("outside", ["CONNECTOR_BASE_URL", "CONNECTOR_API_KEY"])
def test_replacing_only_the_address_or_only_the_key_of_an_account_is_refused(
    tmp_path: Path, outside: str
) -> None:
    write_key(tmp_path)
    write_config(tmp_path, f"[accounts.acme]\nbase_url = '{ADDRESS}'\napi_key_file = 'key'\n")
    environ = {
        "CONNECTOR_ACCOUNT": "acme",
        "CONNECTOR_BASE_URL": "http://127.0.0.1:8000",
        "CONNECTOR_API_KEY": "another-key",
    }
    both = load_settings({}, environ, tmp_path).connection()

    with pytest.raises(SettingsError) as caught:
        load_settings({}, {k: environ[k] for k in ("CONNECTOR_ACCOUNT", outside)}, tmp_path)

    assert ("http://127.0.0.1:8000", "another-key") == (
        both.base_url,
        both.api_key.get_secret_value(),
    )
    other = "the key" if outside == "CONNECTOR_BASE_URL" else "the address"
    assert str(caught.value) == (
        f"{outside} is set, but {other} would still come from connector.toml [accounts.acme]"
    )
    assert "in the same place" in caught.value.action


def test_an_unknown_account_is_refused_with_the_most_similar_name(tmp_path: Path) -> None:
    write_config(tmp_path, "[accounts.acme]\n[accounts.globex]\n")

    with pytest.raises(UnknownName) as caught:
        load_settings({}, {"CONNECTOR_ACCOUNT": "acne"}, tmp_path)

    assert (
        "'acne' is not a configured account of connector.toml (CONNECTOR_ACCOUNT)."
        " Did you mean 'acme'? Use one of: acme, globex."
    ) == format_error(caught)


def test_each_account_has_its_own_data_folder(tmp_path: Path) -> None:
    environ = {"CONNECTOR_DATA_DIR": "here"}

    unnamed = load_settings({}, environ, tmp_path)
    named = load_settings({"account": "acme"}, environ, tmp_path)

    assert tmp_path / "here" == unnamed.folder
    assert tmp_path / "here" / "acme" == named.folder


def test_created_data_folders_are_private_to_their_owner(tmp_path: Path) -> None:
    environ = {"CONNECTOR_DATA_DIR": "outer/inner", "CONNECTOR_ACCOUNT": "acme"}
    settings = load_settings({}, environ, tmp_path)
    before = stat.S_IMODE(tmp_path.stat().st_mode)

    folder = settings.make_folder()
    again = settings.make_folder()

    assert tmp_path / "outer" / "inner" / "acme" == folder == again
    modes = {f.name: stat.S_IMODE(f.stat().st_mode) for f in (folder, *folder.parents[:2])}
    assert {"acme": 0o700, "inner": 0o700, "outer": 0o700} == modes
    assert before == stat.S_IMODE(tmp_path.stat().st_mode)


@pytest.mark.parametrize("account", [None, "acme"])
def test_a_file_instead_of_the_data_folder_is_refused(tmp_path: Path, account: str | None) -> None:
    (tmp_path / "data").write_text("", encoding="utf-8")
    settings = load_settings({"account": account}, {}, tmp_path)

    with pytest.raises(SettingsError, match=r"^data_dir is '.+' \(from default\): it must be a"):
        settings.make_folder()


@pytest.mark.parametrize(
    "line", ["billing_day = true", "billing_day = 1.0", "billing_day = [1]", "data_dir = 1"]
)
def test_a_value_of_the_wrong_toml_type_is_refused(tmp_path: Path, line: str) -> None:
    write_config(tmp_path, line)

    with pytest.raises(SettingsError, match=r"\(from connector\.toml\): it must be a"):
        load_settings({}, {}, tmp_path)


def test_a_long_value_is_shortened_in_the_error(tmp_path: Path) -> None:
    with pytest.raises(SettingsError) as caught:
        load_settings({}, {"CONNECTOR_ACCOUNT": "\x1b[31m" + "x" * 500}, tmp_path)

    assert "'\\x1b[31mxxx" in str(caught.value)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("name", ENVIRONMENT)
def test_an_empty_variable_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(SettingsError) as caught:
        load_settings({}, {ENVIRONMENT[name]: " "}, tmp_path)

    assert f"{name} is empty (from {ENVIRONMENT[name]})" == str(caught.value)
    assert f"Give {ENVIRONMENT[name]} a value, or unset it." == caught.value.action


def test_an_unknown_setting_is_refused_with_the_most_similar_name(tmp_path: Path) -> None:
    for text, where in (
        ("base_ur = 'x'", "connector.toml"),
        ("[accounts.acme]\nbase_ur = 'x'", "connector.toml [accounts.acme]"),
    ):
        write_config(tmp_path, text)
        with pytest.raises(UnknownName) as caught:
            load_settings({}, {}, tmp_path)
        assert f"'base_ur' is not a setting of {where}. Did you mean 'base_url'?" == str(
            caught.value
        )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"billing_day = ", "is not valid TOML: Invalid value"),
        (b"billing_day = '\xff'", "is not valid TOML: it is not UTF-8"),
        (b"accounts = 1", "must be tables such as"),
        (b"[accounts]\nacme = 1", "must be tables such as"),
        (b"[accounts.Acme]", "account is 'Acme' (from connector.toml)"),
    ],
)
def test_a_malformed_project_file_is_refused(tmp_path: Path, text: bytes, message: str) -> None:
    (tmp_path / "connector.toml").write_bytes(text)

    with pytest.raises(SettingsError) as caught:
        load_settings({}, {}, tmp_path)

    assert "connector.toml" in str(caught.value)
    assert message in str(caught.value)


def test_a_variable_can_name_a_project_file_in_another_folder(tmp_path: Path) -> None:
    folder = tmp_path / "conf"
    folder.mkdir()
    write_config(folder, f"base_url = '{ADDRESS}'\napi_key_file = 'key'\ndata_dir = 'd'\n")
    write_key(folder)

    settings = load_settings({}, {"CONNECTOR_CONFIG": "conf/connector.toml"}, tmp_path)

    assert folder / "d" == settings.data_dir
    assert str(Path("conf/connector.toml")) == settings.origin("data_dir")
    assert f"{folder / 'key'}, named by {Path('conf/connector.toml')}" == settings.origin("api_key")


def test_a_missing_project_file_that_a_variable_names_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError) as caught:
        load_settings({}, {"CONNECTOR_CONFIG": "other.toml"}, tmp_path)

    expected = "other.toml (from CONNECTOR_CONFIG) cannot be read: No such file or directory"
    assert expected == str(caught.value)


def test_a_misspelled_variable_causes_a_warning(tmp_path: Path) -> None:
    environ = {"CONNECTOR_BASEURL": ADDRESS, "CONNECTOR_OF_SOMETHING": "x", "PATH": os.defpath}

    settings = load_settings({}, environ, tmp_path)

    assert (
        "CONNECTOR_BASEURL is not a setting; did you mean CONNECTOR_BASE_URL?",
    ) == settings.warnings


def test_a_missing_address_or_key_is_refused_with_the_settings_to_set(tmp_path: Path) -> None:
    write_config(tmp_path, "[accounts.acme]\n[accounts.globex]\n")

    def read_connection_error(settings: Settings) -> str:
        with pytest.raises(SettingsError) as caught:
            settings.connection()
        return format_error(caught)

    assert (
        "base_url is not set Set CONNECTOR_BASE_URL, or base_url in connector.toml,"
        " or choose --account: acme, globex."
    ) == read_connection_error(load_settings({}, {}, tmp_path))
    assert (
        "api_key is not set Set CONNECTOR_API_KEY or CONNECTOR_API_KEY_FILE,"
        " or api_key_file in connector.toml."
    ) == read_connection_error(
        load_settings({"account": "acme"}, {"CONNECTOR_BASE_URL": ADDRESS}, tmp_path)
    )


@pytest.mark.parametrize("key", ["account", "data_dir"])
def test_an_account_table_cannot_change_the_data_folder_or_account(
    tmp_path: Path, key: str
) -> None:
    """The folder of an account follows from its name."""
    write_config(tmp_path, f"[accounts.acme]\n{key} = 'x'\n")

    with pytest.raises(UnknownName, match=f"'{key}' is not a setting"):
        load_settings({}, {}, tmp_path)


def test_the_home_folder_is_that_of_the_environment(tmp_path: Path) -> None:
    environ = {"HOME": str(tmp_path / "home"), "CONNECTOR_DATA_DIR": "~/data"}

    assert tmp_path / "home" / "data" == load_settings({}, environ, tmp_path).folder
