"""Delivering: what is due arrives, waits where nobody is, and never arrives again once it has."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from pydantic import SecretStr

from connector.errors import NotDelivered
from connector.ledger.alert_states import AlertStates, Change, MessageRecord
from connector.ledger.lease import LeaseOwner
from connector.ledger.ledger import Ledger
from connector.operations.alert_check import (
    ALERT_LEASE,
    KEPT,
    RETRY_MAX,
    AlertCheck,
    check_alerts,
    trial_message,
)
from connector.operations.delivery import Webhook, sinks_of
from connector.settings.model import Settings
from tests.alerts.agency import START, Clock, settings_of
from tests.alerts.receivers import Receiver


class Recorder:
    """A sink in this process that fails as often as it is told to, and keeps what arrives."""

    name = "webhook"

    def __init__(self) -> None:
        self.arrived: list[MessageRecord] = []
        self.attempts = self.fails = 0
        self.is_cut_off = False

    def send(self, message: MessageRecord) -> None:
        """Keep it, or fail."""
        self.attempts += 1
        if self.fails:
            self.fails -= 1
            raise NotDelivered("the webhook answered 503")
        self.arrived.append(message)
        if self.is_cut_off:
            raise KeyboardInterrupt


@pytest.fixture
def clock() -> Clock:
    """A clock that stands."""
    return Clock()


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """An account that never pulled anything: it is silent."""
    return settings_of(tmp_path, "acme")


def check(settings: Settings, clock: Clock, sink: Recorder, **options: bool) -> AlertCheck:
    """One check."""
    return check_alerts(settings, sinks=(sink,), now=clock, **options)  # type: ignore[arg-type]


def test_waits_grow_and_what_waits_arrives_once(settings: Settings, clock: Clock) -> None:
    sink, tried = Recorder(), []
    sink.fails = 6
    for minute in range(48):
        before = sink.attempts
        done = check(settings, clock, sink)
        if sink.attempts > before:
            tried.append(minute)
        assert (minute < tried[0] + 45) == bool(done.failures)
        clock.pass_time(minutes=1)

    assert [0, 1, 3, 7, 15, 30, 45] == tried
    assert timedelta(minutes=15) == RETRY_MAX
    assert [("opened", "silent", START)] == [(e.change, e.code, e.at) for e in sink.arrived]


def test_a_person_need_not_wait(settings: Settings, clock: Clock) -> None:
    sink = Recorder()
    sink.fails = 1
    check(settings, clock, sink)

    assert 0 == check(settings, clock, sink).delivered
    assert 1 == check(settings, clock, sink, forces=True).delivered


def test_failure_says_since_when_and_why(settings: Settings, clock: Clock) -> None:
    """A failing sink is told with its last reason, and since when it fails."""
    sink = Recorder()
    sink.fails = 9
    check(settings, clock, sink)
    clock.pass_time(minutes=2)

    (failure,) = check(settings, clock, sink).failures

    said = "1 alert has not arrived since 2026-11-20 22:00:00Z: the webhook answered 503"
    assert said == failure


def test_killed_between_sending_and_writing_it_down_sends_it_once_more(
    settings: Settings, clock: Clock
) -> None:
    sink = Recorder()
    sink.is_cut_off = True
    with pytest.raises(KeyboardInterrupt):
        check(settings, clock, sink)
    sink.is_cut_off = False
    for _ in range(3):
        check(settings, clock, sink)

    assert 2 == len(sink.arrived)
    assert 1 == len({each.id for each in sink.arrived})


def test_one_check_at_a_time(settings: Settings, clock: Clock) -> None:
    sink = Recorder()
    settings.make_folder()
    with Ledger(settings.folder) as ledger:
        ledger.take_lease(ALERT_LEASE, LeaseOwner.of_this_process("another", "alerts"), clock.now)
        done = check(settings, clock, sink)

    assert done.is_skipped
    assert 0 == sink.attempts


def test_without_a_sink_nothing_is_made(settings: Settings, clock: Clock) -> None:
    assert 0 == check_alerts(settings, now=clock).delivered
    assert not settings.folder.exists()


def test_messages_about_one_thing_arrive_in_their_order(settings: Settings, clock: Clock) -> None:
    settings.make_folder()
    changes: list[tuple[Change, str]] = [
        *(("opened", "a"), ("opened", "b"), ("ended", "a"), ("ended", "b"))
    ]
    messages = [
        MessageRecord(f"{n}", change, START, "pull_failed", about, START, "It failed.", "Do.")
        for n, (change, about) in enumerate(changes)
    ]
    with Ledger(settings.folder) as ledger:
        AlertStates(ledger).record((), messages, ("webhook",))
    sink = Recorder()
    sink.fails = 1
    for _ in range(4):
        check(settings, clock, sink)
        clock.pass_time(seconds=20)

    arrived = [each.id for each in sink.arrived if each.code == "pull_failed"]
    assert ["1", "3", "0", "2"] == arrived


def test_what_has_arrived_is_forgotten_in_the_end(settings: Settings, clock: Clock) -> None:
    sink = Recorder()
    check(settings, clock, sink)
    settings.make_folder()
    with Ledger(settings.folder) as ledger:
        book = AlertStates(ledger)
        late = trial_message(START)
        book.record(book.alerts(), [late], ("email",))
        book.forget(START + KEPT)
        with ledger.reading() as connection:
            left = connection.execute("SELECT id FROM alert_messages").fetchall()

    assert [(late.id,)] == left


# -- a webhook ------------------------------------------------------------------------------------


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """A webhook that takes everything."""
    with Receiver() as made:
        yield made


def test_generic_webhook_gets_the_whole_message(
    tmp_path: Path, clock: Clock, receiver: Receiver
) -> None:
    check_alerts(settings_of(tmp_path, alert_webhook=receiver.address), now=clock)

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
        "happened": "No pull was ever proven, and one must be at most 26h old.",
    } == {name: value for name, value in got.items() if name not in ("action", "text")}
    assert got["text"].startswith("[silent] the unnamed account: silent\nNo pull was ever proven")
    assert got["text"].endswith(f"\nNext: {got['action']}")


def test_slack_gets_a_text_without_markup(tmp_path: Path, clock: Clock, receiver: Receiver) -> None:
    settings = settings_of(tmp_path, alert_webhook=receiver.address, alert_webhook_style="slack")
    (sink,) = sinks_of(settings)
    message = MessageRecord(
        "1", "opened", START, "pull_failed", "", START, "<!channel> & <https://x|y>.", "Do."
    )
    sink.send(message)

    (got,) = receiver.received
    assert ["text"] == list(got)
    assert "&lt;!channel&gt; &amp; &lt;https://x|y&gt;." in got["text"]


@pytest.mark.parametrize("status", [301, 307, 400, 404, 429, 500])
def test_only_success_is_an_arrival(tmp_path: Path, status: int) -> None:
    with Receiver() as other, Receiver(status) as receiver:
        receiver.location = other.address
        (sink,) = sinks_of(settings_of(tmp_path, alert_webhook=receiver.address))
        with pytest.raises(NotDelivered) as caught:
            sink.send(trial_message(START))

    assert f"the webhook answered {status}" == str(caught.value)
    assert [] == other.bodies


def test_a_webhook_that_is_not_there_is_told_without_its_address(
    tmp_path: Path, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    (sink,) = sinks_of(settings_of(tmp_path, alert_webhook=receiver.address))
    sink.send(trial_message(START))
    receiver.go_down()
    with pytest.raises(NotDelivered) as caught:
        sink.send(trial_message(START))

    assert "the webhook was not reached (ConnectError)" == str(caught.value)
    for secret in ("planted-token", "planted-query", "/hooks"):
        assert secret not in caplog.text
        assert secret not in repr(sink)


def test_a_webhook_that_never_answers_costs_no_more_than_its_time() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = SecretStr(f"http://127.0.0.1:{silent.getsockname()[1]}/")
        with pytest.raises(NotDelivered) as caught:
            Webhook(address, "generic", None, seconds=0.05).send(trial_message(START))

    assert "the webhook has not answered in 0.05 s" == str(caught.value)
