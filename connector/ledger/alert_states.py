"""Alerts in a ledger: open ones, and ended ones whose last message is not delivered yet."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from connector.ledger.ledger import Ledger
from connector.ledger.sqlite_file import columns_of, insert, read_records, values_of

Change = Literal["opened", "changed", "ended"]
"""Latest change of an alert: that is what its message reports."""


@dataclass(frozen=True, slots=True)
class AlertRecord:
    """Alert about a resource or a job, which `about` names, or about the account if `about` is
    empty.

    `since` is when the problem started, `opened_at` when it was noticed, and `changed_at` the time
    of `change`. `sent_at` is when the message about that change was delivered; None until then.
    """

    code: str
    about: str
    since: datetime
    opened_at: datetime
    change: Change
    changed_at: datetime
    title: str
    happened: str
    action: str
    causes: tuple[str, ...] = ()
    sent_at: datetime | None = None

    @property
    def is_open(self) -> bool:
        """Return True unless the alert has ended."""
        return self.change != "ended"


def read_alerts(ledger: Ledger) -> tuple[AlertRecord, ...]:
    """Return all alerts in the ledger, the oldest first. Raises a `WarehouseError`."""
    query = f"SELECT {columns_of(AlertRecord)} FROM alerts ORDER BY opened_at, code, about"
    with ledger.reading() as connection:
        readers = {"causes": lambda text: tuple(json.loads(text))}
        return tuple(read_records(connection, AlertRecord, query, (), readers))


def write_alerts(ledger: Ledger, alerts: Iterable[AlertRecord]) -> None:
    """Replace all alerts in the ledger with these. Raises a `WarehouseError`."""
    with ledger.writing() as connection:
        connection.execute("DELETE FROM alerts")
        for each in alerts:
            values = values_of(each) | {"causes": json.dumps(each.causes)}
            insert(connection, "alerts", values)
