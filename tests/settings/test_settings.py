"""Settings: precedence, origins, accounts, secrets, values and errors."""

from __future__ import annotations

import os
import re
import stat
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from dagster._utils.schedules import is_valid_cron_string
from pydantic import SecretStr

from connector.errors import ConnectorError, SettingsError, UnknownName, WarehouseError
from connector.operations.backup import FOLDERS
from connector.settings import ENVIRONMENT, Settings, configured_accounts, load_settings
from connector.settings.folders import OWN_FOLDERS, WAITED
from connector.settings.model import SECRET_FILES, SECRETS, redact_address
from connector.warehouse.file import make_folder
from tests.repository import ROOT

ADDRESS = "https://acme.example"
KEY = "planted-key-0123456789"
ACME = f"[accounts.acme]\nbase_url = '{ADDRESS}'\napi_key_file = 'key'\n"


def write_project(
    folder: Path, text: str | bytes = "", key: bytes = b"", mode: int = 0o600
) -> Path:
    """Write a project file and a key file, and return the key file."""
    content = text if isinstance(text, bytes) else text.encode()
    (folder / "connector.toml").write_bytes(content)
    path = folder / "key"
    path.write_bytes(key or f"{KEY}\n".encode())
    path.chmod(mode)
    return path


def read_error(folder: Path, environ: Mapping[str, str] | None = None, **flags: Any) -> str:
    """Return the message and the action of the error in the settings."""
    with pytest.raises(ConnectorError) as caught:
        load_settings(flags, environ or {}, folder)
    assert KEY not in "".join(traceback.format_exception(caught.value))
    return f"{caught.value} {caught.value.action}"


# -- Sources ---------------------------------------------------------------------------------------


def test_default_values_have_the_origin_default(tmp_path: Path) -> None:
    settings = load_settings({}, {}, tmp_path)

    assert {"default"} == {origin for _, _, origin in settings.display_rows()}
    assert () == settings.warnings
    assert [] == list(tmp_path.iterdir())


CONFIG = """
billing_day = 2
connections = 2
base_url = "https://top.example"
api_key_file = "key"
publish_without = ["push", "sync"]
[accounts.acme]
billing_day = 9
[accounts.globex]
"""


@pytest.mark.parametrize(
    ("flags", "environ", "name", "expected"),
    [
        ({"billing_day": "4"}, "3", "billing_day", (4, "--billing-day")),
        ({"billing_day": None}, "3", "billing_day", (3, "CONNECTOR_BILLING_DAY")),
        ({}, None, "billing_day", (2, "connector.toml")),
        ({}, None, "lateness_seconds", (120, "default")),
        ({}, None, "publish_without", (("sync", "push"), "connector.toml")),
        ({"account": "acme"}, None, "billing_day", (9, "connector.toml [accounts.acme]")),
        ({"account": "acme"}, None, "connections", (2, "connector.toml")),
        ({"account": "acme"}, None, "base_url", (None, "default")),
        ({"account": "acme"}, None, "api_key", (None, "default")),
    ],
)
def test_a_value_comes_from_its_first_source(
    tmp_path: Path, flags: dict[str, Any], environ: str | None, name: str, expected: Any
) -> None:
    write_project(tmp_path, CONFIG)
    variables = {} if environ is None else {"CONNECTOR_BILLING_DAY": environ}

    settings = load_settings(flags, variables, tmp_path)

    assert expected == (getattr(settings, name), settings.origin(name))
    assert ("acme", "globex") == settings.accounts


def test_a_variable_can_name_a_project_file_in_another_folder(tmp_path: Path) -> None:
    folder = tmp_path / "conf"
    folder.mkdir()
    write_project(folder, f"base_url = '{ADDRESS}'\napi_key_file = 'key'\ndata_dir = 'd'\n")

    settings = load_settings({}, {"CONNECTOR_CONFIG": "conf/connector.toml"}, tmp_path)

    assert (folder / "d", "conf/connector.toml") == (settings.data_dir, settings.origin("data_dir"))
    assert f"{folder / 'key'}, named by conf/connector.toml" == settings.origin("api_key")
    assert "other.toml (from CONNECTOR_CONFIG) cannot be read: No such file" in read_error(
        tmp_path, {"CONNECTOR_CONFIG": "other.toml"}
    )


