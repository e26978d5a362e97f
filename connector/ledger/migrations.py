"""The numbered migrations of the ledger's tables. One that was released is never changed.

Days are written as `2026-11-21` and moments as ISO 8601 in UTC, so that both sort as they follow
each other.
"""

from __future__ import annotations

_REQUESTS = (
    # Requests that certainly left, or were answered for: by day (UTC), command and operation.
    """
    CREATE TABLE spent (
        day TEXT NOT NULL, command TEXT NOT NULL, kind TEXT NOT NULL, requests INTEGER NOT NULL,
        PRIMARY KEY (day, command, kind)
    ) WITHOUT ROWID
    """,
    # Requests written down before they leave. A killed run leaves its block here, counted whole.
    """
    CREATE TABLE blocks (
        id INTEGER PRIMARY KEY, run_id TEXT NOT NULL, command TEXT NOT NULL, day TEXT NOT NULL,
        requests INTEGER NOT NULL CHECK (requests > 0)
    )
    """,
    # At most one row: the API said that the month is spent. Nothing is asked of it until then.
    """
    CREATE TABLE exhaustion (
        only INTEGER PRIMARY KEY CHECK (only = 1), noted_at TEXT NOT NULL, until TEXT NOT NULL,
        is_told INTEGER NOT NULL
    )
    """,
    # At most one row: what the last answers told of the server's clock and of the minute's limit.
    """
    CREATE TABLE server (
        only INTEGER PRIMARY KEY CHECK (only = 1), offset_seconds REAL, limit_per_minute INTEGER
    )
    """,
)

_LEASES = (
    # One row for each kind of run that is under way, or was cut off.
    """
    CREATE TABLE leases (
        name TEXT PRIMARY KEY, run_id TEXT NOT NULL, command TEXT NOT NULL, pid INTEGER NOT NULL,
        born TEXT, host TEXT NOT NULL, boot TEXT, space TEXT, since TEXT NOT NULL,
        expires_at TEXT NOT NULL, requests INTEGER NOT NULL
    )
    """,
)

MIGRATIONS: tuple[tuple[int, tuple[str, ...]], ...] = (
    (1, _REQUESTS),
    (2, _LEASES),
)
"""Numbered from 1, in order; the file's `user_version` is the last that it has."""
