"""Files that are there whole or not at all, with an error that a recruiter understands."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from connector import disk
from connector.errors import DiskFull
from connector.errors.spreadsheet import SpreadsheetError

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """A file to write, which takes its name at the end. Raises `DiskFull`, `SpreadsheetError`."""
    try:
        with disk.replacing(path) as file:
            yield file
    except OSError as error:
        if error.errno in _FULL:
            raise DiskFull(f"there is no room left to write {path}") from error
        raise SpreadsheetError(f"{path} cannot be written: {error.strerror or error}") from error
