"""Ledger of one account: counts of requests, and leases. One method is one transaction.

The rules of the monthly quota are in `ledger/quota.py`.
"""

from __future__ import annotations

import os
import socket
import sqlite3
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Self

from connector.errors import LeaseHeld, LeaseLost, quota_spent
from connector.ledger.quota import (
    UNSETTLED,
    USUAL_DAYS,
    Allowance,
    MonthUse,
    RequestUse,
    billing_period,
    block_size,
    describe_used_up_month,
    forecast,
    format_moment,
    usual_requests,
    utc_day,
)
from connector.ledger.sqlite_file import (
    columns_of,
    connect_to_ledger,
    convert_sqlite_errors,
    insert,
    read_records,
    reader_of,
    transaction,
    values_of,
)
from connector.settings import Settings

# -- Owner of a lease ------------------------------------------------------------------------------
# A process number is not enough to tell that a process is dead: the system assigns it again, and in
# another container it is another process.


_PROC = Path("/proc")
_START_TIME_FIELD = 19
"""Index of the start time in `/proc/N/stat`, after the command's name."""

_ENDED = frozenset(("Z", "X"))


@dataclass(frozen=True, slots=True)
class LeaseOwner:
    """Run that has a lease, and its process.

    Attributes:
        born: Start time of the process; None if the system does not report it.
        boot: Identifies the start of the machine; None likewise.
        space: Identifies the container in which `pid` counts; None likewise.
    """

    run_id: str
    command: str
    pid: int
    born: str | None
    host: str
    boot: str | None
    space: str | None

    @classmethod
    def of_this_process(cls, run_id: str, command: str) -> LeaseOwner:
        """Return the owner for a run of the current process."""
        pid = os.getpid()
        return cls(
            run_id,
            command,
            pid,
            _process_start(pid),
            socket.gethostname(),
            _boot_id(),
            _process_namespace(),
        )

    @property
    def is_dead(self) -> bool:
        """Return True if the process has certainly ended, False if it runs or that is unknown."""
        if os.name != "posix" or self.host != socket.gethostname():
            return False
        if self.boot != _boot_id():
            return True  # This machine was started again since.
        if self.space != _process_namespace():
            return False
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return True
        except PermissionError:
            pass  # It is there, and another user's.
        return self.born != _process_start(self.pid)


