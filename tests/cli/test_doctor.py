"""`connector doctor`: its checks, their states and the actions it suggests."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest

from connector.sandbox.faults import HtmlPage
from connector.sandbox.server import Sandbox
from tests.support.command import COUNTS, KEY, CommandResult, call, variables

SCOPES = ("jobs", "candidates", "companies", "bookings", "leads", "content")


def map_check_states(result: CommandResult) -> dict[str, str]:
    """Return the state of each check by its name."""
    return {check["name"]: check["state"] for check in result.object["checks"]}


def test_doctor_reports_no_failure_for_a_working_account(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    with Sandbox(counts=COUNTS, keys={KEY: ("*",)}) as sandbox:
        environ = variables(sandbox.base_url, folder)
        called, shown = call(["doctor", "--json"], environ), call(["doctor"], environ)
        spent = [served.path for served in sandbox.log]

    assert (0, 0) == (called.status, shown.status)
    assert {"notifications": "warning"} == {
        n: s for n, s in map_check_states(called).items() if s != "ok"
    }
    assert [f"scope {scope}.read" for scope in SCOPES] == [
        n for n in map_check_states(called) if "." in n
    ]
    assert 2 * len(SCOPES) == len(spent)
    assert 6 == called.object["requests"]
    assert "OK: 'connector pull' can run (" in shown.err
    assert not folder.exists()


def test_doctor_strict_exits_with_3_on_warnings(tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_text(KEY)
    key.chmod(0o644)
    with Sandbox(counts=COUNTS, keys={KEY: ("*",)}) as sandbox:
        environ = variables(sandbox.base_url, tmp_path / "data")
        del environ["CONNECTOR_API_KEY"]
        environ["CONNECTOR_API_KEY_FILE"] = str(key)
        plain, strict, every = (
            call(["doctor", *words, "--json"], environ)
            for words in ([], ["--strict"], ["--strict", "--all"])
        )

    assert (0, 3, 3) == (plain.status, strict.status, every.status)
    found = {check["name"]: check for check in plain.object["checks"]}
    assert ("warning", "warning") == (
        found["permissions"]["state"],
        found["notifications"]["state"],
    )
    assert f"{key} can be opened by other users (mode 0644)" in found["permissions"]["found"]
    assert "nobody is notified" in found["notifications"]["found"]


@pytest.mark.parametrize(
    ("free", "total", "state"),
    [
        (3 * 2**20, 2**33, "failed"),
        (100 * 2**20, 2**33, "warning"),
        (300 * 2**20, 2**33, "warning"),
        (2**29, 2**33, "ok"),
        (2**31, 2**43, "ok"),
    ],
)
def test_doctor_reports_a_nearly_full_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free: int, total: int, state: str
) -> None:
    usage = SimpleNamespace(free=free, total=total)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)

    assert (
        state
        == map_check_states(call(["doctor", "--json"], variables(None, tmp_path, None)))["room"]
    )


def test_doctor_shows_each_setting_with_its_origin(tmp_path: Path) -> None:
    with Sandbox(counts=COUNTS, keys={KEY: ("*",)}) as sandbox:
        environ = variables(sandbox.base_url, tmp_path)
        called, brief = call(["doctor", "--settings"], environ), call(["doctor"], environ)

    assert "billing_day" not in brief.out
    assert ["base_url", sandbox.base_url, "CONNECTOR_BASE_URL"] == called.row("base_url")
    assert ["api_key", "set", "CONNECTOR_API_KEY"] == called.row("api_key")
    assert ["billing_day", "1", "default"] == called.row("billing_day")


def test_doctor_warns_of_a_missing_scope(tmp_path: Path) -> None:
    with Sandbox(counts=COUNTS, keys={KEY: ("jobs.read",)}) as sandbox:
        called = call(["doctor", "--json"], variables(sandbox.base_url, tmp_path))

    assert 0 == called.status
    assert "ok" == map_check_states(called)["scope jobs.read"]
    assert "warning" == map_check_states(called)["scope content.read"]
    actions = {check["name"]: check["action"] for check in called.object["checks"]}
    assert "Give the key the scope 'leads.read'" in actions["scope leads.read"]


def test_doctor_fails_on_a_rejected_key(tmp_path: Path) -> None:
    with Sandbox(counts=COUNTS, keys={"another": ("*",)}) as sandbox:
        called = call(["doctor", "--json"], variables(sandbox.base_url, tmp_path))

    assert (1, 1) == (called.status, called.object["requests"])
    assert ("ok", "failed") == (
        map_check_states(called)["address"],
        map_check_states(called)["key"],
    )


def test_doctor_fails_if_the_address_is_that_of_a_website(tmp_path: Path) -> None:
    with Sandbox(counts=COUNTS, keys={KEY: ("*",)}) as sandbox:
        sandbox.faults.add(HtmlPage(status=200), times=None)
        called = call(["doctor", "--json"], variables(sandbox.base_url, tmp_path))

        shown = call(["doctor"], variables(sandbox.base_url, tmp_path))

    assert (1, "failed") == (called.status, map_check_states(called)["address"])
    states = [line.split("\t")[1] for line in shown.out.splitlines()]
    order = ["state", "failed", "warning", "ok"]
    assert ("failed", sorted(states, key=order.index)) == (states[1], states)


def test_doctor_warns_of_a_clock_that_differs_from_the_servers(tmp_path: Path) -> None:
    with Sandbox(
        counts=COUNTS, keys={KEY: ("*",)}, clock=lambda: datetime.now(UTC) + timedelta(minutes=10)
    ) as sandbox:
        called = call(["doctor", "--json"], variables(sandbox.base_url, tmp_path))

    (clock,) = (check for check in called.object["checks"] if check["name"] == "clock")
    assert (0, "warning") == (called.status, clock["state"])
    assert "behind the API" in clock["found"]


def test_doctor_fails_if_the_data_folder_is_a_file(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.write_text("")
    with Sandbox(counts=COUNTS, keys={KEY: ("*",)}) as sandbox:
        called = call(["doctor", "--json"], variables(sandbox.base_url, folder))

    assert 1 == called.status
    found = {check["name"]: check["found"] for check in called.object["checks"]}
    assert "failed" == map_check_states(called)["data folder"]
    assert str(folder) in found["data folder"]


def test_requests_of_doctor_count_towards_the_monthly_quota(tmp_path: Path) -> None:
    with Sandbox(counts={"jobs": 1}, keys={KEY: ("*",)}) as sandbox:
        environ = variables(sandbox.base_url, tmp_path)
        call(["pull", "jobs"], environ)
        before = len(sandbox.log)
        call(["doctor"], environ)
        spent = len(sandbox.log)

    assert spent > before
    assert spent == call(["status", "--json"], environ).object["month"]["used"]


def test_doctor_fails_if_the_monthly_quota_is_used_up(tmp_path: Path) -> None:
    with Sandbox(counts=COUNTS, keys={KEY: ("*",)}) as sandbox:
        environ = variables(sandbox.base_url, tmp_path)
        assert 0 == call(["pull"], environ).status
        called = call(["doctor", "--json"], environ | {"CONNECTOR_MONTHLY_REQUESTS": "10"})

    assert (1, "failed") == (called.status, map_check_states(called)["requests"])