@pytest.mark.parametrize(
    ("text", "flags", "message"),
    [
        (b"billing_day = ", {}, "connector.toml is not valid TOML: Invalid value"),
        (b"billing_day = '\xff'", {}, "connector.toml is not valid TOML: it is not UTF-8"),
        (b"accounts = 1", {}, "accounts in connector.toml must be tables such as"),
        (b"[accounts]\nacme = 1", {"account": "acme"}, "must be tables such as"),
        (b"[accounts.Acme]", {"account": "Acme"}, "account is 'Acme' (from --account)"),
        (ACME.encode(), {"account": "acne"},
         "'acne' is not a configured account of connector.toml (--account). Did you mean 'acme'?"),
        (b"base_ur = 'x'", {},
         "'base_ur' is not a setting of connector.toml. Did you mean 'base_url'?"),
        (b"[accounts.acme]\nbase_ur = 'x'", {"account": "acme"},
         "'base_ur' is not a setting of connector.toml [accounts.acme]. Did you mean 'base_url'?"),
        # The folder of an account follows from its name.
        (b"[accounts.acme]\ndata_dir = 'x'", {"account": "acme"}, "'data_dir' is not a setting"),
        (b"[accounts.acme]\naccount = 'x'", {"account": "acme"}, "'account' is not a setting"),
        (b"billing_day = true", {}, "(from connector.toml): it must be a whole number"),
        (b"billing_day = 1.0", {}, "(from connector.toml): it must be a whole number"),
        (b"billing_day = [1]", {}, "(from connector.toml): it must be a whole number"),
        (b"data_dir = 1", {}, "data_dir is 1 (from connector.toml): it must be a path"),
        (b"api_key_file = 1", {}, "api_key_file (from connector.toml) must be a path"),
        (b"publish_personal = 'hash'", {}, "publish_hash_key is not set"),
        *((f"{table}{name} = '{KEY}'".encode(), flags, f"contains {name}, but")
          for name in SECRETS for table, flags in (("", {}), ("[accounts.a]\n", {"account": "a"}))),
    ],
)  # fmt: skip
def test_an_invalid_project_file_is_refused(
    tmp_path: Path, text: bytes, flags: dict[str, Any], message: str
) -> None:
    write_project(tmp_path, text)

    assert message in read_error(tmp_path, **flags)


@pytest.mark.parametrize("name", ENVIRONMENT)
def test_an_empty_variable_is_refused(tmp_path: Path, name: str) -> None:
    expected = f"{name} is empty (from {ENVIRONMENT[name]}) Give {ENVIRONMENT[name]} a value,"

    assert read_error(tmp_path, {ENVIRONMENT[name]: " "}).startswith(expected)


def test_a_misspelled_variable_causes_a_warning(tmp_path: Path) -> None:
    environ = {"CONNECTOR_BASEURL": ADDRESS, "CONNECTOR_OF_SOMETHING": "x", "PATH": os.defpath}

    (warning,) = load_settings({}, environ, tmp_path).warnings

    assert "CONNECTOR_BASEURL is not a setting; did you mean CONNECTOR_BASE_URL?" == warning


def test_a_long_value_is_shortened_in_the_error(tmp_path: Path) -> None:
    message = read_error(tmp_path, {"CONNECTOR_ACCOUNT": "\x1b[31m" + "x" * 500})

    assert "'\\x1b[31mxxx" in message
    assert len(message) < 400


