"""Schedules: off until switched on, at the accounts' own times, and never a queue of late runs."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import dagster as dg
import pytest
import yaml
from dagster._core.definitions.schedule_definition import ScheduleExecutionData as Tick

from pipelines.accounts import PARTITION_TAG, Account, Accounts
from pipelines.definitions import define, definitions
from pipelines.everywhere import ADDRESS, define_everywhere
from pipelines.jobs import FRESHNESS, INTRADAY, NIGHTLY, PULLING, WEEKLY
from pipelines.pushes import NAME as PUSH
from pipelines.schedules import schedules_of
from tests.pipelines.running import instance_in
from tests.repository import ROOT

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
    """Four accounts: two have their own times, and the times of another are invalid."""
    (tmp_path / "connector.toml").write_text(ACCOUNTS, encoding="utf-8")
    return Account(environ={}, cwd=tmp_path)


@pytest.fixture
def instance(tmp_path: Path) -> Iterator[dg.DagsterInstance]:
    """A Dagster whose runs can be made without being run."""
    with instance_in(tmp_path / "home") as made:
        yield made


def schedules(account: Account) -> dict[str, dg.ScheduleDefinition]:
    return {each.name: each for each in schedules_of(Accounts.of(account))}


def ticked(
    made: dg.Definitions, name: str, instance: dg.DagsterInstance, at: datetime = NIGHT
) -> Tick:
    """Return the runs that Dagster's daemon starts for a schedule at that time."""
    with dg.build_schedule_context(
        instance=instance, scheduled_execution_time=at, repository_def=made.get_repository_def()
    ) as context:
        return made.resolve_schedule_def(name).evaluate_tick(context)


def asked(
    made: dg.Definitions, name: str, instance: dg.DagsterInstance, at: datetime = NIGHT
) -> list[str] | str:
    """The accounts of the runs that a schedule asks for, an empty name where there are none; or why
    it asks for none.
    """
    tick = ticked(made, name, instance, at)
    if tick.skip_message is not None:
        return tick.skip_message
    return [each.partition_key or "" for each in tick.run_requests or ()]


def test_everything_is_off_until_it_is_switched_on(account: Account) -> None:
    every = [
        *(definitions.schedules or ()),
        *(define(account).schedules or ()),
        *(define_everywhere(account).schedules or ()),
    ]

    assert len(every) > 10
    for each in every:
        assert isinstance(each, dg.ScheduleDefinition)
        assert dg.DefaultScheduleStatus.STOPPED == each.default_status


def test_a_moment_asks_for_each_account_once(
    account: Account, instance: dg.DagsterInstance
) -> None:
    made = define(account)

    def keys(at: datetime) -> list[str | None]:
        tick = ticked(made, "nightly_pull_schedule", instance, at)
        return [each.run_key for each in tick.run_requests or ()]

    tonight, again, tomorrow = keys(NIGHT), keys(NIGHT), keys(NIGHT + timedelta(days=1))

    assert tonight == again
    assert 4 == len({*tonight, *tomorrow} - {None})


def test_times_are_those_of_the_settings(account: Account) -> None:
    found = {
        name: (each.cron_schedule, each.execution_timezone, each.job_name)
        for name, each in schedules(account).items()
    }

    assert {
        "nightly_pull_schedule": (["0 1 * * *", "0 4 * * *"], "Europe/Berlin", NIGHTLY),
        "nightly_pull_schedule_america_new_york": (["30 2 * * *"], "America/New_York", NIGHTLY),
        "intraday_pull_schedule": (["0 7-18 * * 1-5"], "Europe/Berlin", INTRADAY),
        "intraday_pull_schedule_america_new_york": (
            ["0 7-18 * * 1-5"],
            "America/New_York",
            INTRADAY,
        ),
        "hourly_freshness_check_schedule": ("5 * * * *", "UTC", FRESHNESS),
    } == found
    about = str(schedules(account)["nightly_pull_schedule"].description)
    assert "(Europe/Berlin): `0 1 * * *` for acme, initech; `0 4 * * *` for glo-bex." in about
    assert {f"{job}_schedule" for job in (*PULLING, FRESHNESS)} == {
        each.name for each in definitions.schedules or ()
    }


