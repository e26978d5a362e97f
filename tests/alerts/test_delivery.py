"""Delivery: each message arrives once, and the next check sends it again if no sink accepted it."""

from __future__ import annotations

import socket
from dataclasses import replace
from pathlib import Path

import pytest

from connector.errors import NotDelivered
from connector.ledger.alert_states import read_alerts
from connector.ledger.ledger import LeaseOwner, Ledger
from connector.operations.alert_check import (
    ALERT_LEASE,
    AlertCheck,
    check_alerts,
    make_test_message,
    open_alerts,
)
from connector.operations.alerts import Message
from connector.operations.delivery import Webhook, configured_sinks
from connector.settings.model import Settings
from tests.alerts.agency import START, RecordedAccount, load_account_settings
from tests.alerts.receivers import Receiver
from tests.support.clock import Clock


class RecordingSink:
    """Sink that records every message. The next `fails` attempts fail."""

    def __init__(self, name: str = "webhook") -> None:
        self.name = name
        self.arrived: list[Message] = []
        self.attempts = self.fails = 0
        self.is_cut_off = False

    def send(self, message: Message) -> None:
        """Record the message, or fail."""
        self.attempts += 1
        if self.fails:
            self.fails -= 1
            raise NotDelivered(f"the {self.name} answered 503")
        self.arrived.append(message)
        if self.is_cut_off:
            raise KeyboardInterrupt


@pytest.fixture
def clock() -> Clock:
    """Clock that starts at START."""
    return Clock(START)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Account without any pull, so its `silent` alert is due."""
    return load_account_settings(tmp_path, "acme")


def run_alert_check(settings: Settings, clock: Clock, *sinks: RecordingSink) -> AlertCheck:
    """Check the account's alerts and send the due messages to these sinks."""
    return check_alerts(settings, sinks=sinks, now=clock)


def test_a_message_that_no_sink_accepted_is_sent_again_by_the_next_check(
    settings: Settings, clock: Clock
) -> None:
    sink = RecordingSink()
    sink.fails = 2
    found = []
    for _ in range(4):
        found.append(run_alert_check(settings, clock, sink))
        clock.pass_time(minutes=2)

    failure = "1 alert was not delivered since 2026-11-20 22:00:00Z: the webhook answered 503"
    assert [(failure,), (failure,), (), ()] == [each.failures for each in found]
    assert [0, 0, 1, 0] == [each.delivered for each in found]
    assert [("opened", "silent", START)] == [(e.change, e.code, e.at) for e in sink.arrived]


def test_one_accepting_sink_delivers_the_message_and_the_other_is_reported(
    settings: Settings, clock: Clock
) -> None:
    webhook, email = RecordingSink(), RecordingSink("email")
    webhook.fails = 1
    first = run_alert_check(settings, clock, webhook, email)
    second = run_alert_check(settings, clock, webhook, email)

    assert ("alerts reach one channel only: the webhook answered 503",) == first.failures
    assert (1, 0, ()) == (first.delivered, second.delivered, second.failures)
    assert (0, 1) == (len(webhook.arrived), len(email.arrived))


def test_an_ended_alert_is_removed_once_its_end_is_delivered(
    settings: Settings, clock: Clock
) -> None:
    sink = RecordingSink()
    run_alert_check(settings, clock, sink)
    RecordedAccount(settings, clock).record_pull()
    sink.fails = 1
    run_alert_check(settings, clock, sink)
    with Ledger(settings.folder) as ledger:
        waiting = read_alerts(ledger)
        run_alert_check(settings, clock, sink)
        left = read_alerts(ledger)

    assert [("silent", "ended", None)] == [(e.code, e.change, e.sent_at) for e in waiting]
    assert () == left
    assert ["opened", "ended"] == [each.change for each in sink.arrived]


def test_a_check_killed_before_recording_sends_the_message_again_with_the_same_id(
    settings: Settings, clock: Clock
) -> None:
    sink = RecordingSink()
    sink.is_cut_off = True
    with pytest.raises(KeyboardInterrupt):
        run_alert_check(settings, clock, sink)
    sink.is_cut_off = False
    for _ in range(3):
        run_alert_check(settings, clock, sink)

    assert 2 == len(sink.arrived)
    assert 1 == len({each.id for each in sink.arrived})


