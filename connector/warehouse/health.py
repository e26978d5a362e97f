"""How runs and publications have gone lately: what whoever watches over the account looks at.

Functions over an open connection. Nothing is judged here, and no landing table is read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

import duckdb

from connector.warehouse.moment import from_microseconds
from connector.warehouse.publications import Publication, last_publications
from connector.warehouse.runs import ResourceRun, Run, last_resource_runs, last_runs
from connector.warehouse.shared import SharedPublication, last_shared

RUNS_READ = 100
PUBLICATIONS_READ = 10


@dataclass(frozen=True, slots=True)
class Health:
    """`runs` and `publications` are the latest, newest first; `first_run_at` is when the first of
    all runs began. `scrubs` are the requests of each run that only looked again. `resources` are
    what the latest run that touched a resource did with it, with that run's id; `proven_at` is up
    to when each resource is proven, None where it is not. `shared` is the latest attempt to bring
    what was published to the lakehouse.
    """

    runs: tuple[Run, ...]
    scrubs: Mapping[str, int]
    first_run_at: datetime | None
    resources: Mapping[str, tuple[str, ResourceRun]]
    proven_at: Mapping[str, datetime | None]
    publications: tuple[Publication, ...]
    shared: SharedPublication | None = None


def read_health(connection: duckdb.DuckDBPyConnection) -> Health:
    """The health as it is written down at one moment."""
    ((first,),) = connection.execute("SELECT epoch_us(min(started_at)) FROM sync.runs").fetchall()
    scrubs = connection.execute(
        "SELECT run_id, sum(scrubs)::BIGINT FROM sync.run_resources GROUP BY run_id "
        "HAVING sum(scrubs) > 0"
    ).fetchall()
    # A resource is proven up to the least of its streams, and not while one was never loaded.
    proven = connection.execute(
        "SELECT resource, CASE WHEN bool_and(proven_at IS NOT NULL) "
        "THEN epoch_us(min(proven_at)) END FROM sync.bookmarks GROUP BY resource ORDER BY resource"
    ).fetchall()
    return Health(
        runs=last_runs(connection, RUNS_READ),
        scrubs=dict(scrubs),
        first_run_at=from_microseconds(first),
        resources=last_resource_runs(connection),
        proven_at={resource: from_microseconds(moment) for resource, moment in proven},
        publications=last_publications(connection, PUBLICATIONS_READ),
        shared=last_shared(connection),
    )
