"""Opening of DuckDB files, and conversion of their errors.

Only the process that holds the account's lock opens `work.duckdb`; its threads share one instance.
A file is attached to a database in memory, because only then its row group size can be set. With
DuckDB's default of 122,880 rows a first load took three times as long: an incomplete row group is
compressed again at every checkpoint.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import stat
import threading
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import duckdb
import pyarrow as pa

from connector.atomic_files import FILE_MODE, sync_folder
from connector.errors import ConnectorError, WarehouseError, file_error
from connector.state.lock import NO_LOCKS, no_locks_error

Connection: TypeAlias = duckdb.DuckDBPyConnection

STORAGE_VERSION = "v1.2.0"
"""File format that older tools of analysts can read."""

ROW_GROUP_ROWS = 8_192

SESSION = "SET TimeZone = 'UTC'; SET enable_progress_bar = false"

MEMORY_MAX = "160MB"
"""Memory limit of DuckDB; larger data spills to a folder next to the file."""

_CONFIG: dict[str, str | bool | int | float | list[str]] = {
    "storage_compatibility_version": STORAGE_VERSION,
    # Columns of small row groups do not fill larger blocks.
    "default_block_size": "16384",
    # Commits are small: a second thread would slow them down.
    "threads": "1",
    "allocator_background_threads": "true",
    # The log is applied when the file is closed, and not after some commits of a large load.
    "checkpoint_threshold": "1GB",
    # DuckDB merges row groups again and again while most of their rows are replaced.
    "max_vacuum_tasks": "0",
    # Metadata kept by a checkpoint may point to blocks that are free now. DuckDB before 1.4.2
    # follows such a pointer and cannot load the table.
    "experimental_metadata_reuse": "false",
}

_LOG_ENDINGS = (".wal", ".wal.checkpoint", ".wal.recovery")
"""Suffixes of files that DuckDB creates next to a file. A leftover log is applied to a new file."""


def quoted(name: str) -> str:
    """Return a quoted SQL identifier; of `schema.table`, both parts."""
    return ".".join('"' + each.replace('"', '""') + '"' for each in name.split(".", 1))


def literal(text: str) -> str:
    """Return a quoted SQL string, for statements that take no parameters."""
    return "'" + text.replace("'", "''") + "'"


@dataclass(slots=True)
class _Instance:
    """DuckDB instance of one file, which all threads of this process share."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    duckdb: Connection | None = None
    users: int = 0


_instances: defaultdict[Path, _Instance] = defaultdict(_Instance)


@contextmanager
def open_file(path: Path, *, memory: str = MEMORY_MAX) -> Iterator[Connection]:
    """Open a connection to a DuckDB file, in UTC, and create the file if it is missing.

    Threads share one instance of DuckDB, with the `memory` limit of the first one. Raises a
    `WarehouseError`, which names the process if another one has the file open.
    """
    shared, name = _instances[path.absolute()], quoted(path.name.partition(".")[0])
    with convert_errors(path):
        with shared.lock:
            if shared.duckdb is None:
                is_new = not path.exists()
                # Otherwise DuckDB would spill to the current directory of the process.
                spill = {"memory_limit": memory, "temp_directory": f"{path.absolute()}.tmp"}
                shared.duckdb = duckdb.connect(":memory:", config=_CONFIG | spill)
                try:
                    attach(shared.duckdb, path, name)
                except BaseException:
                    shared.duckdb.close()
                    shared.duckdb = None
                    raise
                if is_new:
                    path.chmod(FILE_MODE)
            connection = shared.duckdb.cursor()
            shared.users += 1
        try:
            connection.execute(f"USE {name}; {SESSION}")
            yield connection
        finally:
            with shared.lock:
                connection.close()
                shared.users -= 1
                if not shared.users:
                    instance, shared.duckdb = shared.duckdb, None
                    # A checkpoint fails if the disk is full; the log contains all commits.
                    with suppress(duckdb.Error):
                        instance.execute(f"DETACH {name}")
                    instance.close()


def attach(connection: Connection, path: Path, name: str) -> None:
    """Attach the file at a path under a quoted name, and create it if it is missing."""
    connection.execute(
        f"{SESSION}; ATTACH {literal(str(path))} AS {name} "
        f"(STORAGE_VERSION '{STORAGE_VERSION}', ROW_GROUP_SIZE {ROW_GROUP_ROWS})"
    )


@contextmanager
def open_read_only(path: Path) -> Iterator[Connection]:
    """Open a read-only connection to the file at this path, in UTC.

    `duckdb.connect(path)` would return a file that this process already has open, although it may
    have been replaced since.
    """
    damaged = (
        "Run 'connector publish', which replaces this file. If the work file is missing or damaged"
        " too, restore a backup with 'connector restore FROM'."
    )
    with convert_errors(path, damaged=damaged), duckdb.connect(":memory:") as connection:
        name = quoted(path.name.partition(".")[0])
        connection.execute(f"ATTACH {literal(str(path))} AS {name} (READ_ONLY)")
        connection.execute(f"USE {name}; {SESSION}")
        yield connection