def test_a_missing_address_or_key_is_refused_with_the_settings_to_set(tmp_path: Path) -> None:
    write_project(tmp_path, "[accounts.acme]\n[accounts.globex]\n")

    def read_connection_error(settings: Settings) -> str:
        with pytest.raises(SettingsError) as caught:
            settings.connection()
        return f"{caught.value}. {caught.value.action}"

    assert (
        "base_url is not set. Set CONNECTOR_BASE_URL, or base_url in connector.toml,"
        " or choose --account: acme, globex."
    ) == read_connection_error(load_settings({}, {}, tmp_path))
    assert (
        "api_key is not set. Set CONNECTOR_API_KEY or CONNECTOR_API_KEY_FILE,"
        " or api_key_file in connector.toml."
    ) == read_connection_error(
        load_settings({"account": "acme"}, {"CONNECTOR_BASE_URL": ADDRESS}, tmp_path)
    )


# -- Secrets ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["", "\n", "\r\n"])
def test_a_key_is_read_and_never_shown(tmp_path: Path, ending: str) -> None:
    file = write_project(tmp_path, key=f"{KEY}{ending}".encode())
    for environ in ({"CONNECTOR_API_KEY": KEY}, {"CONNECTOR_API_KEY_FILE": str(file)}):
        settings = load_settings({}, environ, tmp_path)
        rows = list(settings.display_rows())

        assert settings.api_key is not None
        assert KEY == settings.api_key.get_secret_value()
        assert [KEY] == list(settings.secrets())
        assert ("api_key", "set", settings.origin("api_key")) in rows
        assert KEY not in f"{settings!r} {settings} {settings.api_key!r} {rows!r}"


ONE_WORD = "must be one word of at most 4096 characters, all of them ASCII"


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        *(("api_key", text, ONE_WORD) for text in (b"two words", b" padded", b"one\ntwo\n")),
        *(("api_key", text, ONE_WORD) for text in (b"one\n\n", b"k\xc3\xa9y", b"nul\x00", b"\n")),
        *(("api_key", b"x" * length, ONE_WORD) for length in (4097, 100_000)),
        ("publish_hash_key", b"tiny-0", "must have at least 16 characters"),
        ("publish_hash_key", b"two words, and long", ONE_WORD),
        ("notify_urls", b"acme.example/hook", "must be Apprise URLs"),
    ],
)
def test_an_invalid_secret_is_refused_without_showing_it(
    tmp_path: Path, name: str, content: bytes, problem: str
) -> None:
    file = write_project(tmp_path, key=content)
    variable = ENVIRONMENT[f"{name}_file"]

    message = read_error(tmp_path, {variable: str(file)})

    assert message.startswith(f"{name} {problem}")
    assert f"(from {file}, named by {variable})" in message
    assert not content.strip() or content.decode("latin-1") not in message


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660])
def test_a_key_file_that_others_can_read_causes_a_warning(tmp_path: Path, mode: int) -> None:
    file = write_project(tmp_path, mode=mode)

    settings = load_settings({}, {"CONNECTOR_API_KEY_FILE": str(file)}, tmp_path)

    expected = (
        f"The key file {file} can be opened by other users (mode {mode:04o}): run chmod 600 on it."
    )
    assert (expected,) == settings.warnings


@pytest.mark.parametrize(
    ("environ", "message"),
    [
        # The value may be the key itself.
        ({"API_KEY_FILE": KEY}, "api_key_file (from CONNECTOR_API_KEY_FILE) must be a file that"),
        ({"API_KEY": KEY, "API_KEY_FILE": "key"}, "both CONNECTOR_API_KEY and CONNECTOR_API_KEY_F"),
        ({"API_KEY": KEY, "BILLING_DAY": "99"}, "billing_day is '99'"),
        ({"BASE_URL": KEY}, "base_url is a value without 'https://'"),
        ({"BASE_URL": f"https://user:{KEY}@acme.example"}, "without a user name or a password"),
        ({"BASE_URL": f"https://acme.example?api_key={KEY}"}, "without '?' or '#'"),
        ({"BASE_URL": f"https://acme.example#{KEY}"}, "without '?' or '#'"),
    ],
)
def test_no_error_about_the_key_contains_it(
    tmp_path: Path, environ: dict[str, str], message: str
) -> None:
    write_project(tmp_path)
    variables = {f"CONNECTOR_{name}": value for name, value in environ.items()}

    assert message in read_error(tmp_path, variables)


