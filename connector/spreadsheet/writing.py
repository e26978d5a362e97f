"""Files that are there whole or not at all, and that only their owner may read."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from connector.errors import DiskFull
from connector.errors.spreadsheet import SpreadsheetError

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """A file to write, which takes its name at the end, when everything in it is on the disk.

    It lies in the same folder meanwhile, and is gone if anything fails. Its mode is 0600. Raises
    `DiskFull`, `SpreadsheetError`.
    """
    temporary = None
    try:
        # Only its owner may read a file that is made so.
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        temporary = Path(name)
        with os.fdopen(handle, "w+b") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
        temporary = None
        _sync_folder(path.parent)
    except OSError as error:
        if error.errno in _FULL:
            raise DiskFull(f"there is no room left to write {path}") from error
        raise SpreadsheetError(f"{path} cannot be written: {error.strerror or error}") from error
    finally:
        if temporary is not None:
            with suppress(OSError):
                temporary.unlink()


def _sync_folder(folder: Path) -> None:
    """Make the new name last through a power cut."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
