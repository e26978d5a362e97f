"""Files that only their owner can open, and that are written completely or not at all.

Functions raise `OSError`. The caller converts the error to one of the connector's errors.
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


def create_private_file(path: Path) -> BinaryIO:
    """Create a file that only its owner can open, and return it open for writing.

    Raises `FileExistsError` if the path exists, also as a link.
    """
    return os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, FILE_MODE), "wb")


@contextmanager
def write_atomically(path: Path, mode: int = FILE_MODE) -> Iterator[IO[bytes]]:
    """Yield a temporary file that replaces `path` at the end of the block.

    The content is on disk before the file is replaced. If the block fails, `path` is unchanged.
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
    """Write the folder's entries to disk, so that new names survive a power failure."""
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
"""Beginning of the names of files for analysts."""


@dataclass(frozen=True, slots=True)
class WidePermissions:
    """File or folder that users other than its owner can open, and its mode."""

    path: Path
    mode: int

    def __str__(self) -> str:
        return f"other users can open {self.path} (mode {self.mode:04o})"

    @property
    def action(self) -> str:
        """Sentence with the command that restricts access to the owner."""
        return f"Run chmod {'700' if self.path.is_dir() else '600'} on it, unless this is intended."


def find_wide_permissions(folder: Path) -> Iterator[WidePermissions]:
    """Yield the account's folder and the files in it that other users can open.

    Files for analysts, such as the published file, are omitted. If only its owner can open the
    folder, nothing is yielded, because its files are protected too.
    """
    if os.name != "posix" or not folder.is_dir():
        return
    found = _wide_permissions_of(folder)
    if found is None:
        return
    yield found
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return
    for name in names:
        if (
            not name.startswith(_FOR_ANALYSTS)
            and (each := _wide_permissions_of(folder / name)) is not None
        ):
            yield each


def _wide_permissions_of(path: Path) -> WidePermissions | None:
    """Return the permissions of a path that other users can open; None if only its owner can."""
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
    except OSError:
        return None
    return WidePermissions(path, mode) if mode & _OTHERS else None
