"""Publishing: the content of the file, reasons to refuse it, and the recorded outcome."""

from __future__ import annotations

import os
import stat
import threading
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from connector.errors import ModelFailed, PublishingRefused, WarehouseError
from connector.models.publish import publish
from connector.settings import load_settings
from connector.state.database import columns
from connector.state.lock import hold
from connector.state.runs import Publication
from connector.warehouse.publish import own_publication
from tests.models.account import LONG, Account, list_columns
from tests.support.recorded import last_publications


def test_a_published_file_has_the_loaded_records_and_the_built_models(account: Account) -> None:
    account.insert("jobs", *({"id": f"j{n}", "title": "Nurse", "status": "open"} for n in (4, 5)))
    account.insert(
        "sync.bookmarks", {"resource": "jobs", "parent": "", "proven_at": "2026-03-04T05:06:07Z"}
    )

    done = account.publish(run_id="r1")

    assert [(5,)] == account.query("SELECT count(*) AS n FROM landing.jobs")
    assert [("closed", 1), ("open", 4)] == account.query("FROM marts.sum_jobs ORDER BY status")
    row = done.publication
    assert ("published", "r1", 4) == (row.outcome, row.run_id, row.models)
    assert ("jobs_are_few",) == row.failed_checks
    assert row.true_of is not None
    assert "2026-03-04T05:06:07+00:00" == row.true_of.isoformat()
    assert row == account.last_publication
    shown = own_publication(account.file)
    assert shown is not None
    # The file cannot know how long its being put in place will take.
    assert row == replace(shown, ended_at=row.ended_at, seconds=row.seconds)
    assert account.file.stat().st_size == row.bytes
    assert 0o600 == account.file.stat().st_mode & 0o777
    assert set() == {t for t in list_columns(account.warehouse.work) if t.startswith("marts.")}
    assert [] == account.leftovers()


def test_no_models_are_built_if_they_are_turned_off(account: Account) -> None:
    done = publish(account.settings(CONNECTOR_MODELS="off"))

    assert (0, 0) == (done.publication.models, done.publication.checks)
    schemas = {table.partition(".")[0] for table in list_columns(account.file)}
    assert {"landing", "history", "sync", "push"} == schemas


def test_a_published_file_keeps_the_mode_and_group_of_the_replaced_file(account: Account) -> None:
    account.publish()
    groups = [each for each in os.getgroups() if each != os.getgid()] or [12345]
    os.chown(account.file, -1, groups[0])
    account.file.chmod(0o640)

    account.publish()

    found = account.file.stat()
    assert (0o640, groups[0]) == (stat.S_IMODE(found.st_mode), found.st_gid)


def test_a_group_that_cannot_be_given_gets_no_rights(
    account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path, user: int, group: int) -> None:
        raise PermissionError

    account.publish()
    os.chown(account.file, -1, 12345)
    account.file.chmod(0o664)
    monkeypatch.setattr(os, "chown", refuse)

    account.publish()

    assert 0o604 == stat.S_IMODE(account.file.stat().st_mode)


def test_a_failed_check_keeps_the_old_file(account: Account) -> None:
    account.publish()
    before = account.file.read_bytes()
    account.insert("jobs", {"id": "j4", "title": LONG, "status": "open"})

    with pytest.raises(PublishingRefused) as caught:
        account.publish()

    assert ("titles_are_short",) == caught.value.failed
    assert "titles_are_short (1 row)" in str(caught.value)
    assert before == account.file.read_bytes()
    assert [] == account.leftovers()
    last = account.last_publication
    assert ("refused", "publishing_refused") == (last.outcome, last.error_code)
    assert last.message == str(caught.value)
    assert "titles_are_short" in last.failed_checks

    account.replace("audits/titles_are_short.sql", "> 10", "> 99")
    assert "published" == account.publish().publication.outcome
    assert [(4,)] == account.query("SELECT count(*) AS n FROM marts.fct_jobs")


def test_a_model_error_keeps_the_old_file_and_is_recorded_as_failed(account: Account) -> None:
    account.publish()
    before = account.file.read_bytes()
    path = account.project / "marts/fct_jobs.sql"
    path.write_text(path.read_text().replace("people.name", "people.nname"))

    with pytest.raises(ModelFailed, match=r"fct_jobs\.sql:3"):
        account.publish()

    assert before == account.file.read_bytes()
    assert ("failed", "model_failed") == (
        account.last_publication.outcome,
        account.last_publication.error_code,
    )
    assert [] == account.leftovers()


def test_files_left_by_a_crash_are_overwritten(account: Account) -> None:
    for name in ("recruitment.duckdb.publishing", "recruitment.duckdb.publishing.wal"):
        (account.warehouse.folder / name).write_bytes(b"half of something")
    (account.warehouse.folder / "recruitment.duckdb.masking").symlink_to("nowhere")
    account.insert(
        "sync.publications", columns(Publication("p0", datetime(2026, 1, 1, tzinfo=UTC)))
    )

    account.publish()

    assert [] == account.leftovers()
    outcomes = [each.outcome for each in last_publications(account.warehouse.folder, 5)]
    assert ["published", "interrupted"] == outcomes


def test_a_publication_waits_for_the_account(account: Account) -> None:
    done: list[str | None] = []

    def publish_in_thread() -> None:
        done.append(publish(account.settings(CONNECTOR_MODELS="off")).publication.outcome)

    with hold(account.warehouse.folder, "pull"):
        waiting = threading.Thread(target=publish_in_thread)
        waiting.start()
        account.insert("jobs", {"id": "j4", "title": "Driver"})
        assert not account.file.exists()
    waiting.join(60)

    assert ["published"] == done
    assert [(4,)] == account.query("SELECT count(*) AS n FROM landing.jobs")


def test_publishing_without_loaded_records_fails_and_suggests_a_pull(tmp_path: Path) -> None:
    settings = load_settings({}, {"CONNECTOR_DATA_DIR": str(tmp_path / "data")}, tmp_path)

    with pytest.raises(WarehouseError, match="no records are loaded") as caught:
        publish(settings)

    assert "connector pull" in caught.value.action
    assert not (tmp_path / "data").exists()
