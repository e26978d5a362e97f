"""Writing the work file anew, so that bytes of what was deleted are nowhere in it.

DuckDB marks deleted rows and reuses their blocks later: until then their bytes stay. A fresh file
is written beside the old one and takes its place by a rename, while the old one is held: no other
process writes to it meanwhile, and a crash leaves one file or the other, each whole.
"""

from __future__ import annotations

import os
from pathlib import Path

from connector.disk import sync_folder
from connector.warehouse.file import ROW_GROUP_ROWS, naming_errors, opened
from connector.warehouse.instances import STORAGE_VERSION
from connector.warehouse.publish import remove
from connector.warehouse.quoting import literal

FRESH_ENDING = ".compacting"
"""What the fresh file is called until it is whole, behind the name of the old one."""


def compact(path: Path) -> None:
    """Write the file anew. Raises `WarehouseBusy`, `DiskFull` or another `WarehouseError`, and the
    file is then as it was.
    """
    fresh = path.with_name(path.name + FRESH_ENDING)
    remove(fresh)
    with opened(path) as connection, naming_errors(path):
        # Nothing is left in the log, which would be taken for the fresh file's.
        connection.execute("CHECKPOINT")
        ((name,),) = connection.execute("SELECT current_database()").fetchall()
        connection.execute(
            f"ATTACH {literal(str(fresh))} AS fresh "
            f"(STORAGE_VERSION '{STORAGE_VERSION}', ROW_GROUP_SIZE {ROW_GROUP_ROWS})"
        )
        fresh.chmod(0o600)
        connection.execute(f'COPY FROM DATABASE "{name}" TO fresh')
        connection.execute("CHECKPOINT fresh")
        connection.execute("DETACH fresh")
        with fresh.open("rb") as written:
            os.fsync(written.fileno())
        fresh.replace(path)
        sync_folder(path.parent)
