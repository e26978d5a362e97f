"""The file on disk that a table is read from: regular, readable, and the same at every reading."""

from __future__ import annotations

import hashlib
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from connector.errors.spreadsheet import NotASpreadsheet, SpreadsheetChanged, SpreadsheetError

_PIECE_BYTES = 1024 * 1024
_KINDS = (
    (stat.S_ISDIR, "is a folder"),
    (stat.S_ISFIFO, "is a pipe"),
    (stat.S_ISSOCK, "is a socket"),
    (stat.S_ISCHR, "is a device"),
    (stat.S_ISBLK, "is a device"),
)


@dataclass(frozen=True, slots=True)
class Source:
    """A file that is read several times; every reading finds it as it was at first."""

    path: Path
    stamp: tuple[int, int, int, int]
    """Device, inode, size in bytes, and time of change in nanoseconds."""

    @property
    def size(self) -> int:
        """Bytes."""
        return self.stamp[2]

    def open(self) -> BinaryIO:
        """The file from its start. Raises `SpreadsheetChanged` where it is not the same any more,
        `SpreadsheetError` where it cannot be opened.
        """
        try:
            file = self.path.open("rb")
        except OSError as error:
            raise _unreadable(self.path, error) from error
        if _stamp(os.fstat(file.fileno())) != self.stamp:
            file.close()
            raise self.changed()
        return file

    def digest(self) -> str:
        """The SHA-256 of the file, in hexadecimal digits. Raises as `open` does."""
        digest = hashlib.sha256()
        with self.open() as file:
            while piece := file.read(_PIECE_BYTES):
                digest.update(piece)
        return digest.hexdigest()

    def check(self) -> None:
        """Raises `SpreadsheetChanged` unless the file is as it was at first."""
        self.open().close()

    def changed(self) -> SpreadsheetChanged:
        """The error for a file that is not the same any more."""
        return SpreadsheetChanged(f"{self.path} was changed while it was being read")


def find(path: Path) -> Source:
    """The regular file at `path`. Nothing else is opened: a pipe would wait for ever.

    Raises `NotASpreadsheet`, `SpreadsheetError`.
    """
    try:
        status = path.stat()
    except FileNotFoundError as error:
        raise NotASpreadsheet(
            f"{path}: there is no such file", action="Check the name and the folder."
        ) from error
    except OSError as error:
        raise _unreadable(path, error) from error
    if not stat.S_ISREG(status.st_mode):
        what = next((words for test, words in _KINDS if test(status.st_mode)), "is no file")
        raise NotASpreadsheet(f"{path} {what}, not a file with a table")
    return Source(path, _stamp(status))


def _stamp(status: os.stat_result) -> tuple[int, int, int, int]:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def _unreadable(path: Path, error: OSError) -> SpreadsheetError:
    return SpreadsheetError(f"{path} cannot be read: {error.strerror or error}")
