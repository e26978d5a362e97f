"""Status, doctor, backup, restore, accounts, the key, exit statuses, and users' mistakes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from tests.contract.kit import (
    COUNTS,
    KEY,
    START,
    Account,
    Fault,
    Forward,
    Server,
    candidate,
    html,
    query_file,
    run,
    status,
    unsent,
)

CONFIG = """
[accounts.acme]
base_url = "{url}"
api_key_file = "acme.key"
[accounts.other]
base_url = "{url}"
api_key_file = "other.key"
"""


@pytest.mark.parametrize("words", [
    ("status",), ("doctor",), ("pull", "jobs"), ("verify", "jobs"), ("status", "--check"),
    ("resolve",), ("publish",),
], ids=" ".join)  # fmt: skip
def test_json_is_one_object_on_stdout(account: Account, words: tuple[str, ...]) -> None:
    result = account.run(*words, "--json")
    assert 0 == result.status, result.text
    assert isinstance(result.json, dict)


@pytest.mark.parametrize("is_accepted", [True, False], ids=["accepted", "rejected"])
def test_the_key_is_in_no_output_and_no_file(account: Account, *, is_accepted: bool) -> None:
    if not is_accepted:
        account.server.rule("*", status(401))
    file = account.csv("a.csv", [candidate(1)])
    for words in (
        ("pull",), ("push", "candidates", file, "--mode", "create", "--apply"), ("status",),
        ("doctor",), ("resolve",), ("publish",), ("verify", "jobs"),
        ("template", "jobs", "--out", file.parent / "t.csv"),
        ("backup", account.folder / "bk"), ("undo", "last"),
    ):  # fmt: skip
        result = account.run(*words, "--debug")
        assert KEY not in result.text, words
    (account.folder / "records.sqlite").unlink()
    assert [] == account.files_with(KEY)


@pytest.mark.parametrize(("words", "expected"), [
    (("nonsense",), 2), (("pull", "nonsense"), 2), (("pull", "--nonsense"), 2),
    (("pull", "--max-requests", "0"), 2), (("push", "candidates", "missing.csv"), 2),
    (("push", "candidates", "missing.csv", "--mode", "create"), 2),
    (("push", "people", "missing.csv", "--mode", "create"), 2),
    (("undo", "last"), 2), (("--version",), 0), (("--help",), 0), (("status",), 0),
])  # fmt: skip
def test_exit_statuses_without_a_request(
    account: Account, words: tuple[str, ...], expected: int
) -> None:
    result = account.run(*words)
    assert expected == result.status, result.text
    assert "Traceback" not in result.text
    assert [] == account.server.log


@pytest.mark.parametrize(("name", "value"), [
    ("CONNECTOR_BASE_URL", ""), ("CONNECTOR_BASE_URL", "nonsense"),
    ("CONNECTOR_BASE_URL", "ftp://x.example"), ("CONNECTOR_API_KEY", ""),
    ("CONNECTOR_CONNECTIONS", "many"), ("CONNECTOR_MONTHLY_REQUESTS", "-1"),
])  # fmt: skip
def test_wrong_settings_are_named(account: Account, name: str, value: str) -> None:
    result = account.run("pull", "jobs", **{name: value})
    assert 2 == result.status, result.text
    assert name.removeprefix("CONNECTOR_").lower() in result.err.lower()
    assert "Traceback" not in result.text
    assert KEY not in result.text
    assert [] == account.server.log


def test_a_rejected_key_is_an_error_with_an_action(account: Account) -> None:
    account.server.rule("*", status(401))
    result = account.run("pull", "jobs")
    assert 1 == result.status
    assert "key" in result.err.lower()


def test_a_purge_of_no_person_explains_what_is_missing(account: Account) -> None:
    result = account.run("person", "purge", "--apply")
    assert (0, True) == (result.status, "Give the ids of deleted people" in result.err)
    result = account.run("person", "purge", "--deleted-before", "24m", "--apply")
    assert (0, True) == (result.status, "deleted no person before" in result.err)


def test_a_person_whom_the_platform_still_has_is_not_purged(account: Account) -> None:
    (id, *_) = account.server.ids("candidates")
    result = account.run("person", "purge", id, "--apply")
    assert (2, True) == (result.status, f"the platform still has {id}" in result.err)
    assert 0 == account.run("publish").status
    (row,) = account.rows("SELECT email FROM landing.candidates WHERE id = ?", id)
    assert row["email"] in account.server.emails()


@pytest.mark.slow
def test_a_purge_whose_values_cannot_be_written_removes_nothing(account: Account) -> None:
    (id, *_) = account.server.ids("candidates")
    account.server.api("DELETE", f"/candidates/{id}")
    account.pull()
    words = ("person", "purge", id, "--apply", "--csv")
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-c", START, *words]
        environ = {**os.environ, **account.environ}
        ran = subprocess.run(
            command, stdout=full, stderr=subprocess.PIPE, env=environ, text=True, check=False
        )
    assert (1, True) == (ran.returncode, "standard output cannot be written" in ran.stderr)
    purged = account.run(*words)
    assert 0 == purged.status, purged.text
    assert f"{id},email," in purged.out


def test_a_full_disk_is_a_problem(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    account.pull()
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=2**20, total=2**40))
    (found,) = account.run("status", "--check", "--json").json["accounts"][0]["problems"]
    assert ("unusable", "disk_full") == (found["code"], found["cause"])


def test_a_folder_of_another_address_is_refused(account: Account) -> None:
    before = account.published.read_bytes()
    checked = account.run("status", "--check", CONNECTOR_BASE_URL="http://127.0.0.1:9/")
    assert (1, True) == (checked.status, "belongs to another address" in checked.out)
    result = account.run("pull", CONNECTOR_BASE_URL="http://127.0.0.1:9/")
    assert result.status in (1, 2)
    assert before == account.published.read_bytes()
    assert [] == account.server.log
    status = account.run("status", "--check", CONNECTOR_BASE_URL="http://127.0.0.1:9/")
    assert 1 == status.status
    assert "contains the records of" in status.out


def test_a_damaged_published_file_is_replaced_by_publishing(account: Account) -> None:
    account.published.write_bytes(account.published.read_bytes()[:5000])
    status = account.run("status", "--check")
    assert 1 == status.status
    assert "Run 'connector publish', which replaces this file." in status.out
    assert 0 == account.run("publish").status
    assert [] == codes(account)


def test_a_missing_work_file_is_a_problem(account: Account) -> None:
    (account.published.parent / "work.duckdb").unlink()
    status = account.run("status", "--check")
    assert 1 == status.status
    assert "The work file is missing" in status.out


CLOCK = Path(__file__).parents[1] / "records" / "fixed_clock"


def at(days: int) -> dict[str, str]:
    """Return the environment of a command that runs this number of days later."""
    later = datetime.now(UTC) + timedelta(days=days)
    return {"FIXED_CLOCK": later.isoformat(), "PYTHONPATH": str(CLOCK)}


def codes(account: Account) -> list[str]:
    """Return the codes of the account's problems."""
    return [each["code"] for each in account.run("status", "--json").json["problems"]]


