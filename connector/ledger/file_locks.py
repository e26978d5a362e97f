"""Locks of files: some file systems, such as network shares, refuse every lock."""

from __future__ import annotations

import errno
import fcntl
import tempfile
from pathlib import Path

from connector.errors import NoFileLocks

_REFUSALS = frozenset((errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOTSUP, errno.ENOSYS))
"""Errors with which a file system says that it has no locks."""


def is_refusal(error: OSError) -> bool:
    """Return True if the error of a lock says that the file system has no locks."""
    return error.errno in _REFUSALS


def no_locks(path: Path) -> NoFileLocks:
    """Return the error of a file or folder whose file system has no locks."""
    return NoFileLocks(f"the file system of {path} has no file locks")


def has_locks(folder: Path) -> bool:
    """Return True unless the file system of the folder refuses to lock a new file.

    DuckDB and SQLite report such a refusal as a lock that another process holds.
    """
    try:
        with tempfile.TemporaryFile(dir=folder) as handle:
            fcntl.lockf(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return not is_refusal(error)
    return True
