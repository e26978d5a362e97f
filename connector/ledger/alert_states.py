"""Alerts that stand, and messages on them that are to be sent.

A message is written down in the transaction that changes an alert's state, and again when it has
arrived. A process that is killed between sending and that second writing sends it once more: a
message arrives at least once, under an id by which a second arrival is known. What alerts mean is
not decided here.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from connector.ledger.ledger import Ledger
from connector.ledger.ledger_records import columns_of, insert, read_records, values_of

Change = Literal["opened", "changed", "ended", "test"]
"""What a message tells of an alert."""


@dataclass(frozen=True, slots=True)
class AlertRecord:
    """An alert that stands: about what, since when, what happened, what to do.

    `about` is a resource or a job, and empty where it is the account. `since` is when it began as
    far as is known, `opened_at` when it was noticed; `causes` are those that it has now.
    """

    code: str
    about: str
    since: datetime
    opened_at: datetime
    happened: str
    action: str
    causes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class MessageRecord:
    """A change of an alert's state, `at` a moment, under an `id` of its own."""

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
    """A message's way to one sink that has not ended: tried `attempts` times in vain,
    first at `failed_since`, for the `reason` that the last attempt had; not tried by itself
    before `next_at`.
    """

    number: int
    sink: str
    attempts: int
    next_at: datetime
    failed_since: datetime | None
    reason: str | None
    message: MessageRecord


class AlertStates:
    """Alerts in a ledger. Every method raises a `WarehouseError`."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def alerts(self) -> tuple[AlertRecord, ...]:
        """The alerts that stand."""
        query = (
            f"SELECT {columns_of(AlertRecord)} FROM alerts LEFT JOIN alert_causes"
            " USING (code, about) ORDER BY opened_at, code, about"
        ).replace("causes FROM", "coalesce(causes, '[]') AS causes FROM")
        readers = {"causes": lambda text: tuple(json.loads(text))}
        with self._ledger.reading() as connection:
            return tuple(read_records(connection, AlertRecord, query, (), readers))

    def record(
        self,
        standing: Iterable[AlertRecord],
        messages: Iterable[MessageRecord],
        sinks: Sequence[str],
    ) -> None:
        """Replace the alerts that stood, and write messages down for each sink."""
        with self._ledger.writing() as connection:
            connection.execute("DELETE FROM alerts")
            connection.execute("DELETE FROM alert_causes")
            for alert in standing:
                values = values_of(alert)
                causes = json.dumps(values.pop("causes"))
                insert(connection, "alerts", values)
                of = {"code": alert.code, "about": alert.about, "causes": causes}
                insert(connection, "alert_causes", of)
            for message in messages:
                number = insert(connection, "alert_messages", values_of(message))
                way = {"number": number, "attempts": 0, "next_at": message.at}
                for sink in sinks:
                    insert(connection, "alert_deliveries", {**way, "sink": sink})

    def undelivered(self, sinks: Iterable[str]) -> tuple[DeliveryRecord, ...]:
        """What has not arrived yet at these sinks, in the order in which it happened."""
        with self._ledger.reading() as connection:

            def message(number: int) -> MessageRecord:
                query = f"SELECT {columns_of(MessageRecord)} FROM alert_messages WHERE number = ?"
                (found,) = read_records(connection, MessageRecord, query, (number,))
                return found

            return tuple(
                read_records(
                    connection,
                    DeliveryRecord,
                    "SELECT number, sink, attempts, next_at, failed_since, reason,"
                    " number AS message FROM alert_deliveries WHERE delivered_at IS NULL"
                    " AND sink IN (SELECT value FROM json_each(?)) ORDER BY number, sink",
                    (json.dumps(list(sinks)),),
                    {"message": message},
                )
            )

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
