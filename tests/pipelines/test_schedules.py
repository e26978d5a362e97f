"""Schedules: stopped by default, at the accounts' own times, without a queue of late runs."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import dagster as dg
import pytest
import yaml
from dagster._core.definitions.schedule_definition import ScheduleExecutionData as Tick

from connector.warehouse.file import make_folder
from pipelines import schedules
from pipelines.accounts import ACCOUNT_TAG, PARTITION_TAG, Account, Accounts
from pipelines.definitions import define, definitions
from pipelines.everywhere import define_everywhere
from pipelines.schedules import INTRADAY, KINDS, NIGHTLY, create_schedules
from tests.pipelines.running import open_instance
from tests.repository import ROOT
from tests.support.processes import OtherProcess

NIGHT = datetime(2026, 11, 22, 0, 0, tzinfo=UTC)


ACCOUNTS = """
nightly_cron = "0 1 * * *"
verification_cron = "off"
time_zone = "Europe/Berlin"
[accounts.acme]
[accounts.glo-bex]
nightly_cron = "0 4 * * *"
intraday_cron = "off"
[accounts.initech]
nightly_cron = "often"
[accounts.umbrella]
nightly_cron = "30 2 * * *"
time_zone = "America/New_York"
"""


@pytest.fixture
def account(tmp_path: Path) -> Account:
    """Four accounts: two with their own times, and one with invalid times."""
    (tmp_path / "connector.toml").write_text(ACCOUNTS, encoding="utf-8")
    return Account(environ={}, cwd=tmp_path)


@pytest.fixture
def instance(tmp_path: Path) -> Iterator[dg.DagsterInstance]:
    """Dagster instance that can record runs without executing them."""
    with open_instance(tmp_path / "home") as made:
        yield made


def load_schedules(account: Account) -> dict[str, dg.ScheduleDefinition]:
    """Return the schedules of a project by name."""
    return {each.name: each for each in create_schedules(Accounts.read(account))}


def evaluate_tick(
    definitions: dg.Definitions, name: str, instance: dg.DagsterInstance, at: datetime = NIGHT
) -> Tick:
    """Return what the schedule of this name requests at that time."""
    with dg.build_schedule_context(
        instance=instance,
        scheduled_execution_time=at,
        repository_def=definitions.get_repository_def(),
        resources=dict(definitions.resources or {}),
    ) as context:
        return definitions.resolve_schedule_def(name).evaluate_tick(context)


def find_requested_accounts(
    definitions: dg.Definitions, name: str, instance: dg.DagsterInstance, at: datetime = NIGHT
) -> list[str] | str:
    """Return the accounts for which the schedule requests runs ("" without accounts), or its skip
    message.
    """
    tick = evaluate_tick(definitions, name, instance, at)
    if tick.skip_message is not None:
        return tick.skip_message
    return [each.partition_key or "" for each in tick.run_requests or ()]


def test_every_schedule_is_stopped_by_default(account: Account) -> None:
    every = [
        *(definitions.schedules or ()),
        *(define(account).schedules or ()),
        *(define_everywhere(account).schedules or ()),
    ]

    assert len(every) >= 10
    for each in every:
        assert isinstance(each, dg.ScheduleDefinition)
        assert dg.DefaultScheduleStatus.STOPPED == each.default_status


def test_a_schedule_requests_one_run_per_account_and_time(
    account: Account, instance: dg.DagsterInstance
) -> None:
    made = define(account)

    def request_run_keys(at: datetime) -> list[str | None]:
        tick = evaluate_tick(made, "nightly_pull_schedule", instance, at)
        return [each.run_key for each in tick.run_requests or ()]

    tonight, again, tomorrow = (
        request_run_keys(NIGHT),
        request_run_keys(NIGHT),
        request_run_keys(NIGHT + timedelta(days=1)),
    )

    assert tonight == again
    assert 4 == len({*tonight, *tomorrow} - {None})


def test_schedules_run_at_the_configured_times(account: Account) -> None:
    found = {
        name: (each.cron_schedule, each.execution_timezone, each.job_name)
        for name, each in load_schedules(account).items()
    }

    assert {
        "nightly_pull_schedule": ("0 1 * * *", "Europe/Berlin", NIGHTLY),
        "nightly_pull_schedule_glo_DASH_bex": ("0 4 * * *", "Europe/Berlin", NIGHTLY),
        "nightly_pull_schedule_umbrella": ("30 2 * * *", "America/New_York", NIGHTLY),
        "intraday_pull_schedule": ("0 7-18 * * 1-5", "Europe/Berlin", INTRADAY),
        "intraday_pull_schedule_umbrella": ("0 7-18 * * 1-5", "America/New_York", INTRADAY),
    } == found
    about = str(load_schedules(account)["nightly_pull_schedule"].description)
    assert about.endswith("Skips an account that is in use. Accounts: acme, initech.")
    assert {f"{job}_schedule" for job in KINDS} == {
        each.name for each in definitions.schedules or ()
    }


def test_runs_are_requested_only_for_accounts_without_a_running_pull(
    account: Account, instance: dg.DagsterInstance
) -> None:
    made, nightly = define(account), "nightly_pull_schedule"
    job = definitions.resolve_job_def(INTRADAY)

    def start_run(name: str) -> dg.DagsterRun:
        return instance.create_run_for_job(
            job, status=dg.DagsterRunStatus.STARTED, tags={PARTITION_TAG: name}
        )

    assert ["acme", "initech"] == find_requested_accounts(made, nightly, instance)
    going = start_run("acme")
    assert ["initech"] == find_requested_accounts(made, nightly, instance)
    assert ["glo-bex"] == find_requested_accounts(made, f"{nightly}_glo_DASH_bex", instance)
    other = start_run("initech")
    assert (
        f"acme: Run {going.run_id} is already queued or running."
        f" initech: Run {other.run_id} is already queued or running."
        == find_requested_accounts(made, nightly, instance)
    )
    instance.report_run_canceled(going)
    assert ["acme"] == find_requested_accounts(made, nightly, instance)


@pytest.mark.parametrize("status", [dg.DagsterRunStatus.STARTED, dg.DagsterRunStatus.NOT_STARTED])
def test_a_run_whose_process_was_killed_is_reported_and_the_night_starts(
    account: Account,
    instance: dg.DagsterInstance,
    monkeypatch: pytest.MonkeyPatch,
    status: dg.DagsterRunStatus,
) -> None:
    made, job = define(account), definitions.resolve_job_def(INTRADAY)
    monkeypatch.setattr(schedules, "SILENT_SECONDS", -1)
    dead = instance.create_run_for_job(job, status=status, tags={PARTITION_TAG: "acme"})

    assert ["acme", "initech"] == find_requested_accounts(made, "nightly_pull_schedule", instance)
    reported = instance.get_run_by_id(dead.run_id)
    assert reported is not None
    assert dg.DagsterRunStatus.FAILURE == reported.status


def test_a_silent_run_is_not_reported_while_the_lock_of_the_account_is_held(
    account: Account, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schedules, "SILENT_SECONDS", -1)
    job = definitions.resolve_job_def(INTRADAY)
    run = instance.create_run_for_job(
        job, status=dg.DagsterRunStatus.STARTED, tags={PARTITION_TAG: "acme"}
    )
    folder = account.settings("acme").folder
    make_folder(folder)
    other = OtherProcess(folder, "pull")
    try:
        tick = evaluate_tick(define(account), "nightly_pull_schedule", instance)
    finally:
        other.kill()

    assert ["initech"] == [each.partition_key for each in tick.run_requests or ()]
    assert [{ACCOUNT_TAG: "initech"}] == [
        {ACCOUNT_TAG: each.tags[ACCOUNT_TAG]} for each in tick.run_requests or ()
    ]
    kept = instance.get_run_by_id(run.run_id)
    assert kept is not None
    assert dg.DagsterRunStatus.STARTED == kept.status


def test_dagster_sends_no_telemetry_and_runs_one_run_per_account(tmp_path: Path) -> None:
    text = (ROOT / "dagster.yaml").read_text(encoding="utf-8")
    given = yaml.safe_load(text)["concurrency"]["runs"]
    (tmp_path / "dagster.yaml").write_text(text, encoding="utf-8")
    with dg.DagsterInstance.from_config(str(tmp_path)) as made:
        queue = made.get_concurrency_config().run_queue_config
        assert (False, False) == (made.telemetry_enabled, made.nux_enabled)

        assert made.run_monitoring_enabled
        assert str(tmp_path) == made.root_directory

    assert queue is not None
    assert given["tag_concurrency_limits"] == list(queue.tag_concurrency_limits or ())
    assert [{"key": ACCOUNT_TAG, "value": {"applyLimitPerUniqueValue": True}, "limit": 1}] == (
        given["tag_concurrency_limits"]
    )
    assert queue.max_concurrent_runs > 1