def test_status_needs_no_server_and_watches_the_age_of_the_file(account: Account) -> None:
    assert [] == codes(account)
    assert 0 == account.run("status", "--check").status
    process = account.start("status", "--json", **at(2))
    out, _ = process.communicate(timeout=60)
    assert ["data_old"] == [each["code"] for each in json.loads(out)["problems"]]
    process = account.start("status", "--check", **at(2))
    process.communicate(timeout=60)
    assert 1 == process.returncode
    assert [] == account.server.log


def test_a_failed_pull_is_a_problem_until_the_next_one(account: Account) -> None:
    account.server.rule("*", status(401))
    assert 1 == account.run("pull", "jobs").status
    assert ["pull_failed"] == codes(account)
    assert 1 == account.run("status", "--check").status
    account.server.forget()
    account.pull()
    assert [] == codes(account)


def test_a_killed_pull_is_a_problem(account: Account) -> None:
    process = account.start("pull", "jobs", "--quiet")

    def kill(forward: Forward) -> None:
        process.kill()
        process.wait(60)

    account.server.rule("GET /api/v1/jobs*", kill, times=1)
    process.communicate(timeout=60)
    assert -9 == process.returncode
    assert ["pull_failed"] == codes(account)


def test_a_held_row_is_a_problem(account: Account) -> None:
    account.server.rule("POST *", unsent, times=1)
    file = account.csv("a.csv", [candidate(1)])
    account.push("candidates", file, "--mode", "create", "--no-wait", status=3)
    assert ["rows_unconfirmed"] == codes(account)


