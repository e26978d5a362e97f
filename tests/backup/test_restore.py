"""Restoring yesterday's backup and pulling gives an exact copy, and creates no record twice."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from connector.errors import ConnectorError
from connector.ledger.erasures import Backups
from connector.ledger.ledger import Ledger
from connector.operations.restore import RestoreOptions, restore
from connector.privacy.erase import erase
from connector.sandbox.server import Sandbox
from connector.sandbox.store import Store
from tests.backup.aged_backup import COUNTS, BackedUpAccount
from tests.privacy.populated_agency import find_traces
from tests.support.agency import differences, published, rows
from tests.support.errors import has_code

pytestmark = pytest.mark.slow

EMAIL, NAME = "Olwen.Zz@mail.example", "Zzyzxworth"
PERSON = {"first_name": "Olwen", "last_name": NAME, "email": EMAIL, "employment_type": "permanent"}


@pytest.fixture
def account(tmp_path: Path) -> Iterator[BackedUpAccount]:
    """Account that has pulled once, with its running server."""
    with Sandbox(counts=COUNTS) as sandbox:
        account = BackedUpAccount(sandbox, tmp_path)
        sandbox.store.create("candidates", PERSON)
        account.pull()
        yield account


def test_a_pull_after_restoring_a_lost_work_file_equals_the_server(
    account: BackedUpAccount,
) -> None:
    """The existing ledger is kept, so pushed rows are not sent again and spent requests stay
    counted.
    """
    account.push(account.write_candidate_file("first.csv", "a@new.example"))
    made = account.make_backup()
    account.edit_server_records()
    late = account.write_candidate_file("late.csv", "b@new.example", "c@new.example")
    account.push(late)
    with Ledger(account.data) as ledger:
        spent = sum(use.requests for use in ledger.read_uses())
    (account.data / "work.duckdb").write_bytes(b"no database any more")

    done = restore(account.settings, made.file, RestoreOptions(replaces=True))

    assert (True, 0, None) == (done.keeps_ledger, done.exit_status, done.error)
    assert done.aside is not None
    assert b"no database any more" == (done.aside / "work.duckdb").read_bytes()
    account.pull()
    assert [] == differences(account.sandbox, published(account.folder))
    before = account.count_writes()
    again = account.push(late)
    assert {"unchanged": 2} == again.counts
    assert before == account.count_writes()
    with Ledger(account.data) as ledger:
        assert spent <= sum(use.requests for use in ledger.read_uses())
        restored = Backups(ledger).latest_restore()
    assert restored is not None
    assert (made.manifest.made_at, False) == (restored.made_at, restored.is_ledger_older)
    pushed = rows(published(account.folder), "SELECT count(*) AS n FROM push.rows")
    assert [{"n": 5}] == pushed


def test_a_restore_after_a_lost_data_folder_creates_no_record_twice(
    account: BackedUpAccount,
) -> None:
    made = account.make_backup()
    account.edit_server_records()
    late = account.write_candidate_file("late.csv", "b@new.example", "c@new.example")
    account.push(late)
    shutil.rmtree(account.data)

    done = restore(account.settings, made.file)

    assert not done.keeps_ledger
    assert ["history", "journal", "Requests", "erasure"] == [
        next(word for word in ("journal", "Requests", "erasure", "history") if word in each)
        for each in done.lost
    ]
    before, people = account.count_writes(), account.emails()
    with pytest.raises(
        ConnectorError,
        match="no pull has verified candidates since",
        check=has_code("restored_unpulled"),
    ):
        account.push(late, pulls=False)
    again = account.push(late)
    assert {"duplicate": 2} == again.counts
    assert before == account.count_writes()
    assert people == account.emails()
    account.pull()
    assert [] == differences(account.sandbox, published(account.folder))
    third = account.push(account.write_candidate_file("third.csv", "d@new.example"), pulls=False)
    assert {"created": 1} == third.counts


@pytest.mark.parametrize("lost_part", ["work file", "disk"])
def test_a_restore_repeats_erasures_that_are_newer_than_the_backup(
    account: BackedUpAccount, lost_part: str
) -> None:
    made = account.make_backup()
    erase(account.settings, EMAIL, applies=True)
    receipts = account.folder / "elsewhere"
    shutil.copytree(account.data / "receipts", receipts)
    if lost_part == "disk":
        shutil.rmtree(account.data)

    done = restore(account.settings, made.file, RestoreOptions(replaces=True, receipts=receipts))

    assert None is done.error
    (receipt,) = done.receipts
    assert ".restoring" not in str(receipt.as_json())
    if done.aside is not None:
        shutil.rmtree(done.aside)
    assert [] == list(find_traces(account.data, EMAIL, NAME))
    account.pull()
    assert [] == list(find_traces(account.data, EMAIL, NAME))
    counted = rows(published(account.folder), "SELECT count(*) AS n FROM landing.candidates")
    assert [{"n": COUNTS["candidates"] + 1}] == counted


def test_a_pull_after_restoring_a_backup_made_during_a_pull_equals_the_server(
    tmp_path: Path,
) -> None:
    with Sandbox(counts=COUNTS) as sandbox:
        account = BackedUpAccount(sandbox, tmp_path)
        made = []

        def between(store: Store) -> None:
            if len(sandbox.log) == 12:
                made.append(account.make_backup())

        sandbox.between = between
        account.pull()
        sandbox.between = None
        account.edit_server_records()
        shutil.rmtree(account.data)

        restore(account.settings, made[0].file)
        with Ledger(account.data) as ledger:
            assert () == ledger.leases()
        account.pull()

        assert [] == differences(sandbox, published(tmp_path))
