"""The ledger of one account, as the rest of the connector sees it: one method, one transaction."""

from __future__ import annotations

import sqlite3
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Self

from connector.engine.quota import (
    USUAL_DAYS,
    Month,
    Terms,
    Use,
    block_size,
    day_of,
    forecast,
    period_of,
    shown,
    usual_day,
)
from connector.errors_api import QuotaSpent
from connector.ledger import lease as leases
from connector.ledger import requests
from connector.ledger.lease import Lease, Owner
from connector.ledger.requests import Block, Exhaustion, Server
from connector.ledger.sqlite_file import connect, naming_errors, transaction
from connector.settings.model import Settings

LEDGER_FILE = "ledger.sqlite"


def terms_of(settings: Settings) -> Terms:
    """What was set about the month's requests."""
    return Terms(
        settings.monthly_requests.value, settings.monthly_reserve, settings.billing_day.value
    )


@dataclass(frozen=True, slots=True)
class Spender:
    """A run that spends requests, and its terms. `asks_anyway`: even where the API said that the
    month is spent.
    """

    run_id: str
    command: str
    terms: Terms
    keeps_reserve: bool = True
    asks_anyway: bool = False


@dataclass(frozen=True, slots=True)
class Settlement:
    """What is to be written down of a run: its block with what was used of it, by kind; what the
    server told; what it said of the month, if it said something.
    """

    block: Block | None = None
    used: Mapping[str, int] = field(default_factory=dict)
    server: Server | None = None
    exhaustion: Exhaustion | None = None
    is_month_open: bool = False


@dataclass(frozen=True, slots=True)
class Standing:
    """Where an account stands: its month, how many requests a usual day takes and what that makes
    of the month (None: not known yet), what the API said if it still holds, and whose turn it is.
    """

    month: Month
    usual_day: int | None
    forecast: int | None
    exhaustion: Exhaustion | None
    limit_per_minute: int | None
    leases: tuple[Lease, ...]


