"""Publishing only if something has changed: what counts as a change, and what does not."""

from __future__ import annotations

import shutil
from collections.abc import Callable

import duckdb
import pytest

from connector.errors import ModelFailed
from connector.publishing import publication as publishing
from connector.publishing.publication import prepare_draft, publish
from connector.warehouse.duckdb_file import open_file
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
    """The agency, proven up to noon, with a run, a past and a coming booking, and published."""
    agency.land("sync.bookmarks", {"resource": "jobs", "parent": "", "proven_at": NOON})
    agency.land("sync.runs", {"run_id": "r1", "started_at": NOON, "outcome": "done"})
    agency.land("sync.run_resources", OUTCOME)
    agency.land(
        "bookings",
        {"id": "b1", "start_datetime": "2026-03-04T09:00:00Z"},
        {"id": "b2", "start_datetime": "2026-03-04T15:00:00Z"},
    )
    agency.land(
        "history.jobs",
        {"id": "j1", "_observed_from": NOON, "_observed_to": NOON, "_hydrated_at": NOON},
    )
    agency.publish()
    return agency


def outcome_of(agency: PublishingAccount, **given: str) -> str | None:
    """Publish if something has changed, and return the outcome."""
    return publish(agency.settings(**given), if_changed=True).publication.outcome


def run_sql(agency: PublishingAccount, sql: str) -> None:
    """Change the work file."""
    with open_file(agency.warehouse.work) as connection:
        connection.execute(sql)


def test_nothing_is_published_if_nothing_has_changed(agency: PublishingAccount) -> None:
    before, publication = agency.file.stat(), agency.last.publication

    for _ in range(3):
        done = agency.publish(if_changed=True)

    assert done.is_unchanged
    assert done.built is None
    assert (before.st_ino, before.st_mtime_ns) == (
        agency.file.stat().st_ino,
        agency.file.stat().st_mtime_ns,
    )
    assert [] == agency.leftovers()
    outcomes = [(e.outcome, e.publication) for e in agency.warehouse.read(last_publications, 9)]
    # A pull every five minutes does not fill the table.
    assert [("unchanged", done.publication.publication), ("published", publication)] == outcomes
    assert "published" == agency.publish().publication.outcome


