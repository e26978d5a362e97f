"""Connections to the state: a commit is on the disk when it returns."""

from __future__ import annotations

from pathlib import Path

from connector.state.database import Database


def test_every_connection_synchronises_each_commit(tmp_path: Path) -> None:
    """A power cut after "sent" is stored must not lose it, or the create would be sent again."""
    for _ in range(2):
        with Database(tmp_path) as database:
            # 2 is FULL.
            assert [(2,)] == [*map(tuple, database.rows("PRAGMA synchronous"))]
            assert [("wal",)] == [*map(tuple, database.rows("PRAGMA journal_mode"))]
