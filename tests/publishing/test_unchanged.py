"""Publishing only if something has changed, and which changes count."""

from __future__ import annotations

import shutil
from collections.abc import Callable

import duckdb
import pytest

from connector.errors import ModelFailed
from connector.publishing import publication as publishing
from connector.publishing.publication import prepare_draft, publish
from connector.warehouse.runs import last_publications
from tests.publishing.agency import PublishingAccount
from tests.tiers import first_fast

NOON = "2026-03-04T12:00:00Z"
MOVE_PROOF = "UPDATE sync.bookmarks SET proven_at = '{}'"
OUTCOME = {
    "run_id": "r1",
    "resource": "jobs",
    "outcome": "done",
    "proven": True,
    "live": 2,
    "total": 2,
    "pending": 0,
}


@pytest.fixture
def agency(agency: PublishingAccount) -> PublishingAccount:
    """Published account that was verified at noon, with a run, a past and a future booking."""
    agency.insert_rows("sync.bookmarks", {"resource": "jobs", "parent": "", "proven_at": NOON})
    agency.insert_rows("sync.runs", {"run_id": "r1", "started_at": NOON, "outcome": "done"})
    agency.insert_rows("sync.run_resources", OUTCOME)
    agency.insert_rows(
        "bookings",
        {"id": "b1", "start_datetime": "2026-03-04T09:00:00Z"},
        {"id": "b2", "start_datetime": "2026-03-04T15:00:00Z"},
    )
    agency.insert_rows(
        "history.jobs",
        {"id": "j1", "_observed_from": NOON, "_observed_to": NOON, "_hydrated_at": NOON},
    )
    agency.publish()
    return agency


def publish_if_changed(agency: PublishingAccount, **given: str) -> str | None:
    """Publish if something has changed, with these variables, and return the outcome."""
    return publish(agency.settings(**given), if_changed=True).publication.outcome


def test_an_unchanged_account_is_not_published_again(agency: PublishingAccount) -> None:
    before, publication = agency.published_file.stat(), agency.last_publication.publication

    for _ in range(3):
        done = agency.publish(if_changed=True)

    assert done.is_unchanged
    assert done.built is None
    assert (before.st_ino, before.st_mtime_ns) == (
        agency.published_file.stat().st_ino,
        agency.published_file.stat().st_mtime_ns,
    )
    assert [] == agency.list_leftover_files()
    outcomes = [(e.outcome, e.publication) for e in agency.warehouse.read(last_publications, 9)]
    # A pull every five minutes does not fill the table.
    assert [("unchanged", done.publication.publication), ("published", publication)] == outcomes
    assert "published" == agency.publish().publication.outcome


@pytest.mark.parametrize(
    "change",
    first_fast(
        [
            MOVE_PROOF.format("2026-03-04T14:59:00Z"),
            f"UPDATE landing.jobs SET _seen_at = '{NOON}'",
            "UPDATE history.jobs SET _observed_to = _observed_to + INTERVAL 1 HOUR",
            "INSERT INTO sync.runs (run_id, started_at, outcome) VALUES ('r2', now(), 'done'); "
            "INSERT INTO sync.run_resources SELECT * REPLACE ('r2' AS run_id) "
            "FROM sync.run_resources",
            "INSERT INTO sync.quota VALUES (current_date, current_date, 'pull', 'list', 12)",
        ],
        2,
    ),
)
def test_a_newer_verification_time_alone_is_not_published(
    agency: PublishingAccount, change: str
) -> None:
    agency.run_sql(change)

    assert "unchanged" == publish_if_changed(agency)


