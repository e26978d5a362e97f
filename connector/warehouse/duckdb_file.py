"""Opening of a DuckDB file, and conversion of its errors.

Every error of the file system or of DuckDB is raised as a `WarehouseError` with the next step.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import duckdb

from connector.atomic_files import FILE_MODE, sync_folder
from connector.errors import ConnectorError, WarehouseError, file_error
from connector.ledger.sqlite_file import means_no_locks, no_locks_error
from connector.log import compact_timestamp

if TYPE_CHECKING:
    import pyarrow as pa

# -- Quoting ---------------------------------------------------------------------------------------
# Quoted names and texts for SQL statements.
#
# A text could be a parameter, but with its first parameter DuckDB imports pandas to check whether
# it is a data frame. This takes 35 MB.


def quoted(name: str) -> str:
    """Return a quoted SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def quoted_table(table: str) -> str:
    """Return a quoted `schema.table`."""
    return ".".join(map(quoted, table.split(".", 1)))


def literal(text: str) -> str:
    """Return a quoted SQL string."""
    return "'" + text.replace("'", "''") + "'"


# -- File ------------------------------------------------------------------------------------------
# A file is attached to a database in memory, because only then its row group size can be set. With
# DuckDB's default of 122,880 rows a first load took three times as long and twice the memory: an
# incomplete row group is compressed again at every checkpoint.


Connection: TypeAlias = duckdb.DuckDBPyConnection
"""Open connection to a DuckDB file."""

STORAGE_VERSION = "v1.2.0"
"""File format that older tools of analysts can read."""

BLOCK_BYTES = 16_384
"""Block size of a new file; columns of small row groups do not fill larger blocks."""

ROW_GROUP_ROWS = 8_192
"""Number of rows that are written and compressed together."""

MEMORY_MAX = "160MB"
"""Memory limit of DuckDB; larger data spills to a folder next to the file."""

SESSION = "SET TimeZone = 'UTC'; SET enable_progress_bar = false"
"""Settings of every session. Without a script file, as in `python -c` and notebooks, DuckDB would
print a progress bar.
"""

KEEP_METADATA = "SET GLOBAL experimental_metadata_reuse"
"""Setting that keeps the metadata of unchanged parts at checkpoints. It is on during a pull,
because otherwise checkpoints of a large file would mostly write metadata. The last checkpoint
writes all.
"""

LOCK_WAIT_SECONDS = 30.0
"""Seconds to wait for another process to close the file."""

_LOCK_RETRY_SECONDS = 0.05

_FOLDER_MODE = 0o700


def make_folder(folder: Path, action: str | None = None) -> None:
    """Create the folder, accessible only to its owner. Raises `WarehouseError`."""
    with convert_errors(folder, action):
        # One by one: otherwise the umask would determine the permissions of the parents.
        missing = [each for each in (folder, *folder.parents) if not each.exists()]
        for each in reversed(missing):
            each.mkdir(mode=_FOLDER_MODE, exist_ok=True)
        if not folder.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(folder))
        # A folder without write permission would fail much later, with a less helpful error.
        if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(folder))


LOG_ENDINGS = (".wal", ".wal.checkpoint", ".wal.recovery")
"""Suffixes of files that DuckDB creates next to a file. A leftover log is applied to a new file."""


def wal_path(path: Path) -> Path:
    """Return the path of DuckDB's log, which contains commits that are not in the file yet."""
    return path.with_name(path.name + ".wal")


@dataclass(slots=True)
class _SharedInstance:
    """DuckDB instance of one file, which all threads of this process share."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    instance: duckdb.DuckDBPyConnection | None = None
    users: int = 0


_openings: defaultdict[Path, _SharedInstance] = defaultdict(_SharedInstance)


@contextmanager
def open_file(
    path: Path,
    *,
    wait_seconds: float = LOCK_WAIT_SECONDS,
    memory: str = MEMORY_MAX,
    waits_in_turn: bool = False,
) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open a connection to a DuckDB file, in UTC, and create the file if it is missing.

    No other process can open the file at the same time. Threads share one instance of DuckDB, with
    the `memory` limit of the first one. With `waits_in_turn`, a process that already waits for the
    file gets it first. Raises `WarehouseError`, after `wait_seconds` with the process id of the
    holder.
    """
    opening, name = _openings[path.absolute()], path.name.partition(".")[0]
    with convert_errors(path):
        with opening.lock:
            if opening.instance is None:
                opening.instance = _open_instance(path, name, wait_seconds, memory, waits_in_turn)
            connection = opening.instance.cursor()
            opening.users += 1
        try:
            connection.execute(f"USE {quoted(name)}; {SESSION}")
            yield connection
        finally:
            with opening.lock:
                connection.close()
                opening.users -= 1
                if not opening.users:
                    instance, opening.instance = opening.instance, None
                    # A checkpoint fails if the disk is full; the log contains all commits.
                    with suppress(duckdb.Error):
                        instance.execute(f"DETACH {quoted(name)}")
                    instance.close()


