"""What can be wrong with the data folder and the files in it."""

from __future__ import annotations

import errno
from pathlib import Path

from connector.errors.root import ConnectorError


class WarehouseError(ConnectorError):
    """The data folder or a file in it cannot be used."""

    code = "warehouse"
    action = "Check CONNECTOR_DATA_DIR: it must be a folder that this user may write to."


class NotAWarehouse(WarehouseError):
    """The file is not a DuckDB database, or one that the connector did not make."""

    code = "not_a_warehouse"
    action = "Move the file away, or point CONNECTOR_DATA_DIR at another folder, and pull again."


class WorkLost(WarehouseError):
    """The work file is gone, and the published file beside it cannot give its history back. Nothing
    was made, since the next publication would drop that history.
    """

    code = "work_lost"
    action = (
        "Restore a backup with 'connector restore FILE --replace'. Without one move "
        "recruitment.duckdb to another folder, and pull: history begins anew."
    )


class DamagedLog(WarehouseError):
    """The log beside the file holds its last commits and cannot be read back; the file is whole
    without it.
    """

    code = "damaged_log"
    action = (
        "Run 'connector doctor --repair': it moves the log aside, and the next pull reads again "
        "what was in it."
    )


class NotALedger(WarehouseError):
    """The file is not an SQLite database, or none that this version of the connector can use."""

    code = "not_a_ledger"
    action = "Move the file away, or point CONNECTOR_DATA_DIR at another folder."


class LedgerDamaged(WarehouseError):
    """The ledger cannot be read any more; nothing that landed is harmed."""

    code = "ledger_damaged"
    action = "Put a backup of the file in its place, or move it away: counting then begins anew."


class ErasuresUnknown(WarehouseError):
    """It is not known who was erased: the list, its key or a receipt was lost or cannot be read.
    Nothing is read or sent, since somebody who was erased could come back.
    """

    code = "erasures_unknown"
    action = "Put the file that is named back from a backup, then run the command again."


class WarehouseBusy(WarehouseError):
    """Another process held the file for longer than the deadline."""

    code = "warehouse_busy"
    action = (
        "Wait until the other process has ended; analysts should open recruitment.duckdb instead."
    )


class DiskFull(WarehouseError):
    """There is no room left to write; what was committed before stays readable."""

    code = "disk_full"
    action = "Free some space on that disk and run again; nothing that was committed is lost."


def naming(path: Path, error: OSError) -> WarehouseError:
    """The error that stands for what the file system refused to do with `path`."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return DiskFull(f"there is no room left to write {path}")
    return WarehouseError(f"{path} cannot be used: {error.strerror or error}")
