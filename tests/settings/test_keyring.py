"""The API key from the system's keyring: its entry, and every error."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import keyring
import keyring.backends.fail
import pytest
from keyring.backend import KeyringBackend
from keyring.errors import KeyringError, KeyringLocked

from connector.errors import SettingsError
from connector.settings.model import Settings, load_settings

KEY = "planted-key-in-a-ring"
ENTRY = {"CONNECTOR_API_KEY_KEYRING": "recruitment-connector/acme"}


class FileKeyring(KeyringBackend):
    """Keyring in a JSON file. If it has an `error`, reading raises it."""

    priority = 1

    def __init__(self, path: Path, error: KeyringError | None = None) -> None:
        super().__init__()  # type: ignore[no-untyped-call] # keyring does not say its types
        self.path, self.error = path, error

    def get_password(self, service: str, username: str) -> str | None:
        if self.error is not None:
            raise self.error
        kept = json.loads(self.path.read_text(encoding="utf-8")) if self.path.exists() else {}
        found = kept.get(f"{service}\0{username}")
        return None if found is None else str(found)

    def set_password(self, service: str, username: str, password: str) -> None:
        self.path.write_text(json.dumps({f"{service}\0{username}": password}), encoding="utf-8")


@pytest.fixture
def file_keyring(tmp_path: Path) -> Iterator[FileKeyring]:
    """Keyring with the key, which replaces that of this process during the test."""
    before = keyring.get_keyring()
    ring = FileKeyring(tmp_path / "ring.json")
    ring.set_password("recruitment-connector", "acme", KEY)
    keyring.set_keyring(ring)
    yield ring
    keyring.set_keyring(before)


def load_keyring_settings(folder: Path, **environ: str) -> Settings:
    """Return the settings of the account whose key is in the keyring, with these variables."""
    return load_settings({}, {**ENTRY, **environ}, folder)


def test_the_key_is_read_from_the_keyring(file_keyring: FileKeyring, tmp_path: Path) -> None:
    settings = load_keyring_settings(tmp_path)

    assert settings.api_key.value is not None
    assert KEY == settings.api_key.value.get_secret_value()
    assert "the keyring, named by CONNECTOR_API_KEY_KEYRING" == settings.api_key.origin
    assert KEY not in repr(settings)
    assert ("api_key", "set", settings.api_key.origin) in list(settings.display_rows())


def test_each_account_can_name_its_own_keyring_entry(
    file_keyring: FileKeyring, tmp_path: Path
) -> None:
    (tmp_path / "connector.toml").write_text(
        'api_key_keyring = "recruitment-connector/top"\n[accounts.acme]\n'
        'base_url = "https://acme.example"\napi_key_keyring = "recruitment-connector/acme"\n'
        '[accounts.globex]\nbase_url = "https://globex.example"\n',
        encoding="utf-8",
    )
    acme = load_settings({"account": "acme"}, {}, tmp_path)
    globex = load_settings({"account": "globex"}, {}, tmp_path)

    assert acme.api_key.value is not None
    assert globex.api_key.value is None


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("recruitment-connector/other", "run 'keyring set recruitment-connector other'"),
        ("nothing", "must be SERVICE/USER"),
        ("/acme", "must be SERVICE/USER"),
        ("service/", "must be SERVICE/USER"),
    ],
)
def test_a_missing_keyring_entry_is_reported(
    file_keyring: FileKeyring, tmp_path: Path, entry: str, message: str
) -> None:
    with pytest.raises(SettingsError, match=message) as caught:
        load_keyring_settings(tmp_path, CONNECTOR_API_KEY_KEYRING=entry)
    assert "CONNECTOR_API_KEY_KEYRING" in str(caught.value)
    assert 2 == caught.value.exit_status


@pytest.mark.parametrize(
    ("error", "message"), [(KeyringLocked(KEY), "is locked"), (KeyringError(KEY), "failed")]
)
def test_a_locked_keyring_is_reported(
    file_keyring: FileKeyring, tmp_path: Path, error: KeyringError, message: str
) -> None:
    file_keyring.error = error
    with pytest.raises(SettingsError, match=message) as caught:
        load_keyring_settings(tmp_path)
    assert KEY not in f"{caught.value} {caught.value.action} {caught.value.__cause__}"


def test_a_machine_without_a_keyring_is_reported(file_keyring: FileKeyring, tmp_path: Path) -> None:
    keyring.set_keyring(keyring.backends.fail.Keyring())  # type: ignore[no-untyped-call] # as above
    with pytest.raises(SettingsError, match="this machine has no keyring") as caught:
        load_keyring_settings(tmp_path)
    assert "CONNECTOR_API_KEY_FILE" in caught.value.action


def test_a_missing_keyring_package_is_reported_with_its_installation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "keyring", None)

    assert None is load_settings({}, {}, tmp_path).api_key.value
    with pytest.raises(SettingsError, match=r"requirements/keyring\.txt"):
        load_keyring_settings(tmp_path)


def test_a_keyring_entry_beside_another_key_setting_is_refused(
    file_keyring: FileKeyring, tmp_path: Path
) -> None:
    for other in ({"CONNECTOR_API_KEY": "k"}, {"CONNECTOR_API_KEY_FILE": "k"}):
        with pytest.raises(SettingsError, match="both"):
            load_keyring_settings(tmp_path, **other)
    (tmp_path / "connector.toml").write_text(
        'base_url = "https://acme.example"\napi_key_keyring = "recruitment-connector/acme"\n',
        encoding="utf-8",
    )
    with pytest.raises(SettingsError, match="would still come from"):
        load_settings({}, {"CONNECTOR_BASE_URL": "https://other.example"}, tmp_path)
