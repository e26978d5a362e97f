"""Files that only their owner may open, written whole or not at all.

Nothing here names an error: what the file system refuses is an `OSError`, which the room that asked
puts into words.
"""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, BinaryIO

FILE_MODE = 0o600
"""Everything that the connector makes is its owner's alone, whatever the umask."""


def create(path: Path) -> BinaryIO:
    """A file to write that was not there: another's, or a link, is not followed."""
    return os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, FILE_MODE), "wb")


@contextmanager
def replacing(path: Path, mode: int = FILE_MODE) -> Iterator[IO[bytes]]:
    """A file to write, which takes its name when all of it is on the disk.

    It lies in the same folder in the meantime, and is gone if anything fails: a reader of `path`
    sees the earlier content, or all of the new one.
    """
    # Only its owner may open a file that is made so.
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    draft = Path(name)
    try:
        with os.fdopen(handle, "w+b") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if mode != FILE_MODE:
            draft.chmod(mode)
        draft.replace(path)
        sync_folder(path.parent)
    except BaseException:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
        raise


def sync_folder(folder: Path) -> None:
    """Make new names in the folder last through a power cut."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


# -- Permissions -----------------------------------------------------------------------------------
# Who may open the account's folder and the files in it: what is wider than it should be.
#
# Everything the connector makes is its owner's alone, folders 0700 and files 0600, whatever the
# umask. What was there before, or was changed since, is reported and not changed: the owner
# may have meant it. Nothing is opened here.


_OTHERS = 0o077
_FOR_ANALYSTS = "recruitment."
"""What the names of files begin with that are meant for others."""


@dataclass(frozen=True, slots=True)
class WidePermissions:
    """Something that others than its owner may open, and its mode."""

    path: Path
    mode: int

    def __str__(self) -> str:
        return f"other users can open {self.path} (mode {self.mode:04o})"

    @property
    def action(self) -> str:
        """Command that closes the permissions."""
        return f"Run chmod {'700' if self.path.is_dir() else '600'} on it, unless this is intended."


def wide(folder: Path) -> Iterator[WidePermissions]:
    """The account's folder and what lies in it, where others may open it.

    The published file and the page are left out: they are for others. Where the folder itself is
    closed no one gets at what is in it, and nothing else is looked at.
    """
    if os.name != "posix":
        return
    found = _wide(folder)
    if found is None:
        return
    yield found
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return
    for name in names:
        if not name.startswith(_FOR_ANALYSTS) and (each := _wide(folder / name)) is not None:
            yield each


def _wide(path: Path) -> WidePermissions | None:
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
    except OSError:
        return None
    return WidePermissions(path, mode) if mode & _OTHERS else None
