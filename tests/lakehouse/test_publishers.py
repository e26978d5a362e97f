"""Several publish at once, or are killed at it, or are kept waiting: no row is lost, doubled or
torn, and nobody is blocked for longer than was said.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from typing import Any

import duckdb
import pytest

from connector.errors import LakehouseBusy
from connector.lakehouse import manifest
from connector.lakehouse import publish as publish_room
from connector.lakehouse.connect import LakehouseAccount, alone, changing
from connector.lakehouse.lake_status import GRACE, maintain
from connector.lakehouse.publish import publish_to_lakehouse
from connector.publishing.publication import publish
from connector.settings.model import Settings
from tests.lakehouse.group import Group
from tests.lakehouse.publishers import DIES, Publishers

pytestmark = pytest.mark.slow

ACCOUNTS = tuple(f"agency{n}" for n in range(6))
PROCESSES = 3

PER_ACCOUNT = (
    "SELECT account, count(*), count(DISTINCT (account, id)), list(DISTINCT title) "
    "FROM lake.landing.{table} GROUP BY 1 ORDER BY 1"
)


@pytest.fixture(scope="module")
def publishers() -> Iterator[Publishers]:
    """A process that publishers are forked from."""
    with Publishers() as running:
        yield running


def fill(group: Group, account: str, rows: int, title: str) -> None:
    """Let an account have so many jobs and content items, all of the same title."""
    values = f"SELECT n::VARCHAR AS id, '{title}' AS title FROM range({rows}) AS t(n)"
    group.change(
        account,
        *(
            f"DELETE FROM landing.{table}; INSERT INTO landing.{table} BY NAME {values}"
            for table in ("jobs", "content_items")
        ),
    )


def test_many_publishers_at_once(group: Group, publishers: Publishers) -> None:
    counts = dict.fromkeys(ACCOUNTS, 0)
    seen: set[str] = set()
    for number in range(2):
        for place, account in enumerate(ACCOUNTS):
            counts[account] = 10 + place + number
            fill(group, account, counts[account], f"round {number}")
        turns = [
            [group.environ(account) for account in ACCOUNTS[n::PROCESSES]] for n in range(PROCESSES)
        ]
        publishers.begin(turns)
        if number:
            seen |= set(_looks(group))
        assert [0] * PROCESSES == publishers.end()

    expected = [(account, rows, rows, ["round 1"]) for account, rows in sorted(counts.items())]
    for table in ("jobs", "content_items"):
        assert expected == group.rows(PER_ACCOUNT.format(table=table))
    assert seen <= {"round 0", "round 1"}


def _looks(group: Group) -> Iterator[str]:
    """Look at all accounts until none is of the first round; tells of which they were."""
    with group.lake() as lake:
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


def test_a_publisher_that_is_killed_leaves_the_lake_as_it_was(
    group: Group, publishers: Publishers
) -> None:
    fill(group, "acme", 3, "before")
    group.publish("acme")
    before, files = group.snapshot(), group.files()
    fill(group, "acme", 5, "after")

    publishers.begin([[group.environ("acme", **{DIES: "yes"})]])

    assert [-signal.SIGKILL] == publishers.end()
    assert before == group.snapshot()
    assert [("acme", 3, 3, ["before"])] == group.rows(PER_ACCOUNT.format(table="jobs"))
    orphans = group.files() - files
    assert orphans

    assert "published" == publish_to_lakehouse(group.settings("acme"), wait_seconds=5).outcome
    assert [("acme", 5, 5, ["after"])] == group.rows(PER_ACCOUNT.format(table="jobs"))
    maintain(group.settings("acme"), 30, applies=True, grace=-GRACE)
    assert set() == orphans & group.files()


def test_who_waits_too_long_is_told(group: Group) -> None:
    fill(group, "acme", 1, "x")
    publish(group.settings("acme"), shares=False)
    settings = group.settings("acme")

    with (
        alone(LakehouseAccount.required(settings)),
        pytest.raises(LakehouseBusy, match="held by others"),
    ):
        publish_to_lakehouse(settings, wait_seconds=0.05)

    assert "published" == publish_to_lakehouse(settings, wait_seconds=0.05).outcome


class Intruder:
    """Somebody who changes the same table without the lock, just before a publisher commits."""

    def __init__(self, group: Group, times: int) -> None:
        self._group, self.left = group, times
        self._write = manifest.write_parts

    def __call__(self, connection: duckdb.DuckDBPyConnection, *arguments: Any) -> None:
        """Come between, as often as was said."""
        self._write(connection, *arguments)
        if self.left:
            self.left -= 1
            with self._group.intruding() as other:
                other.execute("DELETE FROM lake.landing.jobs WHERE account = 'other'")
                other.execute("INSERT INTO lake.landing.jobs BY NAME SELECT 'other' AS account")


@pytest.fixture
def crowded(group: Group, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """An account that has something to change in a table that somebody else changes as well."""
    fill(group, "acme", 30, "before")
    group.publish("acme")
    with changing(LakehouseAccount.required(group.settings("acme"))) as (_, lake):
        lake.execute("INSERT INTO lake.landing.jobs BY NAME SELECT 'other' AS account")
    group.change("acme", "DELETE FROM landing.jobs WHERE id = '7'")
    publish(group.settings("acme"), shares=False)
    monkeypatch.setattr(publish_room, "_RETRY_SECONDS", 0.0)
    return group.settings("acme")


@pytest.mark.parametrize(("times", "attempts"), [(1, 3), (9, 2)])
def test_a_conflict_is_tried_again_and_not_for_ever(
    group: Group, crowded: Settings, monkeypatch: pytest.MonkeyPatch, times: int, attempts: int
) -> None:
    intruder = Intruder(group, times)
    monkeypatch.setattr(manifest, "write_parts", intruder)
    monkeypatch.setattr(publish_room, "ATTEMPTS_MAX", attempts)
    count = "SELECT count(*) FROM lake.landing.jobs WHERE account = 'acme'"

    if times < attempts:
        assert "published" == publish_to_lakehouse(crowded).outcome
        assert [(29,)] == group.rows(count)
    else:
        with pytest.raises(LakehouseBusy, match=f"each of {attempts} times"):
            publish_to_lakehouse(crowded)
        assert [(30,)] == group.rows(count)
    assert max(0, times - attempts) == intruder.left
    assert [(1,)] == group.rows("SELECT count(*) FROM lake.landing.jobs WHERE account = 'other'")
