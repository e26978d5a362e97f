"""Restoring yesterday's backup and pulling gives an exact copy, and creates no record twice."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from connector.errors import ConnectorError
from connector.operations.backup import make_backup, restore
from connector.privacy import purge
from connector.pushes.options import PushFile, PushOptions
from connector.sandbox.server import Sandbox
from connector.state.database import Database
from connector.state.runs import Restore, latest_backups
from tests.support.agency import SandboxAccount, differences, published
from tests.support.errors import has_code

pytestmark = pytest.mark.slow

COUNTS = {"jobs": 3, "candidates": 8, "companies": 2, "bookings": 3, "leads": 3}
YESTERDAY = datetime(2026, 11, 20, 3, 0, tzinfo=UTC)
EMAIL, NAME = "Olwen.Zz@mail.example", "Zzyzxworth"
PERSON = {"first_name": "Olwen", "last_name": NAME, "email": EMAIL, "employment_type": "permanent"}


class BackedUpAccount(SandboxAccount):
    """Account of a sandbox that writes its backups to the folder `backups`."""

    def make_backup(self) -> Path:
        """Make a backup that is dated 20 November 2026."""
        made, _ = make_backup(self.settings, self.folder / "backups", now=lambda: YESTERDAY)
        return made

    def write_candidate_file(self, name: str, *emails: str) -> PushFile:
        """Write a CSV file with one candidate per email, and return the push that creates them."""
        rows = [
            {
                "First name": "Ann",
                "Last name": f"Lee {number}",
                "Email": email,
                "Employment type": "permanent",
            }
            for number, email in enumerate(emails)
        ]
        return PushOptions("create").push_file("candidates", self.write_csv(name, rows))

    def find_texts(self, *texts: str) -> list[str]:
        """Return the texts that a file of the account contains, in any letter case."""
        files = [each.read_bytes().lower() for each in self.data.rglob("*") if each.is_file()]
        return [text for text in texts if any(text.lower().encode() in each for each in files)]

    def count_writes(self) -> int:
        """Return the number of POST, PUT and DELETE requests that the server received."""
        return sum(each.method in ("POST", "PUT", "DELETE") for each in self.sandbox.log)


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
    account.change_two_candidates()
    account.sandbox.store.delete("jobs", min(account.sandbox.store.records("jobs")))
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
