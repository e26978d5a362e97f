"""Publishing settings: excluded schemas, and the key for hashed fields."""

from __future__ import annotations

from pathlib import Path

import pytest

from connector.errors import SettingsError
from connector.settings import load_settings

HASH_KEY = "planted-hash-key-77aa"


@pytest.mark.parametrize("text", ['"push, sync"', '["push", "sync"]'])
def test_excluded_schemas_can_be_a_list_or_comma_separated(tmp_path: Path, text: str) -> None:
    (tmp_path / "connector.toml").write_text(f"publish_without = {text}\n", encoding="utf-8")

    settings = load_settings({}, {}, tmp_path)

    assert ("sync", "push") == settings.publish_without
    assert ("publish_without", "sync, push", "connector.toml") in list(settings.display_rows())


def test_groups_of_the_project_file_are_settings(tmp_path: Path) -> None:
    text = '[publish]\nwithout = ["push"]\n[models]\nschema = "acme"\n'
    (tmp_path / "connector.toml").write_text(text, encoding="utf-8")

    settings = load_settings({}, {}, tmp_path)

    assert (("push",), "acme") == (settings.publish_without, settings.models_schema)


def test_the_hash_key_is_not_shown(tmp_path: Path) -> None:
    (tmp_path / "hash.key").write_text(f"{HASH_KEY}\n", encoding="utf-8")
    (tmp_path / "hash.key").chmod(0o600)
    (tmp_path / "connector.toml").write_text(
        "publish_hash_key_file = 'hash.key'\n[accounts.acme]\npublish_personal = 'hash'\n",
        encoding="utf-8",
    )

    settings = load_settings({"account": "acme"}, {}, tmp_path)

    key = settings.hash_key()
    assert key is not None
    assert HASH_KEY == key.get_secret_value()
    assert HASH_KEY not in f"{settings!r} {list(settings.display_rows())}"
    assert None is load_settings({}, {}, tmp_path).hash_key()


@pytest.mark.parametrize(
    ("text", "message"),
    [("tiny-0", "shorter than 16 characters"), ("two words, and long", "has a space")],
)
def test_a_short_or_weak_hash_key_is_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(SettingsError, match=message) as caught:
        load_settings({}, {"CONNECTOR_PUBLISH_HASH_KEY": text}, tmp_path)

    assert text not in str(caught.value)
