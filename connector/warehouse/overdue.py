"""Records whose time is over, by a moment of theirs and the values of their choices.

Who is placed is excepted, whatever a rule says: the placement is still under way, or fees and
guarantees hang on it. Functions over an open connection; nothing here writes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

import duckdb

from connector.warehouse.quoting import literal, quoted

_PLACED = (
    "held.status IN ('placed', 'offer_accepted')",
    "held.employment_status = 'placed'",
    "held.id IN (SELECT candidate_id FROM landing.bookings WHERE _deleted_at IS NULL"
    " AND booking_type IN ('contract', 'permanent')"
    " AND coalesce(status, '') NOT IN ('draft', 'cancelled') AND candidate_id IS NOT NULL)",
)
"""Signs that a candidate is placed (API 2.2, 2.4)."""


@dataclass(frozen=True, slots=True)
class Overdue:
    """The ids that are due, and how many are not: excepted, or without a date."""

    ids: tuple[str, ...]
    excepted: int
    undated: int


def overdue(
    connection: duckdb.DuckDBPyConnection,
    resource: str,
    field: str,
    cutoff: datetime,
    conditions: Sequence[tuple[str, tuple[str, ...]]],
) -> Overdue:
    """The records of a resource that were not erased before, fulfil the conditions, and whose
    `field` lies at `cutoff` or before it.
    """
    placed = " OR ".join(f"coalesce({each}, FALSE)" for each in _PLACED)
    is_placed = placed if resource == "candidates" else "FALSE"
    moment = f"held.{quoted(field)}"
    where = " AND ".join(_where(resource, conditions))
    rows = connection.execute(
        f"SELECT held.id, {moment} IS NULL, {is_placed} FROM landing.{quoted(resource)} AS held "
        f"WHERE {where} AND ({moment} IS NULL OR "
        f"{moment}::TIMESTAMPTZ <= {literal(cutoff.isoformat())}::TIMESTAMPTZ) ORDER BY held.id"
    ).fetchall()
    dated = [(id, is_excepted) for id, is_undated, is_excepted in rows if not is_undated]
    return Overdue(
        ids=tuple(id for id, is_excepted in dated if not is_excepted),
        excepted=sum(is_excepted for _, is_excepted in dated),
        # A record that was never deleted is not one whose deletion has no date.
        undated=0 if field == "_deleted_at" else len(rows) - len(dated),
    )


def _where(resource: str, conditions: Sequence[tuple[str, tuple[str, ...]]]) -> Iterator[str]:
    yield f"held.id NOT IN (SELECT id FROM sync.erased WHERE resource = {literal(resource)})"
    for name, values in conditions:
        yield f"held.{quoted(name)} IN ({', '.join(map(literal, values))})"
