"""Opening a DuckDB file, and naming what can go wrong with it.

Every error of the file system or of DuckDB leaves here as a `WarehouseError` that says what to do.

A file is *attached* to a database in memory, since only then can the size of its row groups be
said. With DuckDB's own sizes one small commit to a large table takes hundreds of MiB for a moment:
each column of a row group that is written takes a block, and row groups are joined as their rows
are deleted. With those below, what a commit takes does not grow with the table.
"""

from __future__ import annotations

import errno
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import duckdb

from connector.disk import FILE_MODE
from connector.errors import (
    ConnectorError,
    DamagedLog,
    DiskFull,
    NotAWarehouse,
    WarehouseBusy,
    WarehouseError,
)
from connector.errors.files import naming
from connector.warehouse.instances import STORAGE_VERSION, attached
from connector.warehouse.memory import is_small, sparing
from connector.warehouse.quoting import literal, quoted

ROW_GROUP_ROWS = 8_192
"""How many rows are written and compressed together."""

JOINED_ROWS = 2_048
"""Where a file is tidied, up to three times as many rows are joined at once."""

LOCK_WAIT_SECONDS = 30.0
"""How long to wait for another process to let go of the file."""

_LOCK_RETRY_SECONDS = 0.05

_FOLDER_MODE = 0o700


def make_folder(folder: Path) -> None:
    """Make the folder, open to its owner alone, if it is not there. Raises `WarehouseError`."""
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
    """A connection to the file, alone with it, with the session's time zone set to UTC.

    With `tidies`, some row groups with few rows left are joined when it is closed after a commit.
    Raises `WarehouseBusy` with the holder's process after `wait_seconds`, `NotAWarehouse`,
    `DiskFull` or another `WarehouseError`.
    """
    rows = JOINED_ROWS if tidies else ROW_GROUP_ROWS
    settings = {
        # What does not fit into memory would else be written to wherever the process was started.
        "temp_directory": f"{path.absolute()}.tmp",
        # What small commits leave is put together by `loose.py`, for less. Where the file is tidied
        # it is one step in each table: what is left waits for the next time.
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
    """Attach the file, and use it; gives the name that it has for whoever opens it by itself."""
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
    """Whether DuckDB says that another process, or another part of this one, has the file."""
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
