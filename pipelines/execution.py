"""The definitions executed here and now, in this process, for a person who watches."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import dagster as dg

from pipelines.accounts import Accounts
from pipelines.connections import Account
from pipelines.definitions import define
from pipelines.jobs import PULL

_INSTANCE = "telemetry:\n  enabled: false\nnux:\n  enabled: false\n"
_CONFIG = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}


@dataclass(frozen=True, slots=True)
class Executed:
    """A run that has ended; `failure` says why it did not succeed."""

    run_id: str
    failure: str | None


def execute(account: Account, home: Path) -> Executed:
    """Run the pull job for the account, and for no other that a project file may name, and keep
    its record in `home`, a DAGSTER_HOME.

    Telemetry is off in a home that is made here.
    """
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    configuration = home / "dagster.yaml"
    if not configuration.exists():
        configuration.write_text(_INSTANCE, encoding="utf-8")
    with dg.DagsterInstance.from_config(str(home)) as instance:
        result = (
            define(account, Accounts.none())
            .resolve_job_def(PULL)
            .execute_in_process(
                instance=instance,
                run_config=_CONFIG,
                raise_on_error=False,
            )
        )
        failures = [
            event.step_failure_data.user_failure_data.description
            if event.step_failure_data.user_failure_data
            else event.message
            for event in result.filter_events(lambda event: event.is_step_failure)
        ]
        if result.success:
            return Executed(result.run_id, None)
        return Executed(result.run_id, " ".join(str(each) for each in failures) or "it failed")
