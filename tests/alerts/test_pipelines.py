"""Dagster's two alert sensors: they check every account and report unrecorded failed runs."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import dagster as dg
import pytest

from pipelines.accounts import PARTITION_TAG, Account
from pipelines.definitions import definitions
from pipelines.sensors import alerts_sensor, failure_alerts_sensor
from tests.alerts.agency import RecordedAccount, load_account_settings
from tests.alerts.receivers import Receiver
from tests.support.clock import Clock

ACCOUNTS = """
data_dir = "data"
alert_webhook_file = "webhook"

[accounts.acme]
base_url = "https://acme.example"

[accounts.globex]
base_url = "https://globex.example"
billing_day = 99
"""


@pytest.fixture
def account(tmp_path: Path, receiver: Receiver) -> Account:
    """Two accounts: one OK, one with invalid settings."""
    (tmp_path / "connector.toml").write_text(ACCOUNTS, encoding="utf-8")
    (tmp_path / "webhook").write_text(receiver.address, encoding="utf-8")
    (tmp_path / "webhook").chmod(0o600)
    clock = Clock(datetime.now(UTC) - timedelta(hours=1))
    RecordedAccount(load_account_settings(tmp_path / "data", "acme"), clock).record_pull()
    return Account(environ={}, cwd=tmp_path)


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    """In-memory Dagster instance."""
    with dg.DagsterInstance.ephemeral() as made:
        yield made


def run_alert_sensor(account: Account, instance: dg.DagsterInstance) -> str:
    """Run the alert sensor and return its skip message."""
    with dg.build_sensor_context(
        instance=instance, resources={"account": account}, sensor_name=alerts_sensor.name
    ) as context:
        skipped = alerts_sensor(context)
    assert isinstance(skipped, dg.SkipReason)
    return str(skipped.skip_message)


def record_failed_run(instance: dg.DagsterInstance, **tags: str) -> dg.DagsterRun:
    """Record a run of the pull job that failed before it started a step."""

    @dg.op
    def fail() -> None:
        raise RuntimeError("it breaks")

    @dg.job(name="nightly_pull", tags=tags)
    def pull() -> None:
        fail()

    return pull.execute_in_process(instance=instance, raise_on_error=False).dagster_run


def test_the_alert_sensor_checks_every_account(
    account: Account, instance: dg.DagsterInstance, receiver: Receiver
) -> None:
    messages = [run_alert_sensor(account, instance) for _ in range(2)]

    assert "Messages sent: 1; open alerts: 1. globex: billing_day is 99" in messages[0]
    assert "Messages sent: 0; open alerts: 1." in messages[1]
    (got,) = receiver.received
    assert ("globex", "settings_wrong") == (got["account"], got["code"])
    assert "it must be a whole number from 1 to 31" in got["happened"]


def test_a_failed_run_that_the_connector_did_not_record_is_reported_once(
    account: Account, instance: dg.DagsterInstance, receiver: Receiver
) -> None:
    record_failed_run(instance, **{PARTITION_TAG: "globex"})
    record_failed_run(instance)
    # Of the settings of the other account.
    assert "Messages sent: 1" in run_alert_sensor(account, instance)
    record_failed_run(instance, **{PARTITION_TAG: "acme"})
    messages = [run_alert_sensor(account, instance) for _ in range(2)]

    assert ["Messages sent: 1; open alerts: 2.", "Messages sent: 0; open alerts: 2."] == [
        each[:33] for each in messages
    ]
    _, got = receiver.received
    assert ("acme", "job_failed", "nightly_pull") == (got["account"], got["code"], got["about"])


def test_the_failure_sensor_sends_alerts_immediately(
    account: Account, instance: dg.DagsterInstance, receiver: Receiver
) -> None:
    run = record_failed_run(instance, **{PARTITION_TAG: "acme"})
    (event,) = [
        each.dagster_event
        for each in instance.all_logs(run.run_id)
        if each.dagster_event is not None and each.dagster_event.is_failure
        if each.dagster_event.event_type is dg.DagsterEventType.RUN_FAILURE
    ]
    with dg.build_run_status_sensor_context(
        sensor_name=failure_alerts_sensor.name,
        dagster_instance=instance,
        dagster_run=run,
        dagster_event=event,
        resources={"account": account},
    ).for_run_failure() as context:
        failure_alerts_sensor(context)

    assert ["job_failed", "settings_wrong"] == [each["code"] for each in receiver.received]


def test_alert_sensors_are_stopped_by_default() -> None:
    sensors = {each.name: each for each in definitions.sensors or ()}

    for each in (alerts_sensor, failure_alerts_sensor):
        assert each is sensors[each.name]
        assert dg.DefaultSensorStatus.STOPPED == each.default_status
