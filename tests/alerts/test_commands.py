"""Alert commands: output, sent messages and exit statuses, for one account and for all."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import click
import pytest

from connector.cli import COMMANDS, main
from connector.operations.alert_check import check_alerts
from connector.sandbox.server import Sandbox
from tests.alerts.agency import RecordedAccount, load_account_settings
from tests.alerts.receivers import Receiver
from tests.support.clock import Clock
from tests.support.command import COUNTS, KEY, call, check_fields, variables


def make_past_clock(**duration: float) -> Clock:
    """Return a clock that starts this long ago, as keywords of `timedelta`."""
    return Clock(datetime.now(UTC) - timedelta(**duration))


def summarize_messages(receiver: Receiver) -> list[tuple[str, str, str]]:
    """Return the change, code and subject of each message that arrived."""
    return [(each["change"], each["code"], each["about"] or "") for each in receiver.received]


def test_a_pull_sends_an_alert_when_it_fails_and_another_when_it_succeeds(
    tmp_path: Path, receiver: Receiver
) -> None:
    with Sandbox(counts=COUNTS, keys={"another": ("*",)}) as sandbox:
        wrong = variables(sandbox.base_url, tmp_path) | {
            "CONNECTOR_ALERT_WEBHOOK": receiver.address
        }
        failed = [call(["pull", "jobs"], wrong), call(["pull", "jobs"], wrong)]
        shown = call(["alerts"], wrong)
        well = call(["pull", "jobs", "--json"], wrong | {"CONNECTOR_API_KEY": "another"})

    assert [("opened", "pull_failed", ""), ("ended", "pull_failed", "")] == summarize_messages(
        receiver
    )
    assert [1, 1, 0] == [each.status for each in (*failed, well)]
    assert "done" == well.object["outcome"]
    assert (0, ["(unnamed)", "failed", "pull_failed", "-", "open"]) == (
        shown.status,
        shown.row("(unnamed)")[:5],
    )
    texts = "".join(each.out + each.err for each in (*failed, shown, well))
    for secret in (KEY, "planted-token", "planted-query"):
        assert secret not in texts
        assert not any(secret.encode() in body for body in receiver.bodies)
        assert [] == [f for f in tmp_path.rglob("*.*") if secret.encode() in f.read_bytes()]


def test_every_command_that_changes_data_checks_alerts() -> None:
    checking = []
    for name in COMMANDS:
        command = main.get_command(click.Context(main), name)
        checking += [name] if getattr(command, "checks_alerts", False) else []

    assert ["pull", "sweep", "push", "resolve", "undo", "publish"] == checking


def test_a_pull_succeeds_although_the_webhook_is_down(tmp_path: Path) -> None:
    with Receiver(503) as down, Sandbox(counts=COUNTS, keys={KEY: ("leads.read",)}) as sandbox:
        environ = variables(sandbox.base_url, tmp_path) | {"CONNECTOR_ALERT_WEBHOOK": down.address}
        pulled = call(["pull", "jobs", "leads", "--json"], environ)
        status = call(["status"], environ)
        watched = call(["status", "--max-age", "26h", "--json"], environ)
        sent = call(["alerts", "--send"], environ)
        tried = call(["alerts", "--test"], environ)

    assert (3, "partial") == (pulled.status, pulled.object["outcome"])
    warning = "1 alert was not delivered since "
    assert all(warning in each.err for each in (pulled, status, watched, sent))
    assert [0, 1, 1, 1] == [each.status for each in (status, watched, sent, tried)]
    assert (
        "jobs: skipped (the API key lacks a scope, 403). GET /api/v1/jobs was answered 403."
        in status.out
    )
    assert None is watched.object["silent"]
    (waiting,) = watched.object["alerts_waiting"]
    assert ("not_proven", "jobs", None) == (
        *(waiting["code"], waiting["about"], waiting["sent_at"]),
    )
    assert "the webhook answered 503" in tried.err
    assert "planted" not in pulled.err + status.err + sent.err + tried.err


@pytest.mark.parametrize(
    ("age", "max_age", "expected"), [(25.0, "26h", 0), (27.0, "26h", 1), (27.0, "2d", 0)]
)
def test_status_max_age_fails_when_the_last_verification_is_older(
    tmp_path: Path, age: float, max_age: str, expected: int
) -> None:
    """`status --max-age` needs neither a scheduler nor a sink. It ignores later runs that verified
    nothing.
    """
    clock = make_past_clock(hours=age)
    agency = RecordedAccount(load_account_settings(tmp_path), clock)
    agency.record_pull()
    clock.pass_time(hours=age)
    agency.record_pull("partial", overrides={"jobs": {"outcome": "partial", "proven": False}})
    called = call(["status", "--max-age", max_age], variables(None, tmp_path, None))

    assert expected == called.status
    assert (expected == 1) == (f"Not verified for more than {max_age}: jobs" in called.err)


def test_status_max_age_fails_if_no_pull_ever_ran(tmp_path: Path) -> None:
    called = call(["status", "--max-age", "26h"], variables(None, tmp_path / "data", None))

    assert 1 == called.status
    assert "No pull has verified the local copy yet. The maximum age is 26h." in called.err
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("wrong", ["26", "h", "0h", "-1h", "400d", "1.5h", "26 hours"])
def test_an_invalid_max_age_is_a_usage_error(tmp_path: Path, wrong: str) -> None:
    called = call(["status", "--max-age", wrong], variables(None, tmp_path, None))

    assert 2 == called.status
    assert "a duration of at most 366 days, such as 26h, 90min or 2d" in called.err


ACCOUNTS = """
data_dir = "data"
alert_webhook_file = "webhook"

