"""Opening a DuckDB file, and naming what can go wrong with it.

Every error of the file system or of DuckDB leaves here as a `WarehouseError` that says what to do.
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
from typing import TYPE_CHECKING

import duckdb

from connector.atomic_files import FILE_MODE, sync_folder
from connector.errors import (
    ConnectorError,
    DamagedLog,
    DiskFull,
    NotAWarehouse,
    WarehouseBusy,
    WarehouseError,
    naming,
)
from connector.ledger.sqlite_file import is_refusal, no_locks
from connector.log import stamped

if TYPE_CHECKING:
    import pyarrow as pa

# -- Quoting ---------------------------------------------------------------------------------------
# Names and texts as SQL has them, for statements that are put together.
#
# A text could be a parameter instead, but with its first one DuckDB imports pandas, to see whether
# it is a frame: 35 MB, for a process that has no other use of it.


def quoted(name: str) -> str:
    """An SQL identifier, quoted."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """An SQL string, quoted."""
    return "'" + text.replace("'", "''") + "'"


# -- File ------------------------------------------------------------------------------------------
# A file is attached to a database in memory, since only then can the size of its row groups be set.
# DuckDB's own size, 122,880 rows, made a first load take three times as long and twice as much
# memory: a row group that is not full yet is compressed again with every checkpoint.


STORAGE_VERSION = "v1.2.0"
"""File format, old enough for the tools that analysts use."""

BLOCK_BYTES = 16_384
"""Size of a new file's blocks: columns of small row groups fill no larger."""

ROW_GROUP_ROWS = 8_192
"""Rows that are written and compressed together."""

MEMORY_MAX = "160MB"
"""Memory of DuckDB; what needs more spills to a folder next to the file."""

SESSION = "SET TimeZone = 'UTC'; SET enable_progress_bar = false"
"""Settings of every session: in a program that is no file, such as `python -c` and a notebook,
DuckDB would draw its progress among what is printed."""

KEEP_METADATA = "SET GLOBAL experimental_metadata_reuse"
"""Whether checkpoints keep the metadata of what has not changed. While a pull lasts they do, since
in a large file they would else write little but metadata, and its last one writes all again.
"""

LOCK_WAIT_SECONDS = 30.0
"""How long to wait for another process to close the file."""

_LOCK_RETRY_SECONDS = 0.05

_FOLDER_MODE = 0o700


def make_folder(folder: Path) -> None:
    """Make the folder, open to its owner alone. Raises `WarehouseError`."""
    with naming_errors(folder):
        # One by one: those above would else be as open as the umask lets them be.
        missing = [each for each in (folder, *folder.parents) if not each.exists()]
        for each in reversed(missing):
            each.mkdir(mode=_FOLDER_MODE, exist_ok=True)
        if not folder.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(folder))
        # A folder that can be made and not be written to would fail much later, with less to say.
        if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(folder))


LOG_ENDINGS = (".wal", ".wal.checkpoint", ".wal.recovery")
"""What DuckDB makes beside a file. A log that is left is put into the next file of the name."""


def log_of(path: Path) -> Path:
    """Path of DuckDB's log, which holds the commits that are not in the file yet."""
    return path.with_name(path.name + ".wal")


@dataclass(slots=True)
class _SharedOpening:
    """State shared by all parts of this process that have one file open."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    instance: duckdb.DuckDBPyConnection | None = None
    users: int = 0


_openings: defaultdict[Path, _SharedOpening] = defaultdict(_SharedOpening)


@contextmanager
def open_file(
    path: Path,
    *,
    wait_seconds: float = LOCK_WAIT_SECONDS,
    memory: str = MEMORY_MAX,
    queues: bool = False,
) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection to the file, which no other process has in the meantime, in UTC.

    Parts of one process share an instance of DuckDB, whose `memory` is that of the first opening.
    With `queues` a process that waits for the file already has it first. Raises `WarehouseBusy`
    with the holder's process after `wait_seconds`, `NotAWarehouse`, `DiskFull` or another
    `WarehouseError`.
    """
    opening, name = _openings[path.absolute()], path.name.partition(".")[0]
    with naming_errors(path):
        with opening.lock:
            if opening.instance is None:
                opening.instance = _attached(path, name, wait_seconds, memory, queues)
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
                    # A checkpoint fails where the disk is full; the log has all commits.
                    with suppress(duckdb.Error):
                        instance.execute(f"DETACH {quoted(name)}")
                    instance.close()