@pytest.mark.parametrize("name", [*SECRETS, *SECRET_FILES])
def test_secrets_are_refused_as_options(tmp_path: Path, name: str) -> None:
    assert f"'{name}' is not a setting that an option" in read_error(tmp_path, {}, **{name: KEY})


@pytest.mark.parametrize("outside", ["CONNECTOR_BASE_URL", "CONNECTOR_API_KEY"])
def test_replacing_only_the_address_or_only_the_key_of_an_account_is_refused(
    tmp_path: Path, outside: str
) -> None:
    write_project(tmp_path, ACME)
    environ = {"CONNECTOR_BASE_URL": "http://127.0.0.1:8000", "CONNECTOR_API_KEY": "another-key"}

    both = load_settings({"account": "acme"}, environ, tmp_path).connection()
    message = read_error(tmp_path, {outside: environ[outside]}, account="acme")

    assert ("http://127.0.0.1:8000", SecretStr("another-key")) == both
    other = "the key" if outside == "CONNECTOR_BASE_URL" else "the address"
    assert f"{outside} is set, but {other} would still come from connector.toml [acc" in message


# -- Accounts and folders --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("[accounts.globex]\nbase_ur = 'x'", "'base_ur' is not a setting"),
        ("[accounts.globex]\nnightly_cron = 'often'", "nightly_cron is 'often'"),
        ("[accounts.globex]\nbase_url = 'https://g.example'\napi_key_file = 'gone'", "can be read"),
        ("[accounts]\nglobex = 1", "must be tables such as"),
    ],
)
def test_an_error_in_one_account_does_not_affect_others(
    tmp_path: Path, table: str, message: str
) -> None:
    write_project(tmp_path, f"max_age = '5h'\n{table}\n{ACME}")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "work.duckdb").touch()

    found = {each.name: each for each in configured_accounts({}, tmp_path)}

    assert {None, "acme", "globex"} == set(found)
    assert found[None].settings is not None
    assert ADDRESS == found["acme"].require_settings().base_url
    assert found["globex"].settings is None
    assert message in str(found["globex"].error)
    # The error can be reported to the addresses at the top of the file.
    for_alerts = found["globex"].settings_for_alerts
    assert for_alerts is not None
    assert ("globex", "5h") == (for_alerts.account, str(for_alerts.max_age))


def test_an_error_above_the_account_tables_is_refused_for_all_accounts(tmp_path: Path) -> None:
    write_project(tmp_path, f"billing_dai = 2\n{ACME}")

    with pytest.raises(UnknownName, match=r"'billing_dai' is not a setting of connector\.toml"):
        configured_accounts({}, tmp_path)


@pytest.mark.parametrize("name", [*OWN_FOLDERS, f"{WAITED}acme"])
def test_a_reserved_folder_name_is_refused_as_account_name(tmp_path: Path, name: str) -> None:
    write_project(tmp_path, f"[accounts.{name}]\n")

    assert f"account is '{name}' (from --account)" in read_error(tmp_path, account=name)


def test_reserved_folder_names_match_the_documentation() -> None:
    page = (ROOT / "docs" / "SETTINGS.md").read_text(encoding="utf-8")
    (documented,) = re.findall(r"that the connector uses there: (.*?)\.\n", page, re.DOTALL)

    assert set(FOLDERS) <= set(OWN_FOLDERS)
    assert {*OWN_FOLDERS, WAITED} == set(re.findall(r"`(.+?)`", documented))


