"""Publishing: what the file has, what refuses it, and what is recorded either way."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

import pytest

from connector.errors import ModelFailed, PublishingRefused, WarehouseBusy, WarehouseError
from connector.publishing.publication import prepare_draft, publication_lock, publish
from connector.settings.model import load_settings
from connector.warehouse.runs import last_publications, read_own_publication
from tests.publishing.agency import LONG, PublishingAccount, tables_of
from tests.publishing.small import Follower


def test_published_file_has_what_landed_and_what_is_made_of_it(agency: PublishingAccount) -> None:
    agency.land("jobs", {"id": "j3", "title": "Driver"})
    agency.land(
        "sync.bookmarks", {"resource": "jobs", "parent": "", "proven_at": "2026-03-04T05:06:07Z"}
    )

    done = agency.publish(run_id="r1")

    assert [{"n": 3}] == agency.rows("SELECT count(*) AS n FROM landing.jobs")
    assert [5, 4, 6] == [r["letters"] for r in agency.rows("FROM marts.fct_jobs ORDER BY job_id")]
    row = done.publication
    assert ("published", "r1", 3) == (row.outcome, row.run_id, row.models)
    assert ("jobs_are_few",) == row.failed_checks
    assert row.true_of is not None
    assert "2026-03-04T05:06:07+00:00" == row.true_of.isoformat()
    assert row == agency.last
    shown = read_own_publication(agency.file)
    assert shown is not None
    # The file cannot know how long its being put in place will take.
    assert row == replace(shown, ended_at=row.ended_at, seconds=row.seconds)
    assert agency.file.stat().st_size == row.bytes
    assert 0o600 == agency.file.stat().st_mode & 0o777
    assert set() == {t for t in tables_of(agency.warehouse.work) if t.startswith("marts.")}
    assert [] == agency.leftovers()


def test_models_that_are_off_are_not_built(agency: PublishingAccount) -> None:
    done = publish(agency.settings(CONNECTOR_MODELS="off"))

    assert (0, 0) == (done.publication.models, done.publication.checks)
    schemas = {table.partition(".")[0] for table in tables_of(agency.file)}
    assert {"landing", "history", "sync", "push"} == schemas


def test_failed_check_keeps_the_old_file(agency: PublishingAccount) -> None:
    agency.publish()
    before = agency.file.read_bytes()
    agency.land("jobs", {"id": "j3", "title": LONG})

    with pytest.raises(PublishingRefused) as caught:
        agency.publish()

    assert ("titles_are_short",) == caught.value.failed
    assert "titles_are_short (1 row)" in str(caught.value)
    assert before == agency.file.read_bytes()
    assert [] == agency.leftovers()
    last = agency.last
    assert ("refused", "publishing_refused") == (last.outcome, last.error_code)
    assert last.message == str(caught.value)
    assert "titles_are_short" in last.failed_checks

    text = (agency.project_folder / "audits/titles_are_short.sql").read_text()
    path = agency.project_folder / "audits/titles_are_short.sql"
    path.write_text(text.replace("> 10", "> 99").replace("ten letters", "99 letters"))
    assert "published" == agency.publish().publication.outcome
    assert [{"n": 3}] == agency.rows("SELECT count(*) AS n FROM marts.fct_jobs")


def test_refused_draft_is_kept_where_that_is_asked(agency: PublishingAccount) -> None:
    agency.land("jobs", {"id": "j3", "title": LONG})

    with pytest.raises(PublishingRefused):
        agency.publish(keeps_draft=True)

    assert not agency.file.exists()
    draft = agency.file.with_name("recruitment.duckdb.publishing")
    assert "marts.fct_jobs" in tables_of(draft)
    publish(agency.settings(CONNECTOR_MODELS="off"))
    assert [] == agency.leftovers()


def test_broken_model_is_recorded_as_a_failure(agency: PublishingAccount) -> None:
    agency.publish()
    before = agency.file.read_bytes()
    path = agency.project_folder / "marts/fct_jobs.sql"
    path.write_text(path.read_text().replace("length(title)", "lengthh(title)"))

    with pytest.raises(ModelFailed, match=r"fct_jobs\.sql:5"):
        agency.publish()

    assert before == agency.file.read_bytes()
    assert ("failed", "model_failed") == (agency.last.outcome, agency.last.error_code)
    assert [] == agency.leftovers()


def test_what_a_crash_left_is_overwritten(agency: PublishingAccount) -> None:
    for name in ("recruitment.duckdb.publishing", "recruitment.duckdb.publishing.wal"):
        (agency.warehouse.folder / name).write_bytes(b"half of something")
    (agency.warehouse.folder / "recruitment.duckdb.masking").symlink_to("nowhere")
    agency.land("sync.publications", {"publication": "p0", "started_at": "2026-01-01T00:00:00Z"})

    agency.publish()

    assert [] == agency.leftovers()
    outcomes = [each.outcome for each in agency.warehouse.read(last_publications, 5)]
    assert ["published", "interrupted"] == outcomes


def test_unselected_models_are_copied(agency: PublishingAccount) -> None:
    agency.publish()
    agency.land("jobs", {"id": "j3", "title": "Driver"})
    watch = Follower()

    agency.publish(select=("dim_people",), watch=watch)

    assert "fct_jobs" not in watch.made
    assert [{"n": 2}] == agency.rows("SELECT count(*) AS n FROM marts.fct_jobs")
    assert [{"n": 3}] == agency.rows("SELECT count(*) AS n FROM landing.jobs")


def test_prepared_draft_is_published_as_it_is(agency: PublishingAccount) -> None:
    """A draft that was prepared is put in place without being built again, though more has landed
    since; taken up a second time it is gone, and the file is made from the beginning.
    """
    made = prepare_draft(agency.settings())
    assert not agency.file.exists()
    agency.land("jobs", {"id": "j3", "title": "Driver"})

    first, watch = agency.publish(prepared=made.publication), Follower()
    counts = agency.rows("SELECT count(*) AS n FROM marts.fct_jobs")
    second = agency.publish(prepared=made.publication, watch=watch)

    assert (None, [{"n": 2}]) == (first.built, counts)
    assert made.publication == first.publication.publication
    assert made.publication != second.publication.publication
    assert "fct_jobs" in watch.made
    assert [{"n": 3}] == agency.rows("SELECT count(*) AS n FROM marts.fct_jobs")


def test_prepared_draft_gives_way_to_what_was_published_since(agency: PublishingAccount) -> None:
    made = prepare_draft(agency.settings())
    draft = made.file.read_bytes()
    agency.land("jobs", {"id": "j3", "title": "Driver"})
    agency.publish()
    made.file.write_bytes(draft)

    agency.publish(prepared=made.publication)

    assert [{"n": 3}] == agency.rows("SELECT count(*) AS n FROM marts.fct_jobs")


def test_prepared_draft_with_a_failed_check_is_refused(agency: PublishingAccount) -> None:
    agency.land("jobs", {"id": "j3", "title": LONG})

    made = prepare_draft(agency.settings())
    recorded = agency.last

    assert ["titles_are_short"] == [each.name for each in made.built.blocking]
    assert ("refused", "publishing_refused") == (recorded.outcome, recorded.error_code)
    with pytest.raises(PublishingRefused, match="titles_are_short"):
        agency.publish(prepared=made.publication)
    assert not agency.file.exists()


def test_publishers_take_turns(agency: PublishingAccount) -> None:
    done: list[str | None] = []

    def second() -> None:
        done.append(publish(agency.settings(CONNECTOR_MODELS="off")).publication.outcome)

    with publication_lock(agency.warehouse.folder):
        with (
            pytest.raises(WarehouseBusy, match="another process has been publishing"),
            publication_lock(agency.warehouse.folder, wait_seconds=0),
        ):
            pass
        waiting = threading.Thread(target=second)
        waiting.start()
        agency.land("jobs", {"id": "j3", "title": "Driver"})
        assert not agency.file.exists()
    waiting.join(60)

    assert ["published"] == done
    assert [{"n": 3}] == agency.rows("SELECT count(*) AS n FROM landing.jobs")


def test_nothing_landed_is_said(tmp_path: Path) -> None:
    settings = load_settings({}, {"CONNECTOR_DATA_DIR": str(tmp_path / "data")}, tmp_path)

    with pytest.raises(WarehouseError, match="no records are loaded") as caught:
        publish(settings)

    assert "connector pull" in caught.value.action
    assert not (tmp_path / "data").exists()
