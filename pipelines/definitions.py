"""Everything that Dagster loads: `dagster dev` from the project's folder finds it by itself.

It loads without any account configured. Steps run in their run's own process, since one process
at a time may hold the warehouse.
"""

from __future__ import annotations

import dagster as dg

from pipelines.connections import Account
from pipelines.landing import landing
from pipelines.schedules import nightly_pull, pull_job

definitions = dg.Definitions(
    assets=[landing],
    jobs=[pull_job],
    schedules=[nightly_pull],
    resources={"account": Account()},
    executor=dg.in_process_executor,
)
