"""Dagster's SQLite files without a wait for the disk, in whatever process of a test imports this.

A run writes some hundred events, each in several transactions, and each would wait for the disk. No
test asks what becomes of Dagster's own records when a machine loses its power.
"""

from __future__ import annotations

import sqlite3

from sqlalchemy import event
from sqlalchemy.engine import Engine


@event.listens_for(Engine, "connect")
def _disable_sync(connection: object, _: object) -> None:
    """Let a new SQLite connection not wait for the disk."""
    if isinstance(connection, sqlite3.Connection):
        connection.execute("PRAGMA synchronous = OFF")
