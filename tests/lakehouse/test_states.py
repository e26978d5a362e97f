"""Earlier states can be asked for until they expire, and looking after the lake changes nothing of
what a reader sees now.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import duckdb
import pytest
from click.testing import CliRunner

from connector.cli import main
from connector.lakehouse.lake_status import GRACE, maintain, read_status, snapshots
from connector.lakehouse.publish import publish_to_lakehouse
from tests.cli.calling import check_fields
from tests.lakehouse.group import Group

pytestmark = pytest.mark.slow

TITLES = "SELECT id, title FROM lake.landing.jobs {at} WHERE account = 'acme' ORDER BY id"
SAME = "j08"
"""From which job on none ever changes."""

AT_ONCE = -GRACE
"""A grace for which everything is old enough."""


def publish_three(group: Group) -> list[int]:
    """Publish three states of forty jobs, each with another title of some of them, and with a
    company more; their numbers.
    """
    jobs = ({"id": f"j{n:02}", "title": "as it was"} for n in range(40))
    group.land("acme", "jobs", *jobs)
    numbers = []
    for title in ("first", "second", "third"):
        group.change("acme", f"UPDATE landing.jobs SET title = '{title}' WHERE id < '{SAME}'")
        group.land("acme", "companies", {"id": title})
        group.publish("acme")
        numbers.append(group.snapshot())
    return numbers


def title_at(lake: duckdb.DuckDBPyConnection, at: str) -> str:
    """The title of the jobs that change, in a state."""
    rows: dict[str, str] = dict(lake.execute(TITLES.format(at=at)).fetchall())
    assert len(rows) == 40
    assert {"as it was"} == {title for id, title in rows.items() if id >= SAME}
    (found,) = {title for id, title in rows.items() if id < SAME}
    return found


def test_earlier_states_can_be_asked_for_until_they_expire(group: Group) -> None:
    numbers = publish_three(group)
    settings = group.settings("acme")
    with group.lake() as lake:
        titles = [title_at(lake, f"AT (VERSION => {n})") for n in numbers]
        assert ["first", "second", "third"] == titles
        moments = dict(snapshots(lake))
        at = moments[numbers[1]].isoformat()
        # The moment of a state is the first at which it is so.
        assert "second" == title_at(lake, f"AT (TIMESTAMP => TIMESTAMPTZ '{at}')")

    kept_from = moments[numbers[1]] + timedelta(microseconds=1)
    preview = maintain(settings, 1, now=kept_from + timedelta(days=1))
    assert len(moments) == len(read_status(settings).snapshots)
    assert (2, len(moments) - 2) == (preview.kept, preview.expired)

    files = group.files()
    done = maintain(settings, 1, applies=True, grace=AT_ONCE, now=kept_from + timedelta(days=1))
    assert preview.expired == done.expired
    assert done.rewritten
    assert done.joined
    maintain(settings, 36_500, applies=True, grace=AT_ONCE)
    assert files - group.files()
    with group.lake() as lake:
        assert numbers[1:] == [n for n, _ in snapshots(lake)][:2]
        assert ["second", "third"] == [title_at(lake, f"AT (VERSION => {n})") for n in numbers[1:]]
        assert "third" == title_at(lake, "")

    before = group.files()
    maintain(settings, 0, applies=True, grace=AT_ONCE)
    maintain(settings, 0, applies=True, grace=AT_ONCE)
    assert len(group.files()) < len(before)
    with group.lake() as lake:
        assert 1 == len(snapshots(lake))
        assert "third" == title_at(lake, "")
    assert "unchanged" == publish_to_lakehouse(settings).outcome


def test_files_stay_while_somebody_may_be_reading_them(group: Group) -> None:
    publish_three(group)
    settings = group.settings("acme")
    files = group.files()

    maintain(settings, 0, applies=True)
    assert files <= group.files()

    later = datetime.now(UTC) + 2 * GRACE
    assert maintain(settings, 0, applies=True, now=later).removed_files
    assert files - group.files()


def test_commands_tell_how_the_lake_stands(group: Group) -> None:
    group.land("acme", "jobs", {"id": "j1"}, {"id": "j2"})
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
    told = call("status")["accounts"]
    assert isinstance(told, list)
    assert [("acme", 2)] == [(each["account"], each["rows"]["landing.jobs"]) for each in told]
    assert {"applied": False, "expired": 0} == {
        name: value for name, value in call("maintain").items() if name in ("applied", "expired")
    }
    assert call("maintain", "--apply")["applied"]
    rows = call("remove")["rows"]
    assert isinstance(rows, dict)
    assert 2 == rows["landing.jobs"]
    assert 2 == call("remove", "--apply", option="--apply")["removed"]
    assert [] == call("status")["accounts"]
    assert set() == {each for each in group.files() if "account=acme" in each}
