"""How many requests were spent, and what the API said of its limits.

Functions over an open connection; whoever calls them holds the transaction. Nothing is decided
here: what a cycle is and what is left of it is `engine/quota.py`.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime

from connector.engine.quota import UNSETTLED, Period, Use


@dataclass(frozen=True, slots=True)
class Block:
    """Requests written down for a run before they leave; `day` is the server's, in UTC."""

    id: int
    day: date
    requests: int


@dataclass(frozen=True, slots=True)
class Exhaustion:
    """The API said at `noted_at` that the month is spent: nothing is asked of it before `until`,
    which it told itself if `is_told`.
    """

    noted_at: datetime
    until: datetime
    is_told: bool


@dataclass(frozen=True, slots=True)
class Server:
    """What the last answers told: how far the server's clock is ahead of ours, and the minute's
    limit.
    """

    offset_seconds: float = 0.0
    limit_per_minute: int | None = None


def count(connection: sqlite3.Connection, period: Period) -> int:
    """The requests of a billing cycle, with all that is written down for runs under way."""
    bounds = (period.begins.isoformat(), period.ends.isoformat())
    ((spent, taken),) = connection.execute(
        "SELECT (SELECT coalesce(sum(requests), 0) FROM spent WHERE day >= ?1 AND day < ?2),"
        " (SELECT coalesce(sum(requests), 0) FROM blocks WHERE day >= ?1 AND day < ?2)",
        bounds,
    ).fetchall()
    return int(spent) + int(taken)


def take(
    connection: sqlite3.Connection, run_id: str, command: str, day: date, requests: int
) -> Block:
    """Write requests down for a run."""
    cursor = connection.execute(
        "INSERT INTO blocks (run_id, command, day, requests) VALUES (?, ?, ?, ?)",
        (run_id, command, day.isoformat(), requests),
    )
    assert cursor.lastrowid is not None
    return Block(cursor.lastrowid, day, requests)


def settle(
    connection: sqlite3.Connection, block: Block, command: str, used: Mapping[str, int]
) -> None:
    """Put what was used of a block in its place; the rest of it is returned."""
    assert sum(used.values()) <= block.requests, (used, block)
    deleted = connection.execute("DELETE FROM blocks WHERE id = ?", (block.id,)).rowcount
    assert deleted == 1, block
    connection.executemany(
        "INSERT INTO spent (day, command, kind, requests) VALUES (?, ?, ?, ?)"
        " ON CONFLICT DO UPDATE SET requests = requests + excluded.requests",
        [(block.day.isoformat(), command, kind, number) for kind, number in used.items() if number],
    )


def uses(connection: sqlite3.Connection, since: date | None) -> tuple[Use, ...]:
    """The requests by day, command and kind, oldest first; from a day on, or all."""
    rows = connection.execute(
        "SELECT day, command, kind, requests FROM spent WHERE day >= ?1 UNION ALL"
        " SELECT day, command, ?2, sum(requests) FROM blocks WHERE day >= ?1 GROUP BY day, command"
        " ORDER BY day, command, kind",
        ("" if since is None else since.isoformat(), UNSETTLED),
    ).fetchall()
    return tuple(
        Use(date.fromisoformat(day), str(command), str(kind), _whole(requests))
        for day, command, kind, requests in rows
    )


def note_exhaustion(connection: sqlite3.Connection, what: Exhaustion | None) -> None:
    """Write down that the month is spent, or None: that it is not."""
    connection.execute("DELETE FROM exhaustion")
    if what is not None:
        connection.execute(
            "INSERT INTO exhaustion (only, noted_at, until, is_told) VALUES (1, ?, ?, ?)",
            (what.noted_at.isoformat(), what.until.isoformat(), what.is_told),
        )


def exhaustion(connection: sqlite3.Connection) -> Exhaustion | None:
    """What the API said of the month, if it said that it is spent."""
    for noted_at, until, is_told in connection.execute(
        "SELECT noted_at, until, is_told FROM exhaustion"
    ):
        moments = datetime.fromisoformat(noted_at), datetime.fromisoformat(until)
        return Exhaustion(*moments, bool(is_told))
    return None


def note_server(connection: sqlite3.Connection, what: Server) -> None:
    """Write down what the last answers told; what they did not tell stays."""
    connection.execute(
        "INSERT INTO server (only, offset_seconds, limit_per_minute) VALUES (1, ?, ?)"
        " ON CONFLICT DO UPDATE SET offset_seconds = excluded.offset_seconds,"
        " limit_per_minute = coalesce(excluded.limit_per_minute, limit_per_minute)",
        (what.offset_seconds, what.limit_per_minute),
    )


def server(connection: sqlite3.Connection) -> Server:
    """What the last answers told; nothing, if none ever did."""
    for offset_seconds, limit in connection.execute(
        "SELECT offset_seconds, limit_per_minute FROM server"
    ):
        return Server(float(offset_seconds or 0.0), None if limit is None else _whole(limit))
    return Server()


def _whole(value: object) -> int:
    """The value, which a damaged file may have made another than it was written as."""
    if not isinstance(value, int):
        raise TypeError(f"not a whole number: {type(value).__name__}")
    return value
