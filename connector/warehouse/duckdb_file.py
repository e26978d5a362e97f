"""Opening a DuckDB file, and naming what can go wrong with it.

Every error of the file system or of DuckDB leaves here as a `WarehouseError` that says what to do.

A file is *attached* to a database in memory, since only then can the size of its row groups be
said. With DuckDB's own sizes one small commit to a large table takes hundreds of MiB for a moment:
each column of a row group that is written takes a block, and row groups are joined as their rows
are deleted. With those below, what a commit takes does not grow with the table.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path

import duckdb

from connector.errors import (
    ConnectorError,
    DamagedLog,
    DiskFull,
    NotAWarehouse,
    WarehouseBusy,
    WarehouseError,
    naming,
)
from connector.system.atomic_files import FILE_MODE, sync_folder
from connector.system.log import stamped
from connector.warehouse.memory import is_small, sparing

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


# -- Instances -------------------------------------------------------------------------------------
# The databases in memory that files are attached to, each kept from one opening to the next.
#
# Making one takes DuckDB three times as long as attaching a small file, committing to it and
# detaching it, and a pull opens its file for every batch. All openings of one file at one time have
# the same one, or they would keep each other out.
#
# One that had a large file is not kept: a first load took 50 MiB more with it by the time that its
# file had 80 MB.


IDLE_MAX = 2
"""So many are kept while no file is attached to them: a pull has one file open, and at its end the
one that it publishes beside it.
"""

STORAGE_VERSION = "v1.2.0"
"""The file format: old enough for the tools that analysts use, whichever DuckDB writes it."""

BLOCK_BYTES = 16_384
"""The size of a new file's blocks, the least that there is: columns of small row groups fill no
larger ones, and a batch's rows are read from blocks all over the file.
"""

_CONFIG: dict[str, str | bool | int | float | list[str]] = {
    "storage_compatibility_version": STORAGE_VERSION,
    "default_block_size": str(BLOCK_BYTES),
    # Batches are small: a second thread costs them more than it does for them.
    "threads": "1",
}

Attach = Callable[[duckdb.DuckDBPyConnection], str]
"""Attaches the file, unless it is, and makes it what the connection uses; gives its name there."""


@dataclass(slots=True)
class _Place:
    """What all openings of one file have in common."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    """Held while the file is attached or detached."""
    instance: duckdb.DuckDBPyConnection | None = None
    openings: int = 0
    users: int = 0
    """Openings, and those that are about to be."""


class _Instances:
    """Those of this process."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.places: dict[Path, _Place] = {}
        self.idle: list[duckdb.DuckDBPyConnection] = []


_own = _Instances()