def _open_instance(
    path: Path, name: str, wait_seconds: float, memory: str, waits_in_turn: bool
) -> duckdb.DuckDBPyConnection:
    """Return a new DuckDB instance with the file attached. Raises errors of DuckDB."""
    is_new = not path.exists()
    instance = duckdb.connect(
        ":memory:",
        config={
            "storage_compatibility_version": STORAGE_VERSION,
            "default_block_size": str(BLOCK_BYTES),
            # Large writers close the file after some rows, so commits need no checkpoint.
            "checkpoint_threshold": "1GB",
            # Commits are small: a second thread would slow them down.
            "threads": "1",
            "allocator_background_threads": "true",
            # DuckDB merges row groups repeatedly while most of their rows are replaced: 9 of the 45
            # s of a first load. `compact` merges them from time to time.
            "max_vacuum_tasks": "0",
            # Metadata kept by a checkpoint may point to blocks that are free now. DuckDB before
            # 1.4.2 follows such a pointer and fails to load the table.
            "experimental_metadata_reuse": "false",
            "memory_limit": memory,
            # Otherwise DuckDB would spill to the current directory of the process.
            "temp_directory": f"{path.absolute()}.tmp",
        },
    )
    attach = (
        f"ATTACH {literal(str(path))} AS {quoted(name)} "
        f"(STORAGE_VERSION '{STORAGE_VERSION}', ROW_GROUP_SIZE {ROW_GROUP_ROWS})"
    )
    until = time.monotonic() + wait_seconds
    try:
        instance.execute(SESSION)
        if waits_in_turn:
            _attach_in_turn(instance, attach, path, until)
        else:
            try:
                instance.execute(attach)
            except duckdb.Error as error:
                if not _means_file_in_use(str(error)):
                    raise
                _attach_in_turn(instance, attach, path, until)
        if is_new:
            path.chmod(FILE_MODE)
    except BaseException:
        instance.close()
        raise
    return instance


# -- Turns -----------------------------------------------------------------------------------------
# A pull keeps the file open until another process requests it. A process that waits holds the lock
# of the folder, which the pull checks between its steps. The system releases the lock of a process
# that dies.


def has_waiting_process(path: Path) -> bool:
    """Return True if another process waits for the file, that is, holds the lock of its folder."""
    try:
        with hold_lock(path.parent, until=0.0):
            return False
    except TimeoutError:
        return True


def _attach_in_turn(
    instance: duckdb.DuckDBPyConnection, attach: str, path: Path, until: float
) -> None:
    """Execute the ATTACH statement when no other process waits before this one or has the file.

    Raises DuckDB's error if that is not before `until` (`time.monotonic`).
    """
    message = "Could not set lock: others wait as well"
    with suppress(TimeoutError), hold_lock(path.parent, until):
        while True:
            try:
                instance.execute(attach)
            except duckdb.Error as error:
                message = str(error)
                if not _means_file_in_use(message):
                    raise
            else:
                return
            if time.monotonic() >= until:
                break
            time.sleep(_LOCK_RETRY_SECONDS)
    # DuckDB raises a different error if another part of this process has attached the file.
    raise duckdb.IOException(message)


@contextmanager
def hold_lock(path: Path, until: float = inf) -> Iterator[None]:
    """Hold the exclusive lock of a folder or file. Threads of this process wait for it as well.

    Raises `TimeoutError` if it is not free before `until` (`time.monotonic`), and `WarehouseError`
    if the file system has no locks.
    """
    handle = os.open(path, os.O_RDONLY)
    try:
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= until:
                    raise TimeoutError from None
                time.sleep(_LOCK_RETRY_SECONDS)
            except OSError as error:
                raise (
                    no_locks_error(path) if means_no_locks(error) else file_error(path, error)
                ) from error
        yield
    finally:
        os.close(handle)


@contextmanager
def transaction(connection: duckdb.DuckDBPyConnection) -> Iterator[None]:
    """Commit the changes at the end, or roll them back after an error."""
    connection.execute("BEGIN")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        # After a failed commit there may be no transaction to roll back.
        with suppress(duckdb.Error):
            connection.execute("ROLLBACK")
        raise