@pytest.fixture
def inbox() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Address and messages of a receiver of notifications."""
    messages: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            messages.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as receiver:
        Thread(target=receiver.serve_forever, args=(0.05,), daemon=True).start()
        yield f"json://127.0.0.1:{receiver.server_address[1]}/hook", messages
        receiver.shutdown()


def test_status_notifies_when_the_problems_change(
    account: Account, inbox: tuple[str, list[dict[str, Any]]]
) -> None:
    address, messages = inbox
    urls = account.folder / "urls"
    urls.write_text(address)
    urls.chmod(0o600)
    account.environ["CONNECTOR_NOTIFY_URLS_FILE"] = str(urls)
    account.run("status", "--notify")
    assert [] == messages
    account.server.rule("*", status(401))
    account.run("pull", "jobs")
    for _ in range(2):
        account.run("status", "--notify")
    (message,) = messages
    assert "pull" in json.dumps(message)
    assert KEY not in json.dumps(message)
    account.server.forget()
    account.pull("jobs")
    for _ in range(2):
        account.run("status", "--notify")
    assert 2 == len(messages)


def test_gauges_are_written_for_prometheus(account: Account) -> None:
    path = account.folder / "connector.prom"
    assert 0 == account.run("status", "--prometheus", path).status
    lines = [each for each in path.read_text().splitlines() if not each.startswith("#")]
    gauges = {each.rpartition(" ")[0].partition("{")[0] for each in lines}
    assert 5 <= len(gauges)
    assert all(each.startswith("connector_") for each in gauges)
    assert all(float(each.rpartition(" ")[2]) >= 0 for each in lines)


@pytest.mark.parametrize("fault", [status(401), html(200), unsent],
                         ids=["401", "page", "hang-up"])  # fmt: skip
def test_doctor_finds_what_is_wrong_with_the_server(account: Account, fault: Fault) -> None:
    account.server.rule("*", fault)
    result = account.run("doctor", "--json")
    assert result.status != 0
    assert any("failed" == each["state"] for each in result.json["checks"]), result.out


def test_a_backup_is_restored_into_an_empty_folder(account: Account) -> None:
    file = account.csv("a.csv", [candidate(1)])
    account.push("candidates", file, "--mode", "create")
    expected = account.live_ids("candidates")
    made = account.run("backup", account.folder / "bk", "--json")
    assert 0 == made.status, made.text
    fresh = account.folder / "fresh"
    fresh.mkdir()
    other = Account(account.server, fresh)
    result = other.run("restore", Path(made.json["file"]))
    assert 0 == result.status, result.text
    assert expected == other.live_ids("candidates")
    other.pull()
    assert [] == other.differences()
    other.push("candidates", file, "--mode", "create")
    assert 1 == account.server.emails().count("ann1@people.example")
    assert 0 == other.run("undo", "last").status


@pytest.mark.parametrize("offset", [600, 50_000])
def test_a_damaged_backup_is_refused(account: Account, offset: int) -> None:
    path = Path(account.run("backup", account.folder / "bk", "--json").json["file"])
    content = bytearray(path.read_bytes())
    content[offset : offset + 40] = b"\xff" * 40
    path.write_bytes(content)
    fresh = account.folder / "fresh"
    fresh.mkdir()
    other = Account(account.server, fresh)
    assert 0 != other.run("restore", path).status
    assert not other.published.exists()


@pytest.fixture
def two(server: Server, tmp_path: Path) -> Iterator[dict[str, str]]:
    """Settings of two accounts of the server."""
    path = tmp_path / "connector.toml"
    path.write_text(CONFIG.format(url=server.base_url))
    for name in ("acme", "other"):
        (tmp_path / f"{name}.key").write_text(KEY)
        (tmp_path / f"{name}.key").chmod(0o600)
    with server.serve(counts={"jobs": 2, "candidates": 3}):
        yield {
            "CONNECTOR_DATA_DIR": str(tmp_path / "data"), "CONNECTOR_MODELS": "off",
            "CONNECTOR_CONFIG": str(path),
        }  # fmt: skip


def published(folder: Path) -> list[str]:
    """Return the ids of the published candidates."""
    found = query_file(folder / "recruitment.duckdb", "SELECT id FROM landing.candidates")
    return sorted(each["id"] for each in found)


def test_an_account_must_be_named_if_there_are_several(server: Server, two: dict[str, str]) -> None:
    result = run(["pull", "jobs"], two)
    assert 2 == result.status
    assert "acme" in result.err
    assert 2 == run(["pull", "jobs", "--account", "acmee"], two).status
    assert [] == server.log


def test_each_account_has_a_folder(server: Server, two: dict[str, str]) -> None:
    assert 0 == run(["pull", "--account", "acme"], two).status
    data = Path(two["CONNECTOR_DATA_DIR"])
    assert sorted(server.ids("candidates")) == published(data / "acme")
    assert ["acme"] == [each.name for each in data.iterdir() if each.is_dir()]
    assert 0 == run(["status", "--account", "acme", "--check"], two).status


@pytest.mark.slow
def test_all_accounts_are_pulled_and_one_that_fails_stops_no_other(
    server: Server, two: dict[str, str]
) -> None:
    result = run(["pull", "--all", "--parallel", "2", "--json"], two)
    assert 0 == result.status, result.text
    for name in ("acme", "other"):
        folder = Path(two["CONNECTOR_DATA_DIR"]) / name
        assert sorted(server.ids("candidates")) == published(folder)
    (Path(two["CONNECTOR_CONFIG"]).parent / "acme.key").write_text("another-key-0815")
    server.api("POST", "/candidates", **candidate(1))
    assert 0 != run(["pull", "--all", "--json"], two).status
    assert sorted(server.ids("candidates")) == published(Path(two["CONNECTOR_DATA_DIR"]) / "other")


CALLS = [
    ("GET", "/jobs", 200), ("GET", "/jobs?per_page=1&page=2", 200), ("GET", "/jobs/unknown", 404),
    ("POST", "/jobs", 422), ("PUT", "/jobs/unknown", 404),
    ("DELETE", "/jobs/unknown", 404), ("GET", "/candidates", 200), ("GET", "/companies", 200),
    ("GET", "/bookings", 200), ("GET", "/leads", 200), ("GET", "/content-types", 200),
    ("GET", "/content/unknown", 404), ("POST", "/leads/unknown/convert", 404),
]  # fmt: skip


@pytest.fixture(scope="module")
def api(server: Server) -> Iterator[httpx.Client]:
    """The sandbox's API over HTTP."""
    with server.serve(counts=COUNTS), httpx.Client(base_url=f"{server.base_url}/api/v1") as client:
        yield client


def test_the_sandbox_answers_as_the_api_is_documented(api: httpx.Client) -> None:
    headers = {"Authorization": f"Bearer {KEY}"}
    for method, path, expected in CALLS:
        content = b"{}" if method in ("POST", "PUT") else None
        answer = api.request(method, path, headers=headers, content=content)
        assert expected == answer.status_code, f"{method} {path}: {answer.text}"
        document, call = json.loads(answer.content), f"{method} {path}"
        is_list = {"data", "pagination"} <= document.keys()
        assert is_list if expected == 200 else "message" in document, call
        assert 401 == api.request(method, path).status_code, call
