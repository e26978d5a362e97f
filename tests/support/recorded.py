"""Runs and publications that an account's state has recorded."""

from __future__ import annotations

from pathlib import Path

from connector.state.database import Database
from connector.state.runs import Publication, Runs


def last_publications(folder: Path, count: int) -> tuple[Publication, ...]:
    """Return the latest publications of the account in this folder, newest first."""
    with Database(folder) as database:
        return Runs(database).publications(count)
