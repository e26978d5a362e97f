"""Processes that publish at the same time or are killed neither lose nor double rows."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import duckdb
import pytest

from connector.errors import LakehouseError
from connector.publishing import lakehouse_connection
from connector.publishing import lakehouse_publication as lake_publish
from connector.publishing.lakehouse_connection import run_transaction
from connector.publishing.lakehouse_erasure import erase_from_lakehouse
from connector.publishing.lakehouse_publication import (
    conflict_with_other_changes,
    publish_to_lakehouse,
)
from connector.publishing.publication import publish
from tests.lakehouse.group import AccountGroup
from tests.lakehouse.publishers import DIES, LakehouseForkServer
from tests.support.errors import has_code

pytestmark = pytest.mark.slow

ACCOUNTS = tuple(f"agency{n}" for n in range(4))
PROCESSES = 3

PER_ACCOUNT = (
    "SELECT account, count(*), count(DISTINCT (account, id)), list(DISTINCT title) "
    "FROM lake.landing.{table} GROUP BY 1 ORDER BY 1"
)


@pytest.fixture(scope="module")
def publishers() -> Iterator[LakehouseForkServer]:
    """Running fork server of publishers."""
    with LakehouseForkServer() as running:
        yield running


def replace_rows(group: AccountGroup, account: str, count: int, title: str) -> None:
    """Replace the account's jobs and content items with new rows of this number and title."""
    values = f"SELECT n::VARCHAR AS id, '{title}' AS title FROM range({count}) AS t(n)"
    group.run_sql(
        account,
        *(
            f"DELETE FROM landing.{table}; INSERT INTO landing.{table} BY NAME {values}"
            for table in ("jobs", "content_items")
        ),
    )


def test_simultaneous_publishers_lose_and_double_no_rows(
    group: AccountGroup, publishers: LakehouseForkServer
) -> None:
    counts = dict.fromkeys(ACCOUNTS, 0)
    seen: set[str] = set()
    for number in range(2):
        for place, account in enumerate(ACCOUNTS):
            counts[account] = 10 + place + number
            replace_rows(group, account, counts[account], f"round {number}")
        turns = [
            [group.environ(account) for account in ACCOUNTS[n::PROCESSES]] for n in range(PROCESSES)
        ]
        publishers.start(*turns)
        if number:
            seen |= set(watch_titles(group))
        assert [0] * PROCESSES == [each.status for each in publishers.wait()]

    expected = [(account, rows, rows, ["round 1"]) for account, rows in sorted(counts.items())]
    for table in ("jobs", "content_items"):
        assert expected == group.query(PER_ACCOUNT.format(table=table))
    assert seen <= {"round 0", "round 1"}


def watch_titles(group: AccountGroup) -> Iterator[str]:
    """Yield the titles of all accounts, query by query, until every account has those of round 1.
    Assert that each query sees one title per account.
    """
    with group.open_read_only() as lake:
        while True:
            lake.execute("BEGIN")
            jobs, items = (
                lake.execute(PER_ACCOUNT.format(table=table)).fetchall()
                for table in ("jobs", "content_items")
            )
            lake.execute("COMMIT")
            assert jobs == items
            assert [1] * len(ACCOUNTS) == [len(titles) for *_, titles in jobs]
            yield from (title for *_, (title,) in jobs)
            if all(titles == ["round 1"] for *_, titles in jobs):
                return


def test_a_killed_publisher_changes_no_rows_and_its_files_are_removed_later(
    group: AccountGroup, publishers: LakehouseForkServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for account in ("acme", "globex"):
        replace_rows(group, account, 3, "before")
        group.publish(account)
        replace_rows(group, account, 5, "after")
    files = group.list_parquet_files()

    publishers.start([group.environ("acme", **{DIES: "yes"})], [group.environ("globex")])

    assert [-signal.SIGKILL, 0] == [each.status for each in publishers.wait()]
    seen = [("acme", 3, 3, ["before"]), ("globex", 5, 5, ["after"])]
    for table in ("jobs", "content_items"):
        assert seen == group.query(PER_ACCOUNT.format(table=table))
    orphans = {each for each in group.list_parquet_files() - files if "account=acme" in each}
    assert orphans

    with pytest.raises(
        LakehouseError, match="newer than 24 hours", check=has_code("lakehouse_busy")
    ):
        erase_from_lakehouse(group.settings("acme"))
    monkeypatch.setattr(lake_publish, "GRACE", timedelta(0))
    assert "published" == publish_to_lakehouse(group.settings("acme"), force=True).outcome
    assert ("acme", 5, 5, ["after"]) == group.query(PER_ACCOUNT.format(table="jobs"))[0]
    assert set() == orphans & group.list_parquet_files()


@pytest.mark.parametrize(
    "message",
    [
        'Failed to initialize DuckLake: ERROR: relation "ducklake_metadata" already exists',
        "Failed to get files scheduled for deletion from DuckLake: Cannot open file"
        ' "ducklake-01.parquet": No such file or directory',
    ],
)
def test_a_conflict_with_another_process_is_retried(message: str) -> None:
    errors = [duckdb.IOException(message)]

    def act() -> str:
        if errors:
            raise errors.pop()
        return "done"

    assert "done" == lakehouse_connection.retry_conflicts(act)


class ConflictingInsert:
    """Replaces the insert of a lakehouse entry, and lets another connection commit a conflict."""

    def __init__(self, group: AccountGroup, times: int) -> None:
        self._group, self.remaining = group, times
        self._set_entry = lake_publish._ENTRIES.insert

    def __call__(self, connection: duckdb.DuckDBPyConnection, *arguments: Any) -> None:
        """Insert the entry. If conflicts remain, commit one from another connection."""
        self._set_entry(connection, *arguments)
        if self.remaining:
            self.remaining -= 1
            with self._group.open_for_change() as other:
                run_transaction(other, lambda: conflict_with_other_changes(other))


@pytest.mark.parametrize(
    ("conflicts", "time_limit", "expected_count"), [(3, 60.0, 29), (1, 0.0, 30)]
)
def test_a_conflict_during_publishing_is_retried_until_the_time_limit(
    group: AccountGroup,
    monkeypatch: pytest.MonkeyPatch,
    conflicts: int,
    time_limit: float,
    expected_count: int,
) -> None:
    replace_rows(group, "acme", 30, "before")
    group.publish("acme")
    group.run_sql("acme", "DELETE FROM landing.jobs WHERE id = '7'")
    publish(group.settings("acme"), to_lakehouse=False)
    intruder = ConflictingInsert(group, conflicts)
    monkeypatch.setattr(lake_publish._ENTRIES, "insert", intruder)
    monkeypatch.setattr(lakehouse_connection, "WAIT_SECONDS", time_limit)

    if time_limit:
        assert "published" == publish_to_lakehouse(group.settings("acme")).outcome
    else:
        with pytest.raises(
            LakehouseError, match="at each attempt for 0 seconds", check=has_code("lakehouse_busy")
        ):
            publish_to_lakehouse(group.settings("acme"))

    assert [(expected_count,)] == group.query("SELECT count(*) FROM lake.landing.jobs")
    assert 0 == intruder.remaining
