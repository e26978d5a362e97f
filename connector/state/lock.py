"""Lock of an account: one process at a time pulls, pushes, publishes, restores or purges.

The lock is an `flock` of the file `lock` in the account's folder. The system releases it when its
holder ends or is killed, so that nothing expires and nothing has to be renewed. The file has the
holder's name for those who wait: the log, which commands show, has it as soon as a wait begins.
Within a run that holds the lock, `hold` does nothing.
"""

from __future__ import annotations

import asyncio
import errno
import fcntl
import json
import logging
import os
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from contextvars import ContextVar, Token
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryFile
from typing import Self

from connector.errors import AccountBusy, WarehouseError, file_error

_LOGGER = logging.getLogger(__name__)

LOCK_FILE = "lock"

WAIT_SECONDS = 60.0
"""Default time in seconds to wait for the holder."""

_RETRY_SECONDS = 0.1
NO_LOCKS = (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOTSUP, errno.ENOSYS)
_held: ContextVar[frozenset[Path]] = ContextVar("held", default=frozenset())


@dataclass(frozen=True, slots=True)
class Holder:
    """Process that holds the lock: what it does, its number, and since when."""

    name: str
    pid: int
    since: datetime

    def __str__(self) -> str:
        return f"{self.name} (process {self.pid}, since {self.since:%Y-%m-%d %H:%M:%S} UTC)"


def hold(
    folder: Path,
    holder: str,
    *,
    wait_seconds: float | None = WAIT_SECONDS,
    on_wait: Callable[[Holder | None], None] | None = None,
) -> AccountLock:
    """Return a context manager, also an asynchronous one, that holds the lock of an account.

    Args:
        folder: Folder of the account, which must exist.
        holder: What this process does, such as "pull".
        wait_seconds: Maximum time to wait for another holder; None waits for as long as it takes.
        on_wait: Called once, with the holder, if the lock is not free.

    Raises:
        AccountBusy: Another process still holds the lock. The message names it.
        WarehouseError: The file system has no locks, or the file cannot be made.
    """
    return AccountLock(folder.absolute(), holder, wait_seconds, on_wait)


class AccountLock:
    """Lock of one folder while its context lasts. See `hold`."""

    def __init__(
        self,
        folder: Path,
        holder: str,
        wait_seconds: float | None,
        on_wait: Callable[[Holder | None], None] | None,
    ) -> None:
        self._folder, self._holder = folder, holder
        self._wait_seconds, self._on_wait = wait_seconds, on_wait
        self._file: int | None = None
        self._token: Token[frozenset[Path]] | None = None

    def __enter__(self) -> Self:
        for seconds in self._attempts():
            time.sleep(seconds)
        return self

    async def __aenter__(self) -> Self:
        for seconds in self._attempts():
            await asyncio.sleep(seconds)
        return self

    def __exit__(self, *exception: object) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None
        if self._token is not None:
            _held.reset(self._token)
            self._token = None

    async def __aexit__(self, *exception: object) -> None:
        self.__exit__()

    def _attempts(self) -> Iterator[float]:
        """Try to lock until it succeeds; yield the seconds to sleep before each further attempt."""
        if self._folder in _held.get():
            return
        until = None if self._wait_seconds is None else time.monotonic() + self._wait_seconds
        file, is_told = _open(self._folder), False
        try:
            while not _lock(file, fcntl.LOCK_EX, self._folder):
                other = _read_holder(self._folder)
                if until is not None and time.monotonic() >= until:
                    reason = f"the account is in use: {other or 'by another process'}"
                    raise AccountBusy(reason, holder=other.name if other else "")
                if not is_told:
                    is_told = True
                    _LOGGER.warning("waiting for %s", other or "another process")
                    if self._on_wait is not None:
                        self._on_wait(other)
                yield _RETRY_SECONDS
            _write_holder(file, self._folder, self._holder)
        except BaseException:
            os.close(file)
            raise
        self._file = file
        self._token = _held.set(_held.get() | {self._folder})


def holder_of(folder: Path) -> Holder | None:
    """Return the process that holds the lock now; None if it is free."""
    if not (folder / LOCK_FILE).exists():
        return None
    file = _open(folder)
    try:
        return None if _lock(file, fcntl.LOCK_SH, folder) else _read_holder(folder)
    finally:
        os.close(file)


def _open(folder: Path) -> int:
    """Open the lock file, which is made if it is missing. Only its owner can open it."""
    try:
        return os.open(folder / LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise file_error(folder / LOCK_FILE, error) from error


def _lock(file: int, kind: int, folder: Path) -> bool:
    """Return True if the file is locked now, False if another process has locked it."""
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if means_no_locks(error):
            raise no_locks_error(folder) from error
        raise file_error(folder / LOCK_FILE, error) from error
    return True


def _write_holder(file: int, folder: Path, name: str) -> None:
    """Write who holds the lock into the file."""
    about = {"name": name, "pid": os.getpid(), "since": datetime.now(UTC).isoformat()}
    try:
        os.ftruncate(file, 0)
        os.pwrite(file, json.dumps(about).encode(), 0)
    except OSError as error:
        raise file_error(folder / LOCK_FILE, error) from error


def _read_holder(folder: Path) -> Holder | None:
    """Return the holder in the file; None while it is being written."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        found = json.loads((folder / LOCK_FILE).read_bytes())
        return Holder(found["name"], found["pid"], datetime.fromisoformat(found["since"]))
    return None


# -- File systems without locks --------------------------------------------------------------------


def has_locks(folder: Path) -> bool:
    """Return True unless the file system of the folder, such as a network share, has no locks.

    DuckDB and SQLite report such a refusal as a lock that another process holds.
    """
    with TemporaryFile(dir=folder, buffering=0) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            return not means_no_locks(error)
    return True


def means_no_locks(error: OSError) -> bool:
    """Return True if the error of a lock means that the file system has no locks."""
    return error.errno in NO_LOCKS


def no_locks_error(path: Path) -> WarehouseError:
    """Return the error for a file or folder whose file system has no locks."""
    return WarehouseError(f"the file system of {path} has no file locks", code="no_file_locks")
