"""Leases: only one run of each kind at a time, among all processes that share the folder.

A lease expires unless it is renewed. Another run takes it immediately if its owner is certainly
dead, and otherwise when it has expired.
"""

from __future__ import annotations

import os
import socket
import sqlite3
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from connector.ledger.sqlite_file import columns_of, read_records

# -- Owner -----------------------------------------------------------------------------------------
# Who holds a lease: one process on one machine, known well enough to tell that it is dead.
#
# A process number alone says little: it is given out again, and in another container it means
# another process. Nothing is written here.


_PROC = Path("/proc")
_START_TIME_FIELD = 19
"""Index of the start time in `/proc/N/stat`, after the command's name."""

_ENDED = frozenset(("Z", "X"))


@dataclass(frozen=True, slots=True)
class LeaseOwner:
    """Run and its process.

    Attributes:
        born: Start of the process.
        boot: Identifies the start of the machine.
        space: Identifies the container's numbers of processes. Each is None if the system does not
            tell.
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
        """Return the owner for a run of this process."""
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
        """Whether the process has certainly ended. False if that is unknown."""
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
    try:
        stat = (_PROC / str(pid) / "stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return None
    # The name stands in brackets and may hold anything, brackets too.
    fields = stat.rpartition(")")[2].split()
    # What has ended and was not yet taken note of by its parent does nothing any more.
    return None if fields[0] in _ENDED else fields[_START_TIME_FIELD]


def _boot_id() -> str | None:
    try:
        return (_PROC / "sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return None


def _process_namespace() -> str | None:
    try:
        return os.readlink(_PROC / "self/ns/pid")
    except OSError:
        return None


# -- Leases ----------------------------------------------------------------------------------------


LEASE_SECONDS = 120.0
"""Duration of a lease that is not renewed."""


@dataclass(frozen=True, slots=True)
class Lease:
    """Lease of a run; `requests` is the number of requests that it has spent, as last recorded."""

    name: str
    owner: LeaseOwner
    since: datetime
    expires_at: datetime
    requests: int

    def is_over(self, now: datetime) -> bool:
        """Whether another run may take the lease."""
        return now >= self.expires_at or self.owner.is_dead


def held_leases(connection: sqlite3.Connection) -> tuple[Lease, ...]:
    """Return every lease that was not released, including expired ones."""

    def owner(name: str) -> LeaseOwner:
        query = f"SELECT {columns_of(LeaseOwner)} FROM leases WHERE name = ?"
        (found,) = read_records(connection, LeaseOwner, query, (name,))
        return found

    query = "SELECT name, name AS owner, since, expires_at, requests FROM leases ORDER BY name"
    return tuple(read_records(connection, Lease, query, (), {"owner": owner}))


def describe_owner(owner: LeaseOwner) -> str:
    """Describe the owner in words: process, command, machine and run."""
    return f"process {owner.pid} ({owner.command}) on {owner.host}, run {owner.run_id}"