@pytest.mark.parametrize(
    "sql",
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
def test_verifying_again_is_no_change(agency: PublishingAccount, sql: str) -> None:
    run_sql(agency, sql)

    assert "unchanged" == outcome_of(agency)


@pytest.mark.parametrize(
    "sql",
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
def test_a_change_of_the_records_or_their_state_is_published(
    agency: PublishingAccount, sql: str
) -> None:
    run_sql(agency, sql)

    assert "published" == outcome_of(agency)
    assert "unchanged" == outcome_of(agency)


@pytest.mark.slow
def test_a_new_day_of_the_account_is_published(agency: PublishingAccount) -> None:
    """Models compare days with today's: 23:30 in UTC is the next day in Berlin."""
    berlin = {"CONNECTOR_TIME_ZONE": "Europe/Berlin"}
    assert "published" == outcome_of(agency, **berlin)
    run_sql(agency, "DELETE FROM landing.bookings")
    assert "published" == outcome_of(agency, **berlin)

    run_sql(agency, MOVE_PROOF.format("2026-03-04T22:30:00Z"))
    assert "unchanged" == outcome_of(agency, **berlin)
    run_sql(agency, MOVE_PROOF.format("2026-03-04T23:30:00Z"))
    assert "published" == outcome_of(agency, **berlin)


def test_an_interview_that_has_begun_since_is_published(agency: PublishingAccount) -> None:
    run_sql(agency, MOVE_PROOF.format("2026-03-04T15:01:00Z"))

    assert "published" == outcome_of(agency)


@pytest.mark.parametrize(
    "given",
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
def test_a_changed_setting_is_published(agency: PublishingAccount, given: dict[str, str]) -> None:
    assert "published" == outcome_of(agency, **given)
    assert "unchanged" == outcome_of(agency, **given)


def test_another_hash_key_is_published_and_none_is_shown(agency: PublishingAccount) -> None:
    given = {"CONNECTOR_PUBLISH_PERSONAL": "hash", "CONNECTOR_PUBLISH_HASH_KEY": "k" * 32}
    outcome_of(agency, **given)

    assert "published" == outcome_of(agency, **given | {"CONNECTOR_PUBLISH_HASH_KEY": "l" * 32})
    assert "k" * 32 not in agency.file.read_bytes().decode("latin-1")


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
            assert "published" == outcome_of(agency, **given), path
            assert "unchanged" == outcome_of(agency, **given), path
        path.unlink()
        assert "published" == outcome_of(agency, **given), path


@pytest.mark.slow
def test_another_version_publishes(
    agency: PublishingAccount, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publishing, "program_version", lambda: "9.9.9")

    assert "published" == outcome_of(agency)


def _lose_file(agency: PublishingAccount) -> None:
    agency.file.unlink()


def _overwrite_file(agency: PublishingAccount) -> None:
    # A damaged disk leaves a file of the same size.
    agency.file.write_bytes(b"x" * agency.file.stat().st_size)


def _damage_blocks(agency: PublishingAccount) -> None:
    content = agency.file.read_bytes()
    agency.file.write_bytes(content[:12_288] + b"x" * (len(content) - 12_288))


def _bring_back_older_file(agency: PublishingAccount) -> None:
    older = agency.folder / "older.duckdb"
    shutil.copy(agency.file, older)
    agency.publish()
    shutil.copy(older, agency.file)
    # Files of two publications often have the same size.
    run_sql(agency, f"UPDATE sync.publications SET bytes = {agency.file.stat().st_size}")


def _fail(agency: PublishingAccount) -> None:
    path = agency.project_folder / "marts/fct_jobs.sql"
    text = path.read_text()
    path.write_text(text.replace("length(title)", "lengthh(title)"))
    with pytest.raises(ModelFailed):
        agency.publish()
    path.write_text(text)


def _crash(agency: PublishingAccount) -> None:
    agency.land("sync.publications", {"publication": "p9", "started_at": "2099-01-01T00:00:00Z"})


def _select(agency: PublishingAccount) -> None:
    agency.publish(select=("fct_jobs",))


@pytest.mark.parametrize(
    "harm",
    first_fast(
        [
            _overwrite_file,
            _lose_file,
            _damage_blocks,
            _bring_back_older_file,
            _fail,
            _crash,
            _select,
        ],
        2,
    ),
)
def test_a_file_that_does_not_show_everything_is_replaced(
    agency: PublishingAccount, harm: Callable[[PublishingAccount], None]
) -> None:
    harm(agency)

    assert "published" == outcome_of(agency)


@pytest.mark.slow
@pytest.mark.parametrize("without", ["sync", "sync,push"])
def test_a_file_without_its_own_record_is_left_as_well(
    agency: PublishingAccount, without: str
) -> None:
    given = {"CONNECTOR_PUBLISH_WITHOUT": without}
    assert "published" == outcome_of(agency, **given)
    assert "unchanged" == outcome_of(agency, **given)


def test_another_file_is_replaced_although_it_has_no_record(agency: PublishingAccount) -> None:
    given = {"CONNECTOR_PUBLISH_WITHOUT": "sync"}
    outcome_of(agency, **given)
    agency.file.unlink()
    with duckdb.connect(str(agency.file)) as another:
        another.execute("CREATE TABLE notes AS SELECT range AS line FROM range(3)")

    assert "published" == outcome_of(agency, **given)


def test_a_prepared_draft_is_published_although_nothing_has_changed(
    agency: PublishingAccount,
) -> None:
    made = prepare_draft(agency.settings())

    done = agency.publish(prepared=made.publication, if_changed=True)

    assert "published" == done.publication.outcome
    assert made.publication == done.publication.publication
