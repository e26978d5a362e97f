"""How pushes have gone lately, from the journal: what whoever watches over the account looks at.

Nothing is judged here, and nothing of a row's contents or of a file's name is read.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from datetime import datetime

from connector.engine.push_states import FOR_A_PERSON, IN_DOUBT
from connector.ledger.ledger import Ledger

REFUSED = ("rejected", "conflict", "invalid", "not_applied")
"""States of rows that were not applied, and wait to be corrected."""

BATCHES_READ = 20


@dataclass(frozen=True, slots=True)
class PushRun:
    """The last run at one file: how it ended, None where it has not; `refused` rows wait to be
    corrected.
    """

    batch: str
    resource: str
    begun_at: datetime
    ended_at: datetime | None
    outcome: str | None
    error_code: str | None
    message: str | None
    refused: int


@dataclass(frozen=True, slots=True)
class Doubt:
    """Rows whose fate is unknown, and since when the first of them is so."""

    rows: int
    since: datetime


@dataclass(frozen=True, slots=True)
class PushHealth:
    """`runs` are the latest, newest first, with the last of every resource among them.

    `held` are rows that only a person's decision ends, `open` those that were sent and whose
    answer is not known; of a push that is under way they are no sign of anything.
    """

    runs: tuple[PushRun, ...] = ()
    held: Doubt | None = None
    open: Doubt | None = None


def read_push_health(ledger: Ledger) -> PushHealth:
    """The health of pushes as it is written down. Raises a `WarehouseError`."""
    with ledger.reading() as connection:
        return PushHealth(
            runs=_runs(connection),
            held=_doubt(connection, FOR_A_PERSON),
            open=_doubt(connection, IN_DOUBT - FOR_A_PERSON),
        )


def _runs(connection: sqlite3.Connection) -> tuple[PushRun, ...]:
    refused = ", ".join(f"'{state}'" for state in REFUSED)
    rows = connection.execute(
        "SELECT batch, resource, begun_at, ended_at, outcome, error_code, message,"
        " (SELECT count(*) FROM push_rows WHERE push_rows.batch = latest.batch"
        f" AND undone_at IS NULL AND state IN ({refused}))"
        " FROM (SELECT *, coalesce(ended_at, begun_at) AS last_at, row_number() OVER ("
        " PARTITION BY resource ORDER BY coalesce(ended_at, begun_at) DESC, rowid DESC) AS place"
        " FROM push_batches) AS latest WHERE place <= ? ORDER BY last_at DESC, batch DESC",
        (BATCHES_READ,),
    ).fetchall()
    return tuple(
        PushRun(
            batch=batch,
            resource=resource,
            begun_at=datetime.fromisoformat(begun_at),
            ended_at=None if ended_at is None else datetime.fromisoformat(ended_at),
            outcome=outcome,
            error_code=error_code,
            message=message,
            refused=count,
        )
        for batch, resource, begun_at, ended_at, outcome, error_code, message, count in rows
    )


def _doubt(connection: sqlite3.Connection, states: frozenset[str]) -> Doubt | None:
    named = ", ".join(f"'{state}'" for state in sorted(states))
    ((rows, since),) = connection.execute(
        f"SELECT count(*), min(moved_at) FROM push_rows WHERE state IN ({named})"
    ).fetchall()
    return Doubt(int(rows), datetime.fromisoformat(since)) if rows else None
