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
from tests.models.agency import LONG, PublishingAccount, list_columns
from tests.support.recorded import last_publications


def test_a_published_file_has_the_loaded_records_and_the_built_models(
    agency: PublishingAccount,
) -> None:
    agency.insert_rows("jobs", {"id": "j3", "title": "Driver"})
    agency.insert_rows(
        "sync.bookmarks", {"resource": "jobs", "parent": "", "proven_at": "2026-03-04T05:06:07Z"}
    )

    done = agency.publish(run_id="r1")

    assert [{"n": 3}] == agency.query("SELECT count(*) AS n FROM landing.jobs")
    assert [5, 4, 6] == [r["letters"] for r in agency.query("FROM marts.fct_jobs ORDER BY job_id")]
    row = done.publication
    assert ("published", "r1", 3) == (row.outcome, row.run_id, row.models)
    assert ("jobs_are_few",) == row.failed_checks
    assert row.true_of is not None
    assert "2026-03-04T05:06:07+00:00" == row.true_of.isoformat()
    assert row == agency.last_publication
    shown = own_publication(agency.published_file)
    assert shown is not None
    # The file cannot know how long its being put in place will take.
    assert row == replace(shown, ended_at=row.ended_at, seconds=row.seconds)
    assert agency.published_file.stat().st_size == row.bytes
    assert 0o600 == agency.published_file.stat().st_mode & 0o777
    assert set() == {t for t in list_columns(agency.warehouse.work) if t.startswith("marts.")}
    assert [] == agency.list_leftover_files()


def test_no_models_are_built_if_they_are_turned_off(agency: PublishingAccount) -> None:
    done = publish(agency.settings(CONNECTOR_MODELS="off"))

    assert (0, 0) == (done.publication.models, done.publication.checks)
    schemas = {table.partition(".")[0] for table in list_columns(agency.published_file)}
    assert {"landing", "history", "sync", "push"} == schemas


def test_a_published_file_keeps_the_mode_and_group_of_the_replaced_file(
    agency: PublishingAccount,
) -> None:
    agency.publish()
    groups = [each for each in os.getgroups() if each != os.getgid()] or [12345]
    os.chown(agency.published_file, -1, groups[0])
    agency.published_file.chmod(0o640)

    agency.publish()

    found = agency.published_file.stat()
    assert (0o640, groups[0]) == (stat.S_IMODE(found.st_mode), found.st_gid)


def test_a_group_that_cannot_be_given_gets_no_rights(
    agency: PublishingAccount, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path, user: int, group: int) -> None:
        raise PermissionError

    agency.publish()
    os.chown(agency.published_file, -1, 12345)
    agency.published_file.chmod(0o664)
    monkeypatch.setattr(os, "chown", refuse)

    agency.publish()

    assert 0o604 == stat.S_IMODE(agency.published_file.stat().st_mode)


def test_a_failed_check_keeps_the_old_file(agency: PublishingAccount) -> None:
    agency.publish()
    before = agency.published_file.read_bytes()
    agency.insert_rows("jobs", {"id": "j3", "title": LONG})

    with pytest.raises(PublishingRefused) as caught:
        agency.publish()

    assert ("titles_are_short",) == caught.value.failed
    assert "titles_are_short (1 row)" in str(caught.value)
    assert before == agency.published_file.read_bytes()
    assert [] == agency.list_leftover_files()
    last = agency.last_publication
    assert ("refused", "publishing_refused") == (last.outcome, last.error_code)
    assert last.message == str(caught.value)
    assert "titles_are_short" in last.failed_checks

    text = (agency.project_folder / "audits/titles_are_short.sql").read_text()
    path = agency.project_folder / "audits/titles_are_short.sql"
    path.write_text(text.replace("> 10", "> 99").replace("ten letters", "99 letters"))
    assert "published" == agency.publish().publication.outcome
    assert [{"n": 3}] == agency.query("SELECT count(*) AS n FROM marts.fct_jobs")


def test_a_model_error_keeps_the_old_file_and_is_recorded_as_failed(
    agency: PublishingAccount,
) -> None:
    agency.publish()
    before = agency.published_file.read_bytes()
    path = agency.project_folder / "marts/fct_jobs.sql"
    path.write_text(path.read_text().replace("length(title)", "lengthh(title)"))

    with pytest.raises(ModelFailed, match=r"fct_jobs\.sql:1"):
        agency.publish()

    assert before == agency.published_file.read_bytes()
    assert ("failed", "model_failed") == (
        agency.last_publication.outcome,
        agency.last_publication.error_code,
    )
    assert [] == agency.list_leftover_files()


def test_files_left_by_a_crash_are_overwritten(agency: PublishingAccount) -> None:
    for name in ("recruitment.duckdb.publishing", "recruitment.duckdb.publishing.wal"):
        (agency.warehouse.folder / name).write_bytes(b"half of something")
    (agency.warehouse.folder / "recruitment.duckdb.masking").symlink_to("nowhere")
    killed = Publication("p0", datetime(2026, 1, 1, tzinfo=UTC))
    agency.insert_rows("sync.publications", columns(killed))

    agency.publish()

    assert [] == agency.list_leftover_files()
    outcomes = [each.outcome for each in last_publications(agency.warehouse.folder, 5)]
    assert ["published", "interrupted"] == outcomes


def test_a_publication_waits_for_the_account(agency: PublishingAccount) -> None:
    done: list[str | None] = []

    def publish_in_thread() -> None:
        done.append(publish(agency.settings(CONNECTOR_MODELS="off")).publication.outcome)

    with hold(agency.warehouse.folder, "pull"):
        waiting = threading.Thread(target=publish_in_thread)
        waiting.start()
        agency.insert_rows("jobs", {"id": "j3", "title": "Driver"})
        assert not agency.published_file.exists()
    waiting.join(60)

    assert ["published"] == done
    assert [{"n": 3}] == agency.query("SELECT count(*) AS n FROM landing.jobs")


def test_publishing_without_loaded_records_fails_and_suggests_a_pull(tmp_path: Path) -> None:
    settings = load_settings({}, {"CONNECTOR_DATA_DIR": str(tmp_path / "data")}, tmp_path)

    with pytest.raises(WarehouseError, match="no records are loaded") as caught:
        publish(settings)

    assert "connector pull" in caught.value.action
    assert not (tmp_path / "data").exists()
