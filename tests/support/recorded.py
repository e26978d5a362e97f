"""Runs and publications that an account's state has recorded, and a pull that a test records."""

from __future__ import annotations

import shutil
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from connector.catalog import CATALOG
from connector.settings import Settings
from connector.state.database import Database
from connector.state.runs import Publication, Run, Runs
from connector.warehouse.stream import Bookmark, Commit, Stream
from connector.warehouse.warehouse import Warehouse


def last_publications(folder: Path, count: int) -> tuple[Publication, ...]:
    """Return the latest publications of the account in this folder, newest first."""
    with Database(folder) as database:
        return Runs(database).publications(count)


def record_verified_pull(settings: Settings, proven_at: datetime) -> None:
    """Write empty files of an account whose last pull verified all resources at this time."""
    warehouse = Warehouse(settings.folder)
    warehouse.prepare()
    run = Run("r1", "pull", started_at=proven_at)
    for resource in (each for each in CATALOG.values() if each.parent is None):
        bookmark = Commit(bookmark=Bookmark(proven_at=proven_at))
        warehouse.commit(Stream(resource), bookmark, "r1", proven_at)
    with Database(settings.folder) as database:
        Runs(database).end(replace(run, ended_at=proven_at, outcome="done"))
    shutil.copyfile(warehouse.work, warehouse.published)