def test_a_run_is_asked_for_each_account_that_has_none(
    account: Account, instance: dg.DagsterInstance
) -> None:
    made, nightly = define(account), "nightly_pull_schedule"
    job = definitions.resolve_job_def(INTRADAY)

    def begin(name: str) -> dg.DagsterRun:
        return instance.create_run_for_job(
            job, status=dg.DagsterRunStatus.STARTED, tags={PARTITION_TAG: name}
        )

    assert ["acme", "initech"] == asked(made, nightly, instance)
    going = begin("acme")
    assert ["initech"] == asked(made, nightly, instance)
    assert ["glo-bex"] == asked(made, nightly, instance, NIGHT + timedelta(hours=3))
    other = begin("initech")
    assert (
        f"acme: Run {going.run_id} is already queued or running."
        f" initech: Run {other.run_id} is already queued or running."
        == asked(made, nightly, instance)
    )
    instance.report_run_canceled(going)
    assert ["acme"] == asked(made, nightly, instance)


def test_each_account_runs_on_the_night_when_its_hour_does_not_exist(
    account: Account, instance: dg.DagsterInstance
) -> None:
    """Clocks in New York skip from 02:00 to 03:00 on 8 March 2026."""
    skipped_hour = datetime(2026, 3, 8, 7, 0, tzinfo=UTC)
    name = "nightly_pull_schedule_america_new_york"

    assert ["umbrella"] == asked(define(account), name, instance, skipped_hour)


def test_a_push_keeps_no_pull_from_being_asked_for(instance: dg.DagsterInstance) -> None:
    push = definitions.resolve_job_def(PUSH)
    config = {"ops": {"push_file": {"config": {"resource": "jobs", "file": "f", "mode": "create"}}}}
    instance.create_run_for_job(push, run_config=config, status=dg.DagsterRunStatus.STARTED)

    assert [""] == asked(definitions, "nightly_pull_schedule", instance)


def test_a_project_file_that_cannot_be_read_is_the_reason(
    tmp_path: Path, instance: dg.DagsterInstance
) -> None:
    (tmp_path / "connector.toml").write_text("[accounts.acme", encoding="utf-8")
    made = define(Account(environ={}, cwd=tmp_path))

    assert "connector.toml is not valid TOML" in asked(made, "nightly_pull_schedule", instance)


def test_all_accounts_at_once_skip_while_a_run_of_all_is_going(
    account: Account, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(ADDRESS, "tcp://127.0.0.1:8786")
    made = define_everywhere(account)
    nightly = "nightly_pull_everywhere_schedule"
    assert [""] == asked(made, nightly, instance)
    going = instance.create_run_for_job(
        made.resolve_job_def("intraday_pull_everywhere"), status=dg.DagsterRunStatus.STARTED
    )

    assert f"Run {going.run_id} is already queued or running." == asked(made, nightly, instance)


def test_weekly_schedule_verifies_unchanged_records(instance: dg.DagsterInstance) -> None:
    config = {"ops": {"pull_landing": {"config": {"verify_unchanged": True}}}}
    tick = ticked(definitions, "weekly_verification_schedule", instance)

    assert config == definitions.resolve_job_def(WEEKLY).run_config
    assert [config] == [each.run_config for each in tick.run_requests or ()]


def test_one_run_of_an_account_and_several_accounts_at_once(tmp_path: Path) -> None:
    text = (ROOT / "dagster.yaml").read_text(encoding="utf-8")
    given = yaml.safe_load(text)["concurrency"]["runs"]
    (tmp_path / "dagster.yaml").write_text(text, encoding="utf-8")
    with dg.DagsterInstance.from_config(str(tmp_path)) as made:
        queue = made.get_concurrency_config().run_queue_config

    assert queue is not None
    assert given["tag_concurrency_limits"] == list(queue.tag_concurrency_limits or ())
    assert [{"key": PARTITION_TAG, "value": {"applyLimitPerUniqueValue": True}, "limit": 1}] == (
        given["tag_concurrency_limits"]
    )
    assert queue.max_concurrent_runs > 1