class Ledger:
    """The ledger in `folder`, which must be there. It is opened when it is first needed, and may
    be used from any thread; whoever made it closes it.

    Every method raises a `WarehouseError` that names the file and says what to do.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / LEDGER_FILE
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    @property
    def exists(self) -> bool:
        """Whether anything was ever written down here."""
        return self.path.exists()

    def close(self) -> None:
        """Close the file. A later call opens it again."""
        with self._lock:
            if self._connection is not None:
                # Closing tidies the log up, which a full disk forbids; all commits are in it.
                with suppress(sqlite3.Error):
                    self._connection.close()
                self._connection = None

    # -- leases -----------------------------------------------------------------------------------

    def take_lease(self, name: str, owner: Owner, now: datetime) -> Lease:
        """Begin a turn. Raises `LeaseHeld`, which says whose turn it is."""
        with self.writing() as connection:
            return leases.take(connection, name, owner, now)

    def renew_lease(self, name: str, run_id: str, now: datetime) -> datetime:
        """Renew a turn; says until when. Raises `LeaseLost`."""
        with self.writing() as connection:
            return leases.renew(connection, name, run_id, now)

    def release_lease(self, name: str, run_id: str) -> None:
        """End a turn."""
        with self.writing() as connection:
            leases.release(connection, name, run_id)

    def leases(self) -> tuple[Lease, ...]:
        """Every turn that was not ended, those that were cut off as well."""
        with self.reading() as connection:
            return leases.held_leases(connection)

    # -- requests ---------------------------------------------------------------------------------

    def take_block(
        self,
        spender: Spender,
        now: datetime,
        today: date,
        *,
        requests_max: int | None,
        before: Settlement,
    ) -> Block:
        """Settle a run's block and write down the next one: at most `requests_max` requests.

        Raises `QuotaSpent` where the month has none left for it, with the end of the cycle.
        """
        with self.writing() as connection:
            if not spender.asks_anyway:
                self._respect(requests.exhaustion(connection), now, spender.terms, today)
            self._settle(connection, spender, before)
            month = self._month(connection, spender.terms, today)
            room = month.room(keeps_reserve=spender.keeps_reserve)
            if room == 0:
                raise _spent(month, keeps_reserve=spender.keeps_reserve)
            size = block_size(room, requests_max)
            return requests.take(connection, spender.run_id, spender.command, today, size)

    def settle(self, spender: Spender, what: Settlement) -> None:
        """Write down what a run has used, and return the rest of its block."""
        with self.writing() as connection:
            self._settle(connection, spender, what)

    def month(self, terms: Terms, today: date) -> Month:
        """The billing cycle of a day, and what was spent in it."""
        with self.reading() as connection:
            return self._month(connection, terms, today)

    def uses(self, since: date | None = None) -> tuple[Use, ...]:
        """The requests by day, command and kind, oldest first; from a day on, or all."""
        with self.reading() as connection:
            return requests.uses(connection, since)

    def exhaustion(self) -> Exhaustion | None:
        """What the API said of the month, if it said that it is spent."""
        with self.reading() as connection:
            return requests.exhaustion(connection)

    def server(self) -> Server:
        """What the last answers told of the server's clock and of the minute's limit."""
        with self.reading() as connection:
            return requests.server(connection)

    def standing(self, terms: Terms, now: datetime) -> Standing:
        """Everything that a person may want to know, at one moment."""
        with self.reading() as connection, transaction(connection):
            server = requests.server(connection)
            today = day_of(now + timedelta(seconds=server.offset_seconds))
            month = self._month(connection, terms, today)
            by_day: Counter[date] = Counter()
            for use in requests.uses(connection, today - timedelta(days=USUAL_DAYS + 1)):
                by_day[use.day] += use.requests
            told = requests.exhaustion(connection)
            return Standing(
                month=month,
                usual_day=usual_day(by_day, today),
                forecast=forecast(month, by_day, today),
                exhaustion=told if told is not None and now < told.until else None,
                limit_per_minute=server.limit_per_minute,
                leases=leases.held_leases(connection),
            )

    # -- the file --------------------------------------------------------------------------------

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """The open file, for whoever keeps something else in it: the journal of pushes."""
        with self._lock, naming_errors(self.path):
            if self._connection is None:
                self._connection = connect(self.path)
            yield self._connection

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """One transaction, on the disk when this is left; all of it is undone by an error."""
        with self.reading() as connection, transaction(connection):
            yield connection

    # -- within -----------------------------------------------------------------------------------

    @staticmethod
    def _settle(connection: sqlite3.Connection, spender: Spender, what: Settlement) -> None:
        if what.block is not None:
            requests.settle(connection, what.block, spender.command, what.used)
            leases.add_requests(connection, spender.run_id, sum(what.used.values()))
        if what.server is not None:
            requests.note_server(connection, what.server)
        if what.exhaustion is not None or what.is_month_open:
            requests.note_exhaustion(connection, what.exhaustion)

    @staticmethod
    def _month(connection: sqlite3.Connection, terms: Terms, today: date) -> Month:
        period = period_of(today, terms.billing_day)
        used = requests.count(connection, period)
        return Month(period, used, terms.monthly_requests, terms.reserve)

    @staticmethod
    def _respect(what: Exhaustion | None, now: datetime, terms: Terms, today: date) -> None:
        """Raise `QuotaSpent` while the API's own word still holds."""
        if what is None or now >= what.until:
            return
        ends = period_of(today, terms.billing_day).ends
        untold = "" if what.is_told else f", and not until when: by billing_day until {ends}"
        raise QuotaSpent(
            f"the API said at {shown(what.noted_at)} that the month's allowance is"
            f" spent{untold}; --ask-anyway asks it all the same",
            resets_at=shown(what.until),
        )


def _spent(month: Month, *, keeps_reserve: bool) -> QuotaSpent:
    """The error for a cycle whose requests are spent by our own count."""
    left = f", and the other {month.reserve:,} are left to people"
    said = f"{month.used:,} of the month's {month.limit:,} requests are spent"
    return QuotaSpent(
        f"{said} since {month.period.begins}{left if keeps_reserve and month.reserve else ''}",
        resets_at=month.period.ends.isoformat(),
    )
