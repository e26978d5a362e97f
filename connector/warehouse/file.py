"""Opening a DuckDB file, and naming what can go wrong with it.

Every error of the file system or of DuckDB leaves here as a `WarehouseError` that says what to do.
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

from connector.errors import (
    ConnectorError,
    DamagedLog,
    DiskFull,
    NotAWarehouse,
    WarehouseBusy,
    WarehouseError,
)
from connector.errors.files import naming

STORAGE_VERSION = "v1.2.0"
"""The file format: old enough for the tools that analysts use, whichever DuckDB writes it."""

LOCK_WAIT_SECONDS = 30.0
"""How long to wait for another process to let go of the file."""

_LOCK_RETRY_SECONDS = 0.05
_FOLDER_MODE = 0o700
_FILE_MODE = 0o600


def make_folder(folder: Path) -> None:
    """Make the folder, open to its owner alone, if it is not there. Raises `WarehouseError`."""
    with naming_errors(folder):
        folder.mkdir(mode=_FOLDER_MODE, parents=True, exist_ok=True)
        # A folder that can be made and not be written to would fail much later, with less to say.
        if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(folder))


def log_of(path: Path) -> Path:
    """Where DuckDB keeps the commits that are not in the file itself yet."""
    return path.with_name(path.name + ".wal")


@contextmanager
def opened(
    path: Path, *, wait_seconds: float = LOCK_WAIT_SECONDS
) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection to the file, alone with it, with the session's time zone set to UTC.

    Raises `WarehouseBusy` with the holder's process after `wait_seconds`, `NotAWarehouse`,
    `DiskFull` or another `WarehouseError`.
    """
    with naming_errors(path):
        is_new = not path.exists()
        connection = _connect(path, wait_seconds)
        try:
            if is_new:
                path.chmod(_FILE_MODE)
            connection.execute("SET TimeZone = 'UTC'")
            yield connection
        finally:
            # Closing writes a checkpoint, which a full disk forbids; the log has all commits.
            with suppress(duckdb.Error):
                connection.close()


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


def _connect(path: Path, wait_seconds: float) -> duckdb.DuckDBPyConnection:
    until = time.monotonic() + wait_seconds
    while True:
        try:
            return duckdb.connect(
                str(path), config={"storage_compatibility_version": STORAGE_VERSION}
            )
        except duckdb.IOException as error:
            if "lock" not in str(error) or time.monotonic() >= until:
                raise
        time.sleep(_LOCK_RETRY_SECONDS)


def _named(path: Path, message: str) -> WarehouseError:
    """The error that DuckDB's message stands for."""
    text = message.split("\n", maxsplit=1)[0]
    lowered = text.lower()
    if "no space left" in lowered or "file too large" in lowered or "disk full" in lowered:
        return DiskFull(f"there is no room left to write {path}")
    if "replaying wal" in lowered or "corrupt wal" in lowered:
        return DamagedLog(f"the log {log_of(path)} is damaged and cannot be read back")
    if "set lock" in lowered:
        holder = re.search(r"PID (\d+)", text)
        who = f"process {holder.group(1)}" if holder else "another process"
        return WarehouseBusy(f"{path} is held by {who}")
    if "not a valid duckdb database" in lowered or "serialization" in lowered:
        return NotAWarehouse(f"{path} is not a DuckDB database that this version can read")
    return WarehouseError(f"{path} cannot be used: {text}")
