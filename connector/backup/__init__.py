"""Backups of one account's folder, and restoring it from one.

A backup is one file, a tar that any tool opens, with a manifest of what is in it. It is made while
a pull or a push goes on, holds what cannot be had from the API again (history, the journal of
pushes, seeds, receipts), and never a key of the API. Restoring keeps the ledger that is here where
it can: what was pushed, spent and erased since the backup stays known. Whoever was erased since is
erased again before analysts see anything.
"""

from connector.backup.making import Made, make_backup
from connector.backup.manifest import Manifest
from connector.backup.reading import check_backup
from connector.backup.restoring import Manner, Restored, restore

__all__ = [
    "Made",
    "Manifest",
    "Manner",
    "Restored",
    "check_backup",
    "make_backup",
    "restore",
]
