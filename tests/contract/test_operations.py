"""Status, doctor, backup, restore, accounts, the key, exit statuses, and users' mistakes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.contract.kit import COUNTS, KEY, Account, Server, candidate, run, status

CONFIG = """
[accounts.acme]
base_url = "{url}"
[accounts.other]
base_url = "{url}"
"""


@pytest.mark.parametrize("words", [
    ("status",), ("doctor",), ("pull", "jobs"), ("verify", "jobs"),
    ("status", "--check"), ("resolve",), ("publish",),
], ids=" ".join)  # fmt: skip
def test_json_is_one_object_on_stdout(account: Account, words: tuple[str, ...]) -> None:
    result = account.run(*words, "--json")
    assert 0 == result.status, result.text
    assert isinstance(result.json, dict)


@pytest.mark.parametrize("words", [
    ("pull",), ("status",), ("doctor",), ("resolve",), ("publish",), ("template", "jobs"),
    ("verify", "jobs"), ("backup", "bk"), ("undo", "last"),
], ids=" ".join)  # fmt: skip
@pytest.mark.parametrize("accepted", [True, False])
def test_the_key_is_in_no_output_and_no_file(
    account: Account, words: tuple[str, ...], accepted: bool
) -> None:
    if not accepted:
        account.server.rule("*", status(401))
    given = [str(account.folder / "bk") if word == "bk" else word for word in words]
    if words[0] == "template":
        given += ["--out", str(account.folder / "t.csv")]
    result = account.run(*given, "--debug")
    assert KEY not in result.text
    (account.folder / "records.sqlite").unlink()
    assert [] == account.files_with(KEY)


@pytest.mark.parametrize(("words", "expected"), [
    (("nonsense",), 2), (("pull", "nonsense"), 2), (("pull", "--nonsense"), 2),
    (("pull", "--max-requests", "0"), 2), (("push", "candidates", "missing.csv"), 2),
    (("push", "candidates", "missing.csv", "--mode", "create"), 2),
    (("push", "people", "missing.csv", "--mode", "create"), 2),
    (("status", "--max-age", "soon"), 2), (("--version",), 0), (("--help",), 0), (("status",), 0),
    (("restore", "missing.tar"), 2),
])  # fmt: skip
def test_exit_statuses(account: Account, words: tuple[str, ...], expected: int) -> None:
    result = account.run(*words)
    assert expected == result.status or (expected == 2 and result.status == 1), result.text
    assert "Traceback" not in result.text
    assert [] == account.server.log


@pytest.mark.parametrize(("name", "value"), [
    ("CONNECTOR_BASE_URL", ""), ("CONNECTOR_BASE_URL", "nonsense"),
    ("CONNECTOR_BASE_URL", "ftp://x.example"), ("CONNECTOR_API_KEY", ""),
    ("CONNECTOR_CONNECTIONS", "many"), ("CONNECTOR_MONTHLY_REQUESTS", "-1"),
    ("CONNECTOR_NONSENSE", "1"),
])  # fmt: skip
def test_wrong_settings_are_named(account: Account, name: str, value: str) -> None:
    result = account.run("pull", "jobs", **{name: value})
    assert result.status in (1, 2) or (name == "CONNECTOR_NONSENSE" and result.status == 0)
    assert "Traceback" not in result.text
    assert KEY not in result.text


def test_a_rejected_key_is_an_error_with_an_action(account: Account) -> None:
    account.server.rule("*", status(401))
    result = account.run("pull", "jobs")
    assert 1 == result.status
    assert "key" in result.err.lower()


def test_a_folder_of_another_address_is_refused(account: Account) -> None:
    before = account.published.read_bytes()
    result = account.run("pull", CONNECTOR_BASE_URL="http://127.0.0.1:9/")
    assert result.status in (1, 2)
    assert before == account.published.read_bytes()
    assert [] == account.server.log


def test_status_needs_no_server_and_watches_the_age(account: Account) -> None:
    assert 0 == account.run("status", "--max-age", "26h").status
    assert [] == account.server.log
    assert {*COUNTS} <= {*account.run("status", "--json").json["resources"]}


def test_status_fails_without_a_pull_if_an_age_is_required(empty: Account) -> None:
    assert 0 != empty.run("status", "--max-age", "1h").status


def test_doctor_finds_a_server_that_does_not_answer(account: Account) -> None:
    account.server.rule("*", status(401))
    result = account.run("doctor", "--json")
    assert result.status in (1, 3)


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


def test_accounts_have_a_folder_each(server: Server, tmp_path: Path) -> None:
    (tmp_path / "connector.toml").write_text(CONFIG.format(url=server.base_url))
    with server.serve(counts={"jobs": 2}):
        environ = {"CONNECTOR_DATA_DIR": str(tmp_path / "data"), "CONNECTOR_MODELS": "off",
                   "CONNECTOR_API_KEY_ACME": KEY, "CONNECTOR_ACME_API_KEY": KEY,
                   "CONNECTOR_CONFIG": str(tmp_path / "connector.toml")}  # fmt: skip
        result = run(["pull", "jobs"], environ)
        assert 2 == result.status, "an account must be named"
        assert KEY not in result.text
        assert [] == server.log


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


@pytest.mark.parametrize(("method", "path", "expected"), CALLS)
def test_the_sandbox_answers_as_the_api_is_documented(
    api: httpx.Client, method: str, path: str, expected: int
) -> None:
    headers = {"Authorization": f"Bearer {KEY}"}
    content = b"{}" if method in ("POST", "PUT") else None
    answer = api.request(method, path, headers=headers, content=content)
    assert expected == answer.status_code, answer.text
    document = json.loads(answer.content)
    assert {"data", "pagination"} <= document.keys() if expected == 200 else "message" in document
    assert 401 == api.request(method, path).status_code