@pytest.mark.parametrize(("account", "folder"), [(None, "."), ("acme", "acme"), ("data", "data")])
def test_created_data_folders_are_private_to_their_owner(
    tmp_path: Path, account: str | None, folder: str
) -> None:
    settings = load_settings({"account": account}, {"CONNECTOR_DATA_DIR": "outer/in"}, tmp_path)
    before = stat.S_IMODE(tmp_path.stat().st_mode)

    for _ in range(2):
        make_folder(settings.folder)
    assert tmp_path / "outer" / "in" / folder == settings.folder

    made = [each for each in (tmp_path / "outer").rglob("*") if each.is_dir()]
    assert {0o700} == {stat.S_IMODE(each.stat().st_mode) for each in (tmp_path / "outer", *made)}
    assert before == stat.S_IMODE(tmp_path.stat().st_mode)


def test_a_file_instead_of_the_data_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "data").touch()
    for account in (None, "acme"):
        settings = load_settings({"account": account}, {}, tmp_path)
        with pytest.raises(WarehouseError, match="Not a directory"):
            make_folder(settings.folder)


ACCEPTED: dict[str, dict[str, Any]] = {
    "base_url": {
        "https://acme.example": "https://acme.example",
        "https://acme.example//": "https://acme.example",
        "https://acme.example/api/v1/": "https://acme.example",
        "https://ACME.example:8443": "https://acme.example:8443",
        "https://acme.example/Workspace/": "https://acme.example/Workspace",
        "https://acme.example/Workspace/api/v1": "https://acme.example/Workspace",
        "  https://acme.example\n": "https://acme.example",
        "http://localhost:8000": "http://localhost:8000",
        "http://127.8.9.1": "http://127.8.9.1",
        "http://[::1]:8000/": "http://[::1]:8000",
    },
    "proxy": {
        "http://Proxy.example:3128/": "http://proxy.example:3128",
        "http://[::1]:3128": "http://[::1]:3128",
    },
    "region": {"us": "US", "DE": "DE"},
    "publish_without": {
        "push, sync": ("sync", "push"),
        "staging.stg_jobs,push,marts.dim_jobs.title": (
            "push",
            "staging.stg_jobs",
            "marts.dim_jobs.title",
        ),
    },
    "time_zone": {"Europe/Berlin": "Europe/Berlin"},
    "nightly_cron": {
        " 15  2 * * * ": "15 2 * * *",
        "*/5 * * * *": "*/5 * * * *",
        "0 7-18 * * 1-5": "0 7-18 * * 1-5",
        "5/10 1,3 1-15/2 * 7": "5/10 1,3 1-15/2 * 7",
        "off": "off",
    },
    "record_url": {"https://a.example/{resource}/{id}": "https://a.example/{resource}/{id}"},
}