@contextmanager
def attached(
    path: Path, attach: Attach, settings: Mapping[str, str], *, keeps: bool
) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection of its own, with the file attached until its last opening ends.

    Detaching writes a checkpoint; the first opening's settings hold until then. The instance is
    kept for the next file if the last opening `keeps` it. Raises what `attach` does.
    """
    with _own.lock:
        place = _own.places.setdefault(path, _Place())
        place.users += 1
    try:
        with place.lock:
            connection, name = _open(place, attach, settings)
        try:
            yield connection
        finally:
            with place.lock:
                _close(place, connection, name, keeps=keeps)
    finally:
        with _own.lock:
            place.users -= 1
            if not place.users:
                del _own.places[path]


def _open(
    place: _Place, attach: Attach, settings: Mapping[str, str]
) -> tuple[duckdb.DuckDBPyConnection, str]:
    instance = place.instance or _taken(settings)
    connection = instance.cursor()
    try:
        name = attach(connection)
    except BaseException:
        connection.close()
        if not place.openings:
            _give_back(instance, keeps=True)
        raise
    place.instance = instance
    place.openings += 1
    return connection, name


def _close(place: _Place, connection: duckdb.DuckDBPyConnection, name: str, *, keeps: bool) -> None:
    connection.close()
    place.openings -= 1
    instance = place.instance
    if place.openings or instance is None:
        return
    place.instance = None
    # A checkpoint fails where the disk is full; the log has all commits.
    with suppress(duckdb.Error):
        instance.execute(f"DETACH {quoted(name)}")
    _give_back(instance, keeps=keeps)


def _taken(settings: Mapping[str, str]) -> duckdb.DuckDBPyConnection:
    """One that waits, or a new one."""
    with _own.lock:
        instance = _own.idle.pop() if _own.idle else None
    if instance is None:
        instance = duckdb.connect(":memory:", config=_CONFIG)
    for setting, value in settings.items():
        instance.execute(f"SET GLOBAL {setting} = {literal(value)}")
    return instance


def _give_back(instance: duckdb.DuckDBPyConnection, *, keeps: bool) -> None:
    """Keep it for the next file, if it is as it was.

    Nothing is attached to it, nothing was written for want of memory, and no error has made it
    unfit for more.
    """
    with suppress(duckdb.Error):
        ((others,),) = instance.execute(
            "SELECT count(*) - 1 FROM duckdb_databases() WHERE NOT internal"
        ).fetchall()
        instance.execute("SET GLOBAL temp_directory = ''")
        with _own.lock:
            if keeps and not others and len(_own.idle) < IDLE_MAX:
                _own.idle.append(instance)
                return
    instance.close()


# -- File ------------------------------------------------------------------------------------------
#


ROW_GROUP_ROWS = 8_192
"""How many rows are written and compressed together."""

JOINED_ROWS = 2_048
"""Where a file is tidied, up to three times as many rows are joined at once."""

LOCK_WAIT_SECONDS = 30.0
"""How long to wait for another process to let go of the file."""

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
    """Where DuckDB keeps the commits that are not in the file itself yet."""
    return path.with_name(path.name + ".wal")


@contextmanager
def opened(
    path: Path, *, wait_seconds: float = LOCK_WAIT_SECONDS, tidies: bool = False
) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection to the file, alone with it, in UTC.

    With `tidies`, some row groups with few rows left are joined when it is closed after a commit.
    Raises `WarehouseBusy` with the holder's process after `wait_seconds`, `NotAWarehouse`,
    `DiskFull` or another `WarehouseError`.
    """
    rows = JOINED_ROWS if tidies else ROW_GROUP_ROWS
    settings = {
        # What does not fit into memory would else be written to wherever the process was started.
        "temp_directory": f"{path.absolute()}.tmp",
        # What small commits leave is put together by `compaction.py`, for less. Where the file is
        # tidied it is one step in each table: what is left waits for the next time.
        "max_vacuum_tasks": "1" if tidies else "0",
    }

    def attach(connection: duckdb.DuckDBPyConnection) -> str:
        is_new = not path.exists()
        name = _attach(connection, path, wait_seconds, rows)
        if is_new:
            path.chmod(FILE_MODE)
        connection.execute("SET TimeZone = 'UTC'")
        return name

    with (
        naming_errors(path),
        sparing(path),
        attached(path.absolute(), attach, settings, keeps=is_small(path)) as connection,
    ):
        yield connection


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


def _attach(
    connection: duckdb.DuckDBPyConnection, path: Path, wait_seconds: float, rows: int
) -> str:
    """Attach the file, and use it; gives the name that it has in the connection."""
    until = time.monotonic() + wait_seconds
    name = path.name.partition(".")[0]
    while True:
        try:
            connection.execute(
                f"ATTACH IF NOT EXISTS {literal(str(path))} AS {quoted(name)} "
                f"(STORAGE_VERSION '{STORAGE_VERSION}', ROW_GROUP_SIZE {rows})"
            )
        except duckdb.Error as error:
            if not _is_held(str(error)):
                raise
            if time.monotonic() >= until:
                raise duckdb.IOException(str(error)) from error
            time.sleep(_LOCK_RETRY_SECONDS)
        else:
            connection.execute(f"USE {quoted(name)}")
            return name


