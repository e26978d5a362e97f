"""`connector status`: its output before, during and after a pull. It sends no requests."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

from connector.cli.terminal import describe_age
from connector.sandbox.server import Sandbox
from tests.support.command import COUNTS, KEY, call, variables


def test_status_before_the_first_pull_says_what_to_run(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    environ = variables(None, folder, None)

    called, with_json = call(["status"], environ), call(["status", "--json"], environ)

    assert (0, 0, "") == (called.status, with_json.status, called.out)
    assert "run 'connector pull'" in called.err
    assert {} == with_json.object["resources"]
    assert not folder.exists()


def test_status_shows_the_state_of_each_resource(tmp_path: Path) -> None:
    with Sandbox(counts=COUNTS, keys={KEY: ("*",)}) as sandbox:
        environ = variables(sandbox.base_url, tmp_path)
        run_id = call(["pull", "--json"], environ).object["run_id"]
        spent = len(sandbox.log)
        called, with_json = call(["status"], environ), call(["status", "--json"], environ)

    assert spent == len(sandbox.log)
    for name, count in COUNTS.items():
        assert [str(count), "0", "0", "0", str(count)] == called.row(name)[1:6]
        each = with_json.object["resources"][name]
        assert (count, 0, "done") == (each["live"], each["pending"], each["last"]["outcome"])
        assert datetime.fromisoformat(each["proven_at"]) <= datetime.now(UTC)
    assert [run_id, "pull"] == called.row(run_id)[:2]
    assert [run_id] == [run["run_id"] for run in with_json.object["runs"]]
    assert f"ago: {tmp_path / 'recruitment.duckdb'}" in called.out
    assert with_json.object["published"]["age_seconds"] < 60


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [(-5, "0 s"), (59, "59 s"), (90, "2 min"), (7200, "2 h"), (200_000, "2 d")],
)
def test_an_age_is_shown_in_its_largest_unit(seconds: int, expected: str) -> None:
    assert expected == describe_age(timedelta(seconds=seconds))


def test_status_says_that_no_action_is_needed(tmp_path: Path) -> None:
    with Sandbox(counts=COUNTS, keys={KEY: ("*",)}) as sandbox:
        environ = variables(sandbox.base_url, tmp_path) | {"CONNECTOR_MONTHLY_REQUESTS": "2000"}
        call(["pull"], environ)
        called, with_json = call(["status"], environ), call(["status", "--json"], environ)
        spent = len(sandbox.log)

    month = with_json.object["month"]
    assert "Up to date: no problem was found, and all records are loaded." in called.err
    assert (
        f": {spent} of 2,000 requests ({spent / 2000:.1%}), 100 reserved for manual work."
        in called.out
    )
    assert (spent, 2000, 100) == (month["used"], month["limit"], month["reserve"])
    assert 2000 - 100 - spent == month["left_for_pulls"]
    assert (None, None) == (with_json.object["left"], with_json.object["running"])
    assert date.fromisoformat(month["begins"]) <= datetime.now(UTC).date()


def test_status_shows_the_progress_of_a_first_load(tmp_path: Path) -> None:
    with Sandbox(counts={"candidates": 230}, keys={KEY: ("*",)}, rate_limit=600) as sandbox:
        environ = variables(sandbox.base_url, tmp_path) | {"CONNECTOR_MONTHLY_REQUESTS": "1000"}
        pulled = call(["pull", "candidates", "--max-requests", "26"], environ)
        called, with_json = call(["status"], environ), call(["status", "--json"], environ)

    # 3 pages and 23 details were read.
    assert 4 == pulled.status
    assert "Left to read: at least 207 records. " in pulled.err
    assert "Left to read: 207 records. Run 'connector pull'." in called.err
    assert 207 == with_json.object["left"]
    assert 600 == with_json.object["limit_per_minute"]


def test_status_names_resources_that_were_never_pulled(tmp_path: Path) -> None:
    with Sandbox(counts=COUNTS, keys={KEY: ("*",)}) as sandbox:
        environ = variables(sandbox.base_url, tmp_path)
        call(["pull", "jobs"], environ)
        called = call(["status"], environ)

    assert "Up to date" in called.err
    never = "candidates, companies, bookings, leads, content_types, content_items"
    assert f"Never pulled: {never}." in called.err
    assert "(monthly_requests is not set)" in called.out