@contextmanager
def convert_errors(path: Path, action: str | None = None) -> Iterator[None]:
    """Raise errors of DuckDB and of the file system as `WarehouseError`.

    `action` replaces the action for a file in the data folder.
    """
    try:
        yield
    except (ConnectorError, duckdb.ProgrammingError, duckdb.DataError):
        raise  # A wrong statement is a bug, not an error of the file.
    except duckdb.Error as error:
        raise _to_warehouse_error(path, str(error)) from error
    except OSError as error:
        raise file_error(path, error, action) from error


def _means_file_in_use(message: str) -> bool:
    """Return True if DuckDB's message means that another process or thread has the file open."""
    is_locked = "Could not set lock" in message and not _means_no_locks(message)
    return is_locked or "Unique file handle conflict" in message


def _means_no_locks(message: str) -> bool:
    """Return True if DuckDB's message means that the file system has no locks."""
    lowered = message.lower()
    return any(each in lowered for each in _LOCKLESS)


_LOCKLESS = (
    "locks are not supported",
    *(os.strerror(each).lower() for each in (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS)),
)


def _to_warehouse_error(path: Path, message: str) -> WarehouseError:
    """Return the `WarehouseError` for a message of DuckDB."""
    text = message.split("\n", maxsplit=1)[0]
    lowered = text.lower()
    if "no space left" in lowered or "file too large" in lowered or "disk full" in lowered:
        return WarehouseError(f"the disk is full: {path} cannot be written", code="disk_full")
    if "replaying wal" in lowered or "corrupt wal" in lowered:
        return WarehouseError(f"the log {wal_path(path)} is damaged", code="damaged_log")
    if "could not set lock" in lowered or _means_file_in_use(text):
        return _to_lock_error(path, text)
    if "not a valid duckdb database" in lowered or "serialization" in lowered:
        return WarehouseError(
            f"{path} is not a DuckDB database that this version can read", code="not_a_warehouse"
        )
    if "could not read enough bytes" in lowered or "corrupt" in lowered:
        return WarehouseError(f"{path} is incomplete or damaged", code="not_a_warehouse")
    return WarehouseError(f"{path} cannot be used: {text}")


def _to_lock_error(path: Path, text: str) -> WarehouseError:
    """Return the error for DuckDB's message that the file is locked or cannot be locked."""
    if _means_no_locks(text):
        return no_locks_error(path)
    holder = re.search(r"PID (\d+)", text)
    holder_name = f"process {holder.group(1)}" if holder else "another process"
    return WarehouseError(f"{path} is used by {holder_name}", code="warehouse_busy")


# -- Repair ----------------------------------------------------------------------------------------
# Moves a damaged log away, so that the file opens in the state of its last checkpoint.
#
# DuckDB keeps the latest commits in a log next to the file. After a full disk or a power failure it
# may refuse to read the log and therefore the file. The file alone is valid. Bookmarks and rows are
# committed together, so an older file is only outdated, and the next pull reads later changes
# again.


def move_logs(work: Path, now: datetime) -> tuple[Path, ...]:
    """Rename logs so that DuckDB ignores them; the file is missing or locked by the caller."""
    moved = []
    with convert_errors(work):
        for ending in LOG_ENDINGS:
            found = work.with_name(work.name + ending)
            if found.exists():
                moved.append(found.rename(_unused_path(work, compact_timestamp(now), ending)))
        if moved:
            sync_folder(work.parent)
    return tuple(moved)


def _unused_path(work: Path, stamp: str, ending: str) -> Path:
    """Return a path `FILE.damaged-STAMP-NUMBER` that does not exist."""
    names = (f"{work.name}.damaged-{stamp}-{number}{ending}" for number in count(1))
    return next(path for name in names if not (path := work.with_name(name)).exists())


# -- Time ------------------------------------------------------------------------------------------
# Timestamps are exchanged with DuckDB as microseconds since 1970. This is exact, and does not need
# the time zone package that DuckDB's own conversion requires.


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def from_microseconds(value: int | None) -> datetime | None:
    """Return the UTC time that is this many microseconds after 1970; None for None."""
    return None if value is None else _EPOCH + timedelta(microseconds=value)


def to_microseconds(timestamp: datetime | None) -> int | None:
    """Return the microseconds from 1970 to the time; None for None."""
    return None if timestamp is None else (timestamp - _EPOCH) // timedelta(microseconds=1)


def to_iso(timestamp: datetime | None) -> str | None:
    """Return the time in ISO 8601, which DuckDB can cast; None for None."""
    return None if timestamp is None else timestamp.isoformat()


@contextmanager
def staged_table(connection: duckdb.DuckDBPyConnection, table: pa.Table) -> Iterator[None]:
    """Make an Arrow table readable in SQL under the name `stage`."""
    connection.register("stage", table)
    try:
        yield
    finally:
        connection.unregister("stage")
