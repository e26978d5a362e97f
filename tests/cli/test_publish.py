"""`connector publish`, and how pulls, pushes and status report the published file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from connector.sandbox.server import Sandbox
from connector.warehouse.user_query import query
from tests.models.account import LONG, Account
from tests.support.command import KEY, call, variables


@pytest.fixture
def account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Account:
    """Account with three jobs and a small project of models."""
    made = Account(tmp_path)
    made.use_project(monkeypatch)
    return made


def test_publish_builds_models_and_exports_them(account: Account, tmp_path: Path) -> None:
    folder = tmp_path / "lake"
    called = call(["publish"], account.environ)
    with_json = call(
        ["publish", "--json", "--parquet", str(folder), "--schema", "marts", "--without", "push"],
        account.environ,
    )

    assert (0, 0) == (called.status, with_json.status), called.err + with_json.err
    assert "(4 models, 11 checks, " in called.err
    shown = with_json.object
    assert ("published", 4, []) == (shown["outcome"], shown["models"], shown["failed_checks"])
    assert ["marts.fct_jobs", "marts.sum_jobs"] == shown["parquet"]["tables"]
    assert (folder / "marts" / "fct_jobs.parquet").is_file()
    gone = "SELECT count(*) FROM duckdb_tables() WHERE schema_name = 'push'"
    assert ((0,),) == query(account.file, gone).rows


def test_publish_with_hashed_columns_but_no_hash_key_is_refused(account: Account) -> None:
    called = call(["publish", "--personal", "hash"], account.environ)

    assert 2 == called.status
    assert "CONNECTOR_PUBLISH_HASH_KEY_FILE" in called.err
    assert not account.file.exists()


def test_a_refused_publication_is_reported_by_publish_and_by_status(account: Account) -> None:
    account.insert(
        "sync.bookmarks", {"resource": "jobs", "parent": "", "proven_at": "2026-03-04T05:06:07Z"}
    )
    call(["publish"], account.environ)
    account.insert("jobs", {"id": "j4", "title": LONG, "status": "open"})

    refused = call(["publish", "--json"], account.environ | {"CONNECTOR_LOG": "json"})
    called, with_json = (
        call(["status"], account.environ),
        call(["status", "--json"], account.environ),
    )

    assert (1, "publishing_refused") == (refused.status, refused.object["error"]["code"])
    logged = [json.loads(line) for line in refused.err.splitlines()]
    (ended,) = [each for each in logged if each.get("event") == "publication_ended"]
    assert "refused" == ended["outcome"]
    assert "data as of 2026-03-04T05:06:07Z" in called.out
    assert "1 check has failed: titles_are_short (1 row)." in called.out
    (problem, *_), published = with_json.object["problems"], with_json.object["published"]
    assert ("publication_failed", "published") == (problem["code"], published["outcome"])
    assert "2026-03-04T05:06:07+00:00" == published["true_of"]


def test_a_pull_whose_publication_is_refused_fails_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    account = Account(tmp_path, ())
    account.write("marts/schema.yml", "models: []")
    account.use_project(monkeypatch)
    with Sandbox(counts={"jobs": 2}, keys={KEY: ("*",)}) as sandbox:
        for id in sandbox.store.records("jobs"):
            sandbox.store.update("jobs", id, {"title": "Nurse"})
        environ = variables(sandbox.base_url, tmp_path / "data") | {"CONNECTOR_MODELS": "on"}
        first = call(["pull", "jobs", "--json"], environ)
        sandbox.store.update("jobs", id, {"title": LONG})
        second = call(["pull", "jobs", "--json"], environ)
        status = call(["status", "--json"], environ).object

    assert ("done", 4) == (first.object["outcome"], first.object["published"]["models"])
    assert (1, "failed") == (second.status, second.object["outcome"])
    assert "publishing_refused" == second.object["unpublished"]["code"]
    run = status["runs"][0]
    assert ("failed", "publishing_refused") == (run["outcome"], run["error_code"])
    assert "titles_are_short" in run["message"]
    landed = query(tmp_path / "data" / "recruitment.duckdb", "SELECT title FROM landing.jobs")
    assert {("Nurse",)} == set(landed.rows)
    assert 2 == status["resources"]["jobs"]["live"]


@pytest.mark.parametrize("words", [
    ("publish", "--parquet"), ("backup",), ("report", "--out"),
], ids=" ".join)  # fmt: skip
def test_an_unusable_path_of_the_user_is_not_blamed_on_the_data_folder(
    account: Account, tmp_path: Path, words: tuple[str, ...]
) -> None:
    call(["publish"], account.environ)
    (tmp_path / "file").write_text("")
    called = call([*words, str(tmp_path / "file" / "x")], account.environ)

    assert 1 == called.status
    assert f"{tmp_path / 'file'}" in called.err
    assert "Choose another path" in called.err
    assert "CONNECTOR_DATA_DIR" not in called.err
