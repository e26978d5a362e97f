"""Restoring yesterday's backup and pulling gives an exact copy, and creates no record twice."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from connector.errors import ConnectorError
from connector.operations.backup import restore
from connector.privacy import purge
from connector.sandbox.server import Sandbox
from connector.state.database import Database
from connector.state.runs import Restore, latest_backups
from tests.backup.aged_backup import COUNTS, YESTERDAY, BackedUpAccount
from tests.support.agency import differences, published
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


def test_a_restore_after_a_lost_data_folder_creates_no_record_twice(
    account: BackedUpAccount,
) -> None:
    made = account.make_backup()
    account.edit_server_records()
    late = account.write_candidate_file("late.csv", "b@new.example", "c@new.example")
    account.push(late)
    shutil.rmtree(account.data)

    done = restore(account.settings, made)

    assert ([], 0) == (done.waiting, done.purges)
    with Database(account.data) as database:
        restored, (backup,) = database.fact_as(Restore, "restore"), latest_backups(database)
    assert restored is not None
    assert (YESTERDAY, str(made)) == (restored.made_at, backup.file)
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


def test_purges_after_the_backup_are_repeated_after_a_restore(account: BackedUpAccount) -> None:
    (id,) = (
        id
        for id, each in account.sandbox.store.records("candidates").items()
        if each["email"] == EMAIL
    )
    made = account.make_backup()
    account.sandbox.store.delete("candidates", id)
    account.pull()
    asyncio.run(purge(account.settings, [id], applies=True))
    former = account.data.with_name("former")
    account.data.rename(former)

    done = restore(account.settings, made, former)
    assert 1 == done.purges
    assert [EMAIL] == account.find_texts(EMAIL)
    waiting = account.call("person", "purge", "--apply")
    account.pull()
    purged = account.call("person", "purge", "--apply")

    assert (0, 0) == (waiting.status, purged.status)
    assert [] == account.find_texts(EMAIL)
    assert [] == differences(account.sandbox, published(account.folder))
