"""Definitions that Dagster loads, and the function that adds them to another project.

They load without configured accounts, and with invalid settings.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import dagster as dg

from connector.errors import ConnectorError
from pipelines.accounts import Account, Accounts
from pipelines.landing import landing_assets
from pipelines.models import model_assets
from pipelines.pushes import external_assets, push_jobs
from pipelines.schedules import NIGHTLY, create_schedules, pull_jobs
from pipelines.sensors import create_inbox_sensor, notify_sensor


def define(
    account: Account | None = None, *, key_prefix: str | Sequence[str] = (), schedules: bool = True
) -> dg.Definitions:
    """Return the assets and jobs of the configured accounts, for `dagster.Definitions.merge`.

    Args:
        account: Source of the settings. Default: the environment and the working folder.
        key_prefix: First part or parts of every asset key.
        schedules: Include the schedules and sensors, which are stopped at first.
    """
    account = account or Account()
    prefix = [key_prefix] if isinstance(key_prefix, str) else key_prefix
    accounts = Accounts.read(account, prefix)
    published, unrecorded = model_assets(accounts)
    return dg.Definitions(
        assets=[*external_assets(accounts), landing_assets(accounts), *unrecorded, published],
        jobs=[*pull_jobs(accounts), *push_jobs(accounts)],
        schedules=list(create_schedules(accounts)) if schedules else [],
        sensors=[create_inbox_sensor(accounts), notify_sensor] if schedules else [],
        resources={"account": account},
    )


# Without a job, as in *Materialize all*, steps also run in the process of their run.
definitions = dg.Definitions.merge(define(), dg.Definitions(executor=dg.in_process_executor))


# -- Immediate run ---------------------------------------------------------------------------------

_INSTANCE = "telemetry:\n  enabled: false\nnux:\n  enabled: false\n"
_CONFIG = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}


def execute_nightly_pull(account: Account, home: Path) -> str:
    """Run the nightly job in this process, and store its record in `home`, a DAGSTER_HOME.

    Telemetry is off in a home that is created here. Returns the id of the run. Raises
    `ConnectorError` if the run failed.
    """
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    configuration = home / "dagster.yaml"
    if not configuration.exists():
        configuration.write_text(_INSTANCE, encoding="utf-8")
    job = define(account).resolve_job_def(NIGHTLY)
    with dg.DagsterInstance.from_config(str(home)) as instance:
        result = job.execute_in_process(instance=instance, run_config=_CONFIG, raise_on_error=False)
    if not result.success:
        message = f"the Dagster run {result.run_id} failed: {failure_reasons(result)}"
        raise ConnectorError(message)
    return result.run_id


def failure_reasons(result: dg.ExecuteInProcessResult) -> str:
    """Return the errors of the run's failed steps in one text."""
    reasons = []
    for event in result.get_step_failure_events():
        failure = event.step_failure_data.user_failure_data
        reasons.append(str(failure.description if failure is not None else event.message))
    return " ".join(reasons) or f"Run {result.run_id} failed."