[accounts.acme]
base_url = "https://acme.example"

[accounts.globex]
base_url = "https://globex.example"

[accounts.initech]
base_url = "https://initech.example"
api_key_file = "gone.key"
"""


@pytest.fixture
def three_accounts(tmp_path: Path, receiver: Receiver) -> Path:
    """Project with three accounts: one OK, one not verified recently, one with invalid settings."""
    (tmp_path / "connector.toml").write_text(ACCOUNTS, encoding="utf-8")
    (tmp_path / "webhook").write_text(receiver.address, encoding="utf-8")
    (tmp_path / "webhook").chmod(0o600)
    for name, hours in (("acme", 1.0), ("globex", 30.0)):
        RecordedAccount(
            load_account_settings(tmp_path / "data", name), make_past_clock(hours=hours)
        ).record_pull()
    return tmp_path / "connector.toml"


def test_status_all_shows_each_account_and_the_settings_error_of_one(
    three_accounts: Path, receiver: Receiver
) -> None:
    environ = {"CONNECTOR_CONFIG": str(three_accounts)}
    shown = call(["status", "--all"], environ)
    watched = call(["status", "--all", "--max-age", "26h", "--json"], environ)

    assert ["done", "4"] == shown.row("acme")[3:5]
    assert ["done", "4"] == shown.row("globex")[3:5]
    assert "error:" in shown.row("initech")
    assert (2, 2) == (shown.status, watched.status)
    assert "initech: api_key_file (from " in shown.err
    by_name = {each["account"]: each for each in watched.object["accounts"]}
    assert ["acme", "globex", "initech"] == list(by_name)
    assert None is by_name["acme"]["silent"]
    assert by_name["globex"]["silent"].startswith("Not verified for more than 26h: jobs")
    assert "settings" == by_name["initech"]["error"]["code"]
    assert "globex: Not verified for more than" in watched.err


def test_alerts_all_sends_each_alert_once(three_accounts: Path, receiver: Receiver) -> None:
    environ = {"CONNECTOR_CONFIG": str(three_accounts)}
    shown = call(["alerts", "--all"], environ)
    assert [] == receiver.bodies
    sent = [call(["alerts", "--all", "--send"], environ) for _ in range(2)]

    assert ["globex", "silent", "silent", "-", "due"] == shown.row("globex")[:5]
    assert ["globex", "silent", "silent", "-", "open"] == sent[0].row("globex")[:5]
    assert ["globex", "silent", "silent", "-", "open"] == sent[1].row("globex")[:5]
    assert [("globex", "silent"), ("initech", "settings_wrong")] == [
        (each["account"], each["code"]) for each in receiver.received
    ]
    assert [2, 2, 2] == [each.status for each in (shown, *sent)]
    assert all("initech: api_key_file (from " in each.err for each in (shown, *sent))


def test_alerts_test_all_sends_a_message_for_every_valid_account(
    three_accounts: Path, receiver: Receiver
) -> None:
    called = call(
        ["alerts", "--test", "--all", "--json"], {"CONNECTOR_CONFIG": str(three_accounts)}
    )

    assert 2 == called.status
    assert ["acme", "globex"] == [each["account"] for each in called.object["tests"]]
    assert 2 == len(receiver.bodies)
    assert "initech: api_key_file (from " in called.err


def test_alerts_test_sends_a_message_to_every_sink(
    three_accounts: Path, receiver: Receiver
) -> None:
    called = call(
        ["alerts", "--test", "--account", "acme", "--json"],
        {"CONNECTOR_CONFIG": str(three_accounts)},
    )

    assert 0 == called.status
    check_fields("alerts", "--test", called.object)
    assert {"tests": [{"account": "acme", "to": "webhook", "failure": None}]} == called.object
    assert [("acme", "test")] == [(e["account"], e["change"]) for e in receiver.received]


@pytest.mark.parametrize("option", ["--send", "--test"])
def test_sending_alerts_without_a_sink_is_a_usage_error(tmp_path: Path, option: str) -> None:
    called = call(["alerts", option], variables(None, tmp_path, None))

    assert 2 == called.status
    assert "CONNECTOR_ALERT_WEBHOOK_FILE" in called.err


def test_disabled_alert_kinds_are_not_sent(tmp_path: Path, receiver: Receiver) -> None:
    settings = load_account_settings(tmp_path, alert_webhook=receiver.address, alert_kinds="failed")
    assert () == check_alerts(settings).open

    wanted = replace(settings.alert_kinds, value=("silent",))
    assert 1 == check_alerts(replace(settings, alert_kinds=wanted)).delivered
