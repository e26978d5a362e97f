"""Setting a damaged log aside, so that the file opens again as of its last checkpoint.

DuckDB keeps the latest commits in a log beside the file. A disk that filled up or lost power can
leave a log that it refuses to read, and then it refuses the file as well. The file alone is whole:
it is as the last checkpoint left it. Bookmarks and rows are committed together, so an older file
is only older, and the next pull reads again what has changed since.
"""

from __future__ import annotations

import errno
import fcntl
from datetime import datetime
from itertools import count
from pathlib import Path

from connector.disk import sync_folder
from connector.errors import WarehouseBusy
from connector.stamp import stamped
from connector.warehouse.file import log_of, naming_errors

_LOG_ENDINGS = ("", ".checkpoint", ".recovery")
"""What DuckDB appends to the log's name while it makes a checkpoint."""


def set_logs_aside(work: Path, now: datetime) -> tuple[Path, ...]:
    """Give every log of the file a name that DuckDB does not know; returns the new names.

    Nothing is deleted. Raises `WarehouseBusy` while another process holds the file.
    """
    with naming_errors(work), work.open("r+b") as held:
        try:
            # The same kind of lock as DuckDB's own: nobody opens the file while its log moves.
            fcntl.lockf(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno in (errno.EACCES, errno.EAGAIN):
                raise WarehouseBusy(f"{work} is held by another process") from error
            raise
        return move_logs(work, now)


def move_logs(work: Path, now: datetime) -> tuple[Path, ...]:
    """As `set_logs_aside`, for a file that is gone or that nobody else can open now."""
    log = log_of(work)
    moved = []
    with naming_errors(work):
        for ending in _LOG_ENDINGS:
            found = log.with_name(log.name + ending)
            if found.exists():
                moved.append(found.rename(_free_name(work, stamped(now), ending)))
        if moved:
            sync_folder(work.parent)
    return tuple(moved)


def _free_name(work: Path, stamp: str, ending: str) -> Path:
    """A name that nothing has yet: what was set aside in the same second is not lost."""
    names = (f"{work.name}.damaged-{stamp}-{number}.wal{ending}" for number in count(1))
    return next(path for name in names if not (path := work.with_name(name)).exists())