def _is_held(message: str) -> bool:
    """Whether DuckDB says that another process, or part of this one, has the file."""
    return "Could not set lock" in message or "Unique file handle conflict" in message


def _named(path: Path, message: str) -> WarehouseError:
    """The error that DuckDB's message stands for."""
    text = message.split("\n", maxsplit=1)[0]
    lowered = text.lower()
    if "no space left" in lowered or "file too large" in lowered or "disk full" in lowered:
        return DiskFull(f"there is no room left to write {path}")
    if "replaying wal" in lowered or "corrupt wal" in lowered:
        return DamagedLog(f"the log {log_of(path)} is damaged and cannot be read back")
    if _is_held(text):
        holder = re.search(r"PID (\d+)", text)
        who = f"process {holder.group(1)}" if holder else "another process"
        return WarehouseBusy(f"{path} is held by {who}")
    if "not a valid duckdb database" in lowered or "serialization" in lowered:
        return NotAWarehouse(f"{path} is not a DuckDB database that this version can read")
    return WarehouseError(f"{path} cannot be used: {text}")


# -- Repair ----------------------------------------------------------------------------------------
# Setting a damaged log aside, so that the file opens again as of its last checkpoint.
#
# DuckDB keeps the latest commits in a log beside the file. A disk that filled up or lost power can
# leave a log that it refuses to read, and then it refuses the file as well. The file alone is
# whole: it is as the last checkpoint left it. Bookmarks and rows are committed together, so an
# older file is only older, and the next pull reads again what has changed since.


_LOG_ENDINGS = ("", ".checkpoint", ".recovery")
"""What DuckDB appends to the log's name while it makes a checkpoint."""


def set_logs_aside(work: Path, now: datetime) -> tuple[Path, ...]:
    """Give every log of the file a name that DuckDB does not know.

    Nothing is deleted. Returns the new names. Raises `WarehouseBusy` while another process holds
    the file.
    """
    with naming_errors(work), work.open("r+b") as held:
        try:
            # The same kind of lock as DuckDB's own: nobody opens the file while its log moves.
            fcntl.lockf(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno in (errno.EACCES, errno.EAGAIN):
                raise WarehouseBusy(f"{work} is held by another process") from error
            raise
        return move_logs(work, now)


def move_logs(work: Path, now: datetime) -> tuple[Path, ...]:
    """As `set_logs_aside`, for a file that is gone or that nobody else can open now."""
    log = log_of(work)
    moved = []
    with naming_errors(work):
        for ending in _LOG_ENDINGS:
            found = log.with_name(log.name + ending)
            if found.exists():
                moved.append(found.rename(_free_name(work, stamped(now), ending)))
        if moved:
            sync_folder(work.parent)
    return tuple(moved)


def _free_name(work: Path, stamp: str, ending: str) -> Path:
    """A name that nothing has yet: what was set aside in the same second is not lost."""
    names = (f"{work.name}.damaged-{stamp}-{number}.wal{ending}" for number in count(1))
    return next(path for name in names if not (path := work.with_name(name)).exists())


# -- Moment ----------------------------------------------------------------------------------------
# Moments across DuckDB's border, as microseconds since 1970.
#
# Exact both ways, and independent of the time zone package that DuckDB wants for its own
# conversion.


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def from_microseconds(value: int | None) -> datetime | None:
    """The moment, aware and in UTC."""
    return None if value is None else _EPOCH + timedelta(microseconds=value)


def to_microseconds(moment: datetime | None) -> int | None:
    """Microseconds since 1970."""
    return None if moment is None else (moment - _EPOCH) // timedelta(microseconds=1)


def iso(moment: datetime | None) -> str | None:
    """The moment as text that DuckDB casts."""
    return None if moment is None else moment.isoformat()