_ADDRESS = "such as https://acme.example"
_CRON = "a cron expression (minute, hour, day of the month, month, day of the week) such as"
_WHOLE = "a whole number from 1 to"
REFUSED: dict[str, dict[str, str]] = {
    "account": {
        **dict.fromkeys(("Acme", "../acme", "-acme", "a" * 65), "at most 64 of a-z, 0-9, '-'"),
        "inbox": "another name, because the connector uses the folders inbox",
    },
    "base_url": {
        **dict.fromkeys(("acme.example", "ftp://x.example", "https://", "https:///a"), _ADDRESS),
        **dict.fromkeys(
            ("http://acme.example", "http://10.0.0.1", "http://localhost.acme.example"),
            "only this machine may use http",
        ),
        "https://me:secret@acme.example": "without a user name or a password",
        "https://me@acme.example": "without a user name or a password",
        "https://acme.example?x=1": "without '?' or '#'",
        "https://acme.example#x": "without '?' or '#'",
        "https://acme.example?": "without '?' or '#'",
        "https://acme.example/api/v1/jobs": "the part of the address before /api/v1",
        "https://acme.example:99999": "with a port from 1 to 65535",
        "https://acme.example:0": _ADDRESS,
        "https://acme.example:x": "with a port from 1 to 65535",
        "https://ac me.example": "without spaces or backslashes",
        "https://acme.example\\@evil.example": "without spaces or backslashes",
        "https://[::1": "with a port from 1 to 65535",
    },
    "proxy": dict.fromkeys(
        ("proxy.example:3128", "http://proxy.example", "http://u:p@p.example:1", "http://p:99999"),
        "the address of a proxy such as",
    ),
    "region": {"UK": "a country code of two letters such as GB, DE or US"},
    "monthly_requests": dict.fromkeys(("0", "1e5", "50,000"), f"{_WHOLE} 1000000000"),
    "billing_day": dict.fromkeys(("32", "-1", "\N{ARABIC-INDIC DIGIT ONE}"), f"{_WHOLE} 31"),
    "connections": {"33": f"{_WHOLE} 32"},
    "lateness_seconds": {"86401": "a whole number from 0 to 86400"},
    "models": {"yes": "'on' or 'off'"},
    "publish_personal": {"masked": "'keep', 'drop' or 'hash'"},
    "publish_without": {
        "push,pull": "some of: landing, history, sync, push, staging, marts",
        "push,candidates.notes": "SCHEMA.TABLE.COLUMN, not 'candidates.notes'",
        "mart.dim_jobs.title": "SCHEMA.TABLE.COLUMN, not 'mart.dim_jobs.title'",
    },
    "max_age": dict.fromkeys(("0h", "367d", "26", "1 week"), "a duration of at most 366 days"),
    "time_zone": dict.fromkeys(
        ("Europe/Brelin", "CEST+", "../UTC", "/etc/localtime", "Europe/", "Europe"),
        "the name of a time zone such as UTC",
    ),
    "verification_cron": dict.fromkeys(
        (
            *("often", "@daily", "* * * *", "* * * * * *", "60 * * * *", "* 24 * * *"),
            *("* * 0 * *", "* * * 13 *", "* * * * 8", "5-1 * * * *", "*/0 * * * *"),
            *("1-2-3 * * * *", "-1 * * * *", "0 0 * * MON"),
        ),
        _CRON,
    ),
    "record_url": dict.fromkeys(
        ("https://a.example/", "http://a.example/{id}", "https://a.example/{id}/{x}"),
        "an address such as https://app.example/{resource}/{id}",
    ),
}


@pytest.mark.parametrize("name", ACCEPTED)
def test_a_value_is_accepted_and_normalized(tmp_path: Path, name: str) -> None:
    for written, value in ACCEPTED[name].items():
        settings = load_settings({}, {ENVIRONMENT[name]: written}, tmp_path)
        assert value == getattr(settings, name)
        again = load_settings({name: getattr(settings, name)}, {}, tmp_path)
        assert value == getattr(again, name)


@pytest.mark.parametrize("name", REFUSED)
def test_a_value_is_refused_with_its_origin_and_the_allowed_values(
    tmp_path: Path, name: str
) -> None:
    for written, allowed in REFUSED[name].items():
        with pytest.raises(SettingsError) as caught:
            load_settings({}, {ENVIRONMENT[name]: written}, tmp_path)
        received = redact_address(written) if name == "base_url" else repr(written)
        message = str(caught.value)
        assert message.startswith(f"{name} is {received} (from {ENVIRONMENT[name]}): it must be ")
        assert allowed in message
        assert "secret" not in message
        assert 2 == caught.value.exit_status


@pytest.mark.parametrize("cron", ACCEPTED["nightly_cron"].values())
def test_schedule_times_are_in_dagsters_format(cron: str) -> None:
    assert "off" == cron or is_valid_cron_string(cron)


def test_a_refused_address_is_shown_without_user_and_query() -> None:
    assert "'https://acme.example/x'" == redact_address("https://u:p@acme.example/x?key=1#f")
    assert "a value without 'https://'" == redact_address("0123456789")
