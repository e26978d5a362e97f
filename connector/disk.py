"""Files made so that their owner alone may open them, whole or not at all, and lasting.

Nothing here names an error: what the file system refuses is an `OSError`, which the room that asked
puts into words.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, BinaryIO

FILE_MODE = 0o600
"""Everything that the connector makes is its owner's alone, whatever the umask."""


def create(path: Path) -> BinaryIO:
    """A file to write that was not there: another's, or a link, is not followed."""
    return os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, FILE_MODE), "wb")


@contextmanager
def replacing(path: Path, mode: int = FILE_MODE) -> Iterator[IO[bytes]]:
    """A file to write, which takes its name at the end, when everything in it is on the disk.

    It lies in the same folder meanwhile, and is gone if anything fails: whoever reads `path` sees
    what was there before, or all that is there now.
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
