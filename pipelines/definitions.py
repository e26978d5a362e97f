"""Definitions that `dagster dev` loads from the project folder.

They load without configured accounts, and with invalid settings. Steps run in the process of their
run, because only one process at a time can open the warehouse.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import dagster as dg

from pipelines import freshness, jobs
from pipelines.accounts import Account, Accounts
from pipelines.graph import external_assets
from pipelines.landing import landing_assets
from pipelines.publishing import published_asset
from pipelines.pushes import create_push_job, push_from_query_asset
from pipelines.schedules import create_schedules
from pipelines.sensors import create_inbox_sensor, failure_notify_sensor, notify_sensor


def define(account: Account, accounts: Accounts | None = None) -> dg.Definitions:
    """Return all assets, jobs, schedules and sensors. Default: of the configured accounts."""
    accounts = accounts or Accounts.read(account)
    return dg.Definitions(
        assets=[
            *external_assets(accounts),
            landing_assets(accounts),
            published_asset(accounts),
            push_from_query_asset(accounts),
        ],
        asset_checks=[freshness.data_is_fresh],
        jobs=[
            jobs.nightly_pull_job,
            jobs.intraday_pull_job,
            jobs.weekly_verification_job,
            jobs.hourly_freshness_job,
            create_push_job(accounts),
        ],
        schedules=list(create_schedules(accounts)),
        sensors=[create_inbox_sensor(accounts), notify_sensor, failure_notify_sensor],
        resources={"account": account},
        executor=dg.in_process_executor,
    )


definitions = define(Account())


# -- Immediate run ---------------------------------------------------------------------------------

_INSTANCE = "telemetry:\n  enabled: false\nnux:\n  enabled: false\n"
_CONFIG = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}


@dataclass(frozen=True, slots=True)
class RunResult:
    """Completed Dagster run; `failure` is None if it succeeded."""

    run_id: str
    failure: str | None


def execute_nightly_pull(account: Account, home: Path) -> RunResult:
    """Run the nightly job in this process, and store its record in `home`, a DAGSTER_HOME.

    Telemetry is off in a home that is created here.
    """
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    configuration = home / "dagster.yaml"
    if not configuration.exists():
        configuration.write_text(_INSTANCE, encoding="utf-8")
    job = define(account, Accounts.unconfigured()).resolve_job_def(jobs.NIGHTLY)
    with dg.DagsterInstance.from_config(str(home)) as instance:
        result = job.execute_in_process(instance=instance, run_config=_CONFIG, raise_on_error=False)
    return RunResult(result.run_id, None if result.success else failure_reasons(result))


def failure_reasons(result: dg.ExecuteInProcessResult) -> str:
    """Return the errors of the run's failed steps in one text."""
    reasons = []
    for event in result.get_step_failure_events():
        failure = event.step_failure_data.user_failure_data
        reasons.append(str(failure.description if failure is not None else event.message))
    return " ".join(reasons) or f"Run {result.run_id} failed."