def test_a_check_is_skipped_while_another_one_runs(settings: Settings, clock: Clock) -> None:
    sink = RecordingSink()
    settings.make_folder()
    with Ledger(settings.folder) as ledger:
        ledger.take_lease(ALERT_LEASE, LeaseOwner.of_this_process("another", "alerts"), clock.now)
        done = run_alert_check(settings, clock, sink)

    assert done.is_skipped
    assert 0 == sink.attempts


def test_a_check_without_a_sink_creates_no_files(settings: Settings, clock: Clock) -> None:
    assert 0 == check_alerts(settings, now=clock).delivered
    assert () == open_alerts(settings).failures
    assert not settings.folder.exists()


# -- a webhook -------------------------------------------------------------------------------------


def test_a_generic_webhook_receives_every_field_of_the_message(
    tmp_path: Path, clock: Clock, receiver: Receiver
) -> None:
    check_alerts(load_account_settings(tmp_path, alert_webhook=receiver.address), now=clock)

    (got,) = receiver.received
    assert {
        "id": "20261120T220000000000Z-silent-opened",
        "change": "opened",
        "kind": "silent",
        "code": "silent",
        "account": None,
        "about": None,
        "at": START.isoformat(),
        "since": START.isoformat(),
        "title": "connector: no pull has verified the local copy yet",
        "happened": "No pull has verified the local copy yet. The maximum age is 26h.",
        "action": "Check that the schedule runs, then run 'connector pull'.",
        "runbook": "docs/ALERTS.md#every-alert",
        "host": socket.gethostname(),
        "folder": str(tmp_path),
    } == {name: value for name, value in got.items() if name != "text"}
    assert [
        got["title"],
        f"{got['happened']} Started: 2026-11-20 22:00 UTC.",
        f"What to do: {got['action']}",
        f"Runbook: {got['runbook']}",
        f"Host: {got['host']}, folder {tmp_path}",
        "Code: silent",
    ] == got["text"].splitlines()


def test_a_slack_webhook_receives_text_without_markup(
    tmp_path: Path, clock: Clock, receiver: Receiver
) -> None:
    settings = load_account_settings(
        tmp_path, alert_webhook=receiver.address, alert_webhook_style="slack"
    )
    (sink,) = configured_sinks(settings)
    sink.send(replace(make_test_message(START), happened="<!channel> & <https://x|y>."))

    (got,) = receiver.received
    assert ["text"] == list(got)
    assert "&lt;!channel&gt; &amp; &lt;https://x|y&gt;." in got["text"]


@pytest.mark.parametrize("status", [301, 307, 400, 404, 429, 500])
def test_a_message_counts_as_delivered_only_after_a_2xx_response(
    tmp_path: Path, status: int
) -> None:
    with Receiver() as other, Receiver(status) as receiver:
        receiver.location = other.address
        (sink,) = configured_sinks(load_account_settings(tmp_path, alert_webhook=receiver.address))
        with pytest.raises(NotDelivered) as caught:
            sink.send(make_test_message(START))

    assert f"the webhook answered {status}" == str(caught.value)
    assert [] == other.bodies


def test_an_unreachable_webhook_is_reported_without_its_address(
    tmp_path: Path, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    (sink,) = configured_sinks(load_account_settings(tmp_path, alert_webhook=receiver.address))
    sink.send(make_test_message(START))
    receiver.stop()
    with pytest.raises(NotDelivered) as caught:
        sink.send(make_test_message(START))

    assert "the webhook was not reached (ConnectError)" == str(caught.value)
    for secret in ("planted-token", "planted-query", "/hooks"):
        assert secret not in caplog.text
        assert secret not in repr(sink)


def test_a_webhook_that_never_responds_is_given_up_after_the_timeout(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"http://127.0.0.1:{silent.getsockname()[1]}/"
        with pytest.raises(NotDelivered) as caught:
            Webhook(load_account_settings(tmp_path, alert_webhook=address), 0.05).send(
                make_test_message(START)
            )

    assert "the webhook did not answer in 0.05 s" == str(caught.value)
