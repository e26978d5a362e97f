"""The settings on what is published: schemas left out, and the key by which fields are hashed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from connector.errors import SettingsError
from connector.settings.model import load_settings

HASH_KEY = "planted-hash-key-77aa"


@pytest.mark.parametrize("text", ['"push, sync"', '["push", "sync"]'])
def test_schemas_left_out_are_a_list_or_parted_by_commas(tmp_path: Path, text: str) -> None:
    (tmp_path / "connector.toml").write_text(f"publish_without = {text}\n", encoding="utf-8")

    settings = load_settings({}, {}, tmp_path)

    assert ("sync", "push") == settings.publish_without.value
    assert ("publish_without", "sync, push", "connector.toml") in list(settings.rows())


def test_schemas_and_columns_left_out_stand_in_a_table_of_the_project_file(tmp_path: Path) -> None:
    text = '[publish]\nwithout = ["candidates.notes", "push", "marts.dim_candidates.phone"]\n'
    (tmp_path / "connector.toml").write_text(text, encoding="utf-8")

    left_out = load_settings({}, {}, tmp_path).publish_without.value

    assert ("push", "candidates.notes", "marts.dim_candidates.phone") == left_out


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("candidates.note", "no field of candidates (did you mean 'notes'?). Allowed: id, "),
        ("candidate.notes", "no resource (did you mean 'candidates'?). Allowed: "),
        ("mart.dim_jobs.title", "SCHEMA.TABLE.COLUMN; 'mart.dim_jobs.title' is neither"),
    ],
)
def test_what_cannot_be_left_out_is_refused(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(SettingsError, match=re.escape(said)):
        load_settings({}, {"CONNECTOR_PUBLISH_WITHOUT": f"push,{text}"}, tmp_path)


def test_hashing_without_a_key_is_refused_before_anything_is_done(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="publish_hash_key is not set") as caught:
        load_settings({}, {"CONNECTOR_PUBLISH_PERSONAL": "hash"}, tmp_path)

    assert "CONNECTOR_PUBLISH_HASH_KEY_FILE" in caught.value.action


def test_hash_key_is_a_secret(tmp_path: Path) -> None:
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
    assert HASH_KEY not in f"{settings!r} {list(settings.rows())}"
    assert None is load_settings({}, {}, tmp_path).hash_key()


@pytest.mark.parametrize(
    ("text", "said"),
    [("tiny-0", "shorter than 16 characters"), ("two words, and long", "has a space")],
)
def test_hash_key_that_can_be_guessed_is_refused(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(SettingsError, match=said) as caught:
        load_settings({}, {"CONNECTOR_PUBLISH_HASH_KEY": text}, tmp_path)

    assert text not in str(caught.value)
