"""The files of a publication: the work file's copy, and its being put in place at once.

Copy, sync, atomic rename, sync of the folder. A reader that holds the old file keeps reading it,
one that opens now sees the new one, and a crash leaves one or the other. Neither ever waits for
the other. What is done to the copy in between is not known here.
"""

from __future__ import annotations

import errno
import os
import shutil
from dataclasses import replace
from pathlib import Path

from connector.system.atomic_files import create, sync_folder
from connector.warehouse.duckdb_file import (
    LOG_ENDINGS,
    ROW_GROUP_ROWS,
    STORAGE_VERSION,
    literal,
    log_of,
    naming_errors,
    opened,
    transaction,
)
from connector.warehouse.runs import Publication, name_cut_off, true_of, write_publication
from connector.warehouse.schema import is_migrated, last_migration, migrate

_BUFFER_BYTES = 4 * 1024 * 1024
_NOT_HERE = (errno.EINVAL, errno.EXDEV, errno.ENOSYS, errno.EOPNOTSUPP, errno.EPERM)


def copy_work(work: Path, draft: Path, publication: Publication, published: Path) -> Publication:
    """Record that the publication begins, and copy the work file to `draft` with that record.

    The work file is held for as long as the copy takes, so that no other process writes to it
    meanwhile. `published` is the file that analysts have until then. Returns the publication with
    the moment that it is true of. Raises `DiskFull` or another `WarehouseError`.
    """
    with opened(work) as connection:
        if not is_migrated(connection):
            migrate(connection, str(work))
        publication = replace(publication, true_of=true_of(connection))
        with transaction(connection):
            name_cut_off(connection, published)
            write_publication(connection, publication)
        # After a checkpoint everything is in the one file, and nothing in a log beside it.
        connection.execute("CHECKPOINT")
        with naming_errors(draft):
            copy_file(work, draft)
    return publication


def copy_whole(work: Path, target: Path) -> int:
    """Copy the work file to `target`, which is not there yet, as it is at one moment; returns the
    number of its last migration, 0 where it has none.

    The work file is held for as long as the copy takes. Raises `DiskFull` or another
    `WarehouseError`.
    """
    with opened(work) as connection:
        last = last_migration(connection)
        connection.execute("CHECKPOINT")
        with naming_errors(target):
            copy_file(work, target)
    return last


def record(file: Path, publication: Publication) -> None:
    """Write down in the file how the publication stands. Raises a `WarehouseError`."""
    with opened(file) as connection, transaction(connection):
        write_publication(connection, publication)


def put_in_place(draft: Path, target: Path) -> int:
    """Make the draft the published file, whole and lasting; returns its bytes.

    Raises `DiskFull` or another `WarehouseError`.
    """
    with naming_errors(target):
        # Closing makes a checkpoint, but for a disk that is full: then the log has the rest.
        if log_of(draft).exists():
            with opened(draft) as connection:
                connection.execute("CHECKPOINT")
        with draft.open("rb") as written:
            os.fsync(written.fileno())
            size = os.fstat(written.fileno()).st_size
        draft.replace(target)
        sync_folder(target.parent)
    return size


def remove(draft: Path) -> None:
    """Take the draft away with everything beside it, if it is there."""
    with naming_errors(draft):
        for ending in ("", *LOG_ENDINGS):
            draft.with_name(draft.name + ending).unlink(missing_ok=True)
        shutil.rmtree(draft.with_name(draft.name + ".tmp"), ignore_errors=True)


def copy_file(source: Path, target: Path) -> None:
    """Copy a file that nobody writes to; `target` is not there yet. Raises an `OSError`."""
    # What a crash has left was removed: a link in its place would not be followed.
    with source.open("rb") as read, create(target) as write:
        if not _copy_in_kernel(read.fileno(), write.fileno()):
            shutil.copyfileobj(read, write, _BUFFER_BYTES)


def _copy_in_kernel(read: int, write: int) -> bool:
    """Copy without bringing the bytes up here, which is five times as fast where it works: not
    on every system, and not between any two. False, and nothing is copied, where it does not.
    """
    copy = getattr(os, "copy_file_range", None)
    if copy is None:
        return False
    left = os.fstat(read).st_size
    copied = 0
    while left:
        try:
            count = copy(read, write, left)
        except OSError as error:
            if copied or error.errno not in _NOT_HERE:
                raise
            return False
        if not count:
            return False
        copied, left = copied + count, left - count
    return True


# -- Compacting ------------------------------------------------------------------------------------
# Writing the work file anew, so that bytes of what was deleted are nowhere in it.
#
# DuckDB marks deleted rows and reuses their blocks later: until then their bytes stay. A fresh file
# is written beside the old one and takes its place by a rename, while the old one is held: no other
# process writes to it meanwhile, and a crash leaves one file or the other, each whole.


FRESH_ENDING = ".compacting"
"""What the fresh file is called until it is whole, behind the name of the old one."""


def compact(path: Path) -> None:
    """Write the file anew. Raises `WarehouseBusy`, `DiskFull` or another `WarehouseError`, and the
    file is then as it was.
    """
    fresh = path.with_name(path.name + FRESH_ENDING)
    remove(fresh)
    with opened(path) as connection, naming_errors(path):
        # Nothing is left in the log, which would be taken for the fresh file's.
        connection.execute("CHECKPOINT")
        ((name,),) = connection.execute("SELECT current_database()").fetchall()
        connection.execute(
            f"ATTACH {literal(str(fresh))} AS fresh "
            f"(STORAGE_VERSION '{STORAGE_VERSION}', ROW_GROUP_SIZE {ROW_GROUP_ROWS})"
        )
        fresh.chmod(0o600)
        connection.execute(f'COPY FROM DATABASE "{name}" TO fresh')
        connection.execute("CHECKPOINT fresh")
        connection.execute("DETACH fresh")
        with fresh.open("rb") as written:
            os.fsync(written.fileno())
        fresh.replace(path)
        sync_folder(path.parent)
