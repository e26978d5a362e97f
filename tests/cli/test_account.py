"""Accounts that were renamed: they are noticed, told of, and keep what they had."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from connector.sandbox.server import Sandbox
from tests.alerts.receivers import Receiver
from tests.cli.calling import COUNTS, KEY, call, check_fields

PROJECT = """
data_dir = "data"
models = "off"
monthly_requests = 5000

[accounts.{name}]
base_url = "{address}"
api_key_file = "key"

[accounts.globex]
base_url = "{address}"
api_key_file = "key"
"""


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    """A server."""
    with Sandbox(counts=COUNTS, keys={KEY: ("*",)}) as made:
        yield made


def project(folder: Path, sandbox: Sandbox, name: str = "acme") -> dict[str, str]:
    """A folder with two accounts, of which one has the name, and its environment."""
    (folder / "key").write_text(KEY)
    (folder / "key").chmod(0o600)
    file = folder / "connector.toml"
    file.write_text(PROJECT.format(name=name, address=sandbox.base_url))
    return {"CONNECTOR_CONFIG": str(file)}


def used(name: str, environ: dict[str, str]) -> int:
    """The requests that the account's billing cycle has."""
    return int(call(["status", "--account", name, "--json"], environ).object["month"]["used"])


def test_a_renamed_account_is_told_of_and_asks_nothing(tmp_path: Path, sandbox: Sandbox) -> None:
    assert 0 == call(["pull", "--account", "acme", "jobs"], project(tmp_path, sandbox)).status
    asked, environ = len(sandbox.log), project(tmp_path, sandbox, "acme-london")
    with Receiver() as receiver:
        told = environ | {"CONNECTOR_ALERT_WEBHOOK": receiver.address}
        pulls = [call(["pull", "--account", "acme-london", "jobs"], told) for _ in range(2)]
        status = call(["status", "--account", "acme-london"], environ)
        alone = len(sandbox.log)
        doctor = call(["doctor", "--account", "acme-london"], environ)
        every = call(["doctor", "--all", "--json"], environ).object["accounts"]
        renamed = call(["account", "rename", "acme", "acme-london"], environ)
        after = call(["pull", "--account", "acme-london", "jobs", "--json"], told)
        received = receiver.received

    assert asked == alone
    assert [2, 2, 1, 0, 0] == [e.status for e in (*pulls, doctor, renamed, after)]
    command = "connector account rename acme acme-london"
    assert all(command in each.err for each in (*pulls, status, doctor))
    assert ["failed", "failed"] == [
        check["state"] for each in every for check in each["checks"] if check["name"] == "folders"
    ]
    assert [("opened", "account_renamed"), ("ended", "account_renamed")] == [
        (each["change"], each["code"]) for each in received
    ]
    assert command in received[0]["action"]
    assert {"new": 0, "requests": 2} == {
        name: after.object["resources"]["jobs"][name] for name in ("new", "requests")
    }
    folders = call(["doctor", "--account", "acme-london", "--json"], environ).object["checks"]
    assert ["ok"] == [each["state"] for each in folders if each["name"] == "folders"]


def test_what_was_pulled_under_the_new_name_is_counted_on(tmp_path: Path, sandbox: Sandbox) -> None:
    environ = project(tmp_path, sandbox)
    call(["pull", "--account", "acme", "jobs"], environ)
    before = used("acme", environ)
    hidden = (tmp_path / "data" / "acme").rename(tmp_path / "acme")
    environ = project(tmp_path, sandbox, "acme-london")
    call(["pull", "--account", "acme-london", "jobs"], environ)
    young = used("acme-london", environ)
    hidden.rename(tmp_path / "data" / "acme")
    command = ["account", "rename", "acme", "acme-london"]
    refused = call(command, environ)
    done = call([*command, "--replace", "--json"], environ)
    again = call(command, environ)
    named = call(["account", "rename", "globex", "acme-london"], environ)

    assert [2, 0, 2, 2] == [each.status for each in (refused, done, again, named)]
    assert "Add --replace" in refused.err
    assert "nothing is to be renamed" in again.err
    assert "'globex' is still an account of connector.toml" in named.err
    check_fields("account rename", "", done.object)
    assert before + young == used("acme-london", environ)
    assert (Path(done.object["aside"]) / "work.duckdb").is_file()
    assert not (tmp_path / "data" / "acme").exists()
    assert (
        6
        == call(["status", "--account", "acme-london", "--json"], environ).object["resources"][
            "jobs"
        ]["live"]
    )
