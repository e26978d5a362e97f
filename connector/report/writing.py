"""A page put in place on the disk: whole or not at all, and for its owner's eyes alone."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from connector.warehouse.file import naming_errors

_MODE = 0o600


def put(path: Path, text: str) -> None:
    """Write the text in place of whatever the file was, readable by its owner alone.

    Whoever reads the file meanwhile sees the old text or the new one. Raises `DiskFull` or another
    `WarehouseError`.
    """
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    with naming_errors(path):
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
            draft.unlink(missing_ok=True)
            with os.fdopen(os.open(draft, flags, _MODE), "w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            draft.replace(path)
        except BaseException:
            with suppress(OSError):
                draft.unlink(missing_ok=True)
            raise
