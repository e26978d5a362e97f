"""Lock of an account: one process at a time pulls, pushes, publishes, restores or purges.

The lock is an `flock` of the file `lock` in the account's folder. The system releases it when its
holder ends or is killed, so that nothing expires and nothing has to be renewed. The file has the
holder's name for those who wait: the log, which commands show, has it as soon as a wait begins.
Within a run that holds the lock, another lock of the same folder does nothing.
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
from contextlib import contextmanager, suppress
from contextvars import ContextVar, Token
from dataclasses import dataclass, field
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


@dataclass(slots=True)
class hold:  # noqa: N801 - a context manager, named like those of contextlib
    """Hold the lock of an account while the context lasts, also in an asynchronous one.

    Entering raises `AccountBusy`, which names the holder, if another process still holds the lock
    after the wait, and `WarehouseError` if the file system has no locks.

    Args:
        folder: Folder of the account, which must exist.
        name: What this process does, such as "pull".
        wait_seconds: Maximum time to wait for another holder; None waits for as long as it takes.
        on_wait: Called once, with the holder, if the lock is not free.
    """

    folder: Path
    name: str
    wait_seconds: float | None = WAIT_SECONDS
    on_wait: Callable[[Holder | None], None] | None = None
    _file: int | None = field(default=None, init=False)
    _token: Token[frozenset[Path]] | None = field(default=None, init=False)

    def __enter__(self) -> Self:
        for seconds in self._attempts():
            time.sleep(seconds)
        return self

    async def __aenter__(self) -> Self:
        for seconds in self._attempts():
            await asyncio.sleep(seconds)
        return self

    def __exit__(self, *exception: object) -> None:
        if self._file is not None and self._token is not None:
            os.close(self._file)
            _held.reset(self._token)

    async def __aexit__(self, *exception: object) -> None:
        self.__exit__()

    def _attempts(self) -> Iterator[float]:
        """Try to lock until it succeeds; yield the seconds to sleep before each further attempt."""
        path = self.folder.absolute() / LOCK_FILE
        if path in _held.get():
            return
        until = None if self.wait_seconds is None else time.monotonic() + self.wait_seconds
        with _convert_errors(path):
            file, is_waiting = _open(path), False
            try:
                while not _lock(file, fcntl.LOCK_EX):
                    other = _read_holder(path)
                    if until is not None and time.monotonic() >= until:
                        reason = f"the account is in use: {other or 'by another process'}"
                        raise AccountBusy(reason, holder=other.name if other else "")
                    if not is_waiting:
                        is_waiting = True
                        _LOGGER.warning("waiting for %s", other or "another process")
                        if self.on_wait is not None:
                            self.on_wait(other)
                    yield _RETRY_SECONDS
                about = {"name": self.name, "pid": os.getpid(), "since": str(datetime.now(UTC))}
                os.ftruncate(file, 0)
                os.pwrite(file, json.dumps(about).encode(), 0)
            except BaseException:
                os.close(file)
                raise
        self._file, self._token = file, _held.set(_held.get() | {path})


def holder_of(folder: Path) -> Holder | None:
    """Return the process that holds the lock now; None if it is free."""
    path = folder / LOCK_FILE
    if not path.exists():
        return None
    with _convert_errors(path):
        file = _open(path)
        try:
            return None if _lock(file, fcntl.LOCK_SH) else _read_holder(path)
        finally:
            os.close(file)


def _open(path: Path) -> int:
    """Open the lock file, which is made if it is missing. Only its owner can open it."""
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def _lock(file: int, kind: int) -> bool:
    """Return True if the file is locked now, False if another process has locked it."""
    with suppress(BlockingIOError):
        fcntl.flock(file, kind | fcntl.LOCK_NB)
        return True
    return False


def _read_holder(path: Path) -> Holder | None:
    """Return the holder in the file; None while it is being written."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        found = json.loads(path.read_bytes())
        return Holder(found["name"], found["pid"], datetime.fromisoformat(found["since"]))
    return None


@contextmanager
def _convert_errors(path: Path) -> Iterator[None]:
    """Raise errors of the lock file as `WarehouseError`."""
    try:
        yield
    except OSError as error:
        raise (
            no_locks_error(path) if error.errno in NO_LOCKS else file_error(path, error)
        ) from error


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
            return error.errno not in NO_LOCKS
    return True


def no_locks_error(path: Path) -> WarehouseError:
    """Return the error for a file or folder whose file system has no locks."""
    return WarehouseError(f"the file system of {path} has no file locks", code="no_file_locks")