@contextmanager
def transaction(connection: Connection) -> Iterator[None]:
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


def run_staged(
    connection: Connection,
    columns: Mapping[str, Iterable[Any]],
    sql: str,
    values: Mapping[str, Any] | None = None,
) -> list[Any]:
    """Run a statement that reads the table `stage` with these columns; return the resulting rows.

    Without a row in the table, nothing is run.
    """
    stage = pa.table({name: [*each] for name, each in columns.items()})
    if not stage.num_rows:
        return []
    connection.register("stage", stage)
    try:
        return connection.execute(sql, values).fetchall()
    finally:
        connection.unregister("stage")


# -- Files -----------------------------------------------------------------------------------------


def make_folder(folder: Path, action: str | None = None) -> None:
    """Create the folder, accessible only to its owner. Raises `WarehouseError`."""
    with convert_errors(folder, action):
        # One by one: otherwise the umask would determine the permissions of the parents.
        missing = [each for each in (folder, *folder.parents) if not each.exists()]
        for each in reversed(missing):
            each.mkdir(mode=0o700, exist_ok=True)
        if not folder.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(folder))
        # A folder without write permission would fail much later, with a less helpful error.
        if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
            is_read_only = os.statvfs(folder).f_flag & os.ST_RDONLY
            code = errno.EROFS if is_read_only else errno.EACCES
            raise OSError(code, os.strerror(code), str(folder))


def replace_file(draft: Path, target: Path) -> int:
    """Write a complete file to disk and rename it; return its size in bytes.

    It gets the mode and the group that the operator gave to the replaced file.
    """
    with convert_errors(target):
        # Closing makes a checkpoint, unless the disk is full: then the log has the rest.
        if draft.with_name(f"{draft.name}.wal").exists():
            with open_file(draft) as connection:
                connection.execute("CHECKPOINT")
        if target.exists():
            given, mode = target.stat(), stat.S_IMODE(target.stat().st_mode)
            if given.st_gid != draft.stat().st_gid:
                try:
                    os.chown(draft, -1, given.st_gid)
                except PermissionError:  # Another group must not get the rights of this one.
                    mode &= ~stat.S_IRWXG
            draft.chmod(mode)
        with draft.open("rb") as written:
            os.fsync(written.fileno())
            size = os.fstat(written.fileno()).st_size
        draft.replace(target)
        sync_folder(target.parent)
    return size


def remove_file(path: Path) -> None:
    """Delete a DuckDB file and the files next to it, if they exist."""
    with convert_errors(path):
        for ending in ("", *_LOG_ENDINGS):
            path.with_name(path.name + ending).unlink(missing_ok=True)
        shutil.rmtree(path.with_name(path.name + ".tmp"), ignore_errors=True)


# -- Errors ----------------------------------------------------------------------------------------


_ERRORS = (
    (("no space left", "file too large", "disk full"), "the disk is full: {} cannot be written",
     "disk_full"),
    (("out of memory",), "{} needs more memory than this process may use", "out_of_memory"),
    (("replaying wal", "corrupt wal"), "the log {}.wal is damaged", "damaged_log"),
    (("could not set lock",), "{} is used by {holder}", "warehouse_busy"),
    (("not a valid duckdb", "serialization"),
     "{} is not a DuckDB database that this version can read", "not_a_warehouse"),
    (("could not read enough bytes", "corrupt"), "{} is incomplete or damaged", "not_a_warehouse"),
)  # fmt: skip
"""Message and code of an error, by a text in DuckDB's message."""

_NO_LOCKS = ("locks are not supported", *(os.strerror(each).lower() for each in NO_LOCKS))


@contextmanager
def convert_errors(
    path: Path, action: str | None = None, damaged: str | None = None
) -> Iterator[None]:
    """Raise errors of DuckDB and of the file system as `WarehouseError`.

    `action` replaces the action for a file in the data folder, and `damaged` that for a damaged
    file.
    """
    try:
        yield
    except (ConnectorError, duckdb.ProgrammingError, duckdb.DataError):
        raise  # A wrong statement is a bug, not an error of the file.
    except OSError as error:
        raise file_error(path, error, action) from error
    except duckdb.Error as error:
        text = str(error).partition("\n")[0]
        if os.strerror(errno.EMFILE) in text:
            raise file_error(path, OSError(errno.EMFILE, os.strerror(errno.EMFILE))) from error
        # DuckDB reports a file system without locks as a lock that another process holds.
        if any(each in str(error).lower() for each in _NO_LOCKS):
            raise no_locks_error(path) from error
        for marks, problem, code in _ERRORS:
            if any(mark in text.lower() for mark in marks):
                holder = re.search(r"PID (\d+)", text)
                message = problem.format(
                    path, holder=f"process {holder[1]}" if holder else "another process"
                )
                way_out = damaged if code == "not_a_warehouse" else None
                raise WarehouseError(message, code=code, action=way_out) from error
        raise WarehouseError(f"{path} cannot be used: {text}") from error
