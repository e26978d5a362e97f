"""Dagster runs the same pull and push, records what it loaded, and starts nothing twice."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from sqlalchemy import event
from sqlalchemy.engine import Engine

from pipelines.definitions import definitions
from tests.contract.kit import COUNTS, KEY, Account, Server, candidate, status

NIGHTLY = "nightly_pull"


@event.listens_for(Engine, "connect")
def _disable_sync(connection: object, _: object) -> None:
    """Let Dagster's databases not wait for the disk, which a run would do a thousand times."""
    if isinstance(connection, sqlite3.Connection):
        connection.execute("PRAGMA synchronous = OFF")


@dataclass(frozen=True)
class Run:
    """A finished run of a job."""

    result: dg.ExecuteInProcessResult
    instance: dg.DagsterInstance

    @property
    def materialized(self) -> dict[str, dict[str, Any]]:
        """Metadata of each materialized asset, by the last part of its name."""
        return {
            each.asset_key.path[-1]: {name: data.value for name, data in each.metadata.items()}
            for each in (
                event.step_materialization_data.materialization
                for event in self.result.get_asset_materialization_events()
            )
        }

    @property
    def failed_checks(self) -> list[str]:
        """Names of the blocking checks that failed."""
        checks = self.result.get_asset_check_evaluations()
        blocking = [each for each in checks if each.severity == dg.AssetCheckSeverity.ERROR]
        return [each.check_name for each in blocking if not each.passed]

    @property
    def logs(self) -> str:
        """All that Dagster stores about the run."""
        return "\n".join(map(str, self.instance.all_logs(self.result.run_id)))


def run(name: str, instance: dg.DagsterInstance, config: dict[str, Any] | None = None) -> Run:
    """Run a job of the project in this process."""
    job = definitions.resolve_job_def(name)
    result = job.execute_in_process(instance=instance, run_config=config, raise_on_error=False)
    return Run(result, instance)


@pytest.fixture(scope="module")
def set_environ() -> Iterator[Callable[[Account], None]]:
    """Function that makes an account the configured one of this process."""
    with pytest.MonkeyPatch.context() as patch:

        def set_all(account: Account) -> None:
            for name, value in account.environ.items():
                patch.setenv(name, value)
            patch.chdir(account.folder)

        yield set_all


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    """A Dagster instance in memory."""
    with dg.DagsterInstance.ephemeral() as made:
        yield made


@pytest.fixture(scope="module")
def night(
    server: Server, tmp_path_factory: pytest.TempPathFactory, set_environ: Callable[[Account], None]
) -> Iterator[tuple[Account, Run]]:
    """A nightly run that loads the small agency, and its account."""
    folder = tmp_path_factory.mktemp("night")
    with server.serve(counts=COUNTS), dg.DagsterInstance.ephemeral() as instance:
        account = Account(server, folder, CONNECTOR_MODELS="on")
        set_environ(account)
        yield account, run(NIGHTLY, instance)


@pytest.mark.slow
def test_a_nightly_run_loads_builds_and_publishes(night: tuple[Account, Run]) -> None:
    account, ran = night
    assert ran.result.success
    assert [] == account.differences()
    assert 0 < account.rows("SELECT count(*) AS n FROM marts.dim_candidates")[0]["n"]


def test_a_nightly_run_records_each_resource_and_each_mart(night: tuple[Account, Run]) -> None:
    account, ran = night
    assert {*COUNTS} <= ran.materialized.keys()
    # Tables of content depend on the account's content types, and are recorded together.
    tables = account.rows(
        """SELECT table_name AS name FROM information_schema.tables
        WHERE table_schema = 'marts' AND NOT starts_with(table_name, 'content_')"""
    )
    assert {each["name"] for each in tables} <= ran.materialized.keys()
    assert [] == ran.failed_checks
    assert 20 < len(ran.result.get_asset_check_evaluations())


def test_the_key_is_in_no_event_of_a_run(night: tuple[Account, Run]) -> None:
    _, ran = night
    assert KEY not in ran.logs


def test_a_nightly_run_that_fails_names_the_reason_and_publishes_nothing(
    account: Account, instance: dg.DagsterInstance, set_environ: Callable[[Account], None]
) -> None:
    set_environ(account)
    before = account.published.read_bytes()
    account.server.rule("*", status(401))
    ran = run(NIGHTLY, instance)
    assert not ran.result.success
    assert "401" in ran.logs
    assert KEY not in ran.logs
    assert before == account.published.read_bytes()


def test_a_scheduled_pull_is_skipped_while_the_last_one_runs(tmp_path: Path) -> None:
    schedule = next(
        each for each in definitions.schedules or () if each.name == f"{NIGHTLY}_schedule"
    )
    assert isinstance(schedule, dg.ScheduleDefinition)
    job = definitions.resolve_job_def(NIGHTLY)
    resources = {"account": (definitions.resources or {})["account"]}
    (tmp_path / "dagster.yaml").write_text("telemetry:\n  enabled: false\n")
    with dg.DagsterInstance.from_config(str(tmp_path)) as instance:

        def evaluate() -> dg.ScheduleExecutionData:
            time = datetime(2026, 11, 2, 2, 15, tzinfo=UTC)
            with dg.build_schedule_context(instance, time, resources=resources) as context:
                return schedule.evaluate_tick(context)

        assert 1 == len(evaluate().run_requests or ())
        running = instance.create_run_for_job(job, status=dg.DagsterRunStatus.STARTED)
        found = evaluate()
        assert [] == [*(found.run_requests or ())]
        assert running.run_id in str(found.skip_message)


def scan_inbox(
    instance: dg.DagsterInstance, cursor: str | None
) -> tuple[list[dg.RunRequest], str | None]:
    """Run the inbox sensor once."""
    sensor = next(each for each in definitions.sensors or () if each.name == "inbox_sensor")
    resources = {"account": (definitions.resources or {})["account"]}
    with dg.build_sensor_context(instance=instance, cursor=cursor, resources=resources) as context:
        found = sensor(context)
    assert isinstance(found, dg.SensorResult)
    return list(found.run_requests or ()), found.cursor


@pytest.mark.parametrize("is_applied", [True, False], ids=["applied", "previewed"])
def test_a_file_in_the_inbox_is_pushed_once_it_stays_the_same(
    account: Account,
    instance: dg.DagsterInstance,
    set_environ: Callable[[Account], None],
    *,
    is_applied: bool,
) -> None:
    set_environ(account)
    folder = account.data / "inbox" / "candidates"
    folder.mkdir(parents=True)
    if is_applied:
        (folder / "push.toml").write_text('mode = "create"\napply = true\n')
    account.csv("people.csv", [candidate(1)]).rename(folder / "people.csv")
    first, cursor = scan_inbox(instance, None)
    second, cursor = scan_inbox(instance, cursor)
    assert ([], 1) == (first, len(second)), "the file may still be written at first"
    ran = run("push_spreadsheet", instance, dict(second[0].run_config))
    assert ran.result.success
    expected = 1 if is_applied else 0
    assert expected == account.server.emails().count("ann1@people.example")
    assert not (folder / "people.csv").exists()
    assert [] == scan_inbox(instance, cursor)[0]
    assert "ann1@people.example" not in ran.logs


def test_the_definitions_have_one_job_for_each_purpose() -> None:
    names = {each.name for each in definitions.jobs or ()}
    assert {NIGHTLY, "intraday_pull", "weekly_verification", "push_spreadsheet"} <= names
