"""A page put in place on the disk: whole or not at all, and for its owner's eyes alone."""

from __future__ import annotations

from pathlib import Path

from connector.disk import replacing
from connector.warehouse.file import naming_errors


def put(path: Path, text: str) -> None:
    """Write the text in place of whatever the file was, readable by its owner alone.

    Whoever reads the file meanwhile sees the old text or the new one. Raises `DiskFull` or another
    `WarehouseError`.
    """
    with naming_errors(path), replacing(path) as file:
        file.write(text.encode())
