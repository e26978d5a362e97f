"""The alerts that stand, and what is to be told of them: kept where a kill loses none.

A message is written down in the transaction that changes an alert's state, and again when it has
arrived. A process that is killed between sending and that second writing sends it once more: a
message arrives at least once, under an id by which a second arrival is known. What alerts mean is
not decided here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any, Literal

from connector.ledger.ledger import Ledger

Change = Literal["opened", "ended", "test"]
"""What a message tells of an alert."""


@dataclass(frozen=True, slots=True)
class AlertRecord:
    """An alert that stands: what it is about, since when, what happened and what to do.

    `about` is a resource or a job, and empty where it is the account. `since` is when it began as
    far as is known, `opened_at` when it was noticed.
    """

    code: str
    about: str
    since: datetime
    opened_at: datetime
    happened: str
    action: str


@dataclass(frozen=True, slots=True)
class MessageRecord:
    """A change of an alert's state, `at` a moment, as it is told. `id` is its own for ever."""

    id: str
    change: Change
    at: datetime
    code: str
    about: str
    since: datetime
    happened: str
    action: str


@dataclass(frozen=True, slots=True)
class DeliveryRecord:
    """A message's way to one sink that has not ended: tried `attempts` times in vain, first at
    `failed_since`, for the `reason` that the last attempt had; not tried by itself before
    `next_at`.
    """

    number: int
    sink: str
    attempts: int
    next_at: datetime
    failed_since: datetime | None
    reason: str | None
    message: MessageRecord


_ALERT = tuple(each.name for each in fields(AlertRecord))
_MESSAGE = tuple(each.name for each in fields(MessageRecord))
_MOMENTS = frozenset(("since", "opened_at", "at"))


class AlertBook:
    """The alerts in a ledger. Every method raises a `WarehouseError` that names the file."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def standing(self) -> tuple[AlertRecord, ...]:
        """The alerts that stand."""
        with self._ledger.reading() as connection:
            rows = connection.execute(
                f"SELECT {', '.join(_ALERT)} FROM alerts ORDER BY opened_at, code, about"
            ).fetchall()
            return tuple(AlertRecord(**_read(_ALERT, row)) for row in rows)

    def record(
        self,
        standing: Iterable[AlertRecord],
        messages: Iterable[MessageRecord],
        sinks: Sequence[str],
    ) -> None:
        """Put these alerts in the place of those that stood, and write down what is to be told of
        it, to each sink.
        """
        marks = ", ".join("?" for _ in _ALERT)
        with self._ledger.writing() as connection:
            connection.execute("DELETE FROM alerts")
            connection.executemany(
                f"INSERT INTO alerts ({', '.join(_ALERT)}) VALUES ({marks})",
                [_values(_ALERT, each) for each in standing],
            )
            marks = ", ".join("?" for _ in _MESSAGE)
            for each in messages:
                number = connection.execute(
                    f"INSERT INTO alert_messages ({', '.join(_MESSAGE)}) VALUES ({marks})",
                    _values(_MESSAGE, each),
                ).lastrowid
                connection.executemany(
                    "INSERT INTO alert_deliveries (number, sink, attempts, next_at)"
                    " VALUES (?, ?, 0, ?)",
                    [(number, sink, each.at.isoformat()) for sink in sinks],
                )

    def undelivered(self, sinks: Iterable[str]) -> tuple[DeliveryRecord, ...]:
        """What has not arrived yet at these sinks, in the order in which it happened."""
        wanted = tuple(sinks)
        shown = ", ".join(f"told.{name}" for name in _MESSAGE)
        with self._ledger.reading() as connection:
            rows = connection.execute(
                "SELECT way.number, way.sink, way.attempts, way.next_at, way.failed_since,"
                f" way.reason, {shown} FROM alert_deliveries AS way"
                " JOIN alert_messages AS told USING (number)"
                f" WHERE way.delivered_at IS NULL AND way.sink IN ({_marks(wanted)})"
                " ORDER BY way.number, way.sink",
                wanted,
            ).fetchall()
            return tuple(_delivery(row) for row in rows)

    def arrived(self, delivery: DeliveryRecord, now: datetime) -> None:
        """Write down that it is delivered: it is never sent again."""
        self._mark(delivery, "delivered_at = ?", now.isoformat())

    def failed(
        self, delivery: DeliveryRecord, now: datetime, reason: str, next_at: datetime
    ) -> None:
        """Write down that an attempt was in vain, and when the next one is due."""
        self._mark(
            delivery,
            "attempts = attempts + 1, failed_since = coalesce(failed_since, ?), reason = ?,"
            " next_at = ?",
            *(now.isoformat(), reason, next_at.isoformat()),
        )

    def forget(self, before: datetime) -> None:
        """Remove what was told to everybody before that."""
        left = "SELECT number FROM alert_deliveries WHERE delivered_at IS NULL OR delivered_at >= ?"
        with self._ledger.writing() as connection:
            gone = f"number NOT IN ({left}) AND number IN (SELECT number FROM alert_messages"
            bound = before.isoformat()
            for table in ("alert_deliveries", "alert_messages"):
                connection.execute(
                    f"DELETE FROM {table} WHERE {gone} WHERE at < ?)", (bound, bound)
                )

    def _mark(self, delivery: DeliveryRecord, what: str, *values: str) -> None:
        with self._ledger.writing() as connection:
            connection.execute(
                f"UPDATE alert_deliveries SET {what} WHERE number = ? AND sink = ?",
                (*values, delivery.number, delivery.sink),
            )


def _delivery(row: tuple[Any, ...]) -> DeliveryRecord:
    number, sink, attempts, next_at, failed_since, reason = row[:6]
    return DeliveryRecord(
        number=number,
        sink=sink,
        attempts=attempts,
        next_at=datetime.fromisoformat(next_at),
        failed_since=None if failed_since is None else datetime.fromisoformat(failed_since),
        reason=reason,
        message=MessageRecord(**_read(_MESSAGE, row[6:])),
    )


def _read(names: Sequence[str], row: Sequence[Any]) -> dict[str, Any]:
    return {
        name: datetime.fromisoformat(value) if name in _MOMENTS else value
        for name, value in zip(names, row, strict=True)
    }


def _values(names: Sequence[str], record: AlertRecord | MessageRecord) -> tuple[object, ...]:
    values = (getattr(record, name) for name in names)
    return tuple(each.isoformat() if isinstance(each, datetime) else each for each in values)


def _marks(values: Sequence[object]) -> str:
    return ", ".join("?" for _ in values)
