"""Publishing: the work file's copy for analysts, made visible at once.

Copy, sync, atomic rename, sync of the folder. A reader that holds the old file keeps reading it,
one that opens now sees the new one, and a crash leaves one or the other. Neither ever waits for
the other.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from connector.warehouse.file import naming_errors, opened

_BUFFER_BYTES = 4 * 1024 * 1024
_TEMPORARY_SUFFIX = ".publishing"


def publish(work: Path, target: Path) -> None:
    """Replace `target` by a copy of `work`, whole. Raises `DiskFull` or another `WarehouseError`.

    The work file is held for as long as the copy takes, so that no other process writes to it
    meanwhile.
    """
    temporary = target.with_name(target.name + _TEMPORARY_SUFFIX)
    with opened(work) as connection:
        # After a checkpoint everything is in the one file, and nothing in a log beside it.
        connection.execute("CHECKPOINT")
        try:
            with naming_errors(target):
                _copy(work, temporary)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
    with naming_errors(target):
        temporary.replace(target)
        sync_folder(target.parent)


def _copy(source: Path, temporary: Path) -> None:
    # A copy left by a crash is overwritten: only the rename gives a copy its name.
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    with source.open("rb") as read, os.fdopen(os.open(temporary, flags, 0o600), "wb") as write:
        shutil.copyfileobj(read, write, _BUFFER_BYTES)
        write.flush()
        os.fsync(write.fileno())


def sync_folder(folder: Path) -> None:
    """Make new names in the folder last through a power cut."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