@pytest.mark.parametrize(
    "change",
    first_fast(
        [
            "INSERT INTO landing.jobs (id, title) VALUES ('j3', 'Driver')",
            "UPDATE landing.jobs SET title = 'Chef' WHERE id = 'j2'",
            f"UPDATE landing.jobs SET _deleted_at = '{NOON}' WHERE id = 'j2'",
            f"UPDATE landing.jobs SET _hydrated_at = '{NOON}' WHERE id = 'j2'",
            "DELETE FROM landing.jobs WHERE id = 'j2'",
            "INSERT INTO landing.content_type_fields (id) VALUES ('f1')",
            f"INSERT INTO history.jobs (id, _observed_from) VALUES ('j2', '{NOON}')",
            f"UPDATE history.jobs SET _valid_to = '{NOON}'",
            "INSERT INTO sync.queue (resource, parent, id) VALUES ('jobs', '', 'j2')",
            "INSERT INTO sync.erased (resource, id) VALUES ('candidates', 'c1')",
            "UPDATE sync.folder SET address = 'https://other.example'; "
            "INSERT INTO sync.folder (folder) VALUES ('f')",
            "INSERT INTO push.batches (batch, change) VALUES ('b', 7)",
            # The first proof of another resource, and one that was withdrawn.
            "INSERT INTO sync.bookmarks (resource, parent, proven_at)"
            f" VALUES ('leads', '', '{NOON}')",
            "UPDATE sync.run_resources SET proven = false, outcome = 'partial'",
            "UPDATE sync.run_resources SET total = 3",
        ],
        3,
    ),
)
def test_changed_records_or_sync_states_are_published_once(
    agency: PublishingAccount, change: str
) -> None:
    agency.run_sql(change)

    assert "published" == publish_if_changed(agency)
    assert "unchanged" == publish_if_changed(agency)


@pytest.mark.slow
def test_a_new_day_in_the_time_zone_of_the_account_is_published(agency: PublishingAccount) -> None:
    """Models compare dates with today: 23:30 in UTC is the next day in Berlin."""
    berlin = {"CONNECTOR_TIME_ZONE": "Europe/Berlin"}
    assert "published" == publish_if_changed(agency, **berlin)
    agency.run_sql("DELETE FROM landing.bookings")
    assert "published" == publish_if_changed(agency, **berlin)

    agency.run_sql(MOVE_PROOF.format("2026-03-04T22:30:00Z"))
    assert "unchanged" == publish_if_changed(agency, **berlin)
    agency.run_sql(MOVE_PROOF.format("2026-03-04T23:30:00Z"))
    assert "published" == publish_if_changed(agency, **berlin)


def test_an_interview_that_started_since_is_published(agency: PublishingAccount) -> None:
    agency.run_sql(MOVE_PROOF.format("2026-03-04T15:01:00Z"))

    assert "published" == publish_if_changed(agency)


@pytest.mark.parametrize(
    "changed_setting",
    first_fast(
        [
            {"CONNECTOR_PUBLISH_PERSONAL": "drop"},
            {"CONNECTOR_PUBLISH_PERSONAL": "hash", "CONNECTOR_PUBLISH_HASH_KEY": "k" * 32},
            {"CONNECTOR_PUBLISH_WITHOUT": "history"},
            {"CONNECTOR_TIME_ZONE": "Europe/Madrid"},
            {"CONNECTOR_MODELS": "off"},
        ],
        2,
    ),
)
def test_a_changed_setting_is_published_once(
    agency: PublishingAccount, changed_setting: dict[str, str]
) -> None:
    assert "published" == publish_if_changed(agency, **changed_setting)
    assert "unchanged" == publish_if_changed(agency, **changed_setting)


def test_a_changed_hash_key_is_published_but_not_contained_in_the_file(
    agency: PublishingAccount,
) -> None:
    given = {"CONNECTOR_PUBLISH_PERSONAL": "hash", "CONNECTOR_PUBLISH_HASH_KEY": "k" * 32}
    publish_if_changed(agency, **given)

    assert "published" == publish_if_changed(
        agency, **given | {"CONNECTOR_PUBLISH_HASH_KEY": "l" * 32}
    )
    assert "k" * 32 not in agency.published_file.read_bytes().decode("latin-1")


