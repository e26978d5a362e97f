"""`connector pull` against a sandbox: its output, the loaded records, and every exit status."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path
from threading import Event

import duckdb
import pytest

from connector.sandbox.server import Sandbox
from connector.sandbox.store import Store
from tests.faults.network_faults import wrong_total
from tests.support.command import COUNTS, KEY, call, start, variables

NO_LEADS = tuple(f"{each}.read" for each in ("jobs", "candidates", "companies", "bookings"))


def test_a_pull_skips_a_resource_whose_scope_the_key_lacks(tmp_path: Path) -> None:
    with Sandbox(counts=COUNTS, keys={KEY: (*NO_LEADS, "content.read")}) as sandbox:
        called = call(["pull"], variables(sandbox.base_url, tmp_path))

    assert 3 == called.status
    assert ["leads", "skipped", "no"] == called.row("leads")[:3]
    assert ["bookings", "done", "yes"] == called.row("bookings")[:3]
    assert "Give the key the scope 'leads.read', or pull only the other" in called.err
    assert "Partly done (6 of 7 resources): " in called.err


def test_a_pull_stops_at_the_monthly_quota_and_ignore_quota_continues_it(tmp_path: Path) -> None:
    with Sandbox(
        counts=COUNTS, keys={KEY: ("*",)}, monthly_limit=12, behaviours={"month_reset": "month"}
    ) as sandbox:
        environ = variables(sandbox.base_url, tmp_path)
        stopped = call(["pull", "candidates"], environ)
        sandbox.limits.per_month = None
        sent = len(sandbox.log)
        without_quota = call(["pull", "candidates"], environ)
        is_silent = len(sandbox.log) == sent
        resumed = call(["pull", "candidates", "--ignore-quota"], environ)
        again = call(["pull", "candidates"], environ)

    assert (4, 4, 0, 0) == (stopped.status, without_quota.status, resumed.status, again.status)
    assert is_silent
    assert "To send requests anyway, add --ignore-quota" in without_quota.err
    assert "--ignore-quota" in without_quota.err
    assert ["candidates", "stopped", "no"] == stopped.row("candidates")[:3]
    assert "Stopped: " in stopped.err
    assert "Left to read: " in stopped.err
    assert "Run the same command again after 20" in stopped.err
    assert "Error" not in stopped.err
    assert "12" == resumed.row("candidates")[7]


def test_a_pull_warns_if_its_row_count_differs_from_the_apis_total(tmp_path: Path) -> None:
    with Sandbox(counts={"jobs": 30}, keys={KEY: ("*",)}) as sandbox:
        environ = variables(sandbox.base_url, tmp_path)
        call(["pull", "jobs"], environ)
        sandbox.faults.add(wrong_total(5000), path="/api/v1/jobs", times=None)
        called = call(["pull", "jobs", "--json"], environ)

    each = called.object["resources"]["jobs"]
    assert each["live"] != each["total"]
    warning = f"landing.jobs has {each['live']} live rows and the API has {each['total']:,}: "
    assert warning in called.err


BAD_INPUTS: dict[str, tuple[list[str], dict[str, str], tuple[int, str, str]]] = {
    "no key": ([], {"API_KEY": ""}, (2, "settings", "CONNECTOR_API_KEY")),
    "no address": ([], {"BASE_URL": ""}, (2, "settings", "CONNECTOR_BASE_URL")),
    "key of three words": ([], {"API_KEY": "a wrong key"}, (2, "settings", "must be one word")),
    "wrong key": ([], {"API_KEY": "wrong"}, (1, "unauthorized", "generate a new key")),
    "no such scheme": ([], {"BASE_URL": "ftp://[::1]"}, (2, "settings", "https://acme.example")),
    "nobody there": ([], {"BASE_URL": "http://[::1]:9"}, (1, "connection_refused", "the firewall")),
    "resource": (["candidate"], {}, (2, "unknown_name", "Did you mean 'candidates'?")),
    "account": (["--account", "acme corp"], {}, (2, "settings", "--account")),
}
"""Arguments, settings that differ, and what is to be answered: status, code, and some words."""


@pytest.mark.parametrize("is_json", [False, True], ids=["text", "json"])
@pytest.mark.parametrize("case", BAD_INPUTS)
def test_invalid_arguments_and_settings_are_reported_as_one_sentence(
    tmp_path: Path, case: str, *, is_json: bool
) -> None:
    arguments, changed, (status, code, message) = BAD_INPUTS[case]
    with Sandbox(counts={"jobs": 1}, keys={KEY: ("*",)}) as sandbox:
        environ = variables(sandbox.base_url, tmp_path)
        environ |= {f"CONNECTOR_{name}": value for name, value in changed.items()}
        given = {name: value for name, value in environ.items() if value}
        called = call(["pull", *arguments, *(["--json"] if is_json else [])], given)

    assert status == called.status
    assert "Traceback" not in called.err
    assert KEY not in called.out + called.err
    if is_json:
        error = called.object["error"]
        assert code == error["code"]
        assert message in f"{error['message']} {error['action']}"
    else:
        assert f"[{code}]" in called.err
        assert message in called.err


def write_non_database(path: Path) -> None:
    """Write a file that is not a database."""
    path.write_text("Dear reader, " * 1000)


def write_foreign_database(path: Path) -> None:
    """Write the database of another program."""
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE sales AS SELECT 42 AS amount")


@pytest.mark.parametrize("command", ["pull", "status", "doctor"])
@pytest.mark.parametrize(
    ("write", "message"),
    [(write_non_database, "not a DuckDB database"), (write_foreign_database, "another program")],
    ids=["text", "database"],
)
def test_a_foreign_work_file_is_reported_and_left_unchanged(
    tmp_path: Path, command: str, write: Callable[[Path], None], message: str
) -> None:
    work = tmp_path / "work.duckdb"
    write(work)
    before = work.read_bytes()
    with Sandbox(counts={"jobs": 1}, keys={KEY: ("*",)}) as sandbox:
        called = call([command], variables(sandbox.base_url, tmp_path))

    assert 1 == called.status
    assert message in called.out + called.err
    assert "move only this file away" in called.err
    assert before == work.read_bytes()


def test_a_data_folder_that_is_a_file_is_named_in_the_error(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.write_text("")
    with Sandbox(counts={"jobs": 1}, keys={KEY: ("*",)}) as sandbox:
        called = call(["pull"], variables(sandbox.base_url, folder))

    assert 1 == called.status
    assert str(folder) in called.err
    assert "CONNECTOR_DATA_DIR" in called.err


def test_an_interrupted_pull_keeps_loaded_records_and_the_next_continues(tmp_path: Path) -> None:
    reached, go_on = Event(), Event()

    def between(store: Store) -> None:
        if len(sandbox.log) > 20 and not reached.is_set():
            reached.set()
            go_on.wait(20)

    with Sandbox(counts={"candidates": 150}, keys={KEY: ("*",)}, between=between) as sandbox:
        environ = {**variables(sandbox.base_url, tmp_path), "CONNECTOR_CONNECTIONS": "1"}
        with start(["pull", "candidates"], environ) as process:
            assert reached.wait(30)
            process.send_signal(signal.SIGINT)
            go_on.set()
            out, err = process.communicate(timeout=30)
        resumed = call(["pull", "candidates", "--json"], environ)

    message = "Interrupted. Loaded records are kept. Run the same command again to continue.\n"
    assert (130, "", message) == (process.returncode, out, err)
    assert (0, 150) == (resumed.status, resumed.object["resources"]["candidates"]["live"])
    assert 0 < resumed.object["resources"]["candidates"]["new"] < 150


@pytest.mark.slow
def test_pull_all_begins_with_accounts_that_were_never_pulled(tmp_path: Path) -> None:
    environ = variables(None, tmp_path / "data")
    del environ["CONNECTOR_API_KEY"]
    key = tmp_path / "key"
    key.write_text(KEY)
    key.chmod(0o600)
    with Sandbox(counts={"jobs": 3}, keys={KEY: ("*",)}) as sandbox:
        table = f'base_url = "{sandbox.base_url}"\napi_key_file = "{key}"\n'
        config = tmp_path / "connector.toml"
        config.write_text(f"[accounts.acme]\n{table}[accounts.globex]\n{table}")
        environ["CONNECTOR_CONFIG"] = str(config)
        assert 0 == call(["pull", "jobs", "--account", "acme"], environ).status
        pulled = call(["pull", "jobs", "--all", "--parallel", "1", "--json"], environ)

    assert [("globex", 0), ("acme", 0)] == [
        (name, each["exit_status"]) for name, each in pulled.object["accounts"].items()
    ]
    both = call(["pull", "--all", "--account", "acme"], environ)
    assert (2, True) == (both.status, "Give one of them." in both.err)
    one = {"CONNECTOR_BASE_URL": "http://127.0.0.1:9", "CONNECTOR_API_KEY": KEY}
    shared = call(["pull", "--all"], environ | one)
    assert (2, True) == (shared.status, "is set and would apply to every account" in shared.err)