def _attached(
    path: Path, name: str, wait_seconds: float, memory: str, queues: bool
) -> duckdb.DuckDBPyConnection:
    """A new instance of DuckDB to which the file is attached."""
    is_new = not path.exists()
    instance = duckdb.connect(
        ":memory:",
        config={
            "storage_compatibility_version": STORAGE_VERSION,
            "default_block_size": str(BLOCK_BYTES),
            # Whoever writes much closes the file after so many rows: commits need no checkpoint.
            "checkpoint_threshold": "1GB",
            # Commits are small: a second thread costs them more than it does for them.
            "threads": "1",
            "allocator_background_threads": "true",
            # DuckDB joins row groups again and again while most of their rows are being replaced:
            # 9 of the 45 s of a first load. `compact` joins them, once in a while.
            "max_vacuum_tasks": "0",
            # Metadata that a checkpoint keeps from the one before may point to blocks that are free
            # by now; a DuckDB before 1.4.2 follows such a pointer, and fails to load the table.
            "experimental_metadata_reuse": "false",
            "memory_limit": memory,
            # DuckDB would else spill to wherever the process was started.
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
        if queues:
            _attach_queued(instance, attach, path, until)
        else:
            try:
                instance.execute(attach)
            except duckdb.Error as error:
                if not _is_held(str(error)):
                    raise
                _attach_queued(instance, attach, path, until)
        if is_new:
            path.chmod(FILE_MODE)
    except BaseException:
        instance.close()
        raise
    return instance


# -- Turns -----------------------------------------------------------------------------------------
# A pull keeps the file open as long as no one else wants it. Whoever does holds the lock of the
# folder while it waits, which the pull looks for between its steps. The system takes the lock back
# from a process that dies.


def is_requested(path: Path) -> bool:
    """Whether another process waits for the file."""
    try:
        with hold_lock(path.parent, until=0.0):
            return False
    except TimeoutError:
        return True


def _attach_queued(
    instance: duckdb.DuckDBPyConnection, attach: str, path: Path, until: float
) -> None:
    """Attach the file once this process is the first that waits, and no one has it."""
    held = "Could not set lock: others wait as well"
    with suppress(TimeoutError), hold_lock(path.parent, until):
        while True:
            try:
                instance.execute(attach)
            except duckdb.Error as error:
                held = str(error)
                if not _is_held(held):
                    raise
            else:
                return
            if time.monotonic() >= until:
                break
            time.sleep(_LOCK_RETRY_SECONDS)
    # For what another part of this process has attached by itself, DuckDB has another error.
    raise duckdb.IOException(held)


@contextmanager
def hold_lock(path: Path, until: float = inf) -> Iterator[None]:
    """Hold the lock of a folder or file, for which threads wait as well.

    Raises `TimeoutError` if it is not free by then, and `NoFileLocks`.
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
                raise (no_locks(path) if is_refusal(error) else naming(path, error)) from error
        yield
    finally:
        os.close(handle)


@contextmanager
def transaction(connection: duckdb.DuckDBPyConnection) -> Iterator[None]:
    """Commit what is done inside, or roll all of it back and raise."""
    connection.execute("BEGIN")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        # After a failed commit there may be nothing left to roll back.
        with suppress(duckdb.Error):
            connection.execute("ROLLBACK")
        raise


@contextmanager
def naming_errors(path: Path) -> Iterator[None]:
    """Turn errors of DuckDB and of the file system into the tree of `errors.py`."""
    try:
        yield
    except (ConnectorError, duckdb.ProgrammingError, duckdb.DataError):
        raise  # A statement that is wrong is our own mistake, and none of the file's.
    except duckdb.Error as error:
        raise _named(path, str(error)) from error
    except OSError as error:
        raise naming(path, error) from error


def _is_held(message: str) -> bool:
    """Whether DuckDB says that another process, or part of this one, has the file."""
    is_locked = "Could not set lock" in message and not _is_lockless(message)
    return is_locked or "Unique file handle conflict" in message


def _is_lockless(message: str) -> bool:
    """Whether DuckDB says that the file system has no locks."""
    lowered = message.lower()
    return any(each in lowered for each in _LOCKLESS)


_LOCKLESS = (
    "locks are not supported",
    *(os.strerror(each).lower() for each in (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS)),
)


def _named(path: Path, message: str) -> WarehouseError:
    """The error that DuckDB's message stands for."""
    text = message.split("\n", maxsplit=1)[0]
    lowered = text.lower()
    if "no space left" in lowered or "file too large" in lowered or "disk full" in lowered:
        return DiskFull(f"the disk is full: {path} cannot be written")
    if "replaying wal" in lowered or "corrupt wal" in lowered:
        return DamagedLog(f"the log {log_of(path)} is damaged")
    if "could not set lock" in lowered or _is_held(text):
        return _named_lock(path, text)
    if "not a valid duckdb database" in lowered or "serialization" in lowered:
        return NotAWarehouse(f"{path} is not a DuckDB database that this version can read")
    if "could not read enough bytes" in lowered or "corrupt" in lowered:
        return NotAWarehouse(f"{path} is incomplete or damaged")
    return WarehouseError(f"{path} cannot be used: {text}")


def _named_lock(path: Path, text: str) -> WarehouseError:
    """The error of a lock that DuckDB did not get."""
    if _is_lockless(text):
        return no_locks(path)
    holder = re.search(r"PID (\d+)", text)
    who = f"process {holder.group(1)}" if holder else "another process"
    return WarehouseBusy(f"{path} is used by {who}")


# -- Repair ----------------------------------------------------------------------------------------
# Setting a damaged log aside, so that the file opens again as of its last checkpoint.
#
# DuckDB keeps the latest commits in a log next to the file. A disk that filled up or lost power can
# leave a log that it refuses to read, and then it refuses the file as well. The file alone is
# whole: it is as the last checkpoint left it. Bookmarks and rows are committed together, so an
# older file is only older, and the next pull reads again what has changed since.


def set_logs_aside(work: Path, now: datetime) -> tuple[Path, ...]:
    """Give every log of the file a name that DuckDB does not know.

    Nothing is deleted. Returns the new names. Raises `WarehouseBusy` while another process holds
    the file.
    """
    with naming_errors(work), work.open("r+b") as held:
        try:
            # The same kind of lock as DuckDB's own: no one opens the file while its log moves.
            fcntl.lockf(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno in (errno.EACCES, errno.EAGAIN):
                raise WarehouseBusy(f"{work} is used by another process") from error
            if is_refusal(error):
                raise no_locks(work) from error
            raise
        return move_logs(work, now)


def move_logs(work: Path, now: datetime) -> tuple[Path, ...]:
    """As `set_logs_aside`, for a file that is gone or that no one else can open now."""
    moved = []
    with naming_errors(work):
        for ending in LOG_ENDINGS:
            found = work.with_name(work.name + ending)
            if found.exists():
                moved.append(found.rename(_free_name(work, stamped(now), ending)))
        if moved:
            sync_folder(work.parent)
    return tuple(moved)


def _free_name(work: Path, stamp: str, ending: str) -> Path:
    """A name that nothing has yet: what was set aside in the same second is not lost."""
    names = (f"{work.name}.damaged-{stamp}-{number}{ending}" for number in count(1))
    return next(path for name in names if not (path := work.with_name(name)).exists())


# -- Time ------------------------------------------------------------------------------------------
# Times across DuckDB's border, as microseconds since 1970.
#
# Exact both ways, and independent of the time zone package that DuckDB wants for its own
# conversion.


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def from_microseconds(value: int | None) -> datetime | None:
    """The time, aware and in UTC."""
    return None if value is None else _EPOCH + timedelta(microseconds=value)


def to_microseconds(moment: datetime | None) -> int | None:
    """Microseconds since 1970."""
    return None if moment is None else (moment - _EPOCH) // timedelta(microseconds=1)


def iso(moment: datetime | None) -> str | None:
    """The time as text that DuckDB casts."""
    return None if moment is None else moment.isoformat()


@contextmanager
def staged_table(connection: duckdb.DuckDBPyConnection, table: pa.Table) -> Iterator[None]:
    """The table, readable as `stage`."""
    connection.register("stage", table)
    try:
        yield
    finally:
        connection.unregister("stage")
