"""What lies in a folder of the inbox, and whether it may be read: decided before it is opened."""

from __future__ import annotations

import hashlib
import os
import stat
import unicodedata
from pathlib import Path
from typing import Literal, get_args

from connector.advice import explain
from connector.errors import ConnectorError
from connector.spreadsheet.table import TEXT_SUFFIXES, WORKBOOK_SUFFIX

Place = Literal["done", "rejected"]
"""Where a file is put away: `rejected` where a row or the whole file needs a person's hand."""

Stamp = tuple[int, int, int, int]
"""Device, inode, size in bytes, and time of change in nanoseconds: by these a file is the same."""

NAME_BYTES_MAX = 180
"""What is put behind a name when its file is put away must fit into a name as well."""

_SUFFIXES = (*TEXT_SUFFIXES, WORKBOOK_SUFFIX)
_PARTIAL = (".part", ".partial", ".tmp", ".temp", ".crdownload", ".download", ".filepart")
_FORBIDDEN = frozenset('/\\:*?"<>|;`')
_PIECE_BYTES = 1024 * 1024

# A pipe that took a file's place would let nobody open it until somebody writes to it.
_OPENING = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class RefusedEntry(Exception):  # It never leaves the inbox, where it is a sentence.
    """Why an entry is not read, to be put behind its name."""


def listed(folder: Path) -> list[os.DirEntry[str]]:
    """What is in the folder and not hidden, by name."""
    with os.scandir(folder) as entries:
        found = [entry for entry in entries if not entry.name.startswith(".")]
    return sorted(found, key=lambda entry: entry.name)


def real(folder: Path) -> Path:
    """The folder itself, which is not a link to another."""
    if not stat.S_ISDIR(folder.lstat().st_mode):
        raise RefusedEntry(f"leads elsewhere: {folder.name} is no folder, or a link to one")
    return folder


def safe(folder: Path) -> None:
    """Refuse a resource's folder from which a path would lead elsewhere."""
    for each in (folder, *(folder / place for place in get_args(Place))):
        if each == folder or os.path.lexists(each):
            real(each)


def told(path: Path, error: Exception) -> str:
    """Why an entry was not read, in one line whatever its name holds."""
    if isinstance(error, ConnectorError):
        return explain(error)
    return f"{shown(path.parent.name)}: {shown(path.name)} {why_of(error)}."


def fit(name: str, status: os.stat_result) -> os.stat_result:
    """The entry's status, if it is a file that may be read."""
    regular(status)
    plain(name)
    stem, suffix = os.path.splitext(name)
    is_partial = name.startswith("~$") or os.path.splitext(stem)[1].lower() in _PARTIAL
    if is_partial or suffix.lower() in _PARTIAL:
        raise RefusedEntry("is a part of a file, or a program's lock")
    if suffix.lower() not in _SUFFIXES:
        raise RefusedEntry(f"is none of {', '.join(_SUFFIXES)}")
    if not status.st_size:
        raise RefusedEntry("is empty")
    return status


def regular(status: os.stat_result) -> None:
    """Refuse what is no file, and a file that is not of this folder alone."""
    if not stat.S_ISREG(status.st_mode):
        raise RefusedEntry("is a link, a folder, a pipe or a device, and no file")
    if status.st_nlink > 1:
        raise RefusedEntry("has another name elsewhere, so that it is not the inbox's alone")


def plain(name: str) -> None:
    """Refuse a name that could mean something else to a shell, a database or another system."""
    if not name.isprintable() or _FORBIDDEN & set(name) or name.startswith((".", " ", "-")):
        raise RefusedEntry("has a name with characters that are not taken; give it a plain one")
    if len(name.encode()) > NAME_BYTES_MAX:
        raise RefusedEntry(f"has a name of more than {NAME_BYTES_MAX} bytes")


def folded(name: str) -> str:
    """What names have in common that some systems take for one."""
    return unicodedata.normalize("NFC", name).casefold()


def shown(name: str) -> str:
    """A name as a log may show it: whatever it holds, it is one line."""
    return ascii(name[:NAME_BYTES_MAX])


def stamp_of(status: os.stat_result) -> Stamp:
    """The stamp of a file of this status."""
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def digest_of(path: Path) -> tuple[str, Stamp]:
    """The SHA-256 of a regular file, and its stamp, of the same opening of it."""
    digest = hashlib.sha256()
    with os.fdopen(os.open(path, _OPENING), "rb") as file:
        status = os.fstat(file.fileno())
        regular(status)
        while piece := file.read(_PIECE_BYTES):
            digest.update(piece)
    return digest.hexdigest(), stamp_of(status)


def why_of(error: Exception) -> str:
    """What was wrong, without the path."""
    return error.strerror or "cannot be read" if isinstance(error, OSError) else str(error)
