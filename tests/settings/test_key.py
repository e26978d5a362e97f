"""The API key: its sources, and errors, which do not show it."""

from __future__ import annotations

import traceback
from pathlib import Path

import pytest

from connector.errors import SettingsError, UnknownName
from connector.settings import load_settings
from connector.settings.model import FILE_ENDING, SECRETS

KEY = "planted-key-0123456789"
HIDDEN = (*SECRETS, *(f"{name}{FILE_ENDING}" for name in SECRETS))


def write_file(path: Path, content: bytes, mode: int = 0o600) -> Path:
    """Write a key file, by default readable by its owner only."""
    path.write_bytes(content)
    path.chmod(mode)
    return path


def read_key(file: Path) -> str:
    """Return the API key that the settings read from a key file."""
    settings = load_settings({}, {"CONNECTOR_API_KEY_FILE": str(file)}, file.parent)
    assert settings.api_key is not None
    return settings.api_key.get_secret_value()


def test_a_key_from_the_environment_is_masked(tmp_path: Path) -> None:
    settings = load_settings({}, {"CONNECTOR_API_KEY": KEY}, tmp_path)

    assert settings.api_key is not None
    assert KEY == settings.api_key.get_secret_value()
    assert ("api_key", "set", "CONNECTOR_API_KEY") in list(settings.display_rows())
    for shown in (
        repr(settings),
        str(settings),
        repr(settings.api_key),
        repr(list(settings.display_rows())),
    ):
        assert KEY not in shown


@pytest.mark.parametrize("ending", [b"", b"\n", b"\r\n"])
def test_the_line_end_of_a_key_file_is_removed(tmp_path: Path, ending: bytes) -> None:
    assert KEY == read_key(write_file(tmp_path / "key", KEY.encode() + ending))


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "is empty"),
        (b"\n", "is empty"),
        (b"two words", "has a space"),
        (b" padded", "has a space"),
        (b"one\ntwo\n", "has a space, a line break"),
        (b"one\n\n", "has a space, a line break"),
        (b"k\xc3\xa9y", "has a space, a line break or a character outside ASCII"),
        (b"nul\x00", "has a space, a line break"),
        (b"x" * 4097, "is longer than 4096 characters"),
        (b"x" * 100_000, "is longer than 4096 characters"),
    ],
)
def test_a_key_file_with_invalid_content_is_refused(
    tmp_path: Path, content: bytes, problem: str
) -> None:
    file = write_file(tmp_path / "key", content)

    with pytest.raises(SettingsError) as caught:
        read_key(file)

    assert str(caught.value).startswith(f"api_key {problem}")
    assert f"(from {file}, named by CONNECTOR_API_KEY_FILE)" in str(caught.value)
    if content.strip():
        assert content.decode("latin-1") not in str(caught.value)


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o644, 0o660])
def test_a_key_file_that_others_can_read_causes_a_warning(tmp_path: Path, mode: int) -> None:
    file = write_file(tmp_path / "key", KEY.encode(), mode)

    settings = load_settings({}, {"CONNECTOR_API_KEY_FILE": str(file)}, tmp_path)

    expected = (
        f"The key file {file} can be opened by other users (mode {mode:04o}): run chmod 600 on it."
    )
    assert (expected,) == settings.warnings


def test_an_unreadable_key_file_is_refused_without_showing_its_name(tmp_path: Path) -> None:
    with pytest.raises(SettingsError) as caught:
        load_settings({}, {"CONNECTOR_API_KEY_FILE": KEY}, tmp_path)

    assert (
        "api_key_file (from CONNECTOR_API_KEY_FILE) must be a file that can be read:"
        " No such file or directory"
    ) == str(caught.value)


def test_a_key_and_a_key_file_together_are_refused(tmp_path: Path) -> None:
    file = write_file(tmp_path / "key", KEY.encode())
    environ = {"CONNECTOR_API_KEY": KEY, "CONNECTOR_API_KEY_FILE": str(file)}

    with pytest.raises(SettingsError, match="both CONNECTOR_API_KEY and CONNECTOR_API_KEY_FILE"):
        load_settings({}, environ, tmp_path)


@pytest.mark.parametrize("flag", HIDDEN)
def test_secrets_are_refused_as_command_line_options(tmp_path: Path, flag: str) -> None:
    with pytest.raises(UnknownName, match=f"'{flag}' is not a setting that an option") as caught:
        load_settings({flag: KEY}, {}, tmp_path)

    assert KEY not in str(caught.value)


@pytest.mark.parametrize("table", ["", "[accounts.acme]\n"])
@pytest.mark.parametrize("name", SECRETS)
def test_a_secret_in_the_project_file_is_refused(tmp_path: Path, name: str, table: str) -> None:
    (tmp_path / "connector.toml").write_text(f"{table}{name} = '{KEY}'\n", encoding="utf-8")

    with pytest.raises(SettingsError, match=f"contains {name}") as caught:
        load_settings({}, {}, tmp_path)

    assert f"set {name}_file" in caught.value.action
    assert KEY not in f"{caught.value} {caught.value.action}"


@pytest.mark.parametrize(
    "environ",
    [
        {"CONNECTOR_API_KEY": f"{KEY} x"},
        {"CONNECTOR_API_KEY": f"{KEY}\n"},
        {"CONNECTOR_API_KEY": KEY, "CONNECTOR_BILLING_DAY": "99"},
        {"CONNECTOR_BASE_URL": KEY},
        {"CONNECTOR_BASE_URL": f"https://user:{KEY}@acme.example"},
        {"CONNECTOR_BASE_URL": f"https://acme.example?api_key={KEY}"},
        {"CONNECTOR_BASE_URL": f"https://acme.example#{KEY}"},
        {"CONNECTOR_BASE_URL": f"http://{KEY}@acme.example"},
        {"CONNECTOR_API_KEY_FILE": KEY},
    ],
)
def test_no_error_about_the_key_contains_it(tmp_path: Path, environ: dict[str, str]) -> None:
    with pytest.raises(SettingsError) as caught:
        load_settings({}, environ, tmp_path)

    lines = traceback.format_exception_only(caught.value)
    assert KEY not in "".join(lines) + caught.value.action
    assert caught.value.__cause__ is None or KEY not in repr(caught.value.__cause__)
