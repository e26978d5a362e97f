"""Earlier snapshots of the lakehouse until they expire, and its commands."""

from __future__ import annotations

import json
from datetime import timedelta

import duckdb
import pytest
from click.testing import CliRunner

from connector.cli import main
from connector.publishing import lakehouse_publication as lake_publish
from connector.publishing.lakehouse_publication import publish_to_lakehouse
from connector.publishing.lakehouse_status import read_status
from tests.lakehouse.group import AccountGroup
from tests.support.command import check_fields

pytestmark = pytest.mark.slow

TITLES = "SELECT id, title FROM lake.landing.jobs {at} WHERE account = 'acme' ORDER BY id"
SAME = "j08"
"""First of the jobs that never change."""

NOTHING_KEPT = {"CONNECTOR_LAKEHOUSE_KEEP_DAYS": "0"}


def publish_three_snapshots(group: AccountGroup) -> list[int]:
    """Publish forty jobs three times, and return the snapshot numbers.

    Each time, the jobs before `SAME` have another title, and one company is added.
    """
    jobs = ({"id": f"j{n:02}", "title": "as it was"} for n in range(40))
    group.insert_rows("acme", "jobs", *jobs)
    numbers = []
    for title in ("first", "second", "third"):
        group.run_sql("acme", f"UPDATE landing.jobs SET title = '{title}' WHERE id < '{SAME}'")
        group.insert_rows("acme", "companies", {"id": title})
        group.publish("acme")
        numbers.append(group.latest_snapshot())
    return numbers


def read_title_at(lake: duckdb.DuckDBPyConnection, at: str) -> str:
    """Return the title of the jobs before `SAME`; `at` is an SQL AT clause, or empty for now."""
    rows: dict[str, str] = dict(lake.execute(TITLES.format(at=at)).fetchall())
    assert len(rows) == 40
    assert {"as it was"} == {title for id, title in rows.items() if id >= SAME}
    (found,) = {title for id, title in rows.items() if id < SAME}
    return found


def test_earlier_snapshots_can_be_read_until_they_expire(
    group: AccountGroup, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers = publish_three_snapshots(group)
    with group.open_read_only() as lake:
        titles = [read_title_at(lake, f"AT (VERSION => {n})") for n in numbers]
        assert ["first", "second", "third"] == titles
    since = dict(read_status(group.settings("acme")).snapshots)[numbers[1]].isoformat()
    with group.open_read_only() as lake:
        # The time of a state is the first at which it is visible.
        assert "second" == read_title_at(lake, f"AT (TIMESTAMP => TIMESTAMPTZ '{since}')")
    files = group.list_parquet_files()

    publish_to_lakehouse(group.settings("acme", **NOTHING_KEPT), force=True)

    assert 1 == len(read_status(group.settings("acme")).snapshots)
    # A query that began before may still read the files.
    assert files < group.list_parquet_files()

    monkeypatch.setattr(lake_publish, "GRACE", timedelta(0))
    publish_to_lakehouse(group.settings("acme", **NOTHING_KEPT), force=True)

    assert set() == files & group.list_parquet_files()
    with group.open_read_only() as lake:
        assert "third" == read_title_at(lake, "")


def test_lakehouse_commands_publish_show_and_remove(group: AccountGroup) -> None:
    group.insert_rows("acme", "jobs", {"id": "j1"}, {"id": "j2"})
    group.publish("acme")

    def call(*arguments: str, option: str = "") -> dict[str, object]:
        result = CliRunner().invoke(
            main, ["lakehouse", *arguments, "--json"], env=group.environ("acme")
        )
        assert 0 == result.exit_code, result.output
        assert group.server.password not in result.output
        found: dict[str, object] = json.loads(result.stdout)
        check_fields(f"lakehouse {arguments[0]}", option, found)
        return found

    sent = call("publish")["accounts"]
    assert isinstance(sent, list)
    assert ["unchanged"] == [each["outcome"] for each in sent]
    accounts = call("status")["accounts"]
    assert isinstance(accounts, list)
    assert [("acme", 1, 2)] == [(e["account"], e["tables"], e["rows"]) for e in accounts]
    assert 2 == call("remove")["rows"]
    assert 2 == call("remove", "--apply", option="--apply")["removed"]
    assert [] == call("status")["accounts"]
    assert set() == {each for each in group.list_parquet_files() if "account=acme" in each}
