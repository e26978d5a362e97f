"""Everything that Dagster loads: `dagster dev` from the project's folder finds it by itself.

It loads without any account configured, and with accounts whose settings are wrong. Steps run in
their run's own process, since one process at a time may hold the warehouse.
"""

from __future__ import annotations

import dagster as dg

from pipelines import freshness, jobs
from pipelines.accounts import Accounts
from pipelines.alerts import alerts_sensor, failure_alerts_sensor
from pipelines.connections import Account
from pipelines.landing import landing_of
from pipelines.models import models_of
from pipelines.publishing import published_of
from pipelines.pushes import push_job_of
from pipelines.schedules import schedules_of
from pipelines.sensors import inbox_sensor_of


def define(account: Account, accounts: Accounts | None = None) -> dg.Definitions:
    """The definitions for the accounts that are configured there, unless others are given: each is
    a partition, or, where none is named, there are no partitions.
    """
    accounts = accounts or Accounts.of(account)
    return dg.Definitions(
        assets=[landing_of(accounts), models_of(accounts), published_of(accounts)],
        asset_checks=[freshness.data_is_fresh],
        jobs=[
            jobs.pull_job,
            jobs.intraday_job,
            jobs.scrub_job,
            jobs.freshness_job,
            push_job_of(accounts),
        ],
        schedules=list(schedules_of(accounts)),
        sensors=[inbox_sensor_of(accounts), alerts_sensor, failure_alerts_sensor],
        resources={"account": account},
        executor=dg.in_process_executor,
    )


definitions = define(Account())