def _process_start(pid: int) -> str | None:
    """Return the start time of a process as `/proc` has it; None if the process has ended."""
    try:
        stat = (_PROC / str(pid) / "stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return None
    # The command's name is in brackets and may contain brackets.
    fields = stat.rpartition(")")[2].split()
    # A process that has ended stays listed until its parent reads its exit status.
    return None if fields[0] in _ENDED else fields[_START_TIME_FIELD]


def _boot_id() -> str | None:
    """Return the id of the machine's start; None if the system does not report it."""
    try:
        return (_PROC / "sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return None


def _process_namespace() -> str | None:
    """Return the id of the container's process numbers; None if the system does not report it."""
    try:
        return os.readlink(_PROC / "self/ns/pid")
    except OSError:
        return None


# -- Leases ----------------------------------------------------------------------------------------
# A lease lets only one run of each kind work at a time, among all processes that share the folder.
# It expires unless it is renewed. Another run takes it immediately if its owner is certainly dead,
# and otherwise when it has expired.


LEASE_SECONDS = 120.0
"""Duration of a lease that is not renewed."""


@dataclass(frozen=True, slots=True)
class Lease:
    """Lease of a run. `requests` is the number of requests that the run has recorded so far."""

    name: str
    owner: LeaseOwner
    since: datetime
    expires_at: datetime
    requests: int

    def can_be_taken(self, now: datetime) -> bool:
        """Return True if the lease has expired or its owner is dead."""
        return now >= self.expires_at or self.owner.is_dead


def read_leases(connection: sqlite3.Connection) -> tuple[Lease, ...]:
    """Return every lease that was not released, including expired ones."""

    def owner(name: str) -> LeaseOwner:
        query = f"SELECT {columns_of(LeaseOwner)} FROM leases WHERE name = ?"
        (found,) = read_records(connection, LeaseOwner, query, (name,))
        return found

    query = "SELECT name, name AS owner, since, expires_at, requests FROM leases ORDER BY name"
    return tuple(read_records(connection, Lease, query, (), {"owner": owner}))


# -- Identity --------------------------------------------------------------------------------------
# The work file and the ledger of a data folder have the same identity.


@dataclass(frozen=True, slots=True)
class Identity:
    """Identity that all files of a data folder share.

    Attributes:
        folder: Random name of the folder, made by its first run.
        address: Address of the workspace whose records are in the folder.
        written_by: Version of the connector that wrote the file last.
    """

    folder: str
    address: str
    written_by: str


# -- Ledger ----------------------------------------------------------------------------------------


LEDGER_FILE = "ledger.sqlite"


def allowance_of(settings: Settings) -> Allowance:
    """Return the quota part of the account's settings."""
    return Allowance(settings.monthly_requests, settings.monthly_reserve, settings.billing_day)


@dataclass(frozen=True, slots=True)
class RequestBlock:
    """Requests that are counted before they are sent; `day` is the server's day in UTC."""

    id: int
    day: date
    requests: int


@dataclass(frozen=True, slots=True)
class QuotaExhaustion:
    """Report by the API that the monthly quota is used up, and the time of its reset.

    `is_told` is True if the API reported `until`, False if it is estimated.
    """

    noted_at: datetime
    until: datetime
    is_told: bool


@dataclass(frozen=True, slots=True)
class ServerState:
    """Server clock minus our clock, in seconds, and the rate limit per minute; None if unknown."""

    offset_seconds: float = 0.0
    limit_per_minute: int | None = None


@dataclass(frozen=True, slots=True)
class RequestSpender:
    """Run that spends requests.

    Attributes:
        keeps_reserve: Whether the run leaves the reserve of the quota unused.
        ignores_quota: Whether requests are sent even if the API reported a used-up month.
    """

    run_id: str
    command: str
    allowance: Allowance
    keeps_reserve: bool = True
    ignores_quota: bool = False


@dataclass(frozen=True, slots=True)
class BlockUsage:
    """Requests of a block that a run has sent, and what their answers reported.

    Attributes:
        used: Number of requests by kind.
        server: Clock and rate limit of the server; None if no answer reported them.
        exhaustion: Report of a used-up month; None if there was none.
        is_month_open: Whether the API answered a request, so that the month is not used up.
    """

    block: RequestBlock | None = None
    used: Mapping[str, int] = field(default_factory=dict)
    server: ServerState | None = None
    exhaustion: QuotaExhaustion | None = None
    is_month_open: bool = False


@dataclass(frozen=True, slots=True)
class LedgerStatus:
    """Requests, quota and leases of an account.

    Attributes:
        month: Requests of the billing cycle.
        usual_day: Requests of a usual day; None if unknown.
        forecast: Expected requests of the billing cycle; None if unknown.
        exhaustion: Report by the API of a used-up month; None if it no longer applies.
        leases: Leases of running and interrupted runs.
    """

    month: MonthUse
    usual_day: int | None
    forecast: int | None
    exhaustion: QuotaExhaustion | None
    limit_per_minute: int | None
    leases: tuple[Lease, ...]


class Ledger:
    """File with requests, leases and the journal of an account, in the data folder `folder`.

    The folder must exist. The file is opened when it is first needed, and may be used from any
    thread. Every method raises a `WarehouseError` that names the file and the fix.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / LEDGER_FILE
        self._lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    @property
    def exists(self) -> bool:
        """Return True if the file exists."""
        return self.path.exists()

    def close(self) -> None:
        """Close the file. A later call opens it again."""
        with self._lock:
            if self._connection is not None:
                # Closing moves the log into the file, which fails on a full disk. The log has all
                # commits.
                with suppress(sqlite3.Error):
                    self._connection.close()
                self._connection = None

    # -- identity ---------------------------------------------------------------------------------

    def identity(self) -> Identity | None:
        """Return the identity of the data folder; None before the first run."""
        with self.reading() as connection:
            query = f"SELECT {columns_of(Identity)} FROM identity"
            return next(iter(read_records(connection, Identity, query)), None)

    def write_identity(self, identity: Identity) -> None:
        """Replace the identity of the folder."""
        with self.writing() as connection:
            connection.execute("DELETE FROM identity")
            insert(connection, "identity", {"only": 1, **values_of(identity)})

    # -- leases -----------------------------------------------------------------------------------

    def take_lease(self, name: str, owner: LeaseOwner, now: datetime) -> Lease:
        """Give the owner the lease, and return it. Raises `LeaseHeld` if another run has it."""
        lease = Lease(name, owner, now, now + timedelta(seconds=LEASE_SECONDS), 0)
        with self.writing() as connection:
            for held in read_leases(connection):
                if held.name == name and not held.can_be_taken(now):
                    raise LeaseHeld(
                        f"another {name} is running: process {held.owner.pid} "
                        f"({held.owner.command}) on {held.owner.host}, run {held.owner.run_id}, "
                        f"since {format_moment(held.since)}"
                    )
            connection.execute("DELETE FROM leases WHERE name = ?", (name,))
            moments = {"since": now, "expires_at": lease.expires_at}
            row = {"name": name, **values_of(owner), **moments, "requests": 0}
            insert(connection, "leases", row)
        return lease

    def renew_lease(self, name: str, run_id: str, now: datetime) -> datetime:
        """Renew the run's lease, and return when it expires. Raises `LeaseLost`."""
        until = now + timedelta(seconds=LEASE_SECONDS)
        with self.writing() as connection:
            renewed = connection.execute(
                "UPDATE leases SET expires_at = ? WHERE name = ? AND run_id = ?",
                (until.isoformat(), name, run_id),
            ).rowcount
        if not renewed:
            raise LeaseLost(
                f"this {name} (run {run_id}) was paused for too long, and another {name} has "
                f"started"
            )
        return until

    def release_lease(self, name: str, run_id: str) -> None:
        """Release the lease. Does nothing if another run has it."""
        with self.writing() as connection:
            connection.execute("DELETE FROM leases WHERE name = ? AND run_id = ?", (name, run_id))

    def leases(self) -> tuple[Lease, ...]:
        """Return every lease that was not released, including those of interrupted runs."""
        with self.reading() as connection:
            return read_leases(connection)

    # -- requests ---------------------------------------------------------------------------------

    def take_block(
        self,
        spender: RequestSpender,
        now: datetime,
        today: date,
        *,
        requests_max: int | None,
        last_usage: BlockUsage,
    ) -> RequestBlock:
        """Record the use of a run's last block, and return a new block of at most `requests_max`.

        Raises `Stopped` with the end of the billing cycle if no requests are left, or if the API
        reported that the month is used up.
        """
        with self.writing() as connection:
            if not spender.ignores_quota:
                _check_exhaustion(_read_exhaustion(connection), now, spender.allowance, today)
            _record_block_usage(connection, spender, last_usage)
            month = _read_month(connection, spender.allowance, today)
            room = month.requests_left(keeps_reserve=spender.keeps_reserve)
            if room == 0:
                counted = month if spender.keeps_reserve else replace(month, reserve=0)
                resets_at = month.period.ends.isoformat()
                raise quota_spent(describe_used_up_month(counted), resets_at=resets_at)
            size = block_size(room, requests_max)
            owner = {"run_id": spender.run_id, "command": spender.command}
            number = insert(connection, "blocks", {**owner, "day": today, "requests": size})
            return RequestBlock(number, today, size)

    def return_block(self, spender: RequestSpender, usage: BlockUsage) -> None:
        """Record the use of a run's block, and return its unused requests to the month."""
        with self.writing() as connection:
            _record_block_usage(connection, spender, usage)

    def read_month(self, allowance: Allowance, today: date) -> MonthUse:
        """Return the requests of the billing cycle that contains a day."""
        with self.reading() as connection:
            return _read_month(connection, allowance, today)

    def read_uses(self, since: date | None = None) -> tuple[RequestUse, ...]:
        """Return the number of requests by day, command and kind, oldest first; all, or since a
        day.
        """
        with self.reading() as connection:
            return _read_uses(connection, since)

    def read_server_state(self) -> ServerState:
        """Return the server's clock and rate limit, as the last answers reported them."""
        with self.reading() as connection:
            return _read_server_state(connection)

    def status(self, allowance: Allowance, now: datetime) -> LedgerStatus:
        """Return the requests, the quota and the leases, all from one transaction."""
        with self.reading() as connection, transaction(connection):
            server = _read_server_state(connection)
            today = utc_day(now + timedelta(seconds=server.offset_seconds))
            month = _read_month(connection, allowance, today)
            by_day: Counter[date] = Counter()
            for use in _read_uses(connection, today - timedelta(days=USUAL_DAYS + 1)):
                by_day[use.day] += use.requests
            exhaustion = _read_exhaustion(connection)
            return LedgerStatus(
                month=month,
                usual_day=usual_requests(by_day, today),
                forecast=forecast(month, by_day, today),
                exhaustion=exhaustion
                if exhaustion is not None and now < exhaustion.until
                else None,
                limit_per_minute=server.limit_per_minute,
                leases=read_leases(connection),
            )

    # -- the file ---------------------------------------------------------------------------------

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Yield the connection to the file, which is opened if necessary. Other threads wait."""
        with self._lock, convert_sqlite_errors(self.path):
            if self._connection is None:
                self._connection = connect_to_ledger(self.path)
            yield self._connection

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Yield the connection in a new transaction, or in the open one of this thread.

        The transaction is committed to the disk at the end, or rolled back by an error.
        """
        with self.reading() as connection, transaction(connection):
            yield connection


def _record_block_usage(
    connection: sqlite3.Connection, spender: RequestSpender, usage: BlockUsage
) -> None:
    """Store the requests of a block, delete the block, and store what the answers reported."""
    block = usage.block
    if block is not None:
        assert sum(usage.used.values()) <= block.requests, (usage.used, block)
        deleted = connection.execute("DELETE FROM blocks WHERE id = ?", (block.id,)).rowcount
        assert deleted == 1, block
        used = usage.used.items()
        _add_uses(
            connection, (RequestUse(block.day, spender.command, kind, n) for kind, n in used if n)
        )
        connection.execute(
            "UPDATE leases SET requests = requests + ? WHERE run_id = ?",
            (sum(usage.used.values()), spender.run_id),
        )
    if usage.server is not None:
        # Values that the last answers did not report stay.
        connection.execute(
            "INSERT INTO server (only, offset_seconds, limit_per_minute) VALUES (1, ?, ?)"
            " ON CONFLICT DO UPDATE SET offset_seconds = excluded.offset_seconds,"
            " limit_per_minute = coalesce(excluded.limit_per_minute, limit_per_minute)",
            (usage.server.offset_seconds, usage.server.limit_per_minute),
        )
    if usage.exhaustion is not None or usage.is_month_open:
        connection.execute("DELETE FROM exhaustion")
    if (exhaustion := usage.exhaustion) is not None:
        insert(connection, "exhaustion", {"only": 1, **values_of(exhaustion)})


def _add_uses(connection: sqlite3.Connection, uses: Iterable[RequestUse]) -> None:
    """Add numbers of requests to the table `spent`."""
    connection.executemany(
        "INSERT INTO spent (day, command, kind, requests) VALUES (?, ?, ?, ?)"
        " ON CONFLICT DO UPDATE SET requests = requests + excluded.requests",
        [(each.day.isoformat(), each.command, each.kind, each.requests) for each in uses],
    )


def _read_month(connection: sqlite3.Connection, allowance: Allowance, today: date) -> MonthUse:
    """Return the requests of the billing cycle, including whole blocks of running commands."""
    period = billing_period(today, allowance.billing_day)
    ((used,),) = connection.execute(
        "SELECT (SELECT coalesce(sum(requests), 0) FROM spent WHERE day >= ?1 AND day < ?2)"
        " + (SELECT coalesce(sum(requests), 0) FROM blocks WHERE day >= ?1 AND day < ?2)",
        (period.begins.isoformat(), period.ends.isoformat()),
    ).fetchall()
    return MonthUse(period, reader_of(int)(used), allowance.monthly_requests, allowance.reserve)


def _read_uses(connection: sqlite3.Connection, since: date | None) -> tuple[RequestUse, ...]:
    """Return the number of requests by day, command and kind; `UNSETTLED` for open blocks."""
    query = (
        "SELECT day, command, kind, requests FROM spent WHERE day >= ?1 UNION ALL"
        " SELECT day, command, ?2, sum(requests) FROM blocks WHERE day >= ?1 GROUP BY day, command"
        " ORDER BY day, command, kind"
    )
    given = ("" if since is None else since.isoformat(), UNSETTLED)
    return tuple(read_records(connection, RequestUse, query, given))


def _read_exhaustion(connection: sqlite3.Connection) -> QuotaExhaustion | None:
    """Return the API's last report of a used-up month; None if there is none."""
    query = "SELECT noted_at, until, is_told FROM exhaustion"
    return next(iter(read_records(connection, QuotaExhaustion, query)), None)


def _read_server_state(connection: sqlite3.Connection) -> ServerState:
    """Return the server's clock and rate limit; no difference and no limit if unknown."""
    query = "SELECT coalesce(offset_seconds, 0.0) AS offset_seconds, limit_per_minute FROM server"
    found = read_records(connection, ServerState, query)
    return next(iter(found), ServerState())


def _check_exhaustion(
    exhaustion: QuotaExhaustion | None, now: datetime, allowance: Allowance, today: date
) -> None:
    """Raise `Stopped` while the API's report of a used-up month applies."""
    if exhaustion is None or now >= exhaustion.until:
        return
    ends = billing_period(today, allowance.billing_day).ends
    untold = (
        "" if exhaustion.is_told else f", without a reset date. By billing_day, it resets on {ends}"
    )
    raise quota_spent(
        f"the API reported at {format_moment(exhaustion.noted_at)} that the monthly quota is used "
        f"up{untold}. To send requests anyway, add --ignore-quota",
        resets_at=format_moment(exhaustion.until),
    )
