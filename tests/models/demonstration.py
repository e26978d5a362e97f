"""The demonstration's agency at a fixed time, loaded without requests and published.

Records go from the sandbox's store directly into the work file, because these tests examine the
models and not the pull. The fixed time gives fixed figures.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from connector.catalog import CATALOG
from connector.cli.demo import write_seeds
from connector.models.publish import publish
from connector.sandbox.seed import USERS, seed_store
from connector.sandbox.store import Store
from connector.settings import Settings, load_settings
from connector.settings.folders import SEEDS_FOLDER
from connector.warehouse.runs import Run, begin_run, write_run
from connector.warehouse.stream import Bookmark, Commit, FoundDetail, Stream
from connector.warehouse.warehouse import Warehouse

AT = datetime(2026, 9, 1, 9, 0, tzinfo=UTC)
"""Time of all records, pulls and publications: a Tuesday."""

SEED = 7

FEW = {
    "jobs": 40,
    "candidates": 60,
    "companies": 8,
    "bookings": 60,
    "leads": 25,
    "content_types": 3,
    "content_items": 9,
}
"""Number of records per resource; enough for rows in every model."""


def load_demonstration_settings(folder: Path) -> Settings:
    """Return settings of an account whose data folder is `data` below this folder."""
    environ = {"CONNECTOR_DATA_DIR": str(folder / "data")}
    return load_settings({}, environ, folder)


def load_generated_records(folder: Path, counts: Mapping[str, int]) -> Warehouse:
    """Create a work file with a verified pull of generated records. `counts` are per resource."""
    warehouse = Warehouse(folder)
    warehouse.prepare()
    run = Run("the-run", "pull", started_at=AT)
    warehouse.write(begin_run, run)
    with Store(clock=lambda: AT, random=random.Random(SEED)) as store:
        seed_store(store, counts, seed=SEED)
        types = tuple(store.records("content_types"))
        for resource in CATALOG.values():
            for parent in types if resource.parent else (None,):
                found = tuple(
                    FoundDetail(resource.record(record), AT)
                    for record in store.records(resource.name, type=parent).values()
                )
                what = Commit(records=found, bookmark=Bookmark(proven_at=AT))
                warehouse.commit(Stream(resource, parent), what, run.run_id, AT)
    warehouse.write(write_run, Run("the-run", "pull", started_at=AT, ended_at=AT, outcome="done"))
    return warehouse


def publish_generated_records(folder: Path, counts: Mapping[str, int]) -> Path:
    """Load generated records and seeds, publish with the shipped models, and return the file."""
    seeds = folder / "data" / SEEDS_FOLDER
    write_seeds(seeds)
    goals = "consultant_id,team,month,measure,target\n"
    goals += "".join(f"{USERS[n]},,2026-08-01,interviews_held,{4 + n}\n" for n in range(3))
    goals += ",Technology,2026-08-01,candidates_added,20\n"
    (seeds / "goals.csv").write_text(goals, encoding="utf-8")
    load_generated_records(folder / "data", counts)
    return publish(load_demonstration_settings(folder), now=lambda: AT).file
