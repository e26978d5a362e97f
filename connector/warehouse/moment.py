"""Moments across DuckDB's border, as microseconds since 1970.

Exact both ways, and independent of the time zone package that DuckDB wants for its own conversion.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def from_microseconds(value: int | None) -> datetime | None:
    """The moment, aware and in UTC."""
    return None if value is None else _EPOCH + timedelta(microseconds=value)


def to_microseconds(moment: datetime | None) -> int | None:
    """Microseconds since 1970."""
    return None if moment is None else (moment - _EPOCH) // timedelta(microseconds=1)


def iso(moment: datetime | None) -> str | None:
    """The moment as text that DuckDB casts."""
    return None if moment is None else moment.isoformat()