@pytest.mark.slow
def test_a_changed_own_model_or_seed_is_published(agency: PublishingAccount) -> None:
    own, seeds = agency.folder / "own", agency.warehouse.folder / "seeds"
    own.mkdir()
    seeds.mkdir()
    given = {"CONNECTOR_MODELS_FOLDER": str(own)}
    for path, text in (
        (own / "long_jobs.sql", "select 1 as one"),
        (own / "schema.yml", "models: []"),
        (seeds / "people.csv", "id,name,team"),
    ):
        for written in (text, f"{text}\n"):
            path.write_text(written)
            assert "published" == publish_if_changed(agency, **given), path
            assert "unchanged" == publish_if_changed(agency, **given), path
        path.unlink()
        assert "published" == publish_if_changed(agency, **given), path


@pytest.mark.slow
def test_a_new_version_of_the_connector_publishes_again(
    agency: PublishingAccount, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publishing, "program_version", lambda: "9.9.9")

    assert "published" == publish_if_changed(agency)


def _lose_file(agency: PublishingAccount) -> None:
    agency.published_file.unlink()


def _overwrite_file(agency: PublishingAccount) -> None:
    # A damaged disk leaves a file of the same size.
    agency.published_file.write_bytes(b"x" * agency.published_file.stat().st_size)


def _damage_blocks(agency: PublishingAccount) -> None:
    """Overwrite the published file except its header."""
    content = agency.published_file.read_bytes()
    agency.published_file.write_bytes(content[:12_288] + b"x" * (len(content) - 12_288))


def _restore_older_file(agency: PublishingAccount) -> None:
    """Replace the published file by that of the publication before."""
    older = agency.folder / "older.duckdb"
    shutil.copy(agency.published_file, older)
    agency.publish()
    shutil.copy(older, agency.published_file)
    # Files of two publications often have the same size.
    agency.run_sql(f"UPDATE sync.publications SET bytes = {agency.published_file.stat().st_size}")


def _publish_with_broken_model(agency: PublishingAccount) -> None:
    """Fail to publish because of an invalid model, and correct the model."""
    path = agency.project_folder / "marts/fct_jobs.sql"
    text = path.read_text()
    path.write_text(text.replace("length(title)", "lengthh(title)"))
    with pytest.raises(ModelFailed):
        agency.publish()
    path.write_text(text)


def _leave_unfinished_publication(agency: PublishingAccount) -> None:
    """Record a publication that started and did not end."""
    agency.insert_rows(
        "sync.publications", {"publication": "p9", "started_at": "2099-01-01T00:00:00Z"}
    )


def _publish_one_model(agency: PublishingAccount) -> None:
    agency.publish(select=("fct_jobs",))


@pytest.mark.parametrize(
    "damage_file",
    first_fast(
        [
            _overwrite_file,
            _lose_file,
            _damage_blocks,
            _restore_older_file,
            _publish_with_broken_model,
            _leave_unfinished_publication,
            _publish_one_model,
        ],
        2,
    ),
)
def test_a_lost_damaged_or_incomplete_published_file_is_replaced(
    agency: PublishingAccount, damage_file: Callable[[PublishingAccount], None]
) -> None:
    damage_file(agency)

    assert "published" == publish_if_changed(agency)


@pytest.mark.slow
@pytest.mark.parametrize("left_out", ["sync", "sync,push"])
def test_an_unchanged_file_without_the_sync_tables_is_not_replaced(
    agency: PublishingAccount, left_out: str
) -> None:
    given = {"CONNECTOR_PUBLISH_WITHOUT": left_out}
    assert "published" == publish_if_changed(agency, **given)
    assert "unchanged" == publish_if_changed(agency, **given)


def test_a_foreign_file_in_place_of_the_published_file_is_replaced(
    agency: PublishingAccount,
) -> None:
    given = {"CONNECTOR_PUBLISH_WITHOUT": "sync"}
    publish_if_changed(agency, **given)
    agency.published_file.unlink()
    with duckdb.connect(str(agency.published_file)) as another:
        another.execute("CREATE TABLE notes AS SELECT range AS line FROM range(3)")

    assert "published" == publish_if_changed(agency, **given)


def test_a_prepared_draft_is_published_even_if_nothing_has_changed(
    agency: PublishingAccount,
) -> None:
    made = prepare_draft(agency.settings())

    done = agency.publish(prepared=made.publication, if_changed=True)

    assert "published" == done.publication.outcome
    assert made.publication == done.publication.publication
