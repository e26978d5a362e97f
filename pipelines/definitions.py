"""Everything that Dagster loads: `dagster dev` from the project's folder finds it by itself.

It loads without any account configured. Steps run in their run's own process, since one process
at a time may hold the warehouse.
"""

from __future__ import annotations

import dagster as dg

from pipelines.alerts import alerts_sensor, failure_alerts_sensor
from pipelines.connections import Account
from pipelines.landing import landing
from pipelines.models import models
from pipelines.publishing import published
from pipelines.pushes import push_job
from pipelines.schedules import nightly_pull, pull_job
from pipelines.sensors import inbox_sensor

definitions = dg.Definitions(
    assets=[landing, models, published],
    jobs=[pull_job, push_job],
    schedules=[nightly_pull],
    sensors=[inbox_sensor, alerts_sensor, failure_alerts_sensor],
    resources={"account": Account()},
    executor=dg.in_process_executor,
)
